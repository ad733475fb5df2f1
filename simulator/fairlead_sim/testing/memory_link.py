"""A framework's stream to a virtual master, as the SDK's sessions use one."""

import asyncio
from collections import deque
from collections.abc import Callable

from fairlead_master.core import events
from fairlead_proto.codes import ErrorCode
from fairlead_proto.framework_events import EndFrameworkSession
from fairlead_proto.v1 import framework_pb2
from fairlead_sdk.errors import LinkBroken
from fairlead_sim.testing.virtual_clock import VirtualClock
from fairlead_sim.virtual_cluster.cluster import Cluster
from fairlead_sim.virtual_cluster.framework_stream import FrameworkStream

OnAccept = Callable[["MemoryLink", events.OfferAccepted], bool]
"""Asked of each accept; whether it was dealt with and is not to be sent."""


class MemoryLink:
    """The framework's end of a stream; see ``Link``."""

    def __init__(self, cluster: Cluster, clock: VirtualClock, on_accept: OnAccept) -> None:
        """Dial.

        Raises:
            LinkBroken: the master is down.
        """
        self.stream = FrameworkStream(
            cluster.network,
            "framework",
            cluster.kinds,
            received=self._put,
            ended=lambda: self.end("the master ended the stream"),
            takes=lambda accept: on_accept(self, accept),
        )
        self.broken = ""
        """Why the stream is over; empty while it stands."""
        self._clock = clock
        self._inbox: deque[framework_pb2.FrameworkEvents] = deque()
        self._arrived = asyncio.Event()
        if not self.stream.is_open:
            raise LinkBroken("the master is down")

    async def send(self, calls: framework_pb2.FrameworkCalls) -> None:
        """Hand a message to the master."""
        if self.broken:
            raise LinkBroken(self.broken)
        self.stream.send(calls)
        self._clock.note()
        self._clock.soon()

    async def receive(self) -> framework_pb2.FrameworkEvents:
        """Take the next message of the master. What arrived before the end is still read."""
        while not self._inbox:
            if self.broken:
                raise LinkBroken(self.broken)
            self._arrived.clear()
            await self._arrived.wait()
        self._clock.note()
        return self._inbox.popleft()

    async def finish(self) -> None:
        """End the stream in good order."""
        self.abort("the framework ended the stream")

    def abort(self, reason: str) -> None:
        """End the stream: what was sent arrives, answers do not."""
        if not self.broken:
            self.end(reason)
            self.stream.close()
            self._clock.soon()

    # --- for faults ---

    def break_off(self, reason: str) -> None:
        """Break the stream: what is under way is lost."""
        self.end(reason)
        self.stream.break_off()

    def refuse(self, code: ErrorCode, detail: str) -> None:
        """End the session with this error, as a master does."""
        end = EndFrameworkSession(session=self.stream.session, code=code, detail=detail)
        self.stream.push(end)
        self.abort(f"{code.value.lower()}: {detail}")

    def end(self, reason: str) -> None:
        """The stream is over."""
        self.broken = self.broken or reason
        self._clock.note()
        self._arrived.set()

    def _put(self, message: framework_pb2.FrameworkEvents) -> None:
        self._inbox.append(message)
        self._clock.note()
        self._arrived.set()
