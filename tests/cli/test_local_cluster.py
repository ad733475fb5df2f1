import errno
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from fairlead_agent.executor.processes import is_running
from fairlead_cli import leftovers, local_cluster
from fairlead_cli.child_process import ChildProcess
from fairlead_cli.errors import Failed, Invalid
from fairlead_cli.local_cluster import LocalCluster
from fairlead_cli.supervision import RESTART_WAITS_S, STEADY_S, Supervisor, limits_notice
from tests.cli.conftest import Invoke


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_busy_port_is_named_and_nothing_is_started(invoke: Invoke, busy_port: int) -> None:
    outcome = invoke("up", "--port", str(busy_port))

    assert outcome.code == 2
    assert f"port {busy_port} is in use" in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--policy", "luck"], "utilization (such as slots:4), got 'luck'"),
        (["--policy", "slots:0"], "policy: expected slots:K with K from 1 to "),
        (
            ["--placement", "luck"],
            "placement: expected one of align, pack, spread, least-loaded, random, heartbeat, got 'luck'",
        ),
        (["--placement", "random:x"], "placement: expected random:SEED with SEED from 0 to "),
        (["--resources", "bananas=4"], "bananas"),
        (["--resources", "cpus=1,cpus=2"], "resources: expected each name once, got 'cpus' twice"),
        (["--state", "/proc/nowhere"], "/proc/nowhere"),
        (["--state", "/dev/null/nowhere"], "Not a directory"),
    ],
)
def test_what_up_cannot_use_is_refused_in_one_line_before_anything_starts(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, arguments: list[str], error: str
) -> None:
    def start(process: ChildProcess) -> None:
        raise AssertionError(f"{process.name} was started")

    monkeypatch.setattr(ChildProcess, "start", start)

    outcome = invoke("up", "--port", "0", *arguments)

    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("fairlead: ")
    assert error in outcome.err
    assert outcome.err.count("\n") == 1


def test_full_disk_is_told_in_one_line_before_anything_starts(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Processes on it would die without a word, since they cannot write one into their logs."""

    def fall_short(descriptor: int, offset: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", fall_short)
    monkeypatch.setattr(ChildProcess, "start", lambda process: pytest.fail(f"{process.name} was started"))

    outcome = invoke("up", "--port", "0", "--state", str(tmp_path))

    assert outcome.code == 2
    assert outcome.err == f"fairlead: {tmp_path}: expected to write to it, got: No space left on device\n"


def test_process_that_dies_at_its_start_is_shown_with_its_last_words(tmp_path: Path) -> None:
    cluster = LocalCluster(agents=1, policy="luck", directory=tmp_path / "state")

    with pytest.raises(Failed, match="master ended at its start with code 2") as failed:
        cluster.start()

    assert str(tmp_path / "state" / "logs" / "master.log") in str(failed.value)
    assert "got 'luck'" in str(failed.value)
    assert "\n" not in str(failed.value), "its log lines are for whoever looks for them"
    assert not any(process.is_alive for process in cluster.processes)


def test_directory_that_up_makes_and_its_logs_are_closed_to_others(tmp_path: Path) -> None:
    state = tmp_path / "state"
    umask = os.umask(0)
    try:
        with pytest.raises(Failed):
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
        Invalid, match=f"resources: expected one for all agents or one for each of 2, got {len(resources)}"
    ):
        LocalCluster(agents=2, resources=resources)


def test_small_host_still_offers_room_for_ordinary_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(os, "sysconf", lambda _name: 2**14)

    assert local_cluster.default_resources(3).startswith("cpus=2,mem=1GiB,")


def test_limits_that_hold_need_no_words_and_others_are_counted() -> None:
    assert limits_notice(["cgroup v2", "cgroup v1"]) == ""
    assert " not enforced by 1 of 2 agents (" in limits_notice(["none", "cgroup v2"])


class FakeProcess(ChildProcess):
    """A process that is dead or alive as the test says, and counts its starts."""

    def __init__(self, name: str) -> None:
        super().__init__(name, (), Path("/nowhere"))
        self.alive = True
        self.starts = 0
        self.signals: list[int] = []
        self.when_signalled: Callable[[], None] = lambda: None

    @property
    def is_alive(self) -> bool:
        return self.alive

    @property
    def pid(self) -> int:
        return 1

    def start(self) -> None:
        self.alive = True
        self.starts += 1

    def signal(self, number: int) -> None:
        self.signals.append(number)
        self.alive = self.alive and number != signal.SIGKILL
        self.when_signalled()


def test_supervisor_restarts_ever_more_slowly_and_forgives_a_steady_process() -> None:
    cluster = LocalCluster(agents=1)
    agent = FakeProcess("agent-1")
    cluster.master = FakeProcess("master")
    cluster.agents = [agent]
    supervisor = Supervisor(cluster)
    now_s = 1e9

    for wait_s in (*RESTART_WAITS_S, RESTART_WAITS_S[-1]):
        agent.alive = False
        starts = agent.starts
        supervisor.look(now_s)
        assert agent.starts == starts + (wait_s == 0)
        supervisor.look(now_s + wait_s)
        assert agent.starts == starts + 1
        now_s += wait_s + 0.1
    agent.alive = False
    supervisor.look(now_s + STEADY_S)

    assert agent.alive, "the first restart after a steady time waits for nothing"
    assert isinstance(cluster.master, FakeProcess)
    assert cluster.master.starts == 0


@pytest.mark.shell
def test_run_in_a_cluster_that_is_stopped_says_so() -> None:
    command = [sys.executable, "-m", "fairlead_cli.main", "run", "--", "sh", "-c", "echo begun; sleep 60"]
    with LocalCluster(agents=1, resources="cpus=1,mem=1GiB", isolation="none") as cluster:
        run = subprocess.Popen(
            command,
            env={**os.environ, "FAIRLEAD_MASTER": cluster.address},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert run.stdout is not None
        assert run.stdout.readline() == "begun\n"
    _, told = run.communicate(timeout=30)

    assert run.returncode == 1
    assert re.fullmatch(
        r"fairlead: framework \S+ was ended: the cluster was stopped", told.splitlines()[-1]
    ), told


@pytest.mark.shell
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_up_greets_restarts_what_dies_and_leaves_nothing(number: int, code: int) -> None:
    arguments = [
        "up",
        "--agents",
        "1",
        "--port",
        "0",
        "--resources",
        "cpus=2,mem=1GiB",
        "--isolation",
        "none",
    ]
    command = [sys.executable, "-m", "fairlead_cli.main"]
    with subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as up:
        assert up.stdout is not None
        assert up.stderr is not None
        greeting = [up.stdout.readline() for _ in range(8)]
        address = greeting[0].split()[2]
        directory = Path(greeting[1].split()[-1])
        environment = {**os.environ, "FAIRLEAD_MASTER": address}
        subprocess.run(
            [*command, "run", "--detach", "--", "sleep", "987"], env=environment, check=True, timeout=30
        )
        (agent,) = [child for child in psutil.Process(up.pid).children() if "agent" in child.cmdline()]

        agent.kill()
        died, restarted = up.stderr.readline(), up.stderr.readline()
        children = psutil.Process(up.pid).children(recursive=True)
        up.send_signal(number)
        up.communicate(timeout=30)

    assert up.returncode == code
    assert greeting[2].startswith("isolation none: CPU and memory limits of tasks are not enforced (")
    assert died.startswith("agent-1 died (signal 9), starting it again in 0 s")
    assert restarted.startswith("agent-1 started again, pid ")
    assert not directory.exists()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive


@pytest.mark.shell
def test_children_end_with_a_parent_that_is_killed() -> None:
    code = (
        "from fairlead_cli.local_cluster import LocalCluster\n"
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
    subprocess.run(["rm", "-rf", str(directory)], check=True)


def test_a_start_that_takes_too_long_says_how_far_it_came_and_leaves_nothing() -> None:
    cluster = LocalCluster(agents=2)

    with pytest.raises(
        Failed, match=r"the cluster was not ready within 0\.01 s: 0 of 2 agents had registered"
    ):
        cluster.start(timeout_s=0.01)

    assert not any(process.is_alive for process in cluster.processes)
    assert not cluster.directory.exists()


def test_hosts_of_nothing_are_refused(invoke: Invoke) -> None:
    outcome = invoke("up", "--port", "0", "--resources", "cpus=0,mem=0")

    assert outcome.code == 2
    assert "'--resources': expected an amount above zero, got 'cpus=0,mem=0'" in outcome.err


def test_nothing_is_left_of_a_cluster_whose_agent_died(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with LocalCluster(agents=1, resources="cpus=1,mem=256MiB") as local:
        run = invoke("run", "--detach", "--master", local.address, "--mem", "64MiB", "--", "sleep", "98765")
        assert run.code == 0, run.err
        pids = wait_for_processes_of("sleep 98765")
        local.kill_agent(0)
        directory = local.directory

    assert not directory.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.shell
@pytest.mark.parametrize("is_executor_stopped", [False, True])
def test_agent_that_hangs_is_killed_with_what_it_runs(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_executor_stopped: bool
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(local_cluster, "AGENT_STOP_TIMEOUT_S", 0.2)
    monkeypatch.setattr(leftovers, "TIMEOUT_S", 0.2 if is_executor_stopped else 20)
    with LocalCluster(agents=1, resources="cpus=1,mem=256MiB", isolation="none") as local:
        run = invoke("run", "--detach", "--master", local.address, "--mem", "64MiB", "--", "sleep", "98764")
        assert run.code == 0, run.err
        pids = wait_for_processes_of("sleep 98764")
        local.agents[0].signal(signal.SIGSTOP)
        if is_executor_stopped:
            os.kill(psutil.Process(pids[0]).ppid(), signal.SIGSTOP)

    assert not any(map(is_running, pids))


@pytest.mark.shell
def test_second_signal_kills_tasks_within_their_grace_period(tmp_path: Path) -> None:
    """Without it this would wait for the task for a minute."""
    command = [sys.executable, "-m", "fairlead_cli.main"]
    words = ["up", "--agents", "1", "--port", "0", "--isolation", "none"]
    with subprocess.Popen(
        [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as up:
        assert up.stdout is not None
        assert up.stderr is not None
        address = up.stdout.readline().split()[2]
        environment = {**os.environ, "FAIRLEAD_MASTER": address, "XDG_STATE_HOME": str(tmp_path)}
        stubborn = ["run", "--detach", "--grace", "10m", "--", "sh", "-c", "trap '' TERM; exec sleep 98763"]
        subprocess.run([*command, *stubborn], env=environment, check=True, timeout=30)
        wait_for_processes_of("sleep 98763")

        up.send_signal(signal.SIGINT)
        said = up.stderr.readline()
        up.send_signal(signal.SIGINT)
        _, then_said = up.communicate(timeout=40)

    assert then_said == "killing everything\n"
    assert said == "stopping: tasks end within their grace periods; Ctrl-C again kills them at once\n"
    assert up.returncode == 130
    assert not processes_of("sleep 98763")


def test_signal_while_a_cluster_stops_does_afterwards_what_it_does_else() -> None:
    """Between two clusters of a benchmark, Ctrl-C is meant for the benchmark."""
    cluster = LocalCluster(agents=1)
    agent = FakeProcess("agent-1")
    agent.when_signalled = lambda: signal.raise_signal(signal.SIGINT)
    cluster.agents = [agent]

    with pytest.raises(KeyboardInterrupt):
        cluster.stop()

    assert agent.signals == [signal.SIGTERM, signal.SIGKILL]


def wait_for_processes_of(command: str) -> list[int]:
    end = time.monotonic() + 30
    while not (pids := processes_of(command)):
        assert time.monotonic() < end, "the task did not start"
        time.sleep(0.02)
    return pids


def processes_of(command: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip() == command:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found
