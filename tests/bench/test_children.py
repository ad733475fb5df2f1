"""Processes of a benchmark are asked with deadlines, and never outlive it."""

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead_bench.children import BenchFailed, Child
from fairlead_bench.control_path import ANSWER_TIMEOUT_S, start_master
from fairlead_bench.master_process import PATIENCE_MS
from fairlead_bench.process_stats import cpu_seconds, pss_bytes
from fairlead_bench.traffic import Load, Snapshot

pytestmark = pytest.mark.shell


def test_a_child_that_dies_is_named_with_its_exit_code() -> None:
    with ExitStack() as stack:
        child = Child(stack, "fairlead_bench.no_such_module")
        with pytest.raises(BenchFailed, match=r"fairlead_bench.no_such_module ended with exit code 1"):
            child.answer(20)


def test_a_child_that_is_silent_is_not_waited_for() -> None:
    with ExitStack() as stack:
        child = Child(stack, "fairlead_bench.load_generator")
        with pytest.raises(BenchFailed, match="did not answer within"):
            child.answer(0.1)


def test_a_child_is_gone_when_its_stack_is_left() -> None:
    with ExitStack() as stack:
        pid = Child(stack, "fairlead_bench.load_generator").pid
        assert cpu_seconds(pid) >= 0
        assert pss_bytes(pid) > 0

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_generator_says_in_one_line_which_stream_was_ended(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not what that led to: the other streams are cancelled then, and their errors say nothing."""
    load = Load(
        address="", agents=5, frameworks=5, first=0, cpus_per_agent=8, demand=50, is_steady=False, roles=2
    )
    with ExitStack() as stack:
        master, address = start_master(stack, tmp_path)
        generator = Child(stack, "fairlead_bench.load_generator")
        generator.say(replace(load, address=address).to_json())
        while not finished_of(generator):
            pass
        os.kill(master.pid, signal.SIGKILL)

        with pytest.raises(BenchFailed, match="load_generator ended with exit code 1"):
            ask_for_ever(generator)

    said = capfd.readouterr().err
    # Mostly UNAVAILABLE; INTERNAL where the connection is reset in the middle of a message.
    assert re.fullmatch(r"load generator: the stream of (agent|framework) \d was ended: [A-Z]+: .*\n", said)


def ask_for_ever(generator: Child) -> None:
    while True:
        finished_of(generator)


def finished_of(generator: Child) -> int:
    generator.say("snapshot")
    return Snapshot.from_json(generator.answer(20)).finished


def test_the_master_of_a_benchmark_is_more_patient_than_who_asks_its_generators() -> None:
    """A machine so busy that they stand still gives slow figures, and not none."""
    assert PATIENCE_MS > 2000 * ANSWER_TIMEOUT_S


def test_a_master_ends_when_whoever_started_it_is_gone(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    command = [sys.executable, "-m", "fairlead_bench.master_process", "--ready-file", str(ready)]
    master = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert master.stdin is not None

    master.stdin.close()  # As the kernel does it for a parent that was killed.

    try:
        assert master.wait(30) in (0, -signal.SIGTERM)  # The latter if it had not come to serve yet.
    finally:
        master.kill()
