"""Any trace this project can read, whatever its format, as jobs in order of arrival.

``load_jobs`` is what most callers want; ``load`` also says which format it was and what had to be left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead_sim.workloads.traces import Trace, TraceOptions
from fairlead_sim.workloads.workload import Job, Selection, WorkloadError, group_jobs

AUTO: Final = "auto"
"""Told from the file's first lines."""


@dataclass(slots=True, kw_only=True)
class Loaded:
    """A trace in memory, and what became of its rows."""

    format: str
    jobs: list[Job]
    rows_without_duration: int = 0
    """Left out or given the default, as the options say."""

    @property
    def tasks(self) -> int:
        """How many tasks the jobs have in all."""
        return sum(job.tasks for job in self.jobs)


def load_jobs(
    path: str | Path,
    *,
    format: str = AUTO,
    selection: Selection | None = None,
    options: TraceOptions | None = None,
) -> list[Job]:
    """The jobs of a trace, by arrival.

    Args:
        path: The file, plain or gzip.
        format: One of ``FORMATS``, or ``auto``.
        selection: Which jobs; None is all.
        options: How to read what a trace leaves open.

    Raises:
        TraceError: the file cannot be used; the message names the place.
        WorkloadError: an unknown format, no job selected, a job with two owners.
    """
    return load(path, format=format, selection=selection, options=options).jobs


def load(
    path: str | Path,
    *,
    format: str = AUTO,
    selection: Selection | None = None,
    options: TraceOptions | None = None,
) -> Loaded:
    """As ``load_jobs``, with what happened to the rows."""
    name = "normalised" if format == AUTO else format
    reader = FORMATS.get(name)
    if reader is None:
        raise WorkloadError(f"trace format: expected auto, {', '.join(FORMATS)}, got {format!r}")
    return reader(Path(path), options or TraceOptions(), selection or Selection())


def _normalised(path: Path, options: TraceOptions, selection: Selection) -> Loaded:
    trace = Trace(path, options, selection)
    jobs = group_jobs(trace)
    return Loaded(format="normalised", jobs=jobs, rows_without_duration=trace.rows_without_duration)


FORMATS: Final[dict[str, Callable[[Path, TraceOptions, Selection], Loaded]]] = {"normalised": _normalised}
"""Each format by name."""
