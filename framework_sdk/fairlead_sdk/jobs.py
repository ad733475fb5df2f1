"""One submitted task, or member of an array, until its result: the record that a workload keeps of it, and lists of such."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import ArrayMember, TaskStatus, TaskUsage, attempt_name
from fairlead_sdk.calls import Launch
from fairlead_sdk.errors import Infeasible
from fairlead_sdk.task import Task, TaskResult

GIVEN_UP_KEPT: Final = 10_000
"""Attempts that were given up as lost and remembered, in case an agent turns up with one that still runs."""


@unique
class Phase(Enum):
    """Where a job's current attempt is."""

    SOUGHT = "SOUGHT"
    """It may run since an earlier session of the framework; the master is asked."""
    WAITING = "WAITING"
    ASKED = "ASKED"
    LIVE = "LIVE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is reported of a job's last attempt."""

    state: TaskState
    reason: Reason = Reason.NONE
    message: str = ""
    timestamp_ms: int = 0
    exit_code: int | None = None
    signal: int | None = None
    usage: TaskUsage | None = None
    refusal: Infeasible | None = None


@dataclass(slots=True, kw_only=True)
class Job:
    """Where a job is, and what is left to try."""

    job_id: str
    task: Task
    member: ArrayMember | None = None
    """Which one of the array whose template the task is; None of a task of its own."""
    submitted_ms: int
    attempt_id: str
    class_id: str = ""
    phase: Phase = Phase.WAITING
    retries_left: int
    failures_left: int
    attempt: int = 1
    launches: int = 0
    misfits: int = 0
    agent_id: str = ""
    state: TaskState = TaskState.STAGING
    started_ms: int = 0
    kill_wanted: bool = False
    sought_again: bool = False
    unreachable_until_ms: int | None = None

    @property
    def array_id(self) -> str:
        """The array it is of; empty of a task of its own."""
        return "" if self.member is None else self.member.array_id

    @property
    def launch(self) -> Launch:
        """Its current attempt, as it is asked for."""
        return Launch(self.attempt_id, self.task, self.member)

    def try_again(self, *, is_loss: bool) -> None:
        """Go on to the next attempt; one of those that are left is used up."""
        if is_loss:
            self.retries_left -= 1
        else:
            self.failures_left -= 1
        self.attempt += 1
        self.attempt_id = attempt_name(self.job_id, self.attempt)
        self.started_ms = 0
        self.state = TaskState.STAGING

    def take_up(self, attempt_id: str, number: int, before: Sequence[TaskStatus]) -> None:
        """Go on with an attempt that an earlier session launched; ``before`` is what is known of those before it."""
        self.attempt_id = attempt_id
        self.attempt = self.launches = number
        failures = min(sum(each.state is TaskState.FAILED for each in before), self.failures_left)
        self.failures_left -= failures
        self.retries_left = max(0, self.retries_left - (number - 1 - failures))
        self.phase = Phase.LIVE

    def result(self, ending: Ending) -> TaskResult:
        """What is told of its current attempt."""
        return TaskResult(
            task=self.task,
            member=self.member,
            task_id=self.attempt_id,
            state=ending.state,
            exit_code=ending.exit_code,
            signal=ending.signal,
            reason=ending.reason,
            message=ending.message,
            agent_id=self.agent_id,
            usage=ending.usage,
            attempts=self.launches,
            submitted_ms=self.submitted_ms,
            started_ms=self.started_ms,
            finished_ms=ending.timestamp_ms,
            refusal=ending.refusal,
        )


class AwayJobs:
    """The jobs whose current attempt may run on an agent that is away, each with the time when it is replaced."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._jobs: dict[str, Job] = {}

    def add(self, job: Job, now_ms: int) -> None:
        """Its agent went away now, unless that is known already."""
        if job.unreachable_until_ms is None:
            job.unreachable_until_ms = now_ms + self._timeout_ms
            self._jobs[job.attempt_id] = job

    def forget(self, job: Job) -> None:
        """Its agent is back, or it does not matter any more."""
        job.unreachable_until_ms = None
        self._jobs.pop(job.attempt_id, None)

    def deadlines(self) -> Iterator[tuple[int, Job]]:
        """When each is to be replaced."""
        for job in self._jobs.values():
            assert job.unreachable_until_ms is not None, f"{job.attempt_id} is not away"
            yield job.unreachable_until_ms, job


class GivenUp:
    """Attempts that were given up as lost, the last ``GIVEN_UP_KEPT`` of them."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    def __contains__(self, attempt_id: str) -> bool:
        return attempt_id in self._ids

    def add(self, attempt_id: str) -> None:
        """Remember one."""
        self._ids[attempt_id] = None
        if len(self._ids) > GIVEN_UP_KEPT:
            del self._ids[next(iter(self._ids))]


def reported_ending(status: TaskStatus) -> Ending:
    """The end that a terminal report tells of."""
    return Ending(
        state=status.state,
        reason=status.reason,
        message=status.message,
        timestamp_ms=status.timestamp_ms,
        exit_code=status.exit_code,
        signal=status.signal,
        usage=status.usage,
    )
