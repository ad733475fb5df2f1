"""What the system costs while it does nothing, and how long it takes to do the first thing. ``processes`` measures its memory."""

import asyncio
import os
import signal
import socket
import subprocess  # the command line is what is measured
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead_agent.executor.paths import ExecutorPaths
from fairlead_bench.children import BenchFailed
from fairlead_bench.peers import timed_s
from fairlead_bench.process_stats import cpu_seconds
from fairlead_bench.rows import Row
from fairlead_bench.spawn_floor import TRUE
from fairlead_local.child_process import FAIRLEAD
from fairlead_local.cluster import LocalCluster
from fairlead_sdk import Framework, Task

_START_TIMEOUT_S: Final = 30.0
_END_TIMEOUT_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FootprintOptions:
    """How much is measured."""

    repeats: int = 5
    """Of starts; the median counts."""
    idle_s: float = 10.0


def measure(options: FootprintOptions) -> list[Row]:
    """Measure everything, a few seconds each.

    Raises:
        BenchFailed: a command failed, or was not done in time.
    """
    return [_help_row(options), _start_row(options), *_idle_rows(options)]


def _help_row(options: FootprintOptions) -> Row:
    bare_s = _median([_command_cpu_s([sys.executable, "-c", ""]) for _ in range(options.repeats)])
    help_s = _median([_command_cpu_s([*FAIRLEAD, "--help"]) for _ in range(options.repeats)])
    return Row("footprint: fairlead --help, CPU", help_s, "s", "< 0.3", floor=bare_s)


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _command_cpu_s(command: Sequence[str]) -> float:
    """User and system time of a command that prints and ends."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(command[0], list(command), os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise BenchFailed(f"{' '.join(command)} ended with status {status}")
    return usage.ru_utime + usage.ru_stime


def _start_row(options: FootprintOptions) -> Row:
    bare_s = _median([timed_s([sys.executable, "-c", ""]) for _ in range(options.repeats)])
    seconds = _median([_first_task_s() for _ in range(options.repeats)])
    return Row("footprint: fairlead up to the first finished task", seconds, "s", "< 3", floor=bare_s)


def _first_task_s() -> float:
    """From the command ``fairlead up`` to the end of a task that was waiting for the cluster."""
    address = f"127.0.0.1:{_free_port()}"
    port = address.rpartition(":")[2]
    command = [*FAIRLEAD, "up", "--agents", "1", "--port", port, "--stop-with-parent"]
    began = time.monotonic()
    up = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert up.stdin is not None
    try:
        asyncio.run(asyncio.wait_for(_one_task(address), _START_TIMEOUT_S))
        return time.monotonic() - began
    except TimeoutError:
        raise BenchFailed(f"no task finished within {_START_TIMEOUT_S:g} s of fairlead up") from None
    finally:
        up.send_signal(signal.SIGINT)
        try:
            up.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            up.kill()
            up.wait()
        up.stdin.close()


async def _one_task(address: str) -> None:
    async with Framework("bench-start", master=address, connect_timeout=_START_TIMEOUT_S) as framework:
        [result] = await framework.run([Task([TRUE])])
    if not result.ok:
        raise BenchFailed(f"the first task ended as {result.state.value}: {result.message}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert isinstance(port, int)
    return port


def _idle_rows(options: FootprintOptions) -> list[Row]:
    with LocalCluster(agents=1, resources="cpus=4,mem=4GiB") as cluster:
        asyncio.run(_one_task(cluster.address))
        master, agent = cluster.master.pid, cluster.agents[0].pid
        # It outlives its agent by design, so it is nobody's child; its lock file has its number.
        executor = int(Path(ExecutorPaths(str(cluster.agent_directory(0))).lock).read_text())
        everyone = [master, agent, executor]
        before_s = [cpu_seconds(pid) for pid in everyone]
        time.sleep(options.idle_s)
        used_s = [cpu_seconds(pid) - before for pid, before in zip(everyone, before_s, strict=True)]
    return [
        Row("footprint: idle master, CPU", used_s[0] / options.idle_s * 1000, "ms/s"),
        Row("footprint: idle agent and executor, CPU", sum(used_s[1:]) / options.idle_s * 1000, "ms/s"),
    ]
