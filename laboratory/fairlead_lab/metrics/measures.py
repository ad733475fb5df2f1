"""The table of measures: what each number of a run is called, how it is written, and which end of it one wants.

Each is defined here once. Its name is the path to its value in a result and in the JSON made of it; where the value comes
from is said there. ``summary.csv``, half widths in JSON, the printed table, the page, the questions and the ranking of policies
are made by walking over the table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, unique
from typing import Any, Final

from fairlead_lab.metrics.result import PolicyResult
from fairlead_lab.metrics.statistics import (
    Estimate,
    Ratio,
    estimate_if_all,
    ratio_of_means,
    ratio_of_percentiles,
)


@unique
class Kind(Enum):
    """How a number is written."""

    TIME = "time"
    """In ms."""
    FACTOR = "factor"
    FRACTION = "fraction"
    COUNT = "count"


@unique
class Best(Enum):
    """Which end of a measure one wants."""

    LOW = "low"
    HIGH = "high"
    NEITHER = "neither"
    """It says something of the run, and more is neither better nor worse."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a run."""

    name: str
    """As a path into the run's result; of a list it is the length. ``{}`` stands for the name of a resource, in the title too."""
    title: str
    kind: Kind
    best: Best
    is_of_starts: bool = False
    """Whether it counts when tasks start and what they hold, and not when they are over."""
    of_jobs: str = ""
    """Where the result has this number of each job, if two runs of the same jobs have a ratio with an interval from them."""
    is_of_all: bool = False
    """Whether it speaks of all jobs, so that it says nothing of a run that left some undone."""
    is_listed: bool = True
    """Whether tables of all measures have it; if not, it is the answer to a question alone."""

    def pick(self, run: PolicyResult) -> float | None:
        """The value; None where there is no such number: nothing contended, say, or no such resource."""
        found: Any = run
        for part in self.name.split("."):
            if found is not None:
                found = found.get(part) if isinstance(found, Mapping) else getattr(found, part)
        return len(found) if isinstance(found, list) else found

    def ratio(self, run: PolicyResult, other: PolicyResult) -> Ratio | None:
        """Of two runs of the same jobs, with an interval from the jobs; None where there is no such interval."""
        if not self.of_jobs:
            return None
        mine, theirs = getattr(run, self.of_jobs), getattr(other, self.of_jobs)
        statistic = self.name.rpartition(".")[2]
        if statistic == "mean":
            return ratio_of_means(mine, theirs)
        return ratio_of_percentiles(mine, theirs, int(statistic.removeprefix("p")))

    def of(self, runs: Sequence[PolicyResult]) -> Estimate | None:
        """Over the seeds of one policy; None if a run lacks it."""
        return estimate_if_all([self.pick(run) for run in runs])

    def judged(self, runs: Sequence[PolicyResult]) -> Estimate | None:
        """The same for a reader; None as well if it is of all jobs and a run was cut short."""
        return None if self.is_of_all and not all(run.is_complete for run in runs) else self.of(runs)

    def write(self, value: float | None, unit_ms: int | None = None) -> str:
        """For a reader; times in the unit, if one is given."""
        if value is None:
            return "-"
        match self.kind:
            case Kind.TIME:
                return span(value, unit_ms)
            case Kind.FACTOR:
                return f"{value:,.{_decimals(value)}f}"
            case Kind.FRACTION:
                return f"{100 * value:.1f} %"
            case Kind.COUNT:
                return f"{value:.0f}" if value == int(value) else f"{value:.1f}"

    def write_all(self, found: Sequence[Estimate | None]) -> list[str]:
        """A row: each mean, and half width where there is one; times in one unit, so that they can be compared at a glance."""
        unit_ms = unit_of([each.mean for each in found if each is not None])
        return [self._write_estimate(each, unit_ms) for each in found]

    def _write_estimate(self, found: Estimate | None, unit_ms: int) -> str:
        if found is None:
            return self.write(None)
        # Of a few people an interval says less than the mean: there are no 0.2 ± 0.6 of them.
        if not found.half_width or self.kind is Kind.COUNT:
            return self.write(found.mean, unit_ms)
        if self.kind is Kind.TIME:
            mean, half_width = found.mean / unit_ms, found.half_width / unit_ms
            decimals = _decimals(mean)
            return f"{mean:,.{decimals}f} ± {half_width:,.{decimals}f} {_UNITS[unit_ms]}"
        if self.kind is Kind.FACTOR:
            return f"{self.write(found.mean)} ± {found.half_width:,.{_decimals(found.mean)}f}"
        mean_alone = self.write(found.mean).partition(" ")[0]  # the unit once
        return f"{mean_alone} ± {self.write(found.half_width)}"


def _decimals(value: float) -> int:
    """Of a number that is written with three digits that matter, or all before the point."""
    return 0 if value >= 100 else 1 if value >= 10 else 2


_UNITS: Final = {86_400_000: "d", 3_600_000: "h", 60_000: "min", 1_000: "s", 1: "ms"}


def unit_of(durations_ms: Sequence[float]) -> int:
    """The largest unit, in ms, of which there is one in the shortest duration that is not zero."""
    least = min((abs(duration_ms) for duration_ms in durations_ms if duration_ms), default=0.0)
    return next((size for size in _UNITS if least >= size), 1)


def span(duration_ms: float, unit_ms: int | None = None) -> str:
    """A duration with three digits that matter or all before the point, in a unit or the largest of which there is one."""
    size = unit_of([duration_ms]) if unit_ms is None else unit_ms
    amount = duration_ms / size
    return f"{amount:,.0f} {_UNITS[size]}" if abs(amount) >= 100 else f"{amount:.3g} {_UNITS[size]}"


_TIME, _FACTOR, _FRACTION, _COUNT = Kind.TIME, Kind.FACTOR, Kind.FRACTION, Kind.COUNT
_LOW, _HIGH, _NEITHER = Best.LOW, Best.HIGH, Best.NEITHER

MEASURES: Final = (
    Measure("completion_ms.mean", "job completion, mean", _TIME, _LOW, of_jobs="completions_ms"),
    Measure("completion_ms.p50", "half of the jobs within", _TIME, _LOW, of_jobs="completions_ms", is_of_all=True),
    Measure("completion_ms.p95", "95 % of jobs within", _TIME, _LOW, is_of_all=True),
    Measure("completion_ms.p99", "99 % of jobs within", _TIME, _LOW, is_of_all=True),
    Measure("bounded_slowdown.mean", "bounded slowdown of jobs, mean", _FACTOR, _LOW, of_jobs="bounded_slowdowns"),
    Measure("bounded_slowdown.p50", "  of half of the jobs at most", _FACTOR, _LOW, is_of_all=True),
    Measure("bounded_slowdown.p95", "  of 95 % of jobs at most", _FACTOR, _LOW, of_jobs="bounded_slowdowns", is_of_all=True),
    Measure("bounded_slowdown.p99", "  of 99 % of jobs at most", _FACTOR, _LOW, is_of_all=True),
    Measure("slowdown.mean", "plain slowdown of jobs, mean", _FACTOR, _LOW),
    Measure("slowdown.p50", "  of half of the jobs at most", _FACTOR, _LOW, is_of_all=True),
    Measure("slowdown.p95", "  of 95 % of jobs at most", _FACTOR, _LOW, of_jobs="slowdowns", is_of_all=True),
    Measure("slowdown.p99", "  of 99 % of jobs at most", _FACTOR, _LOW, is_of_all=True),
    Measure("wait_ms.mean", "task wait, mean", _TIME, _LOW, is_of_starts=True),
    Measure("makespan_ms", "all done after", _TIME, _LOW, is_of_all=True),
    Measure("jain", "Jain's index of dominant shares", _FACTOR, _HIGH, is_of_starts=True),
    Measure("below_fraction", "contending time below 1/n", _FRACTION, _LOW, is_of_starts=True),
    Measure("violations", "users worse off than on an own 1/n", _COUNT, _LOW),
    Measure("clear_violations", "  of them by more than a tenth", _COUNT, _LOW),
    Measure("crowded_fraction", "task time on hosts promised twice", _FRACTION, _LOW),
    Measure("utilization.{}", "{} held by tasks, mean", _FRACTION, _HIGH, is_of_starts=True),
    Measure(
        "resources.{}.held_until_last_arrival", "  {} until the last arrival", _FRACTION, _HIGH, is_of_starts=True
    ),
    Measure(
        "resources.{}.over_until_last_arrival", "    of it {} promised twice", _FRACTION, _NEITHER, is_of_starts=True
    ),
    Measure(
        "largest_wait_ms", "mean wait of the largest quarter of tasks", _TIME, _LOW, is_of_starts=True, is_listed=False
    ),
    Measure(
        "used_until_last_arrival", "use of the busiest resource until the last arrival", _FRACTION, _HIGH,
        is_of_starts=True, is_listed=False,
    ),
)  # fmt: skip


def measure(name: str) -> Measure:
    """The measure of that name."""
    return next(each for each in MEASURES if each.name == name)


def listed_measures(runs: Iterable[PolicyResult]) -> list[Measure]:
    """All measures of these runs that tables have; those of resources come last, resource by resource."""
    resources = dict.fromkeys(resource for run in runs for resource in run.resources)
    listed = [each for each in MEASURES if each.is_listed]
    of_resources = [each for each in listed if "{}" in each.name]
    return [each for each in listed if each not in of_resources] + [
        replace(each, name=each.name.format(resource), title=each.title.format(resource))
        for resource in resources
        for each in of_resources
    ]
