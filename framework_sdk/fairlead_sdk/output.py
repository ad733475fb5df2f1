"""What the tasks of a framework write, as they write it: one stream from the master for all of them.

Nothing is lost without being marked and nothing is given twice: each piece says where it begins, a stream that broke goes on where
it was, and the end of a task says how much it wrote. What has not come a moment after that, as from an agent of an
older version, is read from the sandbox.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Final

from fairlead_proto.backoff import Backoff
from fairlead_proto.v1 import agent_pb2, files_pb2
from fairlead_sdk.calls import Launch
from fairlead_sdk.clock import sleep
from fairlead_sdk.errors import LinkBroken, Refused
from fairlead_sdk.events import Disconnected, Event
from fairlead_sdk.sandbox_files import SandboxFile
from fairlead_sdk.task import Task, TaskResult
from fairlead_sdk.transport import Transport
from fairlead_sdk.workload_actions import Action, JobEnded, JobMoved, TakeOffer

PATHS: Final = ("stdout", "stderr")

LATE_MS: Final = 1_000
"""From the end of a task, or its last piece, until the rest is read from the sandbox. It comes within some ms of the end."""

LOOK_MS: Final = 250
"""Between looks for what is late."""

AWAY_MS_MAX: Final = 60_000
"""How long an agent may be away, from the first read that fails, before the output there is given up: a restart takes seconds."""

POSITIONS_MAX: Final = 2_000
"""Said when a stream is begun again. Tasks beyond are sent from their beginning, and what is known of it is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutput:
    """A piece of what a task wrote."""

    task: Task
    """Of a member of an array, its template."""
    name: str
    """Of the task, or the member; its id if it has none."""
    task_id: str
    """Of the attempt, as in ``TaskResult``."""
    path: str
    """``stdout`` or ``stderr``."""
    offset: int
    """Of the first byte of ``data``."""
    data: bytes = b""
    skipped_bytes: int = 0
    """Left out before ``data``: they were rotated away before they could be sent."""
    is_last: bool = False
    """The task is over, and this was all it wrote to ``path``. Not said of a path it wrote nothing to."""
    problem: str = ""
    """Why the rest cannot be read, if it cannot; then ``is_last`` is true as well."""


class _Attempt:
    """How far the output of an attempt is."""

    def __init__(self, launch: Launch) -> None:
        self.task = launch.task
        self.name = launch.name
        self.offsets = dict.fromkeys(PATHS, 0)
        self.totals: dict[str, int | None] = dict.fromkeys(PATHS)
        """What there is in all; None while nobody knows."""
        self.agent_id = ""
        """Where it ran; known when it is over."""
        self.is_over = False
        self.heard_ms = 0
        """When something of it last came."""

    def open_paths(self) -> list[str]:
        """Paths of which something may be missing."""
        totals = self.totals
        return [path for path in PATHS if (total := totals[path]) is None or self.offsets[path] < total]


class OutputFollower:
    """Gives what tasks write as ``TaskOutput``; made by ``Framework.follow_output``. Iterate once.

    There is one stream for all tasks, which costs nothing for those that write nothing. Pieces of one path of a task come in
    order. It ends with the framework: to have all there is, call ``finish``, and read on to the end before that.
    Whoever iterates slowly slows nothing but these pieces: what is not taken waits in the sandboxes.
    """

    def __init__(self, transport: Transport, framework_id: str) -> None:
        self._transport = transport
        self._framework_id = framework_id
        self._attempts: dict[str, _Attempt] = {}
        self._over: dict[str, None] = {}
        """Attempts that are over and not given to the end."""
        self._away_ms: dict[str, int] = {}
        """Agents that could not be asked for what is late, and since when; by id."""
        self._pieces: deque[TaskOutput] = deque()
        self._changed = asyncio.Event()
        self._emptied = asyncio.Event()
        self._emptied_ms = 0
        self._is_finishing = False
        self._is_refused = False
        self._has_broken = asyncio.Event()
        self._parts: list[asyncio.Task[None]] = []

    def finish(self) -> None:
        """End the iteration once the output of all tasks that are over was given."""
        self._is_finishing = True
        self._changed.set()

    # --- for the framework ---------------------------------------------------------------------------------------

    def launched(self, launch: Launch) -> None:
        """An attempt is launched, or runs since before."""
        if launch.task.files and launch.task_id not in self._attempts:
            self._attempts[launch.task_id] = _Attempt(launch)

    def ended(self, result: TaskResult) -> None:
        """An attempt is over."""
        attempt = self._attempts.get(result.task_id)
        if attempt is None:
            return
        attempt.is_over = True
        attempt.heard_ms = self._now_ms()
        attempt.agent_id = result.agent_id
        self._away_ms.pop(attempt.agent_id, None)
        for path in PATHS:
            if not result.started_ms and not result.usage:
                attempt.totals[path] = attempt.offsets[path]  # it never ran
            elif result.usage is not None and (total := result.usage.written_bytes(path)) is not None:
                attempt.totals[path] = total
        self._over[result.task_id] = None
        self._settle(result.task_id, attempt)

    def broken(self) -> None:
        """The session broke: the stream may be a dead one, and is begun again."""
        self._has_broken.set()

    def close(self) -> None:
        """Give nothing more."""
        self._attempts.clear()
        self._over.clear()
        for part in self._parts:
            part.cancel()
        self.finish()

    # --- for the reader ------------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[TaskOutput]:
        """Begin."""
        return self._give()

    async def _give(self) -> AsyncIterator[TaskOutput]:
        self._parts = [
            asyncio.create_task(self._follow(), name="fairlead output"),
            asyncio.create_task(self._read_late(), name="fairlead late output"),
        ]
        try:
            while True:
                while self._pieces:
                    yield self._pieces.popleft()
                self._emptied_ms = self._now_ms()
                self._emptied.set()
                if self._is_finishing and not self._over:
                    return
                self._changed.clear()
                await self._changed.wait()
                for part in self._parts:
                    if part.done() and not part.cancelled():
                        part.result()  # a bug of ours must be seen
        finally:
            for part in self._parts:
                part.cancel()
            await asyncio.gather(*self._parts, return_exceptions=True)

    # --- inside --------------------------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return self._transport.clock.now_ms()

    async def _emptiness(self) -> None:
        """Wait until the reader has taken everything."""
        while self._pieces:
            self._emptied.clear()
            await self._emptied.wait()

    async def _follow(self) -> None:
        """Keep a stream from the master."""
        backoff = Backoff(self._transport.jitter)
        while True:
            self._has_broken.clear()
            reading = asyncio.create_task(self._read_stream(backoff))
            breaking = asyncio.create_task(self._has_broken.wait())
            try:
                await asyncio.wait((reading, breaking), return_when=asyncio.FIRST_COMPLETED)
                if reading.done():
                    reading.result()
            except Refused as refusal:
                if refusal.code not in ("LIMIT", "UNKNOWN"):
                    # A master of before there were such streams: all is read when it is over.
                    self._is_refused = True
                    return
            except LinkBroken:
                pass
            except asyncio.CancelledError:
                # A call that is given up by its channel looks like one who waits for it being cancelled.
                if not reading.cancelled():
                    raise
            finally:
                for part in (reading, breaking):
                    part.cancel()
                await asyncio.gather(reading, breaking, return_exceptions=True)
            await sleep(self._transport.clock, backoff.next_ms())

    async def _read_stream(self, backoff: Backoff) -> None:
        begun = [
            agent_pb2.OutputPosition(
                task_id=task_id,
                stdout_offset=attempt.offsets["stdout"],
                stderr_offset=attempt.offsets["stderr"],
            )
            for task_id, attempt in self._attempts.items()
            if any(attempt.offsets.values())
        ]
        request = files_pb2.FollowRequest(framework_id=self._framework_id, positions=begun[:POSITIONS_MAX])
        async for output in self._transport.follow_output(request):
            backoff.reset()
            for piece in output.pieces:
                self._take(piece.task_id, piece.path, piece.offset, piece.data, is_all=piece.complete)
            await self._emptiness()

    def _take(self, task_id: str, path: str, offset: int, data: bytes, *, is_all: bool) -> None:
        """Give what is new of a piece."""
        attempt = self._attempts.get(task_id)
        if attempt is None or path not in PATHS:
            return  # given to its end already, or not ours
        attempt.heard_ms = self._now_ms()
        self._away_ms.pop(attempt.agent_id, None)
        known = attempt.offsets[path]
        skipped_bytes = max(0, offset - known)
        data = data[max(0, known - offset) :]
        if data or skipped_bytes:
            attempt.offsets[path] = known + skipped_bytes + len(data)
            piece = TaskOutput(
                task=attempt.task,
                name=attempt.name,
                task_id=task_id,
                path=path,
                offset=known + skipped_bytes,
                data=data,
                skipped_bytes=skipped_bytes,
            )
            self._pieces.append(piece)
            self._changed.set()
        if is_all and attempt.totals[path] is None:
            attempt.totals[path] = attempt.offsets[path]
        if attempt.is_over:
            self._settle(task_id, attempt)

    def _settle(self, task_id: str, attempt: _Attempt, problem: str = "") -> None:
        """Say of an attempt that is over that its output is all there, if it is, or why no more comes."""
        if attempt.open_paths() and not problem:
            return
        del self._attempts[task_id], self._over[task_id]
        for path in PATHS:
            is_missing = path in attempt.open_paths()
            if attempt.offsets[path] or (problem and is_missing and attempt.totals[path]):
                last = TaskOutput(
                    task=attempt.task,
                    name=attempt.name,
                    task_id=task_id,
                    path=path,
                    offset=attempt.offsets[path],
                    is_last=True,
                    problem=problem if is_missing else "",
                )
                self._pieces.append(last)
        self._changed.set()

    async def _read_late(self) -> None:
        """Read from sandboxes what has not come by the stream."""
        clock = self._transport.clock
        while True:
            await sleep(clock, LOOK_MS)
            for task_id in list(self._over):
                attempt = self._attempts.get(task_id)
                if attempt is None:
                    continue
                # A reader that takes nothing is no reason to read what waits for it.
                heard_ms = max(attempt.heard_ms, self._emptied_ms if self._pieces else 0)
                if not self._is_refused and clock.now_ms() - heard_ms < LATE_MS:
                    continue
                await self._read_rest(task_id, attempt)

    async def _read_rest(self, task_id: str, attempt: _Attempt) -> None:
        for path in attempt.open_paths():
            file = SandboxFile(
                framework_id=self._framework_id, task_id=task_id, path=path, agent_id=attempt.agent_id
            )
            is_all = False
            while not is_all and task_id in self._attempts:
                await self._emptiness()
                try:
                    piece = await self._transport.read_file(file.request(attempt.offsets[path]))
                except LinkBroken as trouble:
                    now_ms = self._now_ms()
                    since_ms = self._away_ms.setdefault(attempt.agent_id, now_ms)
                    if now_ms - since_ms > AWAY_MS_MAX and task_id in self._over:
                        self._settle(task_id, attempt, str(trouble))
                    return
                except Refused as refusal:
                    if task_id in self._over:
                        self._settle(task_id, attempt, refusal.detail or str(refusal))
                    return
                is_all = piece.complete or not piece.data
                if is_all:
                    # Less than the task says it wrote, if that is so, and still all there is.
                    attempt.totals[path] = piece.offset + len(piece.data)
                self._take(task_id, path, piece.offset, piece.data, is_all=is_all)


class OutputFollowers:
    """All followers of one framework."""

    def __init__(self) -> None:
        self._followers: list[OutputFollower] = []

    def add(self, transport: Transport, framework_id: str) -> OutputFollower:
        """Make one."""
        follower = OutputFollower(transport, framework_id)
        self._followers.append(follower)
        return follower

    def happened(self, actions: Iterable[Action]) -> None:
        """Take what a workload says of its attempts."""
        if not self._followers:
            return
        for action in actions:
            match action:
                case TakeOffer():
                    self._tell(launches=action.launches)
                case JobMoved():
                    self._tell(ended=action.given_up, launches=(action.launch,) if action.launch else ())
                case JobEnded() if isinstance(action.outcome, TaskResult):
                    self._tell(ended=action.outcome)
                case _:
                    pass

    def heard(self, event: Event) -> None:
        """Take an event of the session."""
        if isinstance(event, Disconnected):
            for follower in self._followers:
                follower.broken()

    def _tell(self, *, ended: TaskResult | None = None, launches: Iterable[Launch] = ()) -> None:
        for follower in self._followers:
            if ended is not None:
                follower.ended(ended)
            for launch in launches:
                follower.launched(launch)

    def close(self) -> None:
        """The session is over."""
        for follower in self._followers:
            follower.close()
        self._followers.clear()
