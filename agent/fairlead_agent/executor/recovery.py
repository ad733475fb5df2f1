"""Ends what a dead executor left running, before its successor takes up work.

A process belongs to a dead executor's task if it is in one of its groups, or is the recorded main process or in that
one's session, or carries a mark of this work directory, or descends from such a process. Groups and marks need no
journal: they are looked for even if it is lost.
"""

import os
import time
from collections.abc import Sequence
from typing import Final

from fairlead_agent.executor import cgroup_tree
from fairlead_agent.executor.journal import Recorded
from fairlead_agent.executor.marks import Marks, sandbox_of
from fairlead_agent.executor.processes import all_pids, descendants_of, kill_exactly, stat_of
from fairlead_agent.executor.protocol import Exited, Measurement

_DEADLINE_S: Final = 10.0
"""A killed process is gone in milliseconds. One that hangs in the kernel may never be, and must not keep a host away."""

_ROUND_INTERVAL_S: Final = 0.01


def boot_id() -> str:
    """Give the identity of the present run of the host, or of the container this is in; empty where it cannot be read.

    A container that is started again has lost its processes as a host has that was booted, under a kernel that went on:
    such runs differ by when their first process was started.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            kernel_run = file.read().strip()
    except OSError:
        return ""
    first = stat_of(1)
    return f"{kernel_run}/{first.start_ticks}" if first is not None else kernel_run


def end_leftovers(running: Sequence[Recorded], directories: Sequence[str], work_dir: str) -> int:
    """Kill what earlier executors of ``work_dir`` have left, and give how many processes could not be killed.

    Args:
        running: tasks that were recorded under the present boot.
        directories: where the groups of tasks may be; those that are not there do not matter.
        work_dir: whose marks are looked for.
    """
    marks = Marks(work_dir)
    deadline = time.monotonic() + _DEADLINE_S
    while True:
        left = _left(running, marks)
        for pid, start_ticks in left:
            kill_exactly(pid, start_ticks)
        is_clean = cgroup_tree.sweep(directories)
        if (not left and is_clean) or time.monotonic() > deadline:
            return len(left)
        time.sleep(_ROUND_INTERVAL_S)


def lost(recorded: Recorded, *, why: str, now_ms: int) -> Exited:
    """Give what is reported of a task whose end nobody saw."""
    return Exited(recorded.key, None, None, False, why, Measurement(), now_ms)


def _left(running: Sequence[Recorded], marks: Marks) -> list[tuple[int, int]]:
    """Give pid and start of every living process that earlier executors have left, parents first."""
    mains = {recorded.pid: recorded.start_ticks for recorded in running if recorded.pid}
    sandboxes = {recorded.sandbox for recorded in running}
    alive = {
        pid
        for pid, start_ticks in mains.items()
        if (stat := stat_of(pid)) is not None and stat.start_ticks == start_ticks
    }
    found = sorted(alive)
    for pid in all_pids():
        stat = stat_of(pid)
        if stat is None or pid == os.getpid():
            continue
        # Only a session whose leader is surely ours is ours: the number of a dead leader may be somebody else's now.
        if stat.session_id in alive or sandbox_of(pid) in sandboxes or marks.has(pid):
            found.append(pid)
    stats = ((pid, stat_of(pid)) for pid in descendants_of(found))
    return [(pid, stat.start_ticks) for pid, stat in stats if stat is not None and stat.state not in "ZX"]
