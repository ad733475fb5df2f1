"""The utilisation-optimal baseline: the talk's gaming example, and properties against simpler programs."""

from collections.abc import Sequence
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.allocation.linear_program import maximise
from fairlead_master.solvers.problem import Nodes, Problem, User
from fairlead_master.solvers.utilization import solve


def a_problem(
    capacity: Sequence[float],
    demands: Sequence[Sequence[float]],
    *,
    weights: Sequence[float] = (),
    caps: Sequence[float] = (),
    nodes: Sequence[Nodes] = (),
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
    return Problem(names, tuple(capacity), tuple(users), tuple(nodes))


amount = st.integers(1, 9)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Up to five users of two or three resources on one pool, or on machines of two kinds."""
    places = draw(st.integers(2, 3))
    users = draw(st.integers(1, 5))
    line = st.lists(st.integers(0, 9), min_size=places, max_size=places).filter(any)
    sizes = st.lists(st.integers(5, 50), min_size=places, max_size=places).map(tuple)
    nodes = [Nodes(draw(st.integers(1, 3)), draw(sizes)) for _ in range(draw(st.sampled_from([0, 0, 2])))]
    capacity = [sum(kind.count * kind.capacity[j] for kind in nodes) for j in range(places)]
    return a_problem(
        capacity if nodes else draw(sizes),
        draw(st.lists(line, min_size=users, max_size=users)),
        weights=draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=users, max_size=users)),
        caps=draw(st.lists(st.sampled_from([0.5, 2.0, inf, inf]), min_size=users, max_size=users)),
        nodes=nodes,
    )


def utilisation(problem: Problem, tasks: Sequence[float]) -> float:
    return sum(u / c for u, c in zip(problem.used(tasks), problem.capacity, strict=True))


def best_utilisation(problem: Problem) -> float:
    """By one program with a variable for each user and kind of machine, and nothing else."""
    kinds = problem.nodes or (Nodes(1, problem.capacity),)
    users, places = range(len(problem.users)), range(len(problem.capacity))
    rows, bounds = [], []
    for k, kind in enumerate(kinds):
        for j in places:
            rows.append([problem.users[i].demand[j] * (k == n) for i in users for n in range(len(kinds))])
            bounds.append(kind.count * kind.capacity[j])
    for i in users:
        if problem.users[i].max_tasks < inf:
            rows.append([float(i == other) for other in users for _ in kinds])
            bounds.append(problem.users[i].max_tasks)
    gain = [sum(problem.share(user)) for user in problem.users for _ in kinds]
    return maximise(gain, rows, bounds).value


def test_honest_equal_users_share_equally() -> None:
    """Slides "Gaming Utilization-Optimal Schedulers": <100 CPU, 100 GB>, two users of <1 CPU, 2 GB>."""
    assert solve(a_problem((100, 100), [(1, 2), (1, 2)])).tasks == pytest.approx((25, 25))


def test_a_user_that_claims_twice_the_cpus_gets_everything() -> None:
    """The same slides: user 1 lies and demands <2 CPU, 2 GB>."""
    assert solve(a_problem((100, 100), [(2, 2), (1, 2)])).tasks == pytest.approx((50, 0), abs=1e-9)


@given(problems())
def test_no_allocation_uses_more(problem: Problem) -> None:
    tasks = solve(problem).tasks

    assert utilisation(problem, tasks) == pytest.approx(best_utilisation(problem), rel=1e-9)
    assert all(count <= user.max_tasks for count, user in zip(tasks, problem.users, strict=True))
    for used, total in zip(problem.used(tasks), problem.capacity, strict=True):
        assert used <= total * (1 + 1e-9)


@given(problems(), st.integers(0, 4), st.integers(2, 5))
def test_users_of_one_direction_have_equal_dominant_shares_by_weight(
    problem: Problem, choice: int, times: int
) -> None:
    """However large their tasks are; unless one has all it wants."""
    user = problem.users[choice % len(problem.users)]
    twin = User("twin", tuple(times * need for need in user.demand), (3.0,) * len(user.weights))
    both = Problem(problem.resources, problem.capacity, (*problem.users, twin), problem.nodes)

    tasks = solve(both).tasks

    got, other = tasks[choice % len(problem.users)], tasks[-1] * times
    assert other == pytest.approx(got * 3 / user.weight, abs=1e-7) or (
        got == user.max_tasks and other > got * 3 / user.weight
    )


def test_between_equally_good_directions_the_smallest_share_is_raised() -> None:
    """Only CPU is scarce, and with it each user keeps one more resource as busy: any split is as good."""
    problem = a_problem((10, 100, 100), [(1, 10, 0), (1, 0, 10), (1, 0, 10)])

    assert solve(problem).tasks == pytest.approx((10 / 3, 10 / 3, 10 / 3))
    weighted = a_problem((10, 100, 100), [(1, 10, 0), (1, 0, 10)], weights=[4.0, 1.0])
    assert solve(weighted).tasks == pytest.approx((8, 2))


def test_leximin_goes_on_where_the_smallest_share_is_settled() -> None:
    """u0 has all it wants at one task. The others are as good as one another, and share the rest evenly."""
    problem = a_problem((10, 100, 100), [(1, 10, 0), (1, 0, 10), (1, 5, 5)], caps=[1, inf, inf])

    assert solve(problem).tasks == pytest.approx((1, 4.5, 4.5))


def test_machines_of_different_kinds_are_not_one_pool() -> None:
    """u0 fits the many CPUs of the first machine, u1 the memory of the second; pooled, u2 would take everything."""
    nodes = [Nodes(1, (8, 2)), Nodes(1, (2, 8))]
    problem = a_problem((10, 10), [(4, 1), (1, 4)], nodes=nodes)

    assert solve(problem).tasks == pytest.approx((2, 2))
    assert solve(a_problem((10, 10), [(1, 1)], nodes=nodes)).tasks == pytest.approx((4,))
    assert solve(a_problem((10, 10), [(1, 1)])).tasks == pytest.approx((10,))


def test_a_resource_that_nobody_needs_may_be_missing() -> None:
    assert solve(a_problem((10, 0), [(1, 0), (2, 0)])).tasks == pytest.approx((5, 2.5))
