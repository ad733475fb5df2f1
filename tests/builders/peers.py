"""Frameworks and agents for tests of a real master: raw streams of the protocol, nothing decided for the test."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc

from fairlead_master.core.settings import CoreSettings
from fairlead_master.server import MasterServer, ServerSettings
from fairlead_proto.v1 import agent_pb2, agent_pb2_grpc, framework_pb2, framework_pb2_grpc, types_pb2

GIB = 2**30
PATIENCE_S = 10.0
"""How long an expected message may take: never the claim of a test, only its end when it fails."""


def resources(cpus: float = 1, mem_gib: float = 1) -> types_pb2.Resources:
    """An amount in everyday units."""
    return types_pb2.Resources(cpus_milli=int(cpus * 1000), mem_bytes=int(mem_gib * GIB))


async def until(condition: Callable[[], bool] | Callable[[], Awaitable[bool]]) -> None:
    """Wait for what happens in a moment."""

    async def poll() -> None:
        while True:
            verdict = condition()
            if (await verdict) if not isinstance(verdict, bool) else verdict:
                return
            await asyncio.sleep(0.005)

    await asyncio.wait_for(poll(), PATIENCE_S)


@asynccontextmanager
async def a_master(state: Any = None, **core: Any) -> AsyncIterator[MasterServer]:
    """A master on a free port, stopped at the end."""
    settings = ServerSettings(listen="127.0.0.1:0", state_directory=state, core=CoreSettings(**core))
    server = await MasterServer.start(settings)
    try:
        yield server
    finally:
        await server.stop(grace_s=0.1)


class _Peer:
    def __init__(self, port: int) -> None:
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        self.stream: Any = None
        self._inbox: list[Any] = []

    async def _next(self) -> Any:
        while not self._inbox:
            batch = await asyncio.wait_for(self.stream.read(), PATIENCE_S)
            if batch is grpc.aio.EOF:
                raise EOFError("the stream ended")
            self._inbox.extend(batch.events if hasattr(batch, "events") else batch.messages)
        return self._inbox.pop(0)

    async def expect(self, field: str) -> Any:
        """The next message of one kind; others are passed over."""
        while True:
            message = await self._next()
            if message.WhichOneof(message.DESCRIPTOR.oneofs[0].name) == field:
                return getattr(message, field)

    async def close(self) -> None:
        if self.stream is not None:
            self.stream.cancel()
        await self.channel.close()


class RawFramework(_Peer):
    """A framework session."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.stream = framework_pb2_grpc.FrameworkServiceStub(self.channel).Connect()
        self._request_id = 0
        self._version = 0

    async def call(self, **fields: Any) -> int:
        """Send one call; gives its request id."""
        self._request_id += 1
        call = framework_pb2.FrameworkCall(request_id=self._request_id, **fields)
        await self.stream.write(framework_pb2.FrameworkCalls(calls=[call]))
        return self._request_id

    async def hello(self, **fields: Any) -> framework_pb2.Welcome:
        """Open the session."""
        await self.call(hello=framework_pb2.Hello(**{"name": "test", "role": "test", **fields}))
        welcome: framework_pb2.Welcome = await self.expect("welcome")
        return welcome

    async def want(
        self, units: int = 1, *, class_id: str = "c", unit: Any = None
    ) -> framework_pb2.CallResult:
        """Set one demand class."""
        self._version += 1
        demand = framework_pb2.DemandClass(class_id=class_id, unit=unit or resources(), units=units)
        await self.call(set_demand=framework_pb2.SetDemand(version=self._version, classes=[demand]))
        result: framework_pb2.CallResult = await self.expect("result")
        return result

    async def offer(self) -> framework_pb2.Offer:
        """The first offer of the next batch."""
        offers = await self.expect("offers")
        offer: framework_pb2.Offer = offers.offers[0]
        return offer

    async def accept(self, offer: framework_pb2.Offer, *task_ids: str) -> framework_pb2.AcceptResult:
        """Launch tasks of the offer's unit."""
        tasks = [
            types_pb2.TaskSpec(task_id=task_id, resources=offer.unit, command=["true"])
            for task_id in task_ids
        ]
        await self.call(accept=framework_pb2.Accept(offer_id=offer.offer_id, tasks=tasks))
        result: framework_pb2.AcceptResult = await self.expect("accept_result")
        return result


class RawAgent(_Peer):
    """An agent session."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.stream = agent_pb2_grpc.AgentServiceStub(self.channel).Session()
        self.files: Any = None

    async def send(self, **fields: Any) -> None:
        """Send one message."""
        message = agent_pb2.AgentMessage(**fields)
        await self.stream.write(agent_pb2.AgentMessages(messages=[message]))

    async def register(self, **fields: Any) -> agent_pb2.Registered:
        """Open the session."""
        defaults = {"hostname": "h1", "total": resources(4, 8), "incarnation": 1}
        await self.send(register=agent_pb2.Register(**{**defaults, **fields}))
        registered: agent_pb2.Registered = await self.expect("registered")
        return registered

    async def open_files(self, token: str) -> None:
        """Open the stream of files."""
        self.files = agent_pb2_grpc.AgentServiceStub(self.channel).Files()
        await self.files.write(agent_pb2.FileAnswers(token=token))

    async def asked_file(self) -> agent_pb2.FileRequest:
        """The next question that comes by the stream of files."""
        batch = await asyncio.wait_for(self.files.read(), PATIENCE_S)
        (request,) = batch.requests
        asked: agent_pb2.FileRequest = request
        return asked

    async def report(self, framework_id: str, task_id: str, sequence: int, state: str) -> None:
        """Send one status."""
        status = types_pb2.TaskStatus(
            framework_id=framework_id, task_id=task_id, sequence=sequence, state=f"TASK_STATE_{state}"
        )
        await self.send(statuses=agent_pb2.StatusReports(statuses=[status]))
