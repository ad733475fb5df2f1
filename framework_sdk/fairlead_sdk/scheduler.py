"""A scheduler of one's own: subclass ``Scheduler``, give it to ``run_scheduler``.

The session runs beside the callbacks: reports are read, offers are rescinded and the master is heard while a callback
waits. Callbacks are called one at a time, in the order of what happened. They may be plain or async; a plain one runs on
the event loop and must not block it: to compute or to wait, make it async and use ``asyncio.to_thread``.
"""

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Generator, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

from fairlead_proto.codes import Rejection
from fairlead_proto.framework_events import (
    AnnounceAgentGone,
    AnswerAccept,
    AnswerCall,
    FinishReconciliation,
    RescindOffers,
)
from fairlead_proto.limits import TASKS_PER_ACCEPT_MAX
from fairlead_proto.tasks import TaskStatus
from fairlead_sdk.address import make_transport
from fairlead_sdk.amounts import parse_duration
from fairlead_sdk.calls import Demand, Launch, Scope, greeting
from fairlead_sdk.client import MasterClient
from fairlead_sdk.errors import FairleadError
from fairlead_sdk.events import (
    AcceptItem,
    Connected,
    Disconnected,
    Event,
    Offer,
    OffersReceived,
    SessionOver,
    StatusReceived,
)
from fairlead_sdk.framework import OnExit
from fairlead_sdk.refusals import call_failure
from fairlead_sdk.session_state import Phase
from fairlead_sdk.task import Task
from fairlead_sdk.transport import Transport

_T = TypeVar("_T")

ACKNOWLEDGE_MS_MAX: Final = 10_000
"""How long a report may wait for its callback before it is acknowledged all the same. Agents keep and repeat what is not
acknowledged; a scheduler that needs longer has the report in its queue, but will not be told again after its own crash."""


class Scheduler:
    """Decides which tasks go on which offers. Subclass it and override what matters; every callback may be async."""

    def registered(self, driver: "Driver") -> Awaitable[None] | None:
        """The session stands: say what is wanted. Called again after each reconnection, which voided offers and demand."""

    def resource_offers(self, driver: "Driver", offers: Sequence[Offer]) -> Awaitable[None] | None:
        """Offers that are outstanding now: accept or decline each, or hold it until its lease ends."""
        driver.decline(offers, reason="this scheduler takes no offers")
        return None

    def offer_rescinded(self, driver: "Driver", offer_id: str) -> Awaitable[None] | None:
        """An offer is gone: its lease ended, its agent left, or the master took it back."""

    def status_update(self, driver: "Driver", status: TaskStatus) -> Awaitable[None] | None:
        """Something new about a task; acknowledged when this returns, or after ten seconds."""

    def agent_gone(self, driver: "Driver", agent_id: str) -> Awaitable[None] | None:
        """An agent will not return. Its tasks are reported GONE one by one."""

    def disconnected(self, driver: "Driver") -> Awaitable[None] | None:
        """The stream broke: offers are void. The driver reconnects by itself."""

    def error(self, driver: "Driver", error: FairleadError) -> Awaitable[None] | None:
        """A demand was refused and nobody awaited its answer, or the session is over for good."""


class Answer(Generic[_T]):
    """What a call will be answered; ``await`` it, now, later, more than once, or never."""

    def __init__(self) -> None:
        self.is_awaited = False
        """Whether anybody wants to know."""
        self._future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()

    def __await__(self) -> Generator[Any, None, _T]:
        self.is_awaited = True
        return asyncio.shield(self._future).__await__()

    def resolve(self, value: _T) -> None:
        """Here is the answer. For the driver, not for schedulers."""
        if not self._future.done():
            self._future.set_result(value)

    def fail(self, error: FairleadError) -> None:
        """There will be none, and why. For the driver, not for schedulers."""
        if not self._future.done():
            self._future.set_exception(error)
            # Nobody need await it, and then nobody should be warned of it either.
            self._future.exception()


class Driver:
    """What a scheduler may do. All methods are for the event loop the driver runs on; none of them blocks."""

    def __init__(self, client: MasterClient, *, is_resumed: bool) -> None:
        self._client = client
        # Earlier sessions of the framework have counted from 1 too, and a task id is never used twice.
        self._id_middle = f"{client.transport.clock.unix_ms():x}-" if is_resumed else ""
        self._accepts: dict[int, _AcceptAnswers] = {}
        self._reconciles: dict[int, Answer[tuple[str, ...]]] = {}
        self._demands: dict[int, Answer[None]] = {}
        self._ids_made = 0
        self._over: FairleadError | None = None
        self.stopped: asyncio.Future[OnExit | None] = asyncio.get_running_loop().create_future()
        """Done when ``stop`` was called; the shell waits for it."""

    @property
    def framework_id(self) -> str:
        """The id the master gave."""
        return self._client.state.framework_id

    def is_outstanding(self, offer: Offer) -> bool:
        """Whether the offer can still be accepted, as far as is known here."""
        return self._client.state.is_outstanding(offer.offer_id)

    def set_demand(self, classes: Iterable[Demand], *, lift_declines: bool = False) -> "Answer[None]":
        """Replace everything that is wanted; see ``demand_class`` and ``quanta_class``. No class, no offers.

        What was declined stays declined until its time is over, where the class has the same id, unit and constraints as
        before; with ``lift_declines`` all of it may be offered again at once.

        Returns:
            Done when the master took it. Raises ``Infeasible`` or ``Refused`` if it did not: then the earlier demand
            stands. Need not be awaited: a refusal nobody awaits goes to ``Scheduler.error``.
        """
        self._check()
        request_id = self._client.state.set_demand(tuple(classes), lift_declines=lift_declines)
        self._client.flush()
        answer: Answer[None] = Answer()
        self._demands[request_id] = answer
        return answer

    def accept(self, offer: Offer, tasks: Iterable[Task]) -> "Answer[list[AcceptItem]]":
        """Take an offer for these tasks; what they leave over is free again at once.

        A task without an id is given one that the framework has not used, in this session or an earlier one. A rejected task never existed: offer it a place again. If the stream breaks
        before the answer, the answer comes by reconciliation after the reconnection.

        Returns:
            One item a task, in order. Need not be awaited.

        Raises:
            ValueError: no task, or too many.
        """
        self._check()
        launches = [Launch(task.task_id or self._new_id(), task) for task in tasks]
        if not 0 < len(launches) <= TASKS_PER_ACCEPT_MAX:
            raise ValueError(f"tasks: expected 1 to {TASKS_PER_ACCEPT_MAX}, got {len(launches)}")
        answers = _AcceptAnswers([launch.task_id for launch in launches])
        if not self.is_outstanding(offer) or self._client.state.phase is not Phase.OPEN:
            answers.reject_all(f"offer {offer.offer_id} is over")
            return answers.answer
        request_id = self._client.state.accept(offer, launches)
        self._client.flush()
        self._accepts[request_id] = answers
        return answers.answer

    def decline(
        self,
        offers: Iterable[Offer],
        *,
        reason: str = "",
        scope: Scope = Scope.AGENT,
        ttl: float | str | None = None,
    ) -> None:
        """Give offers back. Those that are over are left out.

        Args:
            offers: what is not wanted.
            reason: for listings.
            scope: what not to offer again for a time: this class on this agent, this class anywhere, or nothing.
            ttl: for how long, in seconds or text; None is the master's 5 s. See ``set_demand`` for how to lift it.
        """
        self._check()
        ids = [offer.offer_id for offer in offers]
        self._client.state.decline(ids, reason=reason, scope=scope, ttl_ms=parse_duration("ttl", ttl))
        self._client.flush()

    def kill(self, *task_ids: str, grace_period: float | str | None = None) -> None:
        """Ask that tasks be ended; their reports tell when they are. Repeated by itself over a broken stream."""
        self._check()
        grace_ms = parse_duration("grace_period", grace_period)
        self._client.state.kill(task_ids, grace_period_ms=grace_ms)
        self._client.flush()

    def reconcile(self, *task_ids: str) -> "Answer[tuple[str, ...]]":
        """Ask for the state of these tasks, or of all; the answers come as ``status_update``.

        Returns:
            Done after the last answer, with the ids of agents not back yet, whose tasks may be unreported.
        """
        self._check()
        request_id = self._client.state.reconcile(task_ids)
        self._client.flush()
        answer: Answer[tuple[str, ...]] = Answer()
        self._reconciles[request_id] = answer
        return answer

    def stop(self, *, on_exit: OnExit | None = None) -> None:
        """End the session; ``run_scheduler`` returns. A second call does nothing.

        Args:
            on_exit: ``teardown`` kills what runs, ``leave`` lets it run on; None is what ``run_scheduler`` was told.
        """
        if not self.stopped.done():
            self.stopped.set_result(on_exit)

    def _check(self) -> None:
        if self._over is not None:
            raise self._over

    def _new_id(self) -> str:
        self._ids_made += 1
        return f"{self.framework_id}-{self._id_middle}{self._ids_made}"

    def take_answer(self, event: Event) -> FairleadError | None:
        """Hand an answer to whoever awaits it; returns a refusal nobody did. For the shell, not for schedulers."""
        match event:
            case AnswerAccept():
                answers = self._accepts.get(event.request_id)
                if answers is not None and answers.take(event.answers):
                    del self._accepts[event.request_id]
            case FinishReconciliation():
                reconcile = self._reconciles.pop(event.request_id, None)
                if reconcile is not None:
                    reconcile.resolve(event.recovering_agent_ids)
            case AnswerCall():
                return self._take_result(event)
            case SessionOver():
                self._end(event.error)
            case _:
                pass
        return None

    def _take_result(self, result: AnswerCall) -> FairleadError | None:
        failure = call_failure(result)
        demand = self._demands.pop(result.request_id, None)
        if failure is None:
            if demand is not None:
                demand.resolve(None)
            return None
        reconcile = self._reconciles.pop(result.request_id, None)
        if reconcile is not None:
            reconcile.fail(failure)
        if demand is None:
            return None
        demand.fail(failure)
        return None if demand.is_awaited else failure

    def _end(self, error: FairleadError) -> None:
        self._over = error
        for answers in self._accepts.values():
            answers.answer.fail(error)
        for demand in self._demands.values():
            demand.fail(error)
        for reconcile in self._reconciles.values():
            reconcile.fail(error)
        self._accepts, self._demands, self._reconciles = {}, {}, {}


class _AcceptAnswers:
    """The items of one accept as they come: all at once, or piece by piece after a broken stream."""

    def __init__(self, task_ids: list[str]) -> None:
        self.answer: Answer[list[AcceptItem]] = Answer()
        self._items: dict[str, AcceptItem | None] = dict.fromkeys(task_ids)
        self._missing = len(self._items)

    def take(self, items: Iterable[AcceptItem]) -> bool:
        """Note items; True when all are there."""
        for item in items:
            if item.task_id in self._items and self._items[item.task_id] is None:
                self._items[item.task_id] = item
                self._missing -= 1
        if self._missing:
            return False
        self.answer.resolve([item for item in self._items.values() if item is not None])
        return True

    def reject_all(self, detail: str) -> None:
        """The offer is over: nothing was sent."""
        self.take(
            AcceptItem(task_id=task_id, rejection=Rejection.EXPIRED, detail=detail) for task_id in self._items
        )


async def run_scheduler(
    scheduler: Scheduler,
    *,
    name: str = "",
    master: str | Transport | None = None,
    role: str = "",
    weight: float | None = None,
    framework_id: str = "",
    failover_timeout: float | str | None = None,
    principal: str = "",
    on_exit: OnExit = "teardown",
    connect_timeout: float | str = 10.0,
    reconnect_timeout: float | str | None = None,
) -> None:
    """Run a scheduler until it calls ``driver.stop()``, or is cancelled. The arguments are those of ``Framework``.

    Raises:
        MasterUnreachable, Refused, FrameworkExpired, Superseded: the session could not begin, or is over for good.
        Exception: whatever a callback raised.
    """
    hello = greeting(
        framework_id=framework_id,
        name=name or type(scheduler).__name__,
        role=role,
        weight=weight or 0.0,
        principal=principal,
        failover_timeout_ms=parse_duration("failover_timeout", failover_timeout),
    )
    runner = _Runner(scheduler)
    client = MasterClient(
        make_transport(master),
        hello,
        runner.on_events,
        connect_timeout_ms=parse_duration("connect_timeout", connect_timeout),
        reconnect_timeout_ms=parse_duration("reconnect_timeout", reconnect_timeout),
    )
    runner.attach(client, is_resumed=bool(framework_id))
    try:
        await client.start()
        chosen = await runner.run()
    except BaseException:
        await client.close(teardown=on_exit == "teardown")
        raise
    await client.close(teardown=(chosen or on_exit) == "teardown")


class _Runner:
    """Calls the callbacks, one after the other, beside the session.

    The queue of what happened is bounded by the scheduler's own tasks and outstanding offers: nothing else enters it.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._queue: asyncio.Queue[Event | FairleadError] = asyncio.Queue()
        self._unacknowledged: deque[tuple[int, TaskStatus]] = deque()
        self._client: MasterClient | None = None
        self._driver: Driver | None = None

    def attach(self, client: MasterClient, *, is_resumed: bool) -> None:
        """Give the runner the client it was made for; each needs the other."""
        self._client = client
        self._driver = Driver(client, is_resumed=is_resumed)

    @property
    def _session(self) -> tuple[MasterClient, Driver]:
        assert self._client is not None, "a runner without a client"
        assert self._driver is not None, "a runner without a driver"
        return self._client, self._driver

    def on_events(self, events: Sequence[Event]) -> None:
        """Answer whoever awaits now; queue the rest for the callbacks."""
        client, driver = self._session
        for event in events:
            refusal = driver.take_answer(event)
            if refusal is not None:
                self._queue.put_nowait(refusal)
            if isinstance(event, StatusReceived):
                self._expect_acknowledgement(client, event.status)
            self._queue.put_nowait(event)

    async def run(self) -> OnExit | None:
        """Call the callbacks until the driver is stopped; returns what ``stop`` was told."""
        _, driver = self._session
        dispatcher = asyncio.create_task(self._dispatch(driver), name="fairlead callbacks")
        try:
            waited_for: set[asyncio.Future[Any]] = {dispatcher, driver.stopped}
            await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
            if not driver.stopped.done():
                dispatcher.result()
            return driver.stopped.result()
        finally:
            dispatcher.cancel()
            await asyncio.gather(dispatcher, return_exceptions=True)

    async def _dispatch(self, driver: Driver) -> None:
        while True:
            event = await self._queue.get()
            for called in self._calls(driver, event):
                if inspect.isawaitable(called):
                    await called
            if isinstance(event, StatusReceived):
                self._acknowledge(event.status)
            if isinstance(event, SessionOver):
                raise event.error

    def _calls(self, driver: Driver, event: Event | FairleadError) -> Iterable[Awaitable[None] | None]:
        """Call the callbacks of one event, each when the one before is done."""
        scheduler = self._scheduler
        match event:
            case Connected():
                yield scheduler.registered(driver)
            case OffersReceived():
                # Some may have ended while an earlier callback ran.
                offers = [offer for offer in event.offers if driver.is_outstanding(offer)]
                if offers:
                    yield scheduler.resource_offers(driver, offers)
            case RescindOffers():
                for offer_id in event.offer_ids:
                    yield scheduler.offer_rescinded(driver, offer_id)
            case StatusReceived():
                yield scheduler.status_update(driver, event.status)
            case AnnounceAgentGone():
                yield scheduler.agent_gone(driver, event.agent_id)
            case Disconnected():
                yield scheduler.disconnected(driver)
            case SessionOver():
                yield scheduler.error(driver, event.error)
            case FairleadError():
                yield scheduler.error(driver, event)
            case _:
                pass

    def _expect_acknowledgement(self, client: MasterClient, status: TaskStatus) -> None:
        clock = client.transport.clock
        if not self._unacknowledged:
            clock.call_later(ACKNOWLEDGE_MS_MAX, self._acknowledge_overdue)
        self._unacknowledged.append((clock.now_ms() + ACKNOWLEDGE_MS_MAX, status))

    def _acknowledge(self, status: TaskStatus) -> None:
        client, _ = self._session
        client.state.acknowledge(status)
        client.flush()

    def _acknowledge_overdue(self) -> None:
        client, _ = self._session
        clock = client.transport.clock
        while self._unacknowledged and self._unacknowledged[0][0] <= clock.now_ms():
            self._acknowledge(self._unacknowledged.popleft()[1])
        if self._unacknowledged:
            delay_ms = self._unacknowledged[0][0] - clock.now_ms()
            clock.call_later(delay_ms, self._acknowledge_overdue)
