"""Means with confidence intervals, of a few independent runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan, cos, pi, sin, sqrt
from typing import Final

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and how far off it may be."""

    mean: float
    half_width: float | None
    """Of the confidence interval; None of fewer than two values."""


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and half width of the 95 % confidence interval after Student: t(n - 1) s / sqrt(n); there is at least one value."""
    count = len(values)
    mean = sum(values) / count
    if count < 2:
        return Estimate(mean, None)
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    return Estimate(mean, student_t(count - 1) * sqrt(variance / count))


def student_t(degrees: int) -> float:
    """The t with P(|T| <= t) = 0.95 for Student's distribution with so many degrees of freedom, 1 or more."""
    low, high = 1.0, 20.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if _within(middle, degrees) < CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, degrees: int) -> float:
    """P(|T| <= t), by the finite series of M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4."""
    angle = atan(t / sqrt(degrees))
    square = cos(angle) ** 2
    if degrees % 2:
        term, found = cos(angle), 0.0
        for number in range(1, degrees - 1, 2):
            found += term
            term *= square * (number + 1) / (number + 2)
        return 2 / pi * (angle + sin(angle) * found)
    term, found = 1.0, 0.0
    for number in range(1, degrees, 2):
        found += term
        term *= square * number / (number + 1)
    return sin(angle) * found
