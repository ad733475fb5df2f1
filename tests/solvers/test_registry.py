"""The table of solvers: every policy answers on every shape of problem, or says why it cannot."""

from collections import Counter

import pytest

from fairlead_master.allocation.policies.names import EXAMPLES
from fairlead_master.solvers.problem import Problem, SolverError
from fairlead_master.solvers.registry import NAMES, solve
from tests.solvers.builders import a_problem, nine_and_eighteen

POLICIES = (*EXAMPLES, "alpha:inf", "alpha-tasks:inf", "baa:utilization", "bbf:95%")
POOL_ONLY = tuple(policy for policy in POLICIES if policy.startswith("baa"))
"""Those that have no fluid solver for machines of different kinds."""
TASKS = {"A": (1, 4), "B": (3, 1)}


def on_machines(*nodes: tuple[int, tuple[float, float]]) -> Problem:
    """The users of the DRF example on these machines."""
    cpus, mem = (sum(count * amounts[place] for count, amounts in nodes) for place in (0, 1))
    return a_problem((cpus, mem), TASKS, nodes=nodes)


def test_every_policy_of_a_live_cluster_has_an_exact_solver() -> None:
    for policy in EXAMPLES:
        assert len(solve(nine_and_eighteen(), policy).tasks) == 2


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if not policy.startswith("slots")])
def test_kinds_of_machines_in_one_proportion_are_one_pool(policy: str) -> None:
    """Tasks that may be split do not care whether half of a machine is a machine of its own. (Slots do: K of each.)"""
    pool = a_problem((27, 54), TASKS)
    machines = on_machines((1, (9, 18)), (2, (4.5, 9)), (3, (3, 6)))
    assert solve(machines, policy).tasks == pytest.approx(solve(pool, policy).tasks, rel=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "problem",
    [
        nine_and_eighteen(),
        nine_and_eighteen(caps={"A": 1.5}, weights={"B": 3}),
        on_machines((2, (9, 18))),
        on_machines((1, (10, 4)), (1, (3, 12))),
        on_machines((1, (9, 0)), (1, (9, 18))),
    ],
    ids=["pool", "capped", "one kind", "two kinds", "a kind without memory"],
)
def test_whole_tasks_fit_and_steps_say_who_was_served(problem: Problem, policy: str) -> None:
    solution = solve(problem, policy, discrete=True)

    counts = Counter(solution.steps)
    assert solution.tasks == tuple(counts[user.name] for user in problem.users)
    assert all(count <= user.max_tasks for count, user in zip(solution.tasks, problem.users, strict=True))
    if not policy.startswith("slots"):
        assert all(
            used <= total for used, total in zip(problem.used(solution.tasks), problem.capacity, strict=True)
        )


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy not in POOL_ONLY])
def test_fluid_tasks_on_machines_of_different_kinds_use_what_is_together(policy: str) -> None:
    """CPUs on a machine without any memory are of use to neither user, though one pool with them would hold more."""
    tasks = solve(on_machines((1, (10, 4)), (1, (8, 0))), policy).tasks

    assert sum(tasks) > 0
    cpus, mem = on_machines((1, (10, 4))).used(tasks)
    if not policy.startswith("slots"):
        assert cpus <= 10 * (1 + 1e-9)
        assert mem <= 4 * (1 + 1e-9)


@pytest.mark.parametrize("policy", POOL_ONLY)
def test_fluid_tasks_on_machines_of_different_kinds_are_refused_with_the_reason(policy: str) -> None:
    problem = on_machines((1, (10, 4)), (1, (3, 12)))

    with pytest.raises(SolverError, match=r"^nodes: expected one pool, or machines whose resources stand in"):
        solve(problem, policy)
    assert sum(solve(problem, policy, discrete=True).tasks) > 0


def test_a_policy_that_is_none_is_answered_with_those_there_are() -> None:
    with pytest.raises(SolverError, match=r"^policy: expected one of drf, .*, got 'best'$") as raised:
        solve(nine_and_eighteen(), "best")

    assert all(name in str(raised.value) for name in NAMES)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("slots:0", "policy: expected slots:K with K from 1 to 1000, got 'slots:0'"),
        ("max-min:gpus", "policy: expected max-min:RES with RES one of cpus, mem, got 'max-min:gpus'"),
        ("bbf:0", "policy: expected bbf:SECONDS with a window of 1 to"),
        ("baa:fun", "policy: expected one of baa, baa:tasks"),
        ("drf:2", "policy: expected one of drf"),
    ],
)
@pytest.mark.parametrize("discrete", [False, True])
def test_a_wrong_argument_is_refused_in_either_mode(policy: str, message: str, discrete: bool) -> None:
    with pytest.raises(SolverError) as raised:
        solve(nine_and_eighteen(), policy, discrete=discrete)

    assert str(raised.value).startswith(message)
