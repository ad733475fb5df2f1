"""Any trace this project can read, whatever its format, as jobs in order of arrival.

``load_jobs`` is what most callers want; ``load`` also says which format it was and what had to be left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairlead_lab.workloads.csv_rows import TraceError, bad_place
from fairlead_lab.workloads.formats.detection import detect_format
from fairlead_lab.workloads.formats.google import read_google
from fairlead_lab.workloads.formats.normalised import read_normalised
from fairlead_lab.workloads.formats.openb import read_openb
from fairlead_lab.workloads.formats.reading import Reading
from fairlead_lab.workloads.formats.swf import read_swf
from fairlead_lab.workloads.formats.swim import read_remodelled, read_swim
from fairlead_lab.workloads.traces import TraceOptions
from fairlead_sim.workload import (
    Bundle,
    Job,
    JobChooser,
    Selection,
    WorkloadError,
    group_jobs,
)

AUTO: Final = "auto"
"""Told from the file's name and first lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A trace in memory, and what became of its rows."""

    format: str
    jobs: list[Job]
    rows_without_duration: int = 0
    """Left out or given the default, as the options say."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Rows that gave no task for other reasons, by the reason in words."""
    header: dict[str, str] = field(default_factory=dict)
    """What the file says of itself (SWF), such as ``UnixStartTime`` and ``MaxNodes``."""

    @property
    def tasks(self) -> int:
        """How many tasks the jobs have in all."""
        return sum(job.tasks for job in self.jobs)

    def remarks(self, options: TraceOptions) -> list[str]:
        """What became of rows that are not simply tasks, in words for a person.

        Args:
            options: With which it was loaded.
        """
        found = [f"{_rows(count)} of the trace left out: {reason}" for reason, count in self.left_out.items()]
        if self.rows_without_duration:
            rows = f"{_rows(self.rows_without_duration)} of the trace"
            given_ms = options.default_duration_ms
            found.append(
                f"{rows} left out: without a run time"
                if given_ms is None
                else f"{rows} without a run time: taken as {given_ms / 1000:g} s"
            )
        return found


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def load_jobs(
    path: str | Path,
    *,
    format: str = AUTO,
    selection: Selection | None = None,
    options: TraceOptions | None = None,
) -> list[Job]:
    """The jobs of a trace, by arrival.

    Args:
        path: The file, plain or gzip; a folder of parts for ``google``.
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
    if format not in {AUTO, *FORMATS}:
        raise WorkloadError(f"trace format: expected auto, {', '.join(FORMATS)}, got {format!r}")
    path, options = Path(path), options or TraceOptions()
    name = detect_format(path) if format == AUTO else format
    read = read_remodelled if name == "normalised" and options.swim is not None else FORMATS[name]
    reading = Reading(options, chooser=JobChooser(selection or Selection()))
    rows = [row for row in read(path, reading) if reading.takes(row.job_id, row.submit_ms)]
    if not rows and not reading.has_passed_over:
        raise _empty(path, reading)
    return Loaded(
        format=name,
        jobs=group_jobs(rows),
        rows_without_duration=reading.rows_without_duration,
        left_out=dict(reading.left_out),
        header=reading.header,
    )


def _empty(path: Path, reading: Reading) -> TraceError:
    reasons = [f"{count} {reason}" for reason, count in reading.left_out.items()]
    if reading.rows_without_duration:
        reasons.append(f"{reading.rows_without_duration} without a run time")
    got = f"none (left out: {'; '.join(reasons)})" if reasons else "none"
    return bad_place(path, 0, "", "at least one job", got)


FORMATS: Final[dict[str, Callable[[Path, Reading], Iterator[Bundle]]]] = {
    "normalised": read_normalised,
    "swf": read_swf,
    "swim": read_swim,
    "openb": read_openb,
    "google": read_google,
}
"""The reader of each format."""
