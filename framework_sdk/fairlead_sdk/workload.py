"""The tasks of the simple path, from submission to result: what to do with offers, reports and losses.

Plain state: session events and wishes go in, actions come out; the framework's shell carries them out. A *job* is one
submitted task until its result; an *attempt* is one launch of it, under an id of its own. Of one job at most one
attempt waits, is being launched or runs; only an attempt on an agent that stays unreachable is replaced while nobody
knows whether it still runs, and it is killed then.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from fairlead_proto.codes import CallCode, Rejection
from fairlead_proto.framework_events import AnswerAccept, AnswerCall, FinishReconciliation, Heartbeat
from fairlead_proto.task_state import RETRIABLE, Reason, TaskState, is_terminal
from fairlead_proto.tasks import ArrayMember, TaskStatus
from fairlead_sdk.arrays import Array, Supply
from fairlead_sdk.calls import Demand
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
from fairlead_sdk.jobs import AwayJobs, Ending, GivenUp, Job, Phase, reported_ending
from fairlead_sdk.refusals import Refusals, call_failure, infeasible_error
from fairlead_sdk.search import Finder, Search
from fairlead_sdk.task import Task, TaskResult
from fairlead_sdk.workload_actions import (
    Action,
    ArrayEnded,
    EndTasks,
    GiveBack,
    JobEnded,
    JobMoved,
    TakeOffer,
)

MISFITS_MAX: Final = 10
"""Times a task may be found not to fit an offer made for it. Once is a race; ten times is a disagreement about amounts."""

MEMBERS_AHEAD: Final = 4_000
"""Members of arrays made before they can be launched. Half of it are twice what one offer can take."""

KILLED_AT_ONCE: Final = 4_000
"""Members of a killed array ended unmade in one piece: some 50 ms, where a million would hold everything up for 20 s."""

INFEASIBLE_PATIENCE_MS: Final = 60_000
"""How long a demand that could be met before may be refused as infeasible: its only agent may be restarting."""


class Workload:
    """All jobs of one framework that are not over."""

    def __init__(self, *, unreachable_timeout_ms: int, is_resumed: bool = False) -> None:
        """Begin with no jobs; ``is_resumed`` if an earlier session may have left tasks behind."""
        self._finder = Finder() if is_resumed else None
        self._book = DemandBook()
        self._jobs: dict[str, Job] = {}
        self._by_attempt: dict[str, Job] = {}
        self._arrays: dict[str, Supply] = {}
        self._away = AwayJobs(unreachable_timeout_ms)
        self._given_up = GivenUp()
        self._refusals = Refusals()
        self._demand_changed = False

    # --- wishes --------------------------------------------------------------------------------------------------

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._jobs or job_id in self._arrays

    def __len__(self) -> int:
        return len(self._jobs)

    def submit(self, job_id: str, task: Task, *, unix_ms: int) -> None:
        """Take a job on.

        Raises:
            ValueError: a job with this id is not over yet.
        """
        self._begin(self._make_job(job_id, task, unix_ms=unix_ms))
        self._demand_changed = True

    def submit_array(self, array_id: str, array: Array, *, unix_ms: int) -> list[Action]:
        """Take an array's members on, each when its turn comes.

        Raises:
            ValueError: an array or a job with this id is not over yet.
        """
        if array_id in self:
            raise _id_in_use(array_id)
        self._arrays[array_id] = Supply(array_id, array, unix_ms=unix_ms)
        return self._make_members()

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
        if to_end:
            actions.append(EndTasks(tuple(to_end)))
        return [*actions, *self._make_members()]

    def kill_array(self, array_id: str, index: int | None = None) -> list[Action]:
        """End the members of an array, or one of them, be they made or not; those that are over are left out."""
        if (supply := self._arrays.get(array_id)) is None:
            return []
        if index is None:
            supply.is_killed = True
            return self.kill(list(supply.job_ids))
        if (job_id := supply.job_id_of(index)) not in supply.job_ids:
            supply.doom(index)
        return self.kill([job_id])

    def fail_all(self, error: FairleadError) -> list[Action]:
        """End every job without a result: the session is over."""
        self._book = DemandBook()
        ended = [self._end(job, error) for job in list(self._jobs.values())]
        over = [ArrayEnded(array_id, error) for array_id in self._arrays]
        self._arrays.clear()
        return [*ended, *over]

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
        actions = self._step(event, now_ms)
        return [*actions, *self._make_members()] if self._arrays else actions

    def _step(self, event: Event, now_ms: int) -> list[Action]:
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
        if self._finder is None and any(supply.is_dying for supply in self._arrays.values()):
            return 0
        return min((due_ms for due_ms, _ in self._away.deadlines()), default=None)

    def expire(self, now_ms: int) -> list[Action]:
        """Replace the attempts whose agents stayed unreachable too long."""
        due = [job for due_ms, job in self._away.deadlines() if due_ms <= now_ms]
        actions: list[Action] = []
        for job in due:
            found = self._finder.search_of(job.job_id) if self._finder and job.phase is Phase.SOUGHT else None
            if found is not None and (ended := found.last()) is not None:
                # A later attempt than those that may be on the agents that are away.
                actions.extend(self._take_up(job, found, ended, now_ms))
                continue
            actions.append(EndTasks((job.attempt_id,)))
            status = Ending(state=TaskState.UNREACHABLE, message="its agent stayed unreachable")
            actions.extend(self._retry_or_end(job, status))
        return [*actions, *self._make_members()]

    def _on_offers(self, offers: Iterable[Offer]) -> list[Action]:
        actions: list[Action] = []
        unneeded: list[str] = []
        for offer in offers:
            if self._arrays:
                actions.extend(self._make_members(offer.units))
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
            moved = JobMoved(job.job_id, job.array_id, launch=job.launch)
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
            view = Ending(state=TaskState.ERROR, reason=Reason.INVALID_TASK, message=item.detail)
            return [self._end_with(job, view)]
        self._wait(job, again=True)
        return []

    def _seek(self, job: Job, finder: Finder) -> None:
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
            self._away.add(job, now_ms)
            return []
        if status is not None:
            return self._take_up(job, search, status, now_ms)
        self._finder.stop(job_id)
        self._away.forget(job)
        if job.kill_wanted:
            return [self._end_killed(job)]
        self._wait(job)
        return []

    def _take_up(self, job: Job, search: Search, status: TaskStatus, now_ms: int) -> list[Action]:
        """Go on with the attempt of an earlier session of which this was said."""
        assert self._finder is not None, "nothing is sought"
        self._finder.stop(job.job_id)
        self._away.forget(job)
        del self._by_attempt[job.attempt_id]
        number = search.numbers[status.task_id]
        before = search.before(number)
        job.take_up(status.task_id, number, before)
        self._by_attempt[job.attempt_id] = job
        for each in before:
            self._given_up.add(each.task_id)
        replaced = tuple(each.task_id for each in before if not is_terminal(each.state))
        moved = JobMoved(job.job_id, job.array_id, launch=job.launch)
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
            return self._retry_or_end(job, reported_ending(status))
        if status.state is TaskState.UNREACHABLE:
            self._away.add(job, now_ms)
            return []
        self._away.forget(job)
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

    # --- arrays --------------------------------------------------------------------------------------------------

    def _make_members(self, least: int = 0) -> list[Action]:
        """Have members of each array wait, at least so many of a class if there are, and say which arrays are over."""
        actions: list[Action] = []
        for supply in list(self._arrays.values()):
            waiting = self._book.waiting_count(supply.class_id)
            waiting += 0 if self._finder is None else self._finder.sought_count
            if not supply.is_spent and (supply.is_killed or waiting < max(MEMBERS_AHEAD // 2, least)):
                actions.extend(self._make_some(supply, max(MEMBERS_AHEAD, least) - waiting))
            if supply.is_over:
                del self._arrays[supply.array_id]
                actions.append(ArrayEnded(supply.array_id, supply.error))
        return actions

    def _make_some(self, supply: Supply, room: int) -> list[Action]:
        """Make members of one array, so many of them to wait or to be sought, and promise the rest."""
        actions: list[Action] = []
        begun, room = 0, supply.allowed(room)
        while begun < room and len(actions) < KILLED_AT_ONCE and (member := supply.next()) is not None:
            try:
                job = self._make_job(member.task_id, supply.task, member=member, unix_ms=supply.unix_ms)
            except ValueError as error:
                supply.stop(error)
                break
            supply.job_ids[job.job_id] = None
            job.kill_wanted = supply.is_doomed(member)
            if job.kill_wanted and self._finder is None:
                actions.append(self._end_killed(job))
                continue
            self._begin(job)
            supply.class_id = job.class_id
            begun += 1
        has_changed = begun > 0 or supply.is_spent or supply.is_killed
        if (
            has_changed and self._finder is None
        ):  # Of one that is sought nobody knows whether it has to be launched.
            promised = supply.promised
            if begun + promised != self._book.promise(supply.array_id, supply.task, promised):
                self._demand_changed = True
        return actions

    # --- one job -------------------------------------------------------------------------------------------------

    def _make_job(self, job_id: str, task: Task, *, member: ArrayMember | None = None, unix_ms: int) -> Job:
        if job_id in self:
            raise _id_in_use(job_id)
        job = Job(
            job_id=job_id,
            task=task,
            member=member,
            submitted_ms=unix_ms,
            attempt_id=job_id,
            retries_left=task.retries,
            failures_left=task.retry_failed,
        )
        self._jobs[job_id] = self._by_attempt[job_id] = job
        return job

    def _begin(self, job: Job) -> None:
        """Have a new job wait, or sought; the demand is announced by whoever knows whether it changed."""
        if self._finder is None:
            job.class_id = self._book.add(job.attempt_id, job.task, member=job.member)
        else:
            self._seek(job, self._finder)

    def _wait(self, job: Job, *, again: bool = False) -> None:
        self._away.forget(job)
        job.phase = Phase.WAITING
        job.class_id = self._book.add(job.attempt_id, job.task, member=job.member, again=again)
        self._demand_changed = True

    def _take_from_book(self, job: Job) -> list[Action]:
        self._book.remove(job.attempt_id, job.class_id)
        self._demand_changed = True
        job.phase = Phase.LIVE
        job.launches += 1
        return [JobMoved(job.job_id, job.array_id, launch=job.launch)]

    def _retry_or_end(self, job: Job, status: Ending) -> list[Action]:
        self._away.forget(job)
        if self._finder is not None:
            self._finder.stop(job.job_id)
        is_loss = status.state in RETRIABLE or status.state is TaskState.UNREACHABLE
        is_failure = status.state is TaskState.FAILED
        if is_loss:
            self._given_up.add(job.attempt_id)
        left = job.retries_left if is_loss else job.failures_left if is_failure else 0
        if job.kill_wanted or not left:
            return [self._end_with(job, status)]
        given_up = job.result(status)
        del self._by_attempt[job.attempt_id]
        job.try_again(is_loss=is_loss)
        self._by_attempt[job.attempt_id] = job
        self._wait(job, again=True)
        return [JobMoved(job.job_id, job.array_id, given_up=given_up)]

    def _end_killed(self, job: Job) -> JobEnded:
        view = Ending(
            state=TaskState.KILLED, reason=Reason.KILLED_BY_FRAMEWORK, message="killed before it was launched"
        )
        return self._end_with(job, view)

    def _end_with(self, job: Job, status: Ending) -> JobEnded:
        return self._end(job, job.result(status))

    def _end(self, job: Job, outcome: TaskResult | FairleadError) -> JobEnded:
        self._away.forget(job)
        if self._finder is not None:
            self._finder.stop(job.job_id)
        del self._jobs[job.job_id]
        del self._by_attempt[job.attempt_id]
        if (supply := self._arrays.get(job.array_id)) is not None:
            del supply.job_ids[job.job_id]
            if isinstance(outcome, FairleadError):
                supply.stop(outcome)
                self._demand_changed |= self._book.promise(job.array_id, job.task, 0) > 0
        return JobEnded(job.job_id, outcome, job.array_id)

    def _end_infeasible(self, class_id: str, refusal: Infeasible) -> list[Action]:
        """Tasks that fit nowhere end like others that cannot run; what the rest of the demand asks for stands."""
        ending = Ending(
            state=TaskState.ERROR, reason=Reason.INFEASIBLE, message=refusal.detail, refusal=refusal
        )
        return [self._end_with(job, ending) for job in self._stop_waiting(class_id)]

    def _stop_waiting(self, class_id: str) -> list[Job]:
        attempt_ids = self._book.waiting_ids(class_id)
        for attempt_id in attempt_ids:
            self._book.remove(attempt_id, class_id)
        return [self._by_attempt[attempt_id] for attempt_id in attempt_ids]


def _id_in_use(job_id: str) -> ValueError:
    return ValueError(f"task_id: expected one that is not in use, got {job_id!r}")
