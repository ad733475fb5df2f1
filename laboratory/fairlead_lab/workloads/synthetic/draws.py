"""Numbers that are fixed or drawn, as a scenario describes them.

A plain value is fixed. A table names a ``distribution`` and what it takes:

- ``uniform``: ``least``, ``most``, evenly between the two;
- ``exponential``: ``mean``;
- ``lognormal``: ``median`` (or ``mean``) and ``spread``, the standard deviation of the logarithm;
- ``choice``: ``values``, evenly or with ``weights``.

The middle two may have ``least`` and ``most``, which what is drawn is raised or lowered to. Only even numbers from
``Random.random`` are used, whose sequence Python keeps from version to version.
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, assert_never

from fairlead_lab.workloads.synthetic.table import Table
from fairlead_sim.workload import WorkloadError

Even = Callable[[], float]
"""Gives an even number from 0 to below 1, the next at each call."""
Read = Callable[[Any, str], float]
"""A plain value of the file at a path, as a number in our unit; raises ``WorkloadError``."""

SPREAD_MAX: Final = 10.0
"""At 10 the largest of a thousand draws is e^30 times the median: past any trace."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always this."""

    value: float


@dataclass(frozen=True, slots=True)
class Uniform:
    """Evenly between the two."""

    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Exponential:
    """With this mean, then kept within bounds."""

    mean: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Lognormal:
    """e to the power of a normal number, times the median, then kept within bounds."""

    median: float
    spread: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the values; ``up_to`` are the sums of their weights."""

    values: tuple[float, ...]
    up_to: tuple[float, ...]


Draw = Fixed | Uniform | Exponential | Lognormal | Choice

NAMES: Final = ("uniform", "exponential", "lognormal", "choice")


def draw(what: Draw, even: Even) -> float:
    """The next number."""
    match what:
        case Fixed(value):
            return value
        case Uniform(least, most):
            return least + even() * (most - least)
        case Exponential(mean, least, most):
            return min(most, max(least, exponential(mean, even)))
        case Lognormal(median, spread, least, most):
            return min(most, max(least, median * math.exp(spread * normal(even))))
        case Choice(values, up_to):
            return values[pick(up_to, even)]
        case _:
            assert_never(what)


def exponential(mean: float, even: Even) -> float:
    """An exponential number: by the inverse of its distribution."""
    return -mean * math.log(1.0 - even())


def normal(even: Even) -> float:
    """A normal number of mean 0 and variance 1, from two even ones (Box and Muller)."""
    return math.sqrt(-2.0 * math.log(1.0 - even())) * math.cos(2.0 * math.pi * even())


def pick(up_to: tuple[float, ...], even: Even) -> int:
    """A place, by weight; ``up_to`` are the sums of the weights up to each."""
    return min(bisect_right(up_to, even() * up_to[-1]), len(up_to) - 1)


def read_draw(value: Any, path: str, read: Read) -> Draw:
    """What the file says at ``path``.

    Raises:
        WorkloadError: not a value that ``read`` takes, nor a table as above.
    """
    if not isinstance(value, dict):
        return Fixed(read(value, path))
    table = Table(value, path)
    found = _read_table(table, read)
    table.done()
    return found


def _read_table(table: Table, read: Read) -> Draw:
    match table.one_of("distribution", NAMES, None):
        case "uniform":
            least, most = _amount(table, "least", read), _amount(table, "most", read)
            if least > most:
                raise table.bad("most", "at least what least says")
            return Uniform(least, most)
        case "exponential":
            mean = _amount(table, "mean", read)
            return Exponential(mean, *_bounds(table, read))
        case "lognormal":
            return _read_lognormal(table, read)
        case _:
            return _read_choice(table, read)


def _read_lognormal(table: Table, read: Read) -> Lognormal:
    table.require("spread", f"a number from 0 to {SPREAD_MAX:g}")
    spread = table.number("spread", least=0, most=SPREAD_MAX, default=0)
    if "mean" in table and "median" in table:
        raise table.bad("mean", "a median or a mean, not both")
    if "mean" in table:
        median = _amount(table, "mean", read) / math.exp(spread**2 / 2)
    else:
        median = _amount(table, "median", read)
    return Lognormal(median, spread, *_bounds(table, read))


def _read_choice(table: Table, read: Read) -> Choice:
    table.require("values", "a list of values")
    values = tuple(table.items("values", "values", read))
    weights = table.items("weights", "weights", _weight) or [1.0] * len(values)
    if len(weights) != len(values):
        raise table.bad("weights", f"{len(values)} weights, one a value")
    if not sum(weights):
        raise table.bad("weights", "a weight above zero")
    return Choice(values, tuple(accumulate(weights)))


def _weight(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:
        raise WorkloadError(f"{path}: expected a number from 0 to 1e9, got {value!r}")
    return float(value)


def _amount(table: Table, key: str, read: Read) -> float:
    table.require(key, "a value")
    return read(table.raw(key), table.at(key))


def _bounds(table: Table, read: Read) -> tuple[float, float]:
    least = _amount(table, "least", read) if "least" in table else 0.0
    most = _amount(table, "most", read) if "most" in table else math.inf
    # Asked for, so that they are known keys even where they are not given.
    table.raw("least"), table.raw("most")
    if least > most:
        raise table.bad("most", "at least what least says")
    return least, most
