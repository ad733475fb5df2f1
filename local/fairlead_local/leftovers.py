"""Ends what dead processes of a local cluster left behind.

An agent leaves its executor, which by design outlives it with its tasks; a command that was killed leaves the temporary
directory of its cluster, and the next one of that user removes it. Locks tell who lives: the kernel lets go of them
however a process ends.
"""

import fcntl
import logging
import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from fairlead_agent.executor.journal import Journal
from fairlead_agent.executor.paths import ExecutorPaths
from fairlead_agent.executor.recovery import end_leftovers

TIMEOUT_S: Final = 5.0
"""For executors to kill their tasks and end: they do not wait for grace periods."""

_LOOK_INTERVAL_S: Final = 0.02

_PREFIX: Final = "fairlead-"

_CLUSTER_LOCK: Final = "cluster.lock"
"""Held by whoever made a temporary directory. Only what has one is ever removed as a leftover."""

_KEPT_LOCK: Final = "up.lock"
"""The same in a directory that somebody named, which is never removed."""

_LOCKS: Final = ("master/lock", "agent-*/agent.lock", "agent-*/executor/lock")
"""Held by the processes of a cluster, below its directory."""

_log = logging.getLogger(__name__)


class DirectoryInUse(Exception):
    """Another cluster is in the directory; the message says which process."""


def make_temporary_directory() -> tuple[Path, int]:
    """Make a directory for one cluster and give it with the lock on it, to be closed when the directory is gone.

    Raises:
        OSError: there is no room for one.
    """
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    unnamed = directory / f"new-{_CLUSTER_LOCK}"
    try:
        lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Locked before it has its name: else another command may find it, unlocked, between the two.
        unnamed.rename(directory / _CLUSTER_LOCK)
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return directory, lock


def hold_directory(directory: Path) -> int:
    """Give the lock on a directory that is kept at the end, to be closed then.

    Two clusters in one directory would each find the processes of the other, and end what it takes for leftovers.

    Raises:
        DirectoryInUse: another cluster is in it.
        OSError: it cannot be written.
    """
    lock = os.open(directory / _KEPT_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode(errors="replace").strip()
        os.close(lock)
        raise DirectoryInUse(
            f"{directory}: in use by another local cluster (process {holder or 'unknown'})"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"%d\n" % os.getpid(), 0)
    return lock


def remove_temporary_directories() -> None:
    """Remove what clusters of this user left whose every process is dead. What cannot be removed stays."""
    for directory in sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")):
        with suppress(OSError):  # somebody else removes it too
            if _is_our_own(directory):
                _remove_if_dead(directory)


def _is_our_own(directory: Path) -> bool:
    """Whether we made it and nobody else can have put anything there. Anybody may make anything beside it."""
    status = directory.lstat()
    is_private = stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o700
    return is_private and status.st_uid == os.geteuid() and (directory / _CLUSTER_LOCK).is_file()


def _remove_if_dead(directory: Path) -> None:
    with (directory / _CLUSTER_LOCK).open() as owner:
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        # What it started may outlive it for as long as tasks have to end, and an executor its agent.
        if any(_is_held(path) for pattern in _LOCKS for path in directory.glob(pattern)):
            return
        for entry in directory.iterdir():
            if entry.name != _CLUSTER_LOCK:
                shutil.rmtree(entry, ignore_errors=True)
        # The lock goes last: without it the rest would be nobody's if we were killed now.
        shutil.rmtree(directory, ignore_errors=True)
        _log.debug("removed %s: the command that made it was killed", directory)


def _is_held(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def end_executors(work_dirs: Sequence[Path]) -> None:
    """End the executors of agents' work directories with all their tasks, those that live; all at once, and bounded."""
    alive = [paths for paths in map(_paths, work_dirs) if _send(paths, signal.SIGTERM)]
    deadline = time.monotonic() + TIMEOUT_S
    while alive and time.monotonic() < deadline:
        time.sleep(_LOOK_INTERVAL_S)
        alive = [paths for paths in alive if _holder(paths) is not None]
    for paths in alive:
        _kill(paths)


def _paths(work_dir: Path) -> ExecutorPaths:
    return ExecutorPaths(str(work_dir))


def _kill(paths: ExecutorPaths) -> None:
    """End an executor that hangs, and by its journal what it was running."""
    if not _send(paths, signal.SIGKILL):
        return
    with suppress(OSError):  # nothing is known then that could be ended
        journal = Journal(paths.journal)
        end_leftovers(list(journal.running.values()), journal.directories, paths.work_dir)


def _send(paths: ExecutorPaths, number: int) -> bool:
    """Send a signal to the executor that serves there; false if there is none."""
    pid = _holder(paths)
    if pid is None:
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _holder(paths: ExecutorPaths) -> int | None:
    """The process that holds an executor's lock; None if nobody does."""
    try:
        if not _is_held(Path(paths.lock)):
            return None
        text = Path(paths.lock).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
