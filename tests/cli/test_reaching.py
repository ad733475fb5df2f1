"""A run whose master is away: tried for a time, with a word about it."""

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlead_cli.errors import Unreachable
from fairlead_cli.running import RETRY_MS, reach
from fairlead_local.cluster import LocalCluster
from fairlead_sim.testing import VirtualClock
from tests.cli.conftest import Invoke

NOWHERE = "127.0.0.1:1"
"""Nothing listens there."""


class _Master:
    """Answers from a time on; counts who asks."""

    def __init__(self, clock: VirtualClock, *, back_at_ms: int) -> None:
        self.asked = 0
        self._clock = clock
        self._back_at_ms = back_at_ms

    async def ask(self) -> None:
        self.asked += 1
        if self._clock.now_ms() < self._back_at_ms:
            raise Unreachable("host:1", "Connection refused")


async def test_a_master_that_is_back_in_time_is_reached() -> None:
    clock, said = VirtualClock(), list[str]()
    master = _Master(clock, back_at_ms=2_900)

    reaching = asyncio.create_task(reach(master.ask, wait_ms=3_000, clock=clock, say=said.append))
    await clock.advance(3_000)

    await reaching
    assert said == ["cannot reach the master at host:1 (Connection refused); trying for 3 s"]


async def test_a_master_that_stays_away_is_given_up_after_the_time_allowed() -> None:
    clock, said = VirtualClock(), list[str]()
    master = _Master(clock, back_at_ms=100_000)

    reaching = asyncio.create_task(reach(master.ask, wait_ms=3_000, clock=clock, say=said.append))
    await clock.advance(2_999)
    assert not reaching.done()
    await clock.advance(1)

    with pytest.raises(Unreachable):
        await reaching
    assert master.asked == 3_000 // RETRY_MS + 1
    assert len(said) == 1


async def test_a_master_that_is_not_waited_for_is_asked_once_without_a_word() -> None:
    clock, said = VirtualClock(), list[str]()
    master = _Master(clock, back_at_ms=100_000)

    with pytest.raises(Unreachable):
        await reach(master.ask, wait_ms=0, clock=clock, say=said.append)

    assert (master.asked, said) == (1, [])


Process = subprocess.Popen[str]
Start = Callable[..., Process]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Start]:
    """Start a command line in a process of its own, which does not outlive the test."""
    processes: list[Process] = []

    def start(*arguments: str) -> Process:
        command = [sys.executable, "-m", "fairlead_cli.main", *arguments]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"XDG_STATE_HOME": str(tmp_path)},
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(agents=1, resources="cpus=4,mem=1GiB", isolation="none") as local:
        yield local


def line(process: Process) -> str:
    assert process.stderr is not None
    return process.stderr.readline()


@pytest.mark.shell
@pytest.mark.parametrize("flags", [[], ["--detach"]])
def test_run_that_is_told_not_to_wait_exits_with_3_at_once(invoke: Invoke, flags: list[str]) -> None:
    outcome = invoke("run", "--master", NOWHERE, "--wait", "0", *flags, "--", "true")

    assert outcome.code == 3
    assert outcome.err.count("cannot reach the master") == 1
    assert "trying" not in outcome.err


@pytest.mark.shell
@pytest.mark.parametrize("flags", [[], ["--detach"]])
def test_run_tries_for_three_seconds_unless_told_otherwise(started: Start, flags: list[str]) -> None:
    process = started("run", "--master", NOWHERE, *flags, "--", "true")

    first = line(process)

    assert first.startswith(f"fairlead: cannot reach the master at {NOWHERE} (")
    assert first.endswith("; trying for 3 s\n")
    assert process.wait(timeout=30) == 3


@pytest.mark.shell
def test_run_begins_when_the_master_is_back(cluster: LocalCluster, started: Start) -> None:
    cluster.kill_master()
    attached = started("run", "--master", cluster.address, "--wait", "60s", "--", "echo", "hello")
    detached = started("run", "--detach", "--master", cluster.address, "--wait", "60s", "--", "true")
    assert "trying for 60 s" in line(attached)
    assert "trying for 60 s" in line(detached)

    cluster.restart_master()

    assert attached.communicate(timeout=60)[0] == "hello\n"
    assert detached.communicate(timeout=60)[0].startswith("f")
    assert (attached.returncode, detached.returncode) == (0, 0)


@pytest.mark.shell
def test_run_says_that_its_master_is_gone_and_that_it_is_back(cluster: LocalCluster, started: Start) -> None:
    run = started("run", "--quiet", "--master", cluster.address, "--", "sh", "-c", "echo begun; sleep 60")
    assert run.stdout is not None
    assert run.stdout.readline() == "begun\n"

    cluster.kill_master()
    lost = line(run)
    cluster.restart_master()
    back = line(run)
    run.send_signal(signal.SIGINT)

    assert lost.startswith(f"fairlead: lost the master at {cluster.address} (")
    assert lost.endswith("; trying for 30 s to reach it again, tasks run on meanwhile\n")
    assert back == f"fairlead: the master at {cluster.address} is back\n"
    run.communicate(timeout=60)
    assert run.returncode == 130


@pytest.mark.shell
def test_run_whose_master_came_back_without_its_state_says_what_became_of_it(
    cluster: LocalCluster, started: Start
) -> None:
    run = started("run", "--quiet", "--master", cluster.address, "--", "sh", "-c", "echo begun; sleep 60")
    assert run.stdout is not None
    assert run.stdout.readline() == "begun\n"

    cluster.kill_master()
    shutil.rmtree(cluster.directory / "master")
    cluster.restart_master()
    _, err = run.communicate(timeout=60)

    _, over = err.splitlines()
    assert run.returncode == 1
    assert over.startswith("fairlead: framework f")
    assert "ended: the master that answers now does not know it" in over
    assert "`fairlead master --state`" in over
    assert "without an id" not in over, "what a program would do is nothing a person can"


@pytest.mark.shell
def test_run_whose_master_stays_away_exits_with_3_and_says_what_runs_on(started: Start) -> None:
    with LocalCluster(agents=1, resources="cpus=1,mem=1GiB", isolation="none") as cluster:
        flags = ["--master", cluster.address, "--reconnect-timeout", "200ms", "-q"]
        run = started("run", *flags, "--", "sh", "-c", "echo begun; sleep 60")
        assert run.stdout is not None
        assert run.stdout.readline() == "begun\n"

        cluster.kill_master()
        _, err = run.communicate(timeout=60)

    lost, over = err.splitlines()
    assert run.returncode == 3
    assert "trying for 0.2 s" in lost
    assert f"ended: no master at {cluster.address}" in over
    assert "`fairlead kill --framework f" in over
