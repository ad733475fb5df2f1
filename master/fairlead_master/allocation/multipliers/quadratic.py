"""The minimum of a convex quadratic over vectors that are nowhere negative, for a handful of variables.

    minimise  x.Hx / 2 + q.x  over  x >= 0

By an active set, started from the one that was right before (Lawson and Hanson, "Solving Least Squares Problems",
chapter 23, for the same problem as least squares): variables are free or held at zero; the free ones go to the minimum
of their own, stopping where one of them becomes zero; then the held one that would gain most is freed.
"""

from collections.abc import Sequence
from operator import mul
from typing import Final

Matrix = Sequence[Sequence[float]]

_PIVOT_MIN: Final = 1e-14
"""Of the diagonal entry it came from: below, a row depends on others up to rounding, and its variable is held instead."""

_GAIN_MIN: Final = 1e-12
"""A held variable is freed only if its slope is below minus this part of its own linear term, so that rounding frees none."""


def minimise(hessian: Matrix, linear: Sequence[float], start: Sequence[float]) -> list[float] | None:
    """The minimiser; ``start`` says by its zeros which variables are held at first. None if there is no minimum."""
    point = list(start)
    free = [place for place, value in enumerate(point) if value > 0.0 and hessian[place][place] > 0.0]
    for place, value in enumerate(point):
        if value > 0.0 and place not in free:
            point[place] = 0.0
    for _ in range(4 * len(point) + 4):
        target = _solve(hessian, linear, free)
        blocked = [
            (point[place] / (point[place] - value) if point[place] > value else 0.0, place)
            for place, value in zip(free, target, strict=True)
            if value <= 0.0
        ]
        if blocked:
            part, first = min(blocked)
            for place, value in zip(free, target, strict=True):
                point[place] = max(0.0, point[place] + part * (value - point[place]))
            point[first] = 0.0
            free.remove(first)
            continue
        for place, value in zip(free, target, strict=True):
            point[place] = value
        gaining = _most_gaining(hessian, linear, point, free)
        if gaining is None:
            return point
        if hessian[gaining][gaining] <= 0.0:
            return None
        free.append(gaining)
        free.sort()
    return None


def _most_gaining(
    hessian: Matrix, linear: Sequence[float], point: list[float], free: list[int]
) -> int | None:
    """The held variable with the steepest slope down; None if all of them slope up."""
    best, found = 0.0, None
    for place, offset in enumerate(linear):
        if place not in free:
            slope = sum(map(mul, hessian[place], point)) + offset
            if slope < min(best, -_GAIN_MIN * abs(offset)):
                best, found = slope, place
    return found


def _solve(hessian: Matrix, linear: Sequence[float], free: list[int]) -> list[float]:
    """Where the slopes of the free variables are zero, the others being held at zero: by elimination in place order."""
    if len(free) == 1:
        (only,) = free
        return [-linear[only] / hessian[only][only]]
    rows = [[hessian[i][j] for j in free] + [-linear[i]] for i in free]
    size = len(free)
    for step, row in enumerate(rows):
        pivot = row[step]
        if pivot <= _PIVOT_MIN * hessian[free[step]][free[step]]:
            row[step] = 0.0
            continue
        for below in rows[step + 1 :]:
            factor = below[step] / pivot
            if factor:
                for column in range(step + 1, size + 1):
                    below[column] -= factor * row[column]
    result = [0.0] * size
    for step in range(size - 1, -1, -1):
        row = rows[step]
        if row[step]:
            known = sum(map(mul, row[step + 1 : size], result[step + 1 :]))
            result[step] = (row[size] - known) / row[step]
    return result
