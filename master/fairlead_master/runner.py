"""One loop owns the machine: events in, turns, the registry's writer, actions out in their order.

What a turn is, and what waits for what, is decided by ``core.turn``; here are the loop, the clock, the writer's thread
and whoever waits for an answer; and what is alike in the sessions whose peers post events.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, Generic

import structlog
from google.protobuf.message import Message

from fairlead_master import sessions
from fairlead_master.allocation.parts import Parts, Result
from fairlead_master.core import actions
from fairlead_master.core.actions import Action, AnswerOperator, Durable
from fairlead_master.core.events import Event
from fairlead_master.core.machine import Machine
from fairlead_master.core.turn import Turn
from fairlead_master.recording import Recorder
from fairlead_master.registry import Registry
from fairlead_master.registry_files import NoRoomError
from fairlead_master.sessions import Batch, Outbox, Reading, Traffic, converse
from fairlead_proto.clock import SteadyClock
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.peers import NONE, Capabilities, Unknowns, read_capabilities
from fairlead_proto.resources import ResourceKinds

log = structlog.get_logger()

PART_S_MAX: Final = 0.004
"""Of a long answer between two turns of the loop: half of what a turn of events may take, so listings slow down and peers do
not. Shorter parts would cost more turns than they spare."""

Send = Callable[[list[Action]], None]
"""Takes the actions of one turn that are addressed to a session, in their order."""

OnTurn = Callable[[float, int, int], None]
"""Takes how many seconds a turn took, how many allocation cycles it had and how many units they granted."""


class Runner:
    """Feeds events to a machine and carries out what it orders.

    Args:
        machine: the core; nobody else may touch it while the runner runs, except to read between steps.
        registry: where durable actions go; None keeps nothing.
        clock: the time given to steps.
    """

    def __init__(self, machine: Machine, registry: Registry | None, clock: SteadyClock) -> None:
        self.machine = machine
        self.clock = clock
        self._registry = registry
        self._turn = Turn(machine, None if registry is None else registry.shortage)
        self._loop = asyncio.get_running_loop()
        self._turn_is_scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._send: dict[int, Send] = {}
        self._sessions_made = 0
        self._requests: dict[int, asyncio.Future[AnswerOperator]] = {}
        self._requests_made = 0
        self._write_task: asyncio.Task[None] | None = None
        """Of batch after batch, while there are any."""
        self._is_stopped = False
        self.failed: asyncio.Future[None] = self._loop.create_future()
        """Raises when the master must stop: a broken invariant, or a registry that cannot be written."""
        self._reading = asyncio.Lock()
        """Whoever has it may read a part in this turn of the loop."""
        self._watchers: dict[int, Callable[[], None]] = {}
        self._recorder: Recorder | None = None
        self.on_turn: OnTurn | None = None
        """Is told of every turn, if set."""

    @property
    def lacks_room(self) -> bool:
        """Whether something waits to be written that there was no room for."""
        return self._turn.lacks_room

    @property
    def recorder(self) -> Recorder | None:
        """Gets every event before the core does, if set."""
        return self._recorder

    @recorder.setter
    def recorder(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self._turn.step = self.machine.step if recorder is None else self._record_and_step

    # --- sessions ------------------------------------------------------------------------------------------------

    def open_session(self, send: Send) -> int:
        """A new session number; ``send`` takes the actions addressed to it, once a turn."""
        self._sessions_made += 1
        self._send[self._sessions_made] = send
        return self._sessions_made

    def close_session(self, session: int) -> None:
        """Actions for this session are dropped from now on."""
        self._send.pop(session, None)

    # --- events --------------------------------------------------------------------------------------------------

    def post(self, event: Event) -> None:
        """Queue an event for this turn of the loop."""
        self._turn.events.append(event)
        if not self._turn_is_scheduled:
            self._schedule_turn()

    def _schedule_turn(self) -> None:
        if not self._turn_is_scheduled:
            self._turn_is_scheduled = True
            self._loop.call_soon(self._run_turn)

    @property
    def events_waiting(self) -> int:
        """Events queued for the next turns."""
        return len(self._turn.events)

    @property
    def actions_held(self) -> int:
        """Actions that wait for a commit, or for room to write them."""
        return self._turn.actions_held

    @property
    def session_count(self) -> int:
        """Sessions that are open."""
        return len(self._send)

    async def ask(self, make: Callable[[int], Event]) -> AnswerOperator:
        """Post an operator's request and wait for its answer. ``make`` gets the number to put into the event."""
        self._requests_made += 1
        number = self._requests_made
        future: asyncio.Future[AnswerOperator] = self._loop.create_future()
        self._requests[number] = future
        self.post(make(number))
        try:
            return await future
        finally:
            self._requests.pop(number, None)

    async def in_parts(self, parts: Parts[Result], now_s: Callable[[], float] = time.perf_counter) -> Result:
        """The result of a long reading, which all others have turns between. One part in a turn, whoever else reads."""
        while True:
            async with self._reading:
                until_s = now_s() + PART_S_MAX
                try:
                    while now_s() < until_s:
                        next(parts)
                except StopIteration as end:
                    result: Result = end.value
                    return result
                finally:
                    await asyncio.sleep(0)

    def _run_turn(self) -> None:
        if self._is_stopped:
            return
        self._turn_is_scheduled = False
        try:
            if self.on_turn is None:
                self._step_all()
            else:
                self._time_turn(self.on_turn)
        except Exception as error:
            self._fail(error)
            return
        if self._turn.events:
            self._schedule_turn()

    def _time_turn(self, on_turn: OnTurn) -> None:
        counters = self.machine.master.allocator.counters
        cycles, decisions = counters.cycles, counters.decisions
        started_s = time.perf_counter()
        self._step_all()
        elapsed_s = time.perf_counter() - started_s
        on_turn(elapsed_s, counters.cycles - cycles, counters.decisions - decisions)

    def _step_all(self) -> None:
        master, turn = self.machine.master, self._turn
        version = master.version
        wake_ms = turn.run(self.clock.now_ms)
        self._set_timer(wake_ms, turn.now_ms)
        self._deliver()
        batch = turn.to_write()
        if batch:
            self._write_task = self._loop.create_task(self._write(batch))
        if master.version != version:
            for wake in tuple(self._watchers.values()):
                wake()

    def _record_and_step(self, event: Event, now_ms: int) -> list[Action]:
        if self._recorder is not None:
            try:
                self._recorder.record(event, now_ms)
            except OSError as error:
                # A recording is a convenience: a full disk ends it, not the master.
                log.warning("recording.ended", error=str(error))
                self.recorder = None
        return self.machine.step(event, now_ms)

    def _set_timer(self, wake_ms: int | None, now_ms: int) -> None:
        if self._timer is not None:
            if wake_ms == self._timer_ms:
                return
            self._timer.cancel()
            self._timer = None
        if wake_ms is not None:
            self._timer_ms = wake_ms
            self._timer = self._loop.call_later(max(0, wake_ms - now_ms) / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if not self._turn_is_scheduled:
            self._run_turn()

    # --- actions -------------------------------------------------------------------------------------------------

    async def _write(self, batch: Sequence[Durable]) -> None:
        """Make a batch durable, then let go what waited behind it; again while more is to be written at once."""
        assert self._registry is not None, "only a master with a registry holds actions"
        turn = self._turn
        try:
            while batch:
                is_retry = turn.lacks_room
                await asyncio.wrap_future(self._registry.write(batch))
                turn.written()
                if is_retry and not turn.lacks_room:
                    log.info("registry.written", actions=len(batch))
                self._deliver()
                batch = turn.to_write()
        except NoRoomError as error:
            self._go_on_without(str(error))
        except Exception as error:
            self._fail(error)

    def _go_on_without(self, why: str) -> None:
        if not self._turn.lacks_room:
            log.error("registry.no_room", error=why)
        self._turn.lacked_room(why, self.clock.now_ms())
        self._deliver()
        # The next turn undoes what was refused, and sets the timer for the next attempt.
        self._schedule_turn()

    def _fail(self, error: Exception) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    def _deliver(self) -> None:
        by_session, unaddressed = self._turn.collect()
        for order in unaddressed:
            if isinstance(order, AnswerOperator):
                self._answer(order)
            else:
                _log_change(order)
        for session, orders in by_session.items():
            send = self._send.get(session)
            if send is not None:
                send(orders)

    def _answer(self, answer: AnswerOperator) -> None:
        future = self._requests.get(answer.request)
        if future is not None and not future.done():
            future.set_result(answer)

    # --- watchers ------------------------------------------------------------------------------------------------

    def add_watcher(self, wake: Callable[[], None]) -> int:
        """Call ``wake`` after each turn that changed something; gives the number to remove it by."""
        number = max(self._watchers, default=0) + 1
        self._watchers[number] = wake
        return number

    def remove_watcher(self, number: int) -> None:
        """Do not call it any more."""
        self._watchers.pop(number, None)

    async def stop(self) -> None:
        """Carry out what is held, then stop stepping. What there is no room for gets a last try."""
        if self._write_task is not None:
            await asyncio.wait([self._write_task])
        if not self.failed.done():
            self._turn.retry_at_once()
            batch = self._turn.to_write()
            if batch:
                await self._write(batch)
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self.lacks_room:
            log.error("registry.unwritten", actions=self.actions_held)


def _log_change(order: Durable) -> None:
    """Tell of what changed the cluster and is no peer's coming or going, which its session tells of."""
    match order:
        case actions.StoreAgent(is_away=True):
            log.warning("agent.unreachable", agent_id=order.agent_id, hostname=order.hostname)
        case actions.ForgetAgent():
            log.warning("agent.gone", agent_id=order.agent_id)
        case actions.ForgetFramework():
            log.info("framework.ended", framework_id=order.framework_id)
        case actions.StoreWeight():
            weights = dict(order.weight.by_resource or {})
            log.info("weight.changed", role=order.role, weight=order.weight.default, by_resource=weights)
        case actions.StorePolicy():
            log.info(
                "policy.changed",
                policy=order.policy,
                placement=order.placement,
                when_head_does_not_fit=order.when_head_does_not_fit,
                demand=order.demand,
            )
        case _:
            pass


class Session(ABC, Generic[Batch]):
    """One peer's session: its first message opens it, what it says becomes events, what the core has for it is written."""

    _arm: str
    """Of what a peer's message is one; a batch has them in a field of that name with an s."""
    _first: str
    """What the first message must be."""
    _batch: type[Message]

    def __init__(
        self, runner: Runner, kinds: ResourceKinds, context: Any, traffic: Traffic, unknowns: Unknowns
    ) -> None:
        self.number = runner.open_session(self._send)
        self.outbox: Outbox[Batch] = Outbox(traffic)
        self._runner = runner
        self._kinds = kinds
        self._context = context
        self._traffic = traffic
        self._unknowns = unknowns
        self._reading = Reading(traffic)
        self._peer: Capabilities = NONE
        """What its first message says it can do."""
        loop = asyncio.get_running_loop()
        self._unopened = loop.call_later(sessions.FIRST_MESSAGE_SECONDS_MAX, self._end_unopened)

    async def serve(self) -> None:
        """Serve it to its end."""
        try:
            await converse(self._context, self.outbox, self._read)
        finally:
            self._unopened.cancel()
            self._runner.close_session(self.number)
            self._runner.post(self._ended())

    async def _read(self) -> None:
        is_open = False
        try:
            async for batch in self._reading.batches(self._context, self._batch):
                for message in getattr(batch, f"{self._arm}s"):
                    # What is not known here may come first: a peer that never opens its session is ended by the timer.
                    if is_open or message.WhichOneof(self._arm) is None:
                        await self._take(message)
                    else:
                        self._unopened.cancel()
                        # Of another message than the first it is empty, and that is refused below.
                        self._peer = read_capabilities(getattr(message, self._first).capabilities)
                        self._runner.post(await self._reading.read(message, partial(self._open, message)))
                        is_open = True
        except InvalidFieldError as error:
            self._end(is_slow=False, detail=str(error))

    def _end_unopened(self) -> None:
        detail = f"expected {self._first} within {sessions.FIRST_MESSAGE_SECONDS_MAX:g} s, got nothing"
        self._end(is_slow=True, detail=f"first {self._arm}: {detail}")

    def _write(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            self.outbox.put(batch)

    @abstractmethod
    def _open(self, message: Any) -> Event:
        """The event of the first message; may be called in a thread."""

    @abstractmethod
    async def _take(self, message: Any) -> None:
        """Take a later message, or one of a kind that is not known here."""

    @abstractmethod
    def _send(self, orders: list[Action]) -> None:
        """Write what the core has for the peer, in order."""

    @abstractmethod
    def _end(self, *, is_slow: bool, detail: str) -> None:
        """End the session: the peer was too slow to open it, or said what cannot be read."""

    @abstractmethod
    def _ended(self) -> Event:
        """The event of the end, whatever the reason."""
