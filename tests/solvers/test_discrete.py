"""Whole tasks: the paper's steps, exact amounts, machines, bounds."""

from fractions import Fraction
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.solvers import discrete
from fairlead_master.solvers.problem import Problem, SolverError
from fairlead_master.solvers.registry import solve
from tests.solvers.builders import a_problem, nine_and_eighteen


def test_steps_of_the_drf_example_with_the_first_of_equals_first() -> None:
    """DRF paper, table 1, which begins with B; here ties go to the earlier user."""
    solution = solve(nine_and_eighteen(), "drf", discrete=True)

    assert list(solution.tasks) == [3, 2]
    assert solution.steps == ("A", "B", "A", "B", "A")


def test_steps_of_table_1() -> None:
    problem = a_problem((9, 18), {"B": (3, 1), "A": (1, 4)})

    assert solve(problem, "drf", discrete=True).steps == ("B", "A", "A", "B", "A")


def test_machines_hold_whole_tasks_each() -> None:
    """Three machines of 2 CPUs hold one task of 1.5 CPUs each, where one pool of 6 would hold four."""
    users = {"A": (1.5, 1)}

    assert solve(a_problem((6, 30), users), "drf", discrete=True).tasks == (4,)
    assert solve(a_problem((6, 30), users, nodes=[(3, (2, 10))]), "drf", discrete=True).tasks == (3,)


def test_a_task_too_large_for_any_machine_is_served_nowhere() -> None:
    problem = a_problem((6, 30), {"A": (3, 1), "B": (1, 1)}, nodes=[(3, (2, 10))])

    assert solve(problem, "drf", discrete=True).tasks == (0, 6)


def test_amounts_are_scaled_without_loss() -> None:
    """In binary 0.1 + 0.1 + 0.1 is more than 0.3, and a byte disappears beside 1e25 of them."""
    assert solve(a_problem((0.3,), {"A": (0.1,)}), "drf", discrete=True).tasks == (3,)
    assert solve(a_problem((1, 1e25), {"A": (1e-3, 0), "B": (0, 1e22)}), "drf", discrete=True).tasks == (1000, 1000)  # fmt: skip


def test_a_part_of_a_task_is_no_task() -> None:
    assert solve(nine_and_eighteen(caps={"A": 2.9, "B": 0.5}), "drf", discrete=True).tasks == (2, 0)


def test_weights_per_resource_count() -> None:
    """DRF paper, section 4.3: A's memory counts by half."""
    problem = nine_and_eighteen(weights={"A": (1.0, 2.0)})

    assert solve(problem, "drf", discrete=True).tasks == (4, 1)


def test_one_pool_is_one_machine_of_k_slots() -> None:
    assert solve(nine_and_eighteen(weights={"B": 3}), "slots:4", discrete=True).tasks == (1, 3)


def test_arrival_order_is_that_of_the_users() -> None:
    assert solve(nine_and_eighteen(), "fifo", discrete=True).steps == ("A", "A", "A", "A", "B")


def test_names_of_users_mean_nothing() -> None:
    """In a role's name a slash does."""
    problem = a_problem((4, 4), {"eng": (1, 1), "eng/ml": (1, 1), "0": (1, 1), "2": (1, 1)})

    assert solve(problem, "drf", discrete=True).steps == ("eng", "eng/ml", "0", "2")


def test_too_many_tasks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discrete, "TASKS_MAX", 4)

    with pytest.raises(SolverError, match=r"^users: expected at most 4 tasks in all"):
        solve(nine_and_eighteen(), "drf", discrete=True)


def test_too_many_machines_are_refused() -> None:
    problem = a_problem((1e6, 1e6), {"A": (1, 1)}, nodes=[(10**6, (1, 1))])

    with pytest.raises(SolverError, match=r"^nodes: expected at most 20000 machines .* got 1000000$"):
        solve(problem, "drf", discrete=True)


@given(
    demands=st.lists(
        st.tuples(*[st.integers(0, 9).map(lambda tenths: tenths / 10)] * 2).filter(any),
        min_size=1,
        max_size=5,
    ),
    count=st.integers(1, 3),
)
def test_nothing_is_overfull_and_nothing_more_fits(demands: list[tuple[float, ...]], count: int) -> None:
    """On machines of one CPU and one GB; checked in tenths, of what all of them hold together."""
    users = {f"u{place}": demand for place, demand in enumerate(demands)}
    problem = a_problem((count, count), users, nodes=[(count, (1, 1))])

    solution = solve(problem, "drf", discrete=True)

    used = [round(amount * 10) for amount in problem.used(solution.tasks)]
    assert max(used) <= 10 * count
    if count == 1:
        for demand in demands:
            assert any(held + round(need * 10) > 10 for held, need in zip(used, demand, strict=True) if need)


def served_slowly(problem: Problem, policy: str) -> list[str]:
    """Who is served, by a look at everybody for each task: the smallest key, of equals the earlier, among whom it fits.

    In fractions. Under ``max-min:RES`` who holds none of it comes before all who do, by tasks for its weight.
    """

    def key(place: int) -> tuple[Fraction, ...]:
        user, count = problem.users[place], tasks[place]
        parts = [
            count * Fraction(need) / Fraction(total) / Fraction(weight)
            for need, total, weight in zip(user.demand, problem.capacity, user.weights, strict=True)
        ]
        by_tasks = count / Fraction(user.weight)
        return {
            "drf": (max(parts),),
            "asset": (sum(parts, Fraction(0)),),
            "max-min": (by_tasks,),
            "max-min:cpus": (parts[0], Fraction(0) if parts[0] else by_tasks),
            "fifo": (Fraction(place),),
        }[policy]

    tasks = [0] * len(problem.users)
    steps: list[str] = []
    while True:
        left = [total - used for total, used in zip(problem.capacity, problem.used(tasks), strict=True)]
        able = [
            place
            for place, user in enumerate(problem.users)
            if tasks[place] + 1 <= user.max_tasks
            and all(need <= rest for need, rest in zip(user.demand, left, strict=True))
        ]
        if not able:
            return steps
        place = min(able, key=lambda place: (key(place), place))
        tasks[place] += 1
        steps.append(problem.users[place].name)


whole_demands = st.tuples(*[st.integers(0, 5)] * 3).filter(any)
# Powers of two, and so are the means of three: the live policies round a key once, and thirds of ninths might round to
# different sides of a tie.
one_weight = st.sampled_from([0.5, 1.0, 2.0, 4.0])
three_weights = st.permutations([0.5, 0.5, 2.0]).map(tuple)


@given(
    users=st.lists(
        st.tuples(
            whole_demands,
            st.one_of(one_weight, three_weights),
            st.one_of(st.just(inf), st.integers(1, 4).map(float)),
        ),
        min_size=1,
        max_size=6,
    ),
    capacity=st.tuples(*[st.integers(4, 40)] * 3),
    policy=st.sampled_from(["drf", "asset", "max-min", "max-min:cpus", "fifo"]),
)
def test_steps_are_those_of_a_slow_look_at_everybody(
    users: list[tuple[tuple[int, ...], float | tuple[float, ...], float]],
    capacity: tuple[int, ...],
    policy: str,
) -> None:
    problem = a_problem(
        capacity,
        {f"u{place}": demand for place, (demand, _, _) in enumerate(users)},
        weights={f"u{place}": weight for place, (_, weight, _) in enumerate(users)},
        caps={f"u{place}": cap for place, (_, _, cap) in enumerate(users)},
    )

    assert list(solve(problem, policy, discrete=True).steps or ()) == served_slowly(problem, policy)
