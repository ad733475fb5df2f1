"""The output of all tasks of a framework: each byte once and in order, and nothing that is missing goes unsaid."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import TaskUsage
from fairlead_proto.v1 import files_pb2
from fairlead_proto.v1.agent_pb2 import OutputPiece, OutputPosition
from fairlead_sdk import Task, TaskResult, output
from fairlead_sdk.calls import Launch
from fairlead_sdk.clock import LoopClock
from fairlead_sdk.errors import LinkBroken, Refused
from fairlead_sdk.output import OutputFollower, TaskOutput
from fairlead_sdk.transport import Link

TASK = Task(["t"], name="t")


class Master:
    """A transport whose streams a test writes, and whose sandboxes it fills."""

    address = "here"

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.streams: asyncio.Queue[tuple[files_pb2.FollowRequest, asyncio.Queue[object]]] = asyncio.Queue()
        self.refusal: Refused | None = None
        self.files: dict[str, bytes] = {}
        self.read: list[tuple[str, int]] = []
        self.asked: set[str] = set()
        self.reads_to_break = 0

    @staticmethod
    def jitter() -> float:
        return 0.0

    async def open(self) -> Link:
        raise LinkBroken("no sessions here")

    async def close(self) -> None:
        pass

    async def follow_output(self, request: files_pb2.FollowRequest) -> AsyncIterator[files_pb2.Output]:
        if self.refusal is not None:
            raise self.refusal
        stream: asyncio.Queue[object] = asyncio.Queue()
        self.streams.put_nowait((request, stream))
        while not isinstance(item := await stream.get(), Exception):
            assert isinstance(item, files_pb2.Output)
            yield item
        raise item

    async def read_file(self, request: files_pb2.ReadRequest) -> files_pb2.ReadResponse:
        self.read.append((request.path, request.offset))
        self.asked.add(request.agent_id)
        if self.reads_to_break:
            self.reads_to_break -= 1
            raise LinkBroken("the agent is not connected")
        if request.path not in self.files:
            raise Refused("UNKNOWN", "the sandbox was removed")
        data = self.files[request.path]
        return files_pb2.ReadResponse(
            offset=request.offset, data=data[request.offset :], size=len(data), complete=True
        )


def said(task_id: str, path: str, offset: int, data: bytes, *, complete: bool = False) -> files_pb2.Output:
    piece = OutputPiece(task_id=task_id, path=path, offset=offset, data=data, complete=complete)
    return files_pb2.Output(pieces=[piece])


def over(task_id: str, stdout_bytes: int | None, stderr_bytes: int | None = 0) -> TaskResult:
    usage = TaskUsage(stdout_bytes=stdout_bytes, stderr_bytes=stderr_bytes)
    return TaskResult(
        task=TASK,
        task_id=task_id,
        state=TaskState.FINISHED,
        usage=usage,
        attempts=1,
        started_ms=1,
        agent_id="a1",
    )


def words(pieces: list[TaskOutput]) -> list[tuple[str, str, bytes]]:
    return [(piece.task_id, piece.path, piece.data) for piece in pieces if piece.data]


class Reading:
    """A follower that is read to its end."""

    def __init__(self, master: Master, *task_ids: str) -> None:
        self.pieces: list[TaskOutput] = []
        self.came = asyncio.Event()
        self.follower = OutputFollower(master, "f1")
        for task_id in task_ids:
            self.follower.launched(Launch(task_id=task_id, task=TASK))
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for piece in self.follower:
            self.pieces.append(piece)
            self.came.set()

    async def until_count(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.pieces) < count:
                self.came.clear()
                await self.came.wait()

    async def finish(self) -> list[TaskOutput]:
        self.follower.finish()
        async with asyncio.timeout(20):
            await self.task
        return self.pieces


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Master:
    monkeypatch.setattr(output, "LOOK_MS", 1)
    return Master()


async def test_output_comes_by_one_stream_and_its_last_piece_is_marked(master: Master) -> None:
    reading = Reading(master, "t1", "t2", "t3")
    _, stream = await master.streams.get()
    stream.put_nowait(said("t1", "stdout", 0, b"a"))
    stream.put_nowait(said("t2", "stderr", 0, b"b"))
    stream.put_nowait(said("t1", "stdout", 1, b"c", complete=True))
    await reading.until_count(3)
    for result in (over("t1", 2), over("t2", 0, 1), over("t3", 0)):
        reading.follower.ended(result)

    pieces = await reading.finish()

    assert words(pieces) == [("t1", "stdout", b"a"), ("t2", "stderr", b"b"), ("t1", "stdout", b"c")]
    assert [(piece.task_id, piece.path) for piece in pieces if piece.is_last] == [
        ("t1", "stdout"),
        ("t2", "stderr"),
    ]
    assert master.read == []


async def test_a_stream_that_broke_goes_on_where_it_was_and_nothing_is_given_twice(master: Master) -> None:
    reading = Reading(master, "t1")
    _, first = await master.streams.get()
    first.put_nowait(said("t1", "stdout", 0, b"abc"))
    await reading.until_count(1)
    first.put_nowait(LinkBroken("gone"))

    request, second = await master.streams.get()
    second.put_nowait(said("t1", "stdout", 1, b"bcd"))  # as of an agent that was told less
    await reading.until_count(2)
    reading.follower.ended(over("t1", 4))

    assert list(request.positions) == [OutputPosition(task_id="t1", stdout_offset=3)]
    assert words(await reading.finish()) == [("t1", "stdout", b"abc"), ("t1", "stdout", b"d")]


async def test_a_stream_is_begun_again_when_the_session_broke(master: Master) -> None:
    """Its host may be gone without a word, which only the session finds out."""
    reading = Reading(master, "t1")
    await master.streams.get()

    reading.follower.broken()

    async with asyncio.timeout(20):
        await master.streams.get()
    await reading.finish()


async def test_what_was_rotated_away_is_marked(master: Master) -> None:
    reading = Reading(master, "t1")
    _, stream = await master.streams.get()
    stream.put_nowait(said("t1", "stdout", 5, b"f"))
    await reading.until_count(1)

    (piece,) = reading.pieces

    assert (piece.skipped_bytes, piece.offset, piece.data) == (5, 5, b"f")
    await reading.finish()


@pytest.mark.parametrize("is_old", [False, True])
async def test_what_does_not_come_by_the_stream_is_read_when_the_task_is_over(
    master: Master, monkeypatch: pytest.MonkeyPatch, *, is_old: bool
) -> None:
    """As of an agent of before there were such streams, or with a master of then."""
    if is_old:
        master.refusal = Refused("INVALID", "unimplemented")
    monkeypatch.setattr(output, "LATE_MS", 60_000 if is_old else 0)
    master.files["stdout"] = b"abc"
    reading = Reading(master, "t1")
    if not is_old:
        _, stream = await master.streams.get()
        stream.put_nowait(said("t1", "stdout", 0, b"a"))
        await reading.until_count(1)
    reading.follower.ended(over("t1", 3))

    pieces = await reading.finish()

    assert b"".join(piece.data for piece in pieces) == b"abc"
    assert master.read == [("stdout", 0 if is_old else 1)]
    assert master.asked == {"a1"}, "a master of after a restart does not know where it ran"


async def test_output_that_cannot_be_read_any_more_is_said_to_be_missing(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "LATE_MS", 0)
    reading = Reading(master, "t1", "t2")
    reading.follower.ended(over("t1", 3))
    never_ran = TaskResult(task=TASK, task_id="t2", state=TaskState.FAILED, attempts=1)
    reading.follower.ended(never_ran)

    (last,) = await reading.finish()

    assert (last.task_id, last.path, last.is_last) == ("t1", "stdout", True)
    assert "removed" in last.problem
    assert master.read == [("stdout", 0)], "what never ran has nothing to be read"


async def test_an_agent_is_waited_for_however_long_its_task_was_over_when_it_left(
    master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Output of long ago waits there for a reader that is slow."""
    monkeypatch.setattr(output, "LATE_MS", 100)
    monkeypatch.setattr(output, "AWAY_MS_MAX", 50)
    master.reads_to_break = 1
    master.files["stdout"] = b"abc"
    reading = Reading(master, "t1")
    reading.follower.ended(over("t1", 3))

    pieces = await reading.finish()

    assert words(pieces) == [("t1", "stdout", b"abc")]
    assert master.read == [("stdout", 0)] * 2


async def test_an_agent_that_stays_away_is_given_up(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "LATE_MS", 0)
    monkeypatch.setattr(output, "AWAY_MS_MAX", 50)
    master.reads_to_break = 10**9
    reading = Reading(master, "t1")
    reading.follower.ended(over("t1", 3))

    (last,) = await reading.finish()

    assert "not connected" in last.problem
    assert len(master.read) > 1


async def test_a_task_of_which_nobody_says_how_much_it_wrote_ends_where_its_agent_says(
    master: Master,
) -> None:
    reading = Reading(master, "t1")
    _, stream = await master.streams.get()
    stream.put_nowait(said("t1", "stdout", 0, b"abc", complete=True))
    stream.put_nowait(said("t1", "stderr", 0, b"", complete=True))
    await reading.until_count(1)
    reading.follower.ended(over("t1", None, None))

    assert [(piece.path, piece.is_last) for piece in await reading.finish()] == [
        ("stdout", False),
        ("stdout", True),
    ]
    assert master.read == []


async def test_a_reader_that_takes_nothing_has_one_message_waiting_for_it(master: Master) -> None:
    follower = OutputFollower(master, "f1")
    follower.launched(Launch(task_id="t1", task=TASK))
    pieces = aiter(follower)
    waiting = asyncio.ensure_future(anext(pieces))
    _, stream = await master.streams.get()
    for offset in range(10):
        stream.put_nowait(said("t1", "stdout", offset, b"x"))

    await waiting
    for _ in range(100):
        await asyncio.sleep(0)

    assert stream.qsize() >= 8
    follower.close()
    async for _ in pieces:
        pass
