"""Whose measured use counts in place of what is allocated, under a policy that follows use."""

import pytest

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import AllocationSettings
from fairlead_proto.ids import FrameworkId
from fairlead_proto.resources import Vector, scale
from fairlead_proto.tasks import DemandClass
from tests.allocation.builders import TASKS, add_agent, add_framework, an_allocator

UNIT: Vector = (10, 10, 10, 10)
MINE, OTHER = FrameworkId("mine"), FrameworkId("other")


def holding(*, mine: int, other: int, role: str | None = None) -> Allocator:
    """Two frameworks that hold so many units of a host of ten, under bottleneck-based fairness."""
    allocator = an_allocator(policy="bbf")
    allocator.advance(0)
    host = add_agent(allocator, "host", scale(UNIT, 10))
    for framework_id, units in ((MINE, mine), (OTHER, other)):
        add_framework(allocator, framework_id, role=role)
        declare(allocator, framework_id)
        for _ in range(units):
            allocator.charge(framework_id, host, UNIT)
    return allocator


def declare(allocator: Allocator, framework_id: FrameworkId, *, is_declared: bool = True) -> None:
    demand = DemandClass(class_id=TASKS, unit=UNIT, units=100, is_declared=is_declared)
    allocator.set_demand(framework_id, [demand], 0)


def keys(allocator: Allocator) -> dict[str, float]:
    """In the steady state: held minus entitled, where most is held."""
    return {row.role: row.key for row in allocator.role_report()}


def test_bottlenecks_are_named() -> None:
    allocator = holding(mine=5, other=5)
    assert allocator.bottlenecks() == ("cpus", "mem", "disk", "gpus")

    declare(allocator, MINE, is_declared=False)
    allocator.observe(MINE, (50, 12, 50, 30), scale(UNIT, 5))
    allocator.advance(100_000)
    assert allocator.bottlenecks() == ("cpus", "disk")

    allocator.configure(AllocationSettings(), 0)
    assert allocator.bottlenecks() is None


def test_what_is_declared_counts_whatever_was_measured() -> None:
    allocator = holding(mine=6, other=4)
    allocator.observe(MINE, (0, 0, 0, 0), scale(UNIT, 6))

    allocator.advance(100_000)

    assert keys(allocator) == pytest.approx({"mine": 0.6 - 0.5, "other": 0.4 - 0.5})


def test_who_declares_nothing_is_charged_for_what_it_measurably_uses() -> None:
    allocator = holding(mine=5, other=5)
    declare(allocator, MINE, is_declared=False)
    allocator.observe(MINE, (45, 12, 45, 50), scale(UNIT, 5))

    allocator.advance(100_000)

    # Of memory 62 % is used, so it is no bottleneck; of the others it lags least where it uses all that it holds.
    assert keys(allocator) == pytest.approx({"mine": 0.50 - 0.5, "other": 0.5 - 0.5})
    allocator.observe(MINE, (45, 12, 45, 42), scale(UNIT, 5))
    allocator.advance(200_000)
    assert keys(allocator)["mine"] == pytest.approx(0.45 - 0.5)


def test_where_demand_is_measured_the_use_of_all_counts() -> None:
    allocator = holding(mine=6, other=4)
    allocator.observe(MINE, (30, 30, 30, 30), scale(UNIT, 6))
    allocator.observe(OTHER, (38, 38, 38, 38), scale(UNIT, 4))

    allocator.configure(AllocationSettings(policy="bbf:3,50%", demand="measured"), 0)
    allocator.advance(100_000)
    assert keys(allocator) == pytest.approx({"mine": 0.30 - 0.5, "other": 0.38 - 0.5})

    allocator.configure(AllocationSettings(policy="bbf:3,50%"), 0)
    allocator.advance(200_000)
    assert keys(allocator) == pytest.approx({"mine": 0.6 - 0.5, "other": 0.4 - 0.5})


def test_a_framework_is_as_its_last_demand_was() -> None:
    """Without a demand, as when it is away, it still is."""
    allocator = holding(mine=6, other=4)
    allocator.observe(MINE, (58, 58, 58, 58), scale(UNIT, 6))
    declare(allocator, MINE, is_declared=False)
    allocator.set_demand(MINE, [], 0)
    allocator.advance(100_000)
    assert keys(allocator)["mine"] == pytest.approx(0.58 - 0.5)

    declare(allocator, MINE)
    allocator.advance(200_000)

    assert keys(allocator)["mine"] == pytest.approx(0.6 - 0.5)


def test_what_is_not_measured_counts_as_held() -> None:
    """Half of its tasks were measured, at an idle; the other half, and what it is offered, count in full."""
    allocator = holding(mine=6, other=4)
    declare(allocator, MINE, is_declared=False)
    allocator.observe(MINE, scale(UNIT, 1), scale(UNIT, 3))
    allocator.configure(AllocationSettings(policy="bbf:3,50%"), 0)

    allocator.advance(100_000)

    assert keys(allocator)["mine"] == pytest.approx((1 + 3) / 10 - 0.5)


def test_nobody_holds_a_cluster_for_nothing() -> None:
    allocator = holding(mine=6, other=4)
    declare(allocator, MINE, is_declared=False)
    allocator.configure(AllocationSettings(policy="bbf:3,1%"), 0)
    allocator.observe(MINE, (0, 0, 0, 0), scale(UNIT, 6))

    allocator.advance(100_000)

    assert keys(allocator)["mine"] == pytest.approx(0.6 * 0.05 - 0.5)


def test_of_a_role_only_the_use_of_those_who_declare_nothing_counts() -> None:
    allocator = holding(mine=6, other=4, role="both")
    add_framework(allocator, "third", UNIT)
    for framework_id, units in ((MINE, 6), (OTHER, 4)):
        allocator.observe(framework_id, (1, 1, 1, 1), scale(UNIT, units))
    declare(allocator, OTHER, is_declared=False)
    allocator.configure(AllocationSettings(policy="bbf:3,50%"), 0)

    allocator.advance(100_000)
    assert keys(allocator)["both"] == pytest.approx(0.6 + 0.4 * 0.05 - 0.5)

    allocator.check()
