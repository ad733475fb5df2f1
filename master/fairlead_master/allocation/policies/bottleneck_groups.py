"""The linear program of bottleneck-aware allocation (BAA): how far each group of users may rise.

Liu, "Multi-Objective Bottleneck-Aware Allocation of Multiple Resources", 2015, sections 2.2 to 2.4, after Wang and Varman,
"Balancing Fairness and Efficiency in Tiered Storage Systems with Bottleneck-Aware Allocation", FAST 2014. A *group* is the
users of one bottleneck resource; its *level* y_g is what each of them holds of that resource, as a fraction of the
capacity and for each unit of weight. Within a group levels are equal (2.1, 2.2), so that one number a group says it all.
Which users a group has is the caller's business, as is what happens to them next; see ADR 0012 for how we read the paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from fairlead_master.allocation.linear_program import InfeasibleError, maximise


class Objective(Enum):
    """What may be maximised, by the word an operator writes."""

    TASKS = "tasks"
    """E_S (2.7): the sum of tasks."""
    MINIMUM = "min"
    """E_X (2.8): the fewest tasks of a user, for each unit of its weight."""
    UTILIZATION = "utilization"
    """E_A (2.9): the sum over resources of the fraction in use."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A weighted sum of normalised objectives (2.12), and how much of it may be given up for the goals behind it."""

    weights: Mapping[Objective, float]
    """Of objectives each normalised to [0, 1]; above zero."""
    fuzzy_factor: float = 0.0
    """f of (2.10): goals behind choose among all allocations that come within f of the best, of a range of 1."""


def only(objective: Objective) -> tuple[Goal, ...]:
    """The goals of section 2.3: one objective, and nothing behind it."""
    return (Goal({objective: 1.0}),)


FUZZY_FACTOR: Final = 0.1
"""The paper gives no number. A tenth of the possible gain in tasks is little to give, and enough to choose from."""

ALPHA: Final = 0.5
"""Of (2.12); the paper gives none, so that utilisation and the user with the fewest tasks count the same."""

COMPOSITE: Final = (
    Goal({Objective.TASKS: 1.0}, FUZZY_FACTOR),
    Goal({Objective.UTILIZATION: ALPHA, Objective.MINIMUM: 1.0 - ALPHA}),
)
"""E^{S,AX} of (2.13), what the paper's static allocation maximises (2.15)."""

GOALS: Final = {"baa": COMPOSITE} | {f"baa:{objective.value}": only(objective) for objective in Objective}
"""The policies by name, as an operator writes them, and what they maximise."""

_UTILIZATION: Final = Goal({Objective.UTILIZATION: 1.0})

_CLOSE: Final = 1e-12
"""Shares within this of the largest one are as large."""

_ROUNDING: Final = 1e-12
"""Of the best value of a goal, given up for the next programs, so that rounding does not make them infeasible."""


@dataclass(frozen=True, slots=True)
class Group:
    """What the program must know of the users of one bottleneck resource g; a_ij is the share of one task of user i."""

    bottleneck: int
    """Place of the resource g."""
    loads: tuple[float, ...]
    """Per resource j, the sum over users of w_i a_ij / a_ig: what one unit of level takes of it."""
    largest: tuple[float, ...]
    """Per resource j, the largest a_ij / a_ig, at most 1: what one user of weight 1 holds of it, for a unit of level."""
    tasks: float
    """The sum over users of w_i / a_ig: tasks for a unit of level."""
    fewest: float
    """The smallest 1 / a_ig: tasks of the worst user for each unit of its weight, for a unit of level."""
    floor: float
    """The level goes no lower."""


def bottleneck(share: Sequence[float]) -> int:
    """The place of the largest share, the first of equal ones: whether a user is in D or in S (section 2.1)."""
    limit = max(share) * (1 - _CLOSE)
    return next(j for j, part in enumerate(share) if part >= limit)


def levels(groups: Sequence[Group], free: Sequence[float], goals: Sequence[Goal]) -> list[float]:
    """y_g of each group, for ``goals`` in the order of their importance.

        sum over g of y_g loads_gj <= free_j      capacity (2.5, 2.6)
        y_g >= y_k largest_kg                     no user of g holds less of g than one of k does (2.3, 2.4)
        y_g >= floor_g                            p_d and p_s of (2.1, 2.2)

    Each goal is raised as far as it goes; the goals behind must keep it within its fuzzy factor (2.10, 2.13). Objectives
    are normalised by (2.11) between their values at the floors, which is the least that any allowed levels give, and at
    their own best. Among what is then equally good, the utilisation decides, so that no level stays below what it could
    be at nobody's expense. The floors must be possible: together within ``free``, and none below what (2.3, 2.4) ask.
    """
    # Counted from the floors all bounds are at least zero: u_g = y_g - floor_g, and v for the rise of the minimum.
    count = len(groups)
    lowest = min(group.floor * group.fewest for group in groups)
    rows: list[list[float]] = []
    bounds: list[float] = []
    for j, amount in enumerate(free):
        rows.append([*(group.loads[j] for group in groups), 0.0])
        bounds.append(max(0.0, amount - sum(group.floor * group.loads[j] for group in groups)))
    for place, group in enumerate(groups):
        for other, rival in enumerate(groups):
            held = rival.largest[group.bottleneck]
            if other != place and held:
                rows.append(_row(count, {other: held, place: -1.0}))
                bounds.append(max(0.0, group.floor - held * rival.floor))
        rows.append(_row(count, {count: 1.0, place: -group.fewest}))
        bounds.append(max(0.0, group.floor * group.fewest - lowest))
    best = _fulfil(_gains(groups), rows, bounds, goals)
    return [group.floor + rise for group, rise in zip(groups, best, strict=False)]


def _row(count: int, entries: Mapping[int, float]) -> list[float]:
    row = [0.0] * (count + 1)
    for place, entry in entries.items():
        row[place] = entry
    return row


def _gains(groups: Sequence[Group]) -> dict[Objective, list[float]]:
    """By how much each objective grows with each variable."""
    return {
        Objective.TASKS: [*(group.tasks for group in groups), 0.0],
        Objective.MINIMUM: [*(0.0 for _ in groups), 1.0],
        Objective.UTILIZATION: [*(sum(group.loads) for group in groups), 0.0],
    }


def _fulfil(
    gains: Mapping[Objective, list[float]],
    rows: list[list[float]],
    bounds: list[float],
    goals: Sequence[Goal],
) -> tuple[float, ...]:
    """The variables at the best of the goals, one after another, and of the utilisation behind them."""
    lines, right = list(rows), list(bounds)
    x: tuple[float, ...] = ()
    for goal in (*goals, _UTILIZATION):
        gain = _combined(goal, gains, rows, bounds)
        try:
            best = maximise(gain, lines, right)
        except InfeasibleError:
            # Only rounding makes what a goal left impossible for the next; the answer so far is then as good as any.
            if not x:
                raise
            break
        x = best.x
        lines.append([-entry for entry in gain])
        right.append(-best.value * (1 - goal.fuzzy_factor - _ROUNDING))
    return x


def _combined(
    goal: Goal, gains: Mapping[Objective, list[float]], rows: list[list[float]], bounds: list[float]
) -> list[float]:
    """By how much the goal grows with each variable: at the floors it is zero, so that (2.11) only divides by the best."""
    if len(goal.weights) == 1:
        return gains[next(iter(goal.weights))]
    total = [0.0] * len(rows[0])
    for objective, weight in goal.weights.items():
        best = maximise(gains[objective], rows, bounds).value
        if best > 0:  # else it is the same for all allowed levels, and decides nothing
            total = [
                entry + weight / best * gain for entry, gain in zip(total, gains[objective], strict=True)
            ]
    return total
