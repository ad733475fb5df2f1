"""Liu, "Multi-Objective Bottleneck-Aware Allocation of Multiple Resources" (paper 003): its example, algorithm 1, theorems.

The paper has one example with numbers; the rest is what its algorithm and its proofs say, held against exact arithmetic.
How its ambiguous places are read is in ADR 0012; what cannot be right as printed is in docs/errata.md.
"""

import random
from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, sqrt

import pytest

from fairlead_master.allocation.policies.bottleneck_groups import Objective, bottleneck, only
from fairlead_master.solvers import registry
from fairlead_master.solvers.bottleneck_aware import allocate, round_to_whole
from fairlead_master.solvers.problem import Problem
from tests.papers.problems import a_problem, tasks

F = Fraction


def test_section_2_1_example() -> None:
    """C = (1, 2), d_1 = (0.8, 0.2), d_2 = (0.2, 0.6): m_1 = 0.8 and m_2 = 0.25, balance at 1/3 "~ 0.33": CPU and memory.

    m is the load on the CPU, so 1/3 = 1/(1 + 2) is the balance of m and not of h, as it is named. By shares of the
    capacity, which is what section 2.1 calls d, the demands are (0.8, 0.1) and (0.2, 0.3): the same groups.
    """
    d1, d2 = (F(8, 10), F(2, 10)), (F(2, 10), F(6, 10))
    m1, m2 = d1[0] / sum(d1), d2[0] / sum(d2)
    assert (m1, m2) == (F(8, 10), F(25, 100))
    balance = F(1, 1 + 2)
    assert m1 > balance > m2

    problem = a_problem((1, 2), {"1": d1, "2": d2})
    assert [problem.share(user) for user in problem.users] == [(0.8, 0.1), (0.2, 0.3)]
    assert [bottleneck(problem.share(user)) for user in problem.users] == [0, 1]


def test_sections_2_2_and_2_3_on_the_example() -> None:
    """(2.1) to (2.6) with x_1, x_2: 0.8 x_1 + 0.2 x_2 <= 1 and 0.2 x_1 + 0.6 x_2 <= 2.

    Both used up: x_1 = 5/11, x_2 = 35/11, where user 1 has 4/11 of the CPU and user 2 7/11: against (2.3). At the edge of
    (2.3), 0.8 x_1 = 0.2 x_2, the CPU is used up by halves: x_1 = 5/8, x_2 = 5/2. That is the most tasks, 25/8, and uses
    the most: CPU 1, memory (1/8 + 3/2) / 2 = 13/16. For the fewest tasks of one, x_1 <= x_2, (2.4) 0.6 x_2 >= 0.2 x_1
    and the CPU allow x_1 = x_2 = 1, and guaranteed halves x_2 >= 5/3: then x_1 = 5/6.
    """
    both = (F(5, 11), F(35, 11))
    assert F(8, 10) * both[0] + F(2, 10) * both[1] == 1
    assert F(2, 10) * both[0] + F(6, 10) * both[1] == 2
    assert F(8, 10) * both[0] < F(2, 10) * both[1]

    problem = a_problem((1, 2), {"1": (0.8, 0.2), "2": (0.2, 0.6)})
    for policy in ("baa:tasks", "baa:utilization"):
        assert tasks(problem, policy) == pytest.approx({"1": 5 / 8, "2": 5 / 2}, rel=1e-9)
    assert tasks(problem, "baa:min") == pytest.approx({"1": 5 / 6, "2": 5 / 3}, rel=1e-9)
    assert allocate(problem, only(Objective.MINIMUM), guarantee=0.0) == pytest.approx([1, 1], rel=1e-9)


def nearest(problem: Problem, fluid: Sequence[float], *, as_printed: bool) -> list[int]:
    """Algorithm 1, line by line; printed line 8 rounds down like line 11, the text rounds up there."""
    whole = [floor(count) for count in fluid]
    left = [total - used for total, used in zip(problem.capacity, problem.used(whole), strict=True)]
    for place in sorted(range(len(fluid)), key=lambda place: floor(fluid[place]) - fluid[place]):
        demand = problem.users[place].demand
        if all(need <= amount + 1e-12 for need, amount in zip(demand, left, strict=True)):
            whole[place] = floor(fluid[place]) if as_printed else ceil(fluid[place])
            if not as_printed and fluid[place] > floor(fluid[place]):
                left = [amount - need for amount, need in zip(left, demand, strict=True)]
    return whole


ROUNDED = a_problem((2.6, 10), {"1": (1, 1), "2": (1, 1), "3": (0.5, 1)})
FLUID = [0.9, 1.2, 1.0]


def test_algorithm_1_rounds_up_where_line_8_prints_the_floor() -> None:
    """2.6 CPUs; 0.9, 1.2 and 1 tasks. Rounded down 1.1 CPUs are left, and one more task of user 1 takes 1 of it.

    With line 8 as printed the condition decides nothing, and every user is rounded down, against the text below it.
    """
    assert nearest(ROUNDED, FLUID, as_printed=True) == [0, 1, 1]
    assert nearest(ROUNDED, FLUID, as_printed=False) == [1, 1, 1]

    assert round_to_whole(ROUNDED, FLUID) == [1, 1, 1]


def test_algorithm_1_line_7_means_at_most_for_both_resources() -> None:
    """As printed memory must be strictly less than what is left: a task that takes exactly the rest would be refused."""
    problem = a_problem((2, 2), {"1": (1, 1), "2": (1, 1)})

    assert round_to_whole(problem, [1.4, 0.6]) == [1, 1]


def test_algorithm_1_is_not_the_nearest_integer_solution() -> None:
    """It says it minimises the distance |x - x*|; largest fractions first may block more than they bring.

    One resource of 6.8: user 1 has 0.9 of a task of 4, four others 0.8 of tasks of 1. Largest fraction first: user 1, then
    two others: 0.1 + 2 * 0.2 + 2 * 0.8 = 2.1. All four others instead of user 1: 0.9 + 4 * 0.2 = 1.7.
    """
    demands = {"1": (4,)} | {f"{n}": (1,) for n in range(2, 6)}
    problem = a_problem((6.8,), demands)
    fluid = [0.9, 0.8, 0.8, 0.8, 0.8]
    assert problem.used(fluid) == pytest.approx((6.8,))

    def distance(whole: Sequence[int]) -> float:
        assert problem.used(whole)[0] <= 6.8
        return sum(abs(count - wish) for count, wish in zip(whole, fluid, strict=True))

    by_algorithm_1 = round_to_whole(problem, fluid)
    assert by_algorithm_1 == nearest(problem, fluid, as_printed=False) == [1, 1, 1, 0, 0]
    assert distance(by_algorithm_1) == pytest.approx(2.1)
    assert distance([0, 1, 1, 1, 1]) == pytest.approx(1.7)


STARVED = a_problem((1, 1), {"many small": (F(1, 100), F(1, 10_000)), "large": (F(1, 2), F(6, 10))})
"""CPU-bound with a hundredth of that in memory; memory-bound."""


def test_theorem_1_needs_that_p_d_and_p_s_are_fair_shares() -> None:
    """Its proof shows that nobody has more of a user's bottleneck; 1/n of it follows only if all of it is given out.

    Most tasks under (2.1) to (2.6) alone: with q of the CPU for user 1, p of memory for user 2, (2.4) asks p >= q/100, and
    100 q + (5/3) p tasks, q + (5/6) p <= 1, are best at p = q/100: q = 120/121. User 2 has 1.2/121 of its memory, 0.99 %,
    where half was promised; memory is nearly idle.
    """
    without = allocate(STARVED, only(Objective.TASKS), guarantee=0.0)
    assert without == pytest.approx([100 * 120 / 121, 2 / 121], rel=1e-9)
    assert without[1] * 0.6 == pytest.approx(1.2 / 121)
    assert STARVED.used(without)[1] == pytest.approx(2.4 / 121)

    for policy in ("baa", "baa:tasks", "baa:min", "baa:utilization"):
        given = tasks(STARVED, policy)
        assert given["many small"] * 0.01 >= 0.5 - 1e-9
        assert given["large"] * 0.6 >= 0.5 - 1e-9


def envied(problem: Problem, given: Sequence[float]) -> bool:
    """Whether somebody could run more tasks on what another has."""
    bundles = [
        [count * part for part in user.demand] for count, user in zip(given, problem.users, strict=True)
    ]
    return any(
        min(part / need for part, need in zip(bundle, user.demand, strict=True) if need) > own * (1 + 1e-9)
        for user, own in zip(problem.users, given, strict=True)
        for bundle in bundles
    )


THREE = a_problem((1, 1), {"1": (0.9, 0.1), "2": (0.3, 0.2), "3": (0.1, 0.4)})


@pytest.mark.parametrize("policy", ["baa", "baa:tasks", "baa:min", "baa:utilization"])
def test_theorems_2_and_3_on_examples(policy: str) -> None:
    """Nobody envies (its proof quotes A_1 h_1 >= A_2 h_2 for a user of S, where (2.4) says the reverse); none can be raised."""
    for problem in (STARVED, THREE, a_problem((1, 2), {"1": (0.8, 0.2), "2": (0.2, 0.6)})):
        given = list(registry.solve(problem, policy).tasks)

        assert not envied(problem, given)
        assert max(
            used / total for used, total in zip(problem.used(given), problem.capacity, strict=True)
        ) == (pytest.approx(1))


def test_theorem_3_whole_tasks_of_printed_algorithm_1_are_not_pareto_efficient() -> None:
    """Line 8 as printed leaves 1.1 CPUs idle, in which a task of user 1 fits."""
    whole = nearest(ROUNDED, FLUID, as_printed=True)

    free = [total - used for total, used in zip(ROUNDED.capacity, ROUNDED.used(whole), strict=True)]
    assert all(need <= amount for need, amount in zip(ROUNDED.users[0].demand, free, strict=True))


@pytest.mark.parametrize("users", [1000, 2000])
@pytest.mark.parametrize("discrete", [False, True], ids=["fluid", "algorithm 1"])
def test_figures_2_to_5_both_utilisations_are_close_to_100_percent(users: int, discrete: bool) -> None:
    """1,000 and 2,000 users, demands from (0, 1): "all close to 100 %". The trace is not given; these demands are uniform.

    One resource is used up by theorem 3. How much of the other is left depends on the sample, some percent for uniform ones:
    the ratio of two sums of n uniform numbers is off one by 0.8 / sqrt(n), 2.6 % and 1.8 %, in the mean square.
    """
    dice = random.Random(users)
    demands = {f"{n}": (1 - dice.random(), 1 - dice.random()) for n in range(users)}
    problem = a_problem((100 * users, 100 * users), demands)

    given = registry.solve(problem, "baa", discrete=discrete).tasks

    used = [amount / total for amount, total in zip(problem.used(given), problem.capacity, strict=True)]
    assert max(used) == pytest.approx(1, abs=1e-3)
    assert min(used) > 1 - 3 * 0.8 / sqrt(users)
