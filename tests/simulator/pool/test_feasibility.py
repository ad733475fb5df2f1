"""What could never run is refused at once, with a reason a reader understands; else a simulation would never end."""

from random import Random

import pytest

from fairlead_master.allocation.api import AllocationSettings
from fairlead_proto.tasks import Constraint, Operator
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.observer import IdleWatcher
from fairlead_sim.pool.simulation import Pool
from fairlead_sim.workload import Bundle, Job
from tests.laboratory.workloads.workload_builders import GIB

T4 = (Constraint("model", Operator.EQUALS, ("T4",)),)
NODES = [
    Node(name="a", total=(4000, 8 * GIB, 0, 0)),
    Node(name="b", total=(8000, 8 * GIB, 0, 0), attributes={"model": "T4"}),
]


class Reasons(IdleWatcher):
    """Why jobs were refused, and how many finished."""

    def __init__(self) -> None:
        self.whys: list[str] = []
        self.done = 0

    def refused(self, job: Job, bundle: Bundle, why: str, now_ms: int) -> None:
        self.whys.append(why)

    def finished(self, job: Job, now_ms: int) -> None:
        self.done += 1


def why_refused(
    *,
    cpus: int = 1,
    mem_gib: int = 1,
    tasks: int = 1,
    is_gang: bool = False,
    constraints: tuple[Constraint, ...] = (),
    policy: str = "drf",
) -> str:
    """The reason for refusing one job of such tasks; empty if it ran and finished."""
    bundle = Bundle(
        job_id="j",
        user="u",
        stage=0,
        tasks=tasks,
        unit=(cpus * 1000, mem_gib * GIB, 0, 0),
        submit_ms=0,
        duration_ms=10,
        constraints=constraints,
        is_gang=is_gang,
    )
    reasons = Reasons()
    pool = Pool(Engine(Random(1), now_ms=0), NODES, reasons, settings=AllocationSettings(policy=policy))
    pool.feed([Job(job_id="j", user="u", submit_ms=0, bundles=(bundle,))])
    pool.run()
    assert reasons.done == (not reasons.whys)
    return "".join(reasons.whys)


def test_what_fits_runs() -> None:
    assert not why_refused(cpus=8)


def test_nearest_host_is_named_with_what_it_lacks() -> None:
    assert why_refused(cpus=9) == "no host has cpus=9,mem=1GiB: the nearest, b, lacks cpus=1"
    assert why_refused(mem_gib=16, constraints=T4) == (
        "no host that meets model=T4 has cpus=1,mem=16GiB: the nearest, b, lacks mem=8GiB"
    )


def test_constraint_that_nobody_meets_is_named() -> None:
    wanted = (Constraint("hostname", Operator.EQUALS, ("c",)),)

    assert why_refused(constraints=wanted) == "no host meets hostname=c"


@pytest.mark.parametrize(("tasks", "is_refused"), [(12, False), (13, True)])
def test_gang_that_needs_more_than_the_empty_cluster_is_refused(*, tasks: int, is_refused: bool) -> None:
    """One place more than there are, and it would collect places and give them back for ever."""
    why = why_refused(tasks=tasks, is_gang=True)

    assert why == (
        f"a gang of {tasks} tasks: the empty cluster has places for 12 of them" if is_refused else ""
    )


def test_places_of_a_gang_are_counted_on_hosts_that_meet_its_constraints() -> None:
    assert not why_refused(tasks=8, is_gang=True, constraints=T4)
    assert why_refused(tasks=9, is_gang=True, constraints=T4).endswith("has places for 8 of them")


def test_places_under_slots_are_the_slots() -> None:
    assert not why_refused(cpus=3, tasks=10, is_gang=True, policy="slots:5")
    assert why_refused(tasks=11, is_gang=True, policy="slots:5").endswith("has places for 10 of them")


def test_tasks_that_need_not_start_together_may_be_more_than_fit() -> None:
    assert not why_refused(tasks=100)
