"""Sends what tasks write to those who follow their framework, without a question for each task.

What a task writes stays in its sandbox until a follower has room for it: nothing is kept here but how far each follower is, of
tasks that wrote something. Files of tasks that run are looked at together, as often as that costs next to nothing; the end of a
task says how much it wrote, so one that ends between two looks is read once, and not at all if it wrote nothing.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from fairlead_agent.core.state import AgentState
from fairlead_agent.executor.sandbox import ROTATED_NAMES, SandboxPart, SandboxReader, SandboxRefused
from fairlead_agent.work_dir import WorkDir
from fairlead_proto.ids import FrameworkId, TaskId, TaskKey
from fairlead_proto.task_state import TERMINAL
from fairlead_proto.tasks import TaskStatus, TaskUsage
from fairlead_proto.v1 import agent_pb2 as pb

LOOK_S: Final = 0.1
"""Between looks at the output of tasks that run: too short for a person to notice."""

LOOK_SHARE: Final = 0.003
"""Of a CPU, for these looks. Two files of one task take 3 µs: with more than 100 tasks the looks are farther apart, with 640
some 0.6 s, and nobody reads so many at once."""

LOOK_S_MAX: Final = 2.0
"""Between looks however many tasks there are: who waits for the one that speaks would take it for dead."""

PAUSE_S: Final = 0.02
"""Between two messages for one follower, so that a burst of ends or lines shares them."""

PIECE_BYTES_MIN: Final = 16 * 1024
"""Read from one file for a message, if so much is there: files share the window, but not into crumbs."""

WINDOW_BYTES_MAX: Final = 1024 * 1024
"""Of data in one message, whatever a master allows."""

TASKS_MAX: Final = 256
"""Read for one message: each takes some 100 µs."""

FOLLOWS_MAX: Final = 10_000
"""Followers at once: as many as there may be tasks. Those beyond are told nothing, and read the output when it is over."""

Send = Callable[[pb.FollowedOutput], None]
_Sign = tuple[int, int]
"""Size and time of change of a file."""


class _Wanted(NamedTuple):
    """Output to be read, from where."""

    task_id: TaskId
    path: str
    offset: int
    is_over: bool
    """Asked before reading: what a task writes last is there once it is over."""


class _Output:
    """How far a follower is with one task."""

    def __init__(self, stdout_offset: int = 0, stderr_offset: int = 0) -> None:
        self.offsets = {"stdout": stdout_offset, "stderr": stderr_offset}
        self.seen: Sequence[_Sign | None] = ()
        """The files when they were last looked at."""
        self.last_paths: list[str] | None = None
        """What is still to be sent to the end; None while the task runs."""


class _Follow:
    """One follower."""

    def __init__(self, order: pb.FollowOutput, sandbox_of: Callable[[TaskId], str], send: Send) -> None:
        self.framework_id = FrameworkId(order.framework_id)
        self._follow_id = order.follow_id
        self._window_bytes = max(1, min(order.window_bytes, WINDOW_BYTES_MAX))
        self._sandbox_of = sandbox_of
        self._send = send
        self._outputs = {
            TaskId(position.task_id): _Output(max(0, position.stdout_offset), max(0, position.stderr_offset))
            for position in order.positions
        }
        self._due: dict[TaskId, None] = {}
        self._is_due = asyncio.Event()
        self._taken = asyncio.Event()

    @property
    def task_ids(self) -> list[TaskId]:
        """Those it has a place in."""
        return list(self._outputs)

    def note(self, task_id: TaskId, signs: Sequence[_Sign | None]) -> None:
        """Take what the files of a task that runs look like."""
        output = self._outputs.get(task_id)
        if output is None:
            output = self._outputs[task_id] = _Output()
        if output.seen != signs:
            output.seen = signs
            self._make_due(task_id)

    def end(self, task_id: TaskId, usage: TaskUsage | None) -> None:
        """Send the rest of a task that is over."""
        paths = [path for path in ROTATED_NAMES if usage is None or usage.written_bytes(path) != 0]
        if not paths:
            self.forget(task_id)
            return
        self._outputs.setdefault(task_id, _Output()).last_paths = paths
        self._make_due(task_id)

    def forget(self, task_id: TaskId) -> None:
        """Send nothing more of a task."""
        self._outputs.pop(task_id, None)
        self._due.pop(task_id, None)

    def taken(self) -> None:
        """The last message was passed on."""
        self._taken.set()

    def _make_due(self, task_id: TaskId) -> None:
        self._due[task_id] = None
        self._is_due.set()

    async def run(self) -> None:
        """Send one message after the other, as they are taken."""
        while True:
            while not self._due:
                self._is_due.clear()
                await self._is_due.wait()
            wanted = self._wanted()
            pieces = self._pieces(wanted, await asyncio.to_thread(self._read, wanted))
            if pieces:
                self._taken.clear()
                self._send(pb.FollowedOutput(follow_id=self._follow_id, pieces=pieces))
                await self._taken.wait()
            if not self._due:
                await asyncio.sleep(PAUSE_S)

    def _wanted(self) -> list[_Wanted]:
        wanted: list[_Wanted] = []
        for task_id in list(self._due)[:TASKS_MAX]:
            output = self._outputs[task_id]
            is_over = output.last_paths is not None
            paths = ROTATED_NAMES if output.last_paths is None else output.last_paths
            wanted += [_Wanted(task_id, path, output.offsets[path], is_over) for path in paths]
            # What comes while this is read makes it due again.
            del self._due[task_id]
        return wanted

    def _read(self, wanted: Sequence[_Wanted]) -> list[SandboxPart | None]:
        """Read what the window has room for; None for what could not be read. Blocks."""
        parts: list[SandboxPart | None] = []
        room = self._window_bytes
        share = max(PIECE_BYTES_MIN, room // len(wanted))
        for task_id, path, offset, _ in wanted:
            if not room:
                break
            try:
                part = SandboxReader(Path(self._sandbox_of(task_id))).read(path, offset, min(room, share))
            except (SandboxRefused, OSError):
                # Whoever misses something of it asks for the file, and is told why.
                parts.append(None)
                continue
            room -= len(part.data)
            parts.append(part)
        return parts

    def _pieces(self, wanted: Sequence[_Wanted], parts: Sequence[SandboxPart | None]) -> list[pb.OutputPiece]:
        pieces: list[pb.OutputPiece] = []
        for ask, part in zip(wanted, parts, strict=False):
            output = self._outputs.get(ask.task_id)
            if output is None:
                continue
            data = b"" if part is None else part.data
            begin = ask.offset if part is None else max(ask.offset, part.offset)
            output.offsets[ask.path] = begin + len(data)
            has_more = part is not None and begin + len(data) < part.size
            is_complete = ask.is_over and not has_more
            if data or is_complete:
                pieces.append(
                    pb.OutputPiece(
                        task_id=ask.task_id, path=ask.path, offset=begin, data=data, complete=is_complete
                    )
                )
            if has_more:
                self._make_due(ask.task_id)
            elif is_complete and output.last_paths is not None:
                output.last_paths.remove(ask.path)
                if not output.last_paths:
                    self.forget(ask.task_id)
        for ask in wanted[len(parts) :]:
            if ask.task_id in self._outputs:
                self._make_due(ask.task_id)
        return pieces


class OutputFollows:
    """All followers of tasks of one agent. Used from one event loop."""

    def __init__(self, work_dir: WorkDir, state: AgentState, send: Send, log: FilteringBoundLogger) -> None:
        """Begin without any.

        Args:
            work_dir: where the sandboxes are.
            state: which tasks run, and which are over; looked at, never changed.
            send: takes what goes to the master.
            log: where refusals are logged.
        """
        self._work_dir = work_dir
        self._state = state
        self._send = send
        self._log = log
        self._follows: dict[int, tuple[_Follow, asyncio.Task[None]]] = {}
        self._by_framework: dict[FrameworkId, dict[int, _Follow]] = {}
        self._has_any = asyncio.Event()

    def take(self, requests: pb.FileRequests) -> None:
        """Do what a master says about followers."""
        for order in requests.follow:
            self._begin(order)
        for follow_id in requests.taken:
            if follow_id in self._follows:
                self._follows[follow_id][0].taken()
        for follow_id in requests.unfollow:
            self._end(follow_id)

    def forget(self) -> None:
        """End all: who asked is gone, and will ask again."""
        for follow_id in list(self._follows):
            self._end(follow_id)

    def ended(self, statuses: Iterable[TaskStatus]) -> None:
        """Take the ends among statuses that are sent; those that are repeated do not count."""
        if not self._by_framework:
            return
        for status in statuses:
            if status.state in TERMINAL and status.key not in self._state.resend_delays_ms:
                for follow in self._by_framework.get(status.framework_id, {}).values():
                    follow.end(status.task_id, status.usage)

    async def run(self) -> None:
        """Look at the output of tasks that run, while somebody follows. Ends all when it is cancelled."""
        try:
            while True:
                await self._has_any.wait()
                for _, running in self._follows.values():
                    if running.done():
                        running.result()  # none ends but by a bug
                keys = [key for key in self._state.live if key[0] in self._by_framework]
                found, took_s = await asyncio.to_thread(self._look, keys)
                for (framework_id, task_id), signs in found:
                    # One that ended meanwhile is sent to its end already.
                    if (framework_id, task_id) in self._state.live:
                        for follow in self._by_framework.get(framework_id, {}).values():
                            follow.note(task_id, signs)
                await asyncio.sleep(min(max(LOOK_S, took_s / LOOK_SHARE), LOOK_S_MAX))
        finally:
            self.forget()

    def _begin(self, order: pb.FollowOutput) -> None:
        if order.follow_id in self._follows or len(self._follows) >= FOLLOWS_MAX:
            self._log.warning("follow.refused", framework_id=order.framework_id, follows_max=FOLLOWS_MAX)
            return
        framework_id = FrameworkId(order.framework_id)

        def sandbox_of(task_id: TaskId) -> str:
            return self._work_dir.sandbox((framework_id, task_id))

        follow = _Follow(order, sandbox_of, self._send)
        running = asyncio.create_task(follow.run(), name="output-follow")
        self._follows[order.follow_id] = follow, running
        self._by_framework.setdefault(framework_id, {})[order.follow_id] = follow
        self._has_any.set()
        ends = [key[1] for key in self._state.outboxes if key[0] == framework_id]
        for task_id in dict.fromkeys([*follow.task_ids, *ends]):
            if (framework_id, task_id) in self._state.live:
                continue
            end = self._state.over.get((framework_id, task_id))
            if end is None:
                follow.forget(task_id)
            else:
                follow.end(task_id, end.usage)

    def _end(self, follow_id: int) -> None:
        if follow_id not in self._follows:
            return
        follow, running = self._follows.pop(follow_id)
        running.cancel()
        others = self._by_framework[follow.framework_id]
        del others[follow_id]
        if not others:
            del self._by_framework[follow.framework_id]
        if not self._follows:
            self._has_any.clear()

    def _look(self, keys: Sequence[TaskKey]) -> tuple[list[tuple[TaskKey, list[_Sign | None]]], float]:
        """The files of those tasks that have any, and how long that took of a CPU. Blocks."""
        begun_s = time.thread_time()
        found: list[tuple[TaskKey, list[_Sign | None]]] = []
        for key in keys:
            sandbox = self._work_dir.sandbox(key)
            signs = [_sign(f"{sandbox}/{name}") for name in ROTATED_NAMES]
            if any(signs):
                found.append((key, signs))
        return found, time.thread_time() - begun_s


def _sign(path: str) -> _Sign | None:
    # Most are not there: an access that fails is a third of the cost of a stat that raises.
    if not os.access(path, os.F_OK):
        return None
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path costs more than the call
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
