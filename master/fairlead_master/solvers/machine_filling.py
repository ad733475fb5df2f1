"""Progressive filling on machines of different kinds, by linear programs.

A task runs on one machine, so that CPUs that are free on one kind and memory that is free on another help nobody. With
z_im the key of user i that its tasks on machines of kind m make up, and c_imj the part of resource j of all machines of
the kind that one step of that key takes, the next level is

    maximise  t   under   sum_i z_im c_imj <= 1,   sum_m z_im >= t for all who still rise,
                          sum_m z_im = what it has for all who have stopped,   t <= the next cap

Those whose second row has a multiplier above zero cannot rise in any optimum and stop; the multipliers add up to 1 with that
of the cap, so that each program stops somebody. This is the lexicographically largest vector of keys, smallest
first: Radunovic and Le Boudec, "A Unified Framework for Max-Min and Min-Max Fairness with Applications", algorithm MP.
Machines of one kind are one pool, since fluid tasks may be split.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Final

from fairlead_master.allocation.linear_program import LinearSolution, maximise
from fairlead_master.allocation.weights import exact
from fairlead_master.solvers.problem import Problem, SolverError
from fairlead_master.solvers.water_filling import Number, Tier

VARIABLES_MAX: Final = 400
"""Users times kinds of machines. Each program costs that many columns times about as many pivots, and there may be as many
programs as users: 100 users on four kinds take some seconds, 250 take minutes."""

EXACT_VARIABLES_MAX: Final = 30
"""Up to so many all is computed in fractions, in a second at most."""

_STOPS: Final = 1e-7
"""In floats, a multiplier above this is no rounding. Who stops a program later for having less stops at the same level."""


@dataclass(slots=True)
class _State:
    """Costs of all users, and the tasks of those who have stopped; users by their place in the problem."""

    costs: list[list[list[Number]]]
    """c_imj by user, kind and resource, for a key that grows by 1 with each task; empty for a kind without what it needs."""
    stopped: dict[int, Number]
    """Users that rise no more, with the tasks they have."""


def fill_machines(problem: Problem, tiers: Iterable[Tier]) -> list[float]:
    """The tasks of each user when the tiers are filled one after the other.

    Raises:
        SolverError: more users times kinds of machines than ``VARIABLES_MAX``.
    """
    variables = len(problem.users) * len(problem.nodes)
    if variables > VARIABLES_MAX:
        raise SolverError(
            f"nodes: expected at most {VARIABLES_MAX} users times kinds of nodes under this policy, got {variables}; "
            "whole tasks have no such limit"
        )
    is_exact = variables <= EXACT_VARIABLES_MAX
    state = _State(_costs(problem, is_exact=is_exact), {})
    for tier in tiers:
        rising = {}
        for place, rise in tier:
            if any(state.costs[place]):
                rising[place] = rise if is_exact else float(rise)
            else:
                state.stopped[place] = Fraction(0)
        _fill(problem, state, rising)
    return [float(state.stopped[place]) for place in range(len(problem.users))]


def _costs(problem: Problem, *, is_exact: bool) -> list[list[list[Number]]]:
    number = exact if is_exact else float
    return [
        [
            [
                number(need) / (kind.count * number(total)) if need else number(0)
                for need, total in zip(user.demand, kind.capacity, strict=True)
            ]
            if all(total for need, total in zip(user.demand, kind.capacity, strict=True) if need)
            else []
            for kind in problem.nodes
        ]
        for user in problem.users
    ]


def _fill(problem: Problem, state: _State, rising: dict[int, Number]) -> None:
    """Raise all users of a tier together, each by its rise, until each has been stopped."""
    while rising:
        ceilings: dict[int, Number] = {}
        for place, rise in rising.items():
            cap = problem.users[place].max_tasks
            if cap < inf:
                ceilings[place] = (exact(cap) if isinstance(rise, Fraction) else cap) * rise
        next_cap = min(ceilings.values()) if ceilings else None
        found = _next_level(state, rising, next_cap)
        level: Number = found.x[-1]
        pulls: dict[int, Number] = dict(
            zip(rising, found.duals, strict=False)
        )  # the rows of those who rise come first
        stops = {place for place, pull in pulls.items() if pull > _STOPS}
        if next_cap is not None and level >= next_cap * (1 if isinstance(level, Fraction) else 1 - _STOPS):
            stops |= {place for place, ceiling in ceilings.items() if ceiling <= next_cap}
        for place in stops:
            state.stopped[place] = min(level, ceilings.get(place, level)) / rising.pop(place)


def _next_level(
    state: _State, rising: dict[int, Number], next_cap: Number | None
) -> LinearSolution[float] | LinearSolution[Fraction]:
    """The highest level that all who rise can have together, as the last variable."""
    columns = [
        (place, kind)
        for place in (*rising, *state.stopped)
        for kind, cost in enumerate(state.costs[place])
        if cost
    ]
    rows: list[list[Number]] = []
    bounds: list[Number] = []
    for place in rising:
        rows.append([*(-1 if owner == place else 0 for owner, _ in columns), 1])
        bounds.append(0)
    if next_cap is not None:
        rows.append([*(0 for _ in columns), 1])
        bounds.append(next_cap)
    for place, tasks in state.stopped.items():
        if tasks:
            rows.append([*(-1 if owner == place else 0 for owner, _ in columns), 0])
            bounds.append(-tasks)
    kinds = len(state.costs[0])
    resources = max(len(cost) for costs in state.costs for cost in costs)
    for kind in range(kinds):
        for resource in range(resources):
            row: list[Number] = [
                state.costs[place][at][resource] / rising.get(place, 1) if at == kind else 0
                for place, at in columns
            ]
            if any(row):
                rows.append([*row, 0])
                bounds.append(1)
    return maximise([*(0 for _ in columns), 1], rows, bounds)
