"""The master's shell: its machine's turns on all that arrived, and what they decided sent to each peer in one message."""

import sys
from collections.abc import Callable, Mapping
from functools import partial

from fairlead_master.core import actions, events
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_master.core.turn import Turn
from fairlead_proto.resources import ResourceKinds
from fairlead_sim.engine import Engine
from fairlead_sim.whole.turns import Reminder

Order = actions.Action
"""One for a session, that is."""
Receive = Callable[[list[Order]], None]
"""What a peer does with a message: all that one turn has for it, in order."""


class MasterShell:
    """One master that does not fail, and its sessions, which do not break. What it writes down is not kept."""

    def __init__(self, engine: Engine, settings: CoreSettings, network_ms: int) -> None:
        self.machine = Machine(ResourceKinds(), settings, Remembered(epoch=1), engine.now_ms)
        self._turn = Turn(self.machine, None)
        self._engine = engine
        self._network_ms = network_ms
        self._peers: dict[int, Receive] = {}
        self._sessions = 0
        self._arriving: list[events.Event] = []
        """All that is sent in this millisecond, and arrives together."""
        self._arriving_ms: int | None = None
        self._reminder = Reminder(engine, lambda: self.machine.next_deadline_ms(engine.now_ms), self._plan)

    def connect(self, make: Callable[[int], events.Event], receive: Receive) -> list[Order]:
        """A new session, opened at once by the event ``make`` gives for its number; gives the first answer."""
        self._sessions += 1
        session = self._sessions
        self._peers[session] = receive
        self._turn.take(make(session), self._engine.now_ms)
        outgoing, _ = self._turn.collect()
        # Whatever else follows has time until the next turn.
        self._plan()
        return outgoing.get(session, [])

    def send(self, message: list[events.Event]) -> None:
        """A peer sends a message: events of one session, in order."""
        at_ms = self._engine.now_ms + self._network_ms
        if at_ms != self._arriving_ms:
            self._arriving_ms, self._arriving = at_ms, []
            self._engine.after(self._network_ms, partial(self._run_turn, self._arriving))
        self._arriving += message

    def _plan(self) -> None:
        """Have a turn after all that happens now."""
        self._engine.after(0, partial(self._run_turn, []))

    def disconnect(self, session: int) -> None:
        """A framework closes its session: what it sent before still arrives, what is under way to it does not."""
        del self._peers[session]
        self.send([events.FrameworkDisconnected(session=session)])

    def _run_turn(self, arrived: list[events.Event]) -> None:
        if arrived is self._arriving:
            self._arriving_ms = (
                None  # What follows at once, where the network takes no time, is for another turn.
            )
        turn, now_ms = self._turn, self._engine.now_ms
        turn.events.extend(arrived)
        self._reminder.by(turn.run(lambda: now_ms, events_max=sys.maxsize))
        outgoing, _ = turn.collect()
        if outgoing:
            self._engine.after(self._network_ms, partial(self._deliver, outgoing))

    def _deliver(self, outgoing: Mapping[int, list[Order]]) -> None:
        for session, orders in outgoing.items():
            receive = self._peers.get(session)
            if receive is not None:
                receive(orders)
