"""Jobs that arrive at a simulated cluster of either level: each at its time, or refused if it could never run."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from fairlead_sim.engine import Engine
from fairlead_sim.observer import Watcher
from fairlead_sim.pool.feasibility import Feasibility
from fairlead_sim.workload import Job


class Arrivals:
    """All jobs fed to one cluster."""

    def __init__(
        self, engine: Engine, watcher: Watcher, feasibility: Feasibility, submit: Callable[[Job], None]
    ) -> None:
        """``submit`` is given each job that could run, after the watcher was told of it."""
        self.sources = 0
        """Of jobs, not exhausted."""
        self._engine = engine
        self._watcher = watcher
        self._feasibility = feasibility
        self._submit = submit

    def feed(self, jobs: Iterable[Job], *, origin_ms: int = 0) -> None:
        """Let these jobs arrive, each ``submit_ms - origin_ms`` after now; they are in order of arrival, and taken one by one."""
        coming = iter(jobs)
        first = next(coming, None)
        if first is not None:
            self.sources += 1
            start_ms = self._engine.now_ms - origin_ms
            self._engine.at(start_ms + first.submit_ms, partial(self._arrive_due, coming, start_ms, first))

    def _arrive_due(self, jobs: Iterator[Job], start_ms: int, job: Job | None) -> None:
        """Let this job and all of its millisecond arrive, and plan for the next.

        Not one by one as occurrences: a cycle would come in between and give all there is to the first of them.
        """
        while job is not None and start_ms + job.submit_ms <= self._engine.now_ms:
            self._arrive(job)
            job = next(jobs, None)
        if job is None:
            self.sources -= 1
        else:
            self._engine.at(start_ms + job.submit_ms, partial(self._arrive_due, jobs, start_ms, job))

    def _arrive(self, job: Job) -> None:
        now_ms = self._engine.now_ms
        for bundle in job.bundles:
            # Asked before a framework asks its master, which would answer the same, as a job is refused whole.
            why = self._feasibility.why_never(bundle)
            if why:
                self._watcher.refused(job, bundle, why, now_ms)
                return
        self._watcher.arrived(job, now_ms)
        self._submit(job)
