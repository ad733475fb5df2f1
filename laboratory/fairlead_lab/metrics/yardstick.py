"""What every policy is measured with on one workload: the same classes of sizes, and each job's end on an own slice."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fairlead_lab.metrics.static_slice import completions_alone_ms
from fairlead_lab.metrics.survey import Survey, survey, why_refused
from fairlead_sim.node import Node
from fairlead_sim.workload import Job, WorkloadError


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
    found = survey(jobs, nodes, user_of)
    if not found.feasible:
        raise WorkloadError(
            f"workload: expected a job that the nodes can hold, got none among {len(jobs)}: "
            f"{jobs[0].job_id}: {why_refused(jobs[0], nodes)}"
        )
    alone_ms = completions_alone_ms(jobs, found.feasible, found.capacity, user_of=user_of, weights=weights)
    return Yardstick(survey=found, alone_ms=alone_ms)
