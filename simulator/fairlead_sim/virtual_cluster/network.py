"""A network that loses, delays, repeats and cuts, within what a stream of gRPC can do.

The unit is a *connection*: one stream each way, in which messages keep their order. So a single message is never lost
alone: the connection breaks, and with it goes whatever is under way in either direction; each end learns of that by
itself, after a time of its own, and may have a new connection before the other has noticed. Messages of different
connections overtake each other freely. A *stall* holds up one direction of a connection and then lets everything
through in order, which is what a paused process, a full buffer or a partition that heals in time look like.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fairlead_sim.engine import Engine

Message = list[Any]
"""What one end says in one go, in order: never looked into. Down it is what one turn of the master has for a peer."""

KEEPALIVE_MS: Final = 10_000
"""A connection stalled for longer is given up by both ends: HTTP/2 pings every few seconds, and a few may fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOptions:
    """What goes wrong and how often. The defaults are a network in which nothing does."""

    delay_min_ms: int = 0
    delay_max_ms: int = 1
    """One way; drawn evenly for each message, then held back behind what was sent before it."""
    break_fraction: float = 0.0
    """Of messages that take their connection down instead of arriving."""
    notice_max_ms: int = 0
    """How long an end may take to notice that its connection broke; drawn for each end."""
    reconnect_min_ms: int = 10
    reconnect_max_ms: int = 100
    """From noticing to the next attempt, and between attempts; drawn evenly."""
    stall_fraction: float = 0.0
    """Of messages that begin a stall of their direction."""
    stall_max_ms: int = 0
    opens_at_once: bool = False
    """Whether the first message of a connection, and its answer, take no time: peers are there before anything is measured."""
    repeat_fraction: float = 0.0
    """Of messages that arrive twice, the copy right behind the original, as a shell that retries would send them. First
    messages of a connection are never repeated: by contract they open a session."""


@dataclass(frozen=True, slots=True)
class End:
    """What one end of its connections does with what comes out of them."""

    received: Callable[["Connection", Message], None]
    lost: Callable[["Connection"], None]
    """Said once of a connection that is over and that this end did not close itself."""
    settled: Callable[[], None] = lambda: None
    """Called when all that comes out at a moment, of all connections, has been received."""
    opened: Callable[["Connection", Message], Message] | None = None
    """Takes a first message and answers it, where that takes no time."""


class Connection:
    """One stream each way between a peer and the master."""

    def __init__(self, network: "Network", number: int, peer: End, host: End) -> None:
        self.number = number
        """Never given to two connections of one network: what the master calls a session."""
        self.epoch = 0
        """Of the master at the other end, which says so when it takes the first message."""
        self._network = network
        self._engine = network.engine
        self._peer = peer
        self._host = host
        self._is_up_alive = self._is_down_alive = True
        self._up_ms = self._down_ms = 0
        """When the last message sent in this direction arrives."""

    @property
    def is_open(self) -> bool:
        """Whether anything sent now may arrive somewhere."""
        return self._is_up_alive or self._is_down_alive

    def open(self, message: Message) -> None:
        """Send the first message to the master. It is neither lost nor repeated: by contract it opens a session."""
        host = self._host.opened
        if self._network.options.opens_at_once and host is not None:
            answer = host(self, message)
            if answer:
                self._peer.received(self, answer)
        elif self._is_up_alive:
            self._send_up(message)

    def send_up(self, message: Message) -> None:
        """Send to the master."""
        network = self._network
        if network.is_even:
            if self._is_up_alive:
                network.gather(self, message)
        elif self._is_up_alive and not self._breaks():
            for _ in range(network.copies()):
                self._send_up(message)

    def _send_up(self, message: Message) -> None:
        self._up_ms = self._network.arrival_ms(self._up_ms)
        self._engine.at(self._up_ms, partial(self._network.arrive, [(self, message)]))

    def send_down(self, message: Message) -> None:
        """Send to the peer."""
        if not self._is_down_alive or self._breaks():
            return
        for _ in range(self._network.copies()):
            self._down_ms = self._network.arrival_ms(self._down_ms)
            self._engine.at(self._down_ms, partial(self.arrive_down, message))

    def end(self, message: Message) -> None:
        """The master says a last thing and closes: what it sent still arrives, what is under way to it does not."""
        self.send_down(message)
        self._is_up_alive = False
        self._engine.at(self._down_ms, self._end_down)

    def close(self) -> None:
        """The peer closes: what it sent still arrives, then the master notices."""
        self._is_down_alive = False
        network = self._network
        # What was gathered is not in ``_up_ms``.
        gathered_ms = network.arrival_ms(0) if network.is_even else self._engine.now_ms
        self._engine.at(max(self._up_ms, gathered_ms), self._end_up)

    def break_off(self) -> None:
        """Everything under way is lost; both ends will notice. Repeats are harmless."""
        if self.is_open:
            was_up, was_down = self._is_up_alive, self._is_down_alive
            self._is_up_alive = self._is_down_alive = False
            if was_up:
                self._engine.after(self._network.notice_ms(), self._tell_host)
            if was_down:
                self._engine.after(self._network.notice_ms(), self._tell_peer)

    def stall(self, duration_ms: int, *, up: bool, down: bool) -> None:
        """Hold up one direction or both; longer than the keepalive breaks the connection."""
        self._network.is_even = False
        until_ms = self._engine.now_ms + duration_ms
        self._up_ms = max(self._up_ms, until_ms if up else 0)
        self._down_ms = max(self._down_ms, until_ms if down else 0)
        if duration_ms > KEEPALIVE_MS:
            self._engine.after(KEEPALIVE_MS, self.break_off)

    def _breaks(self) -> bool:
        network = self._network
        if network.happens(network.options.break_fraction):
            self.break_off()
            return True
        if network.happens(network.options.stall_fraction):
            is_up = network.happens(0.5)
            self.stall(network.draw(1, network.options.stall_max_ms), up=is_up, down=not is_up)
        return False

    def arrive_up(self, message: Message) -> None:
        """A message has come out at the master's end. For the network alone to call."""
        if self._is_up_alive:
            self._host.received(self, message)

    def arrive_down(self, message: Message) -> None:
        """A message has come out at the peer's end. For the network alone to call."""
        if self._is_down_alive:
            self._peer.received(self, message)

    def _end_up(self) -> None:
        if self._is_up_alive:
            self._is_up_alive = False
            self._tell_host()

    def _end_down(self) -> None:
        if self._is_down_alive:
            self._is_down_alive = False
            self._tell_peer()

    def _tell_host(self) -> None:
        self._host.lost(self)

    def _tell_peer(self) -> None:
        self._peer.lost(self)


class Network:
    """All connections to one host."""

    def __init__(self, engine: Engine, options: NetworkOptions, host: End) -> None:
        self.engine = engine
        self.is_even = False
        """Whether every message takes the same time and nothing happens to any: then all of one moment go together, which is
        what makes simulations of millions of messages quick. For this file alone to change."""
        self.options = options
        self.is_host_up = True
        self._host = host
        self._cut: dict[str, int] = {}
        """Who reaches nobody, and until when."""
        self._open: list[tuple[str, Connection]] = []
        self._number = 0
        self._gathered: list[tuple[Connection, Message]] = []
        """Sent in this millisecond, where the network is even."""
        self._gathered_ms: int | None = None

    @property
    def options(self) -> NetworkOptions:
        """May be replaced at any time: what is under way arrives as it was drawn."""
        return self._options

    @options.setter
    def options(self, options: NetworkOptions) -> None:
        self._options = options
        faults = options.break_fraction + options.stall_fraction + options.repeat_fraction
        self.is_even = not faults and options.delay_min_ms == options.delay_max_ms

    def gather(self, connection: Connection, message: Message) -> None:
        """Have a message arrive together with all that is sent to the master in this millisecond."""
        at_ms = self.engine.now_ms + self._options.delay_min_ms
        if at_ms != self._gathered_ms:
            self._gathered_ms, self._gathered = at_ms, []
            self.engine.after(self._options.delay_min_ms, partial(self.arrive, self._gathered))
        self._gathered.append((connection, message))

    def arrive(self, messages: list[tuple[Connection, Message]]) -> None:
        """Messages come out at the master's end. For connections alone to call."""
        if messages is self._gathered:
            # What follows at once, where the network takes no time, goes by itself.
            self._gathered_ms = None
        for connection, message in messages:
            connection.arrive_up(message)
        self._host.settled()

    def deliver(self, messages: list[tuple[Connection, Message]]) -> None:
        """Send what one turn of the master has for its peers."""
        if self.is_even:
            self.engine.after(self._options.delay_min_ms, partial(_arrive_down, messages))
            return
        for connection, message in messages:
            connection.send_down(message)

    def dial(self, name: str, peer: End) -> Connection | None:
        """A new connection; None if the master is down or the peer is cut off."""
        if not self.is_host_up or self._cut.get(name, 0) > self.engine.now_ms:
            return None
        self._number += 1
        connection = Connection(self, self._number, peer, self._host)
        self._open = [item for item in self._open if item[1].is_open]
        self._open.append((name, connection))
        return connection

    def cut(self, name: str, duration_ms: int, *, up: bool = True, down: bool = True) -> None:
        """Part a peer from the master for a time, in one direction or both."""
        if up and down:
            self._cut[name] = self.engine.now_ms + duration_ms
        for owner, connection in self._open:
            if owner == name:
                connection.stall(duration_ms, up=up, down=down)

    def break_all(self, name: str | None = None) -> None:
        """Break the connections of one peer, or of all: its process died."""
        for owner, connection in self._open:
            if name in (None, owner):
                connection.break_off()

    def heal(self) -> None:
        """End all cuts; stalls end by themselves."""
        self._cut.clear()

    def arrival_ms(self, not_before_ms: int) -> int:
        """When a message sent now arrives, given when the one before it does."""
        return max(
            not_before_ms,
            self.engine.now_ms + self.draw(self.options.delay_min_ms, self.options.delay_max_ms),
        )

    def notice_ms(self) -> int:
        """How long one end takes to notice a break."""
        return self.draw(0, self.options.notice_max_ms)

    def reconnect_ms(self) -> int:
        """How long a peer waits before it dials again."""
        return self.draw(self.options.reconnect_min_ms, self.options.reconnect_max_ms)

    def copies(self) -> int:
        """How often a message arrives."""
        return 2 if self.happens(self.options.repeat_fraction) else 1

    def happens(self, fraction: float) -> bool:
        """Whether something of this likelihood happens; without a draw if it cannot."""
        return fraction > 0 and self.engine.random.random() < fraction

    def draw(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``; without a draw if there is no choice."""
        return self.engine.random.randint(low, high) if low < high else low


def _arrive_down(messages: list[tuple[Connection, Message]]) -> None:
    for connection, message in messages:
        connection.arrive_down(message)
