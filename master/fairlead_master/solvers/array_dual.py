"""The dual of proportional and alpha-fairness with its sums in numpy, for many thousands of classes.

The equations are those of ``allocation.multipliers.dual``, and so is all that follows from the sums; only they are made
here, from one array with a row a resource. Importing this needs numpy, which is an extra: ask ``many_classes``.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fairlead_master.allocation.multipliers.dual import (
    DemandClass,
    Differences,
    Point,
    check,
    dearest,
    excess_of,
    point_of,
)

Array = Any
"""A numpy array of floats; its types are not read, so that the type check says the same with and without the extra."""

_QUIET: Final = {"divide": "ignore", "over": "ignore", "under": "ignore", "invalid": "ignore"}
"""Where floats end, infinities are what the callers look for, as without numpy."""


class ArrayDual:
    """The classes of one problem in arrays: a ``DualFunction``."""

    def __init__(self, classes: Sequence[DemandClass], alpha: float = 1.0) -> None:
        """Normalise the classes.

        Raises:
            ValueError: as for ``dual.Dual``, in the same words.
        """
        rows, weights = _arrays(classes, alpha)
        self.alpha = alpha
        self.beta = 1.0 - 1.0 / alpha
        largest = rows.max(axis=1)
        weights *= largest**self.beta
        self.total_weight = float(weights.sum())
        self.weights = weights / self.total_weight
        self.columns = np.ascontiguousarray((rows / largest[:, None]).T)
        self.width = len(self.columns)
        self.needed = [place for place, column in enumerate(self.columns) if column.any()]

    def is_charged(self, values: Sequence[float]) -> bool:
        """Whether every class costs more than nothing at these multipliers."""
        return bool(self._prices(values).all())

    def scale(self, values: Sequence[float]) -> float:
        """What multipliers that sum to 1 are to be multiplied by, to be those for the caller's weights."""
        if self.alpha == 1.0:
            return self.total_weight
        with np.errstate(**_QUIET):
            spent = float((self.weights * self._prices(values) ** self.beta).sum())
        return float((self.total_weight * spent) ** self.alpha)

    def at(self, values: Sequence[float]) -> Point:
        """Load and Hessian; ZeroDivisionError if a class costs nothing."""
        prices = self._charged(values)
        with np.errstate(**_QUIET):
            spending = self._spending(prices)
            load = self.columns @ (spending / prices)
            return point_of(load.tolist(), _gram(self.columns, spending, prices), self.alpha)

    def beside(self, values: Sequence[float]) -> Differences:
        """The differences at multipliers that sum to 1, from the dearest resource; errors as for ``at``."""
        pivot = dearest(values)
        prices = self._charged(values)
        with np.errstate(**_QUIET):
            spending = self._spending(prices)
            columns = self.columns - self.columns[pivot]
            gradient = columns @ (spending / prices)
            return Differences(
                pivot,
                excess_of(values, gradient.tolist()),
                _gram(columns, spending, prices),
                self.alpha,
                float(spending.min()),
            )

    def _prices(self, values: Sequence[float]) -> Array:
        return np.array(values) @ self.columns

    def _charged(self, values: Sequence[float]) -> Array:
        prices = self._prices(values)
        if not prices.all():
            raise ZeroDivisionError("a class costs nothing")
        return prices

    def _spending(self, prices: Array) -> Array:
        """The part of all money that each class spends."""
        if self.alpha == 1.0:
            return self.weights
        spent = self.weights * prices**self.beta
        return spent / spent.sum()


def _arrays(classes: Sequence[DemandClass], alpha: float) -> tuple[Array, Array]:
    """Rows and weights, after the checks of ``dual.check``: in arrays, and one by one only to say what is wrong."""
    try:
        rows = np.array([row for row, _ in classes], dtype=float)
        weights = np.array([weight for _, weight in classes], dtype=float)
    except ValueError:  # rows of different lengths
        check(classes, alpha)
        raise
    is_right = (
        rows.ndim == 2
        and rows.size > 0
        and bool(np.isfinite(rows).all() and (rows >= 0).all() and rows.any(axis=1).all())
        and bool(np.isfinite(weights).all() and (weights > 0).all())
    )
    if not is_right or not (np.isfinite(alpha) and alpha > 0):
        check(classes, alpha)
    return rows, weights


def _gram(columns: Array, spending: Array, prices: Array) -> list[list[float]]:
    """Per pair of columns, in the lower triangle, sum_k spending_k column_k other_k / price_k^2."""
    scaled = columns * (np.sqrt(spending) / prices)
    return [row[: place + 1] for place, row in enumerate((scaled @ scaled.T).tolist())]
