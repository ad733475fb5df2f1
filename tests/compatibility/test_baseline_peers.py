"""Peers built from the baseline's commit work with those of the present tree: real processes, each of its own tree."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from fairlead_local import operator_calls
from tests.proto import schema_record

pytestmark = pytest.mark.shell

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("program.py")
START = "import runpy, sys, fairlead_proto; print(fairlead_proto.__file__, flush=True); "
"""Says whose tree a process is of, so that no test passes with two of one."""


@pytest.fixture(scope="module")
def then(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of the baseline's commit."""
    commit, _ = schema_record.read_baseline()
    # What the owner of a clone is called is no matter here.
    git = ["git", "-c", "safe.directory=*", "-C", str(REPOSITORY), "archive"]
    command = [*git, commit, ":!tests", ":!docs", ":!examples"]
    try:
        archive = subprocess.run(command, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"expected commit {commit[:12]} of the baseline in this clone: {error}")
    tree = tmp_path_factory.mktemp("then")
    subprocess.run(["tar", "-x", "-C", tree], input=archive, check=True)
    return tree


def path_of(tree: Path) -> str:
    """The source roots of a tree, and nothing of another."""
    project = tomllib.loads((tree / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return os.pathsep.join(str(tree / package.partition("/")[0]) for package in packages)


class Process:
    """A Python process of one tree; its standard input is open as long as it is to live."""

    def __init__(self, tree: Path, run: str, *arguments: str, stderr: Path) -> None:
        self._stderr = stderr
        with stderr.open("ab") as log:
            self.popen = subprocess.Popen(
                [sys.executable, "-c", f"{START} runpy.{run}", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONPATH": path_of(tree)},
            )
        self.tree = tree

    def line(self) -> str:
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        assert line, self._stderr.read_text()[-4000:]
        return line.strip()

    def is_of_its_tree(self) -> bool:
        return Path(self.line()).is_relative_to(self.tree)

    def tell(self, line: str) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(line + "\n")
        self.popen.stdin.flush()

    def kill(self) -> None:
        self.popen.send_signal(SIGKILL)
        self.popen.wait()

    def end(self) -> None:
        """Have it end by itself, an agent with its tasks."""
        self.popen.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(10)
        self.kill()


class Cluster:
    """A master, agents and programs, each of the tree that is asked for."""

    def __init__(self, directory: Path, stack: contextlib.ExitStack) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.address = f"127.0.0.1:{server.getsockname()[1]}"
        self._directory = directory
        self._stack = stack
        self.gate = directory / "gate"

    def _start(self, tree: Path, run: str, *arguments: str, name: str) -> Process:
        process = Process(tree, run, *arguments, stderr=self._directory / f"{name}.log")
        self._stack.enter_context(process.popen)
        self._stack.callback(process.end)
        return process

    def _command(self, tree: Path, *arguments: str, name: str) -> Process:
        run = "run_module('fairlead_cli.main', run_name='__main__', alter_sys=True)"
        return self._start(tree, run, *arguments, "--stop-with-parent", name=name)

    def master(self, tree: Path) -> Process:
        state = str(self._directory / "master")
        return self._command(tree, "master", "--listen", self.address, "--state", state, name="master")

    def agent(self, tree: Path, name: str) -> Process:
        work_dir = str(self._directory / name)
        arguments = ("--work-dir", work_dir, "--hostname", name, "--resources", "cpus=4,mem=1GiB")
        options = ("--isolation", "none", "--stop-tasks-on-exit")
        return self._command(tree, "agent", "--master", self.address, *arguments, *options, name=name)

    def program(self, tree: Path, *hosts: str, name: str) -> Process:
        run = f"run_path({str(PROGRAM)!r}, run_name='__main__')"
        return self._start(tree, run, self.address, str(self.gate), *hosts, name=name)

    def wait_for_agents(self, count: int) -> None:
        deadline = time.monotonic() + 60
        with operator_calls.operator_at(self.address) as operator:
            while len(operator_calls.isolations(operator)) < count:
                assert time.monotonic() < deadline, [log.read_text() for log in self._directory.glob("*.log")]
                time.sleep(0.02)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with contextlib.ExitStack() as stack:
        yield Cluster(tmp_path, stack)


DONE: dict[str, Any] = {
    "states": ["FAILED", "KILLED", "FINISHED", "FINISHED", *["FINISHED"] * 3],
    "exit_code": 3,
    "outputs": ["out\n", "err\n", "begun\n", "begun\nover\n", "0 a\n", "1 b\n", "2 c\n"],
}


def test_schema_of_the_baseline_is_that_of_its_commit(then: Path) -> None:
    commit, _ = schema_record.read_baseline()
    command = [sys.executable, "-m", "tests.proto.schema_record", "--print-baseline", commit]
    environment = {**os.environ, "PYTHONPATH": f"{path_of(then)}{os.pathsep}{REPOSITORY}"}

    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    assert printed == schema_record.BASELINE.read_text()


@pytest.mark.parametrize("is_old_master", [False, True], ids=["master of now", "master of then"])
def test_peers_of_then_and_of_now_run_tasks_together_over_a_restart_of_the_master(
    cluster: Cluster, then: Path, is_old_master: bool
) -> None:
    of_master, others = (then, [REPOSITORY]) if is_old_master else (REPOSITORY, [then, REPOSITORY])
    master = cluster.master(of_master)
    agents = [cluster.agent(tree, f"agent-{number}") for number, tree in enumerate(others)]
    hosts = [f"agent-{number}" for number in range(len(others))]
    programs = [cluster.program(tree, *hosts, name=f"program-{number}") for number, tree in enumerate(others)]
    assert all(process.is_of_its_tree() for process in (master, *agents, *programs))

    cluster.wait_for_agents(len(agents))
    for program in programs:
        program.tell("go")
    assert [program.line() for program in programs] == ["waiting"] * len(programs)
    master.kill()
    cluster.master(of_master)
    cluster.wait_for_agents(len(agents))
    cluster.gate.touch()

    results = [json.loads(program.line()) for program in programs]
    assert results == [dict.fromkeys(hosts, DONE)] * len(programs)
    assert [program.popen.wait(30) for program in programs] == [0] * len(programs)


def test_an_agent_of_now_takes_over_what_one_of_then_ran(cluster: Cluster, then: Path) -> None:
    """Its work directory, and its executor, which keeps its version as long as it has tasks."""
    cluster.master(REPOSITORY)
    agent = cluster.agent(then, "agent-0")
    program = cluster.program(REPOSITORY, "agent-0", name="program")
    assert all(process.is_of_its_tree() for process in (agent, program))

    cluster.wait_for_agents(1)
    program.tell("go")
    assert program.line() == "waiting"
    agent.kill()
    assert cluster.agent(REPOSITORY, "agent-0").is_of_its_tree()
    cluster.gate.touch()

    assert json.loads(program.line()) == {"agent-0": DONE}
    assert program.popen.wait(30) == 0
