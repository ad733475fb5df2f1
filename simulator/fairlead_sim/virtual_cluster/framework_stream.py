"""A framework's end of a simulated connection: the messages a framework of the SDK sends and is sent.

What a live master's session does at its border is done here, by the same code: calls are read and checked, and what one turn
of the master has for the framework is written into as few messages as live.
"""

from collections.abc import Callable

from fairlead_master import framework_wire
from fairlead_master.core import events
from fairlead_proto import framework_messages
from fairlead_proto.codes import ErrorCode
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.framework_call_messages import read_hello
from fairlead_proto.framework_events import EndFrameworkSession, Heartbeat, ToFramework
from fairlead_proto.peers import NONE, Capabilities, read_capabilities
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.v1 import framework_pb2
from fairlead_sim.virtual_cluster.network import Connection, End, Message, Network


class FrameworkStream:
    """One stream, from Hello to its end."""

    def __init__(
        self,
        network: Network,
        name: str,
        kinds: ResourceKinds,
        *,
        received: Callable[[framework_pb2.FrameworkEvents], None],
        ended: Callable[[], None],
        takes: Callable[[events.OfferAccepted], bool] = lambda _: False,
    ) -> None:
        """Dial; ``is_open`` says whether somebody answered.

        Args:
            network: to the master.
            name: the framework's, on the network.
            kinds: the cluster's resources.
            received: is given each message.
            ended: is told of an end that comes from the other side, or from the network.
            takes: asked of each accept whether somebody else takes it, so that it is not sent.
        """
        self._engine = network.engine
        self._kinds = kinds
        self._on_received = received
        self._on_ended = ended
        self._takes = takes
        self._epoch = 0
        self._is_greeted = False
        self._peer: Capabilities = NONE
        self._orders: list[ToFramework | Heartbeat] = []
        """Of one moment, not written yet."""
        self._connection = network.dial(name, End(self._received, self._lost))

    @property
    def is_open(self) -> bool:
        """Whether it stands, as far as is known at this end."""
        return self._connection is not None

    @property
    def session(self) -> int:
        """What the master calls it."""
        assert self._connection is not None, "the stream is over"
        return self._connection.number

    def send(self, calls: framework_pb2.FrameworkCalls) -> None:
        """Send a message; what is wrong with a call of it is answered at once."""
        for call in calls.calls:
            if self._connection is None:
                return
            try:
                if not self._is_greeted:
                    self._is_greeted = True
                    self._peer = read_capabilities(call.hello.capabilities)
                    self._connection.open([read_hello(self.session, call)])
                    continue
                read = framework_wire.read_call(self.session, call, self._kinds)
            except InvalidFieldError as error:
                self._refuse(call, error)
                continue
            for event in read:
                if not isinstance(event, events.OfferAccepted) or not self._takes(event):
                    self.send_up(event)

    def send_up(self, event: events.Event) -> None:
        """Have the master take an event."""
        if self._connection is not None:
            self._connection.send_up([event])

    def close(self) -> None:
        """End the stream: what was sent arrives, answers do not. Repeats are harmless."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def break_off(self) -> None:
        """Break the stream: what is under way in either direction is lost. Repeats are harmless."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.break_off()

    def push(self, *orders: ToFramework | Heartbeat) -> None:
        """Give the framework a message."""
        for batch in framework_messages.write_events(orders, self._kinds, epoch=self._epoch, peer=self._peer):
            self._on_received(batch)

    def _refuse(self, call: framework_pb2.FrameworkCall, error: InvalidFieldError) -> None:
        if call.WhichOneof("call") == "hello" or not self._epoch:
            code = ErrorCode.INVALID
            self.push(EndFrameworkSession(session=self.session, code=code, detail=str(error)))
            self.close()
            self._on_ended()
            return
        answer = framework_wire.write_invalid(call, error)
        self._on_received(framework_pb2.FrameworkEvents(epoch=self._epoch, events=[answer]))

    def _received(self, connection: Connection, message: Message) -> None:
        if self._connection is None:
            return
        self._epoch = connection.epoch
        if not self._orders:
            self._engine.after(0, self._flush)
        self._orders += message

    def _flush(self) -> None:
        orders, self._orders = self._orders, []
        if orders and self._connection is not None:
            self.push(*orders)

    def _lost(self, _connection: Connection) -> None:
        if self._connection is not None:
            self._flush()
            self._connection = None
            self._on_ended()
