"""The connection to an MQTT broker: begun again when it breaks, never waited for by whoever publishes.

Messages wait in a queue of bounded size; when it is full the oldest is dropped and counted. Every message of a topic has
the next ``sequence`` number, so a reader sees from a gap that something was dropped. Of a retained topic only the latest
message counts: it is kept apart and sent again after every connection, so that a broker that forgot it has it back.

A message of quality 1 is sent again until the broker has confirmed it, so it may come twice, under one number.
"""

import asyncio
import contextlib
import logging
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiomqtt
import orjson
from structlog.typing import FilteringBoundLogger

from fairlead_proto.backoff import Backoff
from fairlead_telemetry.broker import BrokerOptions, Counters

QUEUE_MESSAGES_MAX: Final = 2_000
QUEUE_BYTES_MAX: Final = 8 * 1024 * 1024
"""What waits for a broker that is away or slow: some seconds of a busy cluster, some minutes of a quiet one."""

ANSWER_TIMEOUT_S: Final = 3.0
"""For the broker's answer to a connection or subscription. The library does not notice when a full broker hangs up instead."""

CONFIRM_TIMEOUT_S: Final = 10.0
"""For the broker to take one message; then the connection is taken for dead."""

CONNECT_TIMEOUT_S: Final = 2.0
"""For the transport, in a thread that a process which ends has to wait for."""

PAUSE_FIRST_MS: Final = 250
PAUSE_MAX_MS: Final = 30_000
"""Between attempts. A broker that refuses the credentials is asked twice a minute."""

STABLE_S: Final = 5.0
"""A connection that lasted as long was a good one: the next pause is the first again."""

CLOSE_TIMEOUT_S: Final = 1.0
"""For the last words of a process that ends."""

Fields = dict[str, Any]

_LIBRARY_LOG: Final = logging.getLogger("fairlead_telemetry.library")
_LIBRARY_LOG.propagate = False
"""What the library says of connections this file says itself, in the log's format."""
_LIBRARY_LOG.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message from the broker."""

    topic: str
    payload: bytes
    is_retained: bool


@dataclass(slots=True)
class _Waiting:
    topic: str
    payload: bytes
    qos: int
    is_retained: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """How a process says that it is there. The broker says for it that it is not, when its connection breaks."""

    identity: str
    """The client's identifier at the broker, the same after a restart: a new connection ends the old one, whose will then
    comes before the first word of the new one and not after it."""
    topic: str
    online: Callable[[], Fields]
    offline: Callable[[], Fields]
    """The last will, made when a connection begins."""


class BrokerLink:
    """One process's connection to its broker. ``publish`` and ``retain`` never wait and never raise."""

    def __init__(
        self,
        options: BrokerOptions,
        presence: Presence | None,
        *,
        identity: str = "",
        subscriptions: tuple[str, ...] = (),
        on_message: Callable[[Incoming], None] | None = None,
        random: Callable[[], float],
        log: FilteringBoundLogger,
    ) -> None:
        """Prepare; nothing is connected before ``start``.

        Args:
            options: which broker.
            presence: what to announce; None for a mere listener.
            identity: of a listener, the client's identifier; empty lets the broker choose.
            subscriptions: topic filters, subscribed after every connection.
            on_message: takes what comes; must be quick and must not raise.
            random: numbers in [0, 1), for the jitter of pauses.
            log: where connections and their ends are logged.
        """
        self._options = options
        self._presence = presence
        self._identity = presence.identity if presence is not None else identity
        self._subscriptions = subscriptions
        self._on_message = on_message
        self._random = random
        self._log = log
        self._queue: deque[_Waiting] = deque()
        self._queue_bytes = 0
        self._retained: dict[str, _Waiting] = {}
        self._unsent: dict[str, None] = {}
        """Retained topics whose latest message the broker does not have, in the order they were published."""
        self._sequences: dict[str, int] = {}
        self._started_ms = time.time_ns() // 1_000_000
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.counters = Counters()
        self.first_connected = asyncio.Event()
        self.subscribed = asyncio.Event()
        """Set while a connection has all subscriptions."""
        self.detail = ""
        """Why there is no connection; empty if there is one, or nothing was tried yet."""

    @property
    def url(self) -> str:
        """Of the broker, without credentials."""
        return self._options.url

    # --- publishing ----------------------------------------------------------------------------------------------

    def publish(self, topic: str, fields: Mapping[str, Any], *, qos: int = 0) -> None:
        """Queue a message; the oldest goes if there is no room."""
        waiting = _Waiting(topic, self._encode(topic, fields), qos)
        self._queue.append(waiting)
        self._queue_bytes += len(waiting.payload)
        while len(self._queue) > QUEUE_MESSAGES_MAX or self._queue_bytes > QUEUE_BYTES_MAX:
            self._queue_bytes -= len(self._queue.popleft().payload)
            self.counters.dropped += 1
        self._wake.set()

    def retain(self, topic: str, fields: Mapping[str, Any]) -> None:
        """Replace what the broker keeps of a topic."""
        self._retained[topic] = _Waiting(topic, self._encode(topic, fields), 1, is_retained=True)
        if topic in self._unsent:
            self.counters.dropped += 1
        self._unsent[topic] = None
        self._wake.set()

    def skip(self, topic: str, *, messages: int) -> None:
        """Count messages as dropped before they were made: their numbers will be missing."""
        self._sequences[topic] = self._sequences.get(topic, 0) + messages
        self.counters.dropped += messages

    def _encode(self, topic: str, fields: Mapping[str, Any]) -> bytes:
        sequence = self._sequences[topic] = self._sequences.get(topic, 0) + 1
        return orjson.dumps({**fields, "sequence": sequence, "publisher_since_ms": self._started_ms})

    # --- the connection ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to hold one connection after the other, until ``stop``."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="broker")

    async def stop(self, last: Fields | None = None) -> None:
        """Send what waits, then ``last`` as the status, for a bounded time; then disconnect, so that no will is told."""
        if self._task is None:
            return
        if last is not None and self._presence is not None:
            self.retain(self._presence.topic, last)
        self._closing.set()
        self._wake.set()
        await asyncio.wait((self._task,), timeout=2 * CLOSE_TIMEOUT_S)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        backoff = Backoff(self._random, first_ms=PAUSE_FIRST_MS, longest_ms=PAUSE_MAX_MS)
        said = ""
        while not self._closing.is_set():
            began_s = time.monotonic()
            try:
                await self._hold_connection()
            except Exception as error:
                # Whatever a broker or the library does: it must not reach the cluster.
                self.detail = self._described(error)
            finally:
                self.counters.is_connected = False
                self.subscribed.clear()
            if time.monotonic() - began_s > STABLE_S:
                backoff.reset()
                said = ""
            if self.detail != said:
                dropped = self.counters.dropped
                self._log.warning("broker.away", broker=self.url, detail=self.detail, dropped_count=dropped)
                said = self.detail
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(backoff.next_ms() / 1000):
                    await self._closing.wait()

    def _described(self, error: Exception) -> str:
        said = str(error) or type(error).__name__
        if not self._options.is_tls or self.counters.is_connected:
            return said
        cause = error.__cause__ or error.__context__ or error  # the library hides it behind its own
        if not isinstance(cause, ConnectionResetError | ssl.SSLEOFError) and "WRONG_VERSION" not in said:
            return said
        return (
            f"{said} (no answer in TLS there: expected the broker's port for TLS, or mqtt:// for one without)"
        )

    async def _hold_connection(self) -> None:
        """Serve one connection until it breaks, which raises, or until ``stop``."""
        async with self._client() as client:
            self.counters.connections += 1
            self.counters.is_connected = True
            self.first_connected.set()
            self.detail = ""
            self._log.info("broker.connected", broker=self.url)
            for topic_filter in self._subscriptions:
                await client.subscribe(topic_filter, qos=1)
            self.subscribed.set()
            if self._presence is not None and not self._closing.is_set():
                self.retain(self._presence.topic, self._presence.online())
            self._unsent = dict.fromkeys(self._retained)
            await self._serve(client)

    @contextlib.asynccontextmanager
    async def _client(self) -> AsyncIterator[aiomqtt.Client]:
        options = self._options
        context = (
            await asyncio.to_thread(ssl.create_default_context, cafile=options.ca and str(options.ca))
            if options.is_tls
            else None
        )
        will = None
        if self._presence is not None:
            payload = orjson.dumps(self._presence.offline())
            will = aiomqtt.Will(self._presence.topic, payload, qos=1, retain=True)
        client = aiomqtt.Client(
            options.host,
            options.port,
            username=options.username,
            password=options.password,
            identifier=self._identity or None,
            will=will,
            keepalive=options.requested_keep_alive_s,
            timeout=ANSWER_TIMEOUT_S,
            tls_context=context,
            logger=_LIBRARY_LOG,
            max_queued_incoming_messages=QUEUE_MESSAGES_MAX,
        )
        # The library connects in a thread that cannot be cancelled, and offers no argument for this.
        client._client.connect_timeout = CONNECT_TIMEOUT_S  # noqa: SLF001
        async with client:
            yield client

    async def _serve(self, client: aiomqtt.Client) -> None:
        parts = [
            asyncio.create_task(self._send(client), name="broker-send"),
            asyncio.create_task(self._receive(client), name="broker-receive"),
            asyncio.create_task(self._closing.wait(), name="broker-closing"),
        ]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            if self._closing.is_set():
                await asyncio.wait(parts[:1], timeout=CLOSE_TIMEOUT_S)
                return
            for part in parts:
                if part.done():
                    part.result()
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

    async def _send(self, client: aiomqtt.Client) -> None:
        """Send what waits, one message after the other, so that a slow broker fills our queue and not the library's."""
        while True:
            if self._unsent:
                topic = next(iter(self._unsent))
                del self._unsent[topic]
                await self._send_one(client, self._retained[topic])
            elif self._queue:
                waiting = self._queue.popleft()
                self._queue_bytes -= len(waiting.payload)
                try:
                    await self._send_one(client, waiting)
                except BaseException:
                    # Nobody knows whether the broker has it; the next connection begins with it.
                    self._queue.appendleft(waiting)
                    self._queue_bytes += len(waiting.payload)
                    raise
            elif self._closing.is_set():
                return
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _send_one(self, client: aiomqtt.Client, waiting: _Waiting) -> None:
        await client.publish(
            waiting.topic,
            waiting.payload,
            qos=waiting.qos,
            retain=waiting.is_retained,
            timeout=CONFIRM_TIMEOUT_S,
        )
        self.counters.published += 1
        self.counters.published_bytes += len(waiting.payload)

    async def _receive(self, client: aiomqtt.Client) -> None:
        async for message in client.messages:
            # Bytes always; the library types it as what may be published.
            payload = bytes(message.payload)
            if self._on_message is not None:
                self._on_message(Incoming(str(message.topic), payload, message.retain))
