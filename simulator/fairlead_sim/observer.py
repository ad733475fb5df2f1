"""What a simulation tells whoever watches it: the life of jobs and their tasks, whichever level simulates them.

Tasks of one bundle that start together on one host are told of together, so that a trace of millions of tasks can be
watched in bounded time and memory. Times are milliseconds from the start of the simulation.
"""

from dataclasses import dataclass
from typing import Protocol

from fairlead_sim.workload import Bundle, Job


@dataclass(slots=True, eq=False, kw_only=True)
class Batch:
    """Tasks of one bundle that run on one host from one moment on."""

    job: Job
    bundle: Bundle
    units: int
    host: str
    ready_ms: int
    """When they could have started: their job had arrived and its earlier stages were over."""
    started_ms: int


class Watcher(Protocol):
    """Told of everything that happens, in order of time."""

    def arrived(self, job: Job, now_ms: int) -> None:
        """A job was handed in."""

    def refused(self, job: Job, bundle: Bundle, why: str, now_ms: int) -> None:
        """A job will not be run: no host could ever hold a task of this bundle. Said in place of ``arrived``."""

    def started(self, batch: Batch) -> None:
        """Tasks began to run."""

    def ended(self, batch: Batch, now_ms: int) -> None:
        """They are over, all of them well."""

    def finished(self, job: Job, now_ms: int) -> None:
        """The last task of the job is over."""


class IdleWatcher:
    """A watcher that ignores all it is told: the start of one that cares about a few of these."""

    def arrived(self, job: Job, now_ms: int) -> None:
        """Ignored."""

    def refused(self, job: Job, bundle: Bundle, why: str, now_ms: int) -> None:
        """Ignored."""

    def started(self, batch: Batch) -> None:
        """Ignored."""

    def ended(self, batch: Batch, now_ms: int) -> None:
        """Ignored."""

    def finished(self, job: Job, now_ms: int) -> None:
        """Ignored."""
