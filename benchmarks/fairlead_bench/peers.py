"""The same tasks by other programs, where there are such: xargs, HyperQueue and Ray. What is not there is left out."""

import json
import subprocess  # other programs are what is measured
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from fairlead_bench.children import END_TIMEOUT_S, BenchFailed
from fairlead_bench.process_stats import pss_bytes
from fairlead_bench.spawn_floor import LOOPS, TRUE

COMMAND_TIMEOUT_S: Final = 300.0
_START_TIMEOUT_S: Final = 20.0
_XARGS_PROCESSES: Final = 2 * LOOPS

_RAY: Final = """
import json, subprocess, sys, time
import ray
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
@ray.remote
def task():
    return subprocess.run(["/bin/true"]).returncode
tasks, singles = int(sys.argv[1]), int(sys.argv[2])
ray.get([task.remote() for _ in range(50)])
began = time.monotonic()
ray.get([task.remote() for _ in range(tasks)])
per_s = tasks / (time.monotonic() - began)
took_ms = []
for _ in range(singles):
    began = time.monotonic()
    ray.get(task.remote())
    took_ms.append((time.monotonic() - began) * 1000)
print(json.dumps([per_s, took_ms]))
"""


def timed_s(words: Sequence[str], given: str = "") -> float:
    """How long a command took from its start to its end.

    Raises:
        BenchFailed: it failed, or took too long.
    """
    began = time.monotonic()
    _run(words, given)
    return time.monotonic() - began


def _run(words: Sequence[str], given: str = "") -> str:
    try:
        done = subprocess.run(
            words, input=given, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchFailed(f"{words[0]}: {error}") from error
    if done.returncode:
        raise BenchFailed(
            f"{' '.join(words)[:200]} ended with code {done.returncode}: {done.stderr.strip()[-500:]}"
        )
    return done.stdout


def xargs_per_s(xargs: str, tasks: int) -> float:
    """Tasks a second of ``xargs -P``, each with a line of its own."""
    words = [xargs, "-P", str(_XARGS_PROCESSES), "-n", "1", TRUE]
    return tasks / timed_s(words, "".join(f"{number}\n" for number in range(tasks)))


def ray_figures(python: str, tasks: int, singles: int) -> tuple[float, list[float]]:
    """Tasks a second, and how long single ones took in ms, by a Python that can import ray.

    Raises:
        BenchFailed: it cannot, or ray failed.
    """
    per_s, took_ms = json.loads(
        _run([python, "-W", "ignore", "-c", _RAY, str(tasks), str(singles)]).splitlines()[-1]
    )
    return per_s, took_ms


class HyperQueue:
    """A server and as many workers as there are agents, until the stack it belongs to is left."""

    def __init__(self, stack: ExitStack, binary: str, *, workers: int, cpus: int) -> None:
        """Start it and wait until the workers are there.

        Raises:
            BenchFailed: it did not start.
        """
        self._directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-bench-hq-"))
        self._command = [binary, "--server-dir", str(Path(self._directory) / "server")]
        self._processes = [self._start(stack, "server", "start")]
        self._wait_for("server", "info")
        for _ in range(workers):
            self._processes.append(self._start(stack, "worker", "start", "--cpus", str(cpus)))
        self._wait_for("worker", "list", count=workers)

    def _start(self, stack: ExitStack, *words: str) -> subprocess.Popen[Any]:
        process = subprocess.Popen(
            [*self._command, *words],
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(_end, process)
        return process

    def _wait_for(self, *words: str, count: int = 0) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            with suppress(BenchFailed):
                said = _run([*self._command, "--output-mode", "json", *words])
                if not count or len(json.loads(said)) >= count:
                    return
            time.sleep(0.05)
        raise BenchFailed(f"{' '.join([*self._command, *words])}: not ready within {_START_TIMEOUT_S:g} s")

    def run_s(self, tasks: int) -> float:
        """How long an array of so many tasks took, from the command to its end; of one task without an array."""
        array = ["--array", f"1-{tasks}"] if tasks > 1 else []
        out = str(Path(self._directory) / "%{JOB_ID}.%{TASK_ID}")
        files = ["--stdout", f"{out}.out", "--stderr", f"{out}.err"]
        return timed_s([*self._command, "submit", *array, "--cpus", "0.1", *files, "--wait", "--", TRUE])

    def pss_bytes(self) -> int:
        """Memory of server and workers."""
        return sum(pss_bytes(process.pid) for process in self._processes)


def _end(process: subprocess.Popen[Any]) -> None:
    process.terminate()
    try:
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
