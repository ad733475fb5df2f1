"""The directory an agent owns: its lock, its journal, the sandboxes of its tasks.

Two agents in one directory would adopt and report the same tasks, so the first one locks it for as long as it lives.
What tasks print and leave is for the agent's user alone, so all that is made here is closed to others.
"""

import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from fairlead_proto.ids import FrameworkId, TaskId, TaskKey


class WorkDirUnusable(OSError):
    """The directory cannot serve as work directory; the message says why."""


class WorkDir:
    """A locked work directory."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock
        self._sandboxes = f"{path}/sandboxes"

    @classmethod
    def open(cls, path: Path) -> Self:
        """Make the directory if it is missing, and lock it.

        Raises:
            WorkDirUnusable: it cannot be made or written, or another agent has it.
        """
        path = path.absolute()
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            _close_to_others(path)
            (path / "sandboxes").mkdir(exist_ok=True, mode=0o700)
            (path / "sandboxes").chmod(0o700)
            lock = os.open(path / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise WorkDirUnusable(
                f"work directory {path}: cannot be written: {error.strerror or error}"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 20).decode(errors="replace").strip()
            os.close(lock)
            raise WorkDirUnusable(
                f"work directory {path}: in use by another agent (process {holder or 'unknown'})"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)
        return cls(path, lock)

    @property
    def checkpoint_path(self) -> Path:
        """Where the journal is."""
        return self.path / "checkpoint"

    def sandbox(self, key: TaskKey) -> str:
        """Where the sandbox of a task is. Ids contain no slash and begin with a letter or digit.

        A string, since every start needs one and a ``Path`` costs ten times as much.
        """
        framework_id, task_id = key
        return f"{self._sandboxes}/{framework_id}/{task_id}"

    def find_sandboxes(self) -> list[TaskKey]:
        """The sandboxes there are, in order; directories of frameworks that have none left are removed. Blocks.

        To be called while no task is being started: a start makes both directories and must find the first one.
        """
        keys: list[TaskKey] = []
        directories = [entry for entry in (self.path / "sandboxes").iterdir() if entry.is_dir()]
        for directory in sorted(directories):
            names = sorted(sandbox.name for sandbox in directory.iterdir())
            keys += [(FrameworkId(directory.name), TaskId(name)) for name in names]
            if not names:
                directory.rmdir()
        return keys

    def remove_sandboxes(self, keys: Iterable[TaskKey]) -> list[str]:
        """Delete sandboxes; those that are gone already do not matter. Blocks.

        Returns:
            One line for each that could not be deleted.
        """
        failures = []
        for key in keys:
            try:
                _remove_tree(Path(self.sandbox(key)))
            except FileNotFoundError:
                continue
            except OSError as error:
                failures.append(f"{self.sandbox(key)}: {error.strerror or error}")
        return failures

    def disk_bytes(self) -> tuple[int, int]:
        """Size of the file system, and what of it an ordinary user may still write."""
        figures = os.statvfs(self.path)
        return figures.f_blocks * figures.f_frsize, figures.f_bavail * figures.f_frsize

    def close(self) -> None:
        """Give up the lock."""
        with contextlib.suppress(OSError):
            os.close(self._lock)


def _close_to_others(path: Path) -> None:
    """Take a work directory from other users, if it is nothing but that: one an operator made, or an older agent."""
    mode = stat.S_IMODE(path.stat().st_mode)
    is_ours_alone = (path / "agent.lock").exists() or not any(path.iterdir())
    if mode != 0o700 and is_ours_alone and not mode & stat.S_ISVTX:
        with contextlib.suppress(PermissionError):  # somebody else's; what is made in it is closed anyway
            path.chmod(0o700)


def _remove_tree(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except PermissionError:
        # A task may close its own directories, which as the same user we can open again.
        path.chmod(0o700)
        for directory, names, _ in os.walk(path):
            for name in names:
                inner = Path(directory, name)
                if not inner.is_symlink():
                    inner.chmod(0o700)
        shutil.rmtree(path)
