"""What the host has to offer, as far as it can be found out.

Inside a container the limits of its control group count, not the machine's size. What is found is only the default:
any amount can be set by hand.
"""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from fairlead_agent.executor.recovery import boot_id
from fairlead_proto.resources import CPUS, DISK, MEM, ResourceKinds, Vector

MEMORY_RESERVE_DIVISOR: Final = 8
MEMORY_RESERVE_BYTES_MAX: Final = 1024**3
"""Memory left to the system and to the agent: an eighth, at most 1 GiB. A host whose every byte is promised to tasks
swaps or kills its own daemons first."""

DISK_RESERVE_PERCENT: Final = 10
"""Of the file system, not offered: sandboxes of ended tasks are removed early when less than this is free."""

_ROUND_BYTES: Final = 1024**2
_CGROUP: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The host as found."""

    hostname: str
    boot_id: str
    """Of its present run, or of the container's; empty where it cannot be read."""
    total: Vector
    """Before any override; custom kinds are zero."""


def probe_host(work_dir: Path, kinds: ResourceKinds) -> Host:
    """Look at the host.

    Raises:
        OSError: /proc cannot be read.
    """
    total = list(kinds.zero)
    total[CPUS] = _cpus_milli(_CGROUP)
    total[MEM] = _memory_bytes(_CGROUP)
    total[DISK] = _disk_bytes(work_dir)
    return Host(
        hostname=socket.gethostname(),
        boot_id=boot_id(),
        total=tuple(total),
    )


def _cpus_milli(cgroup: Path) -> int:
    available = len(os.sched_getaffinity(0)) * 1000
    quota, _, period = _read(cgroup / "cpu.max").partition(" ")
    if not quota:
        # cgroup v1, where no limit is -1.
        quota = _read(cgroup / "cpu" / "cpu.cfs_quota_us")
        period = _read(cgroup / "cpu" / "cpu.cfs_period_us")
    if quota.isdigit() and period.isdigit():
        return max(1, min(available, int(quota) * 1000 // int(period)))
    return available


def _memory_bytes(cgroup: Path) -> int:
    total = int(psutil.virtual_memory().total)
    limit = _read(cgroup / "memory.max") or _read(cgroup / "memory" / "memory.limit_in_bytes")
    if limit.isdigit():
        total = min(total, int(limit))
    return _rounded(total - min(total // MEMORY_RESERVE_DIVISOR, MEMORY_RESERVE_BYTES_MAX))


def _disk_bytes(work_dir: Path) -> int:
    usage = psutil.disk_usage(str(work_dir))
    return _rounded(max(0, usage.free - usage.total * DISK_RESERVE_PERCENT // 100))


def _rounded(size_bytes: int) -> int:
    # To whole MiB: the last bytes change from start to start and say nothing.
    return size_bytes - size_bytes % _ROUND_BYTES


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
