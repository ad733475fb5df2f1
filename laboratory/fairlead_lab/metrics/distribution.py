"""Distributions of whole numbers in bounded memory: counts by value, exact for as long as there are few values."""

import math
from collections.abc import Sequence
from typing import Final

from fairlead_lab.metrics.result import Spread

VALUES_MAX: Final = 4096
"""Kept apart exactly. A run of a few thousand tasks stays below; one of millions has more, and needs no more digits."""
_BITS: Final = 12
"""Of a value beyond that: it is off by less than one part in 2,048."""


class Distribution:
    """How often which value came; mean and largest are exact, percentiles within one part in 2,048."""

    def __init__(self, values_max: int = VALUES_MAX) -> None:
        """No values yet; so many different ones are kept exactly."""
        self.count = 0
        self.total = 0
        self.most = 0
        self._counts: dict[int, int] = {}
        self._values_max = values_max
        self._is_rounded = False

    def add(self, value: int, times: int = 1) -> None:
        """A value of 0 or more came so many times."""
        self.count += times
        self.total += value * times
        self.most = max(self.most, value)
        if self._is_rounded:
            value = _rounded(value)
        self._counts[value] = self._counts.get(value, 0) + times
        if len(self._counts) > self._values_max and not self._is_rounded:
            self._round()

    @property
    def mean(self) -> float:
        """Of all values; 0 if there are none."""
        return self.total / self.count if self.count else 0.0

    def percentile(self, percent: int) -> int:
        """By nearest rank, as ``percentile``; 0 if there are no values."""
        rank = max(1, math.ceil(self.count * percent / 100))
        passed = 0
        for value, times in sorted(self._counts.items()):
            passed += times
            if passed >= rank:
                return value
        return 0

    def spread(self) -> Spread:
        """Mean and percentiles, in the values' unit."""
        return Spread(
            count=self.count,
            mean=self.mean,
            p50=self.percentile(50),
            p95=self.percentile(95),
            p99=self.percentile(99),
            most=self.most,
        )

    def _round(self) -> None:
        self._is_rounded = True
        counts: dict[int, int] = {}
        for value, times in self._counts.items():
            rounded = _rounded(value)
            counts[rounded] = counts.get(rounded, 0) + times
        self._counts = counts


def _rounded(value: int) -> int:
    """The value with as many leading bits as are kept."""
    dropped = value.bit_length() - _BITS
    return value if dropped <= 0 else (value >> dropped) << dropped


def spread(values: Sequence[float]) -> Spread:
    """Mean and percentiles of the values, in their unit."""
    ordered = sorted(values)
    if not ordered:
        return Spread(count=0, mean=0.0, p50=0.0, p95=0.0, p99=0.0, most=0.0)
    return Spread(
        count=len(ordered),
        mean=sum(ordered) / len(ordered),
        p50=percentile(ordered, 50),
        p95=percentile(ordered, 95),
        p99=percentile(ordered, 99),
        most=ordered[-1],
    )


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The nearest-rank percentile: the smallest value with at least so many per cent of all at or below it.

    Args:
        ordered: Ascending; not empty.
        percent: 1 to 100.
    """
    return ordered[max(1, math.ceil(len(ordered) * percent / 100)) - 1]
