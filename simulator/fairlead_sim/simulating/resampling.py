"""How far a comparison of two policies hangs on which jobs a trace happened to have.

A trace is one sample: it cannot be drawn again as a generator can. What can be drawn again is its jobs, in blocks of
consecutive arrivals, since jobs that arrive together wait for one another (the block bootstrap of H. Künsch, "The jackknife
and the bootstrap for general stationary observations", Annals of Statistics 17, 1989, with blocks that do not overlap). Both
policies ran the same jobs, so a block is drawn with what became of it under both.

Such an interval says how much a few blocks decide the result. It does not say what another month, another cluster or
another load would give, and a block still feels the queue that the block before it left behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Final

from fairlead_sim.simulating.intervals import CONFIDENCE

BLOCKS: Final = 50
"""Long enough that most jobs' rivals are in their own block, and enough of them for a percentile."""
DRAWS: Final = 2_000
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
    pairs = [
        (mine, theirs) for mine, theirs in zip(values, reference, strict=True) if mine >= 0 and theirs >= 0
    ]
    sums = _block_sums(pairs)
    value = _ratio(sums)
    if value is None:
        return None
    if len(sums) < _BLOCKS_MIN:
        return Ratio(value, None, None)
    dice = Random(seed)  # noqa: S311 - draws that can be repeated, no secrets
    drawn = (_ratio(dice.choices(sums, k=len(sums))) for _ in range(DRAWS))
    found = sorted(ratio for ratio in drawn if ratio is not None)
    tail = round(len(found) * (1 - CONFIDENCE) / 2)
    return Ratio(value, found[tail], found[-1 - tail])


def _block_sums(pairs: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Sums over blocks of consecutive pairs whose lengths differ by at most one."""
    blocks = min(BLOCKS, len(pairs))
    ends = [len(pairs) * number // blocks for number in range(blocks + 1)] if blocks else []
    return [
        (sum(pair[0] for pair in pairs[first:last]), sum(pair[1] for pair in pairs[first:last]))
        for first, last in pairwise(ends)
    ]


def _ratio(sums: Sequence[tuple[float, float]]) -> float | None:
    below = sum(theirs for _, theirs in sums)
    return sum(mine for mine, _ in sums) / below if below else None
