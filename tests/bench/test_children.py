"""Processes of a benchmark are asked with deadlines, and never outlive it."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairlead_sim.bench.children import BenchFailed, Child
from fairlead_sim.bench.process_stats import cpu_seconds, pss_bytes

pytestmark = pytest.mark.shell


def test_a_child_that_dies_is_named_with_its_exit_code() -> None:
    with ExitStack() as stack:
        child = Child(stack, "fairlead_sim.bench.no_such_module")
        with pytest.raises(BenchFailed, match=r"fairlead_sim.bench.no_such_module ended with exit code 1"):
            child.answer(20)


def test_a_child_that_is_silent_is_not_waited_for() -> None:
    with ExitStack() as stack:
        child = Child(stack, "fairlead_sim.bench.load_generator")
        with pytest.raises(BenchFailed, match="did not answer within"):
            child.answer(0.1)


def test_a_child_is_gone_when_its_stack_is_left() -> None:
    with ExitStack() as stack:
        pid = Child(stack, "fairlead_sim.bench.load_generator").pid
        assert cpu_seconds(pid) >= 0
        assert pss_bytes(pid) > 0

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_master_ends_when_whoever_started_it_is_gone(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    command = [sys.executable, "-m", "fairlead_sim.bench.master_process", "--ready-file", str(ready)]
    master = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert master.stdin is not None

    master.stdin.close()  # As the kernel does it for a parent that was killed.

    try:
        assert master.wait(30) in (0, -signal.SIGTERM)  # The latter if it had not come to serve yet.
    finally:
        master.kill()
