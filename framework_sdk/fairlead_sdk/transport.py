"""How a session reaches a master: one interface, implemented over gRPC and, for tests, in memory.

Messages cross it as they are, so that whatever a test exercises in memory passes the same border as in production.
"""

from collections.abc import AsyncIterator, Callable
from typing import Protocol, runtime_checkable

from fairlead_proto.v1 import files_pb2, framework_pb2
from fairlead_sdk.clock import Clock


class Link(Protocol):
    """One stream to the master."""

    async def send(self, calls: framework_pb2.FrameworkCalls) -> None:
        """Write one message; returns when there is room for another.

        Raises:
            LinkBroken: the stream is over.
        """

    async def receive(self) -> framework_pb2.FrameworkEvents:
        """Read the next message.

        Raises:
            LinkBroken: the stream is over.
            Refused: this is no master of ours, or it does not know the caller.
        """

    async def finish(self) -> None:
        """Say that nothing more will be sent, and let what was sent arrive."""

    def abort(self, reason: str) -> None:
        """End the stream at once; whoever sends or receives gets ``LinkBroken`` with this reason."""


@runtime_checkable
class Transport(Protocol):
    """A master's address, and the time and chance that go with it."""

    @property
    def clock(self) -> Clock:
        """The time sessions over this transport live by."""

    @property
    def jitter(self) -> Callable[[], float]:
        """Gives a number in [0, 1) by which waiting is spread."""

    @property
    def address(self) -> str:
        """The master's address, for messages to people."""

    async def open(self) -> Link:
        """Start a stream.

        Raises:
            LinkBroken: no master there, or it did not take the stream.
        """

    async def read_file(self, request: files_pb2.ReadRequest) -> files_pb2.ReadResponse:
        """Read a piece of a file in a task's sandbox.

        Raises:
            LinkBroken: no master there.
            Refused: no such task or file, or not yours.
        """

    def follow_output(self, request: files_pb2.FollowRequest) -> AsyncIterator[files_pb2.Output]:
        """Give what tasks of a framework write, until the stream breaks.

        Raises:
            LinkBroken: no master there, or it went away.
            Refused: no such framework, or a master that knows no such streams.
        """

    async def close(self) -> None:
        """Let go of everything; streams that are open end."""
