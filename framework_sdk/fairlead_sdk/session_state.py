"""What one session knows and owes, as plain state: no stream, no clock, no tasks of asyncio.

Calls go in through methods and come out through ``take_outgoing`` when the shell can write; what the master said goes
in through ``receive`` and comes out as events for the application. Three promises are kept here:

- An accept is answered exactly once for each of its tasks. If the stream breaks first, the tasks are *in doubt*: not
  wanted again, not yet running, until reconciliation says which of the two it is.
- A report about a task is passed on once, by its sequence number, and acknowledged whenever it is repeated.
- Demand, kills and a teardown not yet answered are asked again over the next stream; declines are not, because offers
  die with the stream they came by. A demand that was answered is the application's to say again, as it is then.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum, unique
from typing import Final

from fairlead_proto.codes import Rejection
from fairlead_proto.framework_calls import (
    Acknowledged,
    FrameworkConnected,
    KillAsked,
    OffersDeclined,
    ReconcileAsked,
    StatusesAcknowledged,
    TeardownAsked,
)
from fairlead_proto.framework_events import (
    AnnounceAgentGone,
    AnswerAccept,
    AnswerCall,
    EndFrameworkSession,
    FinishReconciliation,
    Heartbeat,
    RescindOffers,
)
from fairlead_proto.ids import FrameworkId, OfferId, TaskId
from fairlead_proto.peers import NONE, Capabilities
from fairlead_proto.task_state import Reason, is_terminal
from fairlead_proto.tasks import TaskStatus
from fairlead_sdk.calls import (
    Accept,
    Call,
    Demand,
    Launch,
    NumberedCall,
    Scope,
    SetDemand,
)
from fairlead_sdk.doubts import Doubts
from fairlead_sdk.errors import LinkBroken
from fairlead_sdk.events import (
    AcceptItem,
    Connected,
    DemandAnswered,
    Disconnected,
    Event,
    Offer,
    OffersReceived,
    Received,
    SessionOver,
    StatusReceived,
    Welcome,
)
from fairlead_sdk.refusals import session_failure
from fairlead_sdk.sequences import Sequences

RECONCILE_TASKS_MAX: Final = 5_000
"""Task ids in one call to reconcile, to keep the message far below what gRPC takes."""


@unique
class Phase(Enum):
    """Where the session is."""

    AWAY = "AWAY"
    GREETING = "GREETING"
    OPEN = "OPEN"


class SessionState:
    """The state of one framework's session, over as many streams as it takes."""

    def __init__(self, hello: FrameworkConnected) -> None:
        self.phase = Phase.AWAY
        self.welcome: Welcome | None = None
        self._hello = hello
        self._epoch = hello.last_epoch
        self._request_id = 0
        self._version = 0
        self._demand: tuple[Demand, ...] | None = None
        self._demand_ids: dict[int, None] = {}
        self._queue: dict[int, Call] = {}
        self._queued_demand_id: int | None = None
        self._acks: dict[str, Acknowledged] = {}
        self._offers: dict[str, Offer] = {}
        self._accepts: dict[int, Accept] = {}
        self._unsent_accepts: dict[int, Accept] = {}
        self._kills: dict[int, KillAsked] = {}
        self._reconciles: dict[int, ReconcileAsked] = {}
        self._own_reconciles: dict[int, tuple[str, ...]] = {}
        self._unheard: dict[str, None] = {}
        self._teardown_id = 0
        self._doubts = Doubts()
        self._live: dict[str, str] = {}
        self._sequences = Sequences()

    # --- what the application asks -------------------------------------------------------------------------------

    @property
    def framework_id(self) -> str:
        """The id the master gave, or the one asked for; empty before either."""
        return self._hello.framework_id or ""

    @property
    def peer(self) -> Capabilities:
        """What the master of this stream can do; nothing before its Welcome."""
        return NONE if self.welcome is None or self.phase is not Phase.OPEN else self.welcome.capabilities

    @property
    def in_doubt(self) -> Mapping[str, str]:
        """Task id to agent id of launches whose fate a broken stream left open."""
        return self._doubts.agent_by_task

    def is_outstanding(self, offer_id: str) -> bool:
        """Whether the offer can still be accepted, as far as is known here."""
        return offer_id in self._offers

    def set_demand(self, classes: tuple[Demand, ...], *, lift_declines: bool = False) -> int:
        """Replace the demand and return the request id. Of several between two writes only the last is sent.

        It lifts declines if any of them does.

        Each is answered by a ``AnswerCall``, over the next stream if need be; one that was replaced before it was sent
        gets the answer of its successor.
        """
        self._demand = classes
        request_id = self._next_id()
        self._demand_ids[request_id] = None
        self._queue_demand(request_id, classes, lift_declines=lift_declines)
        return request_id

    def accept(self, offer: Offer, launches: Sequence[Launch]) -> int:
        """Take an offer of this stream for these tasks, and return the request id its ``AnswerAccept`` will carry.

        One that was rescinded meanwhile is answered so by the master.
        """
        assert self.phase is Phase.OPEN, f"an offer was accepted in phase {self.phase}"
        self._offers.pop(offer.offer_id, None)
        accept = Accept(offer_id=offer.offer_id, agent_id=offer.agent_id, launches=tuple(launches))
        request_id = self._enqueue(accept)
        self._unsent_accepts[request_id] = accept
        return request_id

    def decline(self, offer_ids: Iterable[str], *, reason: str, scope: Scope, ttl_ms: int) -> None:
        """Give outstanding offers back; those that are gone are left out."""
        known = tuple(
            OfferId(offer_id) for offer_id in offer_ids if self._offers.pop(offer_id, None) is not None
        )
        if known:
            self._enqueue(OffersDeclined(offer_ids=known, reason=reason, scope=scope, ttl_ms=ttl_ms))

    def kill(self, task_ids: Sequence[str], *, grace_period_ms: int = 0) -> int:
        """Ask that tasks be ended, over the next stream too if this one breaks before the answer."""
        kill = KillAsked(task_ids=tuple(map(TaskId, task_ids)), grace_period_ms=grace_period_ms)
        request_id = self._enqueue(kill)
        self._kills[request_id] = kill
        return request_id

    def reconcile(self, task_ids: Sequence[str] = ()) -> int:
        """Ask for the state of these tasks (none: all), over the next stream too if this one breaks."""
        call = ReconcileAsked(task_ids=tuple(map(TaskId, task_ids)))
        request_id = self._enqueue(call)
        self._reconciles[request_id] = call
        return request_id

    def acknowledge(self, status: TaskStatus) -> None:
        """Say that this report and those before it are known; costs no message of its own."""
        if status.sequence and self._sequences.acknowledge(status):
            self._acks[status.task_id] = (status.task_id, status.sequence, status.agent_id)

    def teardown(self) -> int:
        """Ask that every task be killed and the framework forgotten."""
        self._teardown_id = self._enqueue(TeardownAsked())
        return self._teardown_id

    # --- the stream ----------------------------------------------------------------------------------------------

    def has_outgoing(self) -> bool:
        """Whether ``take_outgoing`` would return anything."""
        return self.phase is not Phase.AWAY and bool(self._queue or self._acks)

    @property
    def outgoing_count(self) -> int:
        """Calls that wait to be written."""
        return len(self._queue)

    def take_outgoing(self) -> list[NumberedCall]:
        """Everything to be written now, in order; it counts as sent."""
        if self.phase is Phase.AWAY:
            return []
        calls = list(self._queue.items())
        if self._acks:
            calls.append((self._next_id(), StatusesAcknowledged(items=tuple(self._acks.values()))))
        self._queue = {}
        self._acks = {}
        self._accepts.update(self._unsent_accepts)
        self._unsent_accepts = {}
        return calls

    def link_opened(self) -> None:
        """A stream stands: greet, ask what became of everything, and say again what is wanted.

        All of it in one go, without waiting for Welcome: an extra round trip would be paid by every first task.
        """
        assert self.phase is Phase.AWAY, f"a stream was opened in phase {self.phase}"
        asked_again: list[tuple[int, Call]] = [*self._kills.items(), *self._reconciles.items()]
        self._queued_demand_id = None
        self._queue = {self._next_id(): replace(self._hello, last_epoch=self._epoch)}
        if self.welcome is not None:
            self._unheard = dict.fromkeys((*self._doubts.agent_by_task, *self._live))
            self._reconcile_own(tuple(self._unheard))
        self._queue.update(asked_again)
        if self._demand is not None:
            latest = max(self._demand_ids, default=0) or self._next_id()
            self._demand_ids[latest] = None
            self._queue_demand(latest, self._demand)
        if self._teardown_id:
            self._queue[self._teardown_id] = TeardownAsked()
        self.phase = Phase.GREETING

    def link_broken(self, reason: str) -> list[Event]:
        """The stream is gone: offers are void, accepts that were sent are in doubt, those that were not never happened."""
        never_sent: list[Event] = [
            _all_rejected(request_id, accept) for request_id, accept in self._unsent_accepts.items()
        ]
        for request_id, accept in self._accepts.items():
            self._doubts.add(request_id, accept)
        if not self._demand_ids:
            # What was answered counts down with every accept, on the master only: said again as it was, it would ask
            # for the launched ones once more. The application says what is wanted now.
            self._demand = None
        was_open = self.phase is Phase.OPEN
        self.phase = Phase.AWAY
        self._queue = {}
        self._offers = {}
        self._accepts = {}
        self._unsent_accepts = {}
        self._own_reconciles = {}
        return [*never_sent, Disconnected(reason)] if was_open else never_sent

    def receive(self, epoch: int, received: Iterable[Received]) -> list[Event]:
        """What a message of the master means to the application.

        Raises:
            LinkBroken: the message breaks a rule of the protocol, or comes from an older master: give the stream up.
        """
        if epoch < self._epoch:
            raise LinkBroken(f"the master's epoch is {epoch}, older than {self._epoch} seen before")
        events: list[Event] = []
        for item in received:
            if self.phase is not Phase.OPEN and not isinstance(item, Welcome | EndFrameworkSession):
                raise LinkBroken(f"expected Welcome first, got {type(item).__name__}")
            events.extend(self._receive(item))
        return events

    def _receive(self, item: Received) -> Sequence[Event]:
        match item:
            case StatusReceived():
                return self._on_status(item)
            case AnswerAccept():
                return self._on_accept_result(item)
            case OffersReceived():
                self._offers.update((offer.offer_id, offer) for offer in item.offers)
                return (item,)
            case RescindOffers():
                for offer_id in item.offer_ids:
                    self._offers.pop(offer_id, None)
                return (item,)
            case AnswerCall():
                return self._on_result(item)
            case Welcome():
                return (self._on_welcome(item),)
            case FinishReconciliation():
                return self._on_reconcile_done(item)
            case Heartbeat():
                # While a restarted master waits for agents it says nothing of the tasks it does not know. Asking
                # again with each heartbeat needs no timer and costs nothing when all have been heard of.
                if self._unheard and not self._own_reconciles:
                    self._reconcile_own(tuple(self._unheard))
                return (item,)
            case AnnounceAgentGone():
                return (item,)
            case EndFrameworkSession():
                failure = session_failure(item)
                if failure is None:
                    raise LinkBroken(f"{item.code.value.lower()}: {item.detail}")
                return (SessionOver(failure),)

    def _on_welcome(self, welcome: Welcome) -> Event:
        if self.phase is not Phase.GREETING:
            raise LinkBroken("a second Welcome in one stream")
        if self._hello.framework_id not in (None, welcome.framework_id):
            raise LinkBroken(
                f"expected framework {self._hello.framework_id}, got Welcome for {welcome.framework_id}"
            )
        resumed = self.welcome is not None
        self.phase = Phase.OPEN
        self.welcome = welcome
        self._epoch = max(self._epoch, welcome.epoch)
        self._hello = replace(self._hello, framework_id=FrameworkId(welcome.framework_id))
        return Connected(welcome=welcome, resumed=resumed)

    def _on_result(self, result: AnswerCall) -> Sequence[Event]:
        if result.request_id in self._demand_ids:
            answered = [number for number in self._demand_ids if number <= result.request_id]
            for number in answered:
                del self._demand_ids[number]
            return [
                *(replace(result, request_id=number) for number in answered),
                DemandAnswered(result=result),
            ]
        self._kills.pop(result.request_id, None)
        if result.request_id in self._reconciles:
            # Only a refused ReconcileAsked is answered so; one that is taken ends with FinishReconciliation.
            del self._reconciles[result.request_id]
        self._own_reconciles.pop(result.request_id, None)
        if result.request_id == self._teardown_id:
            self._teardown_id = 0
        return (result,)

    def _on_accept_result(self, result: AnswerAccept) -> Sequence[Event]:
        accept = self._accepts.pop(result.request_id, None)
        if accept is None:
            return ()
        expected = [launch.task_id for launch in accept.launches]
        if [item.task_id for item in result.answers] != expected:
            raise LinkBroken(
                f"the answer to the accept of {accept.offer_id} does not name its tasks in order"
            )
        for item in result.answers:
            if item.launched and not self._sequences.is_over(item.task_id):
                self._live[item.task_id] = accept.agent_id
        return (result,)

    def _on_status(self, received: StatusReceived) -> Sequence[Event]:
        status = received.status
        self._unheard.pop(status.task_id, None)
        settled: list[Event] = []
        if status.task_id in self._doubts.agent_by_task:
            launched = status.reason is not Reason.UNKNOWN_TASK
            settled = [self._doubts.settle(status.task_id, launched=launched)]
            if not launched:
                return settled
        if not self._sequences.is_new(status):
            if self._sequences.is_acknowledged(status):
                # Cumulative, so whatever is queued for this task already covers the repeat.
                self._acks.setdefault(status.task_id, (status.task_id, status.sequence, status.agent_id))
            return settled
        if is_terminal(status.state):
            self._live.pop(status.task_id, None)
        else:
            self._live[status.task_id] = status.agent_id
        return [*settled, received]

    def _on_reconcile_done(self, done: FinishReconciliation) -> Sequence[Event]:
        asked = self._own_reconciles.pop(done.request_id, None)
        if asked is None:
            self._reconciles.pop(done.request_id, None)
            return (done,)
        if not done.recovering_agent_ids:
            silent = asked
        else:
            # An agent that is back has reported its tasks; a launch in doubt that it does not have never arrived.
            agents = self._doubts.agent_by_task
            silent = tuple(
                task_id
                for task_id in asked
                if task_id in agents and agents[task_id] not in done.recovering_agent_ids
            )
        for task_id in silent:
            self._unheard.pop(task_id, None)
        return [
            self._doubts.settle(task_id, launched=False)
            for task_id in silent
            if task_id in self._doubts.agent_by_task
        ]

    # --- the queue -----------------------------------------------------------------------------------------------

    def _next_id(self) -> int:
        self._request_id += 1
        return self._request_id

    def _enqueue(self, call: Call) -> int:
        request_id = self._next_id()
        # Away, nothing is queued: what outlives the stream is kept apart and asked again by `link_opened`.
        if self.phase is not Phase.AWAY:
            self._queue[request_id] = call
        return request_id

    def _queue_demand(
        self, request_id: int, classes: tuple[Demand, ...], *, lift_declines: bool = False
    ) -> None:
        if self._queued_demand_id is not None:
            replaced = self._queue.pop(self._queued_demand_id, None)
            lift_declines |= isinstance(replaced, SetDemand) and replaced.lift_declines
        self._queued_demand_id = request_id
        self._version += 1
        self._queue[request_id] = SetDemand(
            version=self._version, classes=classes, lift_declines=lift_declines
        )

    def _reconcile_own(self, task_ids: tuple[str, ...]) -> None:
        for start in range(0, len(task_ids), RECONCILE_TASKS_MAX):
            chunk = task_ids[start : start + RECONCILE_TASKS_MAX]
            request_id = self._next_id()
            self._queue[request_id] = ReconcileAsked(task_ids=tuple(map(TaskId, chunk)))
            self._own_reconciles[request_id] = chunk


def _all_rejected(request_id: int, accept: Accept) -> AnswerAccept:
    items = tuple(
        AcceptItem(
            task_id=launch.task_id, rejection=Rejection.EXPIRED, detail="the stream broke before it was sent"
        )
        for launch in accept.launches
    )
    return AnswerAccept(request_id=request_id, offer_id=OfferId(accept.offer_id), answers=items)
