"""Which solver answers for which policy: one table, by the word an operator writes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fairlead_master.allocation.api import AllocationError
from fairlead_master.allocation.policies import bbf
from fairlead_master.solvers import alpha_fair, bottleneck, bottleneck_aware, max_min, utilization
from fairlead_master.solvers.discrete import solve_live
from fairlead_master.solvers.problem import Problem, Solution, SolverError

Solve = Callable[[Problem, str], Solution]
"""From the problem and the policy as written, argument included."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of policy: what an operator writes, and who solves it."""

    shown: str
    """The name with its argument as a letter or word: ``slots:K``."""
    fluid: Solve
    discrete: Solve = solve_live
    """By the live policy of that name, where it has no better answer of its own."""


def _without_window(answer: Callable[[Problem], Solution]) -> Solve:
    """``bbf:SECONDS`` is ``bbf`` where nothing changes with time; only its argument is checked.

    Nor does its threshold matter: a bottleneck is what is used up.
    """

    def solve_at_rest(problem: Problem, policy: str) -> Solution:
        try:
            bbf.parse(policy.partition(":")[2])
        except AllocationError as error:
            raise SolverError(str(error)) from None
        return answer(problem)

    return solve_at_rest


_KINDS: Final[Mapping[str, _Kind]] = {
    "".join(kind.shown.partition(":")[:2]): kind
    for kind in (
        _Kind("drf", max_min.solve),
        _Kind("asset", max_min.solve),
        _Kind("max-min", max_min.solve),
        _Kind("max-min:RES", max_min.solve),
        _Kind("slots:K", max_min.solve_slots),
        _Kind("fifo", max_min.solve),
        _Kind("pf", alpha_fair.solve_proportional),
        _Kind("ceei", alpha_fair.solve_proportional),
        _Kind("alpha:A", alpha_fair.solve, alpha_fair.solve_discrete),
        _Kind("alpha-tasks:A", alpha_fair.solve, alpha_fair.solve_discrete),
        _Kind(
            "bbf",
            lambda problem, _: bottleneck.solve(problem),
            lambda problem, _: bottleneck.solve_discrete(problem),
        ),
        _Kind("bbf:SECONDS", _without_window(bottleneck.solve), _without_window(bottleneck.solve_discrete)),
        _Kind("utilization", lambda problem, _: utilization.solve(problem)),
        _Kind("baa", bottleneck_aware.solve, bottleneck_aware.solve_discrete),
        _Kind("baa:OBJECTIVE", bottleneck_aware.solve, bottleneck_aware.solve_discrete),
    )
}
"""Word, with a colon if an argument follows, to kind."""

NAMES: Final = tuple(kind.shown for kind in _KINDS.values() if kind.shown != "bbf:SECONDS")
"""As shown to people, one of each that answers differently; K and A stand for numbers, RES for a resource of the problem, OBJECTIVE for tasks, min or utilization."""


def solve(problem: Problem, policy: str, *, discrete: bool = False) -> Solution:
    """Who gets how many tasks under ``policy``, written as on a live cluster: ``drf``, ``slots:4``, ``max-min:cpus``.

    Tasks may be split at will unless ``discrete``: then they are whole, and served one at a time.

    Raises:
        SolverError: no such policy, an argument it cannot use, or a problem it cannot solve.
    """
    word, colon, _ = policy.partition(":")
    kind = _KINDS.get(word + colon)
    if kind is None:
        raise SolverError(f"policy: expected one of {', '.join(NAMES)}, got {policy!r}")
    return kind.discrete(problem, policy) if discrete else kind.fluid(problem, policy)
