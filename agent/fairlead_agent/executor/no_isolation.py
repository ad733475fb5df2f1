"""Follows a task's processes where there are no cgroups: nothing is limited, but nothing outlives its task either.

The executor is a subreaper: orphans are re-parented to it and so stay within reach. The task that an orphan belongs to is
found by the mark the task was started with, else by its session (a task starts as leader of one), else by the environment
it was started with. A process that has changed all three belongs to one of the tasks that ran when it was
found, and is killed when the last of these ends.

When a task is gone is decided by one reading of the executor's own children. A child stays in that list until the
executor reaps it, and what a dying process leaves is added behind it: so if nothing of a task is in the list, not even
a zombie, there is nothing of it further down either, and nothing that could make more.
"""

import os
from typing import Final, NamedTuple

from fairlead_agent.executor.isolation import Limits
from fairlead_agent.executor.marks import Marks, sandbox_of
from fairlead_agent.executor.processes import (
    ProcessStat,
    children_of,
    cpu_time_ms_of,
    descendants_of,
    is_running,
    kill,
    stat_of,
)
from fairlead_agent.executor.protocol import Measurement

_SWEEPS_MAX: Final = 20
"""In one ``kill`` of what an ended task has left, while each finds processes that the one before did not. A daemon that
forks and exits all the time is a new process every fraction of a millisecond; a sweep takes about as long."""


class NoIsolation:
    """The isolation that follows processes and limits nothing."""

    def __init__(self, note: str, work_dir: str) -> None:
        self.name = "none"
        self.note = note
        self.directories: list[str] = []
        self.marks = Marks(work_dir)
        self._groups: dict[FollowedGroup, None] = {}
        self._orphans: dict[int, _Orphan] = {}
        """Each orphan that has become our child."""

    def create(self, name: str, sandbox: str, /) -> "FollowedGroup":
        """Make a group; it is empty until it adopts its main process."""
        group = FollowedGroup(self, name, sandbox)
        self._groups[group] = None
        return group

    def refresh(self) -> None:
        """Find the orphans among our children, and whose they are; kill those of nobody."""
        mains = {group.main_pid for group in self._groups}
        found = {}
        for pid in children_of(os.getpid()):
            if pid not in mains and (stat := stat_of(pid)) is not None:
                found[pid] = _Orphan(stat.start_ticks, self._owners_of(pid, stat))
        self._orphans = found
        for pid in descendants_of(pid for pid, orphan in found.items() if not orphan.owners):
            kill(pid)

    def settle(self) -> None:
        """See whose the orphans are by now; where there is none, none can have lost its owner."""
        if self._orphans:
            self.refresh()

    def _owners_of(self, pid: int, stat: ProcessStat) -> "tuple[FollowedGroup, ...]":
        known = self._orphans.get(pid)
        if known is not None and known.start_ticks == stat.start_ticks:
            return tuple(group for group in known.owners if group in self._groups)
        mark = self.marks.read(pid)
        sandbox = sandbox_of(pid)
        for group in self._groups:
            if (
                (mark and mark == group.mark)
                or stat.session_id == group.session_id
                # A task may be an agent itself, whose tasks have sandboxes within its own.
                or f"{sandbox}/".startswith(f"{group.sandbox}/")
            ):
                return (group,)
        return tuple(self._groups)

    def orphans_of(self, group: "FollowedGroup") -> list[int]:
        """Give the orphans that can be of no other living group."""
        return [pid for pid, orphan in self._orphans.items() if orphan.owners == (group,)]

    def discard(self, group: "FollowedGroup") -> None:
        """Follow a group no more."""
        del self._groups[group]

    def close(self) -> bool:
        """Kill whatever is still there. False: something still is."""
        left = [pid for pid in descendants_of(children_of(os.getpid())) if is_running(pid)]
        for pid in left:
            kill(pid)
        return not left


class _Orphan(NamedTuple):
    """A process that has lost its parent."""

    start_ticks: int
    owners: "tuple[FollowedGroup, ...]"
    """The groups it may be of, as far as they are followed."""


class FollowedGroup:
    """One task's main process, its descendants, and the orphans that came from them."""

    def __init__(self, isolation: NoIsolation, name: str, sandbox: str) -> None:
        self.name = name
        self.sandbox = sandbox
        self.mark = isolation.marks.next()
        self.main_pid = 0
        """0 before it is started and after it is reaped."""
        self.session_id = 0
        """Stays when the main process is gone: no process gets that number while the session has members."""
        self._isolation = isolation
        self._mem_peak_bytes = 0

    def enter(self) -> None:
        """Put the mark on the executor, for the process that it now starts to inherit."""
        self._isolation.marks.put_on(self.mark)

    def leave(self) -> None:
        """Take the mark off."""
        self._isolation.marks.take_off()

    def adopt(self, pid: int) -> None:
        """Follow this main process."""
        self.main_pid = self.session_id = pid

    def main_ended(self) -> None:
        """Follow only what is left."""
        self.main_pid = 0

    def limit(self, limits: Limits) -> None:
        """No limit can be enforced; the isolation's note says so."""

    def pids(self) -> list[int]:
        """Give the processes, zombies that nobody has reaped included, as of the last refresh where they are orphans."""
        roots = self._isolation.orphans_of(self)
        if self.main_pid:
            roots.insert(0, self.main_pid)
        return descendants_of(roots) if roots else []

    def kill(self) -> None:
        """Send SIGKILL to all there are, parents first, so that few children are made meanwhile.

        What an ended task has left is swept until nothing new turns up: it may consist of processes that live shorter
        than the pause between two calls.
        """
        killed: set[int] = set()
        for sweep in range(1 if self.main_pid else _SWEEPS_MAX):
            if sweep:
                self._isolation.refresh()
            new = [pid for pid in self.pids() if pid not in killed]
            if not new:
                return
            for pid in new:
                kill(pid)
            killed.update(new)

    def free(self) -> None:
        """There is no quota."""

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
