"""An agent's turns: all that has arrived is taken together, written down, and only then acted on.

Two things are not only written but durable, on the disk, before anybody hears of them: who the agent is and whom it obeys,
for which everything waits; and the statuses of tasks, for which only what goes to the master waits, behind them and in
order. A slow disk delays reports, and neither starts nor ends of tasks, nor heartbeats.

Whoever owns a turn has the clock, the journal and the host: it posts events, runs a turn, writes ``records``, syncs if it
``must_sync``, and carries out what ``release`` gives; when the turn ``wants_sync``, it syncs beside later turns and says when
that is done. The live runner and the simulators are such owners.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from fairlead_agent.core.actions import (
    Action,
    Checkpoint,
    CloseSession,
    LeaveCluster,
    SendGoodbye,
    SendRegistration,
    SendStatuses,
)
from fairlead_agent.core.events import Event, Ordered, ProcessExited, Tick
from fairlead_agent.core.machine import AgentMachine
from fairlead_agent.core.records import IdentityTaken, Record
from fairlead_proto.orders import LaunchTasks

EVENTS_PER_TURN_MAX: Final = 1_000
"""Events of one turn: some ten milliseconds, after which the streams get their chance."""

_IN_ORDER: Final = frozenset({SendStatuses, SendGoodbye, SendRegistration, CloseSession})
"""What waits for statuses to be durable. A heartbeat may overtake them: it says nothing of where tasks are."""


class Turn:
    """The queue and the barrier of one machine."""

    def __init__(self, machine: AgentMachine, *, has_journal: bool = True) -> None:
        """Without a journal nothing is written down, so nothing waits."""
        self.events: deque[Event] = deque()
        """What has arrived; append to it."""
        self.step: Callable[[list[Event], int], list[Action]] = machine.turn
        """Decides on all that a turn takes. May be replaced by what calls it and looks on."""
        self.stepped_count = 0
        """Events taken so far."""
        self.moved_count = 0
        """Tasks that the last turn was asked to launch, or whose processes ended."""
        self.records: list[Record] = []
        """Of the last turn, to be in the journal before ``release``. Those of later events are written earlier than they must
        be, which breaks no promise."""
        self.identity: IdentityTaken | None = None
        """The last of the records that says who the agent is, if one does."""
        self.must_sync = False
        """Whether all that is written must be on the disk before ``release``: for an identity, and for an agent that leaves."""
        self._machine = machine
        self._has_journal = has_journal
        self._has_statuses = False
        """There are new ones among the records."""
        self._waiting: list[Action] = []
        self._free: list[Action] = []
        """In order, with nothing to wait for."""
        self._syncing: list[Action] | None = None
        """In order, behind the sync under way; None if there is none."""
        self._held: list[Action] | None = None
        """In order, behind the next sync; None if none is wanted."""

    def run(self, now_ms: int, *, events_max: int = EVENTS_PER_TURN_MAX) -> None:
        """Take what has arrived, as much as a turn may, and a tick if one is due."""
        assert not self._waiting, f"not released before the next turn: {self._waiting}"
        events = self.events
        batch = [events.popleft() for _ in range(min(len(events), events_max))]
        self.stepped_count += len(batch)
        self.moved_count = sum(map(_moved_count, batch))
        if self._machine.may_be_due_before(now_ms + 1):
            deadline_ms = self._machine.next_deadline_ms()
            if deadline_ms is not None and deadline_ms <= now_ms:
                batch.append(Tick())
        self.records, self.identity, self._has_statuses = [], None, False
        self.must_sync = False
        for action in self.step(batch, now_ms):
            if not isinstance(action, Checkpoint):
                self._waiting.append(action)
                self.must_sync |= type(action) is LeaveCluster
            elif self._has_journal:
                self._write(action)

    def _write(self, checkpoint: Checkpoint) -> None:
        self.records += checkpoint.records
        if checkpoint.is_durable:
            # If a step has one, it is the first.
            first = checkpoint.records[0]
            if isinstance(first, IdentityTaken):
                self.identity, self.must_sync = first, True
            else:
                self._has_statuses = True

    def release(self) -> list[Action]:
        """What follows, once the records are written: as decided, what is held by a sync later and in order."""
        if self.must_sync:
            self._let_go(self._syncing)
            self._let_go(self._held)
            self._held = None
        elif self._has_statuses and self._held is None:
            self._held = []
        behind = self._free
        if self._held is not None:
            behind = self._held
        elif self._syncing is not None:
            behind = self._syncing
        released: list[Action] = []
        last: list[Action] = []
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            if type(action) is SendRegistration:
                self._forget_session()
            if type(action) is LeaveCluster:
                last = last or [action]
            elif last:
                continue  # Nothing follows, but that a session began.
            elif type(action) in _IN_ORDER:
                _add(behind, action)
            else:
                released.append(action)
        released += self._free
        self._free.clear()
        return released + last

    def _let_go(self, actions: list[Action] | None) -> None:
        for action in actions or ():
            _add(self._free, action)
        if actions is not None:
            actions.clear()

    def _forget_session(self) -> None:
        """What is held was for the session before: the registration says all of it, and must be first in its own."""
        for queue in (self._free, self._syncing, self._held):
            if queue is not None:
                queue.clear()

    @property
    def wants_sync(self) -> bool:
        """Whether something waits for what is written to be durable, and nobody sees to that."""
        return self._held is not None and self._syncing is None

    def begin_sync(self) -> None:
        """What is written by now is being made durable."""
        self._syncing, self._held = self._held, None

    def end_sync(self) -> None:
        """It is durable: what waited for it is released next."""
        self._let_go(self._syncing)
        self._syncing = None


def _moved_count(event: Event) -> int:
    if isinstance(event, Ordered):
        return len(event.order.tasks) if isinstance(event.order, LaunchTasks) else 0
    return isinstance(event, ProcessExited)


def _add(queue: list[Action], action: Action) -> None:
    """Put an action behind others; statuses behind statuses are one message."""
    if queue and type(action) is SendStatuses:
        last = queue[-1]
        if type(last) is SendStatuses:
            queue[-1] = SendStatuses(statuses=(*last.statuses, *action.statuses))
            return
    queue.append(action)
