"""What an attached `run` shows: one line of state on stderr, and the output of its tasks, never mixed up in a line.

On a terminal the state is a line that is drawn over; elsewhere each new state is a line of its own, at most one a
second. Output of several tasks appears in whole lines with the task's name before them.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, Final

from fairlead_cli.output_directory import OutputDirectory
from fairlead_sdk.output import OutputFollower, TaskOutput
from fairlead_sdk.task import Progress

LINE_INTERVAL_S: Final = 1.0
"""Between lines of state where they cannot be drawn over: a log of a thousand tasks needs no line for each."""

BAR_WIDTH: Final = 30

REST_TIMEOUT_S: Final = 10.0
"""For more of the output to arrive once all tasks are over."""

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
        self._unended: set[str] = set()
        """Paths whose last byte shown did not end a line."""
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
        (self._unended.add if self._is_mid_line else self._unended.discard)(path)
        if drawn and not self._is_mid_line:
            self._draw(drawn)

    def end_output(self, name: str, path: str) -> None:
        """Print the rest of a task's last line, if it did not end it."""
        if self._partial.get((name, path)):
            self.output(name, path, b"\n")

    def gap(self, name: str, path: str, lost_bytes: int) -> None:
        """Say that so many bytes are missing here, behind the end of the line they cut: what follows is of another one."""
        if self._has_prefix:
            self.end_output(name, path)
        elif path in self._unended:
            self.output(name, path, b"\n")
        self.note(f"fairlead: {lost_bytes} bytes of {name}'s {path} were rotated away")

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


class Screen:
    """Shows what happens, and the output of tasks, in order. Used from one event loop; close it at the end."""

    def __init__(
        self, display: Display, output: OutputFollower, directory: OutputDirectory | None = None
    ) -> None:
        """Begin to show output.

        Args:
            display: what it is shown on.
            output: of the tasks.
            directory: where it is written instead.
        """
        self._display = display
        self._output = output
        self._directory = directory
        # One thread, so that what is shown keeps its order; a thread, so that a reader who pauses stops nothing else.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="display")
        self.broken: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        """Done when nothing can be shown any more, with the reason: the reader of a pipe has left, or a disk is full."""
        self._showing = asyncio.create_task(self._show_output())
        self._showing.add_done_callback(self._check)

    async def show(self, text: str, *, is_final: bool = False) -> None:
        """Show a state, in order with the output."""
        await self._in_thread(lambda: self._display.state(text, is_final=is_final))

    async def note(self, text: str) -> None:
        """Print a line a person must see, in order with the output."""
        await self._in_thread(lambda: self._display.note(text))

    async def drain(self) -> None:
        """Return when the output of all tasks that are over is shown, or when none has come for a bounded time.

        Raises:
            Exception: what ended the showing, as in ``broken``, be it with the last piece.
        """
        self._output.finish()
        while not self._showing.done():
            shown = self._shown_count
            await asyncio.wait((self._showing,), timeout=REST_TIMEOUT_S)
            if shown == self._shown_count and not self._showing.done():
                await self.note("fairlead: the rest of the output did not arrive in time")
                return
        self._showing.result()

    async def close(self) -> None:
        """Show no more output."""
        self._showing.cancel()
        await asyncio.gather(self._showing, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    _shown_count = 0

    async def _show_output(self) -> None:
        async for piece in self._output:
            await self._in_thread(self._write, piece)
            self._shown_count += 1

    def _write(self, piece: TaskOutput) -> None:
        name, path = piece.name, piece.path
        if piece.skipped_bytes:
            self._display.gap(name, path, piece.skipped_bytes)
        if self._directory is not None:
            self._directory.write(piece)
        elif piece.data:
            self._display.output(name, path, piece.data)
        if piece.is_last and self._directory is None:
            self._display.end_output(name, path)
        if piece.problem:
            self._display.note(f"fairlead: no more output of {name}: {piece.problem}")

    def _check(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.broken.done():
            self.broken.set_result(error)

    async def _in_thread(self, function: Callable[..., None], *arguments: object) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
