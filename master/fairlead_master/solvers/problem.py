"""A static problem: capacity, users with their demand of one task each, weights, caps, and maybe machines."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from fairlead_master.allocation.weights import exact

_PROPORTION: Final = 1e-9
"""Relative: resources of machines stand in one proportion if they do so but for this, which rounding may amount to."""

Amounts = tuple[float, ...]
"""One finite number >= 0 per resource, in the order of ``Problem.resources``; in the unit of the capacity."""


class SolverError(ValueError):
    """A problem or a policy that cannot be solved; the message says what was expected and what came."""


@dataclass(frozen=True, slots=True)
class User:
    """Who wants resources, in multiples of one demand vector."""

    name: str
    demand: Amounts
    """Of one task; not all zero."""
    weights: Amounts
    """Entitlement per resource, each above zero; all the same where the user has one weight."""
    max_tasks: float = inf
    """How many tasks it wants at most; any number of them where infinite."""

    @property
    def weight(self) -> float:
        """The entitlement for policies that know only one number a user: the mean of ``weights``."""
        if len(set(self.weights)) == 1:
            return self.weights[0]
        return float(sum(map(exact, self.weights)) / len(self.weights))


@dataclass(frozen=True, slots=True)
class Nodes:
    """Machines of one kind."""

    count: int
    capacity: Amounts
    """Of each of them."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be shared, and by whom. Made by ``problem_json.read_problem`` or by hand; not checked again."""

    resources: tuple[str, ...]
    capacity: Amounts
    """In all; the sum over ``nodes`` where there are any. Zero where nobody needs the resource."""
    users: tuple[User, ...]
    """At least one, in the order in which ties are decided."""
    nodes: tuple[Nodes, ...] = ()
    """Empty: everything is one pool."""
    entitlements: tuple[Amounts, ...] | None = None
    """One per user, per resource a fraction of the capacity, for ``bbf``; None: by weight."""

    @property
    def is_one_pool(self) -> bool:
        """Whether tasks that may be split fare as on one pool of everything.

        They do where there are no machines, or the resources of every kind stand in the proportion of the capacity.
        """
        for nodes in self.nodes:
            parts = [
                amount / total for amount, total in zip(nodes.capacity, self.capacity, strict=True) if total
            ]
            if parts and max(parts) - min(parts) > _PROPORTION * max(parts):
                return False
        return True

    def share(self, user: User) -> Amounts:
        """The fraction of each capacity that one task of the user takes (a_ij of paper 000); 0 where there is none."""
        return tuple(
            [need / total if total else 0.0 for need, total in zip(user.demand, self.capacity, strict=True)]
        )

    def used(self, tasks: Sequence[float]) -> Amounts:
        """How much of each resource is taken by ``tasks[i]`` tasks of user i."""
        return tuple(
            [
                sum(count * user.demand[place] for count, user in zip(tasks, self.users, strict=True))
                for place in range(len(self.resources))
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Who gets how many tasks."""

    tasks: tuple[float, ...]
    """Per user; whole numbers where the problem was solved in discrete tasks."""
    multipliers: Amounts | None = None
    """Per resource, for capacities normalised to 1; of policies that have prices."""
    relative_error: float | None = None
    """The certified bound on the error of everybody's tasks below their limit; of policies with such a certificate."""
    steps: tuple[str, ...] | None = None
    """Names of the users in the order in which they were served, one a task; of discrete solutions."""
