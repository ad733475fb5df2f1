"""Fluid tasks on machines of different kinds: what is known by hand, and the definition of max-min fairness itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_master.allocation.linear_program import maximise
from fairlead_master.solvers import machine_filling
from fairlead_master.solvers.max_min import tiers_of
from fairlead_master.solvers.problem import Problem, SolverError
from fairlead_master.solvers.registry import solve
from tests.solvers.builders import a_problem

POLICIES = ["drf", "asset", "max-min", "max-min:cpus"]


def test_machines_of_one_kind_are_one_pool() -> None:
    users = {"A": (1, 4), "B": (3, 1)}
    machines = a_problem((18, 36), users, nodes=[(1, (4.5, 9)), (3, (4.5, 9))])

    assert solve(machines, "drf").tasks == (6.0, 4.0)


def test_what_is_free_on_different_machines_helps_nobody() -> None:
    """Two CPUs without memory and two GB without CPUs hold no task of both; C takes what A cannot."""
    problem = a_problem((2, 2), {"A": (1, 1), "C": (0, 1)}, nodes=[(1, (2, 0)), (1, (0, 2))])

    assert solve(problem, "drf").tasks == (0.0, 2.0)


def test_users_are_put_where_they_get_in_each_others_way_least() -> None:
    """As pools would have it: 30 CPUs are the bottleneck, A's 60 GB fit beside B's tasks on the large machines only."""
    problem = a_problem((30, 156), {"A": (1, 4), "B": (3, 1)}, nodes=[(2, (9, 18)), (3, (4, 40))])

    assert solve(problem, "drf").tasks == (15.0, 5.0)


def test_who_is_stopped_on_one_kind_does_not_stop_others() -> None:
    """B needs the GPU, whose machine has CPUs for half a task; in one pool A would have no more than that share."""
    problem = a_problem((8, 4, 1), {"A": (1, 1, 0), "B": (8, 0, 1)}, nodes=[(1, (4, 4, 0)), (1, (4, 0, 1))])

    assert solve(problem, "drf").tasks == (4.0, 0.5)


def test_first_come_first_served_moves_tasks_to_where_they_can_stay() -> None:
    """A could run on either kind and takes all CPUs; with a cap it is moved out of B's way."""
    nodes = [(1, (4, 8)), (1, (4, 0))]
    users = {"A": (1, 0), "B": (1, 2)}

    assert solve(a_problem((8, 8), users, nodes=nodes), "fifo").tasks == (8.0, 0.0)
    assert solve(a_problem((8, 8), users, nodes=nodes, caps={"A": 4}), "fifo").tasks == (4.0, 4.0)


def test_too_many_users_times_kinds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_filling, "VARIABLES_MAX", 3)
    problem = a_problem((2, 2), {"A": (1, 1), "B": (1, 1)}, nodes=[(1, (2, 0)), (1, (0, 2))])

    with pytest.raises(SolverError, match=r"^nodes: expected at most 3 users times kinds .* got 4;"):
        solve(problem, "drf")


amounts = st.integers(0, 8).map(lambda quarters: quarters / 4)
demands = st.tuples(amounts, amounts, amounts).filter(any)
caps = st.one_of(st.just(float("inf")), st.integers(1, 8).map(lambda halves: halves / 2))
kinds = st.tuples(st.integers(1, 3), st.tuples(*[st.integers(0, 6).map(float)] * 3))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    nodes = draw(st.lists(kinds, min_size=2, max_size=3))
    capacity = [sum(count * amounts[place] for count, amounts in nodes) for place in range(3)]
    users = draw(st.lists(st.tuples(demands, caps), min_size=1, max_size=5))
    needed = [
        (tuple(need if total else 0.0 for need, total in zip(demand, capacity, strict=True)), cap)
        for demand, cap in users
    ]
    named = {f"u{place}": user for place, user in enumerate(needed) if any(user[0])}
    if not named:
        named = {"u0": ((1.0, 0.0, 0.0), 1.0)}
        capacity, nodes = [1.0, 0.0, 0.0], [(1, (0.5, 0.0, 0.0)), (1, (0.5, 0.0, 0.0))]
    return a_problem(
        capacity,
        {name: demand for name, (demand, _) in named.items()},
        caps={name: cap for name, (_, cap) in named.items()},
        nodes=nodes,
    )


def most(problem: Problem, favoured: int, at_least: dict[int, float]) -> float:
    """The most tasks that one user can have while others have at least so many."""
    columns = [
        (place, kind)
        for place, user in enumerate(problem.users)
        for kind, nodes in enumerate(problem.nodes)
        if all(total for need, total in zip(user.demand, nodes.capacity, strict=True) if need)
    ]
    rows, bounds = [], []
    for kind, nodes in enumerate(problem.nodes):
        for resource, total in enumerate(nodes.capacity):
            rows.append([problem.users[p].demand[resource] if at == kind else 0.0 for p, at in columns])
            bounds.append(nodes.count * total)
    for place, tasks in at_least.items():
        if tasks:
            rows.append([-1.0 if owner == place else 0.0 for owner, _ in columns])
            bounds.append(-tasks * (1 - 1e-9))
    return maximise([1.0 if owner == favoured else 0.0 for owner, _ in columns], rows, bounds).value


@given(problem=problems(), policy=st.sampled_from(POLICIES), is_exact=st.booleans())
@settings(max_examples=60)
def test_nobody_could_have_more_but_at_the_cost_of_one_with_no_more(
    problem: Problem, policy: str, is_exact: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_filling, "EXACT_VARIABLES_MAX", 1_000 if is_exact else 0)
        tasks = solve(problem, policy).tasks

    tiers = tiers_of(problem, policy)
    key_of = {place: float(rise) * tasks[place] for place, rise in tiers[-1]}
    earlier = {place: tasks[place] for tier in tiers[:-1] for place, _ in tier}
    for place, key in key_of.items():
        assert tasks[place] <= problem.users[place].max_tasks * (1 + 1e-9)
        if tasks[place] < problem.users[place].max_tasks * (1 - 1e-9):
            others = {
                other: tasks[other]
                for other, held in key_of.items()
                if held <= key * (1 + 1e-9) and other != place
            }
            assert most(problem, place, earlier | others) <= tasks[place] * (1 + 1e-6) + 1e-6
