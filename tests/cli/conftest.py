"""What tests of the command line share: a way to call it, and a master with canned answers."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from fairlead_cli import main
from tests.cli.canned_master import CannedMaster, ServedMaster


class Outcome(NamedTuple):
    """What a command line came to."""

    code: int
    out: str
    err: str


Invoke = Callable[..., Outcome]


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run a command line in this process."""
    monkeypatch.delenv("FAIRLEAD_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = main.run(arguments)
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Iterator[CannedMaster]:
    """Serve canned answers where FAIRLEAD_MASTER points to."""
    with ServedMaster() as served:
        monkeypatch.setenv("FAIRLEAD_MASTER", served.address)
        yield served.master
