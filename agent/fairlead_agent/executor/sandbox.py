"""Reads files of a sandbox for people: nothing outside it, never waiting for a writer, rotated output as one file.

This runs in the agent. The task that owns the sandbox may change it at any moment, so what was opened is what is
checked, not the path.
"""

import os
import stat
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from fairlead_agent.executor.output import RotationMark, mark_path

ROTATED_NAMES: Final = ("stdout", "stderr")
LENGTH_MAX: Final = 1024 * 1024
"""Of one read: it becomes one message."""

ENTRIES_MAX: Final = 10_000
"""Of one listing, some 2 MiB as a message."""

_ATTEMPTS: Final = 10
_PAUSE_S: Final = 0.002
"""Between attempts, longer each time, 90 ms in all. A rotation takes a tenth of a millisecond, once in megabytes, but
the executor may lose its CPU in the middle of one."""


class SandboxRefused(Exception):
    """The path cannot be read; the message names it and says why. Always one of the three below."""


class FileNotThere(SandboxRefused):
    """There is no such file, or no sandbox."""


class OutsideSandbox(SandboxRefused):
    """The path leads out of the sandbox."""


class FileUnreadable(SandboxRefused):
    """It is there, and cannot be read: no permission, or no regular file."""


class SandboxPart(NamedTuple):
    """A piece of a file."""

    offset: int
    """Of the first byte of ``data``."""
    data: bytes
    size: int
    """Of the whole file now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxEntry:
    """One file or directory of a listing."""

    path: str
    """Relative to the sandbox."""
    size: int
    """Bytes; for ``stdout`` and ``stderr`` all ever written."""
    modified_ms: int
    is_directory: bool


class SandboxReader:
    """Reads the sandbox at ``root``. Its methods read from disk and may pause for a moment: call them in a thread."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))

    def read(self, path: str, offset: int, length: int) -> SandboxPart:
        """Give a piece of a file.

        Args:
            path: relative to the sandbox. ``stdout`` and ``stderr`` are what was ever written to them: of what has been
                rotated away for good the offsets remain, and reading there begins at the first byte that is left. One
                that does not exist (yet) is empty, if the sandbox does.
            offset: of the first byte; negative: from the end.
            length: 0 to LENGTH_MAX bytes; more are cut.

        Returns:
            The part. Its data is empty at the end of the file, and past it, where its offset then is the end.

        Raises:
            SandboxRefused: there is no such file in the sandbox, or it is none to read.
        """
        length = min(max(length, 0), LENGTH_MAX)
        if os.path.normpath(path) in ROTATED_NAMES:
            return self._read_output(os.path.normpath(path), offset, length)
        descriptor = self._open(path)
        try:
            return _read_parts([(0, descriptor)], offset, length)
        finally:
            os.close(descriptor)

    @staticmethod
    def _is_part(directory: str, name: str) -> bool:
        parts = {
            part for log in ROTATED_NAMES for part in (f"{log}.1", f".{log}.offset", f".{log}.offset.new")
        }
        return os.path.normpath(directory) == "." and name in parts

    def _entry(self, directory: int, name: str, path: str) -> SandboxEntry | None:
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        size = status.st_size
        if os.path.normpath(path) in ROTATED_NAMES:
            size = self.read(path, 0, 0).size if stat.S_ISREG(status.st_mode) else 0
        return SandboxEntry(
            path=os.path.normpath(path),
            size=size,
            modified_ms=status.st_mtime_ns // 1_000_000,
            is_directory=stat.S_ISDIR(status.st_mode),
        )

    def _read_output(self, name: str, offset: int, length: int) -> SandboxPart:
        if not self._root.is_dir():
            raise FileNotThere(f"{name}: there is no sandbox")
        for attempt in range(_ATTEMPTS):
            time.sleep(attempt * _PAUSE_S)
            with ExitStack() as opened:
                parts = self._output_parts(name, opened)
                if parts is not None:
                    return _read_parts(parts, offset, length)
        if self._mark(name) is not None:
            raise FileUnreadable(f"{name}: it is being rotated faster than it can be read")
        # Never rotated: the task has made a file of the older part's name itself.
        with ExitStack() as opened:
            newest = self._open_if_there(name, opened)
            return _read_parts([(0, newest)] if newest is not None else [], offset, length)

    def _output_parts(self, name: str, opened: ExitStack) -> list[tuple[int, int]] | None:
        """Give (offset, descriptor) of the parts of an output file, oldest first; None if a rotation came between."""
        newest = self._open_if_there(name, opened)
        older = self._open_if_there(f"{name}.1", opened)
        mark = self._mark(name)
        if newest is None or mark is None:
            # Not rotated yet, or the older part has just got its name, and the newer and the mark are yet to be made.
            if older is not None:
                return None
            return [(0, newest)] if newest is not None else []
        if mark.inode != os.fstat(newest).st_ino:
            return None
        if older is None or os.fstat(older).st_size != mark.rotated_bytes:
            return [(mark.offset, newest)]
        return [(mark.offset - mark.rotated_bytes, older), (mark.offset, newest)]

    def _mark(self, name: str) -> RotationMark | None:
        try:
            return RotationMark.parse(Path(mark_path(str(self._root / name))).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def _open_if_there(self, name: str, opened: ExitStack) -> int | None:
        try:
            descriptor = self._open(name)
        except FileNotThere:
            return None
        opened.callback(os.close, descriptor)
        return descriptor

    def _open(self, path: str, flags: int = 0) -> int:
        """Open a regular file, or with O_DIRECTORY a directory, and make sure that it is inside."""
        try:
            # Not to wait for a pipe's writer, not to touch a device: what is opened is looked at before it is read.
            descriptor = os.open(self._root / path, os.O_PATH | os.O_CLOEXEC | flags)
        except (OSError, ValueError) as error:
            raise _refusal(error, path) from error
        try:
            place = os.readlink(f"/proc/self/fd/{descriptor}")
            if place != str(self._root) and not place.startswith(f"{self._root}/"):
                raise OutsideSandbox(f"{path}: expected a path inside the sandbox, got {place}")
            is_expected = stat.S_ISDIR if flags & os.O_DIRECTORY else stat.S_ISREG
            if not is_expected(os.fstat(descriptor).st_mode):
                raise FileUnreadable(f"{path}: expected a regular file")
            return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise _refusal(error, path) from error
        finally:
            os.close(descriptor)

    def list(self, path: str = "") -> list[SandboxEntry]:
        """Give what is in a directory, by name, without rotated parts and their marks; at most ENTRIES_MAX entries.

        Raises:
            SandboxRefused: there is no such directory in the sandbox.
        """
        directory = self._open(path, flags=os.O_DIRECTORY)
        try:
            names = sorted(os.listdir(directory))
            entries = [
                self._entry(directory, name, os.path.join(path, name))
                for name in names
                if not self._is_part(path, name)
            ]
        except OSError as error:
            raise _refusal(error, path) from error
        finally:
            os.close(directory)
        return [entry for entry in entries if entry is not None][:ENTRIES_MAX]


def _read_parts(parts: list[tuple[int, int]], offset: int, length: int) -> SandboxPart:
    """Read from files that follow one another, as if they were one."""
    if not parts:
        return SandboxPart(0, b"", 0)
    total = parts[-1][0] + os.fstat(parts[-1][1]).st_size
    begin = max(total + offset if offset < 0 else offset, parts[0][0])
    begin = min(begin, total)
    pieces = []
    position = begin
    for start, descriptor in parts:
        end = start + os.fstat(descriptor).st_size
        while position < end and position - begin < length:
            piece = os.pread(descriptor, min(length - (position - begin), end - position), position - start)
            if not piece:
                break
            pieces.append(piece)
            position += len(piece)
    return SandboxPart(begin, b"".join(pieces), total)


def _refusal(error: OSError | ValueError, path: str) -> SandboxRefused:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return FileNotThere(f"{path}: no such file in the sandbox")
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return FileUnreadable(f"{path}: {reason}")
