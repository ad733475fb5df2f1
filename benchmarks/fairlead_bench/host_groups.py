"""Groups that hold each agent of a local cluster to the size of the host it stands for.

An agent holds every task to what the task declares. On a real host all tasks together also end at what the host has, which matters
where a policy promises more than that: this makes a cgroup for each agent with the host's CPU quota and memory limit, and the agent
makes its tasks' groups inside. A crowded host then slows its tasks down, and where memory ends the kernel kills one.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from fairlead_agent.executor import cgroup_tree
from fairlead_agent.executor.cgroup_tree import CgroupPlaces, KernelTree, Tree

_PERIOD_US: Final = 100_000
_CONTROLLERS: Final = ("cpu", "memory")

_REMOVE_TIMEOUT_S: Final = 10.0
"""For what is killed to end."""

_LOOK_INTERVAL_S: Final = 0.05


class NoGroups(Exception):
    """Hosts cannot be limited here; the message says why in one line."""


class HostGroups:
    """One group for each host. A context manager; made on entering it, and removed at the end with all that is in them.

    Attributes:
        parents: of each host's agent, what ``--cgroup-parent`` says.
        isolation: of these agents, what ``--isolation`` says; known once made.
    """

    def __init__(
        self,
        hosts: int,
        *,
        cpus_milli: int,
        mem_bytes: int,
        places: CgroupPlaces | None = None,
        tree: Tree | None = None,
    ) -> None:
        """Describe them; nothing is made.

        Args:
            hosts: how many.
            cpus_milli: thousandths of a CPU that all tasks of one host share.
            mem_bytes: memory that they share.
            places: where cgroups are; None asks the kernel.
            tree: makes and removes groups; None is the kernel's.
        """
        self._name = f"fairlead-hosts-{os.getpid()}"
        self.parents = [f"{self._name}/host-{number + 1}" for number in range(hosts)]
        self.isolation = ""
        self._quota_us = cpus_milli * _PERIOD_US // 1000
        self._mem_bytes = mem_bytes
        self._places = places
        self._tree = tree or KernelTree()
        self._tops: list[str] = []

    def __enter__(self) -> Self:
        """Make the groups.

        Raises:
            NoGroups: it is not possible here.
        """
        places = self._places or _read_places()
        unified = places.roots.get("", "")
        offered = cgroup_tree.read(f"{unified}/cgroup.controllers").split() if unified else []
        try:
            if all(controller in offered for controller in _CONTROLLERS):
                self._make_v2(unified)
            elif all(controller in places.roots for controller in _CONTROLLERS):
                self._make_v1(places.roots)
            else:
                raise NoGroups("no cgroups of the cpu and memory controllers are mounted")
        except OSError as error:
            self._remove()
            raise NoGroups(f"{error.filename or self._name}: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the groups, and end what is still in them."""
        self._remove()

    def _make_v2(self, root: str) -> None:
        self.isolation = "cgroup-v2"
        top = f"{root}/{self._name}"
        self._tops = [top]
        for above in (root, top):
            if above == top:
                self._tree.make(top)
            for controller in _CONTROLLERS:
                cgroup_tree.write(f"{above}/cgroup.subtree_control", f"+{controller}")
        for parent in self.parents:
            path = f"{root}/{parent}"
            self._tree.make(path)
            cgroup_tree.write(f"{path}/cpu.max", f"{self._quota_us} {_PERIOD_US}")
            cgroup_tree.write(f"{path}/memory.max", str(self._mem_bytes))
            if Path(path, "memory.swap.max").exists():  # A kernel without swap has none.
                cgroup_tree.write(f"{path}/memory.swap.max", "0")

    def _make_v1(self, roots: Mapping[str, str]) -> None:
        self.isolation = "cgroup-v1"
        # Agents make theirs in the pids hierarchy, too, where there is one, and below the same parent.
        self._tops = [f"{roots[each]}/{self._name}" for each in (*_CONTROLLERS, "pids") if each in roots]
        for top in self._tops:
            self._tree.make(top)
        for parent in self.parents:
            cpu, memory = [f"{roots[controller]}/{parent}" for controller in _CONTROLLERS]
            self._tree.make(cpu)
            cgroup_tree.write(f"{cpu}/cpu.cfs_period_us", str(_PERIOD_US))
            cgroup_tree.write(f"{cpu}/cpu.cfs_quota_us", str(self._quota_us))
            self._tree.make(memory)
            if cgroup_tree.read(f"{memory}/memory.use_hierarchy").strip() == "0":
                cgroup_tree.write(f"{memory}/memory.use_hierarchy", "1")
            cgroup_tree.write(f"{memory}/memory.limit_in_bytes", str(self._mem_bytes))
            if Path(memory, "memory.memsw.limit_in_bytes").exists():
                cgroup_tree.write(f"{memory}/memory.memsw.limit_in_bytes", str(self._mem_bytes))

    def _remove(self) -> None:
        until_s = time.monotonic() + _REMOVE_TIMEOUT_S
        while not cgroup_tree.sweep(self._tops, self._tree) and time.monotonic() < until_s:
            time.sleep(_LOOK_INTERVAL_S)


def why_not() -> str:
    """Why hosts cannot be limited here, in one line; empty if they can."""
    try:
        with HostGroups(1, cpus_milli=100, mem_bytes=64 << 20):
            return ""
    except NoGroups as error:
        return str(error)


def _read_places() -> CgroupPlaces:
    try:
        return cgroup_tree.read_places(
            Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape"),
            Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="surrogateescape"),
        )
    except OSError as error:
        raise NoGroups(f"{error.filename}: {error.strerror}") from error
