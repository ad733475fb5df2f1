"""Limits that hold, with real cgroups of version 1; skipped where these are not ours to write."""

import asyncio
import signal
from pathlib import Path

import pytest

from fairlead_agent.executor import cgroup_tree
from fairlead_agent.executor.isolation import PIDS_MAX
from fairlead_agent.executor.protocol import Exited
from tests.agent.executor.conftest import Agent, Connect

pytestmark = [pytest.mark.shell, pytest.mark.root]
MIB = 1 << 20


async def test_task_over_its_memory_is_killed_and_reported_with_limit_and_peak(
    connect: Connect, cgroup_v1: str
) -> None:
    agent = await connect(cgroup_v1)

    key = agent.start("a", "python3", "-c", "x = bytearray(300 << 20)", mem_bytes=64 * MIB)

    ended = await agent.exited(key)
    assert ended.out_of_memory
    assert ended.signal == signal.SIGKILL
    assert ended.usage.mem_limit_bytes == 64 * MIB
    assert 32 * MIB < ended.usage.mem_peak_bytes <= 64 * MIB
    assert ended.message == f"out of memory: limit {64 * MIB} bytes, peak {ended.usage.mem_peak_bytes} bytes"


async def test_task_whose_child_ran_out_of_memory_is_out_of_memory(connect: Connect, cgroup_v1: str) -> None:
    agent = await connect(cgroup_v1)

    key = agent.shell("a", "python3 -c 'x = bytearray(300 << 20)'", mem_bytes=64 * MIB)

    ended = await agent.exited(key)
    assert (ended.out_of_memory, ended.exit_code) == (True, 128 + signal.SIGKILL)


async def test_task_that_goes_on_after_a_memory_kill_is_ended_when_it_is_measured(
    connect: Connect, cgroup_v1: str
) -> None:
    agent = await connect(cgroup_v1)
    script = "python3 -c 'x = bytearray(300 << 20)'; echo $?; exec sleep 1000"
    key = agent.shell("a", script, mem_bytes=64 * MIB)
    assert await agent.output_of("a") == "137\n"

    agent.client.measure_usage()

    ended = await agent.exited(key)
    assert (ended.out_of_memory, ended.signal) == (True, signal.SIGKILL)


async def test_limit_too_small_for_any_program_harms_only_its_task(connect: Connect, cgroup_v1: str) -> None:
    agent = await connect(cgroup_v1)

    starved = [agent.start(f"t{number}", "sleep", "1000", mem_bytes=4096) for number in range(5)]
    fed = agent.start("fed", "true", mem_bytes=64 * MIB)

    assert [(await agent.exited(key)).out_of_memory for key in starved] == [True] * 5
    assert (await agent.exited(fed)).exit_code == 0


async def test_task_within_its_memory_is_not_out_of_memory(connect: Connect, cgroup_v1: str) -> None:
    agent = await connect(cgroup_v1)

    key = agent.start(
        "a", "python3", "-c", "x = bytearray(20 << 20); raise SystemExit(1)", mem_bytes=256 * MIB
    )

    ended = await agent.exited(key)
    assert (ended.out_of_memory, ended.exit_code) == (False, 1)
    assert 20 * MIB < ended.usage.mem_peak_bytes < 256 * MIB


async def test_cpu_quota_holds(connect: Connect, cgroup_v1: str) -> None:
    """Counted in CPU time against each other, for the wall clock says nothing on a busy host."""
    agent = await connect(cgroup_v1)
    small = agent.shell("small", "while :; do :; done", cpus_milli=100)
    large = agent.shell("large", "while :; do :; done", cpus_milli=400)
    await agent.started(small)
    await agent.started(large)

    in_large = 0
    while in_large < 600:
        await asyncio.sleep(0.05)
        in_large = (await agent.usage(large)).cpu_time_ms
    in_small = (await agent.usage(small)).cpu_time_ms

    assert 0 < in_small < in_large / 2


async def test_quota_of_an_earlier_task_does_not_hold_for_the_next(connect: Connect, cgroup_v1: str) -> None:
    agent = await connect(cgroup_v1)
    await agent.exited(agent.start("a", "true", cpus_milli=50))

    key = agent.shell(
        "b", "cat $(cut -d: -f2,3 /proc/self/cgroup | sed -n 's,^cpu:,/sys/fs/cgroup/cpu,p')/cpu.cfs_quota_us"
    )

    assert (await agent.exited(key)).exit_code == 0
    assert agent.output("b") == "-1\n"


async def test_cpu_time_of_earlier_tasks_is_not_charged_to_the_next(connect: Connect, cgroup_v1: str) -> None:
    agent = await connect(cgroup_v1)
    for number in range(60):
        await agent.exited(agent.start(f"a{number}", "true", cpus_milli=100))

    key = agent.shell(
        "b",
        "cat $(cut -d: -f2,3 /proc/self/cgroup | sed -n 's,^cpu:,/sys/fs/cgroup/cpu,p')/cpu.stat",
        cpus_milli=100,
    )

    # Sixty short tasks use more than the 10 ms of one period, none of them does.
    assert (await agent.exited(key)).exit_code == 0
    assert "nr_throttled 0\n" in agent.output("b")


async def test_first_instruction_of_a_task_is_inside_its_group(connect: Connect, cgroup_v1: str) -> None:
    agent = await connect(cgroup_v1)

    key = agent.start("a", "cat", "/proc/self/cgroup")

    await agent.exited(key)
    groups = {line.split(":")[1]: line.split(":")[2] for line in agent.output("a").splitlines()}
    assert "/fairlead/" in groups["memory"]
    assert "/fairlead/" in groups["cpu"]
    own = Path(f"/proc/{agent.pid}/cgroup").read_text()
    assert "/fairlead/" not in own
    assert own == Path("/proc/self/cgroup").read_text()


async def test_fork_bomb_is_bounded_and_can_be_killed(connect: Connect, cgroup_v1: str) -> None:
    agent = await connect(cgroup_v1)
    # Each child forks on; a thousand are enough to show that killing is faster than forking.
    bomb = "import os, time\nfor _ in range(10): os.fork()\nos.write(1, b'x\\n')\nwhile True:\n try: os.fork()\n except OSError: time.sleep(1000)"
    key = agent.start("a", "python3", "-I", "-S", "-c", bomb)
    pid = (await agent.started(key)).pid
    await agent.output_of("a")
    limit = next(
        Path(f"/sys/fs/cgroup/pids{line.split(':')[2]}/pids.max").read_text()
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        if line.split(":")[1] == "pids"
    )

    agent.client.kill_all(key)

    assert (await agent.exited(key)).signal == signal.SIGKILL
    assert limit == f"{PIDS_MAX}\n"
    assert not Path(f"/proc/{pid}").exists()


async def test_a_task_after_one_that_was_killed_hard_can_start(connect: Connect, cgroup_v1: str) -> None:
    """Groups are used again, and a hard kill forbids new processes in them."""
    agent = await connect(cgroup_v1)
    first = agent.shell("a", "trap '' TERM; sleep 1000")
    await agent.started(first)
    agent.client.kill_all(first)
    await agent.exited(first)
    agent.client.forget(first)

    ended = await agent.exited(agent.start("b", "true"))

    assert ended.exit_code == 0


async def test_what_is_killed_need_not_work_off_the_cpu_time_it_owes(
    connect: Connect, cgroup_v1: str
) -> None:
    """Each process ends in CPU time of its own: two hundred in 0.01 CPUs took some ten seconds."""
    agent = await connect(cgroup_v1)
    script = "for i in $(seq 200); do sleep 1000 & done; echo x; wait"
    key = agent.shell("a", script, cpus_milli=1000)
    pid = (await agent.started(key)).pid
    await agent.output_of("a")
    group = next(
        line.split(":")[2]
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        if "cpu" in line.split(":")[1].split(",")
    )
    Path(f"/sys/fs/cgroup/cpu{group}/cpu.cfs_quota_us").write_text("1000")
    periods = Path(f"/sys/fs/cgroup/cpu{group}/cpu.stat")
    before = cgroup_tree.read_field(str(periods), "nr_throttled")

    agent.client.kill_all(key)

    await agent.exited(key)
    assert cgroup_tree.read_field(str(periods), "nr_throttled") - before < 20


async def test_a_child_killed_for_memory_is_mentioned_though_the_task_went_on_well(
    connect: Connect, cgroup_v1: str
) -> None:
    agent = await connect(cgroup_v1)

    key = agent.shell("a", "python3 -c 'x = bytearray(300 << 20)'; exit 0", mem_bytes=64 * MIB)

    ended = await agent.exited(key)
    assert (ended.exit_code, ended.out_of_memory) == (0, False)
    assert ended.message == f"1 of its processes killed by the kernel at its memory limit of {64 * MIB} bytes"


PLACE = "grep :memory: /proc/self/cgroup | cut -d: -f3"
FILE_OF_GROUP = f"/sys/fs/cgroup/memory$({PLACE})"


async def group_of(
    agent: Agent, name: str, script: str = "true", *, mem_bytes: int = 0
) -> tuple[str, Exited]:
    """Run a script as a task to its end, and give the group that it was in and how it ended."""
    key = agent.shell(name, f"{PLACE}; {script}", mem_bytes=mem_bytes)
    ended = await agent.exited(key)
    agent.client.forget(key)
    return agent.output(name).split()[0], ended


async def test_groups_are_used_again_and_what_tasks_leave_is_not_the_next_ones(
    connect: Connect, cgroup_v1: str
) -> None:
    agent = await connect(cgroup_v1)

    tasks = [await group_of(agent, f"a{number}", mem_bytes=64 * MIB) for number in range(40)]

    assert len({group for group, _ in tasks}) < 20
    # Each leaves some 60 KiB of kernel memory, which nobody can take back.
    first, *_, last = [ended.usage.mem_peak_bytes for _, ended in tasks]
    assert last < first + MIB // 2
    assert {ended.usage.mem_limit_bytes for _, ended in tasks} == {64 * MIB}


async def test_use_of_a_task_is_not_that_of_the_one_before_in_its_group(
    connect: Connect, cgroup_v1: str
) -> None:
    agent = await connect(cgroup_v1)
    work = (
        "head -c 32M /dev/zero | tail -c 32M > /dev/null; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
    )

    busy_in, busy = await group_of(agent, "a", work, mem_bytes=256 * MIB)
    idle_in, idle = await group_of(agent, "b", mem_bytes=256 * MIB)

    assert idle_in == busy_in
    assert busy.usage.mem_peak_bytes > 32 * MIB > 8 * MIB > idle.usage.mem_peak_bytes
    assert busy.usage.cpu_time_ms > 4 * idle.usage.cpu_time_ms


async def test_no_more_groups_are_kept_than_a_burst_of_short_tasks_needs(
    connect: Connect, cgroup_v1: str, tmp_path: Path
) -> None:
    agent = await connect(cgroup_v1)
    gate = tmp_path / "gate"
    keys = [agent.shell(f"t{n}", f"until [ -e {gate} ]; do sleep 0.1; done") for n in range(80)]
    for key in keys:
        await agent.started(key)

    gate.touch()
    for key in keys:
        await agent.exited(key)
        agent.client.forget(key)
    inside, _ = await group_of(agent, "last")

    kept = [path for path in Path(f"/sys/fs/cgroup/memory{inside}").parent.iterdir() if path.is_dir()]
    assert len(kept) <= 65, "64, and that of a task that is not forgotten"


async def test_group_that_much_is_left_in_is_not_used_again(connect: Connect, cgroup_v1: str) -> None:
    agent = await connect(cgroup_v1)

    full, _ = await group_of(agent, "a", "head -c 8000000 /dev/zero > cache", mem_bytes=256 * MIB)
    next_one, ended = await group_of(agent, "b", mem_bytes=256 * MIB)

    assert next_one != full
    assert ended.usage.mem_peak_bytes < 4 * MIB
    assert not Path(f"/sys/fs/cgroup/memory{full}").exists()


async def test_group_with_groups_of_its_task_below_is_not_used_again(
    connect: Connect, cgroup_v1: str
) -> None:
    agent = await connect(cgroup_v1)

    parent, _ = await group_of(agent, "a", f"mkdir {FILE_OF_GROUP}/inner")
    next_one, _ = await group_of(agent, "b")

    assert next_one != parent
    assert not Path(f"/sys/fs/cgroup/memory{parent}").exists()


async def test_task_after_one_that_ran_out_of_memory_has_not(connect: Connect, cgroup_v1: str) -> None:
    agent = await connect(cgroup_v1)

    await group_of(agent, "a", "python3 -c 'x = bytearray(300 << 20)'; true", mem_bytes=64 * MIB)
    _, ended = await group_of(agent, "b", "exit 1", mem_bytes=64 * MIB)

    assert (ended.exit_code, ended.out_of_memory, ended.message) == (1, False, "")


async def test_memory_limit_of_an_earlier_task_does_not_hold_for_the_next(
    connect: Connect, cgroup_v1: str
) -> None:
    agent = await connect(cgroup_v1)
    first, _ = await group_of(agent, "a", mem_bytes=32 * MIB)

    second, ended = await group_of(agent, "b", f"cat {FILE_OF_GROUP}/memory.limit_in_bytes")

    assert first == second
    assert (ended.exit_code, ended.usage.mem_limit_bytes) == (0, 0)
    assert int(agent.output("b").split()[1]) > 1 << 50
