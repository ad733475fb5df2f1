"""Isolation by cgroup v2: one group per task in the unified hierarchy."""

import contextlib
import errno
import os
from typing import Final

from fairlead_agent.executor import cgroup_shares, cgroup_tree
from fairlead_agent.executor.cgroup_tree import CgroupPlaces, KernelTree, Tree
from fairlead_agent.executor.isolation import PIDS_MAX, IsolationError, Limits
from fairlead_agent.executor.protocol import Measurement

_PERIOD_US: Final = 100_000
_QUOTA_US_MIN: Final = 1_000
_WEIGHT_PER_CPU: Final = 100
"""The default weight is that of one CPU."""

_WEIGHT_MAX: Final = 10_000
_HOME_NAME: Final = "fairlead-agent"
"""Where the agent and its executor go: a group with limited groups below it may hold no process itself."""


class CgroupV2:
    """Groups in the version 2 hierarchy."""

    def __init__(
        self, places: CgroupPlaces, *, parent: str, name: str, agent_pid: int = 0, tree: Tree | None = None
    ) -> None:
        """Probe and prepare.

        Args:
            places: where we are.
            parent: path from the mount, of a group that is ours alone; empty is the group we are in.
            name: our share of the parent.
            agent_pid: the agent, which is moved out of the parent with us.
            tree: makes and removes groups.

        Raises:
            IsolationError: the cpu and memory controllers are not ours to use.
        """
        if not places.unified:
            raise IsolationError("cgroup v2: not mounted")
        self.name = "cgroup v2"
        self.note = ""
        self.tree = tree or KernelTree()
        self._home = places.unified
        top = _top(places, parent)
        offered = cgroup_tree.read(f"{top}/cgroup.controllers").split()
        if missing := [controller for controller in ("cpu", "memory") if controller not in offered]:
            raise IsolationError(f"cgroup v2: {' and '.join(missing)} not delegated to {top}")
        self._controllers = [controller for controller in ("cpu", "memory", "pids") if controller in offered]
        self.limits_pids = "pids" in self._controllers
        self.directories = [f"{top}/{name}"]
        self._claims: list[int] = []
        """Hold our share."""
        movable = [os.getpid(), agent_pid] if agent_pid else [os.getpid()]
        if top == places.roots[""]:
            # A container's whole view: whatever else runs in it came with us.
            movable = cgroup_tree.read_pids(top)
        try:
            self._hand_down_from(top, [] if parent else movable)
        except OSError as error:
            self._let_go()
            raise IsolationError(f"cgroup v2: {error.filename or top}: {error.strerror}") from error

    def _hand_down_from(self, top: str, movable: list[int]) -> None:
        """Make the controllers usable in the tasks' groups, moving processes out of the way where that is needed."""
        directory = self.directories[0]
        self._claims.append(cgroup_shares.claim(self.tree, directory))
        cgroup_shares.remove_unowned(self.tree, directory)
        try:
            self._enable_below(top)
        except OSError as error:
            if error.errno != errno.EBUSY or not movable:
                raise
            self._home = f"{top}/{_HOME_NAME}"
            cgroup_tree.make_path(self.tree, self._home)
            for pid in movable:
                with contextlib.suppress(ProcessLookupError):
                    cgroup_tree.write(f"{self._home}/cgroup.procs", str(pid))
            self._enable_below(top)
        self._enable_below(os.path.dirname(directory))
        self._enable_below(directory)
        self.go_home()

    def _enable_below(self, path: str) -> None:
        order = " ".join(f"+{controller}" for controller in self._controllers)
        try:
            cgroup_tree.write(f"{path}/cgroup.subtree_control", order)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror} (does it hold other processes?)", path) from error

    def create(self, name: str, _sandbox: str, /) -> "GroupV2":
        """Make the task's group."""
        path = f"{self.directories[0]}/{name}"
        self.tree.make(path)
        return GroupV2(self, path)

    def go_home(self) -> None:
        """Move the executor to its own group."""
        cgroup_tree.write(f"{self._home}/cgroup.procs", "0")

    def refresh(self) -> None:
        """The kernel keeps the list."""

    def settle(self) -> None:
        """The kernel knows whose a process is."""

    def close(self) -> bool:
        """Remove our share of the parent, and the group above it if nobody else uses it."""
        self._let_go()
        removed = cgroup_tree.try_remove(self.tree, self.directories[0])
        cgroup_tree.try_remove(self.tree, os.path.dirname(self.directories[0]))
        return removed

    def _let_go(self) -> None:
        for descriptor in self._claims:
            os.close(descriptor)
        self._claims = []


def share(places: CgroupPlaces, *, parent: str, name: str) -> str:
    """Give where the groups of an agent are; empty if version 2 is not mounted."""
    return f"{_top(places, parent)}/{name}" if places.unified else ""


def _top(places: CgroupPlaces, parent: str) -> str:
    return f"{places.roots['']}/{parent.strip('/')}" if parent else _without_home(places.unified)


def _without_home(path: str) -> str:
    """Give the group an earlier executor worked in: the agent that starts us was moved into the home below it."""
    return os.path.dirname(path) if os.path.basename(path) == _HOME_NAME else path


class GroupV2:
    """One task's group."""

    def __init__(self, isolation: CgroupV2, path: str) -> None:
        self._isolation = isolation
        self._path = path
        self._limits = Limits(0, 0)
        self._mem_peak_bytes = 0

    def enter(self) -> None:
        """Move the executor in."""
        cgroup_tree.write(f"{self._path}/cgroup.procs", "0")

    def leave(self) -> None:
        """Move it back."""
        self._isolation.go_home()

    def adopt(self, pid: int) -> None:
        """The kernel knows."""

    def main_ended(self) -> None:
        """The kernel knows."""

    def limit(self, limits: Limits) -> None:
        """Set weight, quota, memory and process limits. The kernel itself kills what is past its memory limit already."""
        self._limits = limits
        if limits.cpus_milli:
            weight = min(max(limits.cpus_milli * _WEIGHT_PER_CPU // 1000, 1), _WEIGHT_MAX)
            cgroup_tree.write(f"{self._path}/cpu.weight", str(weight))
            quota = max(limits.cpus_milli * _PERIOD_US // 1000, _QUOTA_US_MIN)
            cgroup_tree.write(f"{self._path}/cpu.max", f"{quota} {_PERIOD_US}")
        if self._isolation.limits_pids:
            cgroup_tree.write(f"{self._path}/pids.max", str(PIDS_MAX))
        if limits.mem_bytes:
            # One process killed for memory leaves a task nobody can reason about: all of it goes.
            cgroup_tree.write(f"{self._path}/memory.oom.group", "1")
            with contextlib.suppress(FileNotFoundError):  # a kernel without swap
                cgroup_tree.write(f"{self._path}/memory.swap.max", "0")
            cgroup_tree.write(f"{self._path}/memory.max", str(limits.mem_bytes))

    def pids(self) -> list[int]:
        """Give the living processes, those in groups a task has made below its own included."""
        return [pid for path, _, _ in os.walk(self._path) for pid in cgroup_tree.read_pids(path)]

    def kill(self) -> None:
        """Let the kernel kill all at once, or do it one by one before Linux 5.14."""
        try:
            cgroup_tree.write(f"{self._path}/cgroup.kill", "1")
        except FileNotFoundError:
            if self._isolation.limits_pids:
                cgroup_tree.write(f"{self._path}/pids.max", "0")
            for path, _, _ in os.walk(self._path):
                cgroup_tree.kill_pids(path)

    def free(self) -> None:
        """Lift the quota."""
        cgroup_tree.lift_quota(self._path)

    def measure(self) -> Measurement:
        """Read the counters; before Linux 5.19 the peak is the highest of our own readings."""
        usage = cgroup_tree.read_number(f"{self._path}/memory.current")
        cache = cgroup_tree.read_field(f"{self._path}/memory.stat", "inactive_file")
        self._mem_peak_bytes = max(self._mem_peak_bytes, usage)
        return self.measure_ended()._replace(mem_bytes=max(usage - cache, 0))

    def measure_ended(self) -> Measurement:
        """Read the counters that outlive the processes."""
        return Measurement(
            cpu_time_ms=cgroup_tree.read_field(f"{self._path}/cpu.stat", "usage_usec") // 1000,
            mem_peak_bytes=max(self._mem_peak_bytes, cgroup_tree.read_number(f"{self._path}/memory.peak")),
            mem_limit_bytes=self._limits.mem_bytes,
        )

    def memory_kills(self) -> int:
        """Give how many processes the kernel has killed for memory."""
        return cgroup_tree.read_field(f"{self._path}/memory.events", "oom_kill")

    def remove(self) -> bool:
        """Remove the group, and first what the task has made below it."""
        paths = [path for path, _, _ in os.walk(self._path, topdown=False) if path != self._path]
        removed = [cgroup_tree.try_remove(self._isolation.tree, path) for path in [*paths, self._path]]
        return all(removed)
