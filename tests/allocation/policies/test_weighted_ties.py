"""Equal weighted shares are a tie under every policy that divides by weights, and the role that was there earlier is next.

Weights are what people write: decimals, of which binary floats are the neighbours. Dividing by those decided ties by rounding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import AllocationSettings
from fairlead_master.allocation.policies.drf import DominantResourceFairness
from fairlead_master.allocation.weights import Weight
from fairlead_master.solvers.problem import Problem, User
from fairlead_master.solvers.registry import solve
from fairlead_proto.ids import Role
from fairlead_proto.resources import Vector
from tests.allocation.builders import KINDS, add_agent, add_framework, served, units_of

POLICIES = [
    *("drf", "asset", "max-min", "max-min:cpus", "max-min:mem", "slots:6", "utilization"),
    *("pf", "alpha:2", "alpha-tasks:2", "baa"),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("a", "b"), [(0.3, 0.2), (0.6, 0.4), (0.15, 0.1), (2.1, 1.4), (0.003, 0.002)])
def test_three_to_two_of_six_is_four_and_two_by_arrival(policy: str, a: float, b: float) -> None:
    """After 3 and 2 both are at their share: the sixth unit goes to the role that was there earlier, whatever the scale."""
    allocator = Allocator(KINDS, AllocationSettings(policy=policy))
    add_agent(allocator, "host", (6_000, 6, 0, 0))
    for name, weight in (("a", a), ("b", b)):
        allocator.set_weight(Role(name), Weight(weight))
        add_framework(allocator, name, (1_000, 1, 0, 0))

    assert units_of(allocator.cycle(0)) == {"a": 4, "b": 2}


@pytest.mark.parametrize("policy", POLICIES)
def test_whole_tasks_tie_as_on_a_live_cluster(policy: str) -> None:
    users = (User("a", (0.1, 1.0), (0.3, 0.3)), User("b", (0.1, 1.0), (0.2, 0.2)))
    problem = Problem(("cpus", "mem"), (0.6, 6.0), users)

    assert solve(problem, policy, discrete=True).tasks == (4, 2)


def test_a_key_stays_the_share_divided_by_the_weight() -> None:
    """However finely holdings are counted for it, and in whatever order weight and capacity came."""
    policy = DominantResourceFairness()
    policy.set_capacity((7, 11), 0)
    policy.add("a", Weight(0.3), (2, 5), 1)
    assert policy.key("a") == float(Fraction(5, 11) / Fraction("0.3"))
    policy.set_weight("a", Weight(0.25, {0: 0.07}))
    assert policy.key("a") == float(Fraction(2, 7) / Fraction("0.07"))
    policy.set_capacity((100, 13), 0)
    assert policy.key("a") == float(Fraction(5, 13) / Fraction("0.25"))
    policy.charge("a", (1, 2), 3)
    assert policy.key("a") == float(Fraction(11, 13) / Fraction("0.25"))
    policy.release("a", (1, 2), 2)
    assert policy.key("a") == float(Fraction(7, 13) / Fraction("0.25"))


@pytest.mark.parametrize(
    ("computed", "ratio"),
    [(1 / 3, (1, 3)), (2 / 3, (2, 3)), (0.1 + 0.2, (3, 10)), (0.123456789, (123456789, 10**9))],
)
def test_a_weight_that_was_computed_is_the_fraction_that_was_meant(
    computed: float, ratio: tuple[int, int]
) -> None:
    assert Weight(computed).ratio(0) == ratio


def test_amounts_too_large_for_floats_tie_as_well() -> None:
    policy = DominantResourceFairness()
    policy.set_capacity((2**60 + 2, 2**60), 0)
    policy.add("a", Weight(0.3), (3 * (2**59 + 1), 0), 1)
    policy.add("b", Weight(0.2), (0, 2**60), 1)

    assert policy.key("a") == policy.key("b") == 5.0


@dataclass(frozen=True)
class Someone:
    """A role with one framework, in numbers small enough that many keys are equal."""

    unit: Vector
    weight: Weight
    units: int


hundredths = st.integers(1, 100).map(lambda number: number / 100)
tenths = st.integers(1, 12).map(lambda number: number / 10)
weights = st.builds(
    Weight, tenths | hundredths, st.none() | st.dictionaries(st.integers(0, 1), tenths, min_size=1)
)
units = st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(any)
everyone = st.lists(st.builds(Someone, units, weights, st.integers(1, 30)), min_size=2, max_size=5)


@given(
    st.sampled_from(["drf", "asset", "max-min", "max-min:cpus", "slots:12", "utilization"]),
    st.tuples(st.integers(1, 30), st.integers(1, 30)),
    everyone,
)
@example("drf", (6, 6), [Someone((1, 1), Weight(0.3), 9), Someone((1, 1), Weight(0.2), 9)])
def test_units_are_served_in_the_order_of_exact_fractions(
    policy: str, capacity: tuple[int, int], roles: list[Someone]
) -> None:
    allocator = Allocator(KINDS, AllocationSettings(policy=policy))
    add_agent(allocator, "host", (*capacity, 0, 0))
    for number, someone in enumerate(roles):
        allocator.set_weight(Role(str(number)), someone.weight)
        add_framework(allocator, str(number), (*someone.unit, 0, 0), someone.units)

    allocator.cycle(0)

    assert served(allocator) == [str(place) for place in in_order(policy, capacity, roles)]


def in_order(policy: str, capacity: tuple[int, int], roles: list[Someone]) -> list[int]:
    """Who gets one unit after the other, by arithmetic in fractions and by place where fractions are equal."""
    held = [0] * len(roles)
    steps: list[int] = []
    key = KEYS[policy]
    while True:
        able = [place for place, has in enumerate(held) if has < roles[place].units]
        if policy == "slots:12":
            able = able if sum(held) < 12 and able else []
            able = [place for place in able if fits(roles[place].unit, capacity)]
        else:
            able = [place for place in able if fits(total([*steps, place], roles), capacity)]
        if not able:
            return steps
        place = min(able, key=lambda place: (key(roles[place], held[place], capacity), place))
        held[place] += 1
        steps.append(place)


def fits(vector: tuple[int, ...], capacity: tuple[int, int]) -> bool:
    return all(amount <= size for amount, size in zip(vector, capacity, strict=True))


def total(steps: list[int], roles: list[Someone]) -> tuple[int, int]:
    return sum(roles[place].unit[0] for place in steps), sum(roles[place].unit[1] for place in steps)


def shares(someone: Someone, held: int, capacity: tuple[int, int]) -> list[Fraction]:
    return [
        Fraction(someone.unit[place] * held, capacity[place]) / written(someone.weight.of(place))
        for place in range(2)
    ]


def written(weight: float) -> Fraction:
    return Fraction(str(weight))


def by_cpus(someone: Someone, held: int, capacity: tuple[int, int]) -> Fraction:
    share = shares(someone, held, capacity)[0]
    return share or -1 / (1 + held / written(someone.weight.default))


def by_units(someone: Someone, held: int, _: tuple[int, int]) -> Fraction:
    return held / written(someone.weight.default)


def by_use(someone: Someone, held: int, capacity: tuple[int, int]) -> tuple[Fraction, Fraction]:
    wanted = [Fraction(need, size) for need, size in zip(someone.unit, capacity, strict=True)]
    density = round(float(sum(wanted) / max(wanted)), 6)
    return -Fraction(density), max(wanted) * held / written(someone.weight.default)


KEYS: dict[str, Callable[[Someone, int, tuple[int, int]], Fraction | tuple[Fraction, Fraction]]] = {
    "drf": lambda *facts: max(shares(*facts)),
    "asset": lambda *facts: sum(shares(*facts), Fraction(0)),
    "max-min": by_units,
    "max-min:cpus": by_cpus,
    "slots:12": by_units,
    "utilization": by_use,
}
