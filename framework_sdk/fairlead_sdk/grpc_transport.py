"""The transport of production: a gRPC channel to the master."""

import os

# Before grpc is imported: its fork handlers take a lock that a fork elsewhere in the program could wait on for ever.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# And it tells on standard error, unless asked not to, of every idle connection that the master lets go.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import grpc

from fairlead_proto.limits import CLIENT_IDLE_MS, MESSAGE_BYTES_MAX
from fairlead_proto.v1 import files_pb2, files_pb2_grpc, framework_pb2, framework_pb2_grpc
from fairlead_sdk.clock import Clock, LoopClock
from fairlead_sdk.errors import LinkBroken, Refused

FINISH_MS: Final = 1_000
"""How long a half-closed stream is given to deliver what was sent; a master on the same network needs a few."""

READ_MARGIN_MS: Final = 5_000
"""Beyond the time a read asks the master to wait: a round trip to the agent and back, and then some."""

CHANNEL_OPTIONS: Final = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.client_idle_timeout_ms", CLIENT_IDLE_MS),
    # Our own retry loop decides when to try; grpc's, shared by all channels of a process, starts at one second.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_http_proxy", 0),
)

_REFUSALS: Final = {
    grpc.StatusCode.UNAUTHENTICATED: "UNAUTHORIZED",
    grpc.StatusCode.PERMISSION_DENIED: "UNAUTHORIZED",
    grpc.StatusCode.UNIMPLEMENTED: "INVALID",
    grpc.StatusCode.INVALID_ARGUMENT: "INVALID",
    grpc.StatusCode.FAILED_PRECONDITION: "INVALID",
    grpc.StatusCode.OUT_OF_RANGE: "INVALID",
    grpc.StatusCode.NOT_FOUND: "UNKNOWN",
    grpc.StatusCode.ALREADY_EXISTS: "INVALID",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "LIMIT",
}


def read_rpc_error(error: grpc.aio.AioRpcError) -> LinkBroken | Refused:
    """The error of ours that a failed call stands for: a refusal, or trouble on the way that may pass."""
    refusal = _REFUSALS.get(error.code())
    detail = error.details() or ""
    if refusal is not None:
        return Refused(refusal, detail)
    return LinkBroken(f"{error.code().name.lower()}: {detail}")


class GrpcLink:
    """One ``Connect`` stream, with the channel it runs on."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self._call: Any = framework_pb2_grpc.FrameworkServiceStub(channel).Connect()
        self._reason = ""

    async def send(self, calls: framework_pb2.FrameworkCalls) -> None:
        """Write one message; see ``Link``."""
        try:
            await self._call.write(calls)
        except (asyncio.InvalidStateError, grpc.aio.BaseError):
            # The stream is over already; the reader gets the reason.
            raise LinkBroken(self._reason or "the stream is over") from None
        except grpc.aio.AioRpcError as error:
            raise LinkBroken(self._reason or error.details() or error.code().name) from None

    async def receive(self) -> framework_pb2.FrameworkEvents:
        """Read one message; see ``Link``."""
        try:
            message = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise read_rpc_error(error) from None
        except (asyncio.InvalidStateError, grpc.aio.BaseError) as error:
            raise LinkBroken(f"the stream cannot be read: {error}") from None
        except asyncio.CancelledError:
            # A cancelled call and a cancelled caller look alike; only the first has a reason of ours.
            if self._reason:
                raise LinkBroken(self._reason) from None
            raise
        if message is grpc.aio.EOF:
            raise LinkBroken("the master ended the stream")
        if not isinstance(message, framework_pb2.FrameworkEvents):
            # What grpc gives for bytes that are no message.
            raise LinkBroken("the master sent what is no message of this version")
        return message

    async def finish(self) -> None:
        """Half-close and wait a moment for the other side; see ``Link``."""
        try:
            async with asyncio.timeout(FINISH_MS / 1000):
                await self._call.done_writing()
                await self._call.code()
        except (TimeoutError, asyncio.InvalidStateError, grpc.aio.AioRpcError, grpc.aio.BaseError):
            pass  # Nothing more can be done for what did not arrive; the master has its own deadlines.

    def abort(self, reason: str) -> None:
        """Cancel the stream; see ``Link``."""
        self._reason = self._reason or reason
        self._call.cancel()

    async def close(self) -> None:
        """Cancel what is left of the stream and close its channel."""
        self._call.cancel()
        await self._channel.close()


class GrpcTransport:
    """Streams to one address. Every stream has a channel of its own, so that no back-off is inherited."""

    def __init__(
        self, address: str, *, clock: Clock | None = None, jitter: Callable[[], float] = random.random
    ) -> None:
        self.address = address
        self.clock: Clock = clock or LoopClock()
        self.jitter = jitter
        self._link: GrpcLink | None = None
        self._files_channel: grpc.aio.Channel | None = None

    async def open(self) -> GrpcLink:
        """Start a stream on a fresh channel; see ``Transport``."""
        if self._link is not None:
            await self._link.close()
        self._link = GrpcLink(grpc.aio.insecure_channel(self.address, options=CHANNEL_OPTIONS))
        return self._link

    async def read_file(self, request: files_pb2.ReadRequest) -> files_pb2.ReadResponse:
        """Read a piece of a file over a channel kept for that; see ``Transport``."""
        stub = files_pb2_grpc.FilesServiceStub(self._files())
        deadline_ms = request.wait_ms + READ_MARGIN_MS
        try:
            response = await stub.Read(request, timeout=deadline_ms / 1000)
        except grpc.aio.AioRpcError as error:
            raise read_rpc_error(error) from None
        assert isinstance(response, files_pb2.ReadResponse)
        return response

    async def follow_output(self, request: files_pb2.FollowRequest) -> AsyncIterator[files_pb2.Output]:
        """Give what tasks write, over the channel for files; see ``Transport``."""
        call = files_pb2_grpc.FilesServiceStub(self._files()).Follow(request)
        try:
            async for output in call:
                yield output
        except grpc.aio.AioRpcError as error:
            raise read_rpc_error(error) from None
        finally:
            call.cancel()
        raise LinkBroken("the master ended the stream")

    def _files(self) -> grpc.aio.Channel:
        """The channel for files, apart from sessions, which it must not hold up."""
        if self._files_channel is None:
            self._files_channel = grpc.aio.insecure_channel(self.address, options=CHANNEL_OPTIONS)
        return self._files_channel

    async def close(self) -> None:
        """Close the channels; see ``Transport``."""
        if self._link is not None:
            await self._link.close()
            self._link = None
        if self._files_channel is not None:
            await self._files_channel.close()
            self._files_channel = None
