"""Who is served when policies count what is used of what is declared."""

from dataclasses import replace

import pytest

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import Grant
from fairlead_master.allocation.measured import INTERVAL_MS
from fairlead_proto.ids import FrameworkId, TaskId
from fairlead_proto.resources import Vector
from tests.allocation.builders import add_agent, add_framework, an_allocator, cpus_and_mem, launch

UNIT = cpus_and_mem(1, 1)


def measure(allocator: Allocator, framework_id: FrameworkId, part: float, *, until_ms: int = 0) -> None:
    """Three of its tasks used so much of the CPU and memory they declare."""
    used = tuple(round(amount * part) for amount in UNIT)
    for now_ms in (until_ms, until_ms + INTERVAL_MS):
        for number in range(3):
            allocator.sample(framework_id, TaskId(f"t{number}"), UNIT, used, now_ms)


def start_all(allocator: Allocator) -> list[Grant]:
    """Start whatever is granted."""
    grants = allocator.cycle(0)
    for grant in grants:
        launch(allocator, grant)
    return grants


def shares(allocator: Allocator) -> dict[str, int]:
    """Tasks by role."""
    return {str(row.role): row.charged[0] // UNIT[0] for row in allocator.role_report()}


def a_cluster(demand: str = "measured", policy: str = "drf") -> tuple[Allocator, FrameworkId, FrameworkId]:
    allocator = an_allocator(policy=policy)
    allocator.configure(replace(allocator.settings, demand=demand), 0)
    add_agent(allocator, "host", cpus_and_mem(12, 100))
    return allocator, add_framework(allocator, "frugal", UNIT), add_framework(allocator, "honest", UNIT)


@pytest.mark.parametrize(
    ("policy", "frugal"), [("drf", 8), ("asset", 8), ("max-min:cpus", 8), ("pf", 8), ("max-min", 6)]
)
def test_who_uses_half_of_what_it_declares_runs_twice_as_many_tasks(policy: str, frugal: int) -> None:
    """Under max-min units count and not what they take, so there it makes no difference."""
    allocator, saver, _ = a_cluster(policy=policy)
    measure(allocator, saver, 0.5)

    start_all(allocator)

    assert shares(allocator) == {"frugal": frugal, "honest": 12 - frugal}


def test_what_is_declared_counts_until_something_is_known_and_where_the_operator_wants_it() -> None:
    unknown, _, _ = a_cluster()
    declared, saver, _ = a_cluster("declared")
    measure(declared, saver, 0.5)

    for allocator in (unknown, declared):
        start_all(allocator)
        assert shares(allocator) == {"frugal": 6, "honest": 6}


def test_no_host_is_promised_more_than_it_has_however_little_is_used() -> None:
    allocator, saver, honest = a_cluster()
    measure(allocator, saver, 0.1)
    measure(allocator, honest, 0.1)

    start_all(allocator)

    assert sum(shares(allocator).values()) == 12
    assert not any(allocator.cycle(1))


def test_what_runs_is_counted_anew_when_more_is_known() -> None:
    allocator, saver, _ = a_cluster()
    start_all(allocator)
    before = {str(row.role): row.key for row in allocator.role_report()}

    measure(allocator, saver, 0.5)

    after = {str(row.role): row.key for row in allocator.role_report()}
    assert after["frugal"] == before["frugal"] / 2
    assert after["honest"] == before["honest"]
    allocator.check()


def test_the_report_has_what_is_held_and_what_counts() -> None:
    allocator, saver, _ = a_cluster()
    measure(allocator, saver, 0.25)
    start_all(allocator)

    rows = {str(row.role): row for row in allocator.role_report()}

    quarter: Vector = tuple(amount // 4 for amount in rows["frugal"].charged)
    assert rows["frugal"].counted == quarter
    assert rows["honest"].counted == rows["honest"].charged
    assert rows["frugal"].dominant_share == pytest.approx(quarter[0] / 12_000)


def test_changing_what_counts_touches_nothing_that_is_held() -> None:
    allocator, saver, _ = a_cluster("declared")
    measure(allocator, saver, 0.5)
    grants = start_all(allocator)
    held = shares(allocator)

    for demand in ("measured", "declared", "measured"):
        allocator.configure(replace(allocator.settings, demand=demand), 0)
        assert shares(allocator) == held
        allocator.check()
    for grant in grants:
        allocator.release(grant.framework_id, grant.agent_id, grant.unit, grant.units)
    start_all(allocator)
    assert shares(allocator) == {"frugal": 8, "honest": 4}
