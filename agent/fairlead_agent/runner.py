"""The loop that owns the agent's machine: events in, one turn of it for all that wait, the journal, then the actions.

Nobody else holds the machine, so it needs no lock. What a turn is, and what waits for the journal, is decided by
``core.turn``.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from structlog.typing import FilteringBoundLogger

from fairlead_agent.checkpoint import Checkpoint
from fairlead_agent.core import actions
from fairlead_agent.core.events import Event
from fairlead_agent.core.machine import AgentMachine
from fairlead_agent.core.records import IdentityTaken, Record, StatusMade, TaskLaunched
from fairlead_agent.core.turn import Turn
from fairlead_proto.clock import SteadyClock
from fairlead_proto.pace import Pace

INBOX_LENGTH_MAX: Final = 10_000
"""Events waiting to be stepped; whoever feeds more waits. A burst of ten thousand ends is a second of work."""

BUSY_TASKS: Final = 25
"""Launched or ended within 100 ms, but for the first of each turn: then turns wait a moment for company. One task after another
has none."""

GATHER_S: Final = 0.01
"""That moment. With 300 tasks a second it makes a turn of three tasks, of which the journal, its way to the disk and the message
to the master cost as much as the tasks themselves; a half of it made twice as many turns. Nobody sees 10 ms of a busy agent."""

JOURNAL_ATTEMPTS_MAX: Final = 60
JOURNAL_PAUSE_S: Final = 1.0
"""Between attempts to write to a disk that is full. Nothing is done meanwhile that is not written down, and the tasks
run on; after a minute the agent gives up, for a person has to make room."""

CarryOut = Callable[[actions.Action], None]


class JournalFailed(OSError):
    """The journal could not be written for a minute, or not be made durable; the message says why."""


class Runner:
    """Steps one machine. ``feed`` from the same event loop only."""

    def __init__(
        self,
        machine: AgentMachine,
        journal: Checkpoint,
        clock: SteadyClock,
        carry_out: CarryOut,
        log: FilteringBoundLogger,
    ) -> None:
        """Prepare; nothing is stepped before ``run``.

        Args:
            machine: belongs to this runner from now on.
            journal: where its records go.
            clock: tells the time of each turn.
            carry_out: does one action that is no record; must not block, must not raise.
            log: where each change of a task is logged.
        """
        self._machine = machine
        self._journal = journal
        self._clock = clock
        self._carry_out = carry_out
        self._log = log
        self._turn = Turn(machine)
        self._sync: asyncio.Future[None] | None = None
        """Makes what is written durable, for statuses that are to be told."""
        self._wakeup = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_over = False
        self._pace = Pace(BUSY_TASKS)
        self._afterwards: deque[tuple[int, Callable[[], None]]] = deque()

    @property
    def machine(self) -> AgentMachine:
        """For looking at, between turns."""
        return self._machine

    def put(self, event: Event) -> None:
        """Take one event without waiting, from where waiting is impossible."""
        self._turn.events.append(event)
        self._wakeup.set()

    async def feed(self, events: Sequence[Event]) -> None:
        """Take events, in order; waits while too many are waiting already."""
        waiting = self._turn.events
        while len(waiting) >= INBOX_LENGTH_MAX and not self._is_over:
            self._has_room.clear()
            await self._has_room.wait()
        waiting.extend(events)
        self._wakeup.set()

    def after(self, call: Callable[[], None]) -> None:
        """Call ``call`` once every event fed so far has been stepped: what looks at the machine must not be too early."""
        turn = self._turn
        if not turn.events:
            call()
        else:
            self._afterwards.append((turn.stepped_count + len(turn.events), call))

    async def run(self) -> actions.LeaveCluster:
        """Step until the machine leaves; give its last action.

        Raises:
            JournalFailed: the disk takes no more records.
        """
        try:
            while True:
                await self._gather()
                for action in await self._take():
                    if isinstance(action, actions.LeaveCluster):
                        return action
                    self._carry_out(action)
        finally:
            self._is_over = True
            self._has_room.set()
            if self._sync is not None:
                # Whoever closes the journal next must not do so under its feet; that it failed is said by now.
                await asyncio.wait((self._sync,))

    async def _gather(self) -> None:
        """Wait for events, for the end of a sync or for the next deadline."""
        if not self._turn.events and not (self._sync is not None and self._sync.done()):
            await self._wait()
        if self._pace.is_busy(self._clock.now_ms()):
            # What comes meanwhile shares a line of the journal and a message to the master.
            await asyncio.sleep(GATHER_S)

    async def _wait(self) -> None:
        self._wakeup.clear()
        deadline_ms = self._machine.next_deadline_ms()
        if deadline_ms is None:
            await self._wakeup.wait()
            return
        loop = asyncio.get_running_loop()
        timer = loop.call_later(max(0, deadline_ms - self._clock.now_ms()) / 1000, self._wakeup.set)
        try:
            await self._wakeup.wait()
        finally:
            timer.cancel()

    async def _take(self) -> list[actions.Action]:
        """Take what waits, write down what follows, and give what is to be done."""
        turn, now_ms = self._turn, self._clock.now_ms()
        if self._sync is not None and self._sync.done():
            await self._end_sync()
        turn.run(now_ms)
        self._pace.note(turn.moved_count, now_ms)
        if len(turn.events) < INBOX_LENGTH_MAX:
            self._has_room.set()
        while self._afterwards and self._afterwards[0][0] <= turn.stepped_count:
            self._afterwards.popleft()[1]()
        if turn.records:
            await self._write(turn.records)
        if turn.must_sync:
            await self._end_sync()
            await asyncio.to_thread(self._make_durable, turn.identity)
        if turn.records and self._journal.is_long():
            await self._end_sync()
            await self._compact()
        released = turn.release()
        if turn.wants_sync:
            turn.begin_sync()
            self._sync = asyncio.get_running_loop().run_in_executor(None, self._make_durable, None)
            self._sync.add_done_callback(lambda _: self._wakeup.set())
        return released

    async def _end_sync(self) -> None:
        if self._sync is not None:
            await self._sync
            self._sync = None
            self._turn.end_sync()

    async def _write(self, records: list[Record]) -> None:
        for attempt in range(1, JOURNAL_ATTEMPTS_MAX + 1):
            try:
                self._journal.append(records)
                break
            except OSError as error:
                self._log.error("checkpoint.failed", attempt=attempt, detail=str(error))
                if attempt == JOURNAL_ATTEMPTS_MAX:
                    raise JournalFailed(f"checkpoint: cannot be written: {error}") from error
                await asyncio.sleep(JOURNAL_PAUSE_S)
        for record in records:
            self._log_record(record)

    def _make_durable(self, identity: IdentityTaken | None) -> None:
        try:
            self._journal.sync(identity)
        except OSError as error:
            # Not tried again: after a failed sync nobody knows what is on the disk.
            raise JournalFailed(f"checkpoint: cannot be made durable: {error}") from error

    async def _compact(self) -> None:
        try:
            await asyncio.to_thread(self._journal.compact, self._machine.snapshot())
        except OSError as error:
            # The journal says what it said, only longer; the next turn tries again.
            self._log.warning("checkpoint.compaction_failed", detail=str(error))

    def _log_record(self, record: Record) -> None:
        match record:
            case StatusMade():
                status = record.status
                self._log.info(
                    "task.moved",
                    framework_id=status.framework_id,
                    task_id=status.task_id,
                    state=status.state.value,
                    sequence=status.sequence,
                    reason=status.reason.value,
                    detail=status.message,
                )
            case TaskLaunched():
                # That it runs, or why it does not, is told next; a line here would be a third of all.
                self._log.debug(
                    "task.launched", framework_id=record.framework_id, task_id=record.spec.task_id
                )
            case IdentityTaken():
                self._log.info(
                    "agent.identified",
                    agent_id=record.agent_id,
                    incarnation=record.incarnation,
                    epoch=record.epoch,
                )
            case _:
                pass
