"""Files of sandboxes are asked of agents, which are not believed everything."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from fairlead_proto.v1 import agent_pb2, files_pb2, files_pb2_grpc
from tests.builders.peers import RawAgent, RawFramework, a_master

pytestmark = pytest.mark.shell


@pytest.fixture
async def served() -> AsyncIterator[tuple[RawAgent, Any]]:
    """An agent that has a task ``t1``, and the service that its files are asked of."""
    async with a_master() as master, grpc.aio.insecure_channel(f"127.0.0.1:{master.port}") as channel:
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
