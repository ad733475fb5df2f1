"""All properties of several policies: what `fairlead properties` runs."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from fairlead_lab.properties.definitions import PROPERTIES
from fairlead_lab.properties.instances import RESOURCES, Shape, make_problem
from fairlead_lab.properties.search import Verdict, policy_by_name, search
from fairlead_master.solvers.registry import NAMES

_ARGUMENTS: Final = {"": "", "K": "4", "RES": RESOURCES[0], "A": "2", "OBJECTIVE": "min"}
"""For policies with an argument, where none is asked for by name: by the letter or word that stands for it."""

_TABLE_FIRST: Final = ("asset", "ceei", "drf")
"""The papers' table begins with these."""


def one_of_each_kind() -> list[str]:
    """A policy of every kind there is, in the order of the papers' table and then of the registry."""
    parts = [name.partition(":") for name in NAMES]
    names = [word + colon + _ARGUMENTS[argument] for word, colon, argument in parts]
    first = [name for name in _TABLE_FIRST if name in names]
    return first + [name for name in names if name not in first]


def check_policies(policies: Sequence[str]) -> None:
    """Refuse what is no policy before a long search begins.

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
