"""A master of a few lines behind real gRPC, which says what a test tells it to say."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Self

import grpc

from fairlead_proto.v1 import (
    files_pb2,
    files_pb2_grpc,
    framework_pb2,
    framework_pb2_grpc,
    operator_pb2,
    operator_pb2_grpc,
)

Events = framework_pb2.FrameworkEvents
Event = framework_pb2.FrameworkEvent


def welcome(*, epoch: int = 1, framework_id: str = "f1", heartbeat_ms: int = 1000) -> Events:
    message = framework_pb2.Welcome(
        framework_id=framework_id,
        epoch=epoch,
        heartbeat_interval_ms=heartbeat_ms,
        failover_timeout_ms=60_000,
        role="default",
    )
    return Events(epoch=epoch, events=[Event(welcome=message)])


def error(code: int, detail: str, *, epoch: int = 1) -> Events:
    message = framework_pb2.Error(code=code, detail=detail)  # type: ignore[arg-type]  # a number, on purpose
    return Events(epoch=epoch, events=[Event(error=message)])


class Session:
    """One stream as the master sees it."""

    def __init__(self, calls: AsyncIterator[framework_pb2.FrameworkCalls], context: Any) -> None:
        self._calls = calls
        self._pending: list[framework_pb2.FrameworkCall] = []
        self.context = context
        self.over = asyncio.Event()

    async def next_call(self, kind: str) -> framework_pb2.FrameworkCall:
        """The next call, which must be of this kind."""
        while not self._pending:
            message = await anext(self._calls)
            self._pending.extend(message.calls)
        call = self._pending.pop(0)
        assert call.WhichOneof("call") == kind, f"expected {kind}, got {call}"
        return call

    async def send(self, events: Events) -> None:
        await self.context.write(events)

    def end(self) -> None:
        """End the stream in good order."""
        self.over.set()


class Frameworks(framework_pb2_grpc.FrameworkServiceServicer):
    def __init__(self) -> None:
        self.sessions: asyncio.Queue[Session] = asyncio.Queue()

    async def Connect(  # noqa: N802 - the schema's name
        self, request_iterator: Any, context: Any
    ) -> None:
        session = Session(request_iterator, context)
        self.sessions.put_nowait(session)
        await session.over.wait()


class Operators(operator_pb2_grpc.OperatorServiceServicer):
    """Two pages of tasks, and a watch that ends after each answer."""

    def __init__(self) -> None:
        self.refusal: tuple[grpc.StatusCode, str] | None = None
        self.watched_from: list[int] = []
        self.asked_about: list[int] = []
        """How many ids were in each request."""

    async def GetCluster(  # noqa: N802 - the schema's name
        self, request: Any, context: Any
    ) -> operator_pb2.Cluster:
        if self.refusal is not None:
            await context.abort(*self.refusal)
        return operator_pb2.Cluster(epoch=7)

    async def ListTasks(  # noqa: N802 - the schema's name
        self, request: Any, context: Any
    ) -> operator_pb2.ListTasksResponse:
        if request.task_ids:
            self.asked_about.append(len(request.task_ids))
            tasks = [operator_pb2.TaskInfo(task_id=task_id) for task_id in request.task_ids]
            return operator_pb2.ListTasksResponse(tasks=tasks)
        assert list(request.states) == ["RUNNING"]
        page = int(request.page_token or 0)
        tasks = [operator_pb2.TaskInfo(task_id=f"t{2 * page + n}") for n in range(2)]
        token = str(page + 1) if page < 2 else ""
        return operator_pb2.ListTasksResponse(tasks=tasks, next_page_token=token)

    async def KillTasks(  # noqa: N802 - the schema's name
        self, request: Any, context: Any
    ) -> operator_pb2.KillTasksResponse:
        self.asked_about.append(len(request.task_ids))
        items = [operator_pb2.KillTasksResponse.Item(task_id=task_id) for task_id in request.task_ids]
        return operator_pb2.KillTasksResponse(items=items)

    async def ListRoles(  # noqa: N802 - the schema's name
        self, request: Any, context: Any
    ) -> operator_pb2.ListRolesResponse:
        return operator_pb2.ListRolesResponse(prices={"cpus": 2.0, "mem": 0.5}, next_page_token="more")

    async def Watch(  # noqa: N802 - the schema's name
        self, request: Any, context: Any
    ) -> None:
        self.watched_from.append(request.from_version)
        await context.write(operator_pb2.Changes(version=10 * len(self.watched_from)))


class Files(files_pb2_grpc.FilesServiceServicer):
    """A file that grows by what a test puts in; a failure in the queue is one failed read."""

    def __init__(self) -> None:
        self.data = b""
        self.complete = False
        self.failures: list[grpc.StatusCode] = []
        self.grown = asyncio.Event()

    async def Read(  # noqa: N802 - the schema's name
        self, request: Any, context: Any
    ) -> files_pb2.ReadResponse:
        if request.task_id != "t":
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no task {request.task_id}")
        if self.failures:
            await context.abort(self.failures.pop(0), "on its way")
        if request.wait_ms and request.offset >= len(self.data) and not self.complete:
            self.grown.clear()
            await self.grown.wait()
        offset = request.offset if request.offset >= 0 else max(0, len(self.data) + request.offset)
        piece = self.data[offset : offset + 4]
        return files_pb2.ReadResponse(
            offset=offset,
            data=piece,
            size=len(self.data),
            complete=self.complete and offset + len(piece) == len(self.data),
        )

    def grow(self, data: bytes, *, complete: bool = False) -> None:
        self.data += data
        self.complete = complete
        self.grown.set()


class GrpcDouble:
    """The server, on a port of its own choice; ``stop`` and ``start`` again for a restart at the same port."""

    def __init__(self) -> None:
        self.frameworks = Frameworks()
        self.operators = Operators()
        self.files = Files()
        self.port = 0
        self._server: grpc.aio.Server | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = grpc.aio.server()
        framework_pb2_grpc.add_FrameworkServiceServicer_to_server(self.frameworks, self._server)
        operator_pb2_grpc.add_OperatorServiceServicer_to_server(self.operators, self._server)
        files_pb2_grpc.add_FilesServiceServicer_to_server(self.files, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def session(self) -> Session:
        """The next stream that opens."""
        return await self.frameworks.sessions.get()
