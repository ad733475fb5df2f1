"""What may happen to a problem, so that the allocations before and after can be compared."""

from dataclasses import dataclass, replace
from math import isinf
from typing import assert_never

from fairlead_master.solvers.problem import Amounts, Problem


@dataclass(frozen=True, slots=True)
class Misreport:
    """A user claims to need ``claim`` for each task instead of what it needs."""

    user: int
    claim: Amounts


@dataclass(frozen=True, slots=True)
class Departure:
    """A user leaves and gives back what it held."""

    user: int


@dataclass(frozen=True, slots=True)
class Growth:
    """A resource has more capacity than before: ``capacity`` in all."""

    resource: int
    capacity: float


@dataclass(frozen=True, slots=True)
class Rescaling:
    """A user declares its work in tasks ``factor`` times as large, of which it wants as many times fewer."""

    user: int
    factor: float


Change = Misreport | Departure | Growth | Rescaling


def replaced(values: Amounts, place: int, value: float) -> Amounts:
    """The same amounts but for one of them."""
    return (*values[:place], value, *values[place + 1 :])


def numbers_of(change: Change | None) -> Amounts:
    """The numbers that make a change larger or smaller."""
    match change:
        case Misreport(_, claim):
            return claim
        case Growth(_, number) | Rescaling(_, number):
            return (number,)
        case Departure() | None:
            return ()
        case _:
            assert_never(change)


def with_numbers(change: Change | None, numbers: Amounts) -> Change | None:
    """The same change by other numbers."""
    match change:
        case Misreport():
            return replace(change, claim=numbers)
        case Growth():
            return replace(change, capacity=numbers[0])
        case Rescaling():
            return replace(change, factor=numbers[0])
        case _:
            return change


def changed(problem: Problem, change: Change) -> Problem:
    """The problem as the policy is told of it after the change."""
    users = problem.users
    match change:
        case Misreport(who, claim):
            lying = replace(users[who], demand=claim)
            return replace(problem, users=(*users[:who], lying, *users[who + 1 :]))
        case Departure(who):
            return replace(problem, users=(*users[:who], *users[who + 1 :]))
        case Growth(where, capacity):
            return replace(problem, capacity=replaced(problem.capacity, where, capacity))
        case Rescaling(who, factor):
            user = users[who]
            cap = user.max_tasks if isinf(user.max_tasks) else user.max_tasks / factor
            demand = tuple([need * factor for need in user.demand])
            return replace(
                problem,
                users=(*users[:who], replace(user, demand=demand, max_tasks=cap), *users[who + 1 :]),
            )
        case _:
            assert_never(change)


def is_possible(problem: Problem, change: Change | None) -> bool:
    """Whether the change is one: the lie is not the truth and asks for something, a growth is more, somebody stays."""
    match change:
        case None:
            return True
        case Misreport(who, claim):
            return any(claim) and claim != problem.users[who].demand
        case Departure():
            return len(problem.users) > 1
        case Growth(where, capacity):
            return capacity > problem.capacity[where]
        case Rescaling(_, factor):
            return factor > 0 and factor != 1
        case _:
            assert_never(change)


def without_user(change: Change | None, gone: int) -> Change | None:
    """The same change of the problem without user ``gone``.

    Raises:
        LookupError: the change is about that user.
    """
    if change is None or isinstance(change, Growth):
        return change
    if change.user == gone:
        raise LookupError(gone)
    return replace(change, user=change.user - (change.user > gone))


def without_resource(change: Change | None, gone: int) -> Change | None:
    """The same change of the problem without resource ``gone``.

    Raises:
        LookupError: the change is about that resource.
    """
    match change:
        case Misreport(who, claim):
            return Misreport(who, (*claim[:gone], *claim[gone + 1 :]))
        case Growth(where, capacity):
            if where == gone:
                raise LookupError(gone)
            return Growth(where - (where > gone), capacity)
        case _:
            return change
