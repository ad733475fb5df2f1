"""Where the groups are on different hosts, and version 2 against a tree that looks like the kernel's."""

import errno
import fcntl
import os
import shutil
from pathlib import Path

import pytest

from fairlead_agent.executor import cgroup_shares, cgroup_tree, probe
from fairlead_agent.executor.cgroup_tree import CgroupPlaces, read_places
from fairlead_agent.executor.cgroup_v1 import CgroupV1
from fairlead_agent.executor.cgroup_v2 import CgroupV2
from fairlead_agent.executor.isolation import PIDS_MAX, IsolationError, Limits
from fairlead_agent.executor.protocol import Measurement

GIB = 1 << 30
FILES = {
    "cgroup.controllers": "cpuset cpu io memory pids",
    "cgroup.subtree_control": "",
    "cgroup.procs": "",
    "cgroup.kill": "",
    "cpu.weight": "100",
    "cpu.max": "max 100000",
    "cpu.stat": "usage_usec 0",
    "memory.max": "max",
    "memory.swap.max": "max",
    "memory.oom.group": "0",
    "memory.current": "0",
    "memory.peak": "0",
    "memory.stat": "anon 0\ninactive_file 0",
    "memory.events": "oom 0\noom_kill 0",
    "pids.max": "max",
}


class FakeTree:
    """Groups as directories with files in them; removing a group removes these."""

    def __init__(self, *absent: str) -> None:
        self._files = {name: text for name, text in FILES.items() if name not in absent}

    def make(self, path: str) -> None:
        Path(path).mkdir()
        for name, text in self._files.items():
            (Path(path) / name).write_text(text)

    def remove(self, path: str) -> None:
        if any(child.is_dir() for child in Path(path).iterdir()):
            raise OSError(errno.EBUSY, "busy")
        shutil.rmtree(path)


def a_host(root: Path, tree: FakeTree, own: str = "system.slice/fairlead.service") -> CgroupPlaces:
    (root / "cgroup").mkdir()
    places = CgroupPlaces({}, str(root / "cgroup" / own), {"": str(root / "cgroup")})
    cgroup_tree.make_path(tree, places.unified)
    return places


def content(path: Path) -> str:
    return path.read_text()


def test_version_2_limits_its_groups(tmp_path: Path) -> None:
    tree = FakeTree()
    isolation = CgroupV2(a_host(tmp_path, tree), parent="", name="fairlead/x", tree=tree)

    group = isolation.create("t1", "/sandbox")
    group.limit(Limits(1500, 2 * GIB))

    top = tmp_path / "cgroup/system.slice/fairlead.service"
    for path in (top, top / "fairlead", top / "fairlead/x"):
        assert content(path / "cgroup.subtree_control") == "+cpu +memory +pids"
    task = top / "fairlead/x/t1"
    assert content(task / "cpu.weight") == "150"
    assert content(task / "cpu.max") == "150000 100000"
    assert content(task / "memory.max") == str(2 * GIB)
    assert content(task / "memory.swap.max") == "0ax"  # a plain file keeps what is not overwritten
    assert content(task / "memory.oom.group") == "1"
    assert content(task / "pids.max") == str(PIDS_MAX)[:3] + str(PIDS_MAX)[3:]
    assert (isolation.name, isolation.note) == ("cgroup v2", "")


def test_version_2_leaves_a_task_without_limits_unlimited(tmp_path: Path) -> None:
    tree = FakeTree()
    isolation = CgroupV2(a_host(tmp_path, tree), parent="", name="fairlead/x", tree=tree)

    group = isolation.create("t1", "/sandbox")
    group.limit(Limits(0, 0))

    task = tmp_path / "cgroup/system.slice/fairlead.service/fairlead/x/t1"
    assert (content(task / "cpu.max"), content(task / "memory.max")) == ("max 100000", "max")


@pytest.mark.parametrize(
    ("cpus_milli", "weight", "quota"),
    [(1, "1", "1000"), (10, "1", "1000"), (1000, "100", "100000"), (512_000, "10000", "51200000")],
)
def test_version_2_weights_stay_in_the_kernels_range(
    tmp_path: Path, cpus_milli: int, weight: str, quota: str
) -> None:
    tree = FakeTree("cpu.weight")
    isolation = CgroupV2(a_host(tmp_path, tree), parent="", name="fairlead/x", tree=tree)
    group = isolation.create("t1", "/sandbox")
    task = tmp_path / "cgroup/system.slice/fairlead.service/fairlead/x/t1"
    (task / "cpu.weight").touch()

    group.limit(Limits(cpus_milli, 0))

    assert content(task / "cpu.weight") == weight
    assert content(task / "cpu.max").split()[0] == quota


def test_version_2_reads_usage_and_memory_kills(tmp_path: Path) -> None:
    tree = FakeTree()
    isolation = CgroupV2(a_host(tmp_path, tree), parent="", name="fairlead/x", tree=tree)
    group = isolation.create("t1", "/sandbox")
    group.limit(Limits(1000, GIB))
    task = tmp_path / "cgroup/system.slice/fairlead.service/fairlead/x/t1"
    (task / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\n")
    (task / "memory.current").write_text("5000\n")
    (task / "memory.stat").write_text("anon 3000\ninactive_file 1500\n")
    (task / "memory.peak").write_text("7000\n")
    (task / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")

    usage = group.measure()

    assert usage == Measurement(2500, 3500, 7000, GIB)
    assert group.measure_ended() == Measurement(2500, 0, 7000, GIB)
    assert group.memory_kills() == 2


def test_version_2_polls_the_peak_on_kernels_that_do_not_keep_it(tmp_path: Path) -> None:
    tree = FakeTree("memory.peak")
    isolation = CgroupV2(a_host(tmp_path, tree), parent="", name="fairlead/x", tree=tree)
    group = isolation.create("t1", "/sandbox")
    current = tmp_path / "cgroup/system.slice/fairlead.service/fairlead/x/t1/memory.current"

    for size in ("5000", "9000", "100"):
        current.write_text(size)
        group.measure()

    assert group.measure_ended().mem_peak_bytes == 9000


def test_version_2_kills_by_the_kernel(tmp_path: Path) -> None:
    tree = FakeTree()
    isolation = CgroupV2(a_host(tmp_path, tree), parent="", name="fairlead/x", tree=tree)
    group = isolation.create("t1", "/sandbox")

    group.kill()

    assert content(tmp_path / "cgroup/system.slice/fairlead.service/fairlead/x/t1/cgroup.kill") == "1"


@pytest.mark.parametrize(
    ("stat", "expected"), [("nr_throttled 3\n", "max0 100000"), ("nr_throttled 0\n", "1000 100000")]
)
def test_version_2_lifts_the_quota_where_it_has_held_something_up(
    tmp_path: Path, stat: str, expected: str
) -> None:
    tree = FakeTree()
    isolation = CgroupV2(a_host(tmp_path, tree), parent="", name="fairlead/x", tree=tree)
    group = isolation.create("t1", "/sandbox")
    group.limit(Limits(10, 0))
    task = tmp_path / "cgroup/system.slice/fairlead.service/fairlead/x/t1"
    (task / "cpu.stat").write_text(stat)

    group.free()

    # A plain file keeps what is not overwritten.
    assert content(task / "cpu.max") == expected


def test_version_2_kills_one_by_one_on_kernels_that_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = FakeTree("cgroup.kill")
    isolation = CgroupV2(a_host(tmp_path, tree), parent="", name="fairlead/x", tree=tree)
    group = isolation.create("t1", "/sandbox")
    task = tmp_path / "cgroup/system.slice/fairlead.service/fairlead/x/t1"
    tree.make(str(task / "made-by-the-task"))
    (task / "cgroup.procs").write_text("11\n12\n")
    (task / "made-by-the-task" / "cgroup.procs").write_text("13\n")
    killed: list[int] = []
    monkeypatch.setattr(cgroup_tree, "kill", killed.append)

    assert sorted(group.pids()) == [11, 12, 13]
    group.kill()

    assert sorted(killed) == [11, 12, 13]
    assert content(task / "pids.max").startswith("0")


def test_version_2_removes_what_the_task_made_below_and_gives_everything_back(tmp_path: Path) -> None:
    tree = FakeTree()
    isolation = CgroupV2(a_host(tmp_path, tree), parent="", name="fairlead/x", tree=tree)
    group = isolation.create("t1", "/sandbox")
    tree.make(str(tmp_path / "cgroup/system.slice/fairlead.service/fairlead/x/t1/made-by-the-task"))

    assert not isolation.close()
    assert group.remove()
    assert isolation.close()

    assert not (tmp_path / "cgroup/system.slice/fairlead.service/fairlead").exists()


def test_version_2_enters_and_goes_home(tmp_path: Path) -> None:
    tree = FakeTree()
    isolation = CgroupV2(a_host(tmp_path, tree), parent="", name="fairlead/x", tree=tree)
    group = isolation.create("t1", "/sandbox")
    own = tmp_path / "cgroup/system.slice/fairlead.service"
    (own / "cgroup.procs").write_text("")

    group.enter()
    group.leave()

    assert content(own / "fairlead/x/t1/cgroup.procs") == "0"
    assert content(own / "cgroup.procs") == "0"


def test_version_2_moves_agent_and_executor_aside_when_their_group_may_hold_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = FakeTree()
    places = a_host(tmp_path, tree)
    moved: list[str] = []
    write = cgroup_tree.write

    def kernel_write(path: str, value: str) -> None:
        if path == f"{places.unified}/cgroup.subtree_control" and not moved:
            raise OSError(errno.EBUSY, "Device or resource busy", path)
        if path == f"{places.unified}/fairlead-agent/cgroup.procs" and value != "0":
            moved.append(value)
        write(path, value)

    monkeypatch.setattr(cgroup_tree, "write", kernel_write)

    isolation = CgroupV2(places, parent="", name="fairlead/x", agent_pid=77, tree=tree)

    assert moved == [str(os.getpid()), "77"]
    isolation.go_home()
    assert content(Path(places.unified) / "fairlead-agent/cgroup.procs").startswith("0")


def test_version_2_started_from_its_own_home_works_beside_it(tmp_path: Path) -> None:
    tree = FakeTree()
    places = a_host(tmp_path, tree, own="a.service/fairlead-agent")

    isolation = CgroupV2(places, parent="", name="fairlead/x", tree=tree)

    assert isolation.directories == [str(tmp_path / "cgroup/a.service/fairlead/x")]


def test_version_2_works_in_the_parent_it_is_given(tmp_path: Path) -> None:
    tree = FakeTree()
    places = a_host(tmp_path, tree)
    tree.make(str(tmp_path / "cgroup/mine"))

    isolation = CgroupV2(places, parent="/mine/", name="fairlead/x", tree=tree)

    assert isolation.directories == [str(tmp_path / "cgroup/mine/fairlead/x")]


def test_version_2_without_its_controllers_says_which_are_missing(tmp_path: Path) -> None:
    tree = FakeTree()
    places = a_host(tmp_path, tree)
    (Path(places.unified) / "cgroup.controllers").write_text("cpuset pids\n")

    with pytest.raises(IsolationError, match=f"cgroup v2: cpu and memory not delegated to {places.unified}"):
        CgroupV2(places, parent="", name="fairlead/x", tree=tree)


def test_version_2_that_is_not_mounted_says_so() -> None:
    with pytest.raises(IsolationError, match="cgroup v2: not mounted"):
        CgroupV2(CgroupPlaces({}, "", {}), parent="", name="x")


@pytest.mark.parametrize(
    ("places", "complaint"),
    [
        ({"memory": "/m"}, "cgroup v1: the cpu hierarchy is not mounted"),
        ({"cpu": "/c"}, "cgroup v1: the memory hierarchy is not mounted"),
        (
            {"cpu": "/c", "memory": "/c"},
            "cgroup v1: expected hierarchies apart, got cpu, memory mounted together",
        ),
    ],
)
def test_version_1_that_cannot_work_says_why(places: dict[str, str], complaint: str) -> None:
    with pytest.raises(IsolationError, match=complaint):
        CgroupV1(CgroupPlaces(places, "", dict.fromkeys(places, "/")), parent="", name="x")


def test_version_1_that_may_not_be_written_says_where(tmp_path: Path) -> None:
    (tmp_path / "cpu").touch()  # nobody, root included, can make a group in a file
    places = CgroupPlaces({"cpu": f"{tmp_path}/cpu", "memory": f"{tmp_path}/memory"}, "", {})

    with pytest.raises(IsolationError, match=f"cgroup v1: {tmp_path}/cpu/x: Not a directory"):
        CgroupV1(places, parent="", name="x")


MOUNTS_V1 = """\
25 20 0:22 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
26 20 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
27 20 0:24 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
28 20 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
29 20 0:26 / /tmp rw - tmpfs tmpfs rw
"""
GROUPS_V1 = "4:cpu,cpuacct:/\n3:memory:/user.slice\n1:name=systemd:/init.scope\n0::/init.scope\n"


def test_places_of_a_host_with_both_versions() -> None:
    places = read_places(MOUNTS_V1, GROUPS_V1)

    assert places.by_controller["cpu"] == places.by_controller["cpuacct"] == "/sys/fs/cgroup/cpu,cpuacct"
    assert places.by_controller["memory"] == "/sys/fs/cgroup/memory/user.slice"
    assert places.unified == "/sys/fs/cgroup/unified/init.scope"
    assert places.roots["memory"] == "/sys/fs/cgroup/memory"
    assert places.roots[""] == "/sys/fs/cgroup/unified"


def test_places_in_a_container_that_sees_only_its_own_part() -> None:
    mounts = "30 20 0:23 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"

    places = read_places(mounts, "3:memory:/docker/abc/inner\n")
    elsewhere = read_places(mounts, "3:memory:/docker/abcdef\n")

    assert places.by_controller["memory"] == "/sys/fs/cgroup/memory/inner"
    assert elsewhere.by_controller["memory"] == "/sys/fs/cgroup/memory"
    assert places.unified == ""


def test_no_isolation_says_in_one_line_what_is_not_enforced_and_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(probe, "_places", lambda: CgroupPlaces({}, "", {}))

    isolation = probe.choose("auto", parent="", work_dir=str(tmp_path), agent_pid=0)

    assert isolation.name == "none"
    assert isolation.note == (
        "cpu and memory limits are not enforced "
        "(cgroup v2: not mounted; cgroup v1: the cpu hierarchy is not mounted)"
    )


def test_isolation_that_was_asked_for_is_not_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_places", lambda: CgroupPlaces({}, "", {}))

    with pytest.raises(IsolationError, match="cgroup v2: not mounted"):
        probe.choose("cgroup v2", parent="", work_dir="/w", agent_pid=0)


def a_share(tree: FakeTree, path: Path) -> Path:
    """Groups for two tasks."""
    for group in ("s1", "s2"):
        cgroup_tree.make_path(tree, str(path / group))
    return path


def test_executor_removes_shares_that_nobody_holds_and_nothing_runs_in(tmp_path: Path) -> None:
    tree = FakeTree()
    beside = tmp_path / "cgroup/system.slice/fairlead.service/fairlead"
    places = a_host(tmp_path, tree)
    a_share(tree, beside / "agent-00000001")
    held, running = a_share(tree, beside / "agent-00000002"), a_share(tree, beside / "agent-00000003")
    others = a_share(tree, beside / "0badcafe")
    (running / "s2/cgroup.procs").write_text("4711\n")
    holder = cgroup_shares.claim(tree, str(held))

    isolation = CgroupV2(places, parent="", name="fairlead/agent-00000004", tree=tree)

    assert sorted(path.name for path in beside.iterdir() if path.is_dir()) == sorted(
        [held.name, running.name, others.name, "agent-00000004"]
    )
    assert all((share / group).is_dir() for share in (held, running, others) for group in ("s1", "s2"))
    os.close(holder)
    isolation.close()


def test_share_is_held_until_its_executor_gives_it_back(tmp_path: Path) -> None:
    tree = FakeTree()
    isolation = CgroupV2(a_host(tmp_path, tree), parent="", name="fairlead/agent-00000001", tree=tree)
    other = f"{tmp_path}/cgroup/system.slice/fairlead.service/fairlead/agent-00000002"
    cgroup_tree.make_path(tree, other)

    cgroup_shares.remove_unowned(tree, other)
    was_there = Path(isolation.directories[0]).is_dir()
    isolation.create("t1", "/sandbox")
    isolation.close()
    cgroup_shares.remove_unowned(tree, other)

    assert was_there
    assert not Path(isolation.directories[0]).is_dir()


def test_share_that_is_removed_while_it_is_claimed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = FakeTree()
    share = f"{tmp_path}/agent-00000001"
    removals = [share]
    lock = fcntl.flock

    def remove_then_lock(descriptor: int, operation: int) -> None:
        if removals:
            tree.remove(removals.pop())
        lock(descriptor, operation)

    monkeypatch.setattr("fcntl.flock", remove_then_lock)

    descriptor = cgroup_shares.claim(tree, share)

    assert os.path.samestat(os.fstat(descriptor), Path(share).stat())
    os.close(descriptor)
