"""Figure 13: how much of CPU and memory is in use under DRF and in slots, over 300 s of a burst of work on Facebook's cluster."""

from collections.abc import Sequence
from random import Random
from statistics import fmean
from typing import Final

from fairlead_lab.papers.drf import facebook
from fairlead_lab.papers.drf.facebook import Part, Work
from fairlead_lab.papers.experiment import Cell, Experiment, Result, RunOptions, numbers
from fairlead_lab.papers.plots import lines_over_time
from fairlead_lab.papers.statements import Statement, judge
from fairlead_master.allocation.api import AllocationSettings
from fairlead_master.allocation.placement import seeded
from fairlead_master.allocation.policies.names import slots_per_agent
from fairlead_proto.resources import Vector
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.observer import Batch, IdleWatcher
from fairlead_sim.pool.simulation import Pool, PoolOptions

COLUMNS: Final = ("time_s", "policy", "cpu_utilization", "mem_utilization")

POLICIES: Final = ("drf", facebook.SLOTS)
_FROM_S: Final = 13 * 3600 + 45 * 60
"""Some minutes before a burst of the day: more work comes than the cluster can do at once, as it must for this comparison."""
_WARM_UP_S: Final = 600
"""The cluster is empty at first; whatever is shown comes after that."""
_SHOWN_S: Final = 300


class _Use(IdleWatcher):
    """Tracks the resources in use: of each node what its tasks want, at most what the node has."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._total = {node.name: node.total for node in nodes}
        self._wanted = {node.name: [0, 0] for node in nodes}
        self.used = [0, 0]
        """CPU and memory."""

    def started(self, batch: Batch) -> None:
        """See ``Watcher``."""
        self._change(batch.host, batch.bundle.unit, batch.units)

    def ended(self, batch: Batch, now_ms: int) -> None:  # noqa: ARG002 - told to all watchers
        """See ``Watcher``."""
        self._change(batch.host, batch.bundle.unit, -batch.units)

    def _change(self, host: str, unit: Vector, tasks: int) -> None:
        wanted, total = self._wanted[host], self._total[host]
        for place in (0, 1):
            before = min(wanted[place], total[place])
            wanted[place] += tasks * unit[place]
            self.used[place] += min(wanted[place], total[place]) - before


def utilizations(
    work: Work, nodes: Sequence[Node], policy: str, seed: int, *, origin_ms: int
) -> list[tuple[float, float]]:
    """CPU and memory in use, as fractions, at each second that is shown; the run begins at ``origin_ms`` of the day."""
    use = _Use(nodes)
    engine = Engine(Random(seed), now_ms=0)  # noqa: S311 - chance that can be repeated is the purpose
    pool = Pool(
        engine,
        nodes,
        use,
        settings=AllocationSettings(policy=policy, placement=seeded("align", slots_per_agent(policy), seed)),
        options=PoolOptions(role_of=lambda job: job.job_id, forgets_idle=True),
    )
    pool.feed(work.jobs, origin_ms=origin_ms)
    cpus, mem = (sum(node.total[place] for node in nodes) for place in (0, 1))
    found = []
    for second in range(_SHOWN_S + 1):
        engine.run_until((_WARM_UP_S + second) * 1000)
        found.append((use.used[0] / cpus, use.used[1] / mem))
    return found


def _run(options: RunOptions) -> Result:
    part = Part(
        from_s=_FROM_S, until_s=_FROM_S + _WARM_UP_S + _SHOWN_S, divisor=40 if options.is_quick else 10
    )
    work = facebook.work(part, facebook.HEAVY_SHARE, options.seed)
    rows: list[list[Cell]] = [
        [second, policy, cpus, mem]
        for policy in POLICIES
        for second, (cpus, mem) in enumerate(
            utilizations(work, facebook.nodes(part), policy, options.seed, origin_ms=_FROM_S * 1000)
        )
    ]
    drf, slots = (
        [fmean(numbers([row for row in rows if row[1] == policy], column)) for column in (2, 3)]
        for policy in POLICIES
    )
    statements = [
        Statement(
            f"mean use of {what}: DRF {more:.0%}, 12 slots {less:.0%}",
            more > less,
            "the paper: DRF's is higher" + ("" if work.is_real else ", in a burst; the stand-in has none"),
        )
        for what, more, less in zip(("CPU", "memory"), drf, slots, strict=True)
    ]
    notes = (
        f"{work.source} {part.nodes} nodes and a like part of the tasks of the paper's 400 nodes; {facebook.HEAVY_SHARE:.0%} of map stages are "
        f"heavy on memory. Each job has shares of its own. Shown: {_SHOWN_S} s of the day from 13:55 on, where the trace has a burst. In use is "
        "what tasks want of a node, at most what it has: in slots some nodes are asked for more while others idle."
    )
    return Result(rows=rows, verdict=judge(statements), notes=notes)


EXPERIMENTS: Final = (
    Experiment(
        "drf-fig13",
        "CPU and memory in use on Facebook's work: DRF and slots",
        COLUMNS,
        _run,
        lines_over_time({2: "CPU in use", 3: "memory in use"}, dict(zip(POLICIES, ("-", "--"), strict=True))),
    ),
)
