"""Small symmetric systems, as Newton's method meets them: positive semidefinite, often singular, a few resources wide."""

from collections.abc import Sequence
from math import sqrt
from typing import Final

_RANK_TOLERANCE: Final = 1e-13
"""A pivot below this part of its own diagonal is rounding: the row depends on those before it. The rounding of eight
cancelling terms is about 1e-15; a true pivot this small would amplify it to a whole digit of the answer."""


def solve_semidefinite(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """A solution of ``matrix`` x = ``right`` by Cholesky's factors with diagonal pivoting.

    Rows are scaled to a unit diagonal first, so that resources whose prices differ by ten orders of magnitude weigh the
    same. Where rows depend on one another (a resource that every job needs in the same proportion as another), the
    later ones get 0: of the many solutions this is one, and it solves the system whenever it can be solved.

    Args:
        matrix: Square, symmetric, positive semidefinite up to rounding; only its lower triangle is read.
        right: As many numbers as there are rows.
    """
    size = len(right)
    scale = [1.0 / sqrt(matrix[row][row]) if matrix[row][row] > 0 else 0.0 for row in range(size)]
    left = [
        [
            (matrix[row][column] if column <= row else matrix[column][row]) * scale[row] * scale[column]
            for column in range(size)
        ]
        for row in range(size)
    ]
    columns: list[list[float]] = []
    order: list[int] = []
    rest = [row for row in range(size) if scale[row]]
    while rest:
        pivot = max(rest, key=lambda row: left[row][row])
        if left[pivot][pivot] <= _RANK_TOLERANCE:
            break
        rest.remove(pivot)
        root = sqrt(left[pivot][pivot])
        column = [0.0] * size
        column[pivot] = root
        for row in rest:
            column[row] = left[row][pivot] / root
        for row in rest:
            below, factor = left[row], column[row]
            for other in rest:
                below[other] -= factor * column[other]
        columns.append(column)
        order.append(pivot)
    return _substitute(
        columns, order, [value * unit for value, unit in zip(right, scale, strict=True)], scale
    )


def _substitute(
    columns: Sequence[Sequence[float]], order: Sequence[int], remaining: list[float], scale: Sequence[float]
) -> list[float]:
    """Forward through the factor, then back; rows that were no pivot stay 0."""
    forward = []
    for pivot, column in zip(order, columns, strict=True):
        value = remaining[pivot] / column[pivot]
        forward.append(value)
        for row, factor in enumerate(column):
            remaining[row] -= value * factor
    answer = [0.0] * len(remaining)
    for pivot, column, value in zip(reversed(order), reversed(columns), reversed(forward), strict=True):
        known = sum(factor * answer[row] for row, factor in enumerate(column) if row != pivot)
        answer[pivot] = (value - known) / column[pivot]
    return [value * unit for value, unit in zip(answer, scale, strict=True)]
