"""A framework's stream to a virtual master: the messages of a live one, over a connection of the simulated network.

What a live master's session does at its border is done here: calls are read and checked by the same code, and what one turn
has for the framework is written into as few messages.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from fairlead_master import framework_wire
from fairlead_master.core import actions, events
from fairlead_proto.codes import ErrorCode
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.v1 import framework_pb2
from fairlead_sdk.errors import LinkBroken
from fairlead_sim.cluster import Cluster
from fairlead_sim.cluster_framework import Delivery
from fairlead_sim.network import Connection, End, Message
from fairlead_sim.testing.virtual_clock import VirtualClock

OnAccept = Callable[["MemoryLink", events.OfferAccepted], bool]
"""Asked of each accept; whether it was dealt with and is not to be sent."""


class MemoryLink:
    """The framework's end of a stream; ``push`` and ``cut`` are for tests that play the network's part."""

    def __init__(self, cluster: Cluster, clock: VirtualClock, heartbeat_ms: int, on_accept: OnAccept) -> None:
        """Dial.

        Raises:
            LinkBroken: the master is down.
        """
        connection = cluster.network.dial("framework", End(self._received, self._lost))
        if connection is None:
            raise LinkBroken("the master is down")
        self.broken = ""
        """Why the stream is over; empty while it stands."""
        self._connection = connection
        self._kinds = cluster.kinds
        self._clock = clock
        self._heartbeat_ms = heartbeat_ms
        self._on_accept = on_accept
        self._epoch = 0
        self._is_greeted = False
        self._orders: list[actions.ToFramework] = []
        """Of one turn of the master, not written yet."""
        self._inbox: deque[framework_pb2.FrameworkEvents] = deque()
        self._arrived = asyncio.Event()

    # --- the framework's end ---

    async def send(self, calls: framework_pb2.FrameworkCalls) -> None:
        """Hand a message to the master; see ``Link``."""
        if self.broken:
            raise LinkBroken(self.broken)
        for call in calls.calls:
            if not self.broken:
                self._send(call)
        self._clock.note()
        self._clock.soon()

    async def receive(self) -> framework_pb2.FrameworkEvents:
        """Take the next message of the master; see ``Link``. What arrived before the end is still read."""
        while not self._inbox:
            if self.broken:
                raise LinkBroken(self.broken)
            self._arrived.clear()
            await self._arrived.wait()
        self._clock.note()
        return self._inbox.popleft()

    async def finish(self) -> None:
        """End the stream in good order; see ``Link``."""
        self.leave("the framework ended the stream")

    def abort(self, reason: str) -> None:
        """End the stream; see ``Link``."""
        self.leave(reason)

    # --- for faults ---

    def send_up(self, event: events.Event) -> None:
        """Have the master take an event."""
        self._connection.send_up(event)

    def leave(self, reason: str) -> None:
        """End the stream from the framework's side: what was sent arrives, answers do not."""
        if not self.broken:
            self.cut(reason)
            self._connection.close()
            self._clock.soon()

    def break_off(self, reason: str) -> None:
        """Break the stream: what is under way is lost. What the framework has not read yet it still reads."""
        self.cut(reason)
        self._connection.break_off()

    def refuse(self, code: ErrorCode, detail: str) -> None:
        """End the session with this error, as a master does."""
        self.push(actions.EndFrameworkSession(session=self.session, code=code, detail=detail))
        self.leave(f"{code.value.lower()}: {detail}")

    def cut(self, reason: str) -> None:
        """Say that the stream is over."""
        self.broken = self.broken or reason
        self._clock.note()
        self._arrived.set()

    def push(self, *orders: actions.ToFramework) -> None:
        """Give the framework a message."""
        batches = framework_wire.write_actions(
            orders, self._kinds, epoch=self._epoch, heartbeat_interval_ms=self._heartbeat_ms
        )
        for batch in batches:
            self._put(batch)

    # --- inside ---

    @property
    def session(self) -> int:
        """What the master calls it."""
        return self._connection.number

    def _send(self, call: framework_pb2.FrameworkCall) -> None:
        if not self._is_greeted:
            self._greet(call)
            return
        try:
            read = framework_wire.read_call(self.session, call, self._kinds)
        except InvalidFieldError as error:
            answer = framework_wire.write_invalid(call, error)
            self._put(framework_pb2.FrameworkEvents(epoch=self._epoch, events=[answer]))
            return
        for event in read:
            if not isinstance(event, events.OfferAccepted) or not self._on_accept(self, event):
                self._connection.send_up(event)

    def _greet(self, call: framework_pb2.FrameworkCall) -> None:
        try:
            hello = framework_wire.read_hello(self.session, call)
        except InvalidFieldError as error:
            self.refuse(ErrorCode.INVALID, str(error))
            return
        self._is_greeted = True
        self._connection.send_up(hello, is_first=True)
        self._clock.call_later(self._heartbeat_ms, self._beat)

    def _received(self, _connection: Connection, message: Message) -> None:
        assert isinstance(message, Delivery), f"a framework: expected a delivery, got {message}"
        if self.broken:
            return
        self._epoch = message.epoch
        self._orders.append(message.action)
        if len(self._orders) == 1:
            self._clock.engine.after(0, self._flush)

    def _flush(self) -> None:
        orders, self._orders = self._orders, []
        if orders:
            self.push(*orders)

    def _lost(self, _connection: Connection) -> None:
        self._flush()
        self.cut("the master ended the stream")

    def _beat(self) -> None:
        if not self.broken:
            beat = framework_pb2.Heartbeat(master_time_ms=self._clock.unix_ms())
            event = framework_pb2.FrameworkEvent(heartbeat=beat)
            self._put(framework_pb2.FrameworkEvents(epoch=self._epoch, events=[event]))
            self._clock.call_later(self._heartbeat_ms, self._beat)

    def _put(self, message: framework_pb2.FrameworkEvents) -> None:
        self._inbox.append(message)
        self._clock.note()
        self._arrived.set()
