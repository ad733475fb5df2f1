import errno
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fairlead_agent.executor.processes import is_running
from fairlead_cli.supervision import RESTART_WAITS_S, STEADY_S, Supervisor, limits_notice
from fairlead_local import cluster as local_cluster
from fairlead_local import leftovers
from fairlead_local.child_process import ChildProcess
from fairlead_local.cluster import LocalCluster
from tests.builders.processes import FakeProcess
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


def test_limits_that_hold_need_no_words_and_others_are_counted() -> None:
    assert limits_notice(["cgroup v2", "cgroup v1"]) == ""
    assert " not enforced by 1 of 2 agents (" in limits_notice(["none", "cgroup v2"])


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


def test_process_that_cannot_be_started_again_is_tried_ever_more_slowly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = LocalCluster(agents=1)
    agent = FakeProcess("agent-1")
    cluster.master = FakeProcess("master")
    cluster.agents = [agent]
    supervisor = Supervisor(cluster)
    agent.alive = False

    def fail(_process: FakeProcess) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/gone/agent-1.log")

    with monkeypatch.context() as patched:
        patched.setattr(FakeProcess, "start", fail)
        supervisor.look(1e9)
        supervisor.look(1e9 + RESTART_WAITS_S[1])
    supervisor.look(1e9 + RESTART_WAITS_S[1] + RESTART_WAITS_S[2])

    assert agent.starts == 1
    why = "agent-1 cannot be started ([Errno 2] No such file or directory: '/gone/agent-1.log'), trying again in"
    told = capsys.readouterr().err.splitlines()
    assert told[1:3] == [f"{why} {wait_s:g} s" for wait_s in RESTART_WAITS_S[1:3]]


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
    assert died.startswith("agent-1 died (signal 9), starting it again at once;")
    assert restarted.startswith("agent-1 started again, pid ")
    assert not directory.exists()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive


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
        run = ["run", "--detach", "--grace", "10m", "--reconnect-timeout", "1s"]
        stubborn = [*run, "--", "sh", "-c", "trap '' TERM; exec sleep 98763"]
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
