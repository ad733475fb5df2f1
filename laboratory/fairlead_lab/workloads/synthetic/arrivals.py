"""When jobs arrive.

``poisson``: exponential gaps of mean ``gap``. ``lognormal``: gaps of mean ``gap`` whose logarithm has the standard deviation
``spread``: bursts. ``regular``: every ``gap``. ``uniform``: ``jobs`` times drawn evenly from ``start`` to ``until``.
``at-once``: ``jobs`` of them at ``start``. With gaps the first job comes one gap after ``start``, and there are so many
as ``jobs`` says, as come before ``until``, or whichever ends first.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, cast

from fairlead_lab.workloads.synthetic.draws import SPREAD_MAX, Even, exponential, normal
from fairlead_lab.workloads.synthetic.table import Table

Process = Literal["poisson", "lognormal", "regular", "uniform", "at-once"]
PROCESSES: Final = ("poisson", "lognormal", "regular", "uniform", "at-once")

JOBS_MAX: Final = 10_000_000
"""A job is kept until it is over, about 1 KiB: past it a scenario is a mistake in a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """A process of arrivals; see the module's text."""

    process: Process
    gap_ms: float = 0.0
    spread: float = 1.0
    jobs: int | None = None
    start_ms: int = 0
    until_ms: int | None = None

    def times_ms(self, even: Even) -> Iterator[int]:
        """The arrivals in order."""
        match self.process:
            case "at-once":
                yield from [self.start_ms] * (self.jobs or 0)
            case "uniform":
                span_ms = (self.until_ms or self.start_ms) - self.start_ms
                drawn = (self.start_ms + int(even() * span_ms) for _ in range(self.jobs or 0))
                yield from sorted(drawn)
            case _:
                yield from self._by_gaps(even)

    def _by_gaps(self, even: Even) -> Iterator[int]:
        at_ms = float(self.start_ms)
        jobs = 0
        while self.jobs is None or jobs < self.jobs:
            at_ms += self._gap_ms(even)
            if self.until_ms is not None and at_ms >= self.until_ms:
                return
            jobs += 1
            yield round(at_ms)

    def _gap_ms(self, even: Even) -> float:
        match self.process:
            case "poisson":
                return exponential(self.gap_ms, even)
            case "lognormal":
                # e^(spread^2 / 2) is the mean of e^(spread N).
                return self.gap_ms * math.exp(self.spread * normal(even) - self.spread**2 / 2)
            case _:
                return self.gap_ms


def read_arrivals(table: Table) -> Arrivals:
    """The process a table describes.

    Raises:
        WorkloadError: a key or a value that makes no sense for the process.
    """
    process = cast("Process", table.one_of("process", PROCESSES, None))
    jobs = table.whole("jobs", least=1, most=JOBS_MAX, default=None)
    start_ms = table.duration_ms("start", 0) or 0
    until_ms = None if process == "at-once" else table.duration_ms("until", None)
    gap_ms, spread = 0, 1.0
    if process in {"at-once", "uniform"}:
        table.require("jobs", f"how many, from 1 to {JOBS_MAX}")
    else:
        table.require("gap", "the mean time between two arrivals")
        gap_ms = table.duration_ms("gap", 0) or 0
        if gap_ms < 1:
            raise table.bad("gap", "a time of at least 1 ms")
        if jobs is None and until_ms is None:
            raise table.bad("jobs", "how many jobs, or until when they arrive")
    if process == "lognormal":
        spread = table.number("spread", least=0, most=SPREAD_MAX, default=1.0)
    if process == "uniform":
        table.require("until", "when the last may arrive")
    if until_ms is not None and until_ms <= start_ms:
        raise table.bad("until", f"a time after the start at {start_ms / 1000:g} s")
    if until_ms is not None and gap_ms and (until_ms - start_ms) / gap_ms > JOBS_MAX:
        raise table.bad("gap", f"a gap that leads to at most {JOBS_MAX} jobs")
    table.done()
    return Arrivals(
        process=process, gap_ms=gap_ms, spread=spread, jobs=jobs, start_ms=start_ms, until_ms=until_ms
    )
