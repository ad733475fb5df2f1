"""A stream in memory: what one side sends the other reads, in order, until it breaks."""

import asyncio
from collections import deque
from collections.abc import Callable

from fairlead_proto.v1 import framework_pb2
from fairlead_sdk.errors import LinkBroken
from fairlead_sdk.testing.virtual_clock import VirtualClock


class MemoryLink:
    """The framework's end of a stream to a fake master; ``push`` and ``cut`` are the master's end."""

    def __init__(
        self,
        clock: VirtualClock,
        on_calls: Callable[["MemoryLink", framework_pb2.FrameworkCalls], None],
        on_end: Callable[["MemoryLink"], None],
    ) -> None:
        self._clock = clock
        self._on_calls = on_calls
        self._on_end = on_end
        self._inbox: deque[framework_pb2.FrameworkEvents] = deque()
        self._arrived = asyncio.Event()
        self.broken = ""
        """Why the stream is over; empty while it stands."""

    # --- the framework's end ---

    async def send(self, calls: framework_pb2.FrameworkCalls) -> None:
        """Hand a message to the master; see ``Link``."""
        if self.broken:
            raise LinkBroken(self.broken)
        self._clock.activity += 1
        self._on_calls(self, calls)

    async def receive(self) -> framework_pb2.FrameworkEvents:
        """Take the next message of the master; see ``Link``. What arrived before the end is still read."""
        while not self._inbox:
            if self.broken:
                raise LinkBroken(self.broken)
            self._arrived.clear()
            await self._arrived.wait()
        self._clock.activity += 1
        return self._inbox.popleft()

    async def finish(self) -> None:
        """End the stream in good order; see ``Link``."""
        self.abort("the framework ended the stream")

    def abort(self, reason: str) -> None:
        """End the stream; see ``Link``."""
        if not self.broken:
            self.cut(reason)
            self._on_end(self)

    # --- the master's end ---

    def push(self, events: framework_pb2.FrameworkEvents) -> None:
        """Send a message to the framework; lost if the stream is over."""
        if not self.broken:
            self._inbox.append(events)
            self._clock.activity += 1
            self._arrived.set()

    def cut(self, reason: str) -> None:
        """Break the stream. What the framework has not read yet it still reads."""
        self.broken = self.broken or reason
        self._arrived.set()
