"""The loop that owns the agent's machine: events in, one turn of it for all that wait, the journal, then the actions.

Nobody else holds the machine, so it needs no lock. All events that wait are taken in one turn and their records
written in one go, before anything that follows from them is done.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from structlog.typing import FilteringBoundLogger

from fairlead_agent.checkpoint import Checkpoint
from fairlead_agent.clock import SteadyClock
from fairlead_agent.core import actions
from fairlead_agent.core.events import Event, Tick
from fairlead_agent.core.machine import AgentMachine
from fairlead_agent.core.records import IdentityTaken, Record, StatusMade, TaskLaunched
from fairlead_proto.pace import Pace
from fairlead_proto.tasks import TaskStatus

INBOX_LENGTH_MAX: Final = 10_000
"""Events waiting to be stepped; whoever feeds more waits. A burst of ten thousand ends is a second of work."""

EVENTS_PER_TURN_MAX: Final = 1_000
"""Events of one turn: some ten milliseconds, after which the streams get their chance."""

BUSY_EVENTS: Final = 100
"""Within 100 ms: then turns wait a moment for company. One task after another, some 6 ms each, makes about 70."""

GATHER_S: Final = 0.005
"""That moment. Longer saves little more, since a turn of five tasks already shares most of its cost."""

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
        self._inbox: deque[Event] = deque()
        self._wakeup = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_over = False
        self._fed_count = 0
        self._stepped_count = 0
        self._pace = Pace(BUSY_EVENTS)
        self._afterwards: deque[tuple[int, Callable[[], None]]] = deque()

    @property
    def machine(self) -> AgentMachine:
        """For looking at, between turns."""
        return self._machine

    def put(self, event: Event) -> None:
        """Take one event without waiting, from where waiting is impossible."""
        self._inbox.append(event)
        self._fed_count += 1
        self._wakeup.set()

    async def feed(self, events: Sequence[Event]) -> None:
        """Take events, in order; waits while too many are waiting already."""
        while len(self._inbox) >= INBOX_LENGTH_MAX and not self._is_over:
            self._has_room.clear()
            await self._has_room.wait()
        self._inbox.extend(events)
        self._fed_count += len(events)
        self._wakeup.set()

    def after(self, call: Callable[[], None]) -> None:
        """Call ``call`` once every event fed so far has been stepped: what looks at the machine must not be too early."""
        if self._stepped_count == self._fed_count:
            call()
        else:
            self._afterwards.append((self._fed_count, call))

    async def run(self) -> actions.LeaveCluster:
        """Step until the machine leaves; give its last action.

        Raises:
            JournalFailed: the disk takes no more records.
        """
        try:
            while True:
                events = await self._take()
                leave = await self._turn(events)
                if leave is not None:
                    return leave
        finally:
            self._is_over = True
            self._has_room.set()

    async def _take(self) -> list[Event]:
        """Wait for events or for the next deadline; a passed deadline is a Tick at the end."""
        inbox = self._inbox
        if not inbox:
            await self._wait()
        if self._pace.is_busy(self._clock.now_ms()):
            # What comes meanwhile shares a line of the journal and a message to the master.
            await asyncio.sleep(GATHER_S)
        batch = [inbox.popleft() for _ in range(min(len(inbox), EVENTS_PER_TURN_MAX))]
        if len(inbox) < INBOX_LENGTH_MAX:
            self._has_room.set()
        self._pace.note(len(batch), self._clock.now_ms())
        deadline_ms = self._machine.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= self._clock.now_ms():
            batch.append(Tick())
        return batch

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

    async def _turn(self, events: list[Event]) -> actions.LeaveCluster | None:
        now_ms = self._clock.now_ms()
        decided = self._machine.turn(events, now_ms)
        self._stepped_count += sum(not isinstance(event, Tick) for event in events)
        while self._afterwards and self._afterwards[0][0] <= self._stepped_count:
            self._afterwards.popleft()[1]()
        checkpoints = [action for action in decided if isinstance(action, actions.Checkpoint)]
        if checkpoints:
            # Those of later events are written earlier than they must be, which breaks no promise.
            await self._write(checkpoints)
        statuses: list[TaskStatus] = []
        for action in decided:
            match action:
                case actions.Checkpoint():
                    continue
                case actions.SendStatuses():
                    statuses += action.statuses
                    continue
                case actions.LeaveCluster():
                    self._send(statuses)
                    return action
                case actions.SendGoodbye() | actions.SendRegistration() | actions.CloseSession():
                    # What was said before them must not come after them.
                    self._send(statuses)
                    statuses = []
                case _:
                    pass
            self._carry_out(action)
        self._send(statuses)
        return None

    def _send(self, statuses: list[TaskStatus]) -> None:
        if statuses:
            self._carry_out(actions.SendStatuses(statuses=tuple(statuses)))

    async def _write(self, checkpoints: list[actions.Checkpoint]) -> None:
        records = [record for checkpoint in checkpoints for record in checkpoint.records]
        for attempt in range(1, JOURNAL_ATTEMPTS_MAX + 1):
            try:
                self._journal.append(records)
                break
            except OSError as error:
                self._log.error("checkpoint.failed", attempt=attempt, detail=str(error))
                if attempt == JOURNAL_ATTEMPTS_MAX:
                    raise JournalFailed(f"checkpoint: cannot be written: {error}") from error
                await asyncio.sleep(JOURNAL_PAUSE_S)
        durable = [
            record
            for checkpoint in checkpoints
            if checkpoint.is_durable
            for record in checkpoint.records
            if isinstance(record, IdentityTaken)
        ]
        if durable:
            await asyncio.to_thread(self._sync, durable[-1])
        if self._journal.is_long():
            await self._compact()
        for record in records:
            self._log_record(record)

    def _sync(self, identity: IdentityTaken) -> None:
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
                self._log.info("task.launched", framework_id=record.framework_id, task_id=record.spec.task_id)
            case IdentityTaken():
                self._log.info(
                    "agent.identified",
                    agent_id=record.agent_id,
                    incarnation=record.incarnation,
                    epoch=record.epoch,
                )
            case _:
                pass
