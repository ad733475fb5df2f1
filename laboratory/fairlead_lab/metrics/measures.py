"""The numbers by which policies are compared, one line each, and how a person reads them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

from fairlead_lab.metrics.result import PolicyResult
from fairlead_lab.metrics.statistics import Estimate, Ratio, estimate, ratio_of_means, ratio_of_percentiles


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
    """As a path into the run's JSON."""
    title: str
    kind: Kind
    best: Best
    pick: Callable[[PolicyResult], float | None]
    """None where there is no such number: nothing contended, say."""
    is_of_starts: bool = False
    """Whether it counts when tasks start and what they hold, and not when they are over."""
    ratio: Callable[[PolicyResult, PolicyResult], Ratio | None] | None = None
    """Of two runs of the same jobs, with an interval from the jobs; None where there is no such interval."""

    def of(self, runs: Sequence[PolicyResult]) -> Estimate | None:
        """Over the seeds of one policy; None if a run lacks it."""
        values = [self.pick(run) for run in runs]
        known = [value for value in values if value is not None]
        return estimate(known) if known and len(known) == len(values) else None

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


FIXED: Final = (
    Measure(
        "completion_ms.mean", "job completion, mean", Kind.TIME, Best.LOW, lambda run: run.completion_ms.mean,
        ratio=lambda run, other: ratio_of_means(run.completions_ms, other.completions_ms),
    ),
    Measure(
        "completion_ms.p50", "half of the jobs within", Kind.TIME, Best.LOW, lambda run: run.completion_ms.p50,
        ratio=lambda run, other: ratio_of_percentiles(run.completions_ms, other.completions_ms, 50),
    ),
    Measure("completion_ms.p95", "95 % of jobs within", Kind.TIME, Best.LOW, lambda run: run.completion_ms.p95),
    Measure("completion_ms.p99", "99 % of jobs within", Kind.TIME, Best.LOW, lambda run: run.completion_ms.p99),
    Measure(
        "bounded_slowdown.mean", "bounded slowdown of jobs, mean", Kind.FACTOR, Best.LOW,
        lambda run: run.bounded_slowdown.mean,
        ratio=lambda run, other: ratio_of_means(run.bounded_slowdowns, other.bounded_slowdowns),
    ),
    Measure(
        "bounded_slowdown.p50", "  of half of the jobs at most", Kind.FACTOR, Best.LOW,
        lambda run: run.bounded_slowdown.p50,
    ),
    Measure(
        "bounded_slowdown.p95", "  of 95 % of jobs at most", Kind.FACTOR, Best.LOW,
        lambda run: run.bounded_slowdown.p95,
        ratio=lambda run, other: ratio_of_percentiles(run.bounded_slowdowns, other.bounded_slowdowns, 95),
    ),
    Measure(
        "bounded_slowdown.p99", "  of 99 % of jobs at most", Kind.FACTOR, Best.LOW,
        lambda run: run.bounded_slowdown.p99,
    ),
    Measure("slowdown.mean", "plain slowdown of jobs, mean", Kind.FACTOR, Best.LOW, lambda run: run.slowdown.mean),
    Measure("slowdown.p50", "  of half of the jobs at most", Kind.FACTOR, Best.LOW, lambda run: run.slowdown.p50),
    Measure(
        "slowdown.p95", "  of 95 % of jobs at most", Kind.FACTOR, Best.LOW, lambda run: run.slowdown.p95,
        ratio=lambda run, other: ratio_of_percentiles(run.slowdowns, other.slowdowns, 95),
    ),
    Measure("slowdown.p99", "  of 99 % of jobs at most", Kind.FACTOR, Best.LOW, lambda run: run.slowdown.p99),
    Measure(
        "wait_ms.mean", "task wait, mean", Kind.TIME, Best.LOW, lambda run: run.wait_ms.mean, is_of_starts=True
    ),
    Measure("makespan_ms", "all done after", Kind.TIME, Best.LOW, lambda run: run.makespan_ms),
    Measure(
        "jain", "Jain's index of dominant shares", Kind.FACTOR, Best.HIGH, lambda run: run.jain, is_of_starts=True
    ),
    Measure(
        "below_fraction", "contending time below 1/n", Kind.FRACTION, Best.LOW, lambda run: run.below_fraction,
        is_of_starts=True,
    ),
    Measure(
        "violations", "users worse off than on an own 1/n", Kind.COUNT, Best.LOW, lambda run: len(run.violations)
    ),
    Measure(
        "clear_violations", "  of them by more than a tenth", Kind.COUNT, Best.LOW,
        lambda run: len(run.clear_violations),
    ),
    Measure(
        "crowded_fraction", "task time on hosts promised twice", Kind.FRACTION, Best.LOW,
        lambda run: run.crowded_fraction,
    ),
)  # fmt: skip


def measures(runs: Sequence[PolicyResult]) -> list[Measure]:
    """All measures of these runs, those of their resources among them."""
    names = dict.fromkeys(name for run in runs for name in run.resources)
    of_resources = [
        measure
        for name in names
        for measure in (_utilization(name), _until_last(name), _over_until_last(name))
    ]
    return [*FIXED, *of_resources]


def _utilization(resource: str) -> Measure:
    return Measure(
        f"utilization.{resource}", f"{resource} held by tasks, mean", Kind.FRACTION, Best.HIGH,
        lambda run: run.utilization.get(resource), is_of_starts=True,
    )  # fmt: skip


def _until_last(resource: str) -> Measure:
    return Measure(
        f"resources.{resource}.held_until_last_arrival", f"  {resource} until the last arrival",
        Kind.FRACTION, Best.HIGH,
        lambda run: run.resources[resource].held_until_last_arrival if resource in run.resources else None,
        is_of_starts=True,
    )  # fmt: skip


def _over_until_last(resource: str) -> Measure:
    return Measure(
        f"resources.{resource}.over_until_last_arrival", f"    of it {resource} promised twice",
        Kind.FRACTION, Best.NEITHER,
        lambda run: run.resources[resource].over_until_last_arrival if resource in run.resources else None,
        is_of_starts=True,
    )  # fmt: skip
