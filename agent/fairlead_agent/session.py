"""The stream to the master: dialled by the agent, dialled again when it breaks, with growing pauses.

What is to be sent in one turn of the loop goes out as one message. The queue is bounded: a master that does not read
loses the session, and what matters in the queue, the statuses, is kept by the core and comes with the next
registration.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import grpc
import grpc.aio
from structlog.typing import FilteringBoundLogger

from fairlead_agent.core.events import Event, Ordered, SessionClosed, SessionOpened
from fairlead_agent.executor_link import Feed
from fairlead_agent.file_stream import FileStream, OnFileRequest, OnFollow
from fairlead_proto import fields
from fairlead_proto.agent_messages import read_orders
from fairlead_proto.backoff import Backoff
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.limits import BATCH_BYTES_MAX, MESSAGE_BYTES_MAX
from fairlead_proto.peers import NONE, Capabilities, Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.v1 import agent_pb2, agent_pb2_grpc

CONNECT_TIMEOUT_S: Final = 5.0
"""For the transport. A host that does not answer at all should not hold up the next attempt for longer."""

PAUSE_FIRST_MS: Final = 100
PAUSE_MAX_MS: Final = 10_000
"""Between attempts. The first is short, since an agent is often started together with its master; the longest lets a
thousand agents knock at a restarted master a hundred times a second."""

QUEUE_LENGTH_MAX: Final = 10_000
"""Messages waiting to be written, most of them batches themselves."""

FLUSH_TIMEOUT_S: Final = 2.0
"""For the last messages of an agent that leaves. They are repeated by its successor if they do not get through."""

FILES_PAUSE_S: Final = 1.0
"""Until a stream of files that broke is dialled again; meanwhile its session carries them."""

_CHANNEL_OPTIONS: Final = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    # Attempts of ours are separate: no backoff of an earlier channel to the same address, no sharing between agents
    # that live in one process.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    # A peer whose host has vanished sends no reset. The heartbeats make TCP notice, and these pings make it hurry.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)

_STREAM_ERRORS: Final = (
    grpc.aio.AioRpcError,  # the master's or the transport's reason
    grpc.aio.BaseError,  # an operation that the transport could not begin
    asyncio.InvalidStateError,  # a write to a stream that has ended, before the reader was told
    TimeoutError,
)
"""All that a stream may raise. None of them says anything about the agent, so each is followed by another session."""

_Call = grpc.aio.StreamStreamCall[agent_pb2.AgentMessages, agent_pb2.MasterMessages]


class MasterSession:
    """Keeps one stream to the master open."""

    def __init__(
        self,
        address: str,
        *,
        kinds: ResourceKinds,
        feed: Feed,
        on_file_request: OnFileRequest,
        on_follow: OnFollow,
        on_files_end: Callable[[], None],
        on_end: Callable[[], None],
        random: Callable[[], float],
        log: FilteringBoundLogger,
    ) -> None:
        """Prepare; nothing is dialled before ``run``.

        Args:
            address: HOST:PORT of the master.
            kinds: what the amounts in messages are counted in.
            feed: takes the events of the session; waited for, so that a busy core slows the master down.
            on_file_request: takes requests for files of sandboxes.
            on_follow: takes what the master says about followers of output.
            on_files_end: called when a stream of files ends, and with it all that was followed by it.
            on_end: called when a session ends, before another one can begin: nothing asked in it is to be answered.
            random: numbers in [0, 1), for the jitter of pauses.
            log: where decisions are logged.
        """
        self._address = address
        self._kinds = kinds
        self._feed = feed
        self._on_file_request = on_file_request
        self._on_follow = on_follow
        self._on_files_end = on_files_end
        self._on_end = on_end
        self.unknowns = Unknowns(self._tell_of_unknown)
        """What newer masters said that is not known here."""
        self.peer = NONE
        """What the master said that it can do, once it has accepted the registration."""
        self.ended_count = 0
        """Sessions that were open and are not."""
        self._log = log
        self._queue: deque[agent_pb2.AgentMessage] = deque()
        self._queued = asyncio.Event()
        self._over = asyncio.Event()
        self._is_open = False
        self._files: FileStream | None = None
        self._files_token = ""
        self._confirmed = asyncio.Event()
        self._ending = asyncio.Event()
        self._close_reason = ""
        self._closing = asyncio.Event()
        self._backoff = Backoff(random, first_ms=PAUSE_FIRST_MS, longest_ms=PAUSE_MAX_MS)

    def send(self, messages: Sequence[agent_pb2.AgentMessage], *, session: int | None = None) -> None:
        """Queue messages for the open session; without one they are dropped, and so they are when it breaks.

        Args:
            messages: in order.
            session: which one they were decided in, the first being 1; they are dropped if another one is open, which a
                master lets begin with a registration only, and refuses for good otherwise. None: the open one.
        """
        if not self._is_open or session not in (None, self.ended_count + 1):
            return
        if len(self._queue) + len(messages) > QUEUE_LENGTH_MAX:
            self.close(f"the master left {len(self._queue)} messages unread")
            return
        self._queue.extend(messages)
        self._queued.set()

    def _tell_of_unknown(self, what: str, detail: str) -> None:
        self._log.warning("master.unknown_skipped", what=what, detail=detail)

    def send_chunk(self, chunk: agent_pb2.FileChunk) -> None:
        """Queue what answers a request for a file: by the stream of files, or by the session while that is away."""
        if self._files is not None:
            self._files.send(chunk)
        else:
            self.send([agent_pb2.AgentMessage(file_chunk=chunk)])

    def send_followed(self, output: agent_pb2.FollowedOutput) -> None:
        """Queue output for a follower; without the stream that it is followed by it is dropped, and asked for again."""
        if self._files is not None:
            self._files.send_followed(output)

    def confirm(self, files_token: str = "", peer: Capabilities = NONE) -> None:
        """Say that the master has accepted the registration: the next pause is a short one again.

        Args:
            files_token: begins a stream of files beside this session; empty: this master has none.
            peer: what this master can do.
        """
        self.peer = peer
        self._backoff.reset()
        self._files_token = files_token
        self._confirmed.set()

    def close(self, reason: str) -> None:
        """End the session that is open; another is begun after a pause."""
        self._close_reason = self._close_reason or reason
        self._closing.set()

    async def finish(self) -> None:
        """Send what is queued and wait for the master to end the stream, both for a bounded time; begin no other."""
        self._ending.set()
        self._queued.set()
        if self._is_open:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_TIMEOUT_S):
                    await self._over.wait()
        self.close("the agent ends")

    async def run(self) -> None:
        """Hold one session after the other until ``finish``."""
        while not self._ending.is_set():
            self._closing.clear()
            self._close_reason = ""
            try:
                detail = await self._hold_session()
            except _STREAM_ERRORS as error:
                detail = _describe(error)
            if self._ending.is_set():
                return
            pause_ms = self._backoff.next_ms()
            self._log.warning("master.away", detail=detail, retry_ms=pause_ms)
            await asyncio.sleep(pause_ms / 1000)

    async def _hold_session(self) -> str:
        """Open one session and serve it to its end; why it ended."""
        async with grpc.aio.insecure_channel(self._address, options=_CHANNEL_OPTIONS) as channel:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await channel.channel_ready()
            call = agent_pb2_grpc.AgentServiceStub(channel).Session()
            self._queue.clear()
            self._over.clear()
            self._confirmed.clear()
            self.peer = NONE
            files = asyncio.create_task(self._keep_files(channel), name="session-files")
            self._is_open = True
            try:
                await self._feed([SessionOpened()])
                return await self._serve(call)
            finally:
                self._is_open = False
                self.ended_count += 1
                self._on_end()
                self._over.set()
                call.cancel()
                files.cancel()
                await asyncio.gather(files, return_exceptions=True)
                await self._feed([SessionClosed()])

    async def _keep_files(self, channel: grpc.aio.Channel) -> None:
        """Keep a stream of files as long as the session lasts, if the master has such streams."""
        stub = agent_pb2_grpc.AgentServiceStub(channel)
        while True:
            await self._confirmed.wait()
            if not self._files_token:
                self._confirmed.clear()
                continue
            stream = self._files = FileStream(stub.Files(), self._on_file_request, self._on_follow)
            try:
                await stream.serve(self._files_token)
            except _STREAM_ERRORS as error:
                self._log.info("files.away", detail=_describe(error))
            finally:
                self._files = None
                self._on_files_end()
            await asyncio.sleep(FILES_PAUSE_S)

    async def _serve(self, call: _Call) -> str:
        read = asyncio.create_task(self._read(call), name="session-read")
        write = asyncio.create_task(self._write(call), name="session-write")
        closing = asyncio.create_task(self._closing.wait(), name="session-closing")
        try:
            await asyncio.wait((read, write, closing), return_when=asyncio.FIRST_COMPLETED)
            if write.done() and not write.cancelled() and not write.exception():
                # Everything is said; the master ends the stream when it has heard it.
                await asyncio.wait((read, closing), return_when=asyncio.FIRST_COMPLETED)
            if closing.done():
                return self._close_reason
            # An error of the reader says more than the one it causes in the writer.
            ended = read if read.done() else write
            if ended.cancelled():
                # By the transport, which cancels whoever waits for a call that it gives up; nobody cancels the agent.
                return "the call was cancelled"
            ended.result()
            return "the master closed the stream"
        finally:
            for part in (read, write, closing):
                part.cancel()
            await asyncio.gather(read, write, closing, return_exceptions=True)

    async def _read(self, call: _Call) -> None:
        while True:
            batch = await call.read()
            if not isinstance(batch, agent_pb2.MasterMessages):
                return  # grpc.aio.EOF
            found, file_requests = read_batch(batch, self._kinds, self._log, self.unknowns)
            if found:
                await self._feed(found)
            for request in file_requests:
                self._on_file_request(request)

    async def _write(self, call: _Call) -> None:
        """Write until the agent ends, then half-close."""
        while True:
            while not self._queue:
                if self._ending.is_set():
                    await call.done_writing()
                    return
                self._queued.clear()
                await self._queued.wait()
            batch, size_bytes = [], 0
            while self._queue and size_bytes < BATCH_BYTES_MAX:
                message = self._queue.popleft()
                size_bytes += message.ByteSize()
                batch.append(message)
            await call.write(agent_pb2.AgentMessages(messages=batch))


def _describe(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"
    if isinstance(error, asyncio.InvalidStateError):
        return "the stream ended while it was written to"
    if isinstance(error, TimeoutError):
        return f"no connection within {CONNECT_TIMEOUT_S:g} s"
    return str(error)


def read_batch(
    batch: agent_pb2.MasterMessages, kinds: ResourceKinds, log: FilteringBoundLogger, unknowns: Unknowns
) -> tuple[list[Event], list[agent_pb2.FileRequest]]:
    """Give the events in a batch, in order, and apart from them the requests for files, which the core is not asked."""
    found: list[Event] = []
    file_requests: list[agent_pb2.FileRequest] = []
    for message in batch.messages:
        kind = message.WhichOneof("message")
        if kind == "file_request":
            file_requests.append(message.file_request)
            continue
        if kind is None:
            unknowns.note("message", "a message of a kind that this version does not know")
            continue
        try:
            epoch = fields.read_count("epoch", batch.epoch)
            found += [Ordered(epoch, order) for order in read_orders(message, kinds, unknowns)]
        except InvalidFieldError as error:
            log.warning("message.unreadable", message=kind, detail=str(error))
    return found, file_requests
