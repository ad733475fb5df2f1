import pytest

from fairlead_cli.addresses import parse_address
from tests.cli.canned_master import CannedMaster
from tests.cli.conftest import Invoke


@pytest.mark.parametrize("text", ["127.0.0.1:5050", "master.example:1", "[::1]:5050", "localhost:0"])
def test_address_is_host_and_port(text: str) -> None:
    assert parse_address(text) == text


@pytest.mark.parametrize(
    "text", ["", "host", ":5050", "host:", "host:-1", "host:65536", "::1:5050", "host:x"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        parse_address(text)


def test_own_option_wins_over_the_group_s_over_the_environment(
    invoke: Invoke, master: CannedMaster, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    import os

    here = os.environ["FAIRLEAD_MASTER"]
    nowhere = f"127.0.0.1:{unused_tcp_port}"

    assert invoke("tasks").code == 0
    assert invoke("--master", nowhere, "tasks").code == 3
    assert invoke("--master", nowhere, "tasks", "--master", here).code == 0
    monkeypatch.setenv("FAIRLEAD_MASTER", nowhere)
    assert invoke("--master", here, "tasks").code == 0
    assert invoke("tasks").code == 3
