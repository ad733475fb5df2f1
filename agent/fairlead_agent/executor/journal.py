"""The executor's memory: what it runs and what has ended, so that its successor knows after a kill -9.

The first line says what the file is and of which version. Each other line is a JSON array of entries: all that happened in one
turn of the loop. The file is rewritten when most of it is
history. Nothing is synced to the disk: a crash of the host ends the tasks as well, and a killed process loses
nothing it has written.

So a host that crashes may leave it damaged, and that must not keep the host away: what can be read counts, and the damage
is told. Nothing is lost by it but exit codes, since processes are found without the journal (``recovery``).
"""

import contextlib
import errno
import json
import os
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from fairlead_agent.executor.protocol import Exited, StartFailed, encode_line, event_from_wire, to_wire
from fairlead_proto.ids import FrameworkId, TaskId, TaskKey

_VERSION: Final = 1
"""Of the entries. Files of before there was such a line are of this version as well."""

_KIND: Final = "fairlead executor journal"

_ENTRIES_MIN: Final = 4096
"""Below this a rewrite is not worth its while: some 500 KiB."""

_HISTORY_FACTOR: Final = 4
"""Rewritten when it has this many times the entries it needs: rewriting then costs a fraction of an entry per entry."""


class JournalNewer(ValueError):
    """A newer version wrote the journal; it is left as it is."""


class Recorded(NamedTuple):
    """A task whose end is not recorded."""

    key: TaskKey
    sandbox: str
    pid: int
    """0 if the executor died before it knew."""
    start_ticks: int


class Journal:
    """The open journal. Every method that writes raises OSError when the disk is full, and can then be called again."""

    def __init__(self, path: str) -> None:
        """Read what a predecessor left; a last line it did not finish is dropped, and so is what cannot be read.

        Raises:
            OSError: it cannot be read at all.
            JournalNewer: it cannot be understood.
        """
        self.running: dict[TaskKey, Recorded] = {}
        self.ended: dict[TaskKey, Exited | StartFailed] = {}
        self.boot_id = ""
        self.directories: list[str] = []
        """Where the groups of the tasks are."""
        self.damage = ""
        """The first thing in the file that is not of a journal, or nothing."""
        self._path = path
        self._entry_count = 0
        self._descriptor = -1
        self._size = 0
        self._is_behind = False
        """Memory knows more than the file, because the disk was full: the next writing writes all of it."""
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
            *lines, rest = file.read().split(b"\n")
            # Even the first line is there from the beginning, since the file was given its name when it was whole.
            for number, line in enumerate(lines or filter(None, [rest]), 1):
                try:
                    entries = json.loads(line)
                    if number == 1 and entries[:1] == [_KIND]:
                        self._check_version(entries)
                        continue
                    for entry in entries:
                        self._replay(entry)
                except JournalNewer:
                    raise
                except (TypeError, ValueError, AttributeError, RecursionError) as error:
                    self.damage = (
                        self.damage or f"{path}:{number}: expected entries of an executor's journal: {error}"
                    )

    def _check_version(self, entries: list[Any]) -> None:
        (version,) = entries[1:]
        if int(version) > _VERSION:
            raise JournalNewer(
                f"{self._path}: expected version {_VERSION} of a journal, got version {version}: start the version of the "
                "agent that wrote it; nothing was changed"
            )

    def _replay(self, entry: Any) -> None:
        match entry:
            case ["executor", str(boot_id), [*directories]]:
                self.boot_id, self.directories = boot_id, [str(directory) for directory in directories]
            case ["start", [str(framework_id), str(task_id)], str(sandbox), int(pid), int(start_ticks)]:
                key = FrameworkId(framework_id), TaskId(task_id)
                self.running[key] = Recorded(key, sandbox, pid, start_ticks)
            case ["forget", [str(framework_id), str(task_id)]]:
                self.ended.pop((FrameworkId(framework_id), TaskId(task_id)), None)
            case ["exited" | "failed", *_] as wire:
                self._end(event_from_wire(wire))
            case other:
                raise ValueError(f"unknown entry {str(other)[:80]}")

    def set_aside(self) -> str:
        """Move the file away for a person to look at, and give where it is."""
        beside = f"{self._path}.damaged"
        os.rename(self._path, beside)
        return beside

    def _end(self, end: Any) -> None:
        self.running.pop(end.key, None)
        self.ended[end.key] = end

    def open(self, *, boot_id: str, directories: list[str]) -> None:
        """Start writing, with what is known now."""
        self.boot_id, self.directories = boot_id, directories
        self._rewrite()

    def record(
        self,
        *,
        forgotten: Iterable[TaskKey] = (),
        starts: Iterable[Recorded] = (),
        ends: Iterable[Exited | StartFailed] = (),
    ) -> None:
        """Add to what is known, in this order, and write it down."""
        entries: list[tuple[Any, ...]] = []
        entries += [("forget", key) for key in forgotten if self.ended.pop(key, None) is not None]
        for recorded in starts:
            self.running[recorded.key] = recorded
            entries.append(("start", *recorded))
        for end in ends:
            self._end(end)
            entries.append(to_wire(end))
        if not entries and not self._is_behind:
            return
        needed = len(self.running) + len(self.ended)
        is_long = self._entry_count + len(entries) > max(_ENTRIES_MIN, _HISTORY_FACTOR * needed)
        was_behind, self._is_behind = self._is_behind, True
        if is_long or was_behind:
            self._rewrite()
        else:
            self._append(entries)
        self._is_behind = False

    def _append(self, entries: list[tuple[Any, ...]]) -> None:
        data = encode_line(entries)
        if os.write(self._descriptor, data) < len(data):
            # A full disk may take a part of a line, which must not stand before a whole one.
            os.ftruncate(self._descriptor, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        self._size += len(data)
        self._entry_count += len(entries)

    def _rewrite(self) -> None:
        entries: list[tuple[Any, ...]] = [("executor", self.boot_id, self.directories)]
        entries += [("start", *recorded) for recorded in self.running.values()]
        entries += [to_wire(end) for end in self.ended.values()]
        path = f"{self._path}.new"
        data = b'["%b",%d]\n' % (_KIND.encode(), _VERSION) + encode_line(entries)
        with open(path, "wb", opener=_open_privately) as file:
            file.write(data)
        os.rename(path, self._path)
        self.close()
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._size, self._entry_count = len(data), len(entries)

    def close(self) -> None:
        """Write no more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
