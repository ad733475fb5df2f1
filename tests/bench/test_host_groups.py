"""Groups that hold an agent to the size of a host: what is written where, and what is said where it cannot be."""

import os
from pathlib import Path

import pytest

from fairlead_agent.executor.cgroup_tree import CgroupPlaces
from fairlead_bench.host_groups import HostGroups, NoGroups

V1_FILES = {
    "cpu": ("cpu.cfs_period_us", "cpu.cfs_quota_us", "cgroup.procs"),
    "memory": ("memory.use_hierarchy", "memory.limit_in_bytes", "cgroup.procs"),
    "pids": ("cgroup.procs",),
}
V2_FILES = ("cgroup.subtree_control", "cpu.max", "memory.max", "memory.swap.max", "cgroup.procs")


class FilesOfGroups:
    """A tree in which the files of a group come and go with its directory, as the kernel's do."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def make(self, path: str) -> None:
        Path(path).mkdir()
        hierarchy = Path(path).relative_to(self.root).parts[0]
        for name in V1_FILES.get(hierarchy, V2_FILES):
            Path(path, name).write_text("0\n" if name == "memory.use_hierarchy" else "")

    def remove(self, path: str) -> None:
        for file in Path(path).iterdir():
            if file.is_file():
                file.unlink()
        Path(path).rmdir()


def v1(root: Path) -> CgroupPlaces:
    for hierarchy in V1_FILES:
        (root / hierarchy).mkdir()
    roots = {hierarchy: str(root / hierarchy) for hierarchy in V1_FILES}
    return CgroupPlaces(dict(roots), "", roots)


def v2(root: Path, controllers: str) -> CgroupPlaces:
    (root / "unified").mkdir()
    (root / "unified" / "cgroup.controllers").write_text(controllers)
    (root / "unified" / "cgroup.subtree_control").write_text("")
    return CgroupPlaces({}, str(root / "unified"), {"": str(root / "unified")})


def test_version_1_limits_each_host_and_leaves_nothing_behind(tmp_path: Path) -> None:
    groups = HostGroups(2, cpus_milli=96, mem_bytes=1000, places=v1(tmp_path), tree=FilesOfGroups(tmp_path))

    with groups:
        assert groups.isolation == "cgroup-v1"
        assert len(groups.parents) == 2
        for parent in groups.parents:
            assert (tmp_path / "cpu" / parent / "cpu.cfs_quota_us").read_text() == "9600"
            assert (tmp_path / "cpu" / parent / "cpu.cfs_period_us").read_text() == "100000"
            assert (tmp_path / "memory" / parent / "memory.limit_in_bytes").read_text() == "1000"
            assert (tmp_path / "memory" / parent / "memory.use_hierarchy").read_text() in ("1", "1\n")
        # An agent makes groups below, also in the pids hierarchy.
        groups_of_agent = tmp_path / "pids" / groups.parents[0]
        groups_of_agent.mkdir()

    for hierarchy in V1_FILES:
        assert list((tmp_path / hierarchy).iterdir()) == []


def test_version_2_hands_controllers_down_and_limits_each_host(tmp_path: Path) -> None:
    groups = HostGroups(
        1, cpus_milli=96, mem_bytes=1000, places=v2(tmp_path, "cpu io memory"), tree=FilesOfGroups(tmp_path)
    )

    with groups:
        host = tmp_path / "unified" / groups.parents[0]
        assert groups.isolation == "cgroup-v2"
        assert (host / "cpu.max").read_text() == "9600 100000"
        assert (host / "memory.max").read_text() == "1000"
        assert (host / "memory.swap.max").read_text() == "0"
        for above in (tmp_path / "unified", host.parent):
            assert (above / "cgroup.subtree_control").read_text() == "+memory"  # The last thing written.

    assert not host.parent.exists()


class Busy(FilesOfGroups):
    """A group cannot be removed before what was killed in it has ended."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.tries_left = 5

    def remove(self, path: str) -> None:
        if path.endswith("host-1") and self.tries_left:
            self.tries_left -= 1
            raise OSError(16, os.strerror(16), path)
        super().remove(path)


def test_groups_in_which_something_still_ends_are_removed_when_it_has(tmp_path: Path) -> None:
    with HostGroups(2, cpus_milli=96, mem_bytes=1000, places=v1(tmp_path), tree=Busy(tmp_path)):
        pass

    assert [list((tmp_path / hierarchy).iterdir()) for hierarchy in V1_FILES] == [[], [], []]


def test_a_host_without_controllers_is_told_plainly(tmp_path: Path) -> None:
    with pytest.raises(NoGroups, match="no cgroups of the cpu and memory controllers"):
        HostGroups(1, cpus_milli=96, mem_bytes=1000, places=v2(tmp_path, "pids")).__enter__()


class Refusing(FilesOfGroups):
    def make(self, path: str) -> None:
        if "memory" in Path(path).parts and path.endswith("host-2"):
            raise PermissionError(13, os.strerror(13), path)
        super().make(path)


def test_what_was_made_is_removed_if_the_rest_is_refused(tmp_path: Path) -> None:
    places = v1(tmp_path)

    with pytest.raises(NoGroups, match="host-2: Permission denied"):
        HostGroups(2, cpus_milli=96, mem_bytes=1000, places=places, tree=Refusing(tmp_path)).__enter__()

    assert [list((tmp_path / hierarchy).iterdir()) for hierarchy in V1_FILES] == [[], [], []]
