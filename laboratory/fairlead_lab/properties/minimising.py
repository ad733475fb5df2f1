"""Makes a case smaller: users and resources are dropped and numbers lowered while the violation stays.

Greedy: of all steps that lead to a smaller case the first one that keeps the violation is taken, until none does. Where that
ends need not be the smallest case, which is what ``enumeration`` looks for.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import gcd, inf
from typing import Final

from fairlead_lab.properties.changes import (
    Growth,
    Misreport,
    is_possible,
    numbers_of,
    replaced,
    with_numbers,
    without_resource,
    without_user,
)
from fairlead_lab.properties.instances import NAMES, RESOURCES, Shape
from fairlead_lab.properties.model import Case, Violation
from fairlead_master.solvers.problem import Amounts, Problem, SolverError

EXCESS_KEPT: Final = 0.01
"""A step may not push the violation below this, in dominant share, if it began above: one that a reader has to look for
behind the comma convinces nobody."""

FindViolation = Callable[[Case], Violation | None]


def minimised(
    violation: Violation, find: FindViolation, shape: Shape, steps_from: Callable[[Case], Iterator[Case]]
) -> Violation:
    """The violation of the smallest case of that shape that greedy steps lead to.

    Args:
        violation: where to begin.
        find: what is wrong with a case, if anything. SolverError where the policy cannot be asked about it.
        shape: what every case on the way must be.
        steps_from: which steps there are, such as ``steps``; each to a case of less ``size``.
    """
    enough = min(violation.excess, EXCESS_KEPT)
    while True:
        smaller = (
            found
            for case in steps_from(violation.case)
            if is_sound(case) and shape.admits(case.problem)
            if (found := found_in(case, find)) is not None and found.excess >= enough
        )
        step = next(smaller, None)
        if step is None:
            return violation
        violation = step


def found_in(case: Case, find: FindViolation) -> Violation | None:
    """What is wrong with a case, if anything; None as well where the policy cannot be asked about it."""
    try:
        return find(case)
    except SolverError:  # For example, the resource that the policy counts has been dropped.
        return None


def size(case: Case) -> tuple[int, int, float]:
    """Users, resources, and the sum of all numbers: what `minimised` makes smaller."""
    problem = case.problem
    numbers = [*problem.capacity, *(need for user in problem.users for need in user.demand)]
    numbers += [weight for user in problem.users for weight in user.weights]
    numbers += [user.max_tasks for user in problem.users if user.max_tasks < inf]
    numbers += numbers_of(case.change)
    return len(problem.users), len(problem.resources), sum(numbers)


def is_sound(case: Case) -> bool:
    """Whether the case is one: somebody there, everybody needs something, there is some of everything, a real change."""
    problem = case.problem
    return (
        bool(problem.users)
        and bool(problem.resources)
        and all(total >= 1 for total in problem.capacity)
        and all(any(user.demand) for user in problem.users)
        and is_possible(problem, case.change)
    )


def steps(case: Case) -> Iterator[Case]:
    """Smaller cases, the boldest steps first; not all of them are sound."""
    yield from steps_to_fewer(case)
    yield from _without_a_cap(case)
    yield from _divided(case)
    yield from _with_demand_and_capacity_lowered(case)
    yield from _with_a_number_lowered(case)


def steps_to_fewer(case: Case) -> Iterator[Case]:
    """Those of the steps that drop a user or a resource."""
    yield from _without_a_user(case)
    yield from _without_a_resource(case)


def _without_a_user(case: Case) -> Iterator[Case]:
    problem = case.problem
    for gone in range(len(problem.users)):
        try:
            change = without_user(case.change, gone)
        except LookupError:
            continue
        staying = [user for place, user in enumerate(problem.users) if place != gone]
        users = tuple([replace(user, name=name) for user, name in zip(staying, NAMES, strict=False)])
        yield Case(replace(problem, users=users), change)


def _without_a_resource(case: Case) -> Iterator[Case]:
    problem = case.problem
    for gone in reversed(range(len(problem.resources))):

        def kept(values: Amounts, at: int = gone) -> Amounts:
            return (*values[:at], *values[at + 1 :])

        try:
            change = without_resource(case.change, gone)
        except LookupError:
            continue
        users = [
            replace(user, demand=kept(user.demand), weights=kept(user.weights)) for user in problem.users
        ]
        # Named anew, so that the same case does not come as "cpus and mem" here and as "mem and disk" there. A policy that
        # counts one resource by name is asked about another one then, which the next look at the case tells.
        resources = RESOURCES[: len(problem.resources) - 1]
        yield Case(Problem(resources=resources, capacity=kept(problem.capacity), users=tuple(users)), change)


def _without_a_cap(case: Case) -> Iterator[Case]:
    for place, user in enumerate(case.problem.users):
        if user.max_tasks < inf:
            yield _with_user(case, place, max_tasks=inf)


def _divided(case: Case) -> Iterator[Case]:
    """A resource in larger units, or a user's demand counted in smaller tasks."""
    problem, change = case.problem, case.change
    for place, total in enumerate(problem.capacity):
        column = [total, *(user.demand[place] for user in problem.users)]
        if isinstance(change, Misreport):
            column.append(change.claim[place])
        if isinstance(change, Growth) and change.resource == place:
            column.append(change.capacity)
        factor = gcd(*map(int, column))
        if factor > 1:
            yield _with_column_divided(case, place, factor)
    for place, user in enumerate(problem.users):
        factor = gcd(*map(int, user.demand))
        if factor > 1:
            yield _with_user(case, place, demand=tuple([need / factor for need in user.demand]))


def _with_column_divided(case: Case, place: int, factor: int) -> Case:
    problem, change = case.problem, case.change

    def divided(values: Amounts) -> Amounts:
        return replaced(values, place, values[place] / factor)

    if isinstance(change, Misreport):
        change = replace(change, claim=divided(change.claim))
    if isinstance(change, Growth) and change.resource == place:
        change = replace(change, capacity=change.capacity / factor)
    users = tuple([replace(user, demand=divided(user.demand)) for user in problem.users])
    return Case(replace(problem, capacity=divided(problem.capacity), users=users), change)


def _with_a_number_lowered(case: Case) -> Iterator[Case]:
    problem, change = case.problem, case.change
    for place, user in enumerate(problem.users):
        for where, need in enumerate(user.demand):
            for lower in _lower(need):
                yield _with_user(case, place, demand=replaced(user.demand, where, lower))
        for lower in _lower(user.weight):
            if lower:
                yield _with_user(case, place, weights=(lower,) * len(user.weights))
        if user.max_tasks < inf:
            for lower in _lower(user.max_tasks):
                if lower:
                    yield _with_user(case, place, max_tasks=lower)
    for where, total in enumerate(problem.capacity):
        for lower in _lower(total):
            yield Case(replace(problem, capacity=replaced(problem.capacity, where, lower)), change)
    numbers = numbers_of(change)
    for where, number in enumerate(numbers):
        for lower in _lower(number):
            yield Case(problem, with_numbers(change, replaced(numbers, where, lower)))


def _with_demand_and_capacity_lowered(case: Case) -> Iterator[Case]:
    """One resource by one for a user and in all: where the violation stays only if both are."""
    problem = case.problem
    for place, user in enumerate(problem.users):
        for where, need in enumerate(user.demand):
            if need >= 1 and problem.capacity[where] >= 2:
                lowered = _with_user(case, place, demand=replaced(user.demand, where, need - 1))
                capacity = replaced(problem.capacity, where, problem.capacity[where] - 1)
                yield Case(replace(lowered.problem, capacity=capacity), case.change)


def _lower(value: float) -> Iterator[float]:
    """Smaller whole numbers to try, the smallest first."""
    yield from (
        float(lower) for lower in sorted({0, 1, int(value) // 2, int(value) - 1}) if 0 <= lower < value
    )


def _with_user(case: Case, place: int, **fields: Amounts | float) -> Case:
    users = case.problem.users
    user = replace(users[place], **fields)  # type: ignore[arg-type]  # fields of User, by their names
    return Case(replace(case.problem, users=(*users[:place], user, *users[place + 1 :])), case.change)
