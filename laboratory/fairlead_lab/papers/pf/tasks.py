"""Figure 6 of paper 000, section 4.2: jobs of 500 whole tasks on a cluster that holds 100 of them, under the live policies.

The cluster is the pool of ``fairlead_sim.pool``: one machine, the allocator of a live master, each job a framework of its own.
Allocations freeze while the next task of the most deprived job does not fit (section 4.1). Tasks last tau = 1/5 of the unit of
time on average, exponentially distributed or Erlang-20, so that a job that had the cluster to itself as a fluid would
take sigma tau / C = 1. The unit is 1,000 s here, so that milliseconds do not show.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from typing import Final

from fairlead_lab.papers.experiment import Experiment, Result, RunOptions
from fairlead_lab.papers.pf.curves import COLUMNS, SIMULATED, Row, drawer, rates_of
from fairlead_lab.papers.pf.intervals import CONFIDENCE, Batches
from fairlead_lab.papers.pf.rates import POLICIES
from fairlead_lab.papers.pf.traffic import SYMMETRIC, Traffic
from fairlead_lab.papers.statements import Statement, judge
from fairlead_master.allocation.api import AllocationSettings
from fairlead_proto.resources import Vector
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.observer import IdleWatcher
from fairlead_sim.pool.simulation import Pool, PoolOptions
from fairlead_sim.workload import Bundle, Job

CAPACITY: Final = 100
"""Tasks of one class that fit: C."""

TASKS: Final = 500
"""Of each job: sigma."""

UNIT_MS: Final = 1_000_000
"""What a job alone would take as a fluid."""

_CELLS: Final = 1_000
"""Of a resource, what one task takes of its dominant one: amounts are whole numbers."""

UNBALANCED: Final = Traffic(SYMMETRIC, (3, 1))

_NODE: Final = Node(name="cluster", total=(CAPACITY * _CELLS, CAPACITY * _CELLS, 0, 0))

_UNITS: Final[tuple[Vector, ...]] = tuple(
    [(round(cpu * _CELLS), round(ram * _CELLS), 0, 0) for cpu, ram in SYMMETRIC]
)

_LIGHT: Final = 0.01
_LOADS: Final = (_LIGHT, *(tenth / 10 for tenth in range(1, 9)))
_FEW: Final = (_LIGHT, 0.6)
"""A job costs a thousand decisions of the allocator, and at load 0.9 thousands of jobs would be too few."""

_JOBS: Final = 100
_JOBS_QUICK: Final = 24
"""At load 0; by 1 / (1 - load) more at others."""

_BATCHES: Final = 16


def work(arrivals: Sequence[float], *, jobs: int, stages: int, seed: str) -> Iterator[Job]:
    """Jobs as they arrive, their tasks' times drawn: sums of ``stages`` exponential ones.

    A job's tasks take the same times under every policy.
    """
    dice = Random(seed)  # noqa: S311 - chance that can be repeated
    now = 0.0
    mean_ms = UNIT_MS * CAPACITY / TASKS
    for number in range(jobs):
        now += dice.expovariate(sum(arrivals))
        (kind,) = dice.choices(range(len(arrivals)), arrivals)
        name, submit_ms = f"{number}", round(now * UNIT_MS)
        tasks = [
            Bundle(
                job_id=name,
                user=name,
                stage=0,
                tasks=1,
                unit=_UNITS[kind],
                submit_ms=submit_ms,
                duration_ms=max(1, round(dice.gammavariate(stages, mean_ms / stages))),
            )
            for _ in range(TASKS)
        ]
        yield Job(job_id=name, user=name, submit_ms=submit_ms, bundles=tuple(tasks))


class _Stopwatch(IdleWatcher):
    """Adds up sizes and times of jobs by class and by batch, in the order of arrival."""

    def __init__(self, first: int, jobs: int) -> None:
        """The first jobs warm the cluster up; ``jobs`` count after them."""
        self._first = first
        self._jobs = jobs
        self.found = [Batches(_BATCHES) for _ in _UNITS]

    def refused(self, job: Job, bundle: Bundle, why: str, now_ms: int) -> None:
        """Never: every task fits an empty cluster."""
        raise AssertionError(f"job {job.job_id} at {now_ms}: {why} {bundle.unit}")

    def finished(self, job: Job, now_ms: int) -> None:
        """The mean size is 1; what this job's tasks take of it is known."""
        number = int(job.job_id) - self._first
        if 0 <= number < self._jobs:
            batches = self.found[_UNITS.index(job.bundles[0].unit)]
            place = number * _BATCHES // self._jobs
            batches.sizes[place] += sum(bundle.duration_ms for bundle in job.bundles) / CAPACITY
            batches.times[place] += now_ms - job.submit_ms


def simulate(policy: str, load: float, *, jobs: int, stages: int, seed: str) -> list[Batches]:
    """Run ``jobs`` jobs between a tenth as many before and after them; return sizes and times by class."""
    around = max(5, jobs // 10)
    watch = _Stopwatch(around, jobs)
    pool = Pool(
        Engine(Random(seed), now_ms=0),  # noqa: S311 - nothing is drawn
        [_NODE],
        watch,
        settings=AllocationSettings(policy=policy, when_head_does_not_fit="freeze"),
        options=PoolOptions(forgets_idle=True),
    )
    pool.feed(work(UNBALANCED.arrivals(load), jobs=jobs + 2 * around, stages=stages, seed=seed))
    pool.run()
    return watch.found


def zero_load_rate() -> float:
    """Of exponential tasks: 500/100 over 401/100 + 1/99 + 1/98 + ... + 1, since the last 100 run alone with the empty cluster."""
    alone = (TASKS - CAPACITY + 1) / CAPACITY + sum(1 / left for left in range(1, CAPACITY))
    return TASKS / CAPACITY / alone


def _run(stages: int, options: RunOptions) -> Result:
    loads = _FEW if options.is_quick else _LOADS
    intervals = len(loads) * len(POLICIES) * len(_UNITS)
    rows: list[Row] = []
    for load in loads:
        jobs = round((_JOBS_QUICK if options.is_quick else _JOBS) / (1.0 - load))
        for policy in POLICIES:
            taken = simulate(policy, load, jobs=jobs, stages=stages, seed=f"{options.seed} {load}")
            rows += [
                (load, policy, k, each.service_rate(), each.half_width(intervals), SIMULATED)
                for k, each in enumerate(taken, start=1)
            ]
    return Result(rows=rows, verdict=judge(_statements(rows, stages), besides="besides, "), notes=_NOTES)


_NOTES: Final = (
    "500 tasks a job, CPU and RAM for 100, rho_1 = 3 rho_2; live policies and allocator, frozen while the most deprived job's "
    "task does not fit. Our PF knows that a job with few tasks left can use no more than these, which the paper's (9) does "
    f"not. The same jobs under both policies; all half widths of the figure hold at once with {CONFIDENCE:.0%}."
)


def _statements(rows: Sequence[Row], stages: int) -> list[Statement]:
    """What the text says of figure 6."""
    pf = [rates_of(rows, "pf", k, SIMULATED) for k in (1, 2)]
    drf = [rates_of(rows, "drf", k, SIMULATED) for k in (1, 2)]
    at = 0.6
    gain, cost = pf[1][at] / drf[1][at], pf[0][at] / drf[0][at]
    return [
        _at_zero_load(rows, stages),
        Statement(
            f"class 2 has by PF x {gain:.2f} and class 1 x {cost:.2f} at load {at:g}",
            gain > 1.1 and cost > 0.95,
            "PF is printed to keep its advantage",
        ),
    ]


def _at_zero_load(rows: Sequence[Row], stages: int) -> Statement:
    first = [row for row in rows if row[0] == _LIGHT]
    shown = f"{min(row[3] for row in first):.3f} to {max(row[3] for row in first):.3f} at load {_LIGHT}"
    alone = zero_load_rate()
    if stages == 1:
        return Statement(
            f"{shown}, where a job alone has {alone:.4f}",
            all(abs(row[3] - alone) <= row[4] + _LIGHT for row in first),
            "0.54 is printed",
        )
    return Statement(
        f"{shown}, much closer to the fluid's 1 than {alone:.2f}",
        all(row[3] > alone + 0.2 for row in first),
        "much closer is printed",
    )


EXPERIMENTS: Final = tuple([
    Experiment(
        f"pf-fig6{letter}",
        f"jobs of whole tasks, {times}: service rates over CPU load, rho_1 = 3 rho_2",
        COLUMNS,
        partial(_run, stages),
        drawer(),
    )
    for letter, times, stages in (("a", "exponential", 1), ("b", "Erlang-20", 20))
])  # fmt: skip
