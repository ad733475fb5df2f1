"""The rule that makes a trace of a large, slow cluster into work for a small cluster within minutes.

**Demands** keep their shape, which is what fairness is about: a task that took half of a node's CPU and a tenth of its
memory takes half and a tenth of an agent. For each resource j

    scaled_j = demand_j * agent_j / reference_j

where ``agent`` is the largest amount of j on any agent and ``reference`` the largest on any node of the trace (or, where
the nodes are not known, the largest demand in the trace, so that the largest task fills an agent). Rounded half up;
then at least 10 milli-cpu, 8 MiB or 1 milli-GPU for what was wanted at all; then at most the agent's amount.

**Times** are divided by the speedup, arrivals and run times alike, so that the offered load stays what it was. A run
time below the floor is raised to it: starting a process costs milliseconds, and a shorter one would be mostly that.

What this distorts is counted in ``ScalingCounts`` and belongs beside every result: demands beyond the reference
(shrunken), below the smallest amount (raised), tasks no single agent can hold (left out), run times raised to the
floor, and gangs: a trace's bundle that had to run at the same time on several nodes becomes independent tasks, since
there is no gang scheduling here; it starts sooner and never holds nodes while it waits for more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead_proto.resources import Vector, fits
from fairlead_sim.workload import Bundle, WorkloadError

DURATION_FLOOR_MS: Final = 20
"""A launch takes 3 to 10 ms from grant to exec on a small machine: at 20 ms a task is still mostly its own run time."""

LEAST: Final = (10, 8 * 2**20, 2**20, 1)
"""10 milli-cpu, 8 MiB of memory, 1 MiB of disk, 1 milli-GPU. Agents enforce limits where they can: with less memory the
smallest process does not start, and with less CPU its start alone takes longer than the task."""


@dataclass(slots=True)
class ScalingCounts:
    """What the rule changed, in tasks unless said otherwise."""

    tasks: int = 0
    """Kept, changed or not."""
    shrunken: int = 0
    """Wanted more than the reference node has of some resource, and now want all an agent has."""
    raised: int = 0
    """Wanted so little of some resource that they now want the smallest amount."""
    left_out: int = 0
    """Fit on no single agent after scaling."""
    left_out_jobs: list[str] = field(default_factory=list)
    """Jobs that lost tasks that way, at most ``NAMED_MAX`` of them."""
    gang_tasks: int = 0
    """Of bundles of several tasks, which in the trace may have had to run together."""
    floored: int = 0
    """Run times raised to the floor."""
    floor_added_ms: int = 0
    """How much longer those are, summed."""
    duration_ms: int = 0
    """All run times after scaling, summed."""


NAMED_MAX: Final = 20
"""Enough to look into; a trace of the wrong unit would name all its jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRule:
    """From what to what; see the module's text."""

    reference: Vector
    agents: tuple[Vector, ...]
    """Total capacity of each agent."""
    speedup: float
    """How many seconds of the trace pass in one second."""
    duration_floor_ms: int = DURATION_FLOOR_MS

    def __post_init__(self) -> None:
        if not self.agents:
            raise WorkloadError("scaling: expected at least one agent, got none")
        if not 0 < self.speedup <= 1e9:
            raise WorkloadError(f"speedup: expected a number above 0 and up to 1e9, got {self.speedup:g}")
        if self.duration_floor_ms < 0:
            raise WorkloadError(f"duration floor: expected 0 ms or more, got {self.duration_floor_ms}")

    @property
    def target(self) -> Vector:
        """The largest amount of each resource on any agent."""
        return largest_amounts(self.agents)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledDemand:
    """One task's demand on the cluster, and what had to be done to it beyond the proportion."""

    unit: Vector
    is_shrunken: bool
    is_raised: bool


def largest_amounts(vectors: Iterable[Vector]) -> Vector:
    """The largest amount in each place; of no vectors there is none.

    Raises:
        WorkloadError: there are no vectors.
    """
    columns = list(zip(*vectors, strict=True))
    if not columns:
        raise WorkloadError("expected at least one capacity or demand to take the largest of, got none")
    return tuple(max(column) for column in columns)


def reference_node(bundles: Iterable[Bundle], nodes: Sequence[Vector] = ()) -> Vector:
    """What counts as a whole node of the trace: the largest of its nodes or, without them, its largest demands.

    A resource that no node has is taken from the demands, so that it can be scaled at all.
    """
    demands = largest_amounts(bundle.unit for bundle in bundles)
    if not nodes:
        return demands
    return tuple(node or demand for node, demand in zip(largest_amounts(nodes), demands, strict=True))


def scale_demand(unit: Vector, rule: ScalingRule) -> ScaledDemand:
    """One task's demand on the cluster; a place the cluster has none of stays above zero, and so fits nowhere."""
    scaled = []
    is_shrunken = is_raised = False
    for wanted, whole, target, least in zip(unit, rule.reference, rule.target, LEAST, strict=True):
        if not wanted:
            scaled.append(0)
            continue
        # Half up, in integers: floats would make two equal shares differ by one.
        amount = (2 * wanted * target + whole) // (2 * whole) if whole else 0
        is_raised |= amount < least
        amount = max(amount, least)
        if target and amount > target:
            is_shrunken = True
            amount = target
        scaled.append(amount)
    return ScaledDemand(unit=tuple(scaled), is_shrunken=is_shrunken, is_raised=is_raised)


def scale_duration_ms(duration_ms: int, rule: ScalingRule) -> int:
    """A run time on the cluster, never below the floor."""
    return max(rule.duration_floor_ms, round(duration_ms / rule.speedup))


def scale_bundle(bundle: Bundle, rule: ScalingRule, counts: ScalingCounts) -> Bundle | None:
    """The bundle as the cluster is to run it, arrival compressed too; None if no agent can hold its tasks.

    ``counts`` is brought up to date.
    """
    demand = scale_demand(bundle.unit, rule)
    if not any(fits(demand.unit, agent) for agent in rule.agents):
        counts.left_out += bundle.tasks
        if len(counts.left_out_jobs) < NAMED_MAX and bundle.job_id not in counts.left_out_jobs:
            counts.left_out_jobs.append(bundle.job_id)
        return None
    duration_ms = scale_duration_ms(bundle.duration_ms, rule)
    added_ms = max(0, duration_ms - round(bundle.duration_ms / rule.speedup))
    counts.tasks += bundle.tasks
    counts.shrunken += bundle.tasks * demand.is_shrunken
    counts.raised += bundle.tasks * demand.is_raised
    counts.gang_tasks += bundle.tasks * (bundle.tasks > 1)
    counts.floored += bundle.tasks * (added_ms > 0)
    counts.floor_added_ms += bundle.tasks * added_ms
    counts.duration_ms += bundle.tasks * duration_ms
    return Bundle(
        job_id=bundle.job_id,
        user=bundle.user,
        stage=bundle.stage,
        tasks=bundle.tasks,
        unit=demand.unit,
        submit_ms=round(bundle.submit_ms / rule.speedup),
        duration_ms=duration_ms,
    )
