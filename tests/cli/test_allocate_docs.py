"""docs/allocate.md is true: its examples are run, and its table is what the policies answer."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlead_master.solvers.registry import NAMES
from tests.cli.conftest import Invoke

TEXT = (Path(__file__).parents[2] / "docs" / "allocate.md").read_text(encoding="utf-8")
EXAMPLE, MACHINES = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL))
SESSIONS = re.findall(r"```\n\$ (.*?)\n(.*?)```", TEXT, re.DOTALL)
ANSWERS = [
    (policy, split, whole)
    for policies, split, whole in re.findall(r"^\| (`[^|]*) \| ([\d.]+, [\d.]+) \| ([\d.]+, [\d.]+) \|", TEXT, re.MULTILINE)
    for policy in re.findall(r"`(.*?)`", policies)
]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the document in the working directory."""
    (tmp_path / "example.json").write_text(json.dumps(EXAMPLE))
    (tmp_path / "machines.json").write_text(json.dumps(MACHINES))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("command", "output"), SESSIONS, ids=[command for command, _ in SESSIONS])
def test_what_is_shown_is_what_is_printed(
    invoke: Invoke, here: None, command: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    echoed, _, line = command.rpartition(" | ")
    if echoed:
        text = re.fullmatch(r"echo '(.*)'", echoed)
        assert text is not None
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text[1].encode())))

    outcome = invoke(*line.split()[1:])

    assert outcome.out == output
    assert outcome.err == ""


@pytest.mark.parametrize(("policy", "split", "whole"), ANSWERS)
def test_the_table_is_what_the_policies_answer(
    invoke: Invoke, here: None, policy: str, split: str, whole: str
) -> None:
    def tasks(*flags: str) -> str:
        document: dict[str, Any] = json.loads(
            invoke("allocate", "example.json", "--policy", policy, "--json", *flags).out
        )
        return ", ".join(f"{round(count, 9):.6g}" for count in document["tasks"].values())

    assert tasks() == split
    assert tasks("--discrete") == whole


def test_the_table_has_every_kind_of_policy() -> None:
    shown = {policy.partition(":")[0] for policy, _, _ in ANSWERS}

    assert shown == {name.partition(":")[0] for name in NAMES}
    assert len(SESSIONS) == 3
