"""An agent's turns: all that has arrived is taken together, written down, and only then acted on.

Whoever owns a turn has the clock, the journal and the host: it posts events, runs a turn, writes ``records`` and makes
``identity`` durable, and carries out what ``release`` gives. The live runner and the simulators are such owners.
"""

from collections import deque
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
from fairlead_agent.core.events import Event, Tick
from fairlead_agent.core.machine import AgentMachine
from fairlead_agent.core.records import IdentityTaken, Record
from fairlead_proto.tasks import TaskStatus

EVENTS_PER_TURN_MAX: Final = 1_000
"""Events of one turn: some ten milliseconds, after which the streams get their chance."""

_AFTER_STATUSES: Final = frozenset({SendGoodbye, SendRegistration, CloseSession, LeaveCluster})
"""What was said before them must not come after them."""


class Turn:
    """The queue and the barrier of one machine."""

    def __init__(self, machine: AgentMachine) -> None:
        self.events: deque[Event] = deque()
        """What has arrived; append to it."""
        self.stepped_count = 0
        """Events taken so far."""
        self.records: list[Record] = []
        """Of the last turn, to be in the journal before ``release``. Those of later events are written earlier than they must
        be, which breaks no promise."""
        self.identity: IdentityTaken | None = None
        """The last of the records that must survive a crash of the host, if one must."""
        self._machine = machine
        self._waiting: list[Action] = []

    def run(self, now_ms: int, *, events_max: int = EVENTS_PER_TURN_MAX) -> None:
        """Take what has arrived, as much as a turn may, and a tick if one is due."""
        assert not self._waiting, f"not released before the next turn: {self._waiting}"
        events = self.events
        batch = [events.popleft() for _ in range(min(len(events), events_max))]
        self.stepped_count += len(batch)
        if self._machine.may_be_due_before(now_ms + 1):
            deadline_ms = self._machine.next_deadline_ms()
            if deadline_ms is not None and deadline_ms <= now_ms:
                batch.append(Tick())
        self.records, self.identity = [], None
        for action in self._machine.turn(batch, now_ms):
            if isinstance(action, Checkpoint):
                self._write(action)
            else:
                self._waiting.append(action)

    def _write(self, checkpoint: Checkpoint) -> None:
        self.records += checkpoint.records
        if checkpoint.is_durable:
            self.identity = next(
                record for record in reversed(checkpoint.records) if isinstance(record, IdentityTaken)
            )

    def release(self) -> list[Action]:
        """What follows, once the records are written: as decided, with the statuses in one message as late as may be."""
        released: list[Action] = []
        statuses: list[TaskStatus] = []
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            if isinstance(action, SendStatuses):
                statuses += action.statuses
                continue
            if statuses and type(action) in _AFTER_STATUSES:
                released.append(SendStatuses(statuses=tuple(statuses)))
                statuses.clear()
            released.append(action)
            if isinstance(action, LeaveCluster):
                return released
        if statuses:
            released.append(SendStatuses(statuses=tuple(statuses)))
        return released
