"""Tasks as real processes on this machine: how many a second the whole system runs, and how long one takes.

A local cluster of one master and two agents runs ``/bin/true`` by the thousand through the SDK, without isolation and
with the one the agents find by probing, beside what two bare loops of spawn and wait reach in the same minutes. Then
single tasks, one after the other, from submit to finished.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from fairlead_bench.children import BenchFailed
from fairlead_bench.rows import Row, percentile
from fairlead_bench.spawn_floor import LOOPS, TRUE, measure_spawn_floor
from fairlead_local.cluster import LocalCluster
from fairlead_sdk import Framework, Task, TaskResult

_RESOURCES: Final = "cpus=32,mem=32GiB"
"""Of an agent: more than the machine has, so that the tasks and not the books keep it busy."""

_AGENTS: Final = LOOPS
"""An executor waits for each spawn as a loop does, so there are as many as the floor has loops."""

_CPUS: Final = 0.1
"""Of a task: hundreds fit, so that one batch of them starts while another ends."""

_RUN_TIMEOUT_S: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """How much is measured."""

    tasks: int = 5_000
    warm_tasks: int = 300
    single_tasks: int = 400
    floor_s: float = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """What was seen under one isolation."""

    isolation: str
    """As asked for."""
    tasks_per_s: float
    floor_per_s: float
    latencies_ms: tuple[float, ...]
    """Of single tasks, in ascending order."""


def measure(options: ProcessOptions, isolation: str) -> ProcessResult:
    """Run everything once on a cluster of its own.

    Raises:
        BenchFailed: a task did not finish, or a run took too long.
    """
    floor = measure_spawn_floor(options.floor_s)
    with LocalCluster(agents=_AGENTS, resources=_RESOURCES, isolation=isolation) as cluster:
        tasks_per_s, latencies_ms = asyncio.run(_play(cluster.address, options))
    floor = (floor + measure_spawn_floor(options.floor_s)) / 2
    return ProcessResult(
        isolation=isolation, tasks_per_s=tasks_per_s, floor_per_s=floor, latencies_ms=latencies_ms
    )


async def _play(address: str, options: ProcessOptions) -> tuple[float, tuple[float, ...]]:
    async with Framework("bench-processes", master=address) as framework:
        await _run(framework, options.warm_tasks)
        began = time.monotonic()
        await _run(framework, options.tasks)
        tasks_per_s = options.tasks / (time.monotonic() - began)
        latencies_ms = []
        for _ in range(options.single_tasks):
            began = time.monotonic()
            _check(
                await asyncio.wait_for(
                    framework.submit(Task([TRUE], cpus=_CPUS, mem="16MiB")), _RUN_TIMEOUT_S
                )
            )
            latencies_ms.append((time.monotonic() - began) * 1000)
    return tasks_per_s, tuple(sorted(latencies_ms))


async def _run(framework: Framework, count: int) -> None:
    tasks = [Task([TRUE], cpus=_CPUS, mem="16MiB") for _ in range(count)]
    try:
        results = await asyncio.wait_for(framework.run(tasks), _RUN_TIMEOUT_S)
    except TimeoutError:
        raise BenchFailed(f"{count} tasks were not over within {_RUN_TIMEOUT_S:g} s") from None
    for result in results:
        _check(result)


def _check(result: TaskResult) -> None:
    if not result.ok:
        raise BenchFailed(f"task {result.task_id} ended as {result.state.value}: {result.message}")


def rows(result: ProcessResult) -> list[Row]:
    """The figures of one isolation."""
    name = f"processes, isolation {result.isolation}"
    return [
        Row(f"{name}: tasks", result.tasks_per_s, "tasks/s", ">= 0.4 of floor", floor=result.floor_per_s),
        Row(f"{name}: submit to finished, p50", percentile(result.latencies_ms, 0.5), "ms", "< 6"),
        Row(f"{name}: submit to finished, p99", percentile(result.latencies_ms, 0.99), "ms", "< 25"),
    ]
