import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from fairlead_local import leftovers
from fairlead_local.cluster import ClusterFailed, InvalidCluster, LocalCluster, default_resources
from tests.builders.processes import FakeProcess


def test_process_that_dies_at_its_start_is_shown_with_its_last_words(tmp_path: Path) -> None:
    cluster = LocalCluster(agents=1, policy="luck", directory=tmp_path / "state")

    with pytest.raises(ClusterFailed, match="master ended at its start with code 2") as failed:
        cluster.start()

    assert str(tmp_path / "state" / "logs" / "master.log") in str(failed.value)
    assert "got 'luck'" in str(failed.value)
    assert "\n" not in str(failed.value), "its log lines are for whoever looks for them"
    assert not any(process.is_alive for process in cluster.processes)


def test_directory_that_up_makes_and_its_logs_are_closed_to_others(tmp_path: Path) -> None:
    state = tmp_path / "state"
    umask = os.umask(0)
    try:
        with pytest.raises(ClusterFailed):
            LocalCluster(agents=1, policy="luck", directory=state).start()
    finally:
        os.umask(umask)

    logs = state / "logs"
    modes = {path: path.stat().st_mode & 0o777 for path in (state, logs, *logs.iterdir())}
    assert modes == {state: 0o700, logs: 0o700, logs / "master.log": 0o600, logs / "agent-1.log": 0o600}


def test_stop_of_what_was_never_started_touches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "precious").touch()
    monkeypatch.chdir(tmp_path)

    LocalCluster(agents=1).stop()

    assert (tmp_path / "precious").exists()


@pytest.mark.parametrize("resources", [["cpus=1"], ["cpus=1"] * 3])
def test_each_agent_needs_its_resources(resources: list[str]) -> None:
    with pytest.raises(
        InvalidCluster,
        match=f"resources: expected one for all agents or one for each of 2, got {len(resources)}",
    ):
        LocalCluster(agents=2, resources=resources)


def test_small_host_still_offers_room_for_ordinary_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(os, "sysconf", lambda _name: 2**14)

    assert default_resources(3).startswith("cpus=2,mem=1GiB,")


@pytest.mark.shell
def test_children_end_with_a_parent_that_is_killed() -> None:
    code = (
        "from fairlead_local.cluster import LocalCluster\n"
        "import time\n"
        "cluster = LocalCluster(agents=1, isolation='none')\n"
        "cluster.start()\n"
        "print(cluster.directory, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        directory = Path(parent.stdout.readline().strip())
        children = psutil.Process(parent.pid).children(recursive=True)

        parent.kill()

    _, alive = psutil.wait_procs(children, timeout=20)
    assert len(children) >= 2
    assert not alive
    assert directory.exists()
    leftovers.remove_temporary_directories()
    assert not directory.exists()


def test_a_start_that_takes_too_long_says_how_far_it_came_and_leaves_nothing() -> None:
    cluster = LocalCluster(agents=2)

    with pytest.raises(
        ClusterFailed, match=r"the cluster was not ready within 0\.01 s: 0 of 2 agents had registered"
    ):
        cluster.start(timeout_s=0.01)

    assert not any(process.is_alive for process in cluster.processes)
    assert not cluster.directory.exists()


def test_signal_while_a_cluster_stops_does_afterwards_what_it_does_else() -> None:
    """Between two clusters of a benchmark, Ctrl-C is meant for the benchmark."""
    cluster = LocalCluster(agents=1)
    agent = FakeProcess("agent-1")
    agent.when_signalled = lambda: signal.raise_signal(signal.SIGINT)
    cluster.agents = [agent]

    with pytest.raises(KeyboardInterrupt):
        cluster.stop()

    assert agent.signals == [signal.SIGTERM, signal.SIGKILL]
