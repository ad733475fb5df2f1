"""Plays a plan against the clock: hands jobs in when they are due, stage after stage, and writes down what became of them.

It knows nothing of clusters. A ``TaskRunner`` runs tasks and says how each ended; the live one launches them through
the SDK, a test's one makes the endings up. A job's later stages are withheld once a task of an earlier one did not finish.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fairlead_lab.metrics.records import JobRecord, TaskRecord
from fairlead_lab.workloads.plan import PlannedJob, PlannedTask, ReplayPlan
from fairlead_sdk.clock import Clock, sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """How one task ended; times are ms since 1970 by this host's clock, None if it did not come to that."""

    state: str
    started_unix_ms: int | None = None
    finished_unix_ms: int | None = None
    agent_id: str = ""
    attempts: int = 0
    reason: str = ""


class TaskRunner(Protocol):
    """Runs tasks; called for many jobs at once."""

    async def run(self, user: str, tasks: Sequence[PlannedTask]) -> list[TaskOutcome]:
        """Run the tasks of a user side by side and say how each ended, in their order.

        Cancelled, it sees to it that none is left running.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayProgress:
    """How far a replay is."""

    elapsed_ms: int
    jobs: int
    jobs_submitted: int
    jobs_over: int
    tasks: int
    tasks_over: int
    work_fraction: float
    """Of all planned run time, what is over."""
    remaining_ms: int | None
    """Estimate: what is left at the rate so far, and not before the last arrival; None before anything is over."""


@dataclass(slots=True)
class _JobLog:
    job: PlannedJob
    submitted_ms: int | None = None
    stages_ms: list[int] = field(default_factory=list)
    outcomes: list[TaskOutcome] = field(default_factory=list)
    over: bool = False


class ReplayDriver:
    """One replay of one plan. Call ``run`` once; the rest may be asked at any time, also after it was cancelled."""

    def __init__(self, plan: ReplayPlan, runner: TaskRunner, clock: Clock) -> None:
        """Nothing starts; the run's time begins with ``run``."""
        self._plan = plan
        self._runner = runner
        self._clock = clock
        self._logs = [_JobLog(job) for job in plan.jobs]
        self._start_ms = clock.now_ms()
        self._start_unix_ms = clock.unix_ms()
        self._tasks_over = 0
        self._work_over_ms = 0
        self._work_ms = sum(duration_ms for _, duration_ms in plan.work)

    def now_ms(self) -> int:
        """Time since the start of the run."""
        return self._clock.now_ms() - self._start_ms

    async def run(self) -> None:
        """Hand in every job when it is due and return when all are over.

        Raises:
            ExceptionGroup: the runner failed, so the other jobs were cancelled.
        """
        self._start_ms = self._clock.now_ms()
        self._start_unix_ms = self._clock.unix_ms()
        async with asyncio.TaskGroup() as jobs:
            for log in self._logs:
                delay_ms = log.job.arrival_ms - self.now_ms()
                if delay_ms > 0:
                    await sleep(self._clock, delay_ms)
                log.submitted_ms = self.now_ms()
                jobs.create_task(self._run_job(log))

    async def _run_job(self, log: _JobLog) -> None:
        for stage in log.job.stages:
            log.stages_ms.append(self.now_ms())
            outcomes = await self._runner.run(log.job.user, stage)
            assert len(outcomes) == len(stage), f"job {log.job.job_id}: an outcome for each task"
            log.outcomes += outcomes
            self._tasks_over += len(stage)
            self._work_over_ms += sum(task.duration_ms for task in stage)
            if any(outcome.state != "FINISHED" for outcome in outcomes):
                break
        log.over = True

    def progress(self) -> ReplayProgress:
        """How far it is now."""
        elapsed_ms = self.now_ms()
        fraction = self._work_over_ms / self._work_ms if self._work_ms else 0.0
        remaining_ms = None
        if fraction > 0:
            until_arrival_ms = self._plan.last_arrival_ms - elapsed_ms
            remaining_ms = max(0, until_arrival_ms, round(elapsed_ms * (1 - fraction) / fraction))
        return ReplayProgress(
            elapsed_ms=elapsed_ms,
            jobs=len(self._logs),
            jobs_submitted=sum(log.submitted_ms is not None for log in self._logs),
            jobs_over=sum(log.over for log in self._logs),
            tasks=self._plan.tasks,
            tasks_over=self._tasks_over,
            work_fraction=fraction,
            remaining_ms=remaining_ms,
        )

    def job_records(self) -> tuple[JobRecord, ...]:
        """What is known of every job; a task whose end was not seen is PENDING."""
        return tuple(_job_record(log, self._start_unix_ms) for log in self._logs)


def _job_record(log: _JobLog, start_unix_ms: int) -> JobRecord:
    job = log.job
    handed_in = [
        (task, submitted_ms)
        for stage, submitted_ms in zip(job.stages, log.stages_ms, strict=False)
        for task in stage
    ]
    unseen = [TaskOutcome(state="PENDING")] * (len(handed_in) - len(log.outcomes))
    return JobRecord(
        job_id=job.job_id,
        user=job.user,
        planned_ms=job.arrival_ms,
        submitted_ms=job.arrival_ms if log.submitted_ms is None else log.submitted_ms,
        tasks=tuple(
            _task_record(task, submitted_ms, outcome, start_unix_ms)
            for (task, submitted_ms), outcome in zip(handed_in, log.outcomes + unseen, strict=True)
        ),
        withheld=job.tasks - len(handed_in),
    )


def _task_record(
    task: PlannedTask, submitted_ms: int, outcome: TaskOutcome, start_unix_ms: int
) -> TaskRecord:
    # Clocks of two hosts differ; no task starts before it was handed in or ends before it started.
    started_ms = finished_ms = None
    if outcome.started_unix_ms is not None:
        started_ms = max(submitted_ms, outcome.started_unix_ms - start_unix_ms)
    if outcome.finished_unix_ms is not None:
        finished_ms = max(started_ms or submitted_ms, outcome.finished_unix_ms - start_unix_ms)
    return TaskRecord(
        task_id=task.task_id,
        job_id=task.job_id,
        user=task.user,
        stage=task.stage,
        unit=task.unit,
        duration_ms=task.duration_ms,
        submitted_ms=submitted_ms,
        started_ms=started_ms,
        finished_ms=finished_ms,
        agent_id=outcome.agent_id,
        attempts=outcome.attempts,
        state=outcome.state,
        reason=outcome.reason,
    )
