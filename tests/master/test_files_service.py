"""Files of sandboxes are asked of agents, which are not believed everything."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from fairlead_master import sessions
from fairlead_master.server import MasterServer
from fairlead_proto.v1 import agent_pb2, agent_pb2_grpc, files_pb2, files_pb2_grpc
from tests.builders.peers import PATIENCE_S, RawAgent, RawFramework, a_master, until

pytestmark = pytest.mark.shell


@pytest.fixture
async def master() -> AsyncIterator[MasterServer]:
    async with a_master() as server:
        yield server


@pytest.fixture
async def served(master: MasterServer) -> AsyncIterator[tuple[RawAgent, Any]]:
    """An agent that has a task ``t1``, and the service that its files are asked of."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{master.port}") as channel:
        agent, framework = RawAgent(master.port), RawFramework(master.port)
        await agent.register()
        await framework.hello()
        await framework.want()
        await framework.accept(await framework.offer(), "t1")
        yield agent, files_pb2_grpc.FilesServiceStub(channel)
        await agent.close()
        await framework.close()


@pytest.mark.parametrize(
    ("chunk", "complaint"),
    [
        ({"offset": -1, "data": b"lo"}, "answered with an offset or a size of -1, expected 0 or more"),
        ({"size": -(2**63)}, "answered with an offset or a size of -9223372036854775808"),
        ({"entries": [agent_pb2.FileEntry(path="f", size=-1)]}, "answered with an offset or a size of -1"),
        ({"data": b"more"}, "answered with 4 bytes, expected at most 2"),
    ],
)
async def test_a_chunk_that_no_file_has_is_an_error_of_its_agent(
    served: tuple[RawAgent, Any], chunk: dict[str, Any], complaint: str
) -> None:
    """A reader goes on where a chunk ends: one that ends before the beginning would be read for ever."""
    agent, files = served
    reading = asyncio.ensure_future(files.Read(files_pb2.ReadRequest(task_id="t1", path="stdout", length=2)))
    question = await agent.expect("file_request")
    answer = agent_pb2.FileChunk(request_id=question.request_id, code="FILE_CODE_OK", **chunk)
    await agent.send(file_chunk=answer)

    with pytest.raises(grpc.aio.AioRpcError, match=f"agent a[a-z0-9]*-1 {complaint}") as error:
        await reading

    assert error.value.code() is grpc.StatusCode.INTERNAL


@pytest.mark.parametrize("path", ["a\0b", "\N{GRINNING FACE}" * 1_025])
async def test_a_path_that_no_file_has_is_refused_before_an_agent_is_asked(
    served: tuple[RawAgent, Any], path: str
) -> None:
    _, files = served
    with pytest.raises(grpc.aio.AioRpcError, match="path: expected a path") as error:
        await files.Read(files_pb2.ReadRequest(task_id="t1", path=path))

    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def open_files(master: MasterServer, agent: RawAgent) -> None:
    """Open the agent's stream of files and wait until the master has it."""
    (session,) = master.runner.machine.master.agent_by_session
    assert master._agents is not None
    files = master._agents._sessions[session].files
    await agent.open_files(files.token)
    await until(lambda: files.has_stream)


def read(files: Any, **fields: Any) -> "asyncio.Future[files_pb2.ReadResponse]":
    request = files_pb2.ReadRequest(task_id="t1", path="stdout", length=2**20, **fields)
    reading: asyncio.Future[files_pb2.ReadResponse] = asyncio.ensure_future(files.Read(request))
    return reading


async def test_files_go_by_the_stream_beside_the_session(
    master: MasterServer, served: tuple[RawAgent, Any]
) -> None:
    agent, files = served
    await open_files(master, agent)

    reading = read(files)
    question = await agent.asked_file()
    await agent.report("f1-1", "t1", 1, "RUNNING")
    chunk = agent_pb2.FileChunk(
        request_id=question.request_id, code="FILE_CODE_OK", data=bytes(2**20), size=2**20
    )
    await agent.files.write(agent_pb2.FileAnswers(chunks=[chunk]))

    assert (await reading).data == chunk.data
    assert question.path == "stdout"


async def test_a_stream_of_files_without_the_token_of_a_session_is_refused(
    served: tuple[RawAgent, Any],
) -> None:
    agent, _ = served
    await agent.open_files("guessed")

    with pytest.raises(grpc.aio.AioRpcError, match="expected the files_token of a session") as error:
        await agent.files.read()

    assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_what_was_asked_by_a_stream_that_ends_is_given_up_and_the_next_goes_by_the_session(
    master: MasterServer, served: tuple[RawAgent, Any]
) -> None:
    agent, files = served
    await open_files(master, agent)
    lost = read(files)
    await agent.asked_file()

    await agent.files.done_writing()
    with pytest.raises(grpc.aio.AioRpcError, match="the agent left before it answered") as error:
        await lost
    again = read(files)
    question = await agent.expect("file_request")
    answer = agent_pb2.FileChunk(request_id=question.request_id, code="FILE_CODE_OK", data=b"x", size=1)
    await agent.send(file_chunk=answer)

    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    assert (await again).data == b"x"


async def test_the_end_of_a_session_ends_its_stream_of_files(
    master: MasterServer, served: tuple[RawAgent, Any]
) -> None:
    agent, files = served
    await open_files(master, agent)
    lost = read(files)
    await agent.asked_file()

    await agent.stream.done_writing()

    with pytest.raises(grpc.aio.AioRpcError, match="the agent left before it answered"):
        await lost
    assert await agent.files.read() is grpc.aio.EOF


async def test_a_stream_of_files_that_does_not_say_whose_it_is_is_ended(
    monkeypatch: pytest.MonkeyPatch, served: tuple[RawAgent, Any]
) -> None:
    monkeypatch.setattr(sessions, "FIRST_MESSAGE_SECONDS_MAX", 0.05)
    agent, _ = served
    silent = agent_pb2_grpc.AgentServiceStub(agent.channel).Files()

    with pytest.raises(grpc.aio.AioRpcError, match="expected the files_token of a session"):
        await asyncio.wait_for(silent.read(), PATIENCE_S)


async def test_a_task_whose_agent_is_not_back_since_a_restart_is_not_unknown(tmp_path: Path) -> None:
    """Who follows its output would take that for the end."""
    async with a_master(tmp_path) as master:
        agent = RawAgent(master.port)
        await agent.register()
        await agent.close()

    for_both = files_pb2.ReadRequest(task_id="t1", path="stdout")
    codes = []
    for directory in (tmp_path, tmp_path / "another"):
        async with (
            a_master(directory) as master,
            grpc.aio.insecure_channel(f"127.0.0.1:{master.port}") as channel,
        ):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await files_pb2_grpc.FilesServiceStub(channel).Read(for_both)
            codes.append((error.value.code(), (error.value.details() or "").partition(" 't1'")[0]))

    assert codes == [
        (grpc.StatusCode.UNAVAILABLE, "the agent of task"),
        (grpc.StatusCode.NOT_FOUND, "task_id: expected a task that was launched and is remembered, got"),
    ]


async def test_of_a_task_the_master_does_not_remember_the_agent_where_it_ran_is_asked(
    master: MasterServer, served: tuple[RawAgent, Any]
) -> None:
    """Its end was settled with the master of before a restart, and the sandbox is there."""
    agent, files = served
    (agent_id,) = master.runner.machine.master.agents
    place: dict[str, Any] = {"framework_id": "f1-1", "task_id": "of-before", "path": "stdout"}

    reading = asyncio.ensure_future(files.Read(files_pb2.ReadRequest(**place, agent_id=agent_id)))
    question = await agent.expect("file_request")
    answer = agent_pb2.FileChunk(request_id=question.request_id, code="FILE_CODE_OK", data=b"x", size=1)
    await agent.send(file_chunk=answer)
    nowhere = []
    for wrong in ({"agent_id": "a-nobody"}, {"agent_id": agent_id, "framework_id": ""}):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await files.Read(files_pb2.ReadRequest(**{**place, **wrong}))
        nowhere.append(error.value.code())

    assert (await reading).data == b"x"
    assert (question.framework_id, question.task_id) == ("f1-1", "of-before")
    assert nowhere == [grpc.StatusCode.NOT_FOUND] * 2


async def test_of_a_task_the_master_does_not_remember_the_agent_where_it_ran_is_waited_for(
    master: MasterServer, served: tuple[RawAgent, Any]
) -> None:
    agent, files = served
    (agent_id,) = master.runner.machine.master.agents
    await agent.close()
    await until(lambda: not master.runner.machine.master.agent_by_session)

    with pytest.raises(grpc.aio.AioRpcError, match="is not connected") as error:
        await files.Read(
            files_pb2.ReadRequest(framework_id="f1-1", task_id="of-before", path="stdout", agent_id=agent_id)
        )

    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
