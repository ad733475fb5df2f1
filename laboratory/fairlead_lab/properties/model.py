"""Defines a property: a claim about the allocations of a case, which the treatment of one user may contradict.

Amounts are compared as **dominant shares**: how far a user's tasks are from a bound, as a fraction of the tasks it could
run if everything were its own. So one margin serves all instances, and a difference means the same to small tasks as
to large ones.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from random import Random
from typing import Final, NamedTuple

from fairlead_lab.properties.changes import Change, changed
from fairlead_master.solvers.problem import Amounts, Problem, User

Tasks = tuple[float, ...]
"""Tasks per user, in the order of the problem."""

Allocate = Callable[[Problem], Tasks]
"""A policy. Fluid, and everything is one pool."""

MARGIN: Final = 1e-6
"""A violation is larger than this, in dominant share. The solvers promise nine digits, and a comparison takes the
difference of two of their answers: what is left is a thousand times as much as they can be wrong."""


@dataclass(frozen=True, slots=True)
class Case:
    """A problem and a change of it; None where the property is about one allocation."""

    problem: Problem
    change: Change | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Why an allocation contradicts a property."""

    case: Case
    user: int
    """Who is treated worst, by its place in the problem."""
    excess: float
    """By how much, in dominant share of that user; above `MARGIN`."""
    before: Tasks
    after: Tasks | None
    """Of the users of the changed problem; None without a change."""
    finding: str
    """What is wrong, in numbers: a sentence without the full stop."""


class Treatment(NamedTuple):
    """How one user of a case fares."""

    user: int
    excess: float
    """By how much that contradicts the property, in dominant share of the user; up to `MARGIN` it does not."""
    finding: str
    """The same in numbers: a sentence without the full stop."""


class Setting(Enum):
    """The kind of problems to try a property on."""

    ANY = "any"
    ONE_RESOURCE = "one resource"
    ONE_BOTTLENECK = "one resource is dominant for all"


@dataclass(frozen=True, slots=True)
class Property:
    """A property of policies, by the name that the papers use."""

    name: str
    treatments: Callable[[Case, Tasks, Tasks], Iterator[Treatment]]
    """How users fare by the allocations of the problem and of the changed problem, which is the same without a change. Its
    docstring has the papers' definition."""
    draw_changes: Callable[[Problem, Random], Iterator[Change]] | None = None
    """Changes to try on a problem, without end or a few; None where the property is about one allocation."""
    setting: Setting = Setting.ANY
    speaks_of: Callable[[Problem], bool] = lambda _: True
    """Whether it says anything of a problem; where it does not, it holds vacuously."""

    def find_violation(self, case: Case, allocate: Allocate) -> Violation | None:
        """Whoever is treated worst, the first of equals; None if nobody is treated against the property."""
        if not self.speaks_of(case.problem):
            return None
        before = allocate(case.problem)
        after = None if case.change is None else allocate(changed(case.problem, case.change))
        treatments = self.treatments(case, before, before if after is None else after)
        wrong = [each for each in treatments if each.excess > MARGIN]
        if not wrong:
            return None
        user, excess, finding = max(wrong, key=lambda each: each.excess)
        return Violation(case=case, user=user, excess=excess, before=before, after=after, finding=finding)


def tasks_run(user: User, given: Sequence[float]) -> float:
    """How many tasks of ``user`` run with what it is given: min over needed resources of given / needed, up to its cap.

    The utility of all properties (paper 001, section 4: tasks need their resources in fixed proportions): what a user
    gets beyond those is of no use to it.
    """
    runs = min([got / need for got, need in zip(given, user.demand, strict=True) if need])
    return min(runs, user.max_tasks)


def held(user: User, tasks: float) -> Amounts:
    """What that many tasks of the user hold."""
    return tuple([need * tasks for need in user.demand])


def tasks_alone(problem: Problem, user: User) -> float:
    """How many tasks the user could run with everything: one task's dominant share is the reciprocal of it."""
    return min([total / need for total, need in zip(problem.capacity, user.demand, strict=True) if need])


def weight_share(problem: Problem, user: User) -> float:
    """The user's part of all weights; 1/n where they are equal."""
    return user.weight / sum([each.weight for each in problem.users])


def shown(value: float) -> str:
    """A number for a reader with a pencil: a small fraction such as 45/11 if it is one, else six digits."""
    fraction = Fraction(value).limit_denominator(1000)
    if abs(value - fraction) <= 1e-9 * max(1.0, abs(value)):
        return str(fraction)
    return f"{value:.6g}"


def tasks_shown(count: float) -> str:
    """A number of tasks: ``1 task``, ``3/2 tasks``."""
    return f"{shown(count)} {'task' if shown(count) == '1' else 'tasks'}"


def vector(values: Sequence[float]) -> str:
    """Amounts as the papers write them: ``<1, 4>``."""
    return f"<{', '.join(map(shown, values))}>"
