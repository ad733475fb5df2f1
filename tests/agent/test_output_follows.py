"""What tasks write is sent to who follows their framework: once, in order, as it is taken, and nothing for silence."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from fairlead_agent import output_follows
from fairlead_agent.core.state import AgentState
from fairlead_agent.executor.output import CappedLog
from fairlead_agent.output_follows import OutputFollows
from fairlead_agent.work_dir import WorkDir
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import TaskStatus, TaskUsage
from fairlead_proto.v1 import agent_pb2 as pb

F = FrameworkId("f1")


class Host:
    """The followers of an agent whose tasks a test writes for."""

    def __init__(self, path: Path) -> None:
        self.work_dir = WorkDir.open(path)
        self.state = AgentState()
        self.sent: asyncio.Queue[pb.FollowedOutput] = asyncio.Queue()
        self.follows = OutputFollows(self.work_dir, self.state, self.sent.put_nowait, structlog.get_logger())
        self.running = asyncio.create_task(self.follows.run())

    def run(self, task_id: str) -> Path:
        """Have a task that runs; gives its sandbox."""
        live: dict[Any, Any] = self.state.live
        live[F, TaskId(task_id)] = object()
        sandbox = Path(self.work_dir.sandbox((F, TaskId(task_id))))
        sandbox.mkdir(parents=True)
        return sandbox

    def end(self, task_id: str, usage: TaskUsage | None) -> TaskStatus:
        """Have it over."""
        key = F, TaskId(task_id)
        self.state.live.pop(key, None)
        status = TaskStatus(
            framework_id=F,
            task_id=TaskId(task_id),
            agent_id=AgentId("a1"),
            sequence=2,
            state=TaskState.FINISHED,
            usage=usage,
        )
        self.state.over[key] = status
        return status

    def follow(self, *positions: pb.OutputPosition, number: int = 1, window_bytes: int = 1000) -> None:
        order = pb.FollowOutput(
            follow_id=number, framework_id=F, positions=positions, window_bytes=window_bytes
        )
        self.follows.take(pb.FileRequests(follow=[order]))

    async def said(self, number: int = 1) -> list[tuple[str, str, int, bytes, bool]]:
        """The pieces of the next message, which is taken then."""
        async with asyncio.timeout(20):
            output = await self.sent.get()
        assert output.follow_id == number
        self.follows.take(pb.FileRequests(taken=[number]))
        return [(p.task_id, p.path, p.offset, p.data, p.complete) for p in output.pieces]


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    monkeypatch.setattr(output_follows, "LOOK_S", 0.001)
    host = Host(tmp_path)
    yield host
    host.running.cancel()
    await asyncio.gather(host.running, return_exceptions=True)


async def test_what_a_task_writes_is_sent_as_it_comes_and_its_end_is_said(host: Host) -> None:
    sandbox = host.run("t1")
    host.follow()
    (sandbox / "stdout").write_bytes(b"one\n")

    first = await host.said()
    (sandbox / "stdout").write_bytes(b"one\ntwo\n")
    second = await host.said()
    host.follows.ended([host.end("t1", TaskUsage(stdout_bytes=8, stderr_bytes=0))])
    last = await host.said()

    assert first == [("t1", "stdout", 0, b"one\n", False)]
    assert second == [("t1", "stdout", 4, b"two\n", False)]
    assert last == [("t1", "stdout", 8, b"", True)]


async def test_of_tasks_that_wrote_nothing_no_file_is_read_and_nothing_is_sent(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_follows, "SandboxReader", None)  # whoever reads, fails
    host.run("t1")
    host.follow()

    host.follows.ended([host.end("t1", TaskUsage(stdout_bytes=0, stderr_bytes=0))])
    await asyncio.sleep(0)

    ((follow, running),) = host.follows._follows.values()
    assert (follow.task_ids, running.done(), host.sent.qsize()) == ([], False, 0)


async def test_nothing_is_sent_before_the_last_message_was_taken(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_follows, "PAUSE_S", 0)
    one, two = host.run("t1"), host.run("t2")
    host.follow()
    (one / "stdout").write_bytes(b"1")
    async with asyncio.timeout(20):
        first = await host.sent.get()

    (two / "stderr").write_bytes(b"2")
    (one / "stdout").write_bytes(b"1!")
    for status in (host.end("t1", TaskUsage(stdout_bytes=2)), host.end("t2", TaskUsage(stderr_bytes=1))):
        host.follows.ended([status])
    for _ in range(20):
        await asyncio.to_thread(int)  # files are read in threads
    assert ([piece.data for piece in first.pieces], host.sent.qsize()) == ([b"1"], 0)

    host.follows.take(pb.FileRequests(taken=[1]))
    assert sorted((task_id, data) for task_id, _, _, data, _ in await host.said() if data) == [
        ("t1", b"!"),
        ("t2", b"2"),
    ]


async def test_a_message_is_no_larger_than_the_window_and_no_task_waits_for_another(host: Host) -> None:
    louds = ["t1", "t2", "t3", "t4"]
    for task_id in louds:
        (host.run(task_id) / "stdout").write_bytes(b"x" * 100_000)
    (host.run("t5") / "stdout").write_bytes(b"y")
    host.follow(window_bytes=80_000)
    host.follows.ended(
        host.end(task_id, TaskUsage(stdout_bytes=100_000, stderr_bytes=0)) for task_id in louds
    )
    host.follows.ended([host.end("t5", TaskUsage(stdout_bytes=1, stderr_bytes=0))])

    messages: list[list[tuple[str, str, int, bytes, bool]]] = []
    while sum(piece[4] for message in messages for piece in message) < 5:
        messages.append(await host.said())

    sizes = [sum(len(data) for _, _, _, data, _ in message) for message in messages]
    assert max(sizes) <= 80_000
    assert ("t5", "stdout", 0, b"y", True) in messages[0]
    for task_id in louds:
        pieces = [piece for message in messages for piece in message if piece[0] == task_id]
        assert b"".join(data for _, _, _, data, _ in pieces) == b"x" * 100_000
        assert [piece[4] for piece in pieces] == [False] * (len(pieces) - 1) + [True]


async def test_what_does_not_fit_into_a_message_comes_with_the_next(host: Host) -> None:
    for task_id in ("t1", "t2"):
        (host.run(task_id) / "stdout").write_bytes(b"x" * 16_000)
    host.follow(window_bytes=20_000)
    host.follows.ended(
        host.end(task_id, TaskUsage(stdout_bytes=16_000, stderr_bytes=0)) for task_id in ("t1", "t2")
    )

    sizes = [sum(len(data) for _, _, _, data, _ in await host.said()) for _ in range(2)]

    assert sizes == [20_000, 12_000]


async def test_what_was_rotated_away_before_it_was_sent_is_left_out_by_its_offset(host: Host) -> None:
    log = CappedLog(str(host.run("t1") / "stdout"), 10)
    log.write(b"".join(b"%09d\n" % number for number in range(5)))
    log.close()
    host.follow()

    assert await host.said() == [("t1", "stdout", 30, b"000000003\n000000004\n", False)]


async def test_a_follower_begins_where_it_was_also_with_tasks_that_ended_meanwhile(host: Host) -> None:
    for task_id in ("t1", "t2", "t3"):
        (host.run(task_id) / "stdout").write_bytes(b"abc")
    host.end("t2", TaskUsage(stdout_bytes=3, stderr_bytes=0))
    host.end("t3", TaskUsage(stdout_bytes=3, stderr_bytes=0))  # and is known to the end

    host.follow(
        pb.OutputPosition(task_id="t1", stdout_offset=2),
        pb.OutputPosition(task_id="t2", stdout_offset=1),
        pb.OutputPosition(task_id="t9", stdout_offset=1),  # another agent's
    )

    pieces = await host.said()
    if len(pieces) == 1:
        pieces += await host.said()
    assert sorted(pieces) == [("t1", "stdout", 2, b"c", False), ("t2", "stdout", 1, b"bc", True)]


async def test_a_task_whose_end_nobody_has_acknowledged_is_sent_to_who_begins_to_follow(host: Host) -> None:
    (host.run("t1") / "stdout").write_bytes(b"abc")
    status = host.end("t1", TaskUsage(stdout_bytes=3, stderr_bytes=0))
    host.state.outboxes[status.key] = [status]

    host.follow()

    assert await host.said() == [("t1", "stdout", 0, b"abc", True)]


async def test_an_end_that_is_reported_again_is_not_sent_again(host: Host) -> None:
    (host.run("t1") / "stdout").write_bytes(b"abc")
    host.follow()
    status = host.end("t1", TaskUsage(stdout_bytes=3, stderr_bytes=0))
    host.follows.ended([status])
    await host.said()
    host.state.resend_delays_ms[status.key] = 1

    host.follows.ended([status])

    ((follow, _),) = host.follows._follows.values()
    assert follow.task_ids == []


async def test_each_follower_has_a_place_of_its_own_and_one_that_leaves_hears_no_more(host: Host) -> None:
    sandbox = host.run("t1")
    (sandbox / "stdout").write_bytes(b"abc")
    host.follow(number=1)
    await host.said(1)
    host.follow(pb.OutputPosition(task_id="t1", stdout_offset=1), number=2)
    second = await host.said(2)
    _, running = host.follows._follows[1]

    host.follows.take(pb.FileRequests(unfollow=[1]))
    await asyncio.gather(running, return_exceptions=True)
    (sandbox / "stdout").write_bytes(b"abcd")

    assert second == [("t1", "stdout", 1, b"bc", False)]
    assert await host.said(2) == [("t1", "stdout", 3, b"d", False)]
    assert running.cancelled()
