"""Tasks as real processes on this machine, as people start them: through the SDK, from the shell, and by other programs.

A local cluster of one master and two agents runs ``/bin/true``: by the thousand through the SDK and with ``fairlead run -n``,
then one after the other through the SDK, from submit to finished, and with ``fairlead run``. In the same minutes and in turn,
round by round: what two bare loops of spawn and wait reach, an interpreter that only starts, ``xargs -P``, and HyperQueue and
Ray where they are. Memory is that of every process of the cluster, before and after.
"""

import asyncio
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from fairlead_agent.executor.paths import ExecutorPaths
from fairlead_bench.children import BenchFailed
from fairlead_bench.peers import HyperQueue, ray_figures, timed_s, xargs_per_s
from fairlead_bench.process_stats import cpu_seconds, pss_bytes
from fairlead_bench.rows import Row, percentile
from fairlead_bench.spawn_floor import LOOPS, TRUE, measure_single_spawns_ms, measure_spawn_floor
from fairlead_local.child_process import FAIRLEAD
from fairlead_local.cluster import LocalCluster
from fairlead_sdk import Framework, Task, TaskResult

_AGENT_CPUS: Final = 32
_RESOURCES: Final = f"cpus={_AGENT_CPUS},mem=32GiB"
"""Of an agent: more than the machine has, so that the tasks and not the books keep it busy."""

_AGENTS: Final = LOOPS
"""An executor waits for each spawn as a loop does, so there are as many as the floor has loops."""

_CPUS: Final = 0.1
"""Of a task: hundreds fit, so that one batch of them starts while another ends."""

_RUN_TIMEOUT_S: Final = 300.0

_RATE_TARGETS: Final = {"none": ">= 0.5 of floor", "auto": ">= 0.45 of floor"}
"""Of the SDK, by isolation."""

_MIB: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """How much is measured."""

    rounds: int = 3
    """Medians of them are given, and percentiles over all."""
    tasks: int = 3_000
    """Of one run, by whomever."""
    warm_tasks: int = 300
    single_tasks: int = 200
    single_commands: int = 15
    floor_s: float = 2.0
    hq: str = ""
    """HyperQueue's program; empty: it is not measured."""
    ray_python: str = ""
    """A Python that can import ray; empty: Ray is not measured."""


class Samples:
    """What was seen in the rounds, by figure."""

    def __init__(self) -> None:
        self._values: defaultdict[str, list[float]] = defaultdict(list)

    def __contains__(self, figure: str) -> bool:
        return figure in self._values

    def add(self, figure: str, *values: float) -> None:
        """Add what one round saw."""
        self._values[figure] += values

    def at(self, figure: str, fraction: float = 0.5) -> float:
        """The median of the rounds, or the value below which that fraction of what all saw is."""
        values = self._values[figure]
        return median(values) if fraction == 0.5 else percentile(sorted(values), fraction)


def measure(options: ProcessOptions, isolation: str) -> list[Row]:
    """Run everything on a cluster of its own and give the rows.

    Raises:
        BenchFailed: a task did not finish, a command failed, or a run took too long.
    """
    seen = Samples()
    with ExitStack() as stack:
        hq = HyperQueue(stack, options.hq, workers=_AGENTS, cpus=_AGENT_CPUS) if options.hq else None
        cluster = stack.enter_context(LocalCluster(agents=_AGENTS, resources=_RESOURCES, isolation=isolation))
        _note_memory(seen, "idle", cluster, hq)
        asyncio.run(_warm_up(cluster.address, options))
        for _ in range(options.rounds):
            seen.add("floor/s", measure_spawn_floor(options.floor_s))
            seen.add("floor ms", *measure_single_spawns_ms(options.floor_s / 2))
            _play(seen, cluster, options)
            _play_peers(seen, hq, options)
        _note_memory(seen, "after", cluster, hq)
        found = cluster.isolations[0]
    return _rows(
        seen,
        f"processes, isolation {isolation if isolation == found else f'{isolation} ({found})'}",
        isolation,
    )


def _play(seen: Samples, cluster: LocalCluster, options: ProcessOptions) -> None:
    """One round through the SDK and from the shell."""
    tasks = options.tasks
    with _master_cpu(seen, "sdk", cluster, tasks):
        seen.add("sdk/s", asyncio.run(_many(cluster.address, tasks)))
    with _master_cpu(seen, "single", cluster, options.single_tasks):
        seen.add("sdk ms", *asyncio.run(_singles(cluster.address, options.single_tasks)))
    run = [*FAIRLEAD, "--master", cluster.address, "run", "-q", "--cpus", str(_CPUS), "--mem", "16MiB"]
    with _master_cpu(seen, "shell", cluster, tasks):
        seen.add("shell/s", tasks / timed_s([*run, "-n", str(tasks), "--", TRUE]))
    for _ in range(options.single_commands):
        seen.add("interpreter ms", timed_s([sys.executable, "-c", ""]) * 1000)
        seen.add("shell ms", timed_s([*run, "--", TRUE]) * 1000)


@contextmanager
def _master_cpu(seen: Samples, figure: str, cluster: LocalCluster, tasks: int) -> Iterator[None]:
    before_s = cpu_seconds(cluster.master.pid)
    yield
    seen.add(f"{figure} master us", (cpu_seconds(cluster.master.pid) - before_s) / tasks * 1e6)


def _play_peers(seen: Samples, hq: HyperQueue | None, options: ProcessOptions) -> None:
    """One round by other programs."""
    if (xargs := shutil.which("xargs")) is not None:
        seen.add("xargs/s", xargs_per_s(xargs, options.tasks))
    if hq is not None:
        seen.add("hq/s", options.tasks / hq.run_s(options.tasks))
        seen.add("hq ms", *(hq.run_s(1) * 1000 for _ in range(options.single_commands)))
    if options.ray_python:
        per_s, took_ms = ray_figures(options.ray_python, options.tasks, options.single_tasks)
        seen.add("ray/s", per_s)
        seen.add("ray ms", *took_ms)


def _note_memory(seen: Samples, when: str, cluster: LocalCluster, hq: HyperQueue | None) -> None:
    # An executor outlives its agent by design, so it is nobody's child; its lock file has its number.
    executors = [
        int(Path(ExecutorPaths(str(cluster.agent_directory(index))).lock).read_text())
        for index in range(_AGENTS)
    ]
    everyone = {
        "master": [cluster.master.pid],
        "agent": [a.pid for a in cluster.agents],
        "executor": executors,
    }
    for who, pids in everyone.items():
        seen.add(f"{who} {when} MiB", sum(map(pss_bytes, pids)) / len(pids) / _MIB)
    seen.add(f"all {when} MiB", sum(pss_bytes(pid) for pids in everyone.values() for pid in pids) / _MIB)
    if hq is not None:
        seen.add(f"hq {when} MiB", hq.pss_bytes() / _MIB)


async def _warm_up(address: str, options: ProcessOptions) -> None:
    await _many(address, options.warm_tasks)
    await _singles(address, min(20, options.single_tasks))


async def _many(address: str, count: int) -> float:
    """Tasks a second of a framework that has them all at once."""
    tasks = [_task() for _ in range(count)]
    async with Framework("bench-processes", master=address) as framework:
        began = time.monotonic()
        try:
            results = await asyncio.wait_for(framework.run(tasks), _RUN_TIMEOUT_S)
        except TimeoutError:
            raise BenchFailed(f"{count} tasks were not over within {_RUN_TIMEOUT_S:g} s") from None
        took_s = time.monotonic() - began
    for result in results:
        _check(result)
    return count / took_s


async def _singles(address: str, count: int) -> list[float]:
    """How long each task took, from submit to finished, of a framework that has one at a time; in ms."""
    took_ms = []
    async with Framework("bench-singles", master=address) as framework:
        for _ in range(count):
            began = time.monotonic()
            _check(await asyncio.wait_for(framework.submit(_task()), _RUN_TIMEOUT_S))
            took_ms.append((time.monotonic() - began) * 1000)
    return took_ms


def _task() -> Task:
    return Task([TRUE], cpus=_CPUS, mem="16MiB")


def _check(result: TaskResult) -> None:
    if not result.ok:
        raise BenchFailed(f"task {result.task_id} ended as {result.state.value}: {result.message}")


def _rows(seen: Samples, name: str, isolation: str) -> list[Row]:
    floor, start_ms = seen.at("floor/s"), seen.at("interpreter ms")

    def rate(what: str, figure: str, target: str = "") -> Row:
        return Row(f"{name}: {what}", seen.at(figure), "tasks/s", target, floor=floor)

    def single(what: str, figure: str, *targets: str) -> list[Row]:
        return [
            Row(
                f"{name}: {what}, {label}",
                seen.at(figure, part),
                "ms",
                target,
                floor=seen.at("floor ms", part),
            )
            for (label, part), target in zip((("p50", 0.5), ("p99", 0.99)), targets, strict=True)
        ]

    def command(what: str, figure: str) -> Row:
        return Row(f"{name}: {what}, one at a time, p50", seen.at(figure), "ms", floor=start_ms)

    def memory(what: str, who: str, target: str = "") -> list[Row]:
        found = [(f"{what}, PSS {when}", f"{who} {when} MiB") for when in ("idle", "after")]
        return [Row(f"{name}: {text}", seen.at(figure), "MiB", target) for text, figure in found]

    return [
        rate("SDK", "sdk/s", _RATE_TARGETS[isolation]),
        rate("shell, run -n", "shell/s", ">= 0.45 of floor"),
        *([rate("xargs -P", "xargs/s")] if "xargs/s" in seen else []),
        *([rate("HyperQueue, array", "hq/s")] if "hq/s" in seen else []),
        *([rate("Ray", "ray/s")] if "ray/s" in seen else []),
        *single("SDK, one at a time", "sdk ms", "", "< 2 of floor"),
        *(single("Ray, one at a time", "ray ms", "", "") if "ray ms" in seen else []),
        command("shell, run", "shell ms"),
        *([command("HyperQueue, submit", "hq ms")] if "hq ms" in seen else []),
        Row(f"{name}: master CPU, SDK", seen.at("sdk master us"), "us/task", "< 60"),
        Row(f"{name}: master CPU, shell, run -n", seen.at("shell master us"), "us/task", "< 60"),
        Row(f"{name}: master CPU, one at a time", seen.at("single master us"), "us/task"),
        *memory("master", "master", "< 80"),
        *memory("agent", "agent", "< 60"),
        *memory("executor", "executor"),
        *memory("all processes", "all"),
        *(memory("HyperQueue, all processes", "hq") if "hq/s" in seen else []),
    ]
