"""Bottleneck-aware allocation, live: against the static program, and what a change of the population costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.allocation.api import AllocationError
from fairlead_master.allocation.policies.baa import BottleneckAware, _Largest
from fairlead_master.allocation.policies.bottleneck_groups import GOALS
from fairlead_master.allocation.policies.names import parse
from fairlead_master.allocation.weights import Weight
from fairlead_master.solvers.bottleneck_aware import solve
from fairlead_master.solvers.problem import Problem, User
from fairlead_proto.ids import FrameworkId, Role
from fairlead_proto.resources import Vector
from tests.allocation.builders import (
    KINDS,
    add_agent,
    add_framework,
    an_allocator,
    served,
    take_back,
    units_of,
)

MANY = 100_000


def amounts(cpus: int, mem: int) -> Vector:
    return (cpus, mem, 0, 0)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("baa:tasks", {"D": 150, "S": 600}),
        ("baa:utilization", {"D": 150, "S": 600}),
        ("baa:min", {"D": 200, "S": 400}),
        ("baa", {"D": 157, "S": 573}),
    ],
)
def test_the_users_of_section_2_1_get_what_the_static_program_says(
    policy: str, expected: dict[str, int]
) -> None:
    """<0.8, 0.2> and <0.2, 0.6> of <1, 2>, in units of which 2,400 CPUs are 240 times the paper's.

    With equal levels, dominant resource fairness, both would have 3/5 of their bottleneck: 180 and 480.
    """
    allocator = an_allocator(policy=policy)
    add_agent(allocator, "host", amounts(2_400, 4_800))
    add_framework(allocator, "D", amounts(8, 2), units=MANY)
    add_framework(allocator, "S", amounts(2, 6), units=MANY)

    got = units_of(allocator.cycle(0))

    assert got.keys() == expected.keys()
    assert all(abs(got[name] - count) <= 2 for name, count in expected.items())


def test_users_of_one_bottleneck_hold_equal_shares_of_it_by_weight() -> None:
    """(2.1), whatever else they need and however large their tasks are."""
    allocator = an_allocator(policy="baa")
    add_agent(allocator, "host", amounts(600, 600))
    allocator.set_weight(Role("c"), Weight(3.0))
    for name, unit in [("a", (2, 1)), ("b", (5, 0)), ("c", (1, 1))]:
        add_framework(allocator, name, amounts(*unit), units=MANY)

    assert units_of(allocator.cycle(0)) == {"a": 60, "b": 24, "c": 360}


def test_what_a_group_cannot_use_goes_to_who_wants_it() -> None:
    """D wants ten tasks only, so S goes on beyond its level, until memory is full."""
    allocator = an_allocator(policy="baa:min")
    add_agent(allocator, "host", amounts(2_400, 4_800))
    add_framework(allocator, "D", amounts(8, 2), units=10)
    add_framework(allocator, "S", amounts(2, 6), units=MANY)

    assert units_of(allocator.cycle(0)) == {"D": 10, "S": (4_800 - 20) // 6}


def test_a_key_is_what_is_held_in_parts_of_the_level() -> None:
    """The example of section 2.1: y_D = 1/2 and y_S = 3/4 for the sum of tasks."""
    policy = BottleneckAware("baa:tasks")
    policy.set_capacity(amounts(1_000, 2_000), 0)
    for name, unit in [("D", amounts(8, 2)), ("S", amounts(2, 6))]:
        policy.add(name, Weight(), KINDS.zero, 0)
        policy.set_wish_units(name, 1)
        policy.set_wish(name, unit)

    assert policy.charge("D", amounts(8, 2), 1)[1] == policy.key("D") == pytest.approx(0.008 / 0.5)
    assert policy.charge("S", amounts(2, 6), 100)[1] == policy.key("S") == pytest.approx(0.3 / 0.75)


def test_a_task_counts_by_its_size() -> None:
    """One wish told in twice the units is of tasks half as large: the sum of tasks prefers it."""
    keys = {}
    for units in (10, 1_000):
        policy = BottleneckAware("baa:tasks")
        policy.set_capacity(amounts(1_000, 1_000), 0)
        for name, vector, number in [("D", amounts(500, 400), units), ("S", amounts(400, 500), 100)]:
            policy.add(name, Weight(), KINDS.zero, 0)
            policy.set_wish_units(name, number)
            policy.set_wish(name, vector)
        keys[units] = policy.charge("D", amounts(100, 80), 1)[1] / policy.charge("S", amounts(80, 100), 1)[1]

    # Levels are y_D = 5/8 y_S where S has the smaller tasks, held up by the guarantee, and the other way round.
    assert keys[10] > 1 > keys[1_000]


def test_a_thousand_changes_cost_one_program_and_decisions_none() -> None:
    policy = BottleneckAware()
    policy.set_capacity(amounts(10**6, 10**6), 0)
    for number in range(1_000):
        policy.add(str(number), Weight(), KINDS.zero, 0)
        policy.set_wish_units(str(number), 10)
        policy.set_wish(str(number), amounts(1 + number % 7, 1 + number % 5))
        policy.activate(str(number))
    for _ in range(3_000):
        name = policy.first()
        assert name is not None
        policy.charge(name, amounts(1, 1), 1)

    assert policy.programs_solved == 1


def test_a_wish_that_goes_down_and_up_again_costs_no_program() -> None:
    """As when an offer comes back and is wanted anew."""
    policy = BottleneckAware()
    policy.set_capacity(amounts(100, 100), 0)
    for name in ("a", "b"):
        policy.add(name, Weight(), KINDS.zero, 0)
        policy.set_wish(name, amounts(3, 1))
        policy.activate(name)
    assert policy.first() == "a"

    policy.set_wish("a", amounts(1, 3))
    policy.set_wish("a", amounts(3, 1))

    assert policy.first() == "a"
    assert policy.programs_solved == 1


@pytest.mark.parametrize("policy", sorted(GOALS))
def test_levels_follow_who_leaves(policy: str) -> None:
    """What is served after somebody has left is what would have been served had it never been there."""
    orders = []
    for leaves in (True, False):
        allocator = an_allocator(policy=policy)
        add_agent(allocator, "host", amounts(2_400, 4_800))
        for name, unit in [("D", (8, 2)), ("S", (2, 6)), *([("leaver", (9, 1))] * leaves)]:
            add_framework(allocator, name, amounts(*unit), units=MANY)
        if leaves:
            for grant in allocator.cycle(0):
                take_back(allocator, grant)
            allocator.role_report()  # With the levels of all three.
            allocator.remove_framework(FrameworkId("leaver"))
        order = []
        while allocator.needs_cycle:
            allocator.cycle(0)
            order += served(allocator)
        allocator.check()
        orders.append(order)

    assert orders[0] == orders[1]


def test_an_account_that_changes_its_bottleneck_keeps_its_place_among_equals() -> None:
    policy = BottleneckAware()
    policy.set_capacity(amounts(100, 100), 0)
    for name in ("a", "b"):
        policy.add(name, Weight(), KINDS.zero, 0)
        policy.set_wish(name, amounts(3, 1))
        policy.activate(name)
    policy.set_wish("a", amounts(1, 3))
    assert policy.first() == "a"

    policy.set_wish("a", amounts(3, 1))

    assert policy.first() == "a"
    policy.deactivate("a")
    assert policy.first() == "b"


def test_who_wants_nothing_the_cluster_has_is_in_no_group() -> None:
    policy = BottleneckAware()
    policy.set_capacity(amounts(100, 0), 0)
    policy.add("a", Weight(), KINDS.zero, 0)
    policy.set_wish("a", amounts(0, 5))
    policy.activate("a")

    assert policy.first() == "a"
    assert policy.key("a") == 0.0
    policy.remove("a")
    assert policy.first() is None


def test_an_unknown_objective_is_refused() -> None:
    with pytest.raises(AllocationError, match=r"policy: expected one of baa, baa:tasks, .* got 'baa:fun'"):
        parse("baa:fun", KINDS.names)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=2, max_size=6),
    st.tuples(st.integers(200, 900), st.integers(200, 900)),
    st.sampled_from(sorted(GOALS)),
)
def test_live_tasks_are_within_one_of_the_static_ones(
    units: list[tuple[int, int]], capacity: tuple[int, int], policy: str
) -> None:
    """Nobody gets more than a task beyond its static share; who has less is behind nobody by more than a task."""
    users = [User(str(n), unit, (1.0, 1.0)) for n, unit in enumerate(units)]
    static = solve(Problem(("cpus", "mem"), capacity, tuple(users)), policy).tasks
    allocator = an_allocator(policy=policy, head="freeze")
    add_agent(allocator, "host", amounts(*capacity))
    for n, unit in enumerate(units):
        add_framework(allocator, str(n), amounts(*unit), units=MANY)

    got = units_of(allocator.cycle(0))

    live = [got.get(str(n), 0) for n in range(len(units))]
    for count, fluid in zip(live, static, strict=True):
        assert count <= fluid + 1 + 1e-6
    behind = min(count / fluid for count, fluid in zip(live, static, strict=True))
    for count, fluid in zip(live, static, strict=True):
        assert (count - 1) / fluid <= behind + 1e-6


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5])), max_size=200))
def test_the_largest_of_numbers_that_come_and_go(steps: list[tuple[bool, float]]) -> None:
    largest, present = _Largest(), []
    for comes, number in steps:
        if comes:
            largest.add(number)
            present.append(number)
        elif number in present:
            largest.remove(number)
            present.remove(number)
        if present:
            assert largest.get() == max(present)
