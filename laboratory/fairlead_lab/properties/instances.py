"""Problems to try a property on: small whole numbers, so that a reader can check what is found with a pencil."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Final

from fairlead_lab.properties.model import Setting
from fairlead_master.solvers.problem import Amounts, Problem, User

RESOURCES: Final = ("cpus", "mem", "disk")
NAMES: Final = ("A", "B", "C", "D")

_TOPS: Final = (1, 2, 3, 5, 10)
"""Largest number of an instance: the small ones make the ties and the exact fits in which policies are caught."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Which problems are drawn."""

    is_positive: bool = False
    """Everybody needs something of every resource; else about a third of the demands are zero."""
    is_weighted: bool = False
    """Weights 1 to 4; else all are 1, as in the papers."""
    is_capped: bool = False
    """Half of the users want a number of tasks at most; else nobody does, as in the papers."""

    def admits(self, problem: Problem) -> bool:
        """Whether a problem is of this shape; one that uses less freedom than there is belongs to it."""
        users = problem.users
        return (
            (not self.is_positive or all(all(user.demand) for user in users))
            and (self.is_weighted or len({user.weights for user in users}) == 1)
            and (self.is_capped or all(user.max_tasks == inf for user in users))
        )


def draw_problems(random: Random, shape: Shape, setting: Setting) -> Iterator[Problem]:
    """Problems of a shape, without end: 2 to 4 users, 1 to 3 resources (one where the setting says so)."""
    while True:
        count = 1 if setting is Setting.ONE_RESOURCE else random.randint(1, len(RESOURCES))
        top = random.choice(_TOPS)
        demands = [_draw_demand(random, count, top, shape) for _ in range(random.randint(2, len(NAMES)))]
        if setting is Setting.ONE_BOTTLENECK:
            demands = [tuple(sorted(demand, reverse=True)) for demand in demands]
            capacity: Amounts = (float(random.randint(1, 3 * top)),) * count
        else:
            capacity = tuple([float(random.randint(1, 3 * top)) for _ in range(count)])
        users = [_draw_user(random, place, demand, shape) for place, demand in enumerate(demands)]
        yield Problem(resources=RESOURCES[:count], capacity=capacity, users=tuple(users))


def _draw_demand(random: Random, count: int, top: int, shape: Shape) -> Amounts:
    if shape.is_positive:
        return tuple([float(random.randint(1, top)) for _ in range(count)])
    demand = [float(random.randint(1, top)) if random.random() < 2 / 3 else 0.0 for _ in range(count)]
    if not any(demand):
        demand[random.randrange(count)] = float(random.randint(1, top))
    return tuple(demand)


def _draw_user(random: Random, place: int, demand: Amounts, shape: Shape) -> User:
    weight = float(random.randint(1, 4)) if shape.is_weighted else 1.0
    is_capped = shape.is_capped and random.random() < 1 / 2
    cap = float(random.randint(1, 5)) if is_capped else inf
    return User(name=NAMES[place], demand=demand, weights=(weight,) * len(demand), max_tasks=cap)


def make_problem(capacity: Amounts, *demands: Amounts) -> Problem:
    """A problem of users A, B, … of equal weight, as papers state theirs: ``make_problem((9, 18), (1, 4), (3, 1))``."""
    users = [
        User(name=name, demand=demand, weights=(1.0,) * len(demand))
        for name, demand in zip(NAMES, demands, strict=False)
    ]
    return Problem(resources=RESOURCES[: len(capacity)], capacity=capacity, users=tuple(users))
