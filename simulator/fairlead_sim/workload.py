"""What a trace asks of a cluster: jobs made of bundles of equal tasks, in stages, each with an owner.

A *job* here is the trace's word: what one person handed in as one piece. It is not a task: a job has one or more
bundles, a bundle is a number of equal tasks. Stage k of a job may start once all its tasks of earlier stages are
over. Amounts are vectors in the standard order (cpus, mem, disk, gpus) as everywhere; times are milliseconds from the
start of the trace, before any compression.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from fairlead_proto.resources import Vector
from fairlead_proto.tasks import Constraint

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
    constraints: tuple[Constraint, ...] = ()
    """On the attributes of the hosts it may run on; all must hold."""
    is_gang: bool = False
    """Whether its tasks start together or not at all."""


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


@dataclass(frozen=True, slots=True)
class Work:
    """Jobs that are to be run, and what is to be told of where they come from."""

    jobs: list[Job]
    """By arrival."""
    remarks: tuple[str, ...] = ()
    """What was left out or assumed, a line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which part of a trace to take."""

    jobs_max: int | None = None
    """The first so many jobs by their first row; None is all."""
    from_ms: int = 0
    """Jobs that arrived before are left out."""
    until_ms: int | None = None
    """Jobs that arrive then or later are left out; None is the end."""


class JobChooser:
    """Says of each row of a trace, in order, whether it belongs to a selected job. A job is taken whole or not at all.

    A job's later rows may come long after its first, so the ids of the selected jobs are kept (and of those before the
    window), unless everything is selected.
    """

    def __init__(self, selection: Selection) -> None:
        """Nothing is chosen yet."""
        self._selection = selection
        self._takes_all = selection == Selection()
        self._taken: set[str] = set()
        self._passed: set[str] = set()

    def takes(self, job_id: str, submit_ms: int) -> bool:
        """Whether the row of this job, arriving at this time, is to be taken."""
        if self._takes_all or job_id in self._taken:
            return True
        if job_id in self._passed:
            return False
        selection = self._selection
        if selection.until_ms is not None and submit_ms >= selection.until_ms:
            return False
        if submit_ms < selection.from_ms:
            self._passed.add(job_id)
            return False
        if selection.jobs_max is not None and len(self._taken) >= selection.jobs_max:
            return False
        self._taken.add(job_id)
        return True


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
