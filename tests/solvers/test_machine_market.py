"""Proportional and alpha-fairness on machines of different kinds: by hand, by other solvers, and by linear programs."""

import random
from math import inf

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fairlead_master.allocation.linear_program import maximise
from fairlead_master.allocation.multipliers.satiation import Wish, satiate
from fairlead_master.solvers import alpha_fair, machine_market
from fairlead_master.solvers.machine_market import OnMachines, share_machines
from fairlead_master.solvers.problem import SolverError
from fairlead_master.solvers.registry import solve
from tests.solvers.builders import a_problem

Kinds = list[list[float]]

ALPHAS = st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0])
UTILITIES = ["pf", "ceei", "alpha:0.5", "alpha:2", "alpha-tasks:2"]


@st.composite
def wishes(draw: st.DrawFn, width: int = 3) -> list[Wish]:
    entry = st.one_of(st.just(0.0), st.floats(0.01, 10.0))
    row = st.lists(entry, min_size=width, max_size=width).filter(any)
    limit = st.one_of(st.just(inf), st.floats(0.01, 10.0))
    return draw(
        st.lists(st.builds(Wish, row, st.sampled_from([0.5, 1.0, 3.0]), limit), min_size=1, max_size=6)
    )


@st.composite
def markets(draw: st.DrawFn) -> tuple[list[Wish], Kinds]:
    """Some kinds, and wishes that fit at least one of them."""
    amounts = st.lists(st.integers(0, 6).map(float), min_size=3, max_size=3)
    kinds = [[1.0, 2.0, 3.0], *draw(st.lists(amounts, min_size=1, max_size=3))]
    return draw(wishes()), kinds


def fits(wish: Wish, kind: list[float]) -> bool:
    return all(total > 0 for need, total in zip(wish.row, kind, strict=True) if need > 0)


def most_money(wishes: list[Wish], kinds: Kinds, paid_for_one: list[float]) -> float:
    """The most that any allocation earns at fixed prices of the users' units."""
    columns = [(i, m) for i, wish in enumerate(wishes) for m, kind in enumerate(kinds) if fits(wish, kind)]
    rows, bounds = [], []
    for m, kind in enumerate(kinds):
        for j, total in enumerate(kind):
            rows.append([wishes[i].row[j] if at == m else 0.0 for i, at in columns])
            bounds.append(total)
    for i, wish in enumerate(wishes):
        if wish.limit < inf:
            rows.append([1.0 if owner == i else 0.0 for owner, _ in columns])
            bounds.append(wish.limit)
    return maximise([paid_for_one[i] for i, _ in columns], rows, bounds).value


def is_allowed(wishes: list[Wish], kinds: Kinds, found: OnMachines) -> bool:
    """Whether there is room for all at once: the largest common part of what they got is all of it."""
    columns = [(i, m) for i, wish in enumerate(wishes) for m, kind in enumerate(kinds) if fits(wish, kind)]
    rows, bounds = [], []
    for m, kind in enumerate(kinds):
        for j, total in enumerate(kind):
            rows.append([*(wishes[i].row[j] if at == m else 0.0 for i, at in columns), 0.0])
            bounds.append(total)
    for i, units in enumerate(found.units):
        rows.append([*(-1.0 if owner == i else 0.0 for owner, _ in columns), units])
        bounds.append(0.0)
    part = maximise([*(0.0 for _ in columns), 1.0], rows, bounds).value
    return part >= 1 - 1e-9 and all(
        units <= wish.limit for units, wish in zip(found.units, wishes, strict=True)
    )


@given(markets(), ALPHAS)
@settings(max_examples=80)
def test_no_allocation_would_earn_more_at_the_prices_users_would_pay(
    market: tuple[list[Wish], Kinds], alpha: float
) -> None:
    """What makes an optimum of concave utilities: no direction in which it rises, none of all that are possible."""
    users, kinds = market

    found = share_machines(users, kinds, alpha)

    assert found.relative_error < 1e-11
    assert is_allowed(users, kinds, found)
    worth = [(wish.weight / units) ** alpha for wish, units in zip(users, found.units, strict=True)]
    worth = [price / max(worth) for price in worth]
    earned = sum(units * price for units, price in zip(found.units, worth, strict=True))
    assert most_money(users, kinds, worth) <= earned * (1 + 1e-8)


@given(wishes(), ALPHAS)
@settings(max_examples=60)
def test_one_kind_is_one_pool(users: list[Wish], alpha: float) -> None:
    """Two algorithms that have nothing in common but the problem."""
    pool = satiate(users, alpha)
    assume(pool.relative_error < 1e-9)  # alpha far from 1 may take prices beyond floats

    kind = share_machines(users, [[1.0] * 3], alpha)

    assert kind.relative_error < 1e-11
    assert kind.units == pytest.approx(pool.units, rel=1e-9)


@given(wishes(), wishes(), ALPHAS)
@settings(max_examples=15)
def test_kinds_that_share_no_user_are_pools_of_their_own(
    left: list[Wish], right: list[Wish], alpha: float
) -> None:
    none = [0.0] * 3
    users = [Wish([*wish.row, *none], wish.weight, wish.limit) for wish in left]
    users += [Wish([*none, *wish.row], wish.weight, wish.limit) for wish in right]

    found = share_machines(users, [[1.0] * 3 + none, none + [1.0] * 3], alpha)

    pool = [[1.0] * 3]
    apart = (*share_machines(left, pool, alpha).units, *share_machines(right, pool, alpha).units)
    assert found.units == pytest.approx(apart, rel=1e-9)


@given(markets(), ALPHAS)
@settings(max_examples=30)
def test_prices_are_those_users_pay(market: tuple[list[Wish], Kinds], alpha: float) -> None:
    users, kinds = market

    found = share_machines(users, kinds, alpha)

    for wish, units in zip(users, found.units, strict=True):
        cheapest = min(
            sum(
                need * price / total
                for need, price, total in zip(wish.row, prices, kind, strict=True)
                if need > 0
            )
            for prices, kind in zip(found.prices, kinds, strict=True)
            if fits(wish, kind)
        )
        wanted = min(wish.limit, wish.weight * cheapest ** (-1 / alpha))
        assert units == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("policy", UTILITIES)
def test_machines_of_one_kind_are_one_pool(policy: str) -> None:
    users = {"A": (1, 4), "B": (3, 1)}
    machines = a_problem((18, 36), users, nodes=[(1, (4.5, 9)), (3, (4.5, 9))])

    assert solve(machines, policy) == solve(a_problem((18, 36), users), policy)


@pytest.mark.parametrize("policy", UTILITIES)
def test_what_is_free_on_different_machines_helps_nobody(policy: str) -> None:
    problem = a_problem((2, 2), {"A": (1, 1), "C": (0, 1)}, nodes=[(1, (2, 0)), (1, (0, 2))])

    found = solve(problem, policy)

    assert found.tasks == pytest.approx((0.0, 2.0), rel=1e-12)
    assert found.multipliers is None


def test_who_needs_the_scarce_kind_has_it_to_itself() -> None:
    """A has the 4 CPUs of one machine for itself and competes with B for the 8 of the one with a GPU.

    The largest log(12 - 8 b) + log b is at b = 3/4. In one pool the answer is the same here; without A's own machine it
    would be b = 1/2.
    """
    problem = a_problem((12, 1), {"A": (1, 0), "B": (8, 1)}, nodes=[(1, (4, 0)), (1, (8, 1))])

    assert solve(problem, "pf").tasks == pytest.approx((6.0, 0.75), rel=1e-12)


def test_users_are_put_where_they_get_in_each_others_way_least() -> None:
    problem = a_problem((30, 156), {"A": (1, 4), "B": (3, 1)}, nodes=[(2, (9, 18)), (3, (4, 40))])

    for policy in UTILITIES[:4]:
        assert solve(problem, policy).tasks == pytest.approx((15.0, 5.0), rel=1e-12)


def test_nobody_fits() -> None:
    problem = a_problem((2, 2), {"A": (1, 1)}, nodes=[(1, (2, 0)), (1, (0, 2))])

    assert solve(problem, "pf").tasks == (0.0,)


def test_weights_a_million_millions_apart() -> None:
    rng = random.Random(3)
    users = [Wish([rng.random(), rng.random()], 10.0 ** rng.randint(-6, 6)) for _ in range(12)]

    assert share_machines(users, [[3.0, 1.0], [1.0, 4.0], [0.0, 2.0]]).relative_error < 1e-11


def test_the_number_of_passes_does_not_grow_with_the_users() -> None:
    passes = []
    for count in (5, 50, 200):
        rng = random.Random(1)
        users = [Wish([rng.random(), rng.random()], 1.0) for _ in range(count)]
        passes.append(share_machines(users, [[3.0, 1.0], [1.0, 4.0]]).iterations)

    assert max(passes) <= min(passes) + 12


def test_an_answer_that_cannot_be_certified_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_market, "ITERATIONS_MAX", 4)
    problem = a_problem((30, 156), {"A": (1, 4), "B": (3, 1)}, nodes=[(2, (9, 18)), (3, (4, 40))])

    with pytest.raises(
        SolverError, match="policy: expected a problem that pf can solve to 1e-09, got one with"
    ):
        solve(problem, "pf")


def test_the_certificate_bounds_the_error_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    users = [Wish([1.0, 4.0], 1.0), Wish([3.0, 1.0], 2.0), Wish([1.0, 1.0], 1.0, 2.0)]
    kinds = [[18.0, 36.0], [12.0, 120.0]]
    exact = share_machines(users, kinds).units
    certified = 0
    for passes in range(1, 30):
        monkeypatch.setattr(machine_market, "ITERATIONS_MAX", passes)
        found = share_machines(users, kinds)
        error = max(abs(now / right - 1) for now, right in zip(found.units, exact, strict=True))
        assert error <= found.relative_error + 1e-15
        certified += found.relative_error < inf

    assert certified >= 20


def test_too_many_users_times_kinds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alpha_fair, "WORK_MAX", 23)
    problem = a_problem((2, 2), {"A": (1, 0), "B": (1, 0)}, nodes=[(1, (2, 0)), (1, (0, 2))])

    with pytest.raises(
        SolverError, match=r"^nodes: expected at most 1 users on 2 kinds of nodes under pf, got 2;"
    ):
        solve(problem, "pf")
