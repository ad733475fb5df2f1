"""Isolation by cgroup v1: a group per task in the cpu, memory and (where there is one) pids hierarchies."""

import contextlib
import errno
import os
from typing import Final

from fairlead_agent.executor import cgroup_tree
from fairlead_agent.executor.cgroup_tree import CgroupPlaces, KernelTree
from fairlead_agent.executor.isolation import PIDS_MAX, IsolationError, Limits
from fairlead_agent.executor.processes import cpu_time_ms_of
from fairlead_agent.executor.protocol import Measurement

_PERIOD_US: Final = 100_000
"""The kernel's default: a task of half a CPU runs 50 ms and rests 50 ms at worst."""

_QUOTA_US_MIN: Final = 1_000
"""The kernel's own lower bound: a hundredth of a CPU."""

_SHARES_PER_CPU: Final = 1024
_SHARES_MIN: Final = 2


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
        self.name = "cgroup v1"
        self.note = (
            ""
            if "pids" in places.by_controller
            else "cgroup v1 without pids: the number of processes is not limited"
        )
        self._homes: dict[str, str] = {
            controller: places.by_controller[controller]
            for controller in ("cpu", "memory", "pids")
            if controller in places.by_controller
        }
        # Two controllers may share one hierarchy, which is then entered once.
        self._homes_apart = list(dict.fromkeys(self._homes.values()))
        self.directories = [
            f"{places.roots[controller]}/{parent.strip('/')}/{name}" if parent else f"{home}/{name}"
            for controller, home in self._homes.items()
        ]
        self.counts_cpu = os.path.exists(f"{self._homes['cpu']}/cpuacct.usage")
        self.limits_swap = _has_swap() and os.path.exists(
            f"{self._homes['memory']}/memory.memsw.limit_in_bytes"
        )
        self._tree = KernelTree()
        self.home_descriptors: list[int] = []
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
            cgroup_tree.make_path(self._tree, directory)
        memory = self.directories[list(self._homes).index("memory")]
        if cgroup_tree.read(f"{memory}/memory.use_hierarchy").strip() == "0":
            cgroup_tree.write(f"{memory}/memory.use_hierarchy", "1")
        for home in self._homes_apart:
            self.home_descriptors.append(os.open(f"{home}/tasks", os.O_WRONLY | os.O_CLOEXEC))
        probe = self.create("probe", "")
        try:
            probe.enter()
        finally:
            probe.leave()
        probe.limit(Limits(1000, 1 << 30))
        probe.remove()

    def create(self, name: str, _sandbox: str, /) -> "GroupV1":
        """Make the task's group in each hierarchy."""
        paths: dict[str, str] = {
            controller: f"{directory}/{name}"
            for controller, directory in zip(self._homes, self.directories, strict=True)
        }
        group = GroupV1(self, paths)
        try:
            for path in group.apart:
                self._tree.make(path)
        except OSError:
            group.remove()
            raise
        return group

    def refresh(self) -> None:
        """The kernel keeps the list."""

    def close(self) -> None:
        """Remove our share of the hierarchies, and the parent if it was the last."""
        for descriptor in self.home_descriptors:
            os.close(descriptor)
        self.home_descriptors = []
        for directory in self.directories:
            if cgroup_tree.try_remove(self._tree, directory):
                cgroup_tree.try_remove(self._tree, os.path.dirname(directory))


class GroupV1:
    """One task's groups."""

    def __init__(self, isolation: CgroupV1, paths: dict[str, str]) -> None:
        self._isolation = isolation
        self._cpu = paths["cpu"]
        self._memory = paths["memory"]
        self._pids = paths.get("pids", "")
        self.apart = list(dict.fromkeys(paths.values()))
        self._limits = Limits(0, 0)
        self._early_kills = 0

    def enter(self) -> None:
        """Move the executor's only thread in."""
        for path in self.apart:
            cgroup_tree.write(f"{path}/tasks", "0")

    def leave(self) -> None:
        """Move it back where it was."""
        for descriptor in self._isolation.home_descriptors:
            os.write(descriptor, b"0")

    def adopt(self, pid: int) -> None:
        """The kernel knows."""

    def main_ended(self) -> None:
        """The kernel knows."""

    def limit(self, limits: Limits) -> None:
        """Set shares, quota, memory limit and process limit.

        The kernel refuses a memory limit below what is in use. A task that is so early past its limit is killed, and
        ``memory_kills`` counts it.
        """
        self._limits = limits
        if limits.cpus_milli:
            shares = max(limits.cpus_milli * _SHARES_PER_CPU // 1000, _SHARES_MIN)
            cgroup_tree.write(f"{self._cpu}/cpu.shares", str(shares))
            quota = max(limits.cpus_milli * _PERIOD_US // 1000, _QUOTA_US_MIN)
            # The kernel refuses more than the group above may have, which then is the limit.
            with contextlib.suppress(OSError):
                cgroup_tree.write(f"{self._cpu}/cpu.cfs_quota_us", str(quota))
        if self._pids:
            cgroup_tree.write(f"{self._pids}/pids.max", str(PIDS_MAX))
        if limits.mem_bytes:
            self._limit_memory(limits.mem_bytes)

    def _limit_memory(self, mem_bytes: int) -> None:
        try:
            cgroup_tree.write(f"{self._memory}/memory.limit_in_bytes", str(mem_bytes))
            if self._isolation.limits_swap:
                cgroup_tree.write(f"{self._memory}/memory.memsw.limit_in_bytes", str(mem_bytes))
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
        if self._pids:
            with contextlib.suppress(OSError):
                cgroup_tree.write(f"{self._pids}/pids.max", "0")
        cgroup_tree.kill_pids(self._memory)

    def measure(self) -> Measurement:
        """Read the counters; CPU time is that of the living processes where cpuacct is not in the cpu hierarchy."""
        usage = cgroup_tree.read_number(f"{self._memory}/memory.usage_in_bytes")
        cache = cgroup_tree.read_field(f"{self._memory}/memory.stat", "total_inactive_file")
        return Measurement(
            cpu_time_ms=self._cpu_time_ms(),
            mem_bytes=max(usage - cache, 0),
            mem_peak_bytes=cgroup_tree.read_number(f"{self._memory}/memory.max_usage_in_bytes"),
            mem_limit_bytes=self._limits.mem_bytes,
        )

    def _cpu_time_ms(self) -> int:
        if self._isolation.counts_cpu:
            return cgroup_tree.read_number(f"{self._cpu}/cpuacct.usage") // 1_000_000
        return cpu_time_ms_of(self.pids())

    def memory_kills(self) -> int:
        """Give how many processes the kernel has killed for memory."""
        return self._early_kills + cgroup_tree.read_field(f"{self._memory}/memory.oom_control", "oom_kill")

    def remove(self) -> bool:
        """Remove the group from each hierarchy."""
        self.apart = [path for path in self.apart if not cgroup_tree.try_remove(KernelTree(), path)]
        return not self.apart


def _has_swap() -> bool:
    with open("/proc/swaps", encoding="ascii") as file:
        return len(file.readlines()) > 1
