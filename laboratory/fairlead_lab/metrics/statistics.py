"""Statistics of runs: distributions in bounded memory, intervals over a few runs, and intervals from the jobs of one.

The last: a trace is one sample, which cannot be drawn again as a generator can. What can be drawn again is its jobs, in blocks
of consecutive arrivals, since jobs that arrive together wait for one another (the block bootstrap of H. Künsch, "The jackknife
and the bootstrap for general stationary observations", Annals of Statistics 17, 1989, with blocks that do not overlap). Both
policies ran the same jobs, so a block is drawn with what became of it under both.

Such an interval says how much a few blocks decide the result. It does not say what another month, another cluster or
another load would give, and a block still feels the queue that the block before it left behind.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from operator import mul
from random import Random
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Mean and nearest-rank percentiles of a set of numbers; all zero if there are none."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    most: float


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


def mean(values: Sequence[float]) -> float:
    """Of the values; 0 if there are none. Unlike the standard library's it adds up in order, as kept results did."""
    return sum(values) / len(values) if values else 0.0


def spread(values: Sequence[float]) -> Spread:
    """Mean and percentiles of the values, in their unit."""
    ordered = sorted(values) or [0.0]
    return Spread(
        count=len(values),
        mean=mean(ordered),
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


CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and how far off it may be."""

    mean: float
    half_width: float | None
    """Of the confidence interval; None of fewer than two values."""


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and half width of the 95 % confidence interval after Student: t(n - 1) s / math.sqrt(n); there is at least one value."""
    count, middle = len(values), mean(values)
    if count < 2:
        return Estimate(middle, None)
    variance = sum((value - middle) ** 2 for value in values) / (count - 1)
    return Estimate(middle, student_t(count - 1) * math.sqrt(variance / count))


def estimate_if_all(values: Sequence[float | None]) -> Estimate | None:
    """The same; None if one of the values is, or there are none."""
    known = [value for value in values if value is not None]
    return estimate(known) if known and len(known) == len(values) else None


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
    angle = math.atan(t / math.sqrt(degrees))
    square = math.cos(angle) ** 2
    if degrees % 2:
        term, found = math.cos(angle), 0.0
        for number in range(1, degrees - 1, 2):
            found += term
            term *= square * (number + 1) / (number + 2)
        return 2 / math.pi * (angle + math.sin(angle) * found)
    term, found = 1.0, 0.0
    for number in range(1, degrees, 2):
        found += term
        term *= square * number / (number + 1)
    return math.sin(angle) * found


BLOCKS: Final = 50
"""Long enough that most jobs' rivals are in their own block, and enough of them for a percentile."""
DRAWS: Final = 2_000
_STEP: Final = 128
"""Between two places of which it is kept how many values of each block are before."""
_BLOCKS_MIN: Final = 10
"""With fewer, the few distinct draws make an interval that is too narrow."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two means and its 95 % interval."""

    value: float
    low: float | None
    """None if there are too few values."""
    high: float | None

    @property
    def may_be_one(self) -> bool:
        """Whether the interval holds 1, so that the difference may be chance; not, if there is no interval."""
        return self.low is not None and self.high is not None and self.low <= 1 <= self.high


def ratio_of_means(values: Sequence[float], reference: Sequence[float], *, seed: int = 1) -> Ratio | None:
    """Mean of ``values`` over mean of ``reference``, which pair up in order of arrival.

    Pairs with a value below zero, which stands for a job that did not finish, are left out. None if nothing is left, or
    the reference is nothing but zeros.

    Raises:
        ValueError: the two are not equally long.
    """
    pairs = _pairs(values, reference)
    ends = _block_ends(len(pairs))
    mine = [sum(pair[0] for pair in pairs[first:last]) for first, last in pairwise(ends)]
    theirs = [sum(pair[1] for pair in pairs[first:last]) for first, last in pairwise(ends)]
    return _resampled(partial(_weighted_sum, mine), partial(_weighted_sum, theirs), len(mine), seed)


def ratio_of_percentiles(
    values: Sequence[float], reference: Sequence[float], percent: int, *, seed: int = 1
) -> Ratio | None:
    """As ``ratio_of_means``, of percentiles by nearest rank.

    Raises:
        ValueError: the two are not equally long.
    """
    pairs = _pairs(values, reference)
    ends = _block_ends(len(pairs))
    mine = _Ranked([pair[0] for pair in pairs], ends, percent)
    theirs = _Ranked([pair[1] for pair in pairs], ends, percent)
    return _resampled(mine.percentile, theirs.percentile, len(ends) - 1, seed)


def plain_ratio(values: Sequence[float], reference: Sequence[float]) -> float | None:
    """The ratio of means alone, of the pairs that ``ratio_of_means`` takes."""
    pairs = _pairs(values, reference)
    return _ratio(sum(mine for mine, _ in pairs), sum(theirs for _, theirs in pairs))


def _pairs(values: Sequence[float], reference: Sequence[float]) -> list[tuple[float, float]]:
    return [
        (mine, theirs) for mine, theirs in zip(values, reference, strict=True) if mine >= 0 and theirs >= 0
    ]


def _block_ends(count: int) -> list[int]:
    """Where blocks of consecutive places end whose lengths differ by at most one; the first is 0."""
    blocks = min(BLOCKS, count)
    return [count * number // blocks for number in range(blocks + 1)] if blocks else [0]


def _resampled(
    mine: Callable[[Sequence[int]], float], theirs: Callable[[Sequence[int]], float], blocks: int, seed: int
) -> Ratio | None:
    """The ratio of two statistics, each a function of how often each block was drawn."""
    once = [1] * blocks
    value = _ratio(mine(once), theirs(once)) if blocks else None
    if value is None:
        return None
    if blocks < _BLOCKS_MIN:
        return Ratio(value, None, None)
    dice = Random(seed)  # noqa: S311 - draws that can be repeated, no secrets
    found = []
    for _ in range(DRAWS):
        times = [0] * blocks
        for block in dice.choices(range(blocks), k=blocks):
            times[block] += 1
        ratio = _ratio(mine(times), theirs(times))
        if ratio is not None:
            found.append(ratio)
    found.sort()
    tail = round(len(found) * (1 - CONFIDENCE) / 2)
    return Ratio(value, found[tail], found[-1 - tail])


def _ratio(above: float, below: float) -> float | None:
    return above / below if below else None


def _weighted_sum(sums: Sequence[float], times: Sequence[int]) -> float:
    total: float = sum(map(mul, sums, times))
    return total


class _Ranked:
    """Values in blocks, ready to tell a percentile of any draw of the blocks without sorting again."""

    def __init__(self, values: Sequence[float], ends: Sequence[int], percent: int) -> None:
        """Of values of which each block ends where the next begins; percent is from 1 to 100."""
        self._percent = percent
        self._lengths = [last - first for first, last in pairwise(ends)]
        block_of = [block for block, (first, last) in enumerate(pairwise(ends)) for _ in range(last - first)]
        self._order = sorted(zip(values, block_of, strict=True))
        passed = [0] * len(self._lengths)
        self._passed: list[list[int]] = []
        """How many values of each block are among the first 0, _STEP, 2 _STEP, ..."""
        for place, (_, block) in enumerate(self._order):
            if place % _STEP == 0:
                self._passed.append(passed.copy())
            passed[block] += 1

    def percentile(self, times: Sequence[int]) -> float:
        """By nearest rank, if each block was drawn so many times; one of them at least once."""
        rank = max(1, -(-_weighted_sum(self._lengths, times) * self._percent // 100))
        step = bisect_left(self._passed, rank, key=lambda passed: _weighted_sum(passed, times)) - 1
        count = _weighted_sum(self._passed[step], times)
        for value, block in islice(self._order, step * _STEP, None):
            count += times[block]
            if count >= rank:
                return value
        raise AssertionError("a rank is at most the number of values")
