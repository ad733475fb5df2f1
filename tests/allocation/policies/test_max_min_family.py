"""``asset``, ``max-min`` and ``max-min:RES`` live: the papers' examples, weights, ties, and what each does not see."""

import pytest

from fairlead_master.allocation.api import AllocationError
from fairlead_master.allocation.policies import names
from fairlead_master.allocation.policies.asset import AssetFairness
from fairlead_master.allocation.policies.max_min_resource import ResourceFairness
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import Role
from tests.allocation.builders import (
    KINDS,
    add_agent,
    add_framework,
    an_allocator,
    cpus_and_mem,
    served,
    units_of,
)

A_UNIT = cpus_and_mem(1, 4)
B_UNIT = cpus_and_mem(3, 1)


def test_asset_fairness_gives_252_and_216_tasks_on_a_hundred_such_machines() -> None:
    """DRF paper, section 5.1: of 9 CPUs and 18 GB user A gets 2.52 and user B 2.16 tasks."""
    allocator = an_allocator(policy="asset")
    add_agent(allocator, "host", cpus_and_mem(900, 1800))
    add_framework(allocator, "A", A_UNIT)
    add_framework(allocator, "B", B_UNIT)

    assert units_of(allocator.cycle(0)) == {"A": 252, "B": 216}


def test_asset_fairness_gives_less_than_half_of_everything() -> None:
    """DRF paper, section 5.1: <30, 30>, user 1 <1, 3>, user 2 <1, 1>: user 1 has 6 CPUs of 30 and 18 GB of 30."""
    allocator = an_allocator(policy="asset")
    add_agent(allocator, "host", cpus_and_mem(30, 30))
    add_framework(allocator, "1", cpus_and_mem(1, 3))
    add_framework(allocator, "2", cpus_and_mem(1, 1))

    assert units_of(allocator.cycle(0)) == {"1": 6, "2": 12}


def test_equal_sums_of_different_shares_are_a_tie() -> None:
    """In floats 1/3 + 2/3 + 1/10 and 1/10 + 2/3 + 1/3 differ; the account that was there earlier would come second."""
    policy = AssetFairness()
    policy.set_capacity((3, 3, 10), 0)
    for account, used in (("a", (2, 1, 1)), ("b", (1, 2, 1))):
        policy.add(account, Weight(), used, 1)
        policy.activate(account)

    assert policy.key("a") == policy.key("b")
    assert policy.first() == "a"


def test_a_weight_of_asset_fairness_may_differ_by_resource() -> None:
    policy = AssetFairness()
    policy.set_capacity((9_000, 18), 0)
    policy.add("A", Weight(1.0, {1: 4.0}), (0, 0), 0)

    assert policy.charge("A", (3_000, 12), 1)[1] == pytest.approx(3 / 9 + 12 / 18 / 4)


def test_asset_fairness_skips_what_the_cluster_does_not_have() -> None:
    policy = AssetFairness()
    policy.set_capacity((0, 10), 0)
    policy.add("1", Weight(), (0, 0), 0)

    assert policy.charge("1", (5, 1), 1)[1] == 1 / 10


def test_max_min_counts_tasks_whatever_they_need() -> None:
    """9 CPUs and 18 GB: two of each would fit a third time neither."""
    allocator = an_allocator(policy="max-min")
    add_agent(allocator, "host", cpus_and_mem(9, 18))
    add_framework(allocator, "A", A_UNIT)
    add_framework(allocator, "B", B_UNIT)

    allocator.cycle(0)

    assert served(allocator) == ["A", "B", "A", "B", "A"]


def test_a_weight_of_max_min_counts_in_tasks() -> None:
    allocator = an_allocator(policy="max-min")
    add_agent(allocator, "host", cpus_and_mem(9, 9))
    allocator.set_weight(Role("A"), Weight(2.0))
    add_framework(allocator, "A", cpus_and_mem(1, 0.5))
    add_framework(allocator, "B", cpus_and_mem(1, 1))

    assert units_of(allocator.cycle(0)) == {"A": 6, "B": 3}


def test_max_min_of_cpus_looks_at_nothing_else() -> None:
    """DRF paper, section 7.2: users who need 1 and 3 CPUs get CPUs alike, whatever memory they hold."""
    allocator = an_allocator(policy="max-min:cpus")
    add_agent(allocator, "host", cpus_and_mem(12, 100))
    add_framework(allocator, "A", A_UNIT)
    add_framework(allocator, "B", B_UNIT)

    assert units_of(allocator.cycle(0)) == {"A": 6, "B": 2}


def test_who_holds_none_of_the_resource_comes_first_in_turns() -> None:
    allocator = an_allocator(policy="max-min:cpus")
    add_agent(allocator, "host", cpus_and_mem(2, 8))
    allocator.set_weight(Role("D"), Weight(2.0))
    add_framework(allocator, "A", cpus_and_mem(1, 1))
    add_framework(allocator, "C", cpus_and_mem(0, 1), 3)
    add_framework(allocator, "D", cpus_and_mem(0, 1), 3)

    allocator.cycle(0)

    assert served(allocator) == ["A", "C", "D", "D", "C", "D", "C", "A"]


def test_a_weight_for_the_resource_divides_its_share_only() -> None:
    policy = ResourceFairness("mem", 1)
    policy.set_capacity((10, 10), 0)
    policy.add("A", Weight(5.0, {1: 2.0}), (0, 0), 0)

    assert policy.charge("A", (1, 0), 1) == (-1.0, -1 / (1 + 1 / 5))
    assert policy.charge("A", (1, 4), 1)[1] == 4 / 10 / 2


@pytest.mark.parametrize("text", ["max-min:", "max-min:CPUS", "max-min:licenses"])
def test_max_min_of_an_unknown_resource_is_refused_by_naming_the_known_ones(text: str) -> None:
    with pytest.raises(AllocationError, match=f"RES one of cpus, mem, disk, gpus, got '{text}'"):
        names.parse(text, KINDS.names)
