"""One loop owns the machine: events in, steps, actions out in their order.

The queue is drained once per turn of the loop, so whatever arrived together is decided together: a burst of events
costs one allocation cycle. No step waits for anything. Actions wait in one place only: behind a durable one. While
nothing can be made durable, because the disk is full, ``durability`` says what leaves and what is refused, and what is
to be written is tried again until it is.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

import structlog

from fairlead_master.core import actions, durability
from fairlead_master.core.actions import Action, AnswerOperator, Durable
from fairlead_master.core.durability import Subject
from fairlead_master.core.events import Event, Ticked
from fairlead_master.core.machine import Machine
from fairlead_master.recording import Recorder
from fairlead_master.registry import Registry
from fairlead_master.registry_files import NoRoomError

log = structlog.get_logger()

EVENTS_PER_TURN_MAX: Final = 500
"""Events stepped before the loop serves its connections again, if they are small."""

TURN_MS_MAX: Final = 8
"""Then the loop serves its connections, whatever is left. An allocation cycle, which takes about as long, waits for the next
turn; much less, and a saturated master would write many small messages in place of a few."""

RETRY_SECONDS: Final = 1.0
"""Between attempts to write what there was no room for: soon enough for who has just made room and looks."""

Send = Callable[[list[Action]], None]
"""Takes the actions of one turn that are addressed to a session, in their order."""

OnTurn = Callable[[float, int, int], None]
"""Takes how many seconds a turn took, how many allocation cycles it had and how many units they granted."""


class Clock:
    """Milliseconds since the epoch that never go back or jump: the wall clock at the start plus what has passed."""

    def __init__(self) -> None:
        self._offset_ms = time.time() * 1000 - time.monotonic() * 1000

    def now_ms(self) -> int:
        """The time now."""
        return int(self._offset_ms + time.monotonic() * 1000)


class Runner:
    """Feeds events to a machine and carries out what it orders.

    Args:
        machine: the core; nobody else may touch it while the runner runs, except to read between steps.
        registry: where durable actions go; None keeps nothing.
        clock: the time given to steps.
    """

    def __init__(self, machine: Machine, registry: Registry | None, clock: Clock) -> None:
        self.machine = machine
        self.clock = clock
        self._registry = registry
        self._events: deque[Event] = deque()
        self._loop = asyncio.get_running_loop()
        self._drain_is_scheduled = False
        self._tick_was_put_off = False
        """The last turn had no time left for a tick that was due: the next one begins with it."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._send: dict[int, Send] = {}
        self._outgoing: dict[int, list[Action]] = {}
        """By session, what the turn under way has for it: told at once, it needs few messages."""
        self._sessions_made = 0
        self._requests: dict[int, asyncio.Future[AnswerOperator]] = {}
        self._requests_made = 0
        self._held: list[list[Action]] | None = None
        """Actions waiting for the next commit, by step; None while none is under way."""
        self._committing_count = 0
        """Actions that wait for the commit under way."""
        self._commit_task: asyncio.Task[None] | None = None
        self._unwritten: dict[Subject, Durable] = {}
        """What there was no room for, the newest of each subject; empty as a rule."""
        self._unheard_of: frozenset[Subject] = frozenset()
        """Of these subjects nobody may hear before they are written."""
        self._no_room = ""
        """Why the last write failed."""
        self._retry: asyncio.TimerHandle | None = None
        self._is_stopping = False
        self.failed: asyncio.Future[None] = self._loop.create_future()
        """Raises when the master must stop: a broken invariant, or a registry that cannot be written."""
        self._watchers: dict[int, Callable[[], None]] = {}
        self.recorder: Recorder | None = None
        """Gets every event before the core does, if set."""
        self.on_turn: OnTurn | None = None
        """Is told of every turn, if set."""

    @property
    def lacks_room(self) -> bool:
        """Whether something waits to be written that there was no room for."""
        return bool(self._unwritten)

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
        self._events.append(event)
        self._schedule_drain()

    def _schedule_drain(self) -> None:
        if not self._drain_is_scheduled:
            self._drain_is_scheduled = True
            self._loop.call_soon(self._drain)

    @property
    def events_waiting(self) -> int:
        """Events queued for the next turns."""
        return len(self._events)

    @property
    def actions_held(self) -> int:
        """Actions that wait for a commit, or for room to write them."""
        return self._committing_count + sum(map(len, self._held or ())) + len(self._unwritten)

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

    def _drain(self) -> None:
        self._drain_is_scheduled = False
        try:
            if self.on_turn is None:
                self._step_all()
            else:
                self._time_turn(self.on_turn)
        except Exception as error:
            self._fail(error)
            return
        if self._events:
            self._schedule_drain()

    def _time_turn(self, on_turn: OnTurn) -> None:
        counters = self.machine.master.allocator.counters
        cycles, decisions = counters.cycles, counters.decisions
        started_s = time.perf_counter()
        self._step_all()
        elapsed_s = time.perf_counter() - started_s
        on_turn(elapsed_s, counters.cycles - cycles, counters.decisions - decisions)

    def _step_all(self) -> None:
        machine, events, clock = self.machine, self._events, self.clock
        version = machine.master.version
        now_ms = clock.now_ms()
        end_ms = now_ms + TURN_MS_MAX
        if self._tick_was_put_off:
            self._tick_was_put_off = False
            self._step(Ticked(), now_ms)
            now_ms = clock.now_ms()
        for _ in range(min(len(events), EVENTS_PER_TURN_MAX)):
            if now_ms >= end_ms:
                break
            self._step(events.popleft(), now_ms)
            now_ms = clock.now_ms()
        deadline_ms = machine.next_deadline_ms(now_ms)
        if deadline_ms is not None and deadline_ms <= now_ms:
            if now_ms < end_ms:
                self._step(Ticked(), now_ms)
                deadline_ms = machine.next_deadline_ms(now_ms)
            else:
                self._tick_was_put_off = True
        self._set_timer(deadline_ms, now_ms)
        self._deliver()
        if machine.master.version != version:
            for wake in tuple(self._watchers.values()):
                wake()

    def _step(self, event: Event, now_ms: int) -> None:
        refused = self._refusal(event)
        if refused is not None:
            self._emit([refused])
            return
        if self.recorder is not None:
            try:
                self.recorder.record(event, now_ms)
            except OSError as error:
                # A recording is a convenience: a full disk ends it, not the master.
                log.warning("recording.ended", error=str(error))
                self.recorder = None
        self._emit(self.machine.step(event, now_ms))

    def _refusal(self, event: Event) -> Action | None:
        """The answer to what cannot be taken on for want of room, without troubling the core."""
        if self._registry is None or type(event) not in durability.ADDING:
            return None
        why = self._no_room if self._unwritten else self._registry.shortage()
        return durability.refusal(self.machine.master, event, why) if why else None

    def _set_timer(self, deadline_ms: int | None, now_ms: int) -> None:
        if self._timer is not None:
            if deadline_ms == self._timer_ms:
                return
            self._timer.cancel()
            self._timer = None
        if deadline_ms is not None:
            self._timer_ms = deadline_ms
            self._timer = self._loop.call_later(max(0, deadline_ms - now_ms) / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if not self._drain_is_scheduled:
            self._drain()

    # --- actions -------------------------------------------------------------------------------------------------

    def _emit(self, orders: list[Action]) -> None:
        if self._held is not None:
            self._held.append(orders)
        elif self._unwritten:
            self._put_off([orders], _durable(orders))
        elif self._registry is None or actions.DURABLE.isdisjoint(map(type, orders)):
            self._dispatch(orders)
        else:
            self._held = [orders]
            self._commit_task = self._loop.create_task(self._commit())

    async def _commit(self) -> None:
        """Make durable what is held, then let go what waited behind it; again while more has been held meanwhile."""
        assert self._registry is not None, "only a master with a registry holds actions"
        try:
            while self._held:
                steps, self._held = self._held, []
                self._committing_count = sum(map(len, steps))
                durable = [order for orders in steps for order in _durable(orders)]
                if durable:
                    try:
                        await asyncio.wrap_future(self._registry.write(durable))
                    except NoRoomError as error:
                        self._committing_count = 0
                        self._begin_shortage(steps, durable, error)
                        return
                self._committing_count = 0
                for orders in steps:
                    self._dispatch(orders)
                self._deliver()
            self._held = None
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    # --- without room --------------------------------------------------------------------------------------------

    def _begin_shortage(self, steps: list[list[Action]], durable: list[Durable], error: NoRoomError) -> None:
        """Stop waiting for the disk: what may leave leaves, the rest is refused, and writing is tried again."""
        later = self._held or []
        self._held = None
        self._no_room = str(error)
        log.error("registry.no_room", error=self._no_room)
        steps = [*steps, *later]
        durable = [*durable, *(order for orders in later for order in _durable(orders))]
        self._unheard_of = durability.untold(durable)
        self._put_off(steps, durable)
        self._deliver()
        self._retry = self._loop.call_later(RETRY_SECONDS, self._start_retry)

    def _put_off(self, steps: list[list[Action]], durable: Iterable[Durable]) -> None:
        self._unwritten.update((durability.subject(action), action) for action in durable)
        released = [durability.release(orders, self._unheard_of, self._no_room) for orders in steps]
        for step in released:
            self._dispatch(step.orders)
        # Before all that waits, so that hardly a step sees what is to be undone.
        undoing = [event for step in released for event in step.undoing]
        if undoing:
            self._events.extendleft(reversed(undoing))
            self._schedule_drain()

    def _start_retry(self) -> None:
        self._commit_task = self._loop.create_task(self._write_again())

    async def _write_again(self) -> None:
        assert self._registry is not None, "only a registry lacks room"
        batch = dict(self._unwritten)
        try:
            await asyncio.wrap_future(self._registry.write(list(batch.values())))
        except NoRoomError as error:
            self._no_room = str(error)
            if not self._is_stopping:
                self._retry = self._loop.call_later(RETRY_SECONDS, self._start_retry)
            return
        except Exception as error:
            self._fail(error)
            return
        self._dispatch(list(batch.values()))
        self._unheard_of = frozenset()
        for subject, action in batch.items():
            if self._unwritten[subject] is action:
                del self._unwritten[subject]
        if self._unwritten:
            await self._write_again()
        else:
            log.info("registry.written", actions=len(batch))

    def _dispatch(self, orders: list[Action]) -> None:
        for order in orders:
            if isinstance(order, AnswerOperator):
                future = self._requests.get(order.request)
                if future is not None and not future.done():
                    future.set_result(order)
            elif type(order) in actions.DURABLE:
                _log_change(order)
            else:
                session: int = order.session  # type: ignore[union-attr]  # durable ones are excluded above
                waiting = self._outgoing.get(session)
                if waiting is None:
                    self._outgoing[session] = [order]
                else:
                    waiting.append(order)

    def _deliver(self) -> None:
        outgoing, self._outgoing = self._outgoing, {}
        for session, orders in outgoing.items():
            send = self._send.get(session)
            if send is not None:
                send(orders)

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
        self._is_stopping = True
        if self._timer is not None:
            self._timer.cancel()
        if self._retry is not None:
            self._retry.cancel()
        if self._commit_task is not None:
            await asyncio.wait([self._commit_task])
        if self._unwritten and not self.failed.done():
            await self._write_again()
        if self._unwritten:
            log.error("registry.unwritten", actions=len(self._unwritten), error=self._no_room)


def _durable(orders: Iterable[Action]) -> list[Durable]:
    return [order for order in orders if isinstance(order, Durable)]


def _log_change(order: Action) -> None:
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
