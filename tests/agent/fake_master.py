"""A master that says what a test tells it to and keeps all it hears: real gRPC on loopback, no policy."""

import asyncio
from collections.abc import Callable
from typing import Any, Self

import grpc.aio

from fairlead_proto import convert
from fairlead_proto.ids import FrameworkId, TaskId
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.tasks import TaskSpec, TaskStatus
from fairlead_proto.v1 import agent_pb2, agent_pb2_grpc
from tests.builders.messages import from_a_newer_peer

_KINDS = ResourceKinds()
_CUT = agent_pb2.MasterMessage()


class FakeMaster(agent_pb2_grpc.AgentServiceServicer):
    """Accepts every agent, unless told otherwise."""

    def __init__(self, *, epoch: int = 1, heartbeat_ms: int = 60_000, files_token: str = "") -> None:
        self.files_token = files_token
        """Of the stream of files; empty as of a master that has none."""
        self.is_reading_files = asyncio.Event()
        self.tokens: list[str] = []
        """That streams of files began with."""
        self.streamed: list[agent_pb2.FileChunk] = []
        """What came by them."""
        self._file_requests: asyncio.Queue[agent_pb2.FileRequest | None] = asyncio.Queue()
        self.epoch = epoch
        self.heartbeat_ms = heartbeat_ms
        self.refusal: agent_pb2.RegistrationRefused | None = None
        self.is_acknowledging = False
        """Each status at once."""
        self.address = ""
        self.registrations: list[agent_pb2.Register] = []
        self.statuses: list[TaskStatus] = []
        """From registrations and reports, in order, repeats included."""
        self.heartbeats: list[agent_pb2.AgentHeartbeat] = []
        self.chunks: dict[int, agent_pb2.FileChunk] = {}
        self.goodbyes: list[str] = []
        self.batch_lengths: list[int] = []
        self._changed = asyncio.Event()
        self._outgoing: asyncio.Queue[agent_pb2.MasterMessage] = asyncio.Queue()
        self._server: grpc.aio.Server | None = None
        self._requests = 0

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    async def listen(self, address: str = "127.0.0.1:0") -> None:
        """Serve; on the port of an earlier life if given."""
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        agent_pb2_grpc.add_AgentServiceServicer_to_server(self, self._server)
        port = self._server.add_insecure_port(address)
        self.address = f"127.0.0.1:{port}"
        await self._server.start()

    async def stop(self) -> None:
        """Cut everything off."""
        if self._server is not None:
            await self._server.stop(grace=None)
            self._server = None

    async def Session(self, _requests: Any, context: Any) -> None:  # noqa: N802 - named by the schema
        self._outgoing = asyncio.Queue()
        reader = asyncio.create_task(self._read(context))
        try:
            while True:
                get = asyncio.create_task(self._outgoing.get())
                await asyncio.wait((get, reader), return_when=asyncio.FIRST_COMPLETED)
                if not get.done() or get.result() is _CUT:
                    get.cancel()
                    return
                await context.write(agent_pb2.MasterMessages(epoch=self.epoch, messages=[get.result()]))
        finally:
            reader.cancel()

    async def Files(self, _requests: Any, context: Any) -> None:  # noqa: N802 - named by the schema
        first = await context.read()
        self.tokens.append(first.token)
        self._changed.set()
        reader = asyncio.create_task(self._read_files(context))
        try:
            while (request := await self._file_requests.get()) is not None:
                await context.write(agent_pb2.FileRequests(requests=[request]))
        finally:
            reader.cancel()

    async def _read_files(self, context: Any) -> None:
        await self.is_reading_files.wait()
        while (answers := await context.read()) is not grpc.aio.EOF:
            self.streamed += answers.chunks
            self._changed.set()

    def request_file(self, request: agent_pb2.FileRequest | None) -> None:
        """Ask by the stream of files; None ends it."""
        self._file_requests.put_nowait(request)

    async def _read(self, context: Any) -> None:
        while (batch := await context.read()) is not grpc.aio.EOF:
            self.batch_lengths.append(len(batch.messages))
            for message in batch.messages:
                self._take(message)
            self._changed.set()

    def _take(self, message: agent_pb2.AgentMessage) -> None:
        match message.WhichOneof("message"):
            case "register":
                self._register(message.register)
            case "statuses":
                self._note(message.statuses.statuses)
            case "heartbeat":
                self.heartbeats.append(message.heartbeat)
            case "file_chunk":
                self.chunks[message.file_chunk.request_id] = message.file_chunk
            case "goodbye":
                self.goodbyes.append(message.goodbye.reason)
            case which:
                raise AssertionError(f"expected a message of the schema, got {which}")

    def _register(self, register: agent_pb2.Register) -> None:
        self.registrations.append(register)
        if self.refusal is not None:
            self.say(refused=self.refusal)
            return
        agent_id = register.agent_id or f"a{self.epoch}-1"
        self.say(
            registered=agent_pb2.Registered(
                agent_id=agent_id,
                epoch=self.epoch,
                heartbeat_interval_ms=self.heartbeat_ms,
                files_token=self.files_token,
            )
        )
        self._note(register.unacknowledged)

    def _note(self, messages: Any) -> None:
        statuses = [convert.read_status("status", message, Unknowns()) for message in messages]
        self.statuses += statuses
        if self.is_acknowledging:
            for status in statuses:
                self.acknowledge(status)

    def say(self, **message: Any) -> None:
        """Send one message, named as in the schema."""
        self._outgoing.put_nowait(agent_pb2.MasterMessage(**message))

    def say_newer(self) -> None:
        """Send one message of a kind that only a later version of the schema has."""
        self._outgoing.put_nowait(from_a_newer_peer(agent_pb2.MasterMessage()))

    def cut(self) -> None:
        """End the stream from this side."""
        self._outgoing.put_nowait(_CUT)

    def launch(self, *specs: TaskSpec, framework: str = "f1") -> None:
        launch = agent_pb2.Launch()
        for spec in specs:
            convert.fill_task(launch.tasks.add(framework_id=framework).task, spec, _KINDS)
        self.say(launch=launch)

    def kill(self, task: str, *, grace_ms: int = 0, reason: int = 8, framework: str = "f1") -> None:
        kill = agent_pb2.KillTask(
            framework_id=framework,
            task_id=task,
            grace_period_ms=grace_ms,
            reason=reason,  # type: ignore[arg-type]  # a number of the enum
        )
        self.say(kill=agent_pb2.KillTasks(tasks=[kill]))

    def acknowledge(self, status: TaskStatus) -> None:
        item = agent_pb2.StatusAcknowledgement(
            framework_id=status.framework_id, task_id=status.task_id, sequence=status.sequence
        )
        self.say(acknowledge=agent_pb2.AcknowledgeStatuses(items=[item]))

    async def ask(self, task: str, path: str, **fields: Any) -> agent_pb2.FileChunk:
        """Ask for a file and wait for the answer."""
        number = self.ask_later(task, path, **fields)
        await self.until(lambda: number in self.chunks)
        return self.chunks[number]

    def ask_later(self, task: str, path: str, **fields: Any) -> int:
        """Ask for a file; the answer will be in ``chunks`` under the number given."""
        self._requests += 1
        request = agent_pb2.FileRequest(
            request_id=self._requests, framework_id="f1", task_id=task, path=path, **fields
        )
        self.say(file_request=request)
        return self._requests

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something the agent said makes ``holds`` true; the test's own timeout bounds it."""
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    def states(self, task: str, framework: str = "f1") -> list[str]:
        """States reported of a task, in order, repeats left out."""
        key = (FrameworkId(framework), TaskId(task))
        seen = {status.sequence: status for status in self.statuses if status.key == key}
        return [status.state.value for _, status in sorted(seen.items())]

    def last(self, task: str, framework: str = "f1") -> TaskStatus:
        """The status of a task with the highest number."""
        key = (FrameworkId(framework), TaskId(task))
        return max((s for s in self.statuses if s.key == key), key=lambda status: status.sequence)
