"""Isolation by cgroup v1: a group per task in the cpu, memory and (where there is one) pids hierarchies.

The three groups of a task that is over are used again for the next one, as long as nothing of the task is left in them:
to make and remove groups takes longer than all else that a short task costs beside its process. The quota is always
written: that is what makes the kernel forget how much of the period earlier tasks have used. What a memory group keeps of
a task (page cache, kernel memory) is small or the group is removed, is given to the next task on top of its limit, and is
not counted as its.
"""

import contextlib
import errno
import os
from typing import Final

from fairlead_agent.executor import cgroup_shares, cgroup_tree
from fairlead_agent.executor.cgroup_tree import CgroupPlaces, KernelTree
from fairlead_agent.executor.isolation import PIDS_MAX, IsolationError, Limits
from fairlead_agent.executor.processes import cpu_time_ms_of
from fairlead_agent.executor.protocol import Measurement

_PERIOD_US: Final = 100_000
"""The kernel's default: a task of half a CPU runs 50 ms and rests 50 ms at worst."""

_QUOTA_US_MIN: Final = 1_000
"""The kernel's own lower bound: a hundredth of a CPU."""

_OPEN_QUOTA: Final = str(_PERIOD_US).encode()
"""What one thread cannot use up: the executor's only one passes the group while a task is started in it."""

_NO_QUOTA: Final = b"-1"

_NO_LIMIT: Final = "-1"

_READ_BYTES: Final = 4096
_MODES: Final = {"memory.usage_in_bytes": os.O_RDONLY, "memory.oom_control": os.O_RDONLY}
"""Of files that are not written."""

_NLINK_OF_LEAF: Final = 2
"""Links to a group's directory with none below it."""

_SHARES_PER_CPU: Final = 1024
"""The kernel's default is that of one CPU."""

_SHARES_MIN: Final = 2

_SPARES_MAX: Final = 64
"""Seats kept for later tasks: a burst of short tasks has a few dozen at a time; an empty group costs some KiB."""

_KEPT_OPEN_MAX: Final = 256
"""Seats whose files stay open, eight each: all that are used again and again. Of thousands that are in use at once the files
are opened as they are needed, so that descriptors are left for the tasks' output."""

_LEFTOVER_BYTES_MAX: Final = 1 << 20
"""Memory that a task leaves charged to a group that is used again. A short task leaves some 60 KiB of kernel memory, so a
group serves a dozen of them; one that has read files leaves megabytes of page cache, which are not the next one's."""


def shares(places: CgroupPlaces, *, parent: str, name: str) -> dict[str, str]:
    """Give where the groups of an agent are, by controller."""
    return {
        controller: f"{places.roots[controller]}/{parent.strip('/')}/{name}" if parent else f"{home}/{name}"
        for controller, home in _homes(places).items()
    }


def _homes(places: CgroupPlaces) -> dict[str, str]:
    return {
        controller: places.by_controller[controller]
        for controller in ("cpu", "memory", "pids")
        if controller in places.by_controller
    }


class CgroupV1:
    """Groups in the version 1 hierarchies."""

    def __init__(self, places: CgroupPlaces, *, parent: str, name: str) -> None:
        """Probe and prepare; ``parent`` is a path from each mount or empty for our own group, ``name`` our share of it.

        Raises:
            IsolationError: a needed hierarchy is not there or not writable.
        """
        for controller in ("cpu", "memory"):
            if controller not in places.by_controller:
                raise IsolationError(f"cgroup v1: the {controller} hierarchy is not mounted")
        self._homes = _homes(places)
        if len(set(self._homes.values())) < len(self._homes):
            raise IsolationError(
                f"cgroup v1: expected hierarchies apart, got {', '.join(self._homes)} mounted together"
            )
        self.name = "cgroup v1"
        self.note = (
            ""
            if "pids" in self._homes
            else "the number of a task's processes is not limited (no pids cgroup)"
        )
        self._parts = shares(places, parent=parent, name=name)
        self.directories = list(self._parts.values())
        self.counts_cpu = os.path.exists(f"{self._homes['cpu']}/cpuacct.usage")
        self.limits_swap = _has_swap() and os.path.exists(
            f"{self._homes['memory']}/memory.memsw.limit_in_bytes"
        )
        self._home_descriptors: list[int] = []
        self._claims: list[int] = []
        """Hold our shares."""
        self._spares: list[Seat] = []
        self._seat_count = 0
        try:
            self._prepare()
        except OSError as error:
            cgroup_tree.sweep(self.directories)
            self.close()
            raise IsolationError(
                f"cgroup v1: {error.filename or self.directories[0]}: {error.strerror}"
            ) from error

    def _prepare(self) -> None:
        for directory in self.directories:
            self._claims.append(cgroup_shares.claim(KernelTree(), directory))
            cgroup_shares.remove_unowned(KernelTree(), directory)
        if cgroup_tree.read(f"{self._parts['memory']}/memory.use_hierarchy").strip() == "0":
            cgroup_tree.write(f"{self._parts['memory']}/memory.use_hierarchy", "1")
        for home in self._homes.values():
            self._home_descriptors.append(os.open(f"{home}/tasks", os.O_WRONLY | os.O_CLOEXEC))
        probe = self.create("probe", "")
        try:
            probe.enter()
        finally:
            self.go_home()
        probe.limit(Limits(1000, 1 << 30))
        probe.remove()

    def create(self, _name: str, _sandbox: str, /) -> "GroupV1":
        """Take a seat for the task."""
        return GroupV1(self, self._spares.pop() if self._spares else self._new_seat())

    def _new_seat(self) -> "Seat":
        self._seat_count += 1
        paths = [f"{path}/s{self._seat_count}" for path in self._parts.values()]
        try:
            for path in paths:
                os.mkdir(path)
            return Seat(*paths, is_kept_open=self._seat_count <= _KEPT_OPEN_MAX)
        except OSError:
            for path in paths:
                cgroup_tree.try_remove(KernelTree(), path)
            raise

    def take_back(self, seat: "Seat") -> bool:
        """Keep the seat of a task that is over for the next one; false if it is to be removed."""
        if len(self._spares) >= _SPARES_MAX or not seat.make_ready(self):
            return False
        self._spares.append(seat)
        return True

    def go_home(self) -> None:
        """Move the executor's only thread to where it was in every hierarchy."""
        for descriptor in self._home_descriptors:
            os.write(descriptor, b"0")

    def leave_cpu_group(self, pid: int) -> None:
        """Move a process of a task to our own CPU group."""
        with contextlib.suppress(OSError):  # it has ended
            cgroup_tree.write(f"{self._homes['cpu']}/cgroup.procs", str(pid))

    def refresh(self) -> None:
        """The kernel keeps the list."""

    def settle(self) -> None:
        """The kernel knows whose a process is."""

    def close(self) -> bool:
        """Remove our share of the hierarchies, and the group above it if nobody else uses it."""
        for descriptor in (*self._home_descriptors, *self._claims):
            os.close(descriptor)
        self._home_descriptors, self._claims = [], []
        for seat in self._spares:
            seat.close()
        is_clean = cgroup_tree.sweep(self.directories)
        for directory in self.directories:
            cgroup_tree.try_remove(KernelTree(), os.path.dirname(directory))
        return is_clean


class Seat:
    """Groups for one task at a time."""

    def __init__(self, cpu: str, memory: str, pids: str = "", *, is_kept_open: bool = True) -> None:
        """Take groups that exist. Raises OSError if they cannot be entered."""
        self._doors = [
            os.open(f"{path}/tasks", os.O_WRONLY | os.O_CLOEXEC) for path in (cpu, pids, memory) if path
        ]
        """Kept open: opening one costs as much as going through it."""
        self._quota = os.open(f"{cpu}/cpu.cfs_quota_us", os.O_WRONLY | os.O_CLOEXEC)
        self._is_kept_open = is_kept_open
        self._files: dict[str, int] = {}
        """Of the memory group, by name."""
        self.cpu = cpu
        self.memory = memory
        self.pids = pids
        """Empty without a pids hierarchy."""
        self.cpu_ns_before = 0
        """What earlier tasks in it have used."""
        self.left_bytes = 0
        """Memory that earlier tasks have left charged to it."""
        self._written: dict[str, str] = {}

    def enter(self) -> None:
        """Move the executor's only thread in. Raises OSError."""
        # Else who enters would wait for the next period where earlier tasks have used this one up.
        self._allow(_OPEN_QUOTA)
        for door in self._doors:
            os.write(door, b"0")

    def _allow(self, quota: bytes) -> None:
        """Write the quota, which also begins a period anew. Raises OSError."""
        try:
            os.write(self._quota, quota)
        except OSError as error:
            # More than the group above may have, which then is the limit; an earlier task's must not stay.
            if error.errno != errno.EINVAL:
                raise
            os.write(self._quota, _NO_QUOTA)

    def set(self, path: str, value: str) -> None:
        """Write a limit, unless that is what it is already. Raises OSError."""
        if self._written.get(path) != value:
            self._written.pop(path, None)
            cgroup_tree.write(path, value)
            self._written[path] = value

    def limit(self, cpus_milli: int) -> None:
        """Set weight, quota and number of processes. Raises OSError."""
        shares = max(cpus_milli * _SHARES_PER_CPU // 1000, _SHARES_MIN) if cpus_milli else _SHARES_PER_CPU
        self.set(f"{self.cpu}/cpu.shares", str(shares))
        quota = max(cpus_milli * _PERIOD_US // 1000, _QUOTA_US_MIN)
        self._allow(str(quota).encode() if cpus_milli else _NO_QUOTA)
        if self.pids:
            self.set(f"{self.pids}/pids.max", str(PIDS_MAX))

    def forbid_forks(self) -> None:
        """Let no new process be made in it, so that what is killed cannot outrun its killer."""
        if self.pids:
            with contextlib.suppress(OSError):
                self.set(f"{self.pids}/pids.max", "0")

    def make_ready(self, isolation: CgroupV1) -> bool:
        """Prepare for the next task, which is made inside before its limits are set; false if much is left of this one."""
        try:
            if not self._doors or os.stat(self.memory).st_nlink > _NLINK_OF_LEAF:
                return False  # The task has made groups below its own.
            usage = self.read_memory("memory.usage_in_bytes")
            if not usage or int(usage) > _LEFTOVER_BYTES_MAX:
                return False
            self.left_bytes = int(usage)
            if self.pids:
                self.set(f"{self.pids}/pids.max", str(PIDS_MAX))
            if isolation.limits_swap:
                self.write_memory("memory.memsw.limit_in_bytes", _NO_LIMIT)
            self.write_memory("memory.limit_in_bytes", _NO_LIMIT)
            self.write_memory("memory.max_usage_in_bytes", "0")
        except OSError:
            return False
        if isolation.counts_cpu:
            self.cpu_ns_before = cgroup_tree.read_number(f"{self.cpu}/cpuacct.usage")
        return True

    def read_memory(self, name: str) -> str:
        """Give what a file of the memory group says, a page of it at most; empty if it cannot be read."""
        try:
            descriptor = self._open(name)
        except OSError:
            return ""
        try:
            return os.pread(descriptor, _READ_BYTES, 0).decode().strip()
        except OSError:
            return ""
        finally:
            self._close(descriptor)

    def write_memory(self, name: str, value: str) -> None:
        """Write to a file of the memory group. Raises OSError."""
        descriptor = self._open(name)
        try:
            os.pwrite(descriptor, value.encode(), 0)
        finally:
            self._close(descriptor)

    def _open(self, name: str) -> int:
        descriptor = self._files.get(name)
        if descriptor is None:
            descriptor = os.open(f"{self.memory}/{name}", _MODES.get(name, os.O_RDWR) | os.O_CLOEXEC)
            if self._is_kept_open:
                self._files[name] = descriptor
        return descriptor

    def _close(self, descriptor: int) -> None:
        if not self._is_kept_open:
            os.close(descriptor)

    def close(self) -> None:
        """Close what is open; harmless when done twice."""
        for descriptor in (*self._doors, *self._files.values()):
            os.close(descriptor)
        if self._doors:
            os.close(self._quota)
        self._doors, self._files = [], {}

    def remove(self) -> bool:
        """Close it and remove its groups; false if the kernel is not done with the one that memory is charged to."""
        self.close()
        for path in filter(None, (self.cpu, self.pids)):
            # What the kernel is not done with stays until the sweep at the end.
            cgroup_tree.try_remove(KernelTree(), path)
        # A task with the right to do so may have made groups below its own.
        return cgroup_tree.try_remove(KernelTree(), self.memory) or cgroup_tree.sweep([self.memory])


class GroupV1:
    """One task's groups."""

    def __init__(self, isolation: CgroupV1, seat: Seat) -> None:
        self._isolation = isolation
        self._memory = seat.memory
        self._seat = seat
        self._mem_limit_bytes = 0
        self._early_kills = 0
        self._is_empty = False
        """As the kernel said last: of an empty group nobody can fork."""
        self._kills = 0
        """As the kernel said last."""

    def enter(self) -> None:
        """Move the executor's only thread in."""
        self._seat.enter()

    def leave(self) -> None:
        """Move it back where it was."""
        self._isolation.go_home()

    def adopt(self, pid: int) -> None:
        """The kernel knows."""

    def main_ended(self) -> None:
        """The kernel knows."""

    def limit(self, limits: Limits) -> None:
        """Set the limits.

        The kernel refuses a memory limit below what is in use. A task that is so early past its limit is killed, and
        ``memory_kills`` counts it.
        """
        self._mem_limit_bytes = limits.mem_bytes
        self._seat.limit(limits.cpus_milli)
        if not limits.mem_bytes:
            return
        limit = str(limits.mem_bytes + self._seat.left_bytes)
        try:
            self._seat.write_memory("memory.limit_in_bytes", limit)
            if self._isolation.limits_swap:
                self._seat.write_memory("memory.memsw.limit_in_bytes", limit)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            self._early_kills = 1
            self.kill()

    def pids(self) -> list[int]:
        """Give the living processes."""
        # Opened each time: what the kernel lists in a file that stays open may be a second old.
        found = cgroup_tree.read_pids(self._memory)
        self._is_empty = not found
        return found

    def kill(self) -> None:
        """Stop new processes from being made, then send SIGKILL to those there are."""
        self._seat.forbid_forks()
        cgroup_tree.kill_pids(self._memory)

    def free(self) -> None:
        """Move the processes to our own CPU group.

        To lift the quota does the same, but the kernel then walks through all groups: it takes longer the more there are.
        """
        for pid in self.pids():
            self._isolation.leave_cpu_group(pid)

    def measure(self) -> Measurement:
        """Read the counters; CPU time is that of the living processes where cpuacct is not in the cpu hierarchy."""
        usage = int(self._seat.read_memory("memory.usage_in_bytes") or 0)
        cache = cgroup_tree.read_field(f"{self._memory}/memory.stat", "total_inactive_file")
        ended = self.measure_ended()
        cpu_time_ms = ended.cpu_time_ms if self._isolation.counts_cpu else cpu_time_ms_of(self.pids())
        return ended._replace(
            cpu_time_ms=cpu_time_ms, mem_bytes=max(usage - self._seat.left_bytes - cache, 0)
        )

    def measure_ended(self) -> Measurement:
        """Read the counters that outlive the processes."""
        peak = int(self._seat.read_memory("memory.max_usage_in_bytes") or 0)
        return Measurement(
            cpu_time_ms=self._cpu_ns() // 1_000_000,
            mem_peak_bytes=max(peak - self._seat.left_bytes, 0),
            mem_limit_bytes=self._mem_limit_bytes,
        )

    def _cpu_ns(self) -> int:
        if not self._isolation.counts_cpu:
            return 0
        return cgroup_tree.read_number(f"{self._seat.cpu}/cpuacct.usage") - self._seat.cpu_ns_before

    def memory_kills(self) -> int:
        """Give how many processes the kernel has killed for memory."""
        for line in self._seat.read_memory("memory.oom_control").splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill":
                self._kills = int(number)
        return self._early_kills + self._kills

    def remove(self) -> bool:
        """Give back the seat, or remove it."""
        # The counter of kills cannot be reset.
        is_usable = self._is_empty and not self._kills
        return (is_usable and self._isolation.take_back(self._seat)) or self._seat.remove()


def _has_swap() -> bool:
    with open("/proc/swaps", encoding="ascii") as file:
        return len(file.readlines()) > 1
