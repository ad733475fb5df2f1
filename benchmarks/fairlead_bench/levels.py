"""How fast both levels of simulation are, in tasks started or ended in a second of one core's time, beside a bare calendar.

The workload is made: a hundred nodes nearly full, fifty users, jobs of one to a hundred equal tasks of a few demands, or
jobs of one task each with a demand of its own, which nobody shares and which an allocator can remember nothing of. A day of
a public trace is measured if its file is given. The floor is a calendar by itself: as many occurrences as tasks start and
end, each of which does nothing but ask for the next.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from resource import RUSAGE_SELF, getrusage
from typing import Final

from fairlead_bench.rows import Row, check_scale
from fairlead_lab.workloads.loading import load_jobs
from fairlead_master.allocation.api import AllocationSettings
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.observer import IdleWatcher
from fairlead_sim.pool.simulation import Pool
from fairlead_sim.virtual_cluster.trace_cluster import TraceCluster
from fairlead_sim.workload import Bundle, Job

POLICIES: Final = ("drf", "pf", "bbf", "slots:8", "fifo")
POOL_TARGET: Final = ">= 100000"
CLUSTER_TARGET: Final = ">= 20000"

_MIB, _GIB = 2**20, 2**30
_NODES: Final = 100
_NODE: Final = (16_000, 64 * _GIB, 0, 0)
_TRACE_NODES: Final = 400
_TRACE_NODE: Final = (16_000, 32 * _GIB, 0, 0)
_USERS: Final = 50
_SIZES: Final = (1, 5, 20, 100)
"""Tasks of a job."""
_LOAD: Final = 0.9
"""Of the cores, in the mean."""
_DURATION_MS: Final = (1_000, 20_000)
_FLOOR_ENTRIES: Final = 1_000
"""Occurrences that wait at any time: about as many as tasks run on the nodes."""

_JOBS: Final = {"full": 3_000, "quick": 60}
_CLUSTER_JOBS: Final = {"full": 1_000, "quick": 20}
_ATTEMPTS: Final = {"full": 5, "quick": 1}
"""Of which the best counts: others at work on the machine only ever make a run slower."""


_Make = Callable[[str, Sequence[Node]], Pool | TraceCluster]


class _Nobody(IdleWatcher):
    """Watches nothing, and would not have a job refused."""

    def refused(self, job: Job, bundle: Bundle, why: str, now_ms: int) -> None:  # noqa: ARG002 - as all watchers
        """No job of these can be too large."""
        raise AssertionError(f"job {job.job_id}: {why}")


def measure(seed: int, scale: str, trace: Path | None = None) -> list[Row]:
    """All rows; ``scale`` is ``full`` or ``quick`` (for a first look and for tests).

    Raises:
        ValueError: the scale is neither.
        TraceError: the trace cannot be read.
    """
    check_scale(scale)
    count, attempts = _JOBS[scale], _ATTEMPTS[scale]
    bundles, singles = shared_demands(seed, count), own_demands(seed, 10 * count)
    rows = [_row(f"pool, {policy}", _pool, policy, bundles, POOL_TARGET, attempts) for policy in POLICIES]
    rows.append(_row("pool, drf, a demand for each task", _pool, "drf", singles, "", attempts))
    count = _CLUSTER_JOBS[scale]
    bundles, singles = bundles[:count], singles[: 10 * count]
    rows.append(_row("cluster, drf", _cluster, "drf", bundles, CLUSTER_TARGET, attempts))
    rows.append(_row("cluster, drf, a demand for each task", _cluster, "drf", singles, "", attempts))
    if trace is not None:
        rows += _trace_rows(trace)
    return rows


def shared_demands(seed: int, count: int) -> list[Job]:
    """So many jobs of one to a hundred equal tasks, of nine demands."""
    dice = Random(f"{seed} shared")
    demands = [(cpus, mem * _GIB) for cpus in (500, 1000, 2000) for mem in (1, 2, 4)]
    return _jobs(dice, [(dice.choice(_SIZES), *dice.choice(demands)) for _ in range(count)])


def own_demands(seed: int, count: int) -> list[Job]:
    """So many jobs of one task each, hardly two of which want the same."""
    dice = Random(f"{seed} own")
    return _jobs(
        dice, [(1, dice.randint(100, 4000), dice.randint(100 * _MIB, 8 * _GIB)) for _ in range(count)]
    )


def _jobs(dice: Random, shapes: Iterable[tuple[int, int, int]]) -> list[Job]:
    """Jobs of (tasks, cpus, mem), arriving as fast as the nodes can just run them."""
    jobs: list[Job] = []
    arrival_ms = 0.0
    for number, (tasks, cpus, mem) in enumerate(shapes):
        duration_ms = dice.randint(*_DURATION_MS)
        name, user, submit_ms = f"j{number}", f"u{dice.randrange(_USERS)}", int(arrival_ms)
        bundle = Bundle(
            job_id=name,
            user=user,
            stage=0,
            tasks=tasks,
            unit=(cpus, mem, 0, 0),
            submit_ms=submit_ms,
            duration_ms=duration_ms,
        )
        jobs.append(Job(job_id=name, user=user, submit_ms=submit_ms, bundles=(bundle,)))
        arrival_ms += dice.expovariate(1.0) * tasks * cpus * duration_ms / (_NODES * _NODE[0] * _LOAD)
    return jobs


def _nodes() -> list[Node]:
    return [Node(name=f"n{number}", total=_NODE) for number in range(_NODES)]


def _pool(policy: str, nodes: Sequence[Node]) -> Pool:
    settings = AllocationSettings(policy=policy)
    return Pool(Engine(Random(1), now_ms=0), nodes, _Nobody(), settings=settings)


def _cluster(policy: str, nodes: Sequence[Node]) -> TraceCluster:
    settings = AllocationSettings(policy=policy)
    return TraceCluster(Engine(Random(1), now_ms=0), nodes, _Nobody(), settings=settings)


@dataclass(frozen=True, slots=True)
class _Run:
    events: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.events / self.seconds


def _cpu_seconds(work: Callable[[], None]) -> float:
    """CPU time of this process that a call takes, collections of garbage included: a day's simulation cannot do without."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _run(simulation: Pool | TraceCluster, jobs: Iterable[Job]) -> _Run:
    simulation.feed(jobs)
    seconds = _cpu_seconds(simulation.run)
    assert not simulation.unfinished, f"{simulation.unfinished} jobs did not finish"
    return _Run(simulation.events, seconds)


def _floor(events: int) -> float:
    """Occurrences a second of a calendar by itself."""
    engine = Engine(Random(1), now_ms=0)
    left = events

    def happen() -> None:
        nonlocal left
        left -= 1
        if left >= _FLOOR_ENTRIES:
            engine.after(left % 997, partial(happen))

    for number in range(min(events, _FLOOR_ENTRIES)):
        engine.after(number, partial(happen))
    return events / _cpu_seconds(partial(engine.run_until, 10**15))


def _row(name: str, make: _Make, policy: str, jobs: Sequence[Job], target: str, attempts: int) -> Row:
    runs = [_run(make(policy, _nodes()), jobs) for _ in range(attempts)]
    run = min(runs, key=lambda run: run.seconds)
    floor = max(_floor(run.events) for _ in range(attempts))
    return Row(f"{name}: tasks started or ended", run.rate, "events/s", target, floor=floor)


def _trace_rows(path: Path) -> list[Row]:
    nodes = [Node(name=f"n{number}", total=_TRACE_NODE) for number in range(_TRACE_NODES)]
    run = _run(_pool("drf", nodes), load_jobs(path))
    name = f"pool, drf, {path.name.partition('.')[0]} on {_TRACE_NODES} nodes"
    most_mib = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    return [
        Row(
            f"{name}: tasks started or ended",
            run.rate,
            "events/s",
            POOL_TARGET,
            floor=_floor(min(run.events, 1_000_000)),
        ),
        Row(f"{name}: all of it", run.seconds, "s", "< 900"),
        Row(f"{name}: most memory of the process", most_mib, "MiB", "< 2048"),
    ]
