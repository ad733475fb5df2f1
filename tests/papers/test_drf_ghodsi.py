"""Ghodsi et al., "Dominant Resource Fairness", in the Chinese translation we have (paper 001): sections 4.1 to 7.2.

Each answer is derived by hand in fractions and proven by a certificate; then the solvers are compared with it. What the
paper rounds, and the two places where its number or its wording is off, are in docs/errata.md.
"""

from fractions import Fraction

import pytest

from fairlead_master.solvers import registry
from tests.allocation.builders import add_agent, add_framework, an_allocator, cpus_and_mem
from tests.papers.certificates import (
    exact_shares,
    is_asset_fair,
    is_drf,
    is_proportionally_fair,
)
from tests.papers.problems import a_problem, floats, shares, tasks

F = Fraction
EXAMPLE = ((9, 18), {"A": (1, 4), "B": (3, 1)})
"""Section 4.1: 9 CPUs and 18 GB; a task of A takes 1 CPU and 4 GB, one of B 3 CPUs and 1 GB."""


def printed(number: str) -> object:
    """A number as the paper rounds it: within half of its last place."""
    places = len(number.partition(".")[2])
    return pytest.approx(float(number), abs=0.5 * 10**-places)


def test_section_4_1_drf_gives_three_and_two_tasks() -> None:
    """2x/9 = y/3 as memory and CPU shares; x + 3y <= 9 binds: x = 3, y = 2, both shares 2/3 (figure 3)."""
    exact = {"A": F(3), "B": F(2)}
    assert is_drf(exact_shares(*EXAMPLE), exact)

    problem = a_problem(*EXAMPLE)
    assert tasks(problem, "drf") == floats(exact)
    assert problem.used([3, 0]) == (3, 12)
    assert problem.used([0, 2]) == (6, 2)
    assert {name: max(part) for name, part in shares(problem, "drf").items()} == pytest.approx(
        {"A": 2 / 3, "B": 2 / 3}
    )


def test_section_4_1_what_a_satisfied_user_leaves_goes_to_the_others() -> None:
    """The paper says so without numbers. If A wants one task: 3y <= 8, so y = 8/3."""
    problem = a_problem(*EXAMPLE, max_tasks={"A": 1})

    assert tasks(problem, "drf") == pytest.approx({"A": 1, "B": 8 / 3})


def test_section_4_1_who_does_not_need_what_is_used_up_goes_on() -> None:
    """ "Users that do not need that resource can still get higher shares", without numbers. Half of memory each for B and C
    uses it up; B then has a quarter of the CPUs, and A goes on from a half to the three quarters that are left.
    """
    users = {"A": (1, 0), "B": (1, 2), "C": (0, 1)}
    exact = {"A": F(30), "B": F(10), "C": F(20)}
    assert is_drf(exact_shares((40, 40), users), exact)

    assert tasks(a_problem((40, 40), users), "drf") == pytest.approx(floats(exact))
    assert registry.solve(a_problem((40, 40), users), "drf", discrete=True).tasks == (30, 10, 20)


def test_section_4_3_dominant_shares_are_in_the_ratio_of_the_weights() -> None:
    """Weights 2 and 1: (2x/9) / 2 = (y/3) / 1, so x = 3y; 4x + y <= 18 binds: y = 18/13, x = 54/13."""
    problem = a_problem(*EXAMPLE, weights={"A": 2, "B": 1})

    assert tasks(problem, "drf") == pytest.approx({"A": 54 / 13, "B": 18 / 13})
    parts = shares(problem, "drf")
    assert max(parts["A"]) / max(parts["B"]) == pytest.approx(2)


def test_section_4_3_a_weight_may_differ_by_resource() -> None:
    """s_i = max_j u_ij / w_ij. Memory weighs 2 for A: s_A = max(x/9, (2x/9) / 2) = x/9, s_B = y/3, so x = 3y.

    CPU binds at 6y = 9 and memory at 13y = 18, which comes first: y = 18/13.
    """
    problem = a_problem(*EXAMPLE, weights={"A": (1, 2), "B": (1, 1)})

    assert tasks(problem, "drf") == pytest.approx({"A": 54 / 13, "B": 18 / 13})


def test_section_4_3_all_weights_one_is_drf() -> None:
    assert tasks(a_problem(*EXAMPLE, weights={"A": 1, "B": 1}), "drf") == {"A": 3, "B": 2}


def test_section_5_1_asset_fairness() -> None:
    """A CPU is worth 2 GB, so a task of A costs 6 and one of B 7: 6x = 7y; x + 3y <= 9 binds: y = 54/25, x = 63/25."""
    exact = {"A": F(63, 25), "B": F(54, 25)}
    assert is_asset_fair(exact_shares(*EXAMPLE), exact)

    problem = a_problem(*EXAMPLE)
    given = tasks(problem, "asset")
    assert given == pytest.approx(floats(exact), rel=1e-12)
    assert (given["A"], given["B"]) == (printed("2.52"), printed("2.16"))
    assert problem.used([given["A"], 0]) == pytest.approx((2.52, 10.08))
    assert problem.used([0, given["B"]]) == pytest.approx((6.48, 2.16))
    assert problem.used([given["A"], 0]) == (printed("2.5"), printed("10.1"))
    assert problem.used([0, given["B"]]) == (printed("6.5"), printed("2.2"))


def test_theorem_1_asset_fairness_violates_the_sharing_incentive() -> None:
    """Sums of 4 and 2 a task: y = 2x; memory 5x <= 30 binds: x = 6, y = 12, bundles <6, 18> and <12, 12>, both 24.

    User 2 gets less than 15 of either resource, half of which would be its own.
    """
    users = {"1": (1, 3), "2": (1, 1)}
    assert is_asset_fair(exact_shares((30, 30), users), {"1": F(6), "2": F(12)})

    problem = a_problem((30, 30), users)
    assert tasks(problem, "asset") == {"1": 6, "2": 12}
    assert problem.used([6, 0]) == (6, 18)
    assert problem.used([0, 12]) == (12, 12)
    assert max(problem.used([0, 12])) < 30 / 2
    assert max(shares(problem, "drf")["2"]) >= 1 / 2


def test_theorem_2_asset_fairness_violates_bottleneck_fairness() -> None:
    """Sums of 5 each: 7x <= 21 binds, three tasks each, 15 in all each; user 1 has 3/7 of the resource both need most."""
    users = {"1": (3, 2), "2": (4, 1)}
    assert is_asset_fair(exact_shares((21, 21), users), {"1": F(3), "2": F(3)})

    problem = a_problem((21, 21), users)
    assert tasks(problem, "asset") == {"1": 3, "2": 3}
    assert sum(problem.used([3, 0])) == sum(problem.used([0, 3])) == 15
    assert shares(problem, "asset")["1"][0] == pytest.approx(3 / 7)
    assert shares(problem, "drf")["1"][0] == pytest.approx(1 / 2)


def test_theorem_3_asset_fairness_is_not_resource_monotone() -> None:
    """<77, 77>: 6x = 2y and 4x + y = 77: x = 11, y = 33. <77, 154>: 10x = 3y and 4x + y = 77: x = 21/2, y = 35."""
    users = {"A": (4, 2), "B": (1, 1)}
    assert is_asset_fair(exact_shares((77, 77), users), {"A": F(11), "B": F(33)})
    assert is_asset_fair(exact_shares((77, 154), users), {"A": F(21, 2), "B": F(35)})

    before, after = a_problem((77, 77), users), a_problem((77, 154), users)
    assert tasks(before, "asset") == {"A": 11, "B": 33}
    assert before.used([11, 0]) == (44, 22)
    assert before.used([0, 33]) == (33, 33)
    assert [sum(part) for part in shares(before, "asset").values()] == pytest.approx([66 / 77, 66 / 77])

    assert tasks(after, "asset") == {"A": 10.5, "B": 35}
    assert after.used([10.5, 0]) == (42, 21)
    assert after.used([0, 35]) == (35, 35)
    assert [sum(part) for part in shares(after, "asset").values()] == pytest.approx([105 / 154, 105 / 154])


def test_section_5_2_ceei() -> None:
    """Max x y with both resources used up: x + 3y = 9, 4x + y = 18: x = 45/11, y = 18/11; prices 9/5 and 1/5."""
    exact = {"A": F(45, 11), "B": F(18, 11)}
    assert is_proportionally_fair(exact_shares(*EXAMPLE), exact, (F(9, 5), F(1, 5)))

    problem = a_problem(*EXAMPLE)
    for policy in ("ceei", "pf"):
        given = tasks(problem, policy)
        assert given == pytest.approx(floats(exact), rel=1e-9)
        assert problem.used([given["A"], 0]) == (printed("4.1"), printed("16.4"))
        assert problem.used([0, given["B"]]) == (printed("4.9"), printed("1.6"))


def test_section_5_3_the_market_leaves_over_what_nobody_is_short_of() -> None:
    """ "Every resource is allocated" under CEEI, which is so where all prices are positive, as in the example.

    Two users of <2, 1>: half of the CPUs each, price 2 and 0, and half of the memory is left.
    """
    users = {"A": (2, 1), "B": (2, 1)}
    assert is_proportionally_fair(exact_shares((12, 12), users), {"A": F(3), "B": F(3)}, (2, 0))

    problem = a_problem((12, 12), users)
    assert problem.used(list(tasks(problem, "ceei").values())) == pytest.approx((12, 6), rel=1e-9)


def test_theorem_4_ceei_is_not_strategy_proof() -> None:
    """16x + y = 100 and x + 2y = 100: x = 100/31, y = 1500/31; with <16, 8> instead: x = 25/6, y = 100/3.

    1500/31 is 48.4; the paper rounds it to 48.8.
    """
    honest, lying = {"1": (16, 1), "2": (1, 2)}, {"1": (16, 8), "2": (1, 2)}
    before = {"1": F(100, 31), "2": F(1500, 31)}
    after = {"1": F(25, 6), "2": F(100, 3)}
    assert is_proportionally_fair(exact_shares((100, 100), honest), before, (F(29, 15), F(1, 15)))
    assert is_proportionally_fair(exact_shares((100, 100), lying), after, (1, 1))
    assert (float(before["1"]), float(after["1"])) == (printed("3.2"), printed("4.2"))
    assert (float(before["2"]), float(after["2"])) == (printed("48.4"), printed("33.3"))
    assert float(before["2"]) != printed("48.8")

    assert tasks(a_problem((100, 100), honest), "ceei") == pytest.approx(floats(before), rel=1e-9)
    assert tasks(a_problem((100, 100), lying), "ceei") == pytest.approx(floats(after), rel=1e-9)
    told = [tasks(a_problem((100, 100), users), "drf")["1"] for users in (honest, lying)]
    assert told[1] <= told[0]


def test_theorem_5_ceei_is_not_population_monotone() -> None:
    """Three users: prices u and 3 - u make 100/(3 + 3u), 100/(48 - 15u) and 100/(3 + 15u) tasks, by (3) of paper 000.

    Resource 1 is used up where 4/(3 + 3u) + 1/(48 - 15u) + 16/(3 + 15u) = 1, which brackets u below; resource 2 is then
    used up as well, since sum_i x_i a_i . prices = 3. Two users: 4x + y = 100, x + 16y = 100: 500/21 and 100/21.
    """
    three = {"1": (4, 1), "2": (1, 16), "3": (16, 1)}
    two = {name: three[name] for name in ("1", "2")}

    def need(u: Fraction) -> Fraction:
        return 4 / (3 + 3 * u) + 1 / (48 - 15 * u) + 16 / (3 + 15 * u)

    low, high = F(1), F(5, 2)
    assert need(low) > 1 > need(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if need(middle) > 1 else (low, middle)
    first = {"1": 100 / (3 + 3 * low), "2": 100 / (48 - 15 * low), "3": 100 / (3 + 15 * low)}
    assert tuple(floats(first).values()) == (printed("11.3"), printed("5.4"), printed("3.1"))

    second = {"1": F(500, 21), "2": F(100, 21)}
    prices = (F(11, 15), F(19, 15))
    assert is_proportionally_fair(exact_shares((100, 100), two), second, prices)
    assert tuple(floats(second).values()) == (printed("23.8"), printed("4.8"))

    assert tasks(a_problem((100, 100), three), "ceei") == pytest.approx(floats(first), rel=1e-9)
    assert tasks(a_problem((100, 100), two), "ceei") == pytest.approx(floats(second), rel=1e-9)
    assert second["2"] < first["2"]
    with_drf = [tasks(a_problem((100, 100), users), "drf")["2"] for users in (three, two)]
    assert with_drf[1] >= with_drf[0]


@pytest.mark.parametrize(("policy", "before"), [("drf", F(2, 3)), ("asset", F(4, 5))])
def test_table_2_population_monotonicity_needs_positive_demands(policy: str, before: Fraction) -> None:
    """Two users of (1, 0), one of (1, 1), one of (0, 1). When one of the first leaves, the third rises, and the last falls.

    DRF: a third each of resource 1, so 2/3 of resource 2 for the last; then halves. Asset: 2/5, 2/5 and 1/5 of resource 1,
    4/5 for the last; then 2/3, 1/3 and 2/3. The talk says that positive demands are assumed, for DRF.
    """
    rest = {"stays": (1, 0), "both": (1, 1), "last": (0, 1)}
    after = F(1, 2) if policy == "drf" else F(2, 3)

    assert tasks(a_problem((1, 1), {"leaves": (1, 0)} | rest), policy)["last"] == pytest.approx(float(before))
    assert tasks(a_problem((1, 1), rest), policy)["last"] == pytest.approx(float(after))


@pytest.mark.parametrize("policy", ["drf", "ceei"])
def test_theorem_6_more_of_a_resource_takes_some_from_user_a(policy: str) -> None:
    """<2, 1> and <1, 2> of equal totals c, then <c, 4c>: each must have half of its dominant resource.

    Before, 2x + y = x + 2y = c: a third of c each, A with 2/3 of resource 1. After, both need resource 1 most (2/c, and
    1/c against 2/4c), so half of it goes to each: x = c/4, y = c/2. A comes down from 2/3 of resource 1 to 1/2.
    """
    users = {"A": (2, 1), "B": (1, 2)}
    before, after = {"A": F(4), "B": F(4)}, {"A": F(3), "B": F(6)}
    assert is_drf(exact_shares((12, 12), users), before)
    assert is_drf(exact_shares((12, 48), users), after)
    assert is_proportionally_fair(exact_shares((12, 12), users), before, (1, 1))
    assert is_proportionally_fair(exact_shares((12, 48), users), after, (2, 0))

    assert tasks(a_problem((12, 12), users), policy) == pytest.approx(floats(before), rel=1e-9)
    assert tasks(a_problem((12, 48), users), policy) == pytest.approx(floats(after), rel=1e-9)
    assert shares(a_problem((12, 12), users), policy)["A"][0] == pytest.approx(2 / 3)
    assert shares(a_problem((12, 48), users), policy)["A"][0] == pytest.approx(1 / 2)


def test_section_7_1_figure_8_as_fluid_shares() -> None:
    """48 nodes of 4 CPUs and 14 GB as one pool of 192 and 672.

    First <1, 10> and <1, 1>: shares 10x/672 = y/192 = s, CPU 67.2s + 192s <= 192 binds: s = 20/27, 74.1 % for both.
    Then <2, 4> and <1, 3>, both of CPU most: half of it each. Last <1, 7> and <1, 4>, both of memory: half of it each.
    """
    first, then, last = (
        a_problem((4, 14), {"1": job_1, "2": job_2}, machines=48)
        for job_1, job_2 in (((1, 10), (1, 1)), ((2, 4), (1, 3)), ((1, 7), (1, 4)))
    )

    assert tasks(first, "drf") == pytest.approx({"1": 67.2 * 20 / 27, "2": 192 * 20 / 27})
    assert shares(first, "drf")["1"][1] == shares(first, "drf")["2"][0] == pytest.approx(20 / 27)
    assert tasks(then, "drf") == pytest.approx({"1": 48, "2": 96})
    assert tasks(last, "drf") == pytest.approx({"1": 48, "2": 84})


def test_section_7_2_the_set_up_of_the_comparison() -> None:
    """48 nodes of 8 CPUs and 6 GB, four users of <1, 0.5> and four of <2, 2>.

    Small tasks take 1/384 of CPU most, large ones 1/144 of memory: 4s + 4s * 0.75 = 1 of CPU binds, s = 1/7 each. One
    CPU share each is 48 CPUs: 48 small or 24 large tasks, which happens to be exactly all memory of the pool. Six slots a
    node are 36 a user, who may then hold more than there is.
    """
    users = {f"small {n}": (1, 0.5) for n in range(4)} | {f"large {n}": (2, 2) for n in range(4)}
    problem = a_problem((8, 6), users, machines=48)

    fair = tasks(problem, "drf")
    assert (fair["small 0"], fair["large 0"]) == pytest.approx((384 / 7, 144 / 7))
    by_cpu = tasks(problem, "max-min:cpus")
    assert (by_cpu["small 0"], by_cpu["large 0"]) == pytest.approx((48, 24))
    assert problem.used(list(by_cpu.values())) == pytest.approx((384, 288))
    in_slots = tasks(problem, "slots:6")
    assert set(in_slots.values()) == {36.0}
    assert problem.used(list(in_slots.values()))[1] > 288


def node(policy: str, unit: tuple[float, float]) -> tuple[int, float, float]:
    """Tasks of one user on a node of 8 CPUs and 6 GB, and what they take of both."""
    allocator = an_allocator(policy=policy)
    add_agent(allocator, "node", cpus_and_mem(8, 6))
    add_framework(allocator, "user", cpus_and_mem(*unit))
    count = sum(grant.units for grant in allocator.cycle(0))
    return count, count * unit[0], count * unit[1]


def test_section_7_2_few_slots_leave_a_node_idle_and_many_overcommit_it() -> None:
    """With 3 slots "only 3 small tasks on a node", with more "4 large tasks on a node, which leads to swapping, as each takes
    2 GB and the node has 6". DRF fits 8 small or 3 large ones.
    """
    small, large = (1, 0.5), (2, 2)

    assert node("slots:3", small) == (3, 3, 1.5)
    assert node("slots:4", large) == (4, 8, 8)
    assert node("slots:6", small) == (6, 6, 3)
    assert node("drf", small) == (8, 8, 4)
    assert node("drf", large) == (3, 6, 6)
