"""Isolation by cgroup v1: a group per task in the cpu, memory and (where there is one) pids hierarchies.

Groups in the cpu and pids hierarchies keep nothing of a task but its limits, so they are used again for the next one:
together with writing only limits that differ this saves a third of what a short task costs. The quota is always written:
that is what makes the kernel forget how much of the period earlier tasks have used. A memory group does keep
something (page cache, kernel memory, the peak) and is always new.
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

_SHARES_PER_CPU: Final = 1024
"""The kernel's default is that of one CPU."""

_SHARES_MIN: Final = 2

_SPARES_MAX: Final = 64
"""Seats kept for later tasks: a burst of short tasks has a few dozen at a time; an empty group costs some KiB."""


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

    def create(self, name: str, _sandbox: str, /) -> "GroupV1":
        """Make the task's memory group, and take a seat for the rest."""
        memory = f"{self._parts['memory']}/{name}"
        seat = self._spares.pop() if self._spares else self._new_seat()
        try:
            os.mkdir(memory)
        except OSError:
            self._spares.append(seat)
            raise
        return GroupV1(self, memory, seat)

    def _new_seat(self) -> "Seat":
        self._seat_count += 1
        paths = [
            f"{self._parts[part]}/s{self._seat_count}" for part in ("cpu", "pids") if part in self._parts
        ]
        try:
            for path in paths:
                os.mkdir(path)
            return Seat(*paths)
        except OSError:
            for path in paths:
                cgroup_tree.try_remove(KernelTree(), path)
            raise

    def take_back(self, seat: "Seat") -> None:
        """Keep the seat of a task that is over for the next one."""
        if len(self._spares) < _SPARES_MAX and seat.allow_forks():
            self._spares.append(seat)
        else:
            # What the kernel is not done with stays until the sweep at the end.
            seat.remove()

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
    """Groups for one task at a time in the hierarchies that keep nothing of it."""

    def __init__(self, cpu: str, pids: str = "") -> None:
        """Take groups that exist. Raises OSError if they cannot be entered."""
        self._doors = [os.open(f"{path}/tasks", os.O_WRONLY | os.O_CLOEXEC) for path in (cpu, pids) if path]
        """Kept open: opening one costs as much as going through it."""
        self._quota = os.open(f"{cpu}/cpu.cfs_quota_us", os.O_WRONLY | os.O_CLOEXEC)
        self.cpu = cpu
        self.pids = pids
        """Empty without a pids hierarchy."""
        self.cpu_ns_before = 0
        """What earlier tasks in it have used."""
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

    def allow_forks(self) -> bool:
        """Let processes be made in it again: the next task is made inside, before its limits are set.

        False if the kernel will not.
        """
        try:
            if self.pids:
                self.set(f"{self.pids}/pids.max", str(PIDS_MAX))
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close what is open; harmless when done twice."""
        for descriptor in self._doors:
            os.close(descriptor)
        if self._doors:
            os.close(self._quota)
        self._doors = []

    def remove(self) -> None:
        """Close it and remove its groups."""
        self.close()
        for path in filter(None, (self.cpu, self.pids)):
            cgroup_tree.try_remove(KernelTree(), path)


class GroupV1:
    """One task's groups."""

    def __init__(self, isolation: CgroupV1, memory: str, seat: Seat) -> None:
        self._isolation = isolation
        self._memory = memory
        self._seat = seat
        self._mem_limit_bytes = 0
        self._early_kills = 0

    def enter(self) -> None:
        """Move the executor's only thread in."""
        self._seat.enter()
        cgroup_tree.write(f"{self._memory}/tasks", "0")

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
        try:
            cgroup_tree.write(f"{self._memory}/memory.limit_in_bytes", str(limits.mem_bytes))
            if self._isolation.limits_swap:
                cgroup_tree.write(f"{self._memory}/memory.memsw.limit_in_bytes", str(limits.mem_bytes))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            self._early_kills = 1
            self.kill()

    def pids(self) -> list[int]:
        """Give the living processes."""
        return cgroup_tree.read_pids(self._memory)

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
        usage = cgroup_tree.read_number(f"{self._memory}/memory.usage_in_bytes")
        cache = cgroup_tree.read_field(f"{self._memory}/memory.stat", "total_inactive_file")
        ended = self.measure_ended()
        cpu_time_ms = ended.cpu_time_ms if self._isolation.counts_cpu else cpu_time_ms_of(self.pids())
        return ended._replace(cpu_time_ms=cpu_time_ms, mem_bytes=max(usage - cache, 0))

    def measure_ended(self) -> Measurement:
        """Read the counters that outlive the processes."""
        return Measurement(
            cpu_time_ms=self._cpu_ns() // 1_000_000,
            mem_peak_bytes=cgroup_tree.read_number(f"{self._memory}/memory.max_usage_in_bytes"),
            mem_limit_bytes=self._mem_limit_bytes,
        )

    def _cpu_ns(self) -> int:
        if not self._isolation.counts_cpu:
            return 0
        return cgroup_tree.read_number(f"{self._seat.cpu}/cpuacct.usage") - self._seat.cpu_ns_before

    def memory_kills(self) -> int:
        """Give how many processes the kernel has killed for memory."""
        return self._early_kills + cgroup_tree.read_field(f"{self._memory}/memory.oom_control", "oom_kill")

    def remove(self) -> bool:
        """Remove the memory group and give back the seat."""
        # A task with the right to do so may have made groups below its own.
        if not cgroup_tree.try_remove(KernelTree(), self._memory) and not cgroup_tree.sweep([self._memory]):
            return False
        self._seat.cpu_ns_before += self._cpu_ns()
        self._isolation.take_back(self._seat)
        return True


def _has_swap() -> bool:
    with open("/proc/swaps", encoding="ascii") as file:
        return len(file.readlines()) > 1
