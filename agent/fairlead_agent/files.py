"""Answers the master's requests for files of sandboxes.

A reader that follows a file asks to be answered when there is more. Such requests wait together: one shared pulse while
anybody waits, and an extra one whenever a task moves, so that the end of a task is seen at once; nothing at all while
nobody waits.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from fairlead_agent.core.machine import SandboxState
from fairlead_agent.executor.sandbox import (
    ROTATED_NAMES,
    FileNotThere,
    OutsideSandbox,
    SandboxPart,
    SandboxReader,
    SandboxRefused,
)
from fairlead_agent.work_dir import WorkDir
from fairlead_proto.ids import FrameworkId, TaskId, TaskKey
from fairlead_proto.v1 import agent_pb2

REQUESTS_MAX: Final = 256
"""Answered at once: each may hold a MiB for a moment. People follow a few tasks; who asks for more is told so."""

WAITING_MAX: Final = 64
"""Requests that wait for more. Each costs a look at its file every pulse; those beyond are answered as things stand."""

PULSE_S: Final = 0.1
"""Between looks at files that somebody waits for: too short for a person to notice."""

READ_BYTES_DEFAULT: Final = 64 * 1024
READ_BYTES_MAX: Final = 1024 * 1024
WAIT_MS_MAX: Final = 30_000
"""The master's own limit; an answer after it would be for nobody."""

Reply = Callable[[agent_pb2.FileChunk], None]
SandboxStateOf = Callable[[TaskKey], SandboxState]


class FileServer:
    """Answers each request once, in any order."""

    def __init__(
        self, work_dir: WorkDir, state_of: SandboxStateOf, reply: Reply, log: FilteringBoundLogger
    ) -> None:
        self._work_dir = work_dir
        self._state_of = state_of
        self._reply = reply
        self._log = log
        self._requests: set[asyncio.Task[None]] = set()
        self._waiting_count = 0
        self._has_waiting = asyncio.Event()
        self._pulse = asyncio.Event()

    def request(self, request: agent_pb2.FileRequest) -> None:
        """Begin to answer a request."""
        if len(self._requests) >= REQUESTS_MAX:
            detail = f"this agent answers {REQUESTS_MAX} requests at once; ask again"
            self._refuse(request, agent_pb2.FILE_CODE_UNREADABLE, detail)
            return
        task = asyncio.create_task(self._answer(request), name="file-request")
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    def forget(self) -> None:
        """Answer none of the requests begun so far: who made them is gone, and the next one counts from 1 again."""
        for task in list(self._requests):
            task.cancel()

    def wake(self) -> None:
        """Have every waiting request look again: something may have changed."""
        if self._waiting_count:
            self._pulse.set()
            self._pulse = asyncio.Event()

    async def run(self) -> None:
        """Give the pulse while somebody waits. Cancels what is unanswered when it is cancelled itself."""
        try:
            while True:
                await self._has_waiting.wait()
                await asyncio.sleep(PULSE_S)
                self.wake()
        finally:
            self.forget()

    async def _answer(self, request: agent_pb2.FileRequest) -> None:
        key = (FrameworkId(request.framework_id), TaskId(request.task_id))
        try:
            match self._state_of(key):
                case SandboxState.UNKNOWN:
                    detail = f"no task {request.framework_id}/{request.task_id} has run here lately"
                    self._refuse(request, agent_pb2.FILE_CODE_NOT_FOUND, detail)
                case SandboxState.COLLECTED:
                    self._refuse(request, agent_pb2.FILE_CODE_COLLECTED, "the sandbox was removed")
                case SandboxState.NONE:
                    detail = "no files: the task was launched without any, so what it prints is not kept"
                    self._refuse(request, agent_pb2.FILE_CODE_NOT_FOUND, detail)
                case SandboxState.GROWING | SandboxState.COMPLETE:
                    reader = SandboxReader(Path(self._work_dir.sandbox(key)))
                    await (self._list(request, reader) if request.list else self._read(request, reader, key))
        except FileNotThere as error:
            self._refuse(request, agent_pb2.FILE_CODE_NOT_FOUND, str(error))
        except OutsideSandbox as error:
            self._refuse(request, agent_pb2.FILE_CODE_OUTSIDE_SANDBOX, str(error))
        except (SandboxRefused, OSError) as error:
            self._refuse(request, agent_pb2.FILE_CODE_UNREADABLE, str(error))

    def _refuse(self, request: agent_pb2.FileRequest, code: agent_pb2.FileCode, detail: str) -> None:
        self._log.info("file.refused", task_id=request.task_id, path=request.path, detail=detail)
        self._reply(
            agent_pb2.FileChunk(
                request_id=request.request_id,
                code=code,
                detail=detail.encode(errors="replace").decode(),
            )
        )

    async def _list(self, request: agent_pb2.FileRequest, reader: SandboxReader) -> None:
        entries = await asyncio.to_thread(reader.list, request.path)
        self._reply(
            agent_pb2.FileChunk(
                request_id=request.request_id,
                code=agent_pb2.FILE_CODE_OK,
                entries=[
                    agent_pb2.FileEntry(
                        path=entry.path,
                        size=entry.size,
                        modified_ms=entry.modified_ms,
                        is_directory=entry.is_directory,
                    )
                    for entry in entries
                ],
            )
        )

    async def _read(self, request: agent_pb2.FileRequest, reader: SandboxReader, key: TaskKey) -> None:
        length = min(request.length if request.length > 0 else READ_BYTES_DEFAULT, READ_BYTES_MAX)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + min(max(0, request.wait_ms), WAIT_MS_MAX) / 1000
        offset = request.offset
        while True:
            # Asked before reading: a task that ends in between is read once more.
            is_over = self._state_of(key) is not SandboxState.GROWING
            part, refusal = await asyncio.to_thread(_attempt, reader, request.path, offset, length)
            rest_s = deadline_s - loop.time()
            if part.data or is_over or rest_s <= 0 or self._waiting_count >= WAITING_MAX:
                break
            if refusal is None:
                # A negative offset is from the end as it was at first, or nothing would ever lie past it.
                offset = part.offset
            await self._wait(rest_s)
        if refusal is not None and (is_over or request.path not in ROTATED_NAMES):
            raise refusal
        self._reply(
            agent_pb2.FileChunk(
                request_id=request.request_id,
                code=agent_pb2.FILE_CODE_OK,
                offset=part.offset,
                data=part.data,
                size=part.size,
                complete=is_over and part.offset + len(part.data) >= part.size,
            )
        )

    async def _wait(self, rest_s: float) -> None:
        self._waiting_count += 1
        self._has_waiting.set()
        try:
            async with asyncio.timeout(rest_s):
                await self._pulse.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting_count -= 1
            if not self._waiting_count:
                self._has_waiting.clear()


def _attempt(
    reader: SandboxReader, path: str, offset: int, length: int
) -> tuple[SandboxPart, FileNotThere | None]:
    """Read; a file that is not there is empty for now, for its task may be about to make it, or its sandbox."""
    try:
        return reader.read(path, offset, length), None
    except FileNotThere as error:
        return SandboxPart(offset=max(0, offset), data=b"", size=0), error
