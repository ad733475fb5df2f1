"""What a trace asks of a cluster: jobs made of bundles of equal tasks, in stages, each with an owner.

A *job* here is the trace's word: what one person handed in as one piece. It is not a task: a job has one or more
bundles, a bundle is a number of equal tasks. Stage k of a job may start once all its tasks of earlier stages are
over. Amounts are vectors in the standard order (cpus, mem, disk, gpus) as everywhere; times are milliseconds from the
start of the trace, before any compression.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fairlead_proto.resources import Vector

NOBODY = "nobody"
"""The owner of rows that name none."""


class WorkloadError(ValueError):
    """A workload that contradicts itself or has nothing in it; the message says what was expected and what came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A number of equal tasks of one stage of a job: one row of a trace."""

    job_id: str
    user: str
    stage: int
    tasks: int
    """1 or more."""
    unit: Vector
    """One task's demand; above zero in at least one place."""
    submit_ms: int
    duration_ms: int
    """How long each task runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """All bundles of one job, by stage and then in the order of the trace."""

    job_id: str
    user: str
    submit_ms: int
    """Of its first bundle."""
    bundles: tuple[Bundle, ...]

    @property
    def tasks(self) -> int:
        """How many tasks it has in all."""
        return sum(bundle.tasks for bundle in self.bundles)

    def stages(self) -> list[tuple[Bundle, ...]]:
        """The bundles of each stage that has any, earlier stages first."""
        numbers = sorted({bundle.stage for bundle in self.bundles})
        return [tuple(bundle for bundle in self.bundles if bundle.stage == number) for number in numbers]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which part of a trace to take."""

    jobs_max: int | None = None
    """The first so many jobs by their first row; None is all."""
    from_ms: int = 0
    """Jobs that arrived before are left out."""
    until_ms: int | None = None
    """Jobs that arrive then or later are left out; None is the end."""


def select(bundles: Iterable[Bundle], selection: Selection) -> Iterator[Bundle]:
    """The bundles of the selected jobs, in the order given. A job is taken whole or not at all.

    Memory grows with the number of selected jobs only, and only if there is a bound on jobs or a window: a job's later
    rows may come long after its first, so the ids of the taken ones must be known.
    """
    if selection == Selection():
        yield from bundles
        return
    taken: set[str] = set()
    passed: set[str] = set()
    for bundle in bundles:
        if bundle.job_id not in taken and bundle.job_id not in passed:
            late = selection.until_ms is not None and bundle.submit_ms >= selection.until_ms
            full = selection.jobs_max is not None and len(taken) >= selection.jobs_max
            if late or full:
                continue
            (taken if bundle.submit_ms >= selection.from_ms else passed).add(bundle.job_id)
        if bundle.job_id in taken:
            yield bundle


def group_jobs(bundles: Iterable[Bundle]) -> list[Job]:
    """The jobs of these bundles, by arrival; equal arrivals keep the order of the trace.

    Raises:
        WorkloadError: there are none, or one job has two owners.
    """
    rows: dict[str, list[Bundle]] = {}
    for bundle in bundles:
        known = rows.setdefault(bundle.job_id, [])
        if known and known[0].user != bundle.user:
            raise WorkloadError(
                f"job {bundle.job_id}: expected one owner, got {known[0].user!r} and {bundle.user!r}"
            )
        known.append(bundle)
    if not rows:
        raise WorkloadError("workload: expected at least one job, got none: does the selection leave any?")
    jobs = [
        Job(
            job_id=job_id,
            user=known[0].user,
            submit_ms=min(bundle.submit_ms for bundle in known),
            bundles=tuple(sorted(known, key=lambda bundle: bundle.stage)),
        )
        for job_id, known in rows.items()
    ]
    return sorted(jobs, key=lambda job: job.submit_ms)
