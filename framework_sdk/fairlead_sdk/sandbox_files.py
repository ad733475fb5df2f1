"""Reading files of a task's sandbox, whole or as they grow, over whatever answers read requests."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from fairlead_proto.backoff import Backoff
from fairlead_proto.v1 import files_pb2
from fairlead_sdk.clock import Clock, sleep
from fairlead_sdk.errors import LinkBroken, MasterUnreachable

PIECE_BYTES: Final = 1024 * 1024
"""The most the service gives at once."""

FOLLOW_WAIT_MS: Final = 10_000
"""How long the master holds a read that has nothing to give. It answers as soon as there is something, so long is cheap."""

Read = Callable[[files_pb2.ReadRequest], Awaitable[files_pb2.ReadResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxFile:
    """A file of the sandbox of a task."""

    framework_id: str
    task_id: str
    path: str
    agent_id: str = ""
    """Where the task ran, if that is known: asked by a master that does not remember the task."""

    def request(self, offset: int, wait_ms: int = 0) -> files_pb2.ReadRequest:
        """The request for a piece of it; see ``ReadRequest``."""
        return files_pb2.ReadRequest(
            framework_id=self.framework_id,
            task_id=self.task_id,
            path=self.path,
            agent_id=self.agent_id,
            offset=offset,
            length=PIECE_BYTES,
            wait_ms=wait_ms,
        )


async def read_whole(read: Read, file: SandboxFile, *, address: str, tail_bytes: int = 0) -> bytes:
    """What is in the file now; with ``tail_bytes``, at most its last so many bytes. The address is for errors.

    Raises:
        MasterUnreachable: no master there.
        Refused: no such task or file.
    """
    pieces: list[bytes] = []
    offset = -tail_bytes
    while True:
        try:
            piece = await read(file.request(offset))
        except LinkBroken as trouble:
            raise MasterUnreachable(address, str(trouble)) from None
        pieces.append(piece.data)
        offset = piece.offset + len(piece.data)
        if not piece.data or offset >= piece.size:
            return b"".join(pieces)


async def follow(
    read: Read, file: SandboxFile, *, offset: int = 0, clock: Clock, jitter: Callable[[], float]
) -> AsyncIterator[bytes]:
    """The file's bytes from ``offset`` as they are written, until the task is over and all was read.

    A master that goes away is waited for: following goes on where it was. What was rotated away meanwhile is skipped.

    Raises:
        Refused: no such task or file.
    """
    backoff = Backoff(jitter)
    while True:
        try:
            piece = await read(file.request(offset, FOLLOW_WAIT_MS))
        except LinkBroken:
            await sleep(clock, backoff.next_ms())
            continue
        backoff.reset()
        if piece.data:
            yield piece.data
        offset = piece.offset + len(piece.data)
        if piece.complete:
            return
