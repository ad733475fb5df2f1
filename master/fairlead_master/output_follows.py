"""Followers of the output of frameworks: what their agents send is handed on, and nothing is kept but where each follower is.

An agent sends one message for a follower and waits until the follower has taken it, so the memory that a slow one costs is
bounded by the windows below; the output itself waits in the sandboxes.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from fairlead_master.core.state import Master
from fairlead_proto import fields
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.limits import BATCH_BYTES_MAX
from fairlead_proto.v1 import agent_pb2 as pb
from fairlead_proto.v1 import files_pb2

OUTPUT_PATHS: Final = ("stdout", "stderr")

WINDOWS_BYTES: Final = 128 * 1024 * 1024
"""Of output that may wait in the master for all followers together, as long as no window is at its least."""

WINDOW_BYTES_MIN: Final = 16 * 1024
WINDOW_BYTES_MAX: Final = 256 * 1024
"""Of one message of one agent for one follower. A round trip of 2 ms lets 128 MB/s through the largest."""


class Source(Protocol):
    """An agent's stream of files, which is not always there."""

    @property
    def can_follow(self) -> bool:
        """Whether there is a stream, and an agent behind it that follows output."""

    def put(self, requests: pb.FileRequests) -> None:
        """Queue a message; without a stream it is dropped."""


class _Asked:
    """What one agent was asked for one follower."""

    def __init__(self, follower: "Follower", source: Source, window_bytes: int) -> None:
        self.follower = follower
        self.source = source
        self.window_bytes = window_bytes
        self.is_under_way = False
        """A message of it waits to be taken."""


class Follower:
    """One stream to a reader. Made by ``Follows.open``."""

    def __init__(self, framework_id: FrameworkId, positions: Mapping[TaskId, tuple[int, int]]) -> None:
        self.framework_id = framework_id
        self.positions = dict(positions)
        """Where an agent that comes back goes on, by task: of those that wrote something and are not sent to the end."""
        self.asked: dict[Source, int] = {}
        """By the number that the agent knows the follower by."""
        self._waiting: deque[pb.FollowedOutput] = deque()
        self._has_some = asyncio.Event()

    def put(self, output: pb.FollowedOutput) -> None:
        """Queue what an agent sent; there is at most one such message of each agent."""
        self._waiting.append(output)
        self._has_some.set()

    async def take(self) -> tuple[files_pb2.Output, list[int]]:
        """What waits, up to a batch, and the numbers of those who sent it."""
        while not self._waiting:
            self._has_some.clear()
            await self._has_some.wait()
        output, numbers, size_bytes = files_pb2.Output(), list[int](), 0
        while self._waiting and size_bytes < BATCH_BYTES_MAX:
            message = self._waiting.popleft()
            output.pieces.extend(message.pieces)
            numbers.append(message.follow_id)
            size_bytes += message.ByteSize()
        return output, numbers


class Follows:
    """All followers."""

    def __init__(self, master: Master, source_of: Callable[[AgentId], Source | None]) -> None:
        """Begin without any.

        Args:
            master: where the tasks are; looked at, never changed.
            source_of: the stream of the session of an agent, None if it has no session.
        """
        self._master = master
        self._source_of = source_of
        self._by_framework: dict[FrameworkId, dict[Follower, None]] = {}
        self._asked: dict[int, _Asked] = {}
        self._numbers_given = 0

    def open(self, framework_id: FrameworkId, positions: Mapping[TaskId, tuple[int, int]]) -> Follower:
        """Begin to follow the tasks of a framework, wherever they are."""
        follower = Follower(framework_id, positions)
        self._by_framework.setdefault(framework_id, {})[follower] = None
        framework = self._master.frameworks.get(framework_id)
        known: dict[AgentId, list[TaskId]] = {}
        """Agents that have tasks of it, each with those of them that have a position."""
        for task in framework.tasks.values() if framework is not None else ():
            known.setdefault(task.agent_id, [])
        for task_id in positions:
            # Also one that ended before the reader had all of it.
            if (found := self._master.find_task((framework_id, task_id))) is not None:
                known.setdefault(found.agent_id, []).append(task_id)
        for agent_id, task_ids in known.items():
            source = self._source_of(agent_id)
            if source is not None:
                self._ask(follower, source, task_ids)
        return follower

    def close(self, follower: Follower) -> None:
        """End one."""
        others = self._by_framework[follower.framework_id]
        del others[follower]
        if not others:
            del self._by_framework[follower.framework_id]
        for source, number in follower.asked.items():
            del self._asked[number]
            source.put(pb.FileRequests(unfollow=[number]))

    def launched(self, framework_id: FrameworkId, source: Source) -> None:
        """Tasks of a framework are sent to an agent: who follows the one follows the other."""
        for follower in self._by_framework.get(framework_id, ()):
            if source not in follower.asked:
                self._ask(follower, source, ())

    def joined(self, source: Source) -> None:
        """An agent has a new stream, and may have tasks of any framework."""
        for followers in self._by_framework.values():
            for follower in followers:
                # Of what other agents have it knows nothing, which costs less than to find out what is whose.
                self._ask(follower, source, follower.positions)

    def left(self, source: Source) -> None:
        """An agent has lost its stream; what it sent is still handed on."""
        for followers in self._by_framework.values():
            for follower in followers:
                number = follower.asked.pop(source, None)
                if number is not None:
                    del self._asked[number]

    def sent(self, source: Source, outputs: Iterable[pb.FollowedOutput]) -> None:
        """Take output from an agent.

        Raises:
            InvalidFieldError: it is nothing that an agent may send.
        """
        for output in outputs:
            asked = self._asked.get(output.follow_id)
            if asked is None or asked.source is not source:
                continue  # the follower has left meanwhile
            _check(output, asked)
            asked.is_under_way = True
            self._note_positions(asked.follower, output.pieces)
            asked.follower.put(output)

    def passed_on(self, numbers: Iterable[int]) -> None:
        """What agents sent was taken by the reader: let them send more."""
        for number in numbers:
            asked = self._asked.get(number)
            if asked is not None:
                asked.is_under_way = False
                asked.source.put(pb.FileRequests(taken=[number]))

    def _ask(self, follower: Follower, source: Source, task_ids: Iterable[TaskId]) -> None:
        if not source.can_follow:
            return  # it joins later, or is too old
        self._numbers_given += 1
        number = self._numbers_given
        window_bytes = WINDOWS_BYTES // (len(self._asked) + 1)
        window_bytes = max(WINDOW_BYTES_MIN, min(WINDOW_BYTES_MAX, window_bytes))
        follower.asked[source] = number
        self._asked[number] = _Asked(follower, source, window_bytes)
        positions = [
            pb.OutputPosition(task_id=task_id, stdout_offset=stdout, stderr_offset=stderr)
            for task_id in task_ids
            for stdout, stderr in (follower.positions[task_id],)
        ]
        order = pb.FollowOutput(
            follow_id=number,
            framework_id=follower.framework_id,
            positions=positions,
            window_bytes=window_bytes,
        )
        source.put(pb.FileRequests(follow=[order]))

    def _note_positions(self, follower: Follower, pieces: Sequence[pb.OutputPiece]) -> None:
        framework = self._master.frameworks.get(follower.framework_id)
        running: Mapping[TaskId, object] = framework.tasks if framework is not None else {}
        positions = follower.positions
        for piece in pieces:
            task_id = TaskId(piece.task_id)
            if piece.complete:
                positions.pop(task_id, None)
                continue
            if task_id not in positions and task_id not in running:
                continue
            stdout, stderr = positions.get(task_id, (0, 0))
            end = piece.offset + len(piece.data)
            positions[task_id] = (end, stderr) if piece.path == "stdout" else (stdout, end)


def _check(output: pb.FollowedOutput, asked: _Asked) -> None:
    if asked.is_under_way:
        raise InvalidFieldError("followed: expected nothing before the last message was taken, got another")
    size_bytes = 0
    for index, piece in enumerate(output.pieces):
        field = f"followed.pieces[{index}]"
        fields.read_id(f"{field}.task_id", piece.task_id)
        if piece.path not in OUTPUT_PATHS:
            raise InvalidFieldError(f"{field}.path: expected stdout or stderr, got {piece.path[:50]!r}")
        if piece.offset < 0:
            raise InvalidFieldError(f"{field}.offset: expected 0 or more, got {piece.offset}")
        size_bytes += len(piece.data)
    if size_bytes > asked.window_bytes:
        raise InvalidFieldError(
            f"followed: expected at most {asked.window_bytes} bytes at once, got {size_bytes}"
        )
