"""Ends what a dead agent of a local cluster left behind: its executor, which by design outlives it with its tasks."""

import fcntl
import os
import signal
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
        with Path(paths.lock).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read().strip()
                return int(text) if text.isdecimal() else None
            return None
    except OSError:
        return None
