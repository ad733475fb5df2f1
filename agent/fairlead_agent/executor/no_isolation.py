"""Follows a task's processes where there are no cgroups: nothing is limited, but nothing outlives its task either.

The executor is a subreaper, so whatever loses its parent becomes the executor's child and cannot get away. Whose it was
is told by its session (a task starts as leader of one), else by the environment it was started with. A process that has
changed both belongs to one of the tasks that ran when it was found, and is killed when the last of these ends.
"""

import os
from typing import Final

from fairlead_agent.executor.isolation import Limits
from fairlead_agent.executor.processes import (
    children_of,
    cpu_time_ms_of,
    descendants_of,
    environment_of,
    is_running,
    kill,
    stat_of,
)
from fairlead_agent.executor.protocol import Measurement

SANDBOX_VARIABLE: Final = b"FAIRLEAD_SANDBOX"
"""Set for every task, and different for each: the mark that a daemon carries into its own session."""


class NoIsolation:
    """The isolation that follows processes and limits nothing."""

    def __init__(self, note: str) -> None:
        self.name = "none"
        self.note = note
        self.directories: list[str] = []
        self._groups: list[FollowedGroup] = []
        self._owners: dict[int, tuple[FollowedGroup, ...]] = {}
        """Each orphan that has become our child, with the groups it may be of."""

    def create(self, name: str, sandbox: str, /) -> "FollowedGroup":
        """Make a group; it is empty until it adopts its main process."""
        group = FollowedGroup(self, name, sandbox)
        self._groups.append(group)
        return group

    def refresh(self) -> None:
        """Find the orphans among our children, and whose they are."""
        mains = {group.main_pid for group in self._groups}
        orphans = [pid for pid in children_of(os.getpid()) if pid not in mains]
        self._owners = {pid: self._owners.get(pid) or self._owners_of(pid) for pid in orphans}
        for pid, owners in self._owners.items():
            if not owners:
                kill(pid)

    def _owners_of(self, pid: int) -> "tuple[FollowedGroup, ...]":
        stat = stat_of(pid)
        sandbox = environment_of(pid).get(SANDBOX_VARIABLE)
        for group in self._groups:
            if (stat is not None and stat.session_id == group.session_id) or sandbox == group.sandbox:
                return (group,)
        return tuple(self._groups)

    def orphans_of(self, group: "FollowedGroup") -> list[int]:
        """Give the orphans that can be of no other living group."""
        others = [other for other in self._groups if other is not group]
        return [
            pid
            for pid, owners in self._owners.items()
            if group in owners and not any(other in owners for other in others)
        ]

    def discard(self, group: "FollowedGroup") -> None:
        """Follow a group no more."""
        self._groups.remove(group)

    def close(self) -> bool:
        """Nothing is shared by the groups."""
        return True


class FollowedGroup:
    """One task's main process, its descendants, and the orphans that came from them."""

    def __init__(self, isolation: NoIsolation, name: str, sandbox: str) -> None:
        self.name = name
        self.sandbox = os.fsencode(sandbox)
        self.main_pid = 0
        """0 before it is started and after it is reaped."""
        self.session_id = 0
        """Stays when the main process is gone: no process gets that number while the session has members."""
        self._isolation = isolation
        self._mem_peak_bytes = 0

    def enter(self) -> None:
        """There is nothing to enter."""

    def leave(self) -> None:
        """There is nothing to leave."""

    def adopt(self, pid: int) -> None:
        """Follow this main process."""
        self.main_pid = self.session_id = pid

    def main_ended(self) -> None:
        """Follow only what is left."""
        self.main_pid = 0

    def limit(self, limits: Limits) -> None:
        """No limit can be enforced; the isolation's note says so."""

    def pids(self) -> list[int]:
        """Give the living processes, as of the last refresh where they are orphans."""
        roots = self._isolation.orphans_of(self)
        if self.main_pid:
            roots.insert(0, self.main_pid)
        return [pid for pid in descendants_of(roots) if is_running(pid)] if roots else []

    def kill(self) -> None:
        """Send SIGKILL to all there are now, parents first, so that few children are made meanwhile."""
        for pid in self.pids():
            kill(pid)

    def measure(self) -> Measurement:
        """Add up what /proc says of the processes."""
        pids = self.pids()
        mem_bytes = sum(stat.resident_bytes for stat in map(stat_of, pids) if stat is not None)
        self._mem_peak_bytes = max(self._mem_peak_bytes, mem_bytes)
        return Measurement(cpu_time_ms_of(pids), mem_bytes, self._mem_peak_bytes)

    def measure_ended(self) -> Measurement:
        """Give the highest memory that was measured."""
        return Measurement(mem_peak_bytes=self._mem_peak_bytes)

    def memory_kills(self) -> int:
        """Nobody counts them here."""
        return 0

    def remove(self) -> bool:
        """Stop following."""
        self._isolation.discard(self)
        return True
