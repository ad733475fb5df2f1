"""Demand vectors of real tasks, in place of those paper 003 sampled from seven hours of a Google cell.

That trace is not to be had any more. What stands in for it are 1,000 and 2,000 requests drawn from the traces Google
published in 2019 (CC-BY 4.0), where they are found; else requests made up with the same distributions of size and of
slant, by which utilisations come out within some percent. Both are fractions of the largest machine, of its CPUs and of its memory.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from fairlead_lab.papers.public_traces import find_trace
from fairlead_lab.workloads.csv_rows import read_rows

Demand = tuple[float, float]
"""CPUs and memory of one task, both above 0."""

_COLUMNS: Final = ("agent", "job_id", "cpu_norm", "mem_norm")

_FRACTIONS: Final = (0.0, 0.02, *(number / 20 for number in range(1, 20)), 0.98, 1.0)
_SIZES: Final = (
    -8.22, -8.21, -7.41, -6.94, -6.60, -6.21, -6.00, -5.87, -5.75, -5.67, -5.55, -5.40,
    -5.23, -5.00, -4.83, -4.70, -4.58, -4.46, -4.26, -4.01, -3.45, -3.14, -1.73,
)  # fmt: skip
"""Quantiles at these fractions of half the logarithm of CPUs times memory, of the 2,000 requests."""
_SLANTS: Final = (
    -1.95, -1.19, -0.71, -0.46, -0.26, -0.13, -0.06, -0.02, 0.06, 0.12, 0.23, 0.29,
    0.35, 0.40, 0.48, 0.54, 0.63, 0.74, 0.83, 0.89, 1.07, 1.25, 2.53,
)  # fmt: skip
"""Of half the logarithm of CPUs over memory, which has next to nothing to do with the size: their correlation is 0.11."""


@dataclass(frozen=True, slots=True)
class Demands:
    """The requests of all users."""

    vectors: Sequence[Demand]
    origin: str
    """For people: where they are from."""


def sample(size: int, seed: int) -> Demands:
    """1,000 or 2,000 requests, in the order in which they were drawn.

    Args:
        size: One of the two.
        seed: Of those that are made up.

    Raises:
        FileNotFoundError: ``FAIRLEAD_TRACES`` names a folder that lacks them.
        TraceError: the file is not what it should be.
    """
    path = find_trace(f"google2019_a_demands_{size}.csv.gz")
    if path is None:
        return Demands(made_up(size, seed), "made up with the distribution of Google's traces of 2019")
    return Demands(read(path), "from Google's traces of 2019, in place of the paper's")


def read(path: Path) -> list[Demand]:
    """All requests of a file.

    Raises:
        TraceError: a row whose amounts are not above 0 and at most 1.
    """
    found = []
    for row in read_rows(path, _COLUMNS):
        cpus, mem = (row.number(name, most=1.0, unit="of the largest machine") for name in _COLUMNS[2:])
        if not cpus or not mem:
            raise row.bad("cpu_norm", "amounts above 0 of both resources")
        found.append((cpus, mem))
    return found


def made_up(count: int, seed: int) -> list[Demand]:
    """Requests whose size and slant have the quantiles of the real ones, each drawn by itself."""
    random = Random(seed).random  # noqa: S311 - chance that can be repeated is the purpose
    found = []
    for _ in range(count):
        size, slant = _between(_SIZES, random()), _between(_SLANTS, random())
        found.append((min(1.0, math.exp(size + slant)), min(1.0, math.exp(size - slant))))
    return found


def _between(quantiles: Sequence[float], fraction: float) -> float:
    """The quantile at a fraction, interpolated linearly between its two neighbours."""
    after = bisect_right(_FRACTIONS, fraction)
    low, high = _FRACTIONS[after - 1], _FRACTIONS[after]
    part = (fraction - low) / (high - low)
    return quantiles[after - 1] + part * (quantiles[after] - quantiles[after - 1])
