"""Reads a task's output through the master, once or as it is written, for `logs`; what `run` shows is pushed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import grpc

from fairlead_cli.connection import CHANNEL_OPTIONS, as_expected
from fairlead_cli.errors import Unreachable
from fairlead_proto.v1.files_pb2 import ReadRequest, ReadResponse
from fairlead_proto.v1.files_pb2_grpc import FilesServiceStub
from fairlead_proto.v1.operator_pb2_grpc import OperatorServiceStub

CHUNK_BYTES: Final = 256 * 1024
WAIT_MS: Final = 20_000
"""How long one call may wait for output: the schema allows 30 s; a call that waits costs nothing."""

ANSWER_S: Final = 10.0
"""Beyond the wait, for the answer to travel from the agent through the master."""

PATIENCE_S: Final = 60.0
"""How long a master or agent may be away while its output is followed: a restart of either takes seconds."""

RETRY_S: Final = 0.25


class AsyncConnection:
    """The services of one master, for an event loop."""

    def __init__(self, address: str, channel: grpc.aio.Channel) -> None:
        self.address = address
        self.operator = OperatorServiceStub(channel)
        self.files = FilesServiceStub(channel)

    async def call(self, method: Any, request: Any, *, timeout_s: float = ANSWER_S) -> Any:
        """The answer to one unary call; errors as those of ``Connection.call``."""
        try:
            return await method(request, timeout=timeout_s)
        except grpc.RpcError as error:
            raise as_expected(error, self.address) from error


@asynccontextmanager
async def async_connected(address: str) -> AsyncIterator[AsyncConnection]:
    """A connection with the master at an address, for as long as the context."""
    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        yield AsyncConnection(address, channel)


class Output(NamedTuple):
    """One of a task's two output files."""

    framework_id: str
    task_id: str
    path: str
    """``stdout`` or ``stderr``."""


class Chunk(NamedTuple):
    """A piece of output."""

    data: bytes
    lost_bytes: int = 0
    """Output before it that was rotated away before it was read."""


async def read_output(
    connection: AsyncConnection, output: Output, *, offset: int = 0, follow: bool = False
) -> AsyncIterator[Chunk]:
    """Yield output from ``offset`` on: what there is, or with ``follow`` all until the task is over.

    Raises:
        Unreachable: the master, or the agent behind it, stayed away too long.
        Refused: the task or its sandbox is not known.
    """
    end: int | None = None
    while True:
        answer = await _read(connection, output, offset, wait_ms=WAIT_MS if follow else 0, is_patient=follow)
        if answer.data or answer.offset > offset:
            yield Chunk(answer.data, max(0, answer.offset - offset))
        offset = max(offset, answer.offset) + len(answer.data)
        # What is written while we read is not what there was.
        end = answer.size if end is None else end
        if answer.complete or (not follow and (offset >= end or not answer.data)):
            return


async def tail_offset(connection: AsyncConnection, output: Output, lines: int) -> int:
    """Where the last ``lines`` lines of what there is begin.

    Raises:
        Unreachable, Refused: as ``read_output``.
    """
    end = (await _read(connection, output, -1, length=1)).size
    if lines == 0:
        return end
    # One more newline than lines wanted marks the place, and the one that ends the last line is none of them.
    wanted = lines + 1
    position = end
    while position > 0:
        start = max(0, position - CHUNK_BYTES)
        answer = await _read(connection, output, start, length=position - start)
        data = answer.data[: max(0, position - answer.offset)]
        if position == end and not data.endswith(b"\n"):
            wanted -= 1
        for index in range(len(data) - 1, -1, -1):
            if data[index] == 0x0A:
                wanted -= 1
                if wanted == 0:
                    return answer.offset + index + 1
        if answer.offset >= position or answer.offset > start:
            return answer.offset  # the beginning was rotated away
        position = start
    return 0


async def _read(
    connection: AsyncConnection,
    output: Output,
    offset: int,
    *,
    length: int = CHUNK_BYTES,
    wait_ms: int = 0,
    is_patient: bool = False,
) -> ReadResponse:
    request = ReadRequest(
        framework_id=output.framework_id,
        task_id=output.task_id,
        path=output.path,
        offset=offset,
        length=length,
        wait_ms=wait_ms,
    )
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_S
    while True:
        try:
            answer = await connection.call(
                connection.files.Read, request, timeout_s=wait_ms / 1000 + ANSWER_S
            )
        except Unreachable:
            if not is_patient or loop.time() > deadline:
                raise
            await asyncio.sleep(RETRY_S)
        else:
            assert isinstance(answer, ReadResponse)
            return answer
