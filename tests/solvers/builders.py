"""Static problems in few words."""

from collections.abc import Mapping, Sequence
from math import inf

from fairlead_master.solvers.problem import Amounts, Nodes, Problem, User

Demands = Mapping[str, Sequence[float]]
"""User to the demand of one task."""


def a_problem(
    capacity: Sequence[float],
    demands: Demands,
    *,
    weights: Mapping[str, float | Amounts] | None = None,
    caps: Mapping[str, float] | None = None,
    nodes: Sequence[tuple[int, Amounts]] = (),
    entitlements: Sequence[Amounts] | None = None,
) -> Problem:
    """Resources are named cpus, mem, r2, r3, ... by their place; weights are 1 and caps absent unless given."""
    width = len(capacity)

    def user(name: str, demand: Sequence[float]) -> User:
        weight = (weights or {}).get(name, 1.0)
        per_resource = weight if isinstance(weight, tuple) else (weight,) * width
        return User(name, tuple(demand), per_resource, (caps or {}).get(name, inf))

    return Problem(
        resources=tuple(("cpus", "mem", "r2", "r3", "r4", "r5", "r6", "r7")[:width]),
        capacity=tuple(capacity),
        users=tuple(user(name, demand) for name, demand in demands.items()),
        nodes=tuple(Nodes(count, amounts) for count, amounts in nodes),
        entitlements=None if entitlements is None else tuple(entitlements),
    )


def nine_and_eighteen(
    *, weights: Mapping[str, float | Amounts] | None = None, caps: Mapping[str, float] | None = None
) -> Problem:
    """9 CPUs and 18 GB; a task of A needs <1 CPU, 4 GB>, one of B <3 CPUs, 1 GB>: DRF paper, section 4.1."""
    return a_problem((9, 18), {"A": (1, 4), "B": (3, 1)}, weights=weights, caps=caps)
