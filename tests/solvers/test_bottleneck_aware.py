"""Liu, "Multi-Objective Bottleneck-Aware Allocation of Multiple Resources", 2015: constraints, theorems, algorithms."""

from collections.abc import Sequence
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.allocation.policies.bottleneck_groups import (
    COMPOSITE,
    GOALS,
    Goal,
    Objective,
    bottleneck,
    only,
)
from fairlead_master.solvers.bottleneck_aware import (
    allocate,
    round_to_whole,
    solve,
    solve_discrete,
    solve_online,
)
from fairlead_master.solvers.problem import Nodes, Problem, SolverError, User

CLOSE = 1e-8


def a_problem(
    capacity: Sequence[float],
    demands: Sequence[Sequence[float]],
    *,
    weights: Sequence[float] = (),
    caps: Sequence[float] = (),
) -> Problem:
    users = [
        User(
            f"u{place}",
            tuple(demand),
            (weights[place] if weights else 1.0,) * len(capacity),
            caps[place] if caps else inf,
        )
        for place, demand in enumerate(demands)
    ]
    names = tuple(f"r{place}" for place in range(len(capacity)))
    return Problem(names, tuple(capacity), tuple(users))


policies = st.sampled_from(sorted(GOALS))
weight = st.sampled_from([1.0, 1.0, 2.0, 0.5])


@st.composite
def problems(draw: st.DrawFn, *, least: int = 0, capped: bool = False) -> Problem:
    """Up to six users of two to four resources; ``least`` is the smallest demand but for one resource of each user."""
    places = draw(st.integers(2, 4))
    users = draw(st.integers(1, 6))
    line = st.lists(st.integers(least, 9), min_size=places, max_size=places).filter(any)
    return a_problem(
        draw(st.lists(st.integers(5, 50), min_size=places, max_size=places)),
        draw(st.lists(line, min_size=users, max_size=users)),
        weights=draw(st.lists(weight, min_size=users, max_size=users)),
        caps=draw(st.lists(st.sampled_from([0.5, 2.0, 10.0, inf]), min_size=users, max_size=users))
        if capped
        else (),
    )


def share_of(problem: Problem, tasks: Sequence[float], i: int, j: int) -> float:
    """What user i holds of resource j, for each unit of its weight."""
    return tasks[i] * problem.share(problem.users[i])[j] / problem.users[i].weight


def objectives(problem: Problem, tasks: Sequence[float]) -> dict[Objective, float]:
    used = zip(problem.used(tasks), problem.capacity, strict=True)
    return {
        Objective.TASKS: sum(tasks),
        Objective.MINIMUM: min(n / user.weight for n, user in zip(tasks, problem.users, strict=True)),
        Objective.UTILIZATION: sum(amount / total for amount, total in used),
    }


def test_the_users_of_section_2_1_are_in_d_and_in_s() -> None:
    """m_1 = 0.8 and m_2 = 0.25 beside a balance of 1/3, which is that of m and not of h: C_CPU / (C_CPU + C_Memory)."""
    problem = a_problem((1, 2), [(0.8, 0.2), (0.2, 0.6)])

    assert [bottleneck(problem.share(user)) for user in problem.users] == [0, 1]


def test_the_example_of_section_2_1_by_hand() -> None:
    """Shares per task <0.8, 0.1> and <0.2, 0.3>. CPU: y_D + 2/3 y_S <= 1. Memory: y_D / 8 + y_S <= 1.

    (2.3) y_D >= 2/3 y_S, (2.4) y_S >= y_D / 8, both at least 1/2. Each corner has one objective to itself or two.
    """
    problem = a_problem((1, 2), [(0.8, 0.2), (0.2, 0.6)])

    # Tasks are y_D / 0.8 + y_S / 0.3, utilisation 9/8 y_D + 5/3 y_S: both best at y_D = 1/2, y_S = 3/4.
    assert solve(problem, "baa:tasks").tasks == pytest.approx((0.625, 2.5))
    assert solve(problem, "baa:utilization").tasks == pytest.approx((0.625, 2.5))
    # Tasks are y_D / 0.8 and y_S / 0.3: the first, which has fewer, is raised until y_S is at 1/2.
    assert solve(problem, "baa:min").tasks == pytest.approx((5 / 6, 5 / 3))
    # Floors: 0.625 + 5/3 tasks; best 3.125. A tenth of the range may go: 3.125 - 1/12 tasks, at the CPU's edge.
    assert sum(solve(problem, "baa").tasks) == pytest.approx(3.125 - 1 / 12)


@given(problems(least=1), policies)
def test_all_constraints_of_section_2_2_hold(problem: Problem, policy: str) -> None:
    """Every user needs some of all resources and wants any number of tasks, as in the paper."""
    tasks = solve(problem, policy).tasks

    for amount, total in zip(problem.used(tasks), problem.capacity, strict=True):  # (2.5), (2.6)
        assert amount <= total * (1 + CLOSE)
    place = [bottleneck(problem.share(user)) for user in problem.users]
    for i, g in enumerate(place):
        for k, h in enumerate(place):
            if g == h:  # (2.1), (2.2)
                assert share_of(problem, tasks, i, g) == pytest.approx(share_of(problem, tasks, k, g))
            else:  # (2.3), (2.4)
                assert share_of(problem, tasks, i, g) >= share_of(problem, tasks, k, g) - CLOSE


@given(problems(capped=True), policies)
def test_theorem_1_nobody_has_less_than_in_a_partition_of_its_own(problem: Problem, policy: str) -> None:
    tasks = solve(problem, policy).tasks

    weights = sum(user.weight for user in problem.users)
    for user, got in zip(problem.users, tasks, strict=True):
        alone = user.weight / weights / max(problem.share(user))
        assert got >= min(user.max_tasks, alone) - CLOSE


@given(problems(capped=True), policies)
def test_theorem_2_nobody_envies_anybody(problem: Problem, policy: str) -> None:
    """With the bundle of another, scaled to its own weight, nobody could run more of the tasks it wants."""
    tasks = solve(problem, policy).tasks

    for user, got in zip(problem.users, tasks, strict=True):
        for other, count in zip(problem.users, tasks, strict=True):
            bundle = [part * count * user.weight / other.weight for part in other.demand]
            could = min(part / need for part, need in zip(bundle, user.demand, strict=True) if need)
            assert min(could, user.max_tasks) <= got + CLOSE * max(1, got)


@given(problems(capped=True), policies)
def test_theorem_3_nobody_can_have_more_at_nobodys_expense(problem: Problem, policy: str) -> None:
    """Each user has all it wants or needs some of a resource of which nothing is left."""
    tasks = solve(problem, policy).tasks

    left = [1 - u / c for u, c in zip(problem.used(tasks), problem.capacity, strict=True)]
    assert min(left) >= -CLOSE
    for user, got in zip(problem.users, tasks, strict=True):
        room = min(part for part, need in zip(left, user.demand, strict=True) if need)
        assert got == user.max_tasks or room <= CLOSE


def test_without_the_guarantee_theorem_1_is_false() -> None:
    """If p_d and p_s mean nothing, the sum of tasks lets one of two users fall below a tenth of its half."""
    problem = a_problem((1, 1), [(1, 0.9), (0.001, 0.01)])

    tasks = allocate(problem, only(Objective.TASKS), guarantee=0.0)

    # Memory: y_S + 0.9 y_D = 1, and (2.3) alone holds: y_D = y_S / 10.
    assert tasks == pytest.approx([0.1 / 1.09, 100 / 1.09])
    assert tasks[0] < 1 / 2


def test_one_program_alone_wastes_what_users_with_zero_demands_could_use() -> None:
    """Theorem 3 needs positive demands: u1 needs no memory, but (2.1) ties it to u0, which does.

    With y_S = 0.9 y_D memory is full at y_D = 10/81, so that three quarters of the CPUs are idle; u1 may have them all.
    """
    problem = a_problem((1, 1), [(0.1, 0.09), (0.1, 0), *[(0, 0.1)] * 8])

    tasks = solve(problem, "baa:utilization").tasks

    tied = 10 / 81 / 0.1
    assert tasks[0] == pytest.approx(tied)
    assert tasks[1] == pytest.approx(10 - tied)
    assert tasks[2:] == pytest.approx([0.9 * tied] * 8)


@given(problems(least=1))
def test_each_objective_is_largest_under_its_own_policy(problem: Problem) -> None:
    """Also compared: equal levels, which is dominant resource fairness, and which all constraints allow."""
    values = {policy: objectives(problem, solve(problem, policy).tasks) for policy in GOALS}
    weights = sum(user.weight for user in problem.users)
    even = [user.weight / weights / max(problem.share(user)) for user in problem.users]
    taken = zip(problem.used(even), problem.capacity, strict=True)
    fullest = max(amount / total for amount, total in taken)
    values["drf"] = objectives(problem, [count / fullest for count in even])

    for objective in Objective:
        best = values[f"baa:{objective.value}"][objective]
        assert max(row[objective] for row in values.values()) <= best * (1 + CLOSE)


@given(problems(least=1), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_the_first_objective_stays_within_the_fuzzy_factor(problem: Problem, fuzzy: float) -> None:
    """(2.10), (2.11): of the range between the fair shares, where nothing is gained, and the best."""
    first, second = Objective.TASKS, Objective.MINIMUM
    weights = sum(user.weight for user in problem.users)
    least = sum(user.weight / weights / max(problem.share(user)) for user in problem.users)
    best = objectives(problem, solve(problem, "baa:tasks").tasks)[first]

    tasks = allocate(problem, (Goal({first: 1.0}, fuzzy), Goal({second: 1.0})))

    values = objectives(problem, tasks)
    assert values[first] >= best - fuzzy * (best - least) - CLOSE * best
    if fuzzy == 1.0:
        assert values[second] == pytest.approx(objectives(problem, solve(problem, "baa:min").tasks)[second])


def test_a_larger_fuzzy_factor_gives_the_second_objective_more() -> None:
    """The example of section 2.1, where tasks and the fewest tasks pull apart."""
    problem = a_problem((1, 2), [(0.8, 0.2), (0.2, 0.6)])

    fewest = [
        min(allocate(problem, (Goal({Objective.TASKS: 1.0}, fuzzy), Goal({Objective.MINIMUM: 1.0}))))
        for fuzzy in (0.0, 0.2, 0.5)
    ]

    # Per unit of y_D given on the edge y_D + 2/3 y_S = 1: 1.25 tasks of u0 for 5 of u1. The range is 5/6 tasks.
    assert fewest == pytest.approx([0.625, 0.625 + 0.2 * 5 / 6 / 3, 0.625 + 0.5 * 5 / 6 / 3])


@given(problems(capped=True), policies, st.sampled_from([1e-9, 1000.0, 2.0**40]))
def test_units_of_measurement_do_not_matter(problem: Problem, policy: str, unit: float) -> None:
    """Utilisation (2.9) in raw amounts would depend on them; we count fractions of the capacity."""
    other = a_problem(
        (problem.capacity[0] * unit, *problem.capacity[1:]),
        [(user.demand[0] * unit, *user.demand[1:]) for user in problem.users],
        weights=[user.weight for user in problem.users],
        caps=[user.max_tasks for user in problem.users],
    )

    assert solve(other, policy).tasks == pytest.approx(solve(problem, policy).tasks, rel=1e-6, abs=1e-6)


def test_a_weight_sets_the_ratio_within_a_group() -> None:
    problem = a_problem((1, 1), [(0.1, 0.05), (0.2, 0.1)], weights=[3.0, 1.0])

    assert solve(problem, "baa").tasks == pytest.approx((7.5, 1.25))


@given(problems(capped=True), policies)
def test_whole_tasks_are_within_one_of_the_fluid_ones_and_fit(problem: Problem, policy: str) -> None:
    fluid = solve(problem, policy).tasks

    whole = solve_discrete(problem, policy).tasks

    assert all(abs(a - b) <= 1 + CLOSE for a, b in zip(whole, fluid, strict=True))
    assert all(a == int(a) <= user.max_tasks for a, user in zip(whole, problem.users, strict=True))
    for amount, total in zip(problem.used(whole), problem.capacity, strict=True):
        assert amount <= total * (1 + CLOSE)


def test_algorithm_1_rounds_up_the_largest_fractions_that_fit() -> None:
    """Of <10, 10>, 2.9, 2.5 and 1.6 tasks of <2, 1>, <1, 2> and <1, 1>. The parts of a task go 0.9, 0.6, 0.5.

    Rounded down they take <7, 7>; then u0 takes <2, 1>, u2 takes <1, 1>, and of u1's <1, 2> no CPU is left.
    """
    problem = a_problem((10, 10), [(2, 1), (1, 2), (1, 1)])

    assert round_to_whole(problem, (2.9, 2.5, 1.6)) == [3, 2, 2]


def test_algorithm_1_is_not_always_nearest() -> None:
    """The paper says that it minimises the sum of |x_i - x_i*|. Here u0 first: 0.1 + 0.8 + 0.8; u1 and u2: 0.9 + 0.4."""
    problem = a_problem((10,), [(10,), (5,), (5,)])

    assert round_to_whole(problem, (0.9, 0.8, 0.8)) == [1, 0, 0]


def test_a_whole_number_missed_by_rounding_is_not_rounded_down() -> None:
    problem = a_problem((3,), [(1,)])

    assert round_to_whole(problem, (3 - 1e-13,)) == [3]


@given(problems(capped=True), policies)
def test_algorithm_2_never_gives_more_than_what_was_brought(problem: Problem, policy: str) -> None:
    """After k users have come the system has their part of each resource; and nobody gives a task back."""
    weights = sum(user.weight for user in problem.users)
    held = [0] * len(problem.users)

    for k, served in enumerate(solve_online(problem, GOALS[policy]), start=1):
        for place, count in served:
            held[place] += 1
            assert held[place] == count <= problem.users[place].max_tasks
        part = sum(user.weight for user in problem.users[:k]) / weights
        assert not any(held[k:])
        used = problem.used(held)
        assert all(u <= c * part * (1 + CLOSE) for u, c in zip(used, problem.capacity, strict=True))


def test_algorithm_2_gives_equal_users_equal_numbers() -> None:
    """Three users of <1, 2> bring a third of <30, 60> each: each has its ten tasks when it comes, and keeps them."""
    problem = a_problem((30, 60), [(1, 2)] * 3)

    joins = solve_online(problem, COMPOSITE)

    assert list(joins) == [[(place, count) for count in range(1, 11)] for place in range(3)]


def test_algorithm_2_gives_those_who_are_there_what_others_bring_and_cannot_use() -> None:
    problem = a_problem((10, 10), [(1, 0), (0, 1)])

    first, second = solve_online(problem, COMPOSITE)

    assert first == [(0, count) for count in range(1, 6)]
    assert second == [(0, count) for count in range(6, 11)] + [(1, count) for count in range(1, 11)]


def test_machines_of_one_kind_are_a_pool_and_of_two_kinds_are_refused() -> None:
    pool = a_problem((8, 8), [(1, 2)])
    one = Problem(pool.resources, pool.capacity, pool.users, (Nodes(2, (4.0, 4.0)),))
    two = Problem(pool.resources, pool.capacity, pool.users, (Nodes(1, (5.0, 4.0)), Nodes(1, (3.0, 4.0))))

    assert solve(one, "baa").tasks == pytest.approx((4.0,))
    with pytest.raises(
        SolverError, match=r"nodes: expected one pool, or machines whose resources .* got 2 kinds"
    ):
        solve(two, "baa")


def test_whole_tasks_on_machines_are_placed_on_them() -> None:
    """Twelve CPUs hold four tasks of three as one pool, and three as three machines."""
    pool = a_problem((12, 12), [(3, 1)])
    machines = Problem(pool.resources, pool.capacity, pool.users, (Nodes(3, (4.0, 4.0)),))

    assert solve_discrete(pool, "baa").tasks == (4.0,)
    assert solve_discrete(machines, "baa").tasks == (3.0,)


def test_an_unknown_objective_is_refused() -> None:
    with pytest.raises(SolverError, match=r"policy: expected one of baa, baa:tasks, .* got 'baa:fun'"):
        solve(a_problem((1,), [(1,)]), "baa:fun")
