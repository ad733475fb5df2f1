"""The multipliers of proportional and alpha-fairness from nothing, in about ten passes over the classes, whatever their number.

A primal-dual interior point on the dual (see ``dual``), with a slack s_j = 1 - load_j per resource. The central path
nu_j s_j = mu is proportional fairness with one phantom user of weight mu for each resource, who wants only that
resource: prices stay above zero, and resources that are duplicates of one another share their price. A Newton step
costs a pass over the classes and a system of as many equations as there are resources.

The path ends where mu is small; ``polish`` then moves to the exact optimum of the resources that turned out scarce.
"""

from collections.abc import Sequence
from math import sqrt
from operator import mul
from typing import Final

from fairlead_master.allocation.multipliers.certificate import Multipliers, certify_scaled
from fairlead_master.allocation.multipliers.dual import DemandClass, Dual, DualFunction
from fairlead_master.allocation.multipliers.polish import polished
from fairlead_master.allocation.multipliers.symmetric import solve_semidefinite

ITERATIONS_MAX: Final = 100
"""Instances of every kind take 9 to 15; this bound only says that a loop ends. Where it is met, the certificate tells."""

_GAP: Final = 1e-12
"""The end of the path, as a fraction of all money: below it rounding of the slacks takes over."""

_NEAR: Final = 1e-3
"""From this gap on the path is straight enough to cut mu by 100 at a step instead of 10."""


def solve(
    classes: Sequence[DemandClass], start: Sequence[float] | None = None, alpha: float = 1.0
) -> Multipliers:
    """The multipliers: unique prices of every class; where resources depend on one another, one choice of many for nu.

    Args:
        classes: At least one; rows in any scale.
        start: Multipliers of a similar problem, if there are any: tried first, two or three passes where they are near.
        alpha: Of alpha-fairness, see ``dual``; 1 is proportional fairness. From 0.25 to 8 the path is followed as quickly;
            beyond, prices of a class may be too far apart for floats, which the certificate then says.

    Raises:
        ValueError: A class is no class; see ``dual.Dual``.
    """
    return minimise(Dual(classes, alpha), start)


def minimise(dual: DualFunction, start: Sequence[float] | None = None) -> Multipliers:
    """The same for classes whose sums are made elsewhere."""
    if start is not None and sum(start) > 0:
        scaled = [max(0.0, value) for value in start]
        found = polished(dual, scaled)
        if found is not None:
            return _answer(dual, *found)
    followed, passes = _follow_path(dual)
    found = polished(dual, followed)
    if found is None:
        return _answer(dual, followed, passes)
    exact, more = found
    return _answer(dual, exact, passes + more)


def _answer(dual: DualFunction, values: Sequence[float], passes: int) -> Multipliers:
    """In the caller's weights; the certificate's own pass counts."""
    certificate = certify_scaled(dual, values)
    return Multipliers(tuple([value * dual.scale(values) for value in values]), passes + 1, certificate)


def _follow_path(dual: DualFunction) -> tuple[list[float], int]:
    """Multipliers that sum to 1 near the end of the path, 0 where they vanish; and the passes taken."""
    needed = list(dual.needed)
    count = len(needed)
    values, slacks = [1.0 / count] * count, [1.0] * count
    whole = [0.0] * dual.width
    passes = 0
    while passes < ITERATIONS_MAX:
        for place, value in zip(needed, values, strict=True):
            whole[place] = value
        point = dual.at(whole)
        passes += 1
        left = [1.0 - point.load[place] for place in needed]
        gap = sum(map(mul, values, slacks))
        if gap < _GAP and all(abs(free - slack) < _GAP for free, slack in zip(left, slacks, strict=True)):
            break
        target = gap / count * (0.1 if gap > _NEAR else 0.01)
        hessian = [
            [point.hessian[row][column] for column in needed[: place + 1]] for place, row in enumerate(needed)
        ]
        values, slacks = _step(values, slacks, left, hessian, target, dual.alpha)
    vanished = [place for place, value, slack in zip(needed, values, slacks, strict=True) if value <= slack]
    without = [0.0 if place in vanished else value for place, value in enumerate(whole)]
    # A class whose weight is less than the gap may need one of those only: then the polish decides, from small prices.
    return (without if dual.is_charged(without) else whole), passes


def _step(
    values: Sequence[float],
    slacks: Sequence[float],
    left: Sequence[float],
    hessian: Sequence[Sequence[float]],
    target: float,
    alpha: float,
) -> tuple[list[float], list[float]]:
    """One damped Newton step towards nu_j s_j = target, s = 1 - load; ``left`` is 1 - load now."""
    system = [list(row) for row in hessian]
    for place, (value, slack) in enumerate(zip(values, slacks, strict=True)):
        system[place][place] += slack / value
    right = [target / value - free for value, free in zip(values, left, strict=True)]
    move = solve_semidefinite(system, right)
    slack_move = [
        (target - slack * change) / value - slack
        for value, slack, change in zip(values, slacks, move, strict=True)
    ]
    length = 1.0
    for now, changes in ((values, move), (slacks, slack_move)):
        for amount, change in zip(now, changes, strict=True):
            if amount + length * change < 0.01 * amount:
                length = -0.99 * amount / change
    norm = sqrt(max(0.0, alpha * _quadratic(hessian, move)))
    if norm > 0.5:  # self-concordance: a step this long leaves where the quadratic model is true
        length = min(length, 1.0 / (1.0 + norm))
    values = [value + length * change for value, change in zip(values, move, strict=True)]
    total = sum(values)
    # Exact, by equation (5): along the ray through nu, D is least where the multipliers sum to the weights.
    return (
        [value / total for value in values],
        [slack + length * change for slack, change in zip(slacks, slack_move, strict=True)],
    )


def _quadratic(lower: Sequence[Sequence[float]], vector: Sequence[float]) -> float:
    """Return vector . matrix vector of a symmetric matrix given by its lower triangle."""
    diagonal = sum(row[place] * vector[place] ** 2 for place, row in enumerate(lower))
    return diagonal + 2 * sum(
        row[column] * vector[place] * vector[column]
        for place, row in enumerate(lower)
        for column in range(place)
    )
