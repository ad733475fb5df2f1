"""Reads what the kernel says about processes, and signals them without hitting a later one of the same number."""

import contextlib
import os
import signal
from collections.abc import Iterable
from typing import Final, NamedTuple

CLOCK_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

_READ_BYTES: Final = 4096
"""What /proc hands out at once. Asking for more only costs a larger buffer."""

_CONTENT_BYTES_MAX: Final = 1 << 20
"""An environment may have 128 KiB a variable; what lies beyond a megabyte is not ours."""


class ProcessStat(NamedTuple):
    """The fields of /proc/PID/stat we use."""

    state: str
    """One letter; Z and X are over."""
    parent_pid: int
    group_id: int
    session_id: int
    cpu_ticks: int
    """User and system time, of itself and of the children it has waited for."""
    start_ticks: int
    """Since boot: with the pid it names a process for good."""
    resident_bytes: int


def stat_of(pid: int) -> ProcessStat | None:
    """Give the state of a process, a zombie included, or None if there is none of that number."""
    content = _content(f"/proc/{pid}/stat", is_short=True)
    # The second field is the program's name in parentheses, and may itself hold blanks and parentheses.
    fields = content[content.rfind(b")") + 2 :].split(None, 22)
    if len(fields) < 22:
        return None
    return ProcessStat(
        state=fields[0].decode(),
        parent_pid=int(fields[1]),
        group_id=int(fields[2]),
        session_id=int(fields[3]),
        cpu_ticks=sum(map(int, fields[11:15])),
        start_ticks=int(fields[19]),
        resident_bytes=int(fields[21]) * PAGE_BYTES,
    )


def environment_of(pid: int) -> dict[bytes, bytes]:
    """Give the environment a process was started with; empty if it is gone, not ours to read, or has overwritten it."""
    pairs = (item.partition(b"=") for item in _content(f"/proc/{pid}/environ").split(b"\0"))
    return {name: value for name, separator, value in pairs if separator}


def children_of(pid: int) -> list[int]:
    """Give the children of a process, zombies included."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    contents = [_content(f"/proc/{pid}/task/{thread}/children") for thread in threads]
    found = [int(child) for content in contents for child in content.split()]
    return found or _children_by_search(pid)


def _children_by_search(pid: int) -> list[int]:
    """Do what ``children_of`` does on a kernel without the children file."""
    if _HAS_CHILDREN_FILES:
        return []
    return [other for other in all_pids() if (stat := stat_of(other)) is not None and stat.parent_pid == pid]


_HAS_CHILDREN_FILES: Final = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def descendants_of(pids: Iterable[int]) -> list[int]:
    """Give ``pids`` and all processes below them, parents first."""
    found = list(dict.fromkeys(pids))
    known = set(found)
    for pid in found:  # grows as it is walked
        for child in children_of(pid):
            if child not in known:
                known.add(child)
                found.append(child)
    return found


def all_pids() -> list[int]:
    """Give the number of every process we can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def cpu_time_ms_of(pids: Iterable[int]) -> int:
    """Give the CPU time the living among these have used, with the children they have waited for."""
    ticks = sum(stat.cpu_ticks for stat in map(stat_of, pids) if stat is not None)
    return ticks * 1000 // CLOCK_TICKS_PER_S


def is_running(pid: int) -> bool:
    """Whether a process of that number exists and is no zombie."""
    stat = stat_of(pid)
    return stat is not None and stat.state not in "ZX"


def kill(pid: int) -> None:
    """Send SIGKILL to a process whose number cannot be used anew meanwhile (our own child, or in our own group)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def kill_exactly(pid: int, start_ticks: int) -> None:
    """Send SIGKILL to that process, and to no later one of the same number."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        stat = stat_of(pid)
        if stat is not None and stat.start_ticks == start_ticks:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    finally:
        os.close(descriptor)


def _content(path: str, *, is_short: bool = False) -> bytes:
    """Give what a file of /proc says, or nothing; one that is short comes with the first reading."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        if is_short:
            return os.read(descriptor, _READ_BYTES)
        content = b""
        while len(content) < _CONTENT_BYTES_MAX and (part := os.read(descriptor, _READ_BYTES)):
            content += part
    except OSError:
        return b""
    else:
        return content
    finally:
        os.close(descriptor)
