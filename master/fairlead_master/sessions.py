"""Conversations with peers: bounded outgoing queues that nobody waits for, and the stream around them.

What a turn of the core has for a session is put into its queue as a ready batch; the connection's writer takes all there
are at once and writes them as one. A peer that does not read fills its queue and is cut off, so that it costs
the master a bounded amount of memory and nobody else anything.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar
from urllib.parse import unquote

import grpc
from google.protobuf.message import Message as ProtobufMessage

from fairlead_master.parsing import parse
from fairlead_proto.limits import BATCH_BYTES_MAX

QUEUE_BYTES_MAX: Final = 64 * 1024 * 1024
"""What may wait for one peer: some seconds of everything it can be told at full speed."""

WRITE_SECONDS_MAX: Final = 30.0
"""A peer that accepts no batch for this long is treated as stalled."""

FIRST_MESSAGE_SECONDS_MAX: Final = 10.0
"""From a stream to the Hello or Register that says whose it is: a peer sends it at once, a slow host within seconds."""

READ_BYTES_MAX: Final = 64 * 1024
"""Of messages, read before the loop serves its other connections: some milliseconds' worth. What is larger by itself is read
in a thread."""

RECORDS_PER_EVENT_MAX: Final = 500
"""Statuses, acknowledgements or ids in one event for the core, which is stepped as a whole: each takes 10 to 20 µs."""

_GOODBYE_SECONDS: Final = 1.0
"""How long a cut-off peer is given to take the status that says why."""


@dataclass(slots=True)
class Traffic:
    """Bytes of the messages of one kind of peer, since the start."""

    received_bytes: int = 0
    sent_bytes: int = 0


class Sized(Protocol):
    """A batch that knows how long it will be on the wire."""

    def ByteSize(self) -> int:  # noqa: N802 - protobuf's name
        """Bytes."""


Message = TypeVar("Message", bound=Sized)
Batch = TypeVar("Batch", bound=ProtobufMessage)
Value = TypeVar("Value")


class Outbox(Generic[Message]):
    """The queue of one connection."""

    def __init__(self, traffic: Traffic | None = None) -> None:
        self._traffic = traffic or Traffic()
        self._messages: deque[tuple[Message, int]] = deque()
        self._bytes = 0
        self._wakeup = asyncio.Event()
        self._writing_since: float | None = None
        self.is_closed = False
        self.overflown = asyncio.Event()
        """Set once the peer has been given up for not reading."""

    def put(self, message: Message) -> None:
        """Queue a message; the first one too many ends the conversation."""
        if self.is_closed:
            return
        size = message.ByteSize()
        if self._bytes + size > QUEUE_BYTES_MAX or self._is_stuck():
            self._messages.clear()
            self.close()
            self.overflown.set()
            return
        self._messages.append((message, size))
        self._bytes += size
        self._wakeup.set()

    def _is_stuck(self) -> bool:
        return self._writing_since is not None and time.monotonic() - self._writing_since > WRITE_SECONDS_MAX

    def close(self) -> None:
        """No more messages; what is queued is still to be written."""
        self.is_closed = True
        self._wakeup.set()

    async def take(self) -> list[Message]:
        """Everything queued, up to a batch; empty once closed and drained."""
        self._writing_since = None
        while not self._messages and not self.is_closed:
            self._wakeup.clear()
            await self._wakeup.wait()
        batch: list[Message] = []
        room = BATCH_BYTES_MAX
        while self._messages and (not batch or self._messages[0][1] <= room):
            message, size = self._messages.popleft()
            batch.append(message)
            room -= size
        self._bytes -= BATCH_BYTES_MAX - room
        self._traffic.sent_bytes += BATCH_BYTES_MAX - room
        self._writing_since = time.monotonic()
        return batch


def in_parts(records: tuple[Value, ...]) -> list[tuple[Value, ...]]:
    """The records in their order, so many together; at least one part, which may be empty."""
    starts = range(0, max(1, len(records)), RECORDS_PER_EVENT_MAX)
    return [records[start : start + RECORDS_PER_EVENT_MAX] for start in starts]


class Reading:
    """Turns messages of one connection into values without holding the loop."""

    def __init__(self, traffic: Traffic | None = None) -> None:
        self._traffic = traffic or Traffic()
        self._bytes = 0

    async def batches(self, context: Any, kind: type[Batch]) -> AsyncIterator[Batch]:
        """The messages of a stream, to its end.

        Raises:
            InvalidFieldError: one is none.
        """
        while (raw := await context.read()) is not grpc.aio.EOF:
            self._traffic.received_bytes += len(raw)
            yield await self.parse(raw, kind)

    async def parse(self, raw: bytes, kind: type[Batch]) -> Batch:
        """The message that the bytes are.

        Raises:
            InvalidFieldError: they are none.
        """
        message = kind()
        if len(raw) > READ_BYTES_MAX:
            await asyncio.to_thread(parse, message, raw)
        else:
            parse(message, raw)
        return message

    async def read(self, message: Sized, read: Callable[[], Value]) -> Value:
        """What ``read`` makes of the message."""
        size = message.ByteSize()
        if size > READ_BYTES_MAX:
            return await asyncio.to_thread(read)
        self._bytes += size
        if self._bytes > READ_BYTES_MAX:
            self._bytes = 0
            await asyncio.sleep(0)
        return read()


def host_of(peer: str) -> str:
    """The address of the host of a peer, without its port: of ``ipv4:192.0.2.1:40210`` as grpc says, ``192.0.2.1``."""
    return unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]") or peer


async def converse(
    context: Any,
    outbox: Outbox[Batch],
    read: Callable[[], Awaitable[None]],
) -> None:
    """Read and write a stream until its peer ends it, the outbox is closed and drained, or the peer stops reading.

    Args:
        context: grpc.aio's ServicerContext of the stream.
        outbox: what to write.
        read: reads the stream to its end.
    """
    reader = asyncio.ensure_future(_close_after(read, outbox))
    writer = asyncio.ensure_future(_write(context, outbox))
    overflow = asyncio.ensure_future(outbox.overflown.wait())
    try:
        await asyncio.wait({writer, overflow}, return_when=asyncio.FIRST_COMPLETED)
        if outbox.overflown.is_set():
            writer.cancel()
            with suppress(asyncio.TimeoutError, grpc.aio.AbortError):
                why = context.abort(
                    grpc.StatusCode.RESOURCE_EXHAUSTED, "messages were not read: connect again"
                )
                await asyncio.wait_for(why, _GOODBYE_SECONDS)
    finally:
        for part in (reader, writer, overflow):
            part.cancel()
        results = await asyncio.gather(reader, writer, overflow, return_exceptions=True)
    for result in results:
        # A broken connection ends a conversation like any other way; anything else is a bug and must be seen.
        if isinstance(result, Exception) and not isinstance(result, grpc.RpcError | grpc.aio.BaseError):
            raise result


async def _close_after(read: Callable[[], Awaitable[None]], outbox: Outbox[Batch]) -> None:
    try:
        await read()
    finally:
        outbox.close()


async def _write(context: Any, outbox: Outbox[Batch]) -> None:
    while batches := await outbox.take():
        # A writer that keeps up finds one batch, which needs no copying.
        first, *others = batches
        for batch in others:
            first.MergeFrom(batch)
        await context.write(first)
