"""The command line against a real local cluster: real master, agents and processes, started once for all tests here."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead_local.cluster import LocalCluster
from tests.cli.conftest import Invoke, Outcome


@pytest.fixture(scope="package")
def cluster() -> Iterator[LocalCluster]:
    local = LocalCluster(
        agents=2,
        resources=["cpus=2,mem=1GiB", "cpus=4,mem=2GiB"],
        attributes=[{"rack": "a"}, {"rack": "b"}],
        # The same on every host; limits are tested with the agent.
        isolation="none",
    )
    with local:
        yield local


@pytest.fixture(autouse=True)
def quiet_cluster(
    cluster: LocalCluster, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """Point the command line at the cluster, and end what a test leaves running before the next one begins."""
    monkeypatch.setenv("FAIRLEAD_MASTER", cluster.address)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield
    for framework in listing(invoke, "frameworks"):
        if framework["state"] != "COMPLETED":
            invoke("kill", "--framework", framework["id"])
    eventually(lambda: not any(agent["tasks"] for agent in listing(invoke, "agents")))


def listing(invoke: Invoke, *arguments: str) -> list[dict[str, Any]]:
    outcome = invoke(*arguments, "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert isinstance(found, list)
    return found


def holder(invoke: Invoke, *arguments: str) -> str:
    """Start a detached task that holds resources, and return its framework's id once it runs."""
    outcome = invoke("run", "--detach", "--mem", "64MiB", *arguments, "--", "sleep", "60")
    assert outcome.code == 0, outcome.err
    framework_id = outcome.out.strip()
    eventually(lambda: listing(invoke, "tasks", "--framework", framework_id, "--state", "RUNNING"))
    return framework_id


def eventually(probe: Callable[[], Any], *, limit_s: float = 10) -> Any:
    """Return the first true value of ``probe``; fail after a limit that only a hang reaches."""
    deadline = time.monotonic() + limit_s
    while not (value := probe()):
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)
    return value


Process = subprocess.Popen[str]
Start = Callable[..., Process]


@pytest.fixture
def started() -> Iterator[Start]:
    """Start a command line in a process of its own, which does not outlive the test."""
    processes: list[Process] = []

    def start(*arguments: str) -> Process:
        command = [sys.executable, "-m", "fairlead_cli.main", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def ended(process: Process) -> Outcome:
    out, err = process.communicate(timeout=30)
    return Outcome(process.returncode, out, err)
