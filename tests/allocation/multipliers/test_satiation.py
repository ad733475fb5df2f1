"""Users with limits: the conditions of optimality, and every subset of users that might be at its limit."""

import random
from itertools import combinations
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.allocation.multipliers import satiation
from fairlead_master.allocation.multipliers.interior_point import solve
from fairlead_master.allocation.multipliers.satiation import Satiation, Wish, satiate
from tests.solvers.conditions import optimality_error

LIMITED = st.one_of(st.just(inf), st.floats(0.001, 2.0))


@st.composite
def some_wishes(draw: st.DrawFn) -> list[Wish]:
    width = draw(st.integers(1, 4))
    entry = st.one_of(st.just(0.0), st.just(1.0), st.floats(0.01, 1.0))
    row = st.lists(entry, min_size=width, max_size=width).filter(any)
    wish = st.builds(Wish, row, st.sampled_from([0.5, 1.0, 2.0]), LIMITED)
    return draw(st.lists(wish, min_size=1, max_size=9))


def error(wishes: list[Wish], found: Satiation, alpha: float = 1.0) -> float:
    rows = [wish.row for wish in wishes]
    weights, limits = [wish.weight for wish in wishes], [wish.limit for wish in wishes]
    return optimality_error(rows, weights, limits, found.units, found.values, alpha)


@given(some_wishes(), st.sampled_from([0.5, 1.0, 2.0, 4.0]))
def test_everyone_has_its_limit_or_its_fair_part(wishes: list[Wish], alpha: float) -> None:
    found = satiate(wishes, alpha)

    assert error(wishes, found, alpha) < 1e-10
    assert all(found.units[place] == wishes[place].limit for place in found.satiated)
    assert found.rounds <= 8


@given(some_wishes(), st.sampled_from([0.5, 1.0, 4.0]))
def test_one_at_a_time_ends_at_the_same(wishes: list[Wish], alpha: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(satiation, "ROUNDS_MAX", 0)
        slow = satiate(wishes, alpha)

    assert error(wishes, slow, alpha) < 1e-10
    assert slow.units == pytest.approx(satiate(wishes, alpha).units, rel=1e-9)


@given(some_wishes())
def test_money_paid_is_what_resources_cost(wishes: list[Wish]) -> None:
    """By complementary slackness; who is below its limit pays its weight, the others at most theirs."""
    found = satiate(wishes)

    paid = [
        amount * sum(need * value for need, value in zip(wish.row, found.values, strict=True))
        for wish, amount in zip(wishes, found.units, strict=True)
    ]
    assert sum(paid) == pytest.approx(sum(found.values), rel=1e-12)
    for place, (wish, money) in enumerate(zip(wishes, paid, strict=True)):
        if place in found.satiated:
            assert money <= wish.weight * (1 + 1e-12)
        else:
            assert money == pytest.approx(wish.weight, rel=1e-12)


def capped_once(wishes: list[Wish]) -> list[float]:
    """What is wrong: everyone above its limit is capped in each round and never looked at again."""
    capped: set[int] = set()
    while True:
        room = [
            1 - sum(wishes[place].limit * wishes[place].row[resource] for place in sorted(capped))
            for resource in range(len(wishes[0].row))
        ]
        open_wishes = [place for place in range(len(wishes)) if place not in capped]
        units = [wish.limit for wish in wishes]
        if open_wishes:
            classes = [
                (
                    [need / left for need, left in zip(wishes[place].row, room, strict=True)],
                    wishes[place].weight,
                )
                for place in open_wishes
            ]
            values = solve(classes).values
            for place, (row, weight) in zip(open_wishes, classes, strict=True):
                units[place] = weight / sum(need * value for need, value in zip(row, values, strict=True))
        above = {place for place in open_wishes if units[place] > wishes[place].limit * (1 + 1e-12)}
        if not above:
            return units
        capped |= above


def test_to_cap_once_and_for_all_is_wrong_now_and_then() -> None:
    """Proportional fairness is not population monotone: a user who takes less can make another's resource dearer."""
    rng = random.Random(11)
    wrong = 0
    for _ in range(400):
        wishes = [
            Wish([rng.random() ** 3 for _ in range(3)], 1.0, rng.choice([inf, rng.random()]))
            for _ in range(8)
        ]
        found = satiate(wishes)
        assert error(wishes, found) < 1e-10
        wrong += capped_once(wishes) != pytest.approx(list(found.units), rel=1e-6)

    assert 1 <= wrong <= 60


def by_all_subsets(wishes: list[Wish]) -> list[tuple[int, ...]]:
    """Every set of users whose being at their limits satisfies the conditions, with multipliers of the others."""
    fits = []
    for size in range(len(wishes) + 1):
        for chosen in combinations(range(len(wishes)), size):
            found = satiation._solve(wishes, frozenset(chosen), 1.0, solve)
            loads = [
                sum(wish.limit * wish.row[j] for place, wish in enumerate(wishes) if place in chosen)
                for j in range(len(wishes[0].row))
            ]
            if max(loads) > 1:
                continue
            wanted = found.wanted
            if all((wanted[place] >= wish.limit) == (place in chosen) for place, wish in enumerate(wishes)):
                fits.append(chosen)
    return fits


def test_exactly_one_subset_satisfies_the_conditions_and_it_is_found() -> None:
    rng = random.Random(5)
    for _ in range(300):
        wishes = [
            Wish([rng.random() for _ in range(2)], rng.choice([1.0, 2.0]), rng.random())
            for _ in range(rng.randint(1, 5))
        ]

        assert by_all_subsets(wishes) == [tuple(sorted(satiate(wishes).satiated))]


def test_where_there_is_room_for_all_nothing_costs() -> None:
    found = satiate([Wish([0.5, 0.1], 1.0, 0.5), Wish([0.1, 0.5], 3.0, 0.25)])

    assert found.units == (0.5, 0.25)
    assert found.values == (0.0, 0.0)


def test_a_limit_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match=r"wishes\[0\]: expected a limit above 0, got 0"):
        satiate([Wish([1.0], 1.0, 0.0)])
