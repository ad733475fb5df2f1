"""Searches for a case in which a policy lacks a property: the papers' examples first, then problems drawn at random.

``search`` is about one property of one policy; ``examine``, what `fairlead properties` runs, about all properties of several.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import count, islice
from random import Random
from typing import Final

from fairlead_lab.properties.definitions import PROPERTIES
from fairlead_lab.properties.enumeration import smallest
from fairlead_lab.properties.instances import RESOURCES, Shape, draw_problems, make_problem
from fairlead_lab.properties.minimising import size
from fairlead_lab.properties.model import Allocate, Case, Property, Violation
from fairlead_lab.properties.paper_examples import EXAMPLES, Example
from fairlead_master.solvers.problem import Problem, SolverError
from fairlead_master.solvers.registry import NAMES, solve

CHANGES_MAX: Final = 6
"""Changes tried on one problem: more problems find more than more changes of one."""

FOUND_MAX: Final = 6
"""A search of problems of one kind ends with so many violations."""

_SOLUTIONS_KEPT: Final = 4096

_ARGUMENTS: Final = {"": "", "K": "4", "RES": RESOURCES[0], "A": "2", "OBJECTIVE": "min"}
"""For policies with an argument, where none is asked for by name: by the letter or word that stands for it."""

_TABLE_FIRST: Final = ("asset", "ceei", "drf")
"""The papers' table begins with these."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a search for one property of one policy."""

    policy: str
    property_name: str
    trials: int
    """Problems the policy was asked about until the search ended; 0 if it can be asked about none of the kind."""
    violation: Violation | None
    """The smallest found; None if the property held in all trials."""
    needs_zero_demand: bool
    """Whether there is a violation, but none was found while everybody needed something of everything."""

    @property
    def holds(self) -> bool:
        """Whether no violation was found, which is no proof."""
        return self.violation is None


def policy_by_name(policy: str) -> Allocate:
    """The exact solver of a policy, which remembers its latest answers.

    Raises:
        SolverError: on a call, for a policy that is unknown or a problem it cannot be asked about.
    """

    @lru_cache(maxsize=_SOLUTIONS_KEPT)
    def allocate(problem: Problem) -> tuple[float, ...]:
        return solve(problem, policy).tasks

    return allocate


def search(
    policy: str,
    allocate: Allocate,
    claim: Property,
    *,
    trials: int,
    seed: int,
    shape: Shape,
    on_trial: Callable[[int], None] = lambda _number: None,
) -> Verdict:
    """Look for violations among problems of positive demands and, if there are none, among those with zeros.

    In that order because several theorems assume positive demands: so a violation that needs a zero is told from one
    that does not. What is drawn depends on seed and property, not on the policy: all policies face the same problems.

    Args:
        policy: its name, for the verdict.
        allocate: the policy.
        claim: the property.
        trials: how many problems of each kind, the papers' examples not counted.
        seed: of all that is drawn.
        shape: which problems; with ``is_positive`` those with zeros are not looked at.
        on_trial: called before each problem with its number, for who waits.
    """
    positive = replace(shape, is_positive=True)
    answered = 0
    number = count(1)

    def find(case: Case) -> Violation | None:
        return claim.find_violation(case, allocate)

    for kind in (positive,) if shape.is_positive else (positive, shape):
        found: list[Violation] = []
        for cases in _trials(claim, trials=trials, seed=seed, shape=kind, examples=EXAMPLES):
            on_trial(next(number))
            try:
                violation = next((wrong for case in cases if (wrong := find(case)) is not None), None)
            except SolverError:
                continue
            answered += 1
            if violation is not None:
                found.append(violation)
                if len(found) == FOUND_MAX:
                    break
        if found:
            least = smallest(min(found, key=_size), find, kind)
            return Verdict(policy, claim.name, answered, least, needs_zero_demand=kind is not positive)
    return Verdict(policy, claim.name, answered, None, needs_zero_demand=False)


def one_of_each_kind() -> list[str]:
    """A policy of every kind there is, in the order of the papers' table and then of the registry."""
    parts = [name.partition(":") for name in NAMES]
    names = [word + colon + _ARGUMENTS[argument] for word, colon, argument in parts]
    first = [name for name in _TABLE_FIRST if name in names]
    return first + [name for name in names if name not in first]


def check_policies(policies: Sequence[str]) -> None:
    """Refuse unknown policies before a long search begins.

    Raises:
        SolverError: one of them is unknown, or has an argument that cannot be used.
    """
    problem = make_problem((2.0,) * len(RESOURCES), (1.0,) * len(RESOURCES))
    for policy in policies:
        policy_by_name(policy)(problem)


def examine(
    policies: Sequence[str],
    *,
    trials: int,
    seed: int,
    shape: Shape,
    on_trial: Callable[[str, str, int], None] = lambda _policy, _property, _number: None,
) -> Iterator[Verdict]:
    """A verdict for every policy and property, policy by policy, as they are reached.

    Args:
        policies: as an operator writes them.
        trials: how many problems of each kind.
        seed: of all that is drawn.
        shape: which problems.
        on_trial: called before each problem with policy, name of the property and number of the problem.

    Raises:
        SolverError: on the first step, as ``check_policies``.
    """
    check_policies(policies)
    for policy in policies:
        allocate = policy_by_name(policy)
        for each in PROPERTIES:
            yield search(
                policy,
                allocate,
                each,
                trials=trials,
                seed=seed,
                shape=shape,
                on_trial=partial(on_trial, policy, each.name),
            )


def _size(violation: Violation) -> tuple[int, int, float]:
    return size(violation.case)


def _trials(
    claim: Property, *, trials: int, seed: int, shape: Shape, examples: Sequence[Example]
) -> Iterator[list[Case]]:
    """The cases of each trial: one problem, with each of the changes to try on it."""
    # A text as seed is hashed by Random itself, the same in every process.
    random = Random(f"{seed} {claim.name} {shape}")  # noqa: S311 - nothing secret is drawn
    for example in examples:
        if shape.admits(example.case.problem):
            own = [example.case] if claim.name in example.properties else []
            yield own + _cases(example.case.problem, claim, random)
    for problem in islice(draw_problems(random, shape, claim.setting), trials):
        yield _cases(problem, claim, random)


def _cases(problem: Problem, claim: Property, random: Random) -> list[Case]:
    if claim.draw_changes is None:
        return [Case(problem)]
    return [Case(problem, change) for change in islice(claim.draw_changes(problem, random), CHANGES_MAX)]


def draw_cases(
    claim: Property, *, trials: int, seed: int, shape: Shape, examples: Sequence[Example] = EXAMPLES
) -> Iterator[Case]:
    """All cases that a search of one shape looks at, if nothing ends it early."""
    for cases in _trials(claim, trials=trials, seed=seed, shape=shape, examples=examples):
        yield from cases
