"""The talk "Dominant Resource Fairness (DRF)" by Ghodsi et al. (paper 002). Its bar charts are lost in the text we have."""

from fractions import Fraction

import pytest

from tests.papers.certificates import exact_shares, is_asset_fair, is_drf, is_proportionally_fair
from tests.papers.problems import a_problem, floats, shares, tasks

F = Fraction


def test_slide_what_is_fair_sharing() -> None:
    """1/n each; who wants no more than 20 % leaves the rest to the others; weights 1 and 2 make a third and two thirds."""
    three = {"1": (1,), "2": (1,), "3": (1,)}

    assert tasks(a_problem((100,), three), "max-min") == pytest.approx(dict.fromkeys(three, 100 / 3))
    assert tasks(a_problem((100,), three, max_tasks={"1": 20}), "max-min") == {"1": 20, "2": 40, "3": 40}
    two = {"1": (1,), "2": (1,)}
    assert tasks(a_problem((100,), two, weights={"2": 2}), "max-min") == pytest.approx(
        {"1": 100 / 3, "2": 200 / 3}
    )


@pytest.mark.parametrize("policy", ["drf", "asset", "ceei", "max-min:cpus"])
def test_slide_single_resource_example(policy: str) -> None:
    """Tasks of 1 and of 3 CPUs: half of the CPUs each, three tasks for one, under every fair policy of one resource."""
    problem = a_problem((12,), {"1": (1,), "2": (3,)})

    assert tasks(problem, policy) == pytest.approx({"1": 6, "2": 2}, rel=1e-9)


def test_slide_model() -> None:
    """<2, 3, 1>: a task needs 2 of the first resource, 3 of the second, 1 of the third; given in multiples of that."""
    problem = a_problem((12, 12, 12), {"1": (2, 3, 1)})

    assert problem.used([1]) == (2, 3, 1)
    assert problem.used([tasks(problem, "drf")["1"]]) == (8, 12, 4)


def test_slide_how_is_fairness_solved_in_datacenters_today() -> None:
    """Machines of k = 14 slots, one task each, and equal numbers of slots for jobs: two jobs have 7 each on every machine."""
    problem = a_problem((40, 40), {"1": (2, 2), "2": (1, 0.5)}, machines=10)

    assert tasks(problem, "slots:14") == {"1": 70, "2": 70}


def test_slide_a_natural_policy_asset_fairness() -> None:
    """<70, 70>, tasks of <2, 2> and <1, 2>: 4x = 3y and 2x + 2y = 70: 15 and 20, sums of 60. User 1 has 30/70 of both."""
    users = {"1": (2, 2), "2": (1, 2)}
    assert is_asset_fair(exact_shares((70, 70), users), {"1": F(15), "2": F(20)})

    problem = a_problem((70, 70), users)
    assert tasks(problem, "asset") == {"1": 15, "2": 20}
    assert problem.used([15, 0]) == (30, 30)
    assert problem.used([0, 20]) == (20, 40)
    assert max(shares(problem, "asset")["1"]) == pytest.approx(30 / 70)
    assert max(shares(problem, "drf")["1"]) >= 1 / 2


def test_slide_dominant_resource() -> None:
    """<2, 1> of <10, 4>: 1/4 of memory is more than 1/5 of the CPUs, so memory is dominant, at 25 %."""
    problem = a_problem((10, 4), {"1": (2, 1)})

    assert problem.share(problem.users[0]) == (1 / 5, 1 / 4)


def test_slide_drf_against_ceei() -> None:
    """<9, 18>: DRF uses 7/9 of the memory, CEEI all: "more fair" against "better utilization"."""
    problem = a_problem((9, 18), {"1": (1, 4), "2": (3, 1)})

    assert problem.used(list(tasks(problem, "drf").values())) == (9, 14)
    assert problem.used(list(tasks(problem, "ceei").values())) == pytest.approx((9, 18), rel=1e-9)


def test_slide_a_lie_under_ceei_buys_both_resources() -> None:
    """User 2 claims <3, 2>: x + 3y = 9, 4x + 2y = 18: x = 18/5, y = 9/5. Its 54/11 CPUs and 18/11 GB become 27/5 and 18/5."""
    honest, lying = {"1": (1, 4), "2": (3, 1)}, {"1": (1, 4), "2": (3, 2)}
    exact = {"1": F(18, 5), "2": F(9, 5)}
    assert is_proportionally_fair(exact_shares((9, 18), lying), exact, (F(3, 2), F(1, 2)))

    before, after = a_problem((9, 18), honest), a_problem((9, 18), lying)
    assert tasks(after, "ceei") == pytest.approx(floats(exact), rel=1e-9)
    assert shares(before, "ceei")["2"] == pytest.approx([6 / 11, 1 / 11], rel=1e-9)
    assert shares(after, "ceei")["2"] == pytest.approx([3 / 5, 1 / 5], rel=1e-9)
    assert tasks(after, "drf")["2"] <= tasks(before, "drf")["2"]


def test_slide_gaming_utilisation_optimal_schedulers() -> None:
    """<100, 100>, two users of <1, 2>: 50 tasks, half each. One claims <2, 2> and is given all 50."""
    honest = a_problem((100, 100), {"1": (1, 2), "2": (1, 2)})
    lying = a_problem((100, 100), {"1": (2, 2), "2": (1, 2)})

    assert tasks(honest, "utilization") == pytest.approx({"1": 25, "2": 25})
    assert tasks(lying, "utilization") == pytest.approx({"1": 50, "2": 0}, abs=1e-6)
    assert tasks(lying, "drf")["1"] <= tasks(honest, "drf")["1"]


def test_slide_example_of_drf_asset_and_ceei() -> None:
    """<1000, 1000>, A <2, 3>, B <5, 1>; the chart's numbers are lost, these are the exact ones.

    Asset: 5x = 6y and 2x + 5y = 1000: 6000/37, 5000/37. DRF: 3x = 5y: 200, 120. CEEI: with both resources used up, x =
    4000/13 and y = 1000/13, memory would have the price -3/4; so CPU alone is used up, half of it each: 250, 100.
    """
    users = {"A": (2, 3), "B": (5, 1)}
    exact = exact_shares((1000, 1000), users)
    asset, drf, ceei = (
        {"A": F(6000, 37), "B": F(5000, 37)},
        {"A": F(200), "B": F(120)},
        {"A": F(250), "B": F(100)},
    )
    assert is_asset_fair(exact, asset)
    assert is_drf(exact, drf)
    assert is_proportionally_fair(exact, ceei, (2, 0))

    problem = a_problem((1000, 1000), users)
    assert tasks(problem, "asset") == pytest.approx(floats(asset))
    assert tasks(problem, "drf") == floats(drf)
    assert tasks(problem, "ceei") == pytest.approx(floats(ceei), rel=1e-9)


def test_slide_properties_of_policies_entries_without_a_tick() -> None:
    """Each missing tick by one of the examples: those of the talk here, the others in test_drf_ghodsi.

    Asset: no share guarantee (<70, 70>), no bottleneck fairness (theorem 2), no resource monotonicity (theorem 3). CEEI: not
    strategy-proof (<3, 2>), not population monotone (theorem 5), nor resource monotone, as DRF (theorem 6).
    """
    guarantee = a_problem((70, 70), {"1": (2, 2), "2": (1, 2)})
    for policy, holds in (("asset", False), ("ceei", True), ("drf", True)):
        assert all(max(parts) >= 0.5 - 1e-9 for parts in shares(guarantee, policy).values()) is holds
    bottleneck = a_problem((21, 21), {"1": (3, 2), "2": (4, 1)})
    for policy, holds in (("asset", False), ("ceei", True), ("drf", True)):
        first, second = shares(bottleneck, policy).values()
        assert (first[0] == pytest.approx(second[0], rel=1e-6)) is holds


def test_appendix_positive_demands_get_equal_dominant_shares() -> None:
    """ "Assume positive demands: DRF will allocate same dominant share to all users"; a zero demand may rise further."""
    positive = a_problem((10, 10, 10), {"1": (1, 2, 3), "2": (5, 1, 1), "3": (1, 1, 1)})
    with_zero = a_problem((10, 10), {"1": (1, 0), "2": (1, 1), "3": (0, 1)}, max_tasks={"1": 2})

    top = [max(parts) for parts in shares(positive, "drf").values()]
    assert top == pytest.approx([top[0]] * 3)
    assert shares(with_zero, "drf") == {
        "1": [pytest.approx(0.2), 0],
        "2": [pytest.approx(0.5), pytest.approx(0.5)],
        "3": [0, pytest.approx(0.5)],
    }
