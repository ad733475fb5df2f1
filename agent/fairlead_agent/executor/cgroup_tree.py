"""Where this process is in the host's cgroups, and plain access to their files."""

import contextlib
import os
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from fairlead_agent.executor.processes import kill

_READ_BYTES: Final = 4096
"""Nearly all of these files fit in a page, which is what the kernel hands out at once."""

_MAKE_ATTEMPTS: Final = 10
"""Another agent that ends may remove the group it shares with us just when we make ours in it."""


class CgroupPlaces(NamedTuple):
    """The directories of the groups this process is in."""

    by_controller: dict[str, str]
    """cgroup v1: controller to directory."""
    unified: str
    """cgroup v2; empty if it is not mounted."""
    roots: dict[str, str]
    """Controller ("" for v2) to the mount itself, below which a parent named by the user is looked for."""


def read_places(mountinfo: str, own_groups: str) -> CgroupPlaces:
    """Work out the places from the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    paths: dict[str, str] = {}
    for line in own_groups.splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    places: dict[str, str] = {}
    roots: dict[str, str] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, mount_point = before.split(" ")[3:5]
        if kind not in {"cgroup", "cgroup2"}:
            continue
        for controller in options.split(",") if kind == "cgroup" else [""]:
            if controller in paths and controller not in places:
                places[controller] = mount_point + _below(paths[controller], root)
                roots[controller] = mount_point
    unified = places.pop("", "")
    return CgroupPlaces(places, unified, roots)


def _below(path: str, root: str) -> str:
    """Give the part of a group's path that is visible under a mount of ``root``; a container sees but a part."""
    if root == "/":
        return path.rstrip("/")
    if path == root or path.startswith(root + "/"):
        return path[len(root) :]
    return ""


class Tree(Protocol):
    """Makes and removes groups. On the kernel's file system the files of a group come and go with its directory."""

    def make(self, path: str) -> None:
        """Make one group. Raises OSError."""

    def remove(self, path: str) -> None:
        """Remove one empty group. Raises OSError."""


class KernelTree:
    """The real one."""

    def make(self, path: str) -> None:
        """Make one group."""
        os.mkdir(path)

    def remove(self, path: str) -> None:
        """Remove one empty group."""
        os.rmdir(path)


def write(path: str, value: str) -> None:
    """Write to a file of a group, which must exist.

    Raises:
        OSError: there is no such file, or the kernel refuses the value.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def read(path: str) -> str:
    """Give the content of a file of a group; empty if it is not there or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        parts = []
        while part := os.read(descriptor, _READ_BYTES):
            parts.append(part)
        return b"".join(parts).decode()
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def read_number(path: str) -> int:
    """Give the number in a file of a group; 0 if there is none (as for "max")."""
    text = read(path).strip()
    return int(text) if text.isdigit() else 0


def read_field(path: str, field: str) -> int:
    """Give the number behind ``field`` in a file of lines "name number"; 0 if it is not there."""
    for line in read(path).splitlines():
        name, _, number = line.partition(" ")
        if name == field:
            return int(number)
    return 0


def read_pids(path: str) -> list[int]:
    """Give the processes directly in the group at ``path``."""
    return [int(pid) for pid in read(f"{path}/cgroup.procs").split() if pid != "0"]


def kill_pids(path: str) -> None:
    """Send SIGKILL to the processes directly in the group at ``path``."""
    for pid in read_pids(path):
        kill(pid)


def lift_quota(path: str) -> None:
    """Let what was killed in the group at ``path`` end, which needs CPU time: it may owe what its quota gives in minutes.

    Only where the quota has held something up: for each write the kernel walks through all groups of the host.
    """
    if not read_field(f"{path}/cpu.stat", "nr_throttled"):
        return
    for name, unlimited in (("cpu.cfs_quota_us", "-1"), ("cpu.max", "max")):
        quota = read(f"{path}/{name}")
        if quota and not quota.startswith(unlimited):
            with contextlib.suppress(OSError):
                write(f"{path}/{name}", unlimited)


def make_path(tree: Tree, path: str) -> None:
    """Make a group and those above it where they are missing.

    Raises:
        OSError: one of them cannot be made.
    """
    for attempt in range(_MAKE_ATTEMPTS):
        if os.path.isdir(path):
            return
        make_path(tree, os.path.dirname(path))
        try:
            tree.make(path)
        except FileExistsError:
            return
        except FileNotFoundError:
            if attempt == _MAKE_ATTEMPTS - 1:
                raise


def try_remove(tree: Tree, path: str) -> bool:
    """Remove a group; false if it is still in use. A group that is not there counts as removed."""
    try:
        tree.remove(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def sweep(directories: Sequence[str], tree: Tree | None = None) -> bool:
    """Kill everything below these groups and remove them; false if something is still there (call again)."""
    tree = tree or KernelTree()
    clean = True
    for directory in directories:
        for path, _, _ in os.walk(directory, topdown=False):
            kill_pids(path)
            lift_quota(path)
            clean = try_remove(tree, path) and clean
    return clean
