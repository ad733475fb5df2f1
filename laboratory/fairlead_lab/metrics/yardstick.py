"""What every policy is measured with on one workload, found before any is asked.

Who can run at all, how large tasks and users are, and when each job would end on an own slice.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead_lab.metrics.static_slice import completions_alone_ms
from fairlead_lab.workloads.plan import dominant_fraction
from fairlead_lab.workloads.scaling import largest_amounts
from fairlead_master.allocation.allocator import Allocator
from fairlead_proto.ids import AgentId
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_sim.node import Node
from fairlead_sim.pool.feasibility import Feasibility, attributes_of
from fairlead_sim.workload import Job, WorkloadError

QUARTILES: Final = 4
_JOB_SIZE_STEP: Final = 500
_JOB_SIZE_STEPS: Final = 6
"""The DRF paper's figure 14 compares jobs of 1–500 tasks, 501–1,000 and so on to 3,000; what is larger is a class of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A workload beside the nodes it is to run on."""

    capacity: Vector
    feasible: tuple[int, ...]
    """Places of the jobs that the empty cluster could run. Under slots gangs fit otherwise, and a few more or fewer may run."""
    size_ends: tuple[float, ...]
    """Upper ends of the quartiles of demand size over their tasks; equal sizes may leave fewer than four."""
    job_size_ends: tuple[int, ...]
    """Upper ends, in tasks, of the classes of job size; the last is that of the largest job."""
    gangs: int
    """Of those jobs, those with tasks that start together; when two compete, lots decide."""
    users: tuple[str, ...]
    """Of those jobs; the one with the most work first, in dominant share times run time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """What does not depend on the policy, so that it is computed once for all."""

    survey: Survey
    alone_ms: Sequence[int]
    """Completion of each job on an own static slice of the cluster, see ``static_slice``."""


def measure(
    jobs: Sequence[Job],
    nodes: Sequence[Node],
    *,
    user_of: Callable[[Job], str],
    weights: Mapping[str, float] | None = None,
) -> Yardstick:
    """The yardstick of a workload on these nodes.

    Raises:
        WorkloadError: there are no jobs or no nodes, two nodes of one name, or no job that the nodes can hold.
    """
    if not jobs:
        raise WorkloadError("workload: expected at least one job, got none")
    if not nodes:
        raise WorkloadError("nodes: expected at least one, got none")
    names = [node.name for node in nodes]
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise WorkloadError(f"nodes: expected each name once, got {twice!r} twice")
    found = _survey(jobs, nodes, user_of)
    if not found.feasible:
        raise WorkloadError(
            f"workload: expected a job that the nodes can hold, got none among {len(jobs)}: "
            f"{jobs[0].job_id}: {_why_refused(jobs[0], nodes)}"
        )
    alone_ms = completions_alone_ms(jobs, found.feasible, found.capacity, user_of=user_of, weights=weights)
    return Yardstick(survey=found, alone_ms=alone_ms)


def _survey(jobs: Sequence[Job], nodes: Sequence[Node], user_of: Callable[[Job], str]) -> Survey:
    """Look at a workload; there is at least one node."""
    totals = [node.total for node in nodes]
    capacity: Vector = tuple(sum(places) for places in zip(*totals, strict=True))
    feasible = _feasible(jobs, nodes)
    work: dict[str, float] = {}
    sizes: dict[Vector, int] = {}
    for place in feasible:
        user = user_of(jobs[place])
        for bundle in jobs[place].bundles:
            share = dominant_fraction(bundle.unit, capacity)
            work[user] = work.get(user, 0.0) + share * bundle.tasks * bundle.duration_ms
            sizes[bundle.unit] = sizes.get(bundle.unit, 0) + bundle.tasks
    return Survey(
        capacity=capacity,
        feasible=feasible,
        size_ends=quartiles(sizes, largest_amounts(totals)),
        job_size_ends=job_size_ends(max((jobs[place].tasks for place in feasible), default=1)),
        gangs=sum(any(bundle.is_gang for bundle in jobs[place].bundles) for place in feasible),
        users=tuple(sorted(work, key=lambda user: (-work[user], user))),
    )


def _why_refused(job: Job, nodes: Sequence[Node]) -> str:
    """Why the empty cluster could not run a job, in words; empty if it could."""
    feasibility = _feasibility(nodes)
    return next((why for bundle in job.bundles if (why := feasibility.why_never(bundle))), "")


def _feasibility(nodes: Sequence[Node]) -> Feasibility:
    allocator = Allocator(ResourceKinds())
    feasibility = Feasibility(allocator)
    for node in nodes:
        allocator.add_agent(AgentId(node.name), node.total, attributes_of(node))
        feasibility.add(node)
    return feasibility


def _feasible(jobs: Sequence[Job], nodes: Sequence[Node]) -> tuple[int, ...]:
    feasibility = _feasibility(nodes)
    return tuple(
        place
        for place, job in enumerate(jobs)
        if not any(feasibility.why_never(bundle) for bundle in job.bundles)
    )


def quartiles(tasks_of: dict[Vector, int], largest: Vector) -> tuple[float, ...]:
    """Sizes at which a quarter, a half, ... of the tasks are at most so large, by nearest rank."""
    sizes: dict[float, int] = {}
    for unit, tasks in tasks_of.items():
        size = dominant_fraction(unit, largest)
        sizes[size] = sizes.get(size, 0) + tasks
    whole = sum(sizes.values())
    ends = []
    passed = 0
    for size, tasks in sorted(sizes.items()):
        before, passed = passed, passed + tasks
        if any(before < _rank(whole, part) <= passed for part in range(1, QUARTILES + 1)):
            ends.append(size)
    return tuple(ends)


def _rank(count: int, quarter: int) -> int:
    """As in ``distribution.percentile``."""
    return max(1, -(-count * quarter // QUARTILES))


def job_size_ends(most: int) -> tuple[int, ...]:
    """The paper's classes, or, where they would put all jobs into one, powers of two."""
    if most <= _JOB_SIZE_STEP:
        return (*(2**power for power in range((most - 1).bit_length())), most)
    steps = [_JOB_SIZE_STEP * number for number in range(1, _JOB_SIZE_STEPS + 1)]
    return (*(step for step in steps if step < most), most)
