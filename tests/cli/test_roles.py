"""`fairlead master` and `fairlead agent`: from flags to options; the roles themselves are tested elsewhere."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect the options that master and agent would be run with."""
    import fairlead_agent.cli
    import fairlead_master.cli

    options: list[Any] = []

    def take(given: Any) -> int:
        options.append(given)
        return 0

    monkeypatch.setattr(fairlead_master.cli, "run_master", take)
    monkeypatch.setattr(fairlead_agent.cli, "run_agent", take)
    return options


def test_master_beyond_this_host_needs_a_word(invoke: Invoke) -> None:
    outcome = invoke("master", "--listen", "0.0.0.0:5050")

    assert outcome.code == 2
    assert "no TLS and no authentication" in outcome.err
    assert "--insecure" in outcome.err


def test_master_flags_become_options(invoke: Invoke, taken: list[Any], tmp_path: Path) -> None:
    arguments = [
        "--listen", "127.0.0.1:0", "--state", str(tmp_path), "--policy", "slots:4", "--placement", "pack",
        "--when-head-does-not-fit", "freeze", "--offer-lease", "500ms", "--agent-timeout", "1m", "--recovery-wait", "0",
        "--failover-timeout-max", "2d",
        "--custom-resource", "licenses", "--custom-resource", "slots", "--log-level", "debug",
    ]  # fmt: skip

    assert invoke("master", *arguments).code == 0

    (options,) = taken
    assert (options.listen, options.state) == ("127.0.0.1:0", tmp_path)
    assert (options.policy, options.placement, options.when_head_does_not_fit) == (
        "slots:4",
        "pack",
        "freeze",
    )
    assert (options.offer_lease_ms, options.agent_timeout_ms, options.recovery_wait_ms) == (500, 60_000, 0)
    assert options.failover_timeout_max_ms == 2 * 86_400_000
    assert options.custom_resources == ("licenses", "slots")
    assert options.log_level == "debug"


def test_master_leaves_open_what_was_not_said(invoke: Invoke, taken: list[Any]) -> None:
    invoke("master")

    (options,) = taken
    assert options.listen == "127.0.0.1:5050"
    assert [options.policy, options.placement, options.when_head_does_not_fit, options.state] == [None] * 4


def test_agent_flags_become_options(invoke: Invoke, taken: list[Any], tmp_path: Path) -> None:
    arguments = [
        "--master", "m:1", "--resources", "cpus=4,mem=8GiB,licenses=2", "--attribute", "rack=a", "--attribute", "ssd=",
        "--work-dir", str(tmp_path), "--hostname", "h", "--isolation", "none", "--cgroup-parent", "/x",
        "--sandbox-retention", "1h", "--stop-tasks-on-exit",
    ]  # fmt: skip

    assert invoke("agent", *arguments).code == 0

    (options,) = taken
    assert (options.master, options.resources) == ("m:1", "cpus=4,mem=8GiB,licenses=2")
    assert options.attributes == {"rack": "a", "ssd": ""}
    assert (options.work_dir, options.hostname) == (tmp_path, "h")
    assert (options.isolation, options.cgroup_parent) == ("none", "/x")
    assert options.sandbox_retention_ms == 3_600_000
    assert options.stop_tasks_on_exit


def test_agent_finds_its_master_as_every_command_does(
    invoke: Invoke, taken: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAIRLEAD_MASTER", "elsewhere:7")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    invoke("agent")

    assert taken[0].master == "elsewhere:7"
    assert taken[0].work_dir == tmp_path / "fairlead" / "agent"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--resources", "cpus=-1"], "cpus: expected"),
        (["--attribute", "rack"], "expected NAME=VALUE"),
        (["--attribute", "9=a"], "attribute: expected names of letters"),
        (["--isolation", "vm"], "'vm' is not one of"),
        (["--sandbox-retention", "long"], "expected a duration"),
    ],
)
def test_agent_that_cannot_be_is_refused_in_one_line(
    invoke: Invoke, taken: list[Any], arguments: list[str], expected: str
) -> None:
    outcome = invoke("agent", *arguments)

    assert outcome.code == 2
    assert expected in outcome.err
    assert outcome.err.count("\n") == 1
    assert not taken
