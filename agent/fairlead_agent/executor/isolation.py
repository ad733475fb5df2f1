"""What an isolation must do for the executor, and the choice of the best one that works here.

There are three: ``cgroup_v2``, ``cgroup_v1`` and ``no_isolation``. The first two put each task into a group of its own;
the third only follows its processes. All of them keep the promise that nothing of a task outlives it.
"""

from typing import Final, NamedTuple, Protocol

from fairlead_agent.executor.protocol import Measurement


class IsolationError(RuntimeError):
    """This isolation does not work here; the message says why in one line."""


class Limits(NamedTuple):
    """What a task may use; 0 is without limit."""

    cpus_milli: int
    mem_bytes: int


class Group(Protocol):
    """One task's processes. A method that finds the group or a process gone says so by an empty result."""

    def enter(self) -> None:
        """Move the executor itself in, so that a process it now starts is inside from its first instruction.

        Raises:
            OSError: it cannot be entered.
        """

    def leave(self) -> None:
        """Move the executor out again. Raises OSError only if the executor could no longer work at all."""

    def adopt(self, pid: int) -> None:
        """Learn the task's main process."""

    def main_ended(self) -> None:
        """Learn that the main process has been reaped, so that its number may belong to somebody else."""

    def limit(self, limits: Limits) -> None:
        """Make the limits hold, also against a process that already uses more.

        This comes after ``leave``: a limit that held while the executor is inside could kill or stall the executor.

        Raises:
            OSError: they cannot be set.
        """

    def pids(self) -> list[int]:
        """Give the living processes."""

    def kill(self) -> None:
        """Send SIGKILL to all; to be repeated until ``pids`` is empty, for they may fork meanwhile."""

    def free(self) -> None:
        """Let killed processes end without the CPU quota: each ends in CPU time of its own, and may owe that of minutes."""

    def measure(self) -> Measurement:
        """Give what the task uses now, without ``sandbox_bytes``."""

    def measure_ended(self) -> Measurement:
        """Give what is still known when the last process is gone; 0 where that is nothing. Cheaper than ``measure``."""

    def memory_kills(self) -> int:
        """Give how many of its processes the kernel has killed for memory."""

    def remove(self) -> bool:
        """Give the group back after the last process is gone. False: the kernel is not done with it, try again."""


class Isolation(Protocol):
    """A way to make groups."""

    name: str
    """"cgroup v2", "cgroup v1" or "none"."""
    note: str
    """One line on what is not enforced; empty if everything is."""
    directories: list[str]
    """Where its groups are. Whoever finds the executor dead kills what is in there and removes it."""

    def create(self, name: str, sandbox: str, /) -> Group:
        """Make a group for the task of that sandbox; ``name`` was not used before.

        Raises:
            OSError: it cannot be made.
        """

    def refresh(self) -> None:
        """Look again at which processes are left; called once before a series of ``pids``."""

    def settle(self) -> None:
        """See to processes that could have been of groups that were removed, or of others."""

    def close(self) -> bool:
        """Give back what is shared by all groups; there are none any more. False: the kernel is not done, try again."""


PIDS_MAX: Final = 4096
"""Processes and threads of one task. A build or a JVM uses hundreds; a fork bomb must stop before the host does, whose
own default is 32,768."""
