"""What the kernel says about a process: CPU time and memory."""

import os
import re
from pathlib import Path
from typing import Final

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_PSS: Final = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process so far, in steps of a clock tick (10 ms)."""
    # The command's name is in parentheses and may hold spaces, so fields are counted from behind it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def pss_bytes(pid: int) -> int:
    """The proportional set size: private memory, and this process's part of what it shares."""
    found = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    if found is None:
        raise ValueError(f"/proc/{pid}/smaps_rollup: expected a Pss line, found none")
    return int(found.group(1)) * 1024
