"""Watches a simulation that begins with a snapshot, and keeps by role what the answer needs."""

from collections.abc import Callable
from dataclasses import dataclass

from fairlead_sim.observer import Batch
from fairlead_sim.workload import Bundle, Job


@dataclass(slots=True)
class Tally:
    """The tasks of one role, those of the roles below it included."""

    waiting: int = 0
    running: int = 0
    started: int = 0
    """Of those that waited at the beginning."""
    wait_sum_ms: int = 0
    wait_max_ms: int = 0
    last_end_ms: int | None = None

    @property
    def wait_mean_ms(self) -> float | None:
        """None if none was started."""
        return self.wait_sum_ms / self.started if self.started else None

    @property
    def finish_ms(self) -> int | None:
        """None while there is something to do, and if there never was."""
        return None if self.waiting or self.running else self.last_end_ms


class Ledger:
    """A watcher of one case. Time begins at 0, and whatever was started before was running already."""

    def __init__(
        self, roles_of: Callable[[Job], tuple[str, ...]], on_ended: Callable[[int], None] = lambda _: None
    ) -> None:
        """Begin with nothing.

        Args:
            roles_of: gives the role of a job and those above it.
            on_ended: told how many tasks are over, whenever some are.
        """
        self._roles_of = roles_of
        self._on_ended = on_ended
        self._ended = 0
        self.by_role: dict[str, Tally] = {}
        self.total = Tally()
        self.refused_bundles: list[tuple[Bundle, str]] = []
        """With the reason."""

    def arrived(self, job: Job, now_ms: int) -> None:  # noqa: ARG002 - the interface of watchers
        """All its tasks wait."""
        for tally in self._tallies(job):
            tally.waiting += job.tasks

    def refused(self, job: Job, bundle: Bundle, why: str, now_ms: int) -> None:  # noqa: ARG002 - see above
        """It waits for ever and counts nowhere else."""
        self.refused_bundles.append((bundle, why))

    def started(self, batch: Batch) -> None:
        """Its tasks run; those of the beginning did so before."""
        for tally in self._tallies(batch.job):
            tally.waiting -= batch.units
            tally.running += batch.units
            if not is_adopted(batch.job):
                tally.started += batch.units
                tally.wait_sum_ms += batch.units * batch.started_ms
                tally.wait_max_ms = max(tally.wait_max_ms, batch.started_ms)

    def ended(self, batch: Batch, now_ms: int) -> None:
        """Its tasks are over."""
        for tally in self._tallies(batch.job):
            tally.running -= batch.units
            tally.last_end_ms = now_ms
        self._ended += batch.units
        self._on_ended(self._ended)

    def finished(self, job: Job, now_ms: int) -> None:
        """Nothing more than its last task has said."""

    def _tallies(self, job: Job) -> list[Tally]:
        return [
            self.total,
            *(self.by_role.setdefault(role, Tally()) for role in self._roles_of(job)),
        ]


RUNNING = "running"
"""Id of the jobs made of what runs at the beginning; a framework has one of them."""


def is_adopted(job: Job) -> bool:
    """Whether the job is what a framework ran at the beginning."""
    return job.job_id == RUNNING
