"""Bonald and Roberts, "Enhanced Cluster Computing Performance through Proportional Fairness" (paper 000): section 2.

Its section 3 and its numbers of section 4 are in test_pf_traffic. Where the paper's own number cannot be right the test
says so and shows it; docs/errata.md has them all.
"""

from fractions import Fraction
from math import log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_master.solvers import registry
from tests.papers.certificates import (
    is_drf,
    is_feasible,
    is_max_min_fair,
    is_proportionally_fair,
    used,
)
from tests.papers.problems import Number, a_problem, floats, shares, tasks

F = Fraction
ONE = (1, 1)
"""Capacities normalised to 1, as everywhere in this paper."""


def two(first: tuple[Fraction | int, ...], second: tuple[Fraction | int, ...]) -> dict[str, list[Fraction]]:
    return {"1": [F(part) for part in first], "2": [F(part) for part in second]}


def test_section_2_3_max_min_gives_equal_task_volumes() -> None:
    """For J = 1, phi_i = 1 / sum_k a_k1, so that shares are proportional to what is asked: not locally fair."""
    users: dict[str, list[Fraction]] = {"1": [F(1, 2)], "2": [F(1, 4)], "3": [F(1, 20)]}
    assert is_max_min_fair(users, dict.fromkeys(users, F(5, 4)), dict.fromkeys(users, F(1)))

    problem = a_problem((1,), users)
    assert tasks(problem, "max-min") == pytest.approx(dict.fromkeys(users, 1.25))
    assert [part for (part,) in shares(problem, "max-min").values()] == pytest.approx([0.625, 0.3125, 0.0625])
    for policy in ("drf", "pf"):
        assert [part for (part,) in shares(problem, policy).values()] == pytest.approx([1 / 3] * 3)


def test_remark_1_needs_that_equals_are_treated_alike() -> None:
    """First come, first served is Pareto-efficient, scale-invariant and strategy-proof, and not locally fair.

    Job 1 has all of the one resource whatever anybody asks for, so that no claim changes any share.
    """
    for first, second in ((F(1, 2), F(1, 2)), (F(1, 7), F(1, 2)), (F(1, 2), F(1, 7))):
        problem = a_problem((1,), {"1": [first], "2": [second]})
        assert shares(problem, "fifo") == {"1": [pytest.approx(1)], "2": [0]}


def test_remark_2_dominant_resource_fairness_depends_on_what_is_no_bottleneck() -> None:
    """Equal phi of 2/3 use 1 of resource 1 and 8/9 of resource 2. Without resource 2, equal shares are phi = (1/2, 1).

    The paper prints (1, 2) for these, which would use twice what there is of resource 1.
    """
    with_both, without = two((1, F(1, 3)), (F(1, 2), 1)), two((1, 0), (F(1, 2), 0))
    assert is_drf(with_both, {"1": F(2, 3), "2": F(2, 3)})
    assert used(with_both, {"1": F(2, 3), "2": F(2, 3)}) == [1, F(8, 9)]
    assert is_drf(without, {"1": F(1, 2), "2": F(1)})
    assert used(without, {"1": F(1), "2": F(2)})[0] == 2
    assert not is_feasible(without, {"1": F(1), "2": F(2)})

    assert tasks(a_problem(ONE, with_both), "drf") == pytest.approx({"1": 2 / 3, "2": 2 / 3})
    assert tasks(a_problem(ONE, without), "drf") == pytest.approx({"1": 1 / 2, "2": 1})

    # Proportional fairness uses resource 2 up while it is there.
    assert is_proportionally_fair(with_both, {"1": F(3, 5), "2": F(4, 5)}, (F(3, 2), F(1, 2)))
    assert tasks(a_problem(ONE, with_both), "pf") == pytest.approx({"1": 3 / 5, "2": 4 / 5}, rel=1e-9)
    assert tasks(a_problem(ONE, without), "pf") == pytest.approx({"1": 1 / 2, "2": 1}, rel=1e-9)


Row = tuple[Fraction | int, Fraction | int]
PROPORTIONAL: dict[str, tuple[tuple[Row, Row], Row, tuple[Fraction, Fraction]]] = {
    "proposition 5, true": (((F(1, 2), 1), (1, F(1, 2))), (1, 1), (F(2, 3), F(2, 3))),
    "proposition 5, claimed": (((F(2, 3), 1), (1, F(1, 2))), (2, 0), (F(3, 4), F(1, 2))),
    "remark 3": (((1, 1), (1, F(1, 2))), (2, 0), (F(1, 2), F(1, 2))),
    "remark 4, true": (((F(1, 2), 1), (1, F(1, 3))), (F(3, 2), F(1, 2)), (F(4, 5), F(3, 5))),
    "remark 4, claimed": (((F(2, 3), 1), (1, F(1, 3))), (2, 0), (F(3, 4), F(1, 2))),
}
"""a_1 and a_2, nu, phi. As printed, but for nu of "remark 4, true"."""


@pytest.mark.parametrize("place", PROPORTIONAL)
def test_propositions_and_remarks_3_and_4(place: str) -> None:
    users, prices, phi = PROPORTIONAL[place]
    exact = dict(zip("12", phi, strict=True))
    assert is_proportionally_fair(two(*users), exact, prices)

    problem = a_problem(ONE, two(*users))
    solution = registry.solve(problem, "pf")
    assert tasks(problem, "pf") == pytest.approx(floats(exact), rel=1e-9)
    assert solution.multipliers == pytest.approx([float(price) for price in prices], abs=1e-6)


def test_remark_4_prints_multipliers_that_are_not_those_of_its_allocation() -> None:
    """nu = (1, 1) asks 1/phi_1 = 1/2 + 1, so phi_1 = 2/3 and not 4/5; (3/2, 1/2) gives both."""
    users = two((F(1, 2), 1), (1, F(1, 3)))

    assert not is_proportionally_fair(users, {"1": F(4, 5), "2": F(3, 5)}, (1, 1))
    assert 1 / (F(1, 2) * 1 + 1 * 1) == F(2, 3)
    assert 1 / (F(1, 2) * F(3, 2) + 1 * F(1, 2)) == F(4, 5)
    assert 1 / (1 * F(3, 2) + F(1, 3) * F(1, 2)) == F(3, 5)


def test_remark_3_and_4_a_lie_may_cost_tasks_though_it_buys_a_share() -> None:
    """Tasks fall for both jobs in both remarks. Of resource 1 alone, of which job 1 claims more, it also gets more."""
    for true, claimed in (("proposition 5, true", "remark 3"), ("remark 4, true", "remark 4, claimed")):
        (a_true, _), _, before = PROPORTIONAL[true]
        (a_claimed, _), _, after = PROPORTIONAL[claimed]
        assert all(late < early for late, early in zip(after, before, strict=True))
        assert after[0] * a_claimed[0] > before[0] * a_true[0]


def test_proposition_2_speaks_of_tasks_and_not_of_every_share() -> None:
    """Under drf two jobs of (1, 1/3) have 1/2 task each. Claiming (1, 1) gives job 1 three times its share of resource 2.

    It runs no more tasks for that; read literally, section 2.2 would call drf not strategy-proof.
    """
    honest = two((1, F(1, 3)), (1, F(1, 3)))
    lying = two((1, 1), (1, F(1, 3)))
    assert is_drf(honest, {"1": F(1, 2), "2": F(1, 2)})
    assert is_drf(lying, {"1": F(1, 2), "2": F(1, 2)})

    before, after = a_problem(ONE, honest), a_problem(ONE, lying)
    assert tasks(before, "drf") == pytest.approx({"1": 0.5, "2": 0.5})
    assert tasks(after, "drf") == pytest.approx({"1": 0.5, "2": 0.5})
    assert shares(before, "drf")["1"][1] == pytest.approx(1 / 6)
    assert shares(after, "drf")["1"][1] == pytest.approx(1 / 2)


@pytest.mark.parametrize("place", ["remark 3", "remark 4, claimed", "proposition 5, claimed"])
def test_section_2_4_what_is_no_bottleneck_has_no_impact(place: str) -> None:
    """nu_2 = 0 there: without resource 2, or with a tenth of what they need of it, both jobs run what they ran."""
    (first, second), _, phi = PROPORTIONAL[place]
    expected = {"1": float(phi[0]), "2": float(phi[1])}

    for part in (F(0), F(1, 10), F(1)):
        users = two((first[0], first[1] * part), (second[0], second[1] * part))
        assert tasks(a_problem(ONE, users), "pf") == pytest.approx(expected, rel=1e-8)


def test_section_2_5_the_family_is_alpha_fair_with_one_minus_alpha_in_the_exponent() -> None:
    """The printed U = x^alpha / (1 - alpha) falls with x for alpha > 1: more tasks would be worth less.

    With x^(1 - alpha) / (1 - alpha) the derivative is x^-alpha: 1/x, and so the logarithm, for alpha = 1.
    """

    def as_printed(x: float, alpha: float) -> float:
        return float(x**alpha) / (1 - alpha)

    def corrected(x: float, alpha: float) -> float:
        return float(x ** (1 - alpha)) / (1 - alpha)

    assert as_printed(2, 3) < as_printed(1, 3)
    for alpha in (0.5, 3):
        assert corrected(2, alpha) > corrected(1, alpha)
    near_one = 1 + 1e-7
    assert corrected(2, near_one) - corrected(1, near_one) == pytest.approx(log(2), rel=1e-6)


def test_section_2_5_limits_of_the_family() -> None:
    """Proportional fairness at alpha = 1, max-min fairness as alpha grows."""
    problem = a_problem(ONE, two((1, F(1, 10)), (F(1, 2), 1)))

    assert tasks(problem, "alpha-tasks:1") == pytest.approx(tasks(problem, "pf"), rel=1e-8)
    most_equal = tasks(problem, "max-min")
    gaps = [
        max(abs(count - most_equal[name]) for name, count in tasks(problem, f"alpha-tasks:{alpha}").items())
        for alpha in ("1", "2", "4", "8", "inf")
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-2] < gaps[0] / 4
    assert gaps[-1] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("alpha", "x"), [(2.0, 4), (0.5, 4), (3.0, 9)])
def test_proposition_7_no_other_alpha_in_tasks_is_locally_fair(alpha: float, x: int) -> None:
    """The proof's two jobs, a_11 = 1/2 and a_21 = 1/(2x). (7) gives phi_1^-alpha = x phi_2^-alpha: phi_2 = x^(1/alpha) phi_1.

    With phi_1 / 2 + phi_2 / (2x) = 1 the shares are in the ratio 1 : x^(1/alpha - 1), equal for alpha = 1 alone.
    """
    problem = a_problem((1,), {"1": [F(1, 2)], "2": [F(1, 2 * x)]})
    ratio = x ** (1 / alpha - 1)

    ((first,), (second,)) = shares(problem, f"alpha-tasks:{alpha:g}").values()

    assert second / first == pytest.approx(ratio, rel=1e-8)
    assert abs(ratio - 1) > 0.1
    ((first,), (second,)) = shares(problem, "pf").values()
    assert (first, second) == pytest.approx((0.5, 0.5))
    if (alpha, x) == (2.0, 4):
        assert ratio == 1 / sqrt(4)


def test_section_2_5_other_utilities_have_none_of_the_properties_of_remark_1() -> None:
    """The proof's example with alpha = 2, x = 4: phi_2 = 2 phi_1, so 4/3 and 8/3 tasks, and shares of 2/3 and 1/3.

    Job 2 has less than half; for twice the task it has more of the resource; and claiming job 1's it has half, and could
    run 4 of its own.
    """

    def share_of_2(claimed: Fraction) -> float:
        problem = a_problem((1,), {"1": [F(1, 2)], "2": [claimed]})
        return shares(problem, "alpha-tasks:2")["2"][0]

    assert tasks(a_problem((1,), {"1": [F(1, 2)], "2": [F(1, 8)]}), "alpha-tasks:2") == pytest.approx(
        {"1": 4 / 3, "2": 8 / 3}, rel=1e-8
    )
    assert share_of_2(F(1, 8)) == pytest.approx(1 / 3)
    assert share_of_2(F(1, 4)) > share_of_2(F(1, 8)) + 0.05
    assert share_of_2(F(1, 2)) / (1 / 8) == pytest.approx(4)


def test_equation_9_finds_the_multipliers_of_remark_4() -> None:
    """nu_j <- (nu_j + gamma (sum_i psi_i a_ij - 1))^+ with a small fixed step, on four numbers."""
    users = ((0.5, 1.0), (1.0, 1 / 3))
    nu, psi = [1.0, 1.0], [0.0, 0.0]
    for _ in range(2_000):
        psi = [1 / sum(part * price for part, price in zip(row, nu, strict=True)) for row in users]
        nu = [
            max(0.0, price + 0.1 * (sum(count * row[j] for count, row in zip(psi, users, strict=True)) - 1))
            for j, price in enumerate(nu)
        ]

    assert nu == pytest.approx([1.5, 0.5], rel=1e-9)
    assert psi == pytest.approx([0.8, 0.6], rel=1e-9)


amount = st.integers(1, 20).map(lambda n: F(n, 20))
jobs = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(amount, min_size=width, max_size=width), min_size=1, max_size=5)
)


def named(rows: list[list[Fraction]]) -> dict[str, list[Fraction]]:
    return {str(place): row for place, row in enumerate(rows)}


@pytest.mark.parametrize("policy", ["drf", "pf"])
@given(jobs)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_propositions_1_and_4_sharing_incentive(policy: str, rows: list[list[Fraction]]) -> None:
    given_shares = shares(a_problem((1,) * len(rows[0]), named(rows)), policy)

    assert all(max(parts) >= (1 - 1e-9) / len(rows) for parts in given_shares.values())


@pytest.mark.parametrize("policy", ["drf", "pf"])
@given(jobs, st.lists(st.integers(1, 50), min_size=5, max_size=5))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_propositions_3_and_6_scale_invariance(
    policy: str, rows: list[list[Fraction]], scales: list[int]
) -> None:
    capacity: tuple[Number, ...] = (1,) * len(rows[0])
    scaled = [[part * by for part in row] for row, by in zip(rows, scales, strict=False)]

    before = shares(a_problem(capacity, named(rows)), policy)
    after = shares(a_problem(capacity, named(scaled)), policy)

    for name, parts in before.items():
        assert after[name] == pytest.approx(parts, rel=1e-7)


@given(jobs)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_equation_5_the_multipliers_add_up_to_the_number_of_jobs(rows: list[list[Fraction]]) -> None:
    solution = registry.solve(a_problem((1,) * len(rows[0]), named(rows)), "pf")

    assert solution.multipliers is not None
    assert sum(solution.multipliers) == pytest.approx(len(rows), rel=1e-7)
