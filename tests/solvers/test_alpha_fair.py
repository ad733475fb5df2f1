"""Proportional and alpha-fairness on one pool: the paper's own slow method, and the same in eighty digits."""

import random
from math import exp, inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_master.allocation.multipliers.satiation import Wish, satiate
from fairlead_master.solvers import alpha_fair
from fairlead_master.solvers.machine_market import share_machines
from fairlead_master.solvers.problem import SolverError
from fairlead_master.solvers.registry import solve
from tests.solvers.builders import a_problem, nine_and_eighteen
from tests.solvers.conditions import optimality_error
from tests.solvers.reference_gradient import multipliers_by_gradient

DIGITS = 1e-9
"""What is promised, relative to each user's tasks."""


def assert_exact(wishes: list[Wish], alpha: float = 1.0) -> None:
    """As far from an answer in eighty digits as is promised, and optimal by its own prices."""
    rows, limits = [wish.row for wish in wishes], [wish.limit for wish in wishes]
    weights = [wish.weight for wish in wishes]
    names = [f"u{place}" for place in range(len(wishes))]
    problem = a_problem(
        [1.0] * len(rows[0]),
        dict(zip(names, rows, strict=True)),
        weights=dict(zip(names, weights, strict=True)),
        caps=dict(zip(names, limits, strict=True)),
    )

    found = solve(problem, f"alpha-tasks:{alpha}")

    slow = share_machines(wishes, [[1.0] * len(rows[0])], alpha)
    assert slow.relative_error < 1e-11
    assert found.tasks == pytest.approx(slow.units, rel=DIGITS)
    assert found.multipliers is not None
    assert optimality_error(rows, weights, limits, found.tasks, found.multipliers, alpha) < DIGITS


@st.composite
def some_wishes(draw: st.DrawFn) -> list[Wish]:
    """Weights a million million times apart, resources that many do not need, limits of all sizes."""
    width = draw(st.integers(1, 4))
    entry = st.one_of(st.just(0.0), st.just(1.0), st.floats(0.01, 1.0))
    row = st.lists(entry, min_size=width, max_size=width).filter(any)
    weight = st.integers(-6, 6).map(lambda power: 10.0**power)
    limit = st.one_of(st.just(inf), st.floats(1e-6, 2.0))
    return draw(st.lists(st.builds(Wish, row, weight, limit), min_size=1, max_size=8))


@given(some_wishes())
@settings(max_examples=80)
def test_proportional_fairness_is_exact_with_weights_far_apart(wishes: list[Wish]) -> None:
    assert_exact(wishes)


@given(some_wishes(), st.sampled_from([0.25, 0.5, 2.0, 4.0]))
@settings(max_examples=50)
def test_alpha_fairness_is_exact(wishes: list[Wish], alpha: float) -> None:
    assert_exact([Wish(wish.row, min(max(wish.weight, 0.5), 2.0), wish.limit) for wish in wishes], alpha)


@pytest.mark.parametrize("apart", [1e-3, 1e-6, 1e-9, 1e-12])
def test_resources_that_are_nearly_the_same_are_no_harder(apart: float) -> None:
    rng = random.Random(8)
    for _ in range(8):
        wishes = []
        for _ in range(12):
            first, second = rng.random(), rng.random()
            row = [
                first,
                first * (1 + apart * rng.random()),
                second,
                first + second * (1 + apart * rng.random()),
            ]
            wishes.append(Wish(row, 1.0 + rng.random(), rng.choice([inf, rng.random()])))

        assert_exact(wishes)


def test_demands_ten_orders_of_magnitude_apart_are_no_harder() -> None:
    rng = random.Random(9)
    for _ in range(10):
        wishes = [
            Wish(
                [exp(rng.gauss(0, 4)) for _ in range(4)],
                exp(rng.gauss(0, 3)),
                rng.choice([inf, exp(rng.gauss(-3, 4))]),
            )
            for _ in range(15)
        ]

        assert_exact(wishes)


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_equation_9_of_the_paper_goes_to_the_same_multipliers(seed: int) -> None:
    rng = random.Random(seed)
    width = rng.randint(1, 3)
    users = {
        f"u{place}": [rng.choice([0.0, rng.uniform(0.2, 1.0)]) for _ in range(width - 1)]
        + [rng.uniform(0.2, 1.0)]
        for place in range(rng.randint(1, 8))
    }
    weights = {name: rng.choice([0.5, 1.0, 2.0]) for name in users}

    found = solve(a_problem([1.0] * width, users, weights=weights), "pf")

    values = multipliers_by_gradient(
        list(users.values()), list(weights.values()), precision=1e-7, iterations_max=50_000
    )
    phi = [
        weights[name] / sum(need * value for need, value in zip(row, values, strict=True))
        for name, row in users.items()
    ]
    assert found.tasks == pytest.approx(phi, rel=1e-3)
    assert found.multipliers is not None
    assert sum(found.multipliers) == pytest.approx(sum(weights.values()), rel=1e-12)


BEYOND_FLOATS = a_problem(
    (1, 1, 1), {"A": (0, 0, 0.1875), "B": (5, 0, 0), "C": (0, 2, 0.015625)}, weights={"B": 0.5, "C": 0.5}
)
"""Tasks are the fourth powers of what a price is below, where alpha is 1/4: the path through floats does not survive it."""


def test_what_floats_do_not_reach_is_solved_in_decimals() -> None:
    wishes = [Wish(user.demand, user.weight) for user in BEYOND_FLOATS.users]
    assert not satiate(wishes, 0.25).relative_error < DIGITS

    found = solve(BEYOND_FLOATS, "alpha-tasks:0.25")

    assert found.tasks == pytest.approx(((1 - 0.015625 / 2) / 0.1875, 1 / 5, 1 / 2), rel=1e-12)
    assert found.multipliers is not None
    assert found.multipliers[0] == pytest.approx((0.5 / (1 / 5)) ** 0.25 / 5, rel=1e-9)


def test_more_users_than_decimals_can_do_in_time_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alpha_fair, "WORK_MAX", 10)

    with pytest.raises(
        SolverError, match=r"policy: expected a problem that alpha-tasks:0.25 can solve to 1e-09"
    ):
        solve(BEYOND_FLOATS, "alpha-tasks:0.25")


def test_a_user_who_wants_nothing_gets_nothing_and_costs_nothing() -> None:
    both, alone = nine_and_eighteen(caps={"A": 0}), a_problem((9, 18), {"B": (3, 1)})

    assert solve(both, "pf").tasks == (0.0, *solve(alone, "pf").tasks)
    assert solve(nine_and_eighteen(caps={"A": 0, "B": 0}), "pf").multipliers == (0.0, 0.0)


@pytest.mark.parametrize(
    "policy", ["alpha:0", "alpha:-1", "alpha:9", "alpha:nan", "alpha:two", "alpha:", "alpha-tasks:0.01"]
)
def test_what_is_no_alpha_is_refused(policy: str) -> None:
    with pytest.raises(
        SolverError, match=r"^policy: expected alpha(-tasks)?:A with A from 0.1 to 8, or inf, got"
    ):
        solve(nine_and_eighteen(), policy)
