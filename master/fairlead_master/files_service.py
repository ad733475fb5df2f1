"""FilesService: sandboxes, read through the agent that has them."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import grpc

from fairlead_master.agent_files import AgentAwayError
from fairlead_master.core.operations import find_by_id
from fairlead_master.output_follows import Follows
from fairlead_master.runner import Runner
from fairlead_proto import fields, limits
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.v1 import agent_pb2, files_pb2_grpc
from fairlead_proto.v1 import files_pb2 as pb

Context = Any
"""grpc.aio.ServicerContext; the stubs make it generic, the class is not at run time."""

AskAgent = Callable[[AgentId, agent_pb2.FileRequest, float], Awaitable[agent_pb2.FileChunk]]
"""Asks an agent about a sandbox, for so many seconds; raises ``AgentAwayError``."""

READ_LENGTH_DEFAULT: Final = 64 * 1024
READ_LENGTH_MAX: Final = 1024 * 1024
WAIT_MS_MAX: Final = 30_000
ANSWER_SECONDS: Final = 10.0
"""What an agent is given beyond the wait it was asked for."""

NO_AGENT: Final = AgentId("")

_STATUS: Final = {
    agent_pb2.FILE_CODE_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    agent_pb2.FILE_CODE_COLLECTED: grpc.StatusCode.NOT_FOUND,
    agent_pb2.FILE_CODE_OUTSIDE_SANDBOX: grpc.StatusCode.PERMISSION_DENIED,
    agent_pb2.FILE_CODE_UNREADABLE: grpc.StatusCode.FAILED_PRECONDITION,
}


class _Place(NamedTuple):
    """Whose sandbox, and where."""

    framework_id: FrameworkId
    task_id: TaskId
    agent_id: AgentId


class FilesService(files_pb2_grpc.FilesServiceServicer):
    """Finds the task's agent and asks it."""

    def __init__(self, runner: Runner, ask_agent: AskAgent, follows: Follows) -> None:
        self._runner = runner
        self._ask_agent = ask_agent
        self._follows = follows

    async def Read(self, request: pb.ReadRequest, context: Context) -> pb.ReadResponse:
        if not 0 <= request.length <= READ_LENGTH_MAX:
            await _refuse(context, f"length: expected 0 to {READ_LENGTH_MAX}, got {request.length}")
        if not 0 <= request.wait_ms <= WAIT_MS_MAX:
            await _refuse(context, f"wait_ms: expected 0 to {WAIT_MS_MAX}, got {request.wait_ms}")
        await _check_path(request.path, context)
        place = await self._find(request, context, AgentId(request.agent_id))
        question = agent_pb2.FileRequest(
            framework_id=place.framework_id,
            task_id=place.task_id,
            path=request.path,
            offset=request.offset,
            length=request.length or READ_LENGTH_DEFAULT,
            wait_ms=request.wait_ms,
        )
        chunk = await self._ask(place.agent_id, question, context)
        return pb.ReadResponse(offset=chunk.offset, data=chunk.data, size=chunk.size, complete=chunk.complete)

    async def List(self, request: pb.ListFilesRequest, context: Context) -> pb.ListFilesResponse:
        await _check_path(request.path, context)
        place = await self._find(request, context)
        question = agent_pb2.FileRequest(
            framework_id=place.framework_id, task_id=place.task_id, path=request.path, list=True
        )
        chunk = await self._ask(place.agent_id, question, context)
        return pb.ListFilesResponse(entries=chunk.entries)

    async def Follow(self, request: pb.FollowRequest, context: Context) -> None:
        """Hand on what agents send, as the reader takes it."""
        framework_id = FrameworkId(request.framework_id)
        if framework_id not in self._runner.machine.master.frameworks:
            detail = f"framework_id: expected one that is registered, got {framework_id!r}"
            await context.abort(grpc.StatusCode.NOT_FOUND, detail)
        try:
            positions = dict(_read_positions(request.positions))
        except fields.InvalidFieldError as error:
            await _refuse(context, str(error))
            raise
        follower = self._follows.open(framework_id, positions)
        try:
            await context.write(pb.Output())  # says that it has begun
            while True:
                output, numbers = await follower.take()
                await context.write(output)
                self._follows.passed_on(numbers)
        finally:
            self._follows.close(follower)

    async def _find(
        self, request: pb.ReadRequest | pb.ListFilesRequest, context: Context, agent_id: AgentId = NO_AGENT
    ) -> _Place:
        task_id = TaskId(request.task_id)
        owner = FrameworkId(request.framework_id) if request.framework_id else None
        master = self._runner.machine.master
        found = find_by_id(master, task_id, owner)
        if not found and owner is not None and agent_id in master.agents:
            # Its end was settled with a master of before, or so many ended since that it was forgotten here.
            return _Place(owner, task_id, agent_id)
        if not found and master.recovering:
            # Not NOT_FOUND, which ends whoever follows the output of a task over a restart of the master.
            away = ", ".join(list(master.recovering)[:5])
            detail = f"the agent of task {task_id!r} may not be back since the master's restart: waiting for {away}"
            await context.abort(grpc.StatusCode.UNAVAILABLE, detail)
        if not found:
            detail = f"task_id: expected a task that was launched and is remembered, got {task_id!r}"
            await context.abort(grpc.StatusCode.NOT_FOUND, detail)
        if len(found) > 1:
            owners = ", ".join(task.framework_id for task in found[:5])
            await _refuse(context, f"task_id: several frameworks have {task_id!r}; name one of {owners}")
        return _Place(found[0].framework_id, task_id, found[0].agent_id)

    async def _ask(
        self, agent_id: AgentId, question: agent_pb2.FileRequest, context: Context
    ) -> agent_pb2.FileChunk:
        try:
            chunk = await self._ask_agent(agent_id, question, question.wait_ms / 1000 + ANSWER_SECONDS)
        except AgentAwayError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            raise
        if chunk.code != agent_pb2.FILE_CODE_OK:
            detail = chunk.detail[: limits.STATUS_MESSAGE_LENGTH_MAX]
            await context.abort(_STATUS.get(chunk.code, grpc.StatusCode.INTERNAL), detail)
        if fault := _fault_in(chunk, question.length):
            await context.abort(grpc.StatusCode.INTERNAL, f"agent {agent_id} answered {fault}")
        return chunk


def _fault_in(chunk: agent_pb2.FileChunk, length: int) -> str:
    """What no honest agent says of a file, empty if there is nothing: a reader goes on where a chunk ends."""
    if len(chunk.data) > length:
        return f"with {len(chunk.data)} bytes, expected at most {length}"
    # Above there is no bound: a sparse file may be as long as its field can say.
    least = min(chunk.offset, chunk.size, *(entry.size for entry in chunk.entries))
    return f"with an offset or a size of {least}, expected 0 or more" if least < 0 else ""


def _read_positions(
    positions: Iterable[agent_pb2.OutputPosition],
) -> Iterator[tuple[TaskId, tuple[int, int]]]:
    for index, position in enumerate(positions):
        field = f"positions[{index}]"
        task_id = TaskId(fields.read_id(f"{field}.task_id", position.task_id))
        offsets = position.stdout_offset, position.stderr_offset
        if min(offsets) < 0:
            raise fields.InvalidFieldError(f"{field}: expected offsets of 0 or more, got {min(offsets)}")
        yield task_id, offsets


async def _check_path(path: str, context: Context) -> None:
    try:
        fields.read_path("path", path)
    except fields.InvalidFieldError as error:
        await _refuse(context, str(error))


async def _refuse(context: Context, detail: str) -> None:
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, detail)
