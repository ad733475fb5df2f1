"""Writes what tasks print to files of bounded size, so that no task can fill the disk or hold up another one.

A stream is a pipe that the executor reads a bounded piece of at a time, and a ``CappedLog`` behind it. The layout on
disk is shared with ``sandbox.SandboxReader``: ``stdout`` holds the newest bytes, ``stdout.1`` those before them, and
``.stdout.offset`` says which byte of all ever written is the first of ``stdout`` (no file: it is byte 0).
"""

import os
from typing import Final, NamedTuple

READ_BYTES: Final = 64 * 1024
"""Read from one pipe before the next one has its turn: what a pipe holds, and some 30 µs of writing."""

_DRAIN_BYTES_MAX: Final = 4 * 1024 * 1024
"""Read at most after a task's end. A pipe holds 1 MiB at most, unless somebody outside the task holds its other end."""


class RotationMark(NamedTuple):
    """What ``.stdout.offset`` says."""

    inode: int
    """Of the ``stdout`` it speaks of: a reader that opened another one looks again."""
    offset: int
    """Of the first byte of ``stdout``, counted from the first one ever written."""
    rotated_bytes: int
    """Size of ``stdout.1``."""

    @classmethod
    def parse(cls, text: str) -> "RotationMark":
        """Give the mark a file contains.

        Raises:
            ValueError: it is not three integers.
        """
        inode, offset, rotated_bytes = map(int, text.split())
        return cls(inode, offset, rotated_bytes)


def mark_path(path: str) -> str:
    """Give where the RotationMark of the log at ``path`` is."""
    directory, name = os.path.split(path)
    return f"{directory}/.{name}.offset"


class CappedLog:
    """A file that is made when there is something to write, and rotated once when it is full. Never raises."""

    def __init__(self, path: str, bytes_max: int) -> None:
        self.dropped_bytes = 0
        self.error = ""
        """Why bytes were dropped first."""
        self._path = path
        self._bytes_max = max(bytes_max, 1)
        self._descriptor = -1
        self._size = 0
        self._offset = 0
        self._rotated_bytes = 0
        self._is_mark_due = False

    def write(self, data: bytes) -> None:
        """Append; what cannot be written is dropped and counted."""
        rest = memoryview(data)
        try:
            while rest:
                if self._size >= self._bytes_max:
                    self._rotate()
                if self._descriptor < 0:
                    self._descriptor = _opened(self._path)
                if self._is_mark_due:
                    self._write_mark()
                written = os.write(self._descriptor, rest[: self._bytes_max - self._size])
                self._size += written
                rest = rest[written:]
        except OSError as error:
            self.dropped_bytes += len(rest)
            self.error = self.error or os.strerror(error.errno or 0)

    def _rotate(self) -> None:
        """Move the full file away. The new one counts for readers once the mark names it, so that comes before data."""
        os.rename(self._path, f"{self._path}.1")
        self._rotated_bytes, self._offset, self._size = self._size, self._offset + self._size, 0
        self._is_mark_due = True
        self.close()

    def _write_mark(self) -> None:
        mark = RotationMark(os.fstat(self._descriptor).st_ino, self._offset, self._rotated_bytes)
        path = mark_path(self._path)
        descriptor = _opened(f"{path}.new")
        try:
            os.write(descriptor, " ".join(map(str, mark)).encode())
        finally:
            os.close(descriptor)
        os.rename(f"{path}.new", path)
        self._is_mark_due = False

    @property
    def disk_bytes(self) -> int:
        """What it takes on disk, the rotated part included."""
        return self._size + self._rotated_bytes

    @property
    def written_bytes(self) -> int:
        """All that was ever written, what was rotated away included, and what was dropped not."""
        return self._offset + self._size

    def close(self) -> None:
        """Close the file, if there ever was one."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _opened(path: str) -> int:
    """Open an empty file, and neither a link nor a pipe that the task has put in its place."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.open(path, flags, 0o600)


class OutputStream:
    """One of a task's two streams: the read end of a pipe, and the log behind it."""

    def __init__(self, path: str, bytes_max: int) -> None:
        self.log = CappedLog(path, bytes_max)
        self.read_end, self.write_end = os.pipe()
        """``write_end`` becomes the task's; the executor closes its own once the task has been started."""
        os.set_blocking(self.read_end, False)

    def close_write_end(self) -> None:
        """Leave the write end to the task, so that the stream ends when the task's processes do."""
        os.close(self.write_end)
        self.write_end = -1

    def pump(self) -> bool:
        """Move one piece from the pipe to the log. Gives whether more may come now or later; false: it is over."""
        try:
            data = os.read(self.read_end, READ_BYTES)
        except BlockingIOError:
            return True
        self.log.write(data)
        return bool(data)

    def drain(self) -> None:
        """Move what the pipe still holds after the task's end."""
        for _ in range(_DRAIN_BYTES_MAX // READ_BYTES):
            try:
                data = os.read(self.read_end, READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                return
            self.log.write(data)

    def close(self) -> None:
        """Close everything that is open; harmless when done twice."""
        for end in (self.read_end, self.write_end):
            if end >= 0:
                os.close(end)
        self.read_end = self.write_end = -1
        self.log.close()

    def complaint(self, name: str) -> str:
        """Give one sentence on what was dropped, or nothing."""
        if not self.log.dropped_bytes:
            return ""
        return f"{name}: {self.log.dropped_bytes} bytes could not be written: {self.log.error}"
