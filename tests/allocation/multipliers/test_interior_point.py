"""Multipliers from cold: their certificate, what leaves them as they are, and that the work does not grow."""

import random
from itertools import pairwise
from math import exp, inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_master.allocation.multipliers.certificate import Multipliers, certify
from fairlead_master.allocation.multipliers.dual import PRICE_FLOOR, floored, load
from fairlead_master.allocation.multipliers.interior_point import solve
from tests.solvers.conditions import optimality_error

Classes = list[tuple[list[float], float]]

ALPHAS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)

entries = st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-3, 1e3))


@st.composite
def some_classes(draw: st.DrawFn) -> Classes:
    width = draw(st.integers(1, 6))
    rows = st.lists(entries, min_size=width, max_size=width).filter(any)
    return draw(st.lists(st.tuples(rows, st.floats(0.01, 100.0)), min_size=1, max_size=12))


def units(classes: Classes, found: Multipliers, alpha: float = 1.0) -> list[float]:
    return [
        weight * sum(need * value for need, value in zip(row, found.values, strict=True)) ** (-1.0 / alpha)
        for row, weight in classes
    ]


def shares(classes: Classes, found: Multipliers, alpha: float = 1.0) -> list[list[float]]:
    amounts = units(classes, found, alpha)
    return [[need * amount for need in row] for (row, _), amount in zip(classes, amounts, strict=True)]


def assert_optimal(classes: Classes, found: Multipliers, alpha: float = 1.0) -> None:
    rows, weights = [row for row, _ in classes], [weight for _, weight in classes]
    limits = [inf] * len(rows)
    assert optimality_error(rows, weights, limits, units(classes, found, alpha), found.values, alpha) < 1e-11
    assert found.certificate.relative_error < 1e-9
    assert found.certificate.overload < 1e-12
    assert found.certificate.slackness < 1e-12
    assert found.certificate.gap < 1e-12


@given(some_classes())
def test_every_answer_is_optimal_and_says_so(classes: Classes) -> None:
    found = solve(classes)

    assert_optimal(classes, found)
    assert sum(found.values) == pytest.approx(sum(weight for _, weight in classes), rel=1e-14)


@given(some_classes(), st.sampled_from(ALPHAS))
@settings(max_examples=200)
def test_other_alphas_are_solved_by_the_same_path(classes: Classes, alpha: float) -> None:
    similar = [([min(need, 1.0) for need in row], min(max(weight, 0.5), 2.0)) for row, weight in classes]

    assert_optimal(similar, solve(similar, alpha=alpha), alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_one_user_of_weight_three_is_three_users(alpha: float) -> None:
    one = solve([([1.0, 0.2], 3.0), ([0.3, 1.0], 1.0)], alpha=alpha)
    three = solve([([1.0, 0.2], 1.0)] * 3 + [([0.3, 1.0], 1.0)], alpha=alpha)

    assert one.values == pytest.approx(three.values, rel=1e-12)


@given(some_classes(), st.lists(st.floats(-12, 12), min_size=12, max_size=12))
def test_scaling_a_row_leaves_the_shares_as_they_are(classes: Classes, exponents: list[float]) -> None:
    scaled = [
        ([need * exp(power) for need in row], weight)
        for (row, weight), power in zip(classes, exponents, strict=False)
    ]

    for was, now in zip(shares(classes, solve(classes)), shares(scaled, solve(scaled)), strict=True):
        assert now == pytest.approx(was, rel=1e-9)


@given(some_classes(), st.randoms(use_true_random=False))
def test_the_order_of_classes_and_resources_does_not_matter(classes: Classes, rng: random.Random) -> None:
    turned = [(row[::-1], weight) for row, weight in classes]
    order = rng.sample(range(len(classes)), len(classes))

    found = solve([turned[place] for place in order])

    expected = shares(classes, solve(classes))
    for place, given_shares in zip(order, shares([turned[place] for place in order], found), strict=True):
        assert given_shares[::-1] == pytest.approx(expected[place], rel=1e-9)


@given(some_classes())
def test_a_duplicated_resource_changes_nobodys_units(classes: Classes) -> None:
    doubled = [([*row, row[0]], weight) for row, weight in classes]

    found = solve(doubled)

    assert_optimal(doubled, found)
    assert units(doubled, found) == pytest.approx(units(classes, solve(classes)), rel=1e-9)


def test_one_class_pays_for_its_dominant_resource_only() -> None:
    assert solve([([0.25, 0.5, 0.0], 3.0)]).values == (0.0, 3.0, 0.0)


def test_one_resource_costs_all_there_is() -> None:
    found = solve([([0.5], 1.0), ([0.1], 2.0), ([7.0], 1.5)])

    assert found.values == (4.5,)


def test_what_nobody_needs_costs_nothing() -> None:
    assert solve([([1.0, 0.0, 0.5], 1.0), ([0.5, 0.0, 1.0], 1.0)]).values == pytest.approx((1.0, 0.0, 1.0))


def test_a_class_that_needs_only_what_others_leave_pays_its_weight_for_it() -> None:
    found = solve([([1.0, 0.1], 5.0), ([1.0, 0.2], 4.0), ([0.0, 1.0], 1e-13)])

    assert units([([0.0, 1.0], 1e-13)], found)[0] > 0.8
    assert_optimal([([1.0, 0.1], 5.0), ([1.0, 0.2], 4.0), ([0.0, 1.0], 1e-13)], found)


@pytest.mark.parametrize("apart", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_resources_that_are_nearly_the_same_lose_no_digits(apart: float) -> None:
    rng = random.Random(4)
    for _ in range(40):
        width = rng.randint(2, 8)
        classes = [
            ([1.0 + apart * rng.random() for _ in range(width)], 1.0 + rng.random())
            for _ in range(rng.randint(2, 30))
        ]

        assert_optimal(classes, solve(classes))


def test_rows_twenty_orders_of_magnitude_apart_are_no_harder() -> None:
    rng = random.Random(7)
    for _ in range(200):
        width = rng.randint(1, 8)
        classes = [
            ([exp(rng.gauss(0, 6)) for _ in range(width)], exp(rng.gauss(0, 3)))
            for _ in range(rng.randint(1, 30))
        ]

        found = solve(classes)

        assert_optimal(classes, found)
        assert found.iterations <= 30


def random_classes(count: int, width: int, seed: int = 1) -> Classes:
    rng = random.Random(seed)
    return [([rng.random() for _ in range(width)], 1.0 + rng.random()) for _ in range(count)]


def test_the_number_of_passes_does_not_grow_with_the_classes() -> None:
    passes = [solve(random_classes(count, 4)).iterations for count in (4, 40, 400, 4_000)]

    assert max(passes) <= 16
    assert all(after <= before + 3 for before, after in pairwise(passes))


def test_thirty_two_resources() -> None:
    classes = random_classes(60, 32)

    found = solve(classes)

    assert_optimal(classes, found)
    assert found.iterations <= 20


def test_a_start_nearby_takes_a_few_passes() -> None:
    classes = random_classes(100, 8)
    near = solve(classes).values

    again = solve([(row, weight * 1.001) for row, weight in classes[1:]], near)

    assert again.iterations <= 6
    assert_optimal([(row, weight * 1.001) for row, weight in classes[1:]], again)


def test_a_start_that_is_no_use_is_not_used() -> None:
    classes: Classes = [([1.0, 0.0], 1.0), ([0.0, 1.0], 1.0)]

    for start in ((0.0, 0.0), (2.0, 0.0), (1e-300, 2.0)):
        assert_optimal(classes, solve(classes, start))


def test_the_certificate_claims_nothing_where_floats_end() -> None:
    assert certify([([1.0, 0.0], 1.0), ([0.0, 1.0], 1.0)], (1e-300, 2.0)).relative_error == inf


def test_the_certificate_sees_multipliers_of_the_wrong_size() -> None:
    classes: Classes = [([1.0, 0.5], 1.0), ([0.5, 1.0], 1.0)]

    certificate = certify(classes, (0.9, 0.9))

    assert certificate.overload == pytest.approx(1 / 9)
    assert certificate.relative_error == pytest.approx(1 / 9)


@given(some_classes(), st.integers(0, 5), st.floats(1e-9, 0.3))
def test_the_certificate_bounds_the_error_of_multipliers_that_are_off(
    classes: Classes, place: int, part: float
) -> None:
    right = solve(classes)
    off = list(right.values)
    off[place % len(off)] += part * sum(right.values)

    certificate = certify(classes, off)

    exact = units(classes, right)
    error = max(
        abs(weight / sum(need * value for need, value in zip(row, off, strict=True)) / amount - 1)
        for (row, weight), amount in zip(classes, exact, strict=True)
    )
    assert error <= certificate.relative_error + 1e-11


def test_loads_are_those_of_the_allocation() -> None:
    classes: Classes = [([1 / 9, 4 / 18], 1.0), ([3 / 9, 1 / 18], 1.0)]

    assert load(classes, (1.8, 0.2)) == pytest.approx([1.0, 1.0], rel=1e-14)
    assert max(load(classes, (2.0, 0.0))) == pytest.approx(13 / 12)


def test_floored_multipliers_can_be_divided_by() -> None:
    assert floored((0.0, 2.0), 2.0) == [2 * PRICE_FLOOR, 2.0]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([], "classes: expected at least one"),
        ([([1.0], 1.0), ([1.0, 2.0], 1.0)], r"classes\[1\]: expected 1 resources"),
        ([([0.0, 0.0], 1.0)], r"classes\[0\]: expected finite demand"),
        ([([-1.0, 1.0], 1.0)], r"classes\[0\]: expected finite demand"),
        ([([1.0, inf], 1.0)], r"classes\[0\]: expected finite demand"),
        ([([1.0], 0.0)], r"classes\[0\]: expected a finite weight"),
        ([([1.0], inf)], r"classes\[0\]: expected a finite weight"),
    ],
)
def test_what_is_no_class_is_refused(classes: Classes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(classes)


@pytest.mark.parametrize("alpha", [0.0, -1.0, inf])
def test_what_is_no_alpha_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha: expected"):
        solve([([1.0], 1.0)], alpha=alpha)
