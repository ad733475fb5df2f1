"""What an attached `run` shows: one line of state on stderr, and the output of its tasks, never mixed up in a line.

On a terminal the state is a line that is drawn over; elsewhere each new state is a line of its own, at most one a
second. Output of several tasks appears in whole lines with the task's name before them. Of each attempt two files are
followed until they are complete, but for an attempt that is over before that begins: only what it wrote is asked for.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, Final

from fairlead_cli.errors import Refused, Unreachable
from fairlead_cli.sandbox import AsyncConnection, Output, read_output
from fairlead_sdk.task import Progress, TaskResult

LINE_INTERVAL_S: Final = 1.0
"""Between lines of state where they cannot be drawn over: a log of a thousand tasks needs no line for each."""

BAR_WIDTH: Final = 30

FOLLOWED_MAX: Final = 64
"""Attempts followed at once. Each holds two calls open on the master; the output of others is shown when these end."""

FOLLOW_AFTER_S: Final = 0.1
"""From an attempt's launch until its output is followed, unless it is over by then and says what there is. Nobody at a
terminal notices it, and most short tasks need no call at all."""

NOT_THERE_YET_S: Final = 0.05
"""Between looks for a sandbox that its agent has not made yet."""

REST_TIMEOUT_S: Final = 10.0
"""For the last output to arrive once all tasks are over."""

PATHS: Final = ("stdout", "stderr")

_ERASE: Final = b"\r\x1b[K"


class Display:
    """Writes to stdout and stderr. Methods block as long as the reader of either does: call them in a thread."""

    def __init__(self, *, has_prefix: bool, is_quiet: bool, stdout: BinaryIO, stderr: BinaryIO) -> None:
        """Begin with nothing shown.

        Args:
            has_prefix: output appears in whole lines after the task's name; else byte by byte as it comes.
            is_quiet: show no state, only what went wrong.
            stdout: for the tasks' output.
            stderr: for the tasks' errors and the state.
        """
        self._has_prefix = has_prefix
        self._is_quiet = is_quiet
        self._streams = {"stdout": stdout, "stderr": stderr}
        self._stderr = stderr
        self._is_terminal = stderr.isatty()
        self._drawn = ""
        self._is_mid_line = False
        self._last_line = ""
        self._last_line_s = float("-inf")
        self._partial: dict[tuple[str, str], bytes] = {}

    def state(self, text: str, *, is_final: bool = False) -> None:
        """Show where things stand; ``is_final`` leaves it there."""
        if self._is_quiet:
            return
        if self._is_terminal:
            self._draw(text, stays=is_final)
            return
        now_s = time.monotonic()
        if is_final or (text != self._last_line and now_s - self._last_line_s >= LINE_INTERVAL_S):
            self._last_line, self._last_line_s = text, now_s
            self._write(self._stderr, text.encode() + b"\n")

    def note(self, text: str) -> None:
        """Print a line on stderr that is no state: something a person must know."""
        drawn = self._drawn
        self._draw("")
        self._write(self._stderr, text.encode() + b"\n")
        if drawn:
            self._draw(drawn)

    def output(self, name: str, path: str, data: bytes) -> None:
        """Print what a task wrote to ``stdout`` or ``stderr``."""
        if self._has_prefix:
            whole, newline, rest = (self._partial.pop((name, path), b"") + data).rpartition(b"\n")
            if rest:
                self._partial[name, path] = rest
            if not newline:
                return
            prefix = f"{name}| ".encode()
            data = b"".join(prefix + line + b"\n" for line in whole.split(b"\n"))
        drawn = self._drawn
        self._draw("")
        self._write(self._streams[path], data)
        self._is_mid_line = not data.endswith(b"\n")
        if drawn and not self._is_mid_line:
            self._draw(drawn)

    def end_output(self, name: str, path: str) -> None:
        """Print the rest of a task's last line, if it did not end it."""
        if self._partial.get((name, path)):
            self.output(name, path, b"\n")

    def _draw(self, text: str, *, stays: bool = False) -> None:
        if not self._is_terminal or (text == self._drawn and not stays):
            return
        # A task's unfinished line is not drawn over; the state waits for its end.
        if self._is_mid_line and not stays:
            return
        start = b"\n" if self._is_mid_line else (_ERASE if self._drawn else b"")
        if not stays:
            # A line that wraps cannot be drawn over; one that stays need not be.
            text = text[: _columns(self._stderr) - 1]
        self._write(self._stderr, start + text.encode() + (b"\n" if stays else b""))
        self._drawn = "" if stays else text
        self._is_mid_line = False

    @staticmethod
    def _write(stream: BinaryIO, data: bytes) -> None:
        stream.write(data)
        stream.flush()


def make_display(*, has_prefix: bool, is_quiet: bool, is_json: bool) -> Display:
    """A display on this process's streams; with ``is_json`` stdout is kept for the result."""
    stderr = sys.stderr.buffer
    stdout = stderr if is_json else sys.stdout.buffer
    return Display(has_prefix=has_prefix, is_quiet=is_quiet, stdout=stdout, stderr=stderr)


def progress_text(progress: Progress, *, is_bar: bool) -> str:
    """How far a run of several tasks is, as a bar for terminals or in words only."""
    counts = f"{progress.done}/{progress.total} done, {progress.running} running, {progress.waiting} waiting"
    failed = progress.failed - progress.killed - progress.refused
    counts += f", {failed} failed" if failed else ""
    counts += f", {progress.killed} killed" if progress.killed else ""
    counts += f", {progress.refused} refused" if progress.refused else ""
    counts += f", {progress.retried} run again" if progress.retried else ""
    if not is_bar:
        return counts
    total = max(1, progress.total)
    filled = BAR_WIDTH * progress.done // total
    active = BAR_WIDTH * (progress.done + progress.running) // total - filled
    return f"[{'█' * filled}{'▒' * active}{'·' * (BAR_WIDTH - filled - active)}] {counts}"


def _columns(stream: BinaryIO) -> int:
    try:
        # Terminals without a size of their own say 0.
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


class OutputFollower:
    """Follows attempts and writes what they print to a display. Used from one event loop; close it at the end."""

    def __init__(self, connection: AsyncConnection, display: Display, framework_id: str) -> None:
        self._connection = connection
        self._display = display
        self._framework_id = framework_id
        self._slots = asyncio.Semaphore(FOLLOWED_MAX)
        self._waiting: dict[str, asyncio.TimerHandle] = {}
        self._following: dict[str, asyncio.Task[None]] = {}
        self._over: dict[str, None] = {}
        # One thread, so that what is shown keeps its order; a thread, so that a reader who pauses stops nothing else.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="display")
        self.broken: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        """Done when nothing can be shown any more, with the reason: the reader of a pipe has left."""

    def follow(self, attempt_id: str, name: str) -> None:
        """Show a launched attempt's output under a task's name, as it comes; nothing happens if that was begun before."""
        if not any(attempt_id in known for known in (self._waiting, self._following, self._over)):
            loop = asyncio.get_running_loop()
            self._waiting[attempt_id] = loop.call_later(FOLLOW_AFTER_S, self._begin, attempt_id, name)

    def is_over(self, result: TaskResult) -> None:
        """Show what there is of an attempt that is over; a sandbox that is not there will not come any more."""
        attempt_id, usage = result.task_id, result.usage
        self._over[attempt_id] = None
        if (waiting := self._waiting.pop(attempt_id, None)) is not None:
            waiting.cancel()
        if attempt_id not in self._following and result.attempts:
            paths = [path for path in PATHS if usage is None or usage.written_bytes(path) != 0]
            if paths:
                self._begin(attempt_id, result.task.name, paths)

    def _begin(self, attempt_id: str, name: str, paths: Sequence[str] = PATHS) -> None:
        self._waiting.pop(attempt_id, None)
        task = asyncio.create_task(self._follow(attempt_id, name, paths))
        task.add_done_callback(self._check)
        self._following[attempt_id] = task

    async def show(self, text: str, *, is_final: bool = False) -> None:
        """Show a state, in order with the output."""
        await self._in_thread(lambda: self._display.state(text, is_final=is_final))

    async def note(self, text: str) -> None:
        """Print a line a person must see, in order with the output."""
        await self._in_thread(lambda: self._display.note(text))

    async def drain(self) -> None:
        """Return when everything that was begun is shown, or after a bounded time."""
        if self._following:
            _, late = await asyncio.wait(self._following.values(), timeout=REST_TIMEOUT_S)
            if late:
                tasks = f"{len(late)} task{'s' * (len(late) != 1)}"
                await self.note(f"fairlead: the output of {tasks} did not arrive in time")

    async def close(self) -> None:
        """Stop following."""
        for waiting in self._waiting.values():
            waiting.cancel()
        for task in self._following.values():
            task.cancel()
        await asyncio.gather(*self._following.values(), return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _follow(self, attempt_id: str, name: str, paths: Sequence[str]) -> None:
        async with self._slots:
            await asyncio.gather(*(self._follow_file(attempt_id, name, path) for path in paths))

    async def _follow_file(self, attempt_id: str, name: str, path: str) -> None:
        output, offset = Output(self._framework_id, attempt_id, path), 0
        while True:
            is_over = attempt_id in self._over
            try:
                async for chunk in read_output(self._connection, output, offset=offset, follow=True):
                    if chunk.lost_bytes:
                        await self.note(
                            f"fairlead: {chunk.lost_bytes} bytes of {name}'s {path} were rotated away"
                        )
                    offset += chunk.lost_bytes + len(chunk.data)
                    await self._in_thread(self._display.output, name, path, chunk.data)
                await self._in_thread(self._display.end_output, name, path)
            except Refused:
                if is_over:
                    return  # it never had a sandbox
                await asyncio.sleep(NOT_THERE_YET_S)
            except Unreachable as error:
                await self.note(f"fairlead: no more output of {name}: {error.message}")
                return
            else:
                return

    def _check(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.broken.done():
            self.broken.set_result(error)

    async def _in_thread(self, function: Callable[..., None], *arguments: object) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
