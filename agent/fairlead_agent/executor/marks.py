"""The marks that a task's processes carry: how they are known when parent, group and session no longer tell.

There are two. The environment names the sandbox, until a process starts another program with an environment of its own.
The soft limit on real-time CPU time (RLIMIT_RTTIME) is a number that names work directory and task: every process
inherits it through fork and exec, and nothing but setting that very limit removes it. As a limit it has no effect: it is
some 146,000 years, and only processes with real-time priority are held to it at all.
"""

import os
import resource
import zlib
from typing import Final

from fairlead_agent.executor.processes import environment_of

SANDBOX_VARIABLE: Final = b"FAIRLEAD_SANDBOX"
"""Set for every task, and different for each."""

_FLAG: Final = 1 << 62
"""In every mark, and in no limit that somebody would set."""

_TASK_BITS: Final = 28
"""For the number of the task: as many as an executor that starts a hundred a second makes in a month."""


class Marks:
    """Makes, sets and reads the numbers of one work directory."""

    def __init__(self, work_dir: str) -> None:
        """Prepare; where the limit cannot be set there are no marks, and every mark is 0."""
        self._path = os.path.abspath(work_dir)
        self._place = _place_of(self._path)
        # By what the directory is and not by its name, which in another container means another one.
        self._work_dir = zlib.crc32(repr(self._place).encode())
        self._count = 0
        self._own = resource.getrlimit(resource.RLIMIT_RTTIME)
        self._is_usable = self._own[1] == resource.RLIM_INFINITY

    def next(self) -> int:
        """Give a mark that no task of this executor has had lately."""
        if not self._is_usable:
            return 0
        self._count += 1
        return _FLAG | self._work_dir << _TASK_BITS | self._count % (1 << _TASK_BITS)

    def put_on(self, mark: int) -> None:
        """Set it on this process. Raises OSError if the kernel refuses."""
        if mark:
            resource.setrlimit(resource.RLIMIT_RTTIME, (mark, self._own[1]))

    def take_off(self) -> None:
        """Set what was there before on this process."""
        if self._is_usable:
            resource.setrlimit(resource.RLIMIT_RTTIME, self._own)

    def has(self, pid: int) -> bool:
        """Whether a process was started by a task of this work directory, as far as it still carries a mark."""
        if self.read(pid):
            return True
        if self._place is None or not sandbox_of(pid).startswith(f"{self._path}/"):
            return False
        return _place_of(f"/proc/{pid}/root{self._path}") == self._place

    def read(self, pid: int) -> int:
        """Give the mark of a process, also of a zombie; 0 if it has none of this work directory, or is not ours."""
        try:
            soft, _ = resource.prlimit(pid, resource.RLIMIT_RTTIME)
        except (ProcessLookupError, PermissionError):
            return 0
        return soft if soft >> _TASK_BITS == (_FLAG >> _TASK_BITS | self._work_dir) else 0


def sandbox_of(pid: int) -> str:
    """Give the sandbox that a process was told it is in; empty if it was told of none, or has been given another program."""
    return os.fsdecode(environment_of(pid).get(SANDBOX_VARIABLE, b""))


def _place_of(path: str) -> tuple[int, int] | None:
    """Give what tells a directory from all others on this host, whatever it is called; None if it cannot be seen."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
