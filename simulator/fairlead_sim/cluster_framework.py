"""A framework of a simulated cluster: a model of the program, complete enough to bring its work through every fault.

It keeps a table of jobs, written down as a careful framework would keep it: a crash loses its session and not its
knowledge. Each job is run by tasks with ids of their own, one at a time, until one of them ends by itself. It sets demand, takes
offers, acknowledges statuses, reconciles whatever is in doubt when it reconnects, and replaces what is lost.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, unique

from fairlead_master.core import actions, events
from fairlead_proto.codes import CallCode, ErrorCode
from fairlead_proto.ids import ClassId, FrameworkId, OfferId, Role, TaskId
from fairlead_proto.resources import Vector
from fairlead_proto.task_state import RETRIABLE, Reason, TaskState, is_terminal
from fairlead_proto.tasks import DemandClass, TaskSpec, TaskStatus
from fairlead_sim.engine import Alarm, Engine
from fairlead_sim.network import Connection, End, Message, Network

_RETRIED_REASONS = (
    Reason.KILLED_BY_OPERATOR,
    Reason.FRAMEWORK_REMOVED,
    Reason.AGENT_REMOVED,
)
"""Ends that others brought about, and that say nothing of the job."""


@unique
class Phase(Enum):
    """Where a job is, as its framework sees it."""

    WAITING = "WAITING"
    ASKED = "ASKED"
    """Its task is in an accept that is not answered."""
    LIVE = "LIVE"
    DONE = "DONE"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the master's shell sends to a framework."""

    epoch: int
    action: actions.ToFramework


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """A piece of work and the task that carries it now."""

    name: str
    unit: Vector
    command: tuple[str, ...]
    phase: Phase = Phase.WAITING
    attempt: int = 0
    offer_id: OfferId | None = None
    """The one its task was last to be launched with."""
    unreachable_since_ms: int | None = None
    end: TaskState | None = None
    """Of the job; set once."""

    @property
    def task_id(self) -> TaskId:
        """The task of the current attempt."""
        return TaskId(f"{self.name}.{self.attempt}")

    @property
    def class_id(self) -> ClassId:
        """Jobs of one need are of one class."""
        return ClassId("-".join(map(str, self.unit)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkOptions:
    """How a framework behaves, in milliseconds and fractions of offers."""

    think_max_ms: int = 0
    """From an offer to the answer; longer than a lease, some answers come too late."""
    decline_fraction: float = 0.0
    ignore_fraction: float = 0.0
    decline_ttl_ms: int = 500
    resend_accept_fraction: float = 0.0
    """Of accepts whose answer was lost: sent again instead of asked about, if the master is still the same."""
    failover_timeout_ms: int = 0
    """0: the master's default."""
    unreachable_patience_ms: int = 15_000
    """Then the task is given up and replaced."""
    reconcile_interval_ms: int = 1_000
    """Between questions about tasks that nobody could judge."""


class SimulatedFramework:
    """A framework's program, which can crash and come back."""

    def __init__(
        self,
        name: str,
        engine: Engine,
        network: Network,
        options: FrameworkOptions,
        *,
        role: Role,
        jobs: Iterable[Job],
        tell: Callable[[str, Delivery], None],
    ) -> None:
        self.name = name
        self.role = role
        self.jobs = {job.name: job for job in jobs}
        self.framework_id: FrameworkId | None = None
        self.former_ids: list[FrameworkId] = []
        """Under which it was given up by the master."""
        self.is_up = False
        self.ends: dict[tuple[FrameworkId, TaskId], TaskStatus] = {}
        """The first end its agent reported of each task."""
        self._engine = engine
        self._network = network
        self._options = options
        self._tell = tell
        self._by_task: dict[TaskId, Job] = {}
        self._epoch = 0
        self._life = 0
        self._connection: Connection | None = None
        self._is_welcome = False
        self._request = 0
        self._demanded: dict[ClassId, int] | None = None
        self._accepts: dict[OfferId, tuple[TaskSpec, ...]] = {}
        """Not answered yet."""
        self._doubts: dict[TaskId, None] = {}
        """To be reconciled."""
        self._alarm = Alarm(engine, self._look_after)

    @property
    def is_done(self) -> bool:
        """Whether every job has ended."""
        return all(job.phase is Phase.DONE for job in self.jobs.values())

    def start(self) -> None:
        """Start the program."""
        assert not self.is_up, f"framework {self.name} is running"
        self._life += 1
        self.is_up = True
        self._later(self._network.reconnect_ms(), self._dial)

    def crash(self) -> None:
        """Kill the program."""
        self._life += 1
        self.is_up = False
        self._alarm.move(None)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.break_off()
        self._forget_session()

    def add(self, job: Job) -> None:
        """One more job."""
        self.jobs[job.name] = job
        self._say_demand()

    def _later(self, delay_ms: int, happen: Callable[[], None]) -> None:
        life = self._life
        self._engine.after(delay_ms, lambda: happen() if life == self._life else None)

    def _forget_session(self) -> None:
        self._is_welcome = False
        self._demanded = None

    def _dial(self) -> None:
        if self._connection is not None:
            return
        self._connection = self._network.dial(self.name, End(self._received, self._lost))
        if self._connection is None:
            self._later(self._network.reconnect_ms(), self._dial)
            return
        self._connection.send_up(
            events.FrameworkConnected(
                session=self._connection.number,
                framework_id=self.framework_id,
                name=self.name,
                role=self.role,
                failover_timeout_ms=self._options.failover_timeout_ms,
                last_epoch=self._epoch,
            ),
            is_first=True,
        )

    def _lost(self, connection: Connection) -> None:
        if connection is self._connection:
            self._connection = None
            self._forget_session()
            self._later(self._network.reconnect_ms(), self._dial)

    def _received(self, connection: Connection, message: Message) -> None:
        assert isinstance(message, Delivery), f"framework {self.name}: expected a delivery, got {message}"
        if connection is not self._connection:
            return
        self._tell(self.name, message)
        action = message.action
        match action:
            case actions.WelcomeFramework():
                self._on_welcome(message.epoch, action)
            case actions.SendOffers():
                for offer in action.offers:
                    self._consider(offer)
            case actions.AnswerAccept():
                self._on_answer(action)
            case actions.ForwardStatuses():
                self._on_statuses(action.statuses)
            case actions.FinishReconciliation():
                self._on_reconciled()
            case actions.EndFrameworkSession():
                self._on_end(action)
            case actions.AnswerCall():
                if action.code is CallCode.INFEASIBLE:
                    self._later(self._options.reconcile_interval_ms, self._ask_anew)
            case actions.RescindOffers() | actions.AnnounceAgentGone():
                pass
        self._say_demand()

    def _on_welcome(self, epoch: int, welcome: actions.WelcomeFramework) -> None:
        is_same_master = epoch == self._epoch
        self._epoch = epoch
        self.framework_id = welcome.framework_id
        self._is_welcome = True
        self._doubts = dict.fromkeys(
            job.task_id for job in self.jobs.values() if job.phase in (Phase.ASKED, Phase.LIVE)
        )
        accepts, self._accepts = self._accepts, {}
        for offer_id, specs in accepts.items():
            if is_same_master and self._network.happens(self._options.resend_accept_fraction):
                for spec in specs:
                    self._doubts.pop(spec.task_id, None)
                self._say_accept(offer_id, specs)
        self._reconcile()
        self._look_after()

    def _on_end(self, end: actions.EndFrameworkSession) -> None:
        if end.code is not ErrorCode.UNKNOWN_FRAMEWORK:
            return
        if self.framework_id is None:
            return  # A repeat.
        self.former_ids.append(self.framework_id)
        self.framework_id = None
        self._accepts = {}
        # Task ids are unique within a framework, and this will be another one.
        for job in self.jobs.values():
            if job.phase is not Phase.DONE:
                self._again(job)

    def _consider(self, offer: actions.OfferTerms) -> None:
        if self._network.happens(self._options.ignore_fraction):
            return
        think_ms = self._network.draw(0, self._options.think_max_ms)
        if think_ms:
            connection = self._connection
            self._later(think_ms, lambda: self._answer(offer) if connection is self._connection else None)
        else:
            self._answer(offer)

    def _answer(self, offer: actions.OfferTerms) -> None:
        waiting = [
            job for job in self.jobs.values() if job.phase is Phase.WAITING and job.class_id == offer.class_id
        ][: offer.units]
        if not waiting or self._network.happens(self._options.decline_fraction):
            self._say_decline(offer)
            return
        for job in waiting:
            job.phase = Phase.ASKED
            job.offer_id = offer.offer_id
            self._by_task[job.task_id] = job
        specs = tuple(
            TaskSpec(task_id=job.task_id, resources=job.unit, command=job.command, name=job.name)
            for job in waiting
        )
        if self._demanded is not None:
            self._demanded[offer.class_id] = self._demanded.get(offer.class_id, 0) - len(specs)
        self._say_accept(offer.offer_id, specs)
        self._say_demand()

    def _on_answer(self, answer: actions.AnswerAccept) -> None:
        self._accepts.pop(answer.offer_id, None)
        for entry in answer.answers:
            job = self._by_task.get(TaskId(entry.task_id))
            if job is None or job.phase is not Phase.ASKED or job.task_id != entry.task_id:
                continue
            if job.offer_id != answer.offer_id:
                continue  # A late copy of the answer to an earlier accept.
            if entry.rejection is None:
                job.phase = Phase.LIVE
            else:
                # A rejected task never existed, so its id is as good as new.
                job.phase = Phase.WAITING
                self._demanded = None

    def _on_statuses(self, statuses: tuple[TaskStatus, ...]) -> None:
        acknowledged = tuple(
            (status.task_id, status.sequence, status.agent_id) for status in statuses if status.sequence
        )
        if acknowledged:
            self._send(events.StatusesAcknowledged(session=self._session, items=acknowledged))
        for status in statuses:
            self._note_end(status)
            job = self._by_task.get(status.task_id)
            if job is None or job.task_id != status.task_id or job.phase in (Phase.WAITING, Phase.DONE):
                if not is_terminal(status.state) and status.state is not TaskState.UNREACHABLE:
                    self._say_kill(status.task_id)
                continue
            self._doubts.pop(status.task_id, None)
            self._follow(job, status)

    def _note_end(self, status: TaskStatus) -> None:
        if is_terminal(status.state) and status.sequence:
            first = self.ends.setdefault((status.framework_id, status.task_id), status)
            assert (first.state, first.sequence) == (status.state, status.sequence), (
                f"{status.key} ended twice: {first.state.value}, {status.state.value}"
            )

    def _follow(self, job: Job, status: TaskStatus) -> None:
        job.unreachable_since_ms = None
        if status.state is TaskState.UNREACHABLE:
            job.phase = Phase.LIVE
            job.unreachable_since_ms = self._engine.now_ms
            self._look_after()
        elif not is_terminal(status.state):
            job.phase = Phase.LIVE
        elif status.state in RETRIABLE or status.reason in _RETRIED_REASONS:
            self._again(job)
        else:
            assert job.end is None, f"job {job.name} ended twice: {job.end}, {status.state}"
            job.phase = Phase.DONE
            job.end = status.state

    def _again(self, job: Job) -> None:
        self._doubts.pop(job.task_id, None)
        job.phase = Phase.WAITING
        job.attempt += 1
        job.unreachable_since_ms = None
        self._demanded = None

    def _on_reconciled(self) -> None:
        if self._doubts:
            self._later(self._options.reconcile_interval_ms, self._reconcile)

    def _reconcile(self) -> None:
        if self._is_welcome and self._doubts:
            self._request += 1
            self._send(
                events.ReconcileAsked(
                    session=self._session, request_id=self._request, task_ids=tuple(self._doubts)
                )
            )

    def _ask_anew(self) -> None:
        self._demanded = None
        self._say_demand()

    def _look_after(self) -> None:
        """Give up tasks that have been unreachable too long."""
        if not self._is_welcome:
            return
        now_ms, patience_ms = self._engine.now_ms, self._options.unreachable_patience_ms
        for job in self.jobs.values():
            since_ms = job.unreachable_since_ms
            if since_ms is not None and since_ms + patience_ms <= now_ms:
                self._say_kill(job.task_id)
                self._again(job)
        waiting = [
            job.unreachable_since_ms for job in self.jobs.values() if job.unreachable_since_ms is not None
        ]
        self._alarm.move(min(waiting) + patience_ms if waiting else None)
        self._say_demand()

    @property
    def _session(self) -> int:
        assert self._connection is not None, f"framework {self.name} has no session"
        return self._connection.number

    def _send(self, event: events.Event) -> None:
        assert self._connection is not None, f"framework {self.name} has no session"
        self._connection.send_up(event)

    def _say_accept(self, offer_id: OfferId, specs: tuple[TaskSpec, ...]) -> None:
        self._request += 1
        self._accepts[offer_id] = specs
        self._send(
            events.OfferAccepted(
                session=self._session, request_id=self._request, offer_id=offer_id, tasks=specs
            )
        )

    def _say_decline(self, offer: actions.OfferTerms) -> None:
        self._request += 1
        scope = self._engine.random.choice(list(events.DeclineScope))
        self._send(
            events.OffersDeclined(
                session=self._session,
                request_id=self._request,
                offer_ids=(offer.offer_id,),
                reason="no use for it now",
                scope=scope,
                ttl_ms=self._options.decline_ttl_ms,
            )
        )

    def _say_kill(self, task_id: TaskId) -> None:
        self._request += 1
        self._send(
            events.KillAsked(
                session=self._session, request_id=self._request, task_ids=(task_id,), grace_period_ms=0
            )
        )

    def _say_demand(self) -> None:
        if not self._is_welcome:
            return
        wanted: dict[ClassId, tuple[Vector, int]] = {}
        for job in self.jobs.values():
            if job.phase is Phase.WAITING:
                unit, units = wanted.get(job.class_id, (job.unit, 0))
                wanted[job.class_id] = (unit, units + 1)
        counts = {class_id: units for class_id, (_, units) in wanted.items()}
        if self._demanded is not None and counts == {k: n for k, n in self._demanded.items() if n}:
            return
        self._demanded = counts
        self._request += 1
        classes = tuple(
            DemandClass(class_id=class_id, unit=unit, units=units)
            for class_id, (unit, units) in wanted.items()
        )
        self._send(
            events.DemandSet(
                session=self._session, request_id=self._request, version=self._request, classes=classes
            )
        )
