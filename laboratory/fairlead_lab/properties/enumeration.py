"""The smallest case that shows what a given one shows: all smaller ones are tried, the smallest first.

All with as many users and resources, weights of 1, no limits on tasks, and a change of the same kind. Users that nothing
distinguishes come in one order only: another would be the same to any policy that does not look at names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Final, assert_never

from fairlead_lab.properties.changes import (
    Change,
    Departure,
    Growth,
    Misreport,
    Rescaling,
    numbers_of,
    with_numbers,
)
from fairlead_lab.properties.instances import Shape, make_problem
from fairlead_lab.properties.minimising import (
    EXCESS_KEPT,
    FindViolation,
    found_in,
    is_sound,
    minimised,
    size,
    steps,
    steps_to_fewer,
)
from fairlead_lab.properties.model import Case, Violation

TRIED_MAX: Final = 2_000
"""Cases to try: under a second, for policies whose solver iterates as well. The known counterexamples of two users and two
resources are among the first thousand."""


def smallest(violation: Violation, find: FindViolation, shape: Shape) -> Violation:
    """The violation of the smallest case that is found.

    It has as few users and resources as greedy steps lead to, and with those the smallest numbers there are, unless that
    takes more than ``TRIED_MAX`` cases to see: then those where greedy steps end.

    Args:
        violation: where to begin.
        find: what is wrong with a case, if anything. SolverError where the policy cannot be asked about it.
        shape: what the problems must be.
    """
    while True:
        fewer = minimised(violation, find, shape, steps_to_fewer)
        # Enumeration first: large numbers take greedy steps hundreds of questions, small ones are among the first tried.
        violation = minimised(_with_smallest_numbers(fewer, find, shape), find, shape, steps)
        if size(violation.case)[:2] == size(fewer.case)[:2]:
            return violation


def _with_smallest_numbers(violation: Violation, find: FindViolation, shape: Shape) -> Violation:
    """That of the first case tried; the given one if none of those tried shows the same."""
    enough = min(violation.excess, EXCESS_KEPT)
    tried = islice(smaller_cases(violation.case, shape), TRIED_MAX)
    found = (found_in(case, find) for case in tried)
    return next((each for each in found if each is not None and each.excess >= enough), violation)


def smaller_cases(like: Case, shape: Shape) -> Iterator[Case]:
    """Sound cases with as many users and resources and a change of the same kind, in the order of their size."""
    users, resources = len(like.problem.users), len(like.problem.resources)
    least_need = 1 if shape.is_positive else 0
    # Nobody claims less than nothing; a factor of 1 is no change, nor is a capacity of 1.
    least_change = 0 if isinstance(like.change, Misreport) else 2
    least = [1] * resources + [least_need] * (users * resources)
    least += [least_change] * len(numbers_of(like.change))
    # The numbers of a case but for its weights, which are all 1 here.
    below = int(size(like)[2]) - users * resources
    for total in range(sum(least), below):
        for numbers in _summing_to(total, least):
            rows = [
                tuple(map(float, numbers[at : at + resources])) for at in range(0, len(numbers), resources)
            ]
            problem = make_problem(rows[0], *rows[1 : users + 1])
            for change in _changes_like(like.change, numbers[(users + 1) * resources :], users, resources):
                case = Case(problem, change)
                if is_sound(case) and _is_in_order(case):
                    yield case


def _changes_like(
    change: Change | None, numbers: Sequence[int], users: int, resources: int
) -> Iterator[Change | None]:
    """Changes of the same kind by these numbers: of one user, which one it is being the same to a policy; of any resource."""
    like = with_numbers(change, tuple(map(float, numbers)))
    match like:
        case Misreport() | Rescaling():
            yield replace(like, user=0)
        case Growth():
            for place in range(resources):
                yield replace(like, resource=place)
        case Departure():
            yield Departure(users - 1)
        case None:
            yield None
        case _:
            assert_never(like)


def _is_in_order(case: Case) -> bool:
    """Whether the users that the change is not about have ascending demands."""
    about = None if case.change is None or isinstance(case.change, Growth) else case.change.user
    demands = [user.demand for place, user in enumerate(case.problem.users) if place != about]
    return all(first <= second for first, second in pairwise(demands))


def _summing_to(total: int, least: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All tuples of whole numbers with that sum, none of them below its least."""
    if len(least) == 1:
        yield (total,)
        return
    rest = least[1:]
    for first in range(least[0], total - sum(rest) + 1):
        for others in _summing_to(total - first, rest):
            yield first, *others
