"""Progressive filling: the papers' examples, and what makes an allocation max-min fair on random problems."""

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.solvers import water_filling
from fairlead_master.solvers.max_min import EXACT_USERS_MAX, tiers_of
from fairlead_master.solvers.problem import Problem, SolverError
from fairlead_master.solvers.registry import solve
from tests.solvers.builders import a_problem, nine_and_eighteen

POLICIES = ["drf", "asset", "max-min", "max-min:cpus", "max-min:mem"]


def test_drf_gives_three_and_two_tasks() -> None:
    """DRF paper, section 4.1: equal dominant shares of two thirds."""
    assert solve(nine_and_eighteen(), "drf").tasks == (3.0, 2.0)


def test_asset_fairness_gives_2_52_and_2_16_tasks() -> None:
    """DRF paper, section 5.1, on the same example: x/9 + 4x/18 = 3y/9 + y/18, and CPUs run out."""
    assert solve(nine_and_eighteen(), "asset").tasks == (2.52, 2.16)


def test_asset_fairness_violates_the_sharing_incentive_as_in_theorem_5() -> None:
    """DRF paper, section 5.1 and appendix: <30, 30>, demands <1, 3> and <1, 1>: 6 and 12 tasks, user 1 has less than half."""
    problem = a_problem((30, 30), {"1": (1, 3), "2": (1, 1)})

    assert solve(problem, "asset").tasks == (6.0, 12.0)


def test_max_min_of_one_resource_looks_at_nothing_else() -> None:
    """Equal CPUs, until memory runs out: 4 x_A + x_B = 18 with x_A = 3 x_B."""
    assert solve(nine_and_eighteen(), "max-min:cpus").tasks == (54 / 13, 18 / 13)


def test_max_min_gives_equal_numbers_of_tasks() -> None:
    assert solve(nine_and_eighteen(), "max-min").tasks == (2.25, 2.25)


def test_fifo_gives_the_first_all_it_can_use() -> None:
    assert solve(nine_and_eighteen(), "fifo").tasks == (4.5, 0.0)
    assert solve(nine_and_eighteen(caps={"A": 3}), "fifo").tasks == (3.0, 2.0)


def test_slots_on_one_pool_are_shared_whatever_tasks_need() -> None:
    assert solve(nine_and_eighteen(), "slots:5").tasks == (2.5, 2.5)


def test_slots_are_counted_over_all_machines() -> None:
    """10 machines of 3 slots: twice the weight, twice the slots."""
    problem = a_problem(
        (40, 140), {"A": (1, 4), "B": (3, 1)}, weights={"B": 2}, nodes=[(4, (4, 14)), (6, (4, 14))]
    )

    assert solve(problem, "slots:3").tasks == (10.0, 20.0)


def test_weights_per_resource_divide_each_share() -> None:
    """DRF paper, section 4.3. A counts its memory by half: max(x/9, 4x/36) = 3y/9 and x + 3y = 9."""
    assert solve(nine_and_eighteen(weights={"A": (1.0, 2.0)}), "drf").tasks == (54 / 13, 18 / 13)


def test_a_resource_stops_only_those_who_need_it() -> None:
    """Memory runs out first; C needs none of it and gets all CPUs that are left."""
    problem = a_problem((10, 2), {"A": (1, 1), "B": (1, 1), "C": (1, 0)})

    assert solve(problem, "drf").tasks == (1.0, 1.0, 8.0)


def test_what_a_capped_user_leaves_goes_to_the_others() -> None:
    problem = a_problem((10, 10), {"A": (1, 1), "B": (1, 1), "C": (1, 1)}, caps={"A": 1, "B": 2.5})

    assert solve(problem, "drf").tasks == (1.0, 2.5, 6.5)


def test_all_capped_leaves_capacity() -> None:
    assert solve(nine_and_eighteen(caps={"A": 0.5, "B": 0.25}), "drf").tasks == (0.5, 0.25)


def test_who_needs_none_of_the_resource_comes_first_in_equal_tasks() -> None:
    """Their key is 0 whatever they hold; the paper does not say what then, so they share as under max-min."""
    problem = a_problem((10, 12), {"A": (1, 1), "B": (0, 2), "C": (0, 1)}, weights={"C": 4}, caps={"B": 1})

    assert solve(problem, "max-min:cpus").tasks == (0.0, 1.0, 10.0)


@pytest.mark.parametrize("policy", ["max-min:gpus", "max-min:", "slots:0", "slots:x", "slots:1001", "slots:²", "drf:1", "nash", ""])  # fmt: skip
def test_a_policy_that_is_none_is_refused(policy: str) -> None:
    with pytest.raises(SolverError, match=r"^policy: expected .*, got '"):
        solve(nine_and_eighteen(), policy)


def test_answers_are_exact_in_decimals() -> None:
    """Three users of a tenth share 0.3 evenly: in binary 0.1 * 3 is more than 0.3."""
    problem = a_problem((0.3,), {"A": (0.1,), "B": (0.1,), "C": (0.1,)})

    assert solve(problem, "drf").tasks == (1.0, 1.0, 1.0)


amounts = st.integers(0, 12).map(lambda tenths: tenths / 4)
demands = st.tuples(amounts, amounts, amounts).filter(any)
weights = st.tuples(*[st.sampled_from([0.5, 1.0, 2.0])] * 3)
caps = st.one_of(st.just(float("inf")), st.integers(0, 8).map(lambda quarters: quarters / 4))


@st.composite
def problems(draw: st.DrawFn, copies: int = 1) -> Problem:
    """Up to six users, each ``copies`` times, and three resources."""
    users = draw(st.lists(st.tuples(demands, weights, caps), min_size=1, max_size=6))
    named = {f"u{count}": user for count, user in enumerate(users * copies)}
    return a_problem(
        (10.0 * copies, 7.5 * copies, 3.0 * copies),
        {name: demand for name, (demand, _, _) in named.items()},
        weights={name: weight for name, (_, weight, _) in named.items()},
        caps={name: cap for name, (_, _, cap) in named.items()},
    )


def keys(problem: Problem, policy: str, tasks: tuple[float, ...]) -> dict[int, float]:
    """Of the last tier: the earlier ones have none."""
    return {place: float(rise) * tasks[place] for place, rise in tiers_of(problem, policy)[-1]}


@given(problem=problems(), policy=st.sampled_from(POLICIES))
def test_nobody_could_have_more_but_at_the_cost_of_one_with_no_more(problem: Problem, policy: str) -> None:
    """Max-min fairness: each user is at its cap, or some full resource it needs is held by nobody with a larger key."""
    tasks = solve(problem, policy).tasks

    used = problem.used(tasks)
    assert all(amount <= total * (1 + 1e-12) for amount, total in zip(used, problem.capacity, strict=True))
    full = [amount >= total * (1 - 1e-12) for amount, total in zip(used, problem.capacity, strict=True)]
    key_of = keys(problem, policy, tasks)
    for place, key in key_of.items():
        user = problem.users[place]
        assert tasks[place] <= user.max_tasks
        if tasks[place] < user.max_tasks:
            assert any(
                full[resource]
                and need
                and all(
                    other <= key * (1 + 1e-9)
                    for rival, other in key_of.items()
                    if problem.users[rival].demand[resource] and tasks[rival]
                )
                for resource, need in enumerate(user.demand)
            )


@given(problem=problems(copies=EXACT_USERS_MAX + 1), policy=st.sampled_from(POLICIES))
def test_many_users_in_floats_get_what_few_get_in_fractions(problem: Problem, policy: str) -> None:
    """The same users 65 times in 65 times the capacity: each copy gets what the one gets in a problem of its own."""
    count = len(problem.users) // (EXACT_USERS_MAX + 1)
    few = Problem(
        resources=problem.resources,
        capacity=tuple(total / (EXACT_USERS_MAX + 1) for total in problem.capacity),
        users=problem.users[:count],
    )

    many = solve(problem, policy).tasks

    assert many[:count] == pytest.approx(solve(few, policy).tasks, rel=1e-11, abs=1e-11)
    assert all(one == again for one, again in pairwise(many[0::count]))


def test_first_come_first_served_among_many_costs_no_look_at_all_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each user is a tier of its own. What is added up for ten times the users is about ten times as much, not a hundred."""
    added = 0

    def counting(parts: Iterable[float]) -> float:
        nonlocal added
        terms = list(parts)
        added += len(terms)
        return fsum(terms)

    monkeypatch.setattr(water_filling, "fsum", counting)
    work = []
    for count in (300, 3_000):
        added = 0
        problem = a_problem(
            (count / 10, 1.0),
            {f"u{place}": (0.2, 0.0) for place in range(count)},
            caps={f"u{place}": 1.0 for place in range(count)},
        )
        tasks = solve(problem, "fifo").tasks
        assert tasks == pytest.approx([1.0] * (count // 2) + [0.0] * (count // 2), abs=1e-9)
        work.append(added)

    assert work[1] < 12 * work[0]


def test_rises_of_few_users_are_fractions() -> None:
    assert tiers_of(nine_and_eighteen(), "drf") == [[(0, Fraction(2, 9)), (1, Fraction(1, 3))]]
