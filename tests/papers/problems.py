"""The papers' problems in few words, and the solvers' answers to them, by name of user."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf
from typing import Final

from fairlead_master.solvers import registry
from fairlead_master.solvers.problem import Nodes, Problem, User

Number = float | Fraction

RESOURCES: Final = ("cpus", "mem", "disk", "net")


def a_problem(
    capacity: Sequence[Number],
    demands: Mapping[str, Sequence[Number]],
    *,
    weights: Mapping[str, float | Sequence[float]] | None = None,
    max_tasks: Mapping[str, Number] | None = None,
    resources: Sequence[str] = RESOURCES,
    machines: int = 0,
) -> Problem:
    """One pool of ``capacity``, or ``machines`` of that capacity each; users in the order of ``demands``."""
    users = []
    for name, demand in demands.items():
        weight = (weights or {}).get(name, 1.0)
        by_resource = (weight,) * len(demand) if isinstance(weight, int | float) else tuple(weight)
        cap = float((max_tasks or {}).get(name, inf))
        users.append(User(name, tuple(map(float, demand)), by_resource, cap))
    each = tuple(map(float, capacity))
    return Problem(
        resources=tuple(resources[: len(capacity)]),
        capacity=tuple([amount * max(machines, 1) for amount in each]),
        users=tuple(users),
        nodes=(Nodes(machines, each),) if machines else (),
    )


def tasks(problem: Problem, policy: str) -> dict[str, float]:
    """How many tasks each user gets from the solver of the policy, tasks being divisible."""
    solution = registry.solve(problem, policy)
    return {user.name: count for user, count in zip(problem.users, solution.tasks, strict=True)}


def shares(problem: Problem, policy: str) -> dict[str, list[float]]:
    """The fraction of each capacity that each user gets."""
    given = tasks(problem, policy)
    return {user.name: [given[user.name] * part for part in problem.share(user)] for user in problem.users}


def floats(exact: Mapping[str, Number]) -> dict[str, float]:
    """Exact numbers as what floats can be compared with."""
    return {name: float(number) for name, number in exact.items()}
