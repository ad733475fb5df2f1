"""The tasks of the simple path, from submission to result: what to do with offers, reports and losses.

Plain state: session events and wishes go in, actions come out; the framework's shell carries them out. A *job* is one
submitted task until its result; an *attempt* is one launch of it, under an id of its own. Of one job at most one
attempt waits, is being launched or runs; only an attempt on an agent that stays unreachable is replaced while nobody
knows whether it still runs, and it is killed then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

from fairlead_proto.codes import CallCode, Rejection
from fairlead_proto.framework_events import AnswerAccept, AnswerCall, FinishReconciliation, Heartbeat
from fairlead_proto.task_state import RETRIABLE, Reason, TaskState, is_terminal
from fairlead_proto.tasks import TaskStatus, TaskUsage, attempt_name
from fairlead_sdk.calls import Demand, Launch
from fairlead_sdk.demand import DemandBook
from fairlead_sdk.errors import FairleadError, Infeasible
from fairlead_sdk.events import (
    AcceptItem,
    Connected,
    DemandAnswered,
    Disconnected,
    Event,
    Offer,
    OffersReceived,
    StatusReceived,
)
from fairlead_sdk.refusals import Refusals, call_failure, infeasible_error
from fairlead_sdk.search import Finder, Search
from fairlead_sdk.task import Task, TaskResult
from fairlead_sdk.workload_actions import Action, EndTasks, GiveBack, JobEnded, JobMoved, TakeOffer

MISFITS_MAX: Final = 10
"""Times a task may be found not to fit an offer made for it. Once is a race; ten times is a disagreement about amounts."""

GIVEN_UP_KEPT: Final = 10_000
"""Attempts that were given up as lost and remembered, in case an agent turns up with one that still runs."""

INFEASIBLE_PATIENCE_MS: Final = 60_000
"""How long a demand that could be met before may be refused as infeasible: its only agent may be restarting."""


@unique
class Phase(Enum):
    """Where a job's current attempt is."""

    SOUGHT = "SOUGHT"
    """It may run since an earlier session of the framework; the master is asked."""
    WAITING = "WAITING"
    ASKED = "ASKED"
    LIVE = "LIVE"


@dataclass(slots=True, kw_only=True)
class _Job:
    job_id: str
    task: Task
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ending:
    """What is reported of a job's last attempt."""

    state: TaskState
    reason: Reason = Reason.NONE
    message: str = ""
    timestamp_ms: int = 0
    exit_code: int | None = None
    signal: int | None = None
    usage: TaskUsage | None = None
    refusal: Infeasible | None = None


def _ending(status: TaskStatus) -> _Ending:
    return _Ending(
        state=status.state,
        reason=status.reason,
        message=status.message,
        timestamp_ms=status.timestamp_ms,
        exit_code=status.exit_code,
        signal=status.signal,
        usage=status.usage,
    )


class Workload:
    """All jobs of one framework that are not over."""

    def __init__(self, *, unreachable_timeout_ms: int, is_resumed: bool = False) -> None:
        """Begin with no jobs; ``is_resumed`` if an earlier session may have left tasks behind."""
        self._unreachable_timeout_ms = unreachable_timeout_ms
        self._finder = Finder() if is_resumed else None
        self._book = DemandBook()
        self._jobs: dict[str, _Job] = {}
        self._by_attempt: dict[str, _Job] = {}
        self._unreachable: dict[str, _Job] = {}
        self._given_up: dict[str, None] = {}
        self._refusals = Refusals()
        self._demand_changed = False

    # --- wishes --------------------------------------------------------------------------------------------------

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._jobs

    def __len__(self) -> int:
        return len(self._jobs)

    def submit(self, job_id: str, task: Task, *, unix_ms: int) -> None:
        """Take a job on.

        Raises:
            ValueError: a job with this id is not over yet.
        """
        if job_id in self._jobs:
            raise ValueError(f"task_id: expected one that is not in use, got {job_id!r}")
        job = _Job(
            job_id=job_id,
            task=task,
            submitted_ms=unix_ms,
            attempt_id=job_id,
            retries_left=task.retries,
            failures_left=task.retry_failed,
        )
        self._jobs[job_id] = job
        self._by_attempt[job_id] = job
        if self._finder is None:
            self._wait(job)
        else:
            self._seek(job, self._finder)

    def take_questions(self) -> list[str]:
        """The ids of attempts the master is to be asked about; ``asked`` says by which request that was done."""
        return [] if self._finder is None else self._finder.take_questions()

    def asked(self, request_id: int, attempt_ids: Sequence[str]) -> None:
        """The master is asked about these attempts."""
        assert self._finder is not None, "nothing is sought"
        self._finder.asked(request_id, attempt_ids)

    def kill(self, job_ids: Iterable[str]) -> list[Action]:
        """End these jobs; those that are over are left out. Each still ends with a result of its own."""
        actions: list[Action] = []
        to_end: list[str] = []
        for job in [self._jobs[job_id] for job_id in job_ids if job_id in self._jobs]:
            job.kill_wanted = True
            if job.phase is Phase.WAITING:
                self._book.remove(job.attempt_id, job.class_id)
                self._demand_changed = True
                actions.append(self._end_killed(job))
            elif job.phase is not Phase.SOUGHT:
                to_end.append(job.attempt_id)
        return [*actions, EndTasks(tuple(to_end))] if to_end else actions

    def fail_all(self, error: FairleadError) -> list[Action]:
        """End every job without a result: the session is over."""
        self._book = DemandBook()
        return [self._end(job, error) for job in list(self._jobs.values())]

    def state_of(self, job_id: str) -> tuple[Phase, TaskState] | None:
        """Where a job is, with the task state last heard of; None if it is over."""
        job = self._jobs.get(job_id)
        return None if job is None else (job.phase, job.state)

    def task_of(self, job_id: str) -> Task:
        """The task of a job that is not over."""
        return self._jobs[job_id].task

    def take_demand(self) -> tuple[Demand, ...] | None:
        """The demand to announce, if it differs from the last one taken in more than launches."""
        if not self._demand_changed:
            return None
        self._demand_changed = False
        return self._book.classes()

    # --- what happened -------------------------------------------------------------------------------------------

    def step(self, event: Event, now_ms: int) -> list[Action]:
        """What to do now that this happened."""
        match event:
            case StatusReceived():
                return self._on_status(event.status, now_ms)
            case OffersReceived():
                return self._on_offers(event.offers)
            case AnswerAccept():
                return [action for item in event.answers for action in self._on_accept_item(item)]
            case DemandAnswered():
                return self._on_demand_answered(event, now_ms)
            case Heartbeat():
                # No timer of its own: what is refreshed here is shown to people, or has waited for seconds already.
                if self._book.resume_all() or self._book.is_stale():
                    self._demand_changed = True
                if self._finder is not None:
                    self._finder.ask_again()
                return []
            case FinishReconciliation() | AnswerCall() if self._finder is not None:
                found = self._finder.answered(event)
                return [
                    action for job_id in found for action in self._end_search(job_id, found[job_id], now_ms)
                ]
            case Connected():
                return self._repeat_kills() if event.resumed else []
            case Disconnected():
                # The next stream begins without a demand, and the last one said does not know of launches since.
                self._demand_changed = len(self._book) > 0
                return []
            case _:
                return []

    def next_deadline_ms(self) -> int | None:
        """When ``expire`` has something to do; None if nothing waits for time to pass."""
        deadlines = (job.unreachable_until_ms for job in self._unreachable.values())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def expire(self, now_ms: int) -> list[Action]:
        """Replace the attempts whose agents stayed unreachable too long."""
        due = [
            job
            for job in self._unreachable.values()
            if job.unreachable_until_ms is not None and job.unreachable_until_ms <= now_ms
        ]
        actions: list[Action] = []
        for job in due:
            found = self._finder.search_of(job.job_id) if self._finder and job.phase is Phase.SOUGHT else None
            if found is not None and (ended := found.last()) is not None:
                # A later attempt than those that may be on the agents that are away.
                actions.extend(self._take_up(job, found, ended, now_ms))
                continue
            actions.append(EndTasks((job.attempt_id,)))
            status = _Ending(state=TaskState.UNREACHABLE, message="its agent stayed unreachable")
            actions.extend(self._retry_or_end(job, status))
        return actions

    def _on_offers(self, offers: Iterable[Offer]) -> list[Action]:
        actions: list[Action] = []
        unneeded: list[str] = []
        for offer in offers:
            launches = self._book.take(offer.class_id, offer.unit, offer.units)
            if not launches:
                unneeded.append(offer.offer_id)
                continue
            for launch in launches:
                job = self._by_attempt[launch.task_id]
                job.phase = Phase.ASKED
                job.agent_id = offer.agent_id
            actions.append(TakeOffer(offer, tuple(launches)))
        if unneeded:
            # The master believes that more is wanted than is: told so, it does not offer the same again and again.
            self._demand_changed = True
            actions.append(GiveBack(tuple(unneeded)))
        return actions

    def _on_accept_item(self, item: AcceptItem) -> list[Action]:
        job = self._by_attempt.get(item.task_id)
        if job is None or job.phase is not Phase.ASKED:
            return []
        if item.launched:
            job.phase = Phase.LIVE
            job.launches += 1
            moved = JobMoved(job.job_id, is_running=True)
            return [moved, EndTasks((job.attempt_id,))] if job.kill_wanted else [moved]
        if job.kill_wanted:
            return [self._end_killed(job)]
        if item.rejection is Rejection.INVALID and self._finder is not None and not job.sought_again:
            # The search was given up, and now an agent is back that knows this id from an earlier session.
            job.sought_again = True
            self._seek(job, self._finder)
            return []
        if item.rejection in (Rejection.NO_FIT, Rejection.UNAUTHORIZED):
            job.misfits += 1
        if item.rejection is Rejection.INVALID or job.misfits >= MISFITS_MAX:
            view = _Ending(state=TaskState.ERROR, reason=Reason.INVALID_TASK, message=item.detail)
            return [self._end_with(job, view)]
        self._wait(job, again=True)
        return []

    def _seek(self, job: _Job, finder: Finder) -> None:
        job.phase = Phase.SOUGHT
        job.retries_left, job.failures_left = job.task.retries, job.task.retry_failed
        finder.seek(job.job_id, attempts_max=1 + job.retries_left + job.failures_left)

    def _end_search(self, job_id: str, search: Search, now_ms: int) -> list[Action]:
        """Take up what the last session left of a job, or have it launched."""
        job = self._jobs.get(job_id)
        if job is None or self._finder is None:
            return []
        status = search.last()
        if (status is None or is_terminal(status.state)) and search.open_ids():
            # As with a task of our own whose agent is away: it is run elsewhere only when that takes too long.
            if job.unreachable_until_ms is None:
                job.unreachable_until_ms = now_ms + self._unreachable_timeout_ms
                self._unreachable[job.attempt_id] = job
            return []
        if status is not None:
            return self._take_up(job, search, status, now_ms)
        self._finder.stop(job_id)
        self._forget_unreachable(job)
        if job.kill_wanted:
            return [self._end_killed(job)]
        self._wait(job)
        return []

    def _take_up(self, job: _Job, search: Search, status: TaskStatus, now_ms: int) -> list[Action]:
        """Go on with the attempt of an earlier session of which this was said."""
        assert self._finder is not None, "nothing is sought"
        self._finder.stop(job.job_id)
        self._forget_unreachable(job)
        del self._by_attempt[job.attempt_id]
        job.attempt_id = status.task_id
        self._by_attempt[job.attempt_id] = job
        job.attempt = job.launches = search.numbers[status.task_id]
        before = search.before(job.attempt)
        failures = min(sum(each.state is TaskState.FAILED for each in before), job.failures_left)
        job.failures_left -= failures
        job.retries_left = max(0, job.retries_left - (job.attempt - 1 - failures))
        job.phase = Phase.LIVE
        for each in before:
            self._give_up(each.task_id)
        replaced = tuple(each.task_id for each in before if not is_terminal(each.state))
        moved = JobMoved(job.job_id, is_running=True, found=Launch(job.attempt_id, job.task))
        actions = [moved, *([EndTasks(replaced)] if replaced else []), *self._on_status(status, now_ms)]
        # When it began was told to the earlier session; what the master repeats has the time of the repeat.
        job.started_ms = 0
        is_over = job.job_id not in self._jobs or job.phase is not Phase.LIVE
        return actions if is_over or not job.kill_wanted else [*actions, EndTasks((job.attempt_id,))]

    def _on_status(self, status: TaskStatus, now_ms: int) -> list[Action]:
        if self._finder is not None and status.task_id not in self._given_up and self._finder.note(status):
            return []
        job = self._by_attempt.get(status.task_id)
        if job is None and status.task_id in self._given_up and not is_terminal(status.state):
            # Its agent was away over a master's restart, and what it still runs has been replaced.
            return [EndTasks((status.task_id,))] if status.state is not TaskState.KILLING else []
        if job is None and self._finder is not None:
            self._finder.keep(status)
        if job is None or job.phase is Phase.SOUGHT:
            return []
        if job.phase is Phase.WAITING:
            # An agent knows the attempt, so it was launched before this session, and may not be launched again.
            return [*self._take_from_book(job), *self._on_status(status, now_ms)] if status.sequence else []
        came_back = job.unreachable_until_ms is not None
        job.state = status.state
        job.agent_id = status.agent_id or job.agent_id
        if is_terminal(status.state):
            return self._retry_or_end(job, _ending(status))
        if status.state is TaskState.UNREACHABLE:
            if not came_back:
                job.unreachable_until_ms = now_ms + self._unreachable_timeout_ms
                self._unreachable[job.attempt_id] = job
            return []
        self._forget_unreachable(job)
        if status.state is TaskState.RUNNING and not job.started_ms:
            job.started_ms = status.timestamp_ms
        is_asked_again = job.kill_wanted and came_back and status.state is not TaskState.KILLING
        return [EndTasks((job.attempt_id,))] if is_asked_again else []

    def _on_demand_answered(self, event: DemandAnswered, now_ms: int) -> list[Action]:
        refusals = self._refusals
        infeasible = {item.class_id: item for item in event.result.infeasible}
        if event.result.code is CallCode.OK:
            refusals.proven.update(dict.fromkeys(self._book.class_ids()))
            refusals.since_ms.clear()
            return []
        self._demand_changed = True
        failure = call_failure(event.result)
        assert failure is not None, f"a refusal without an error: {event.result}"
        if not infeasible:
            waiting = [job for class_id in self._book.class_ids() for job in self._stop_waiting(class_id)]
            return [self._end(job, failure) for job in waiting]
        actions: list[Action] = []
        for class_id, item in infeasible.items():
            since_ms = refusals.since_ms.setdefault(class_id, now_ms)
            if class_id in refusals.proven and now_ms - since_ms < INFEASIBLE_PATIENCE_MS:
                self._book.suspend(class_id)
            else:
                actions.extend(self._end_infeasible(class_id, infeasible_error(item)))
                del refusals.since_ms[class_id]
        return actions

    def _repeat_kills(self) -> list[Action]:
        again = tuple(
            job.attempt_id for job in self._jobs.values() if job.kill_wanted and job.phase is Phase.LIVE
        )
        return [EndTasks(again)] if again else []

    # --- one job -------------------------------------------------------------------------------------------------

    def _wait(self, job: _Job, *, again: bool = False) -> None:
        self._forget_unreachable(job)
        job.phase = Phase.WAITING
        job.class_id = self._book.add(job.attempt_id, job.task, again=again)
        self._demand_changed = True

    def _take_from_book(self, job: _Job) -> list[Action]:
        self._book.remove(job.attempt_id, job.class_id)
        self._demand_changed = True
        job.phase = Phase.LIVE
        job.launches += 1
        return [JobMoved(job.job_id, is_running=True, found=Launch(job.attempt_id, job.task))]

    def _retry_or_end(self, job: _Job, status: _Ending) -> list[Action]:
        self._forget_unreachable(job)
        if self._finder is not None:
            self._finder.stop(job.job_id)
        is_loss = status.state in RETRIABLE or status.state is TaskState.UNREACHABLE
        is_failure = status.state is TaskState.FAILED
        if is_loss:
            self._give_up(job.attempt_id)
        left = job.retries_left if is_loss else job.failures_left if is_failure else 0
        if job.kill_wanted or not left:
            return [self._end_with(job, status)]
        if is_loss:
            job.retries_left -= 1
        else:
            job.failures_left -= 1
        given_up = self._result_of(job, status)
        del self._by_attempt[job.attempt_id]
        job.attempt += 1
        job.attempt_id = attempt_name(job.job_id, job.attempt)
        job.started_ms = 0
        job.state = TaskState.STAGING
        self._by_attempt[job.attempt_id] = job
        self._wait(job, again=True)
        return [JobMoved(job.job_id, is_running=False, given_up=given_up)]

    def _give_up(self, attempt_id: str) -> None:
        self._given_up[attempt_id] = None
        if len(self._given_up) > GIVEN_UP_KEPT:
            del self._given_up[next(iter(self._given_up))]

    def _end_killed(self, job: _Job) -> JobEnded:
        view = _Ending(
            state=TaskState.KILLED, reason=Reason.KILLED_BY_FRAMEWORK, message="killed before it was launched"
        )
        return self._end_with(job, view)

    def _end_with(self, job: _Job, status: _Ending) -> JobEnded:
        return self._end(job, self._result_of(job, status))

    def _result_of(self, job: _Job, status: _Ending) -> TaskResult:
        return TaskResult(
            task=job.task,
            task_id=job.attempt_id,
            state=status.state,
            exit_code=status.exit_code,
            signal=status.signal,
            reason=status.reason,
            message=status.message,
            agent_id=job.agent_id,
            usage=status.usage,
            attempts=job.launches,
            submitted_ms=job.submitted_ms,
            started_ms=job.started_ms,
            finished_ms=status.timestamp_ms,
            refusal=status.refusal,
        )

    def _end(self, job: _Job, outcome: TaskResult | FairleadError) -> JobEnded:
        self._forget_unreachable(job)
        if self._finder is not None:
            self._finder.stop(job.job_id)
        del self._jobs[job.job_id]
        del self._by_attempt[job.attempt_id]
        return JobEnded(job.job_id, outcome)

    def _end_infeasible(self, class_id: str, refusal: Infeasible) -> list[Action]:
        """Tasks that fit nowhere end like others that cannot run; what the rest of the demand asks for stands."""
        ending = _Ending(
            state=TaskState.ERROR, reason=Reason.INFEASIBLE, message=refusal.detail, refusal=refusal
        )
        return [self._end_with(job, ending) for job in self._stop_waiting(class_id)]

    def _stop_waiting(self, class_id: str) -> list[_Job]:
        attempt_ids = self._book.waiting_ids(class_id)
        for attempt_id in attempt_ids:
            self._book.remove(attempt_id, class_id)
        return [self._by_attempt[attempt_id] for attempt_id in attempt_ids]

    def _forget_unreachable(self, job: _Job) -> None:
        job.unreachable_until_ms = None
        self._unreachable.pop(job.attempt_id, None)
