"""How far a comparison of two policies hangs on which jobs a trace happened to have.

A trace is one sample: it cannot be drawn again as a generator can. What can be drawn again is its jobs, in blocks of
consecutive arrivals, since jobs that arrive together wait for one another (the block bootstrap of H. Künsch, "The jackknife
and the bootstrap for general stationary observations", Annals of Statistics 17, 1989, with blocks that do not overlap). Both
policies ran the same jobs, so a block is drawn with what became of it under both.

Such an interval says how much a few blocks decide the result. It does not say what another month, another cluster or
another load would give, and a block still feels the queue that the block before it left behind.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from operator import mul
from random import Random
from typing import Final

from fairlead_lab.metrics.intervals import CONFIDENCE

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
