"""Ends what a dead agent of a local cluster left behind: its executor, which by design outlives it with its tasks."""

import fcntl
import os
import signal
import time
from pathlib import Path
from typing import Final

from fairlead_agent.executor.paths import ExecutorPaths

TIMEOUT_S: Final = 5.0
"""For an executor to kill its tasks and end: it does not wait for their grace periods."""

_LOOK_INTERVAL_S: Final = 0.02


def end_executor(work_dir: Path) -> None:
    """End the executor of an agent's work directory with all its tasks, if one lives; bounded."""
    lock = Path(ExecutorPaths(str(work_dir)).lock)
    deadline = time.monotonic() + TIMEOUT_S
    number = signal.SIGTERM
    while (pid := _holder(lock)) is not None:
        if time.monotonic() > deadline:
            number, deadline = signal.SIGKILL, time.monotonic() + TIMEOUT_S
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        time.sleep(_LOOK_INTERVAL_S)


def _holder(lock: Path) -> int | None:
    """The process that holds an executor's lock; None if nobody does."""
    try:
        with lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read().strip()
                return int(text) if text.isdecimal() else None
            return None
    except OSError:
        return None
