"""Confidence intervals of simulated service rates."""

from math import fsum, sqrt
from statistics import NormalDist
from typing import Final

BATCHES: Final = 32
"""A run's jobs, in order of arrival, are cut into so many batches, of which each is long beside the time for which the
population remembers. More would be too short at load 0.9; of fewer the spread is not so well known, but short runs have
no choice."""

CONFIDENCE: Final = 0.99
"""That all intervals of a figure hold at once."""


class Batches:
    """Sizes and times of the jobs of one class, by batch: gamma is the ratio of their means."""

    def __init__(self, count: int = BATCHES) -> None:
        self.sizes = [0.0] * count
        """What the jobs of a batch would take alone."""
        self.times = [0.0] * count
        """What they took."""

    def service_rate(self) -> float:
        """Mean size over mean time of completion."""
        return sum(self.sizes) / sum(self.times)

    def half_width(self, intervals: int) -> float:
        """Of the interval that, with as many others as ``intervals`` says, holds with ``CONFIDENCE`` (Bonferroni).

        The ratio's error is the mean of size - rate * time over the mean time, of which the batches are a sample.
        """
        rate, count = self.service_rate(), len(self.sizes)
        errors = [size - rate * time for size, time in zip(self.sizes, self.times, strict=True)]
        deviation = sqrt(sum(error**2 for error in errors) / (count - 1))
        mean_time = sum(self.times) / count
        one_sided = 1.0 - (1.0 - CONFIDENCE) / intervals / 2
        return quantile_of_t(one_sided, count - 1) * deviation / sqrt(count) / mean_time


def quantile_of_t(chance: float, degrees: int) -> float:
    """Of Student's distribution: Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.5.

    True to 1 % from 15 degrees of freedom on, for chances up to 0.9999.
    """
    z = NormalDist().inv_cdf(chance)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + fsum(term / float(degrees**power) for power, term in enumerate(terms, start=1))
