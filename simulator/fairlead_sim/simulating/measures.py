"""The numbers by which policies are compared, one line each, and how a person reads them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

from fairlead_sim.simulating.intervals import Estimate, estimate
from fairlead_sim.simulating.result import PolicyResult


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

    def of(self, runs: Sequence[PolicyResult]) -> Estimate | None:
        """Over the seeds of one policy; None if a run lacks it."""
        values = [self.pick(run) for run in runs]
        known = [value for value in values if value is not None]
        return estimate(known) if known and len(known) == len(values) else None

    def write(self, value: float | None) -> str:
        """For a reader."""
        if value is None:
            return "-"
        match self.kind:
            case Kind.TIME:
                return span(value)
            case Kind.FACTOR:
                return f"{value:.2f}" if value < 100 else f"{value:.0f}"
            case Kind.FRACTION:
                return f"{100 * value:.1f} %"
            case Kind.COUNT:
                return f"{value:.0f}" if value == int(value) else f"{value:.1f}"

    def write_estimate(self, found: Estimate | None) -> str:
        """Mean, and half width where there is one."""
        if found is None:
            return self.write(None)
        if not found.half_width:
            return self.write(found.mean)
        return f"{self.write(found.mean)} ± {self.write(found.half_width)}"


_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def span(duration_ms: float) -> str:
    """A duration with three digits that matter, in the largest unit of which there is at least one."""
    for size, unit in _UNITS:
        if abs(duration_ms) >= size:
            return (
                f"{duration_ms / size:.3g} {unit}"
                if abs(duration_ms) < 1000 * size
                else f"{duration_ms / size:.0f} {unit}"
            )
    return f"{duration_ms:.3g} ms"


FIXED: Final = (
    Measure("completion_ms.mean", "job completion, mean", Kind.TIME, Best.LOW, lambda run: run.completion_ms.mean),
    Measure("completion_ms.p50", "half of the jobs within", Kind.TIME, Best.LOW, lambda run: run.completion_ms.p50),
    Measure("completion_ms.p95", "95 % of jobs within", Kind.TIME, Best.LOW, lambda run: run.completion_ms.p95),
    Measure("completion_ms.p99", "99 % of jobs within", Kind.TIME, Best.LOW, lambda run: run.completion_ms.p99),
    Measure("slowdown.mean", "job slowdown, mean", Kind.FACTOR, Best.LOW, lambda run: run.slowdown.mean),
    Measure("slowdown.p50", "slowdown of half of the jobs at most", Kind.FACTOR, Best.LOW, lambda run: run.slowdown.p50),
    Measure("slowdown.p95", "slowdown of 95 % of jobs at most", Kind.FACTOR, Best.LOW, lambda run: run.slowdown.p95),
    Measure("slowdown.p99", "slowdown of 99 % of jobs at most", Kind.FACTOR, Best.LOW, lambda run: run.slowdown.p99),
    Measure("wait_ms.mean", "task wait, mean", Kind.TIME, Best.LOW, lambda run: run.wait_ms.mean),
    Measure("makespan_ms", "all done after", Kind.TIME, Best.LOW, lambda run: run.makespan_ms),
    Measure("jain", "Jain's index of dominant shares", Kind.FACTOR, Best.HIGH, lambda run: run.jain),
    Measure(
        "below_fraction", "contending time below 1/n", Kind.FRACTION, Best.LOW, lambda run: run.below_fraction
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
    return [*FIXED, *(_utilization(name) for name in names), *(_until_last(name) for name in names)]


def _utilization(resource: str) -> Measure:
    return Measure(
        f"utilization.{resource}", f"{resource} in use, mean", Kind.FRACTION, Best.HIGH,
        lambda run: run.utilization.get(resource),
    )  # fmt: skip


def _until_last(resource: str) -> Measure:
    return Measure(
        f"resources.{resource}.held_until_last_arrival", f"{resource} in use until the last arrival",
        Kind.FRACTION, Best.HIGH,
        lambda run: run.resources[resource].held_until_last_arrival if resource in run.resources else None,
    )  # fmt: skip


def best_of(measure: Measure, found: Sequence[Estimate | None]) -> frozenset[int]:
    """Places of the best policies by a measure: those within one per cent of the best; none if all are alike."""
    known = {place: each.mean for place, each in enumerate(found) if each is not None}
    if measure.best is Best.NEITHER or len(known) < 2:
        return frozenset()
    ends = min(known.values()), max(known.values())
    if ends[1] - ends[0] <= _ALIKE * abs(ends[1]):
        return frozenset()
    best = ends[0] if measure.best is Best.LOW else ends[1]
    return frozenset(place for place, value in known.items() if abs(value - best) <= _ALIKE * abs(best))


_ALIKE: Final = 0.01
"""Policies that differ by less than a hundredth are the same to an operator."""
