"""Requests for files: bounded in number, waited for together."""

import asyncio
from pathlib import Path

import pytest
import structlog

from fairlead_agent import files as files_module
from fairlead_agent.core.machine import SandboxState
from fairlead_agent.files import FileServer
from fairlead_agent.work_dir import WorkDir
from fairlead_proto.v1 import agent_pb2
from tests.agent.builders import a_key


class Reader:
    """A file server whose one task is in the state a test says."""

    def __init__(self, path: Path) -> None:
        self.work_dir = WorkDir.open(path)
        self.state = SandboxState.GROWING
        self.answers: dict[int, agent_pb2.FileChunk] = {}
        self.answered = asyncio.Event()
        self.server = FileServer(self.work_dir, lambda _key: self.state, self.take, structlog.get_logger())
        self.sandbox = Path(self.work_dir.sandbox(a_key()))
        self.sandbox.mkdir(parents=True)

    def take(self, chunk: agent_pb2.FileChunk) -> None:
        self.answers[chunk.request_id] = chunk
        self.answered.set()

    def ask(self, number: int, path: str = "stdout", *, wait_ms: int = 0, offset: int = 0) -> None:
        self.server.request(
            agent_pb2.FileRequest(
                request_id=number,
                framework_id="f1",
                task_id="t1",
                path=path,
                wait_ms=wait_ms,
                offset=offset,
                length=100,
            )
        )

    async def answer(self, number: int) -> agent_pb2.FileChunk:
        while number not in self.answers:
            self.answered.clear()
            await self.answered.wait()
        return self.answers[number]


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


async def test_requests_beyond_the_bound_are_refused(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "REQUESTS_MAX", 1)
    reader.ask(1)
    reader.ask(2)

    assert (await reader.answer(2)).code == agent_pb2.FILE_CODE_UNREADABLE
    assert (await reader.answer(1)).code == agent_pb2.FILE_CODE_OK


async def test_waiting_beyond_the_bound_is_answered_as_things_stand(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "WAITING_MAX", 0)
    reader.ask(1, wait_ms=30_000)

    chunk = await reader.answer(1)

    assert (chunk.code, chunk.data, chunk.complete) == (agent_pb2.FILE_CODE_OK, b"", False)


async def test_wait_ends_when_its_time_is_over(reader: Reader) -> None:
    reader.ask(1, wait_ms=10)

    assert (await reader.answer(1)).data == b""


async def test_file_that_is_made_while_somebody_waits_is_read(reader: Reader) -> None:
    pulse = asyncio.create_task(reader.server.run())
    reader.ask(1, path="result", wait_ms=30_000)
    await asyncio.sleep(0)
    (reader.sandbox / "result").write_text("42")

    assert (await reader.answer(1)).data == b"42"
    pulse.cancel()


async def test_file_that_is_not_made_in_time_is_not_found(reader: Reader) -> None:
    reader.ask(1, path="result", wait_ms=10)

    assert (await reader.answer(1)).code == agent_pb2.FILE_CODE_NOT_FOUND


async def test_output_of_a_task_that_is_about_to_start_is_empty_for_now(reader: Reader) -> None:
    reader.sandbox.rmdir()
    reader.ask(1)

    chunk = await reader.answer(1)

    assert (chunk.code, chunk.data, chunk.complete) == (agent_pb2.FILE_CODE_OK, b"", False)


async def test_end_from_which_a_reader_follows_is_the_end_it_asked_at(reader: Reader) -> None:
    (reader.sandbox / "stdout").write_text("")
    reader.ask(1, offset=-10, wait_ms=30_000)
    await reader.server._has_waiting.wait()  # it has looked once, and does so again when woken
    (reader.sandbox / "stdout").write_text("x" * 50)
    reader.state = SandboxState.COMPLETE
    reader.server.wake()

    chunk = await reader.answer(1)

    assert (chunk.offset, len(chunk.data), chunk.complete) == (0, 50, True)


async def test_unanswered_requests_end_with_the_server(reader: Reader) -> None:
    run = asyncio.create_task(reader.server.run())
    reader.ask(1, wait_ms=30_000)
    await asyncio.sleep(0)
    (request,) = reader.server._requests

    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    await asyncio.gather(request, return_exceptions=True)

    assert request.cancelled()
    assert reader.answers == {}


async def test_files_of_a_task_without_any_are_refused_saying_so(reader: Reader) -> None:
    reader.state = SandboxState.NONE

    reader.ask(1)

    chunk = await reader.answer(1)
    assert chunk.code == agent_pb2.FILE_CODE_NOT_FOUND
    assert chunk.detail == "no files: the task was launched without any, so what it prints is not kept"
