"""The agent may die, the executor may die: no task is run twice, no end is lost, nothing is left behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_agent.executor.cgroup_shares import share_name
from fairlead_agent.executor.client import ExecutorClient, ExecutorFailed, ExecutorOptions
from fairlead_agent.executor.journal import Recorded
from fairlead_agent.executor.marks import sandbox_of
from fairlead_agent.executor.processes import all_pids, is_running, kill_exactly, stat_of
from fairlead_agent.executor.protocol import Exited
from fairlead_agent.executor.recovery import boot_id, end_leftovers
from tests.agent.executor.conftest import Connect, executor_is_alive, key_of, until_gone

pytestmark = pytest.mark.shell


async def test_next_agent_finds_running_tasks_and_ends_it_missed(connect: Connect, isolation: str) -> None:
    first = await connect(isolation)
    running = await first.started(first.start("running", "sleep", "1000"))
    ending = await first.started(first.shell("ending", "while [ ! -e go ]; do sleep 0.01; done; exit 5"))
    await first.client.close()
    (first.sandbox("ending") / "go").touch()
    await until_gone(ending.pid)

    second = await connect(isolation)

    assert second.pid == first.pid
    assert second.client.hello.running[0] == running
    ended = await second.exited(ending.key) if not second.client.hello.ended else second.client.hello.ended[0]
    assert isinstance(ended, Exited)
    assert ended.exit_code == 5
    second.client.kill_all(running.key)
    assert (await second.exited(running.key)).signal == signal.SIGKILL


async def test_executor_survives_the_kill_of_the_agent_that_started_it(
    connect: Connect, tmp_path: Path
) -> None:
    script = f"""
import asyncio, os, signal
from pathlib import Path
from fairlead_agent.executor.client import ExecutorClient, ExecutorOptions
from fairlead_agent.executor.protocol import Start
async def main():
    client = await ExecutorClient.connect(Path({str(tmp_path)!r}), ExecutorOptions(isolation="none"))
    client.start(Start(("framework", "a"), {str(tmp_path / "s")!r}, ("sleep", "1000"), {{}}))
    async for batch in client.events():
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    result = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script], check=False)
    assert result.returncode == -signal.SIGKILL

    agent = await connect()

    assert [started.key for started in agent.client.hello.running] == [key_of("a")]
    assert is_running(agent.client.hello.running[0].pid)


async def test_forgotten_end_is_not_repeated(connect: Connect) -> None:
    first = await connect()
    kept, forgotten = first.start("kept", "true"), first.start("forgotten", "true")
    await first.exited(kept)
    await first.exited(forgotten)
    first.client.forget(forgotten)
    await first.client.close()

    second = await connect()

    assert [end.key for end in second.client.hello.ended] == [kept]


async def test_executor_that_is_killed_is_reported_lost_and_its_tasks_end_with_it(
    connect: Connect, isolation: str
) -> None:
    first = await connect(isolation)
    over = await first.exited(first.shell("over", "exit 9"))
    key = first.shell("a", "setsid -f sh -c 'echo $$; exec sleep 1000'; sleep 1000 & exec sleep 1000")
    main = (await first.started(key)).pid
    daemon = int(await first.output_of("a"))
    os.kill(first.pid, signal.SIGKILL)
    assert await first.lost() == "the executor is lost: it closed the connection"

    second = await connect(isolation)

    assert second.pid != first.pid
    assert not is_running(main)
    assert not is_running(daemon)
    hello = second.client.hello
    assert hello.running == ()
    ended = {end.key: end for end in hello.ended}
    assert ended[over.key] == over
    lost = ended[key]
    assert isinstance(lost, Exited)
    assert (lost.exit_code, lost.signal) == (None, None)
    assert (lost.usage.stdout_bytes, lost.usage.stderr_bytes) == (None, None), (
        "nobody knows, and it wrote a line"
    )
    assert lost.message == "the executor that ran it died, and what was left of it was killed"
    groups = [
        path
        for path, _, _ in os.walk("/sys/fs/cgroup")
        if path.endswith(f"{share_name(str(first.work_dir))}/t1")
    ]
    assert groups == []


async def test_new_executor_spares_a_process_that_only_has_the_number_of_an_old_task(
    connect: Connect, tmp_path: Path
) -> None:
    first = await connect()
    journal = tmp_path / "executor" / "journal"
    first.client.shutdown(kill_tasks=True)
    await first.lost()
    # As if the recorded main process had ended and its number had come to us.
    entry = ["start", ["framework", "a"], str(tmp_path / "s"), os.getpid(), 1]
    with journal.open("a") as file:
        file.write(json.dumps([entry]) + "\n")

    second = await connect()

    assert [end.key for end in second.client.hello.ended] == [key_of("a")]


async def test_tasks_recorded_before_a_reboot_are_reported_and_nothing_is_killed(
    connect: Connect, tmp_path: Path
) -> None:
    (tmp_path / "executor").mkdir()
    entries = [["executor", "another boot", []], ["start", ["framework", "a"], "/s", os.getpid(), 1]]
    (tmp_path / "executor" / "journal").write_text(json.dumps(entries) + "\n")

    agent = await connect()

    (end,) = agent.client.hello.ended
    assert end.message == "the host or container was restarted"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a namespace")
async def test_restart_of_a_container_is_a_boot_of_its_own() -> None:
    """A container's processes end with it, while the kernel and its boot id go on."""
    script = "from fairlead_agent.executor.recovery import boot_id; print(boot_id()); print(boot_id())"
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", script]

    runs = [await asyncio.to_thread(subprocess.check_output, command, text=True) for _ in range(2)]

    boots = [boot_id(), *(line for run in runs for line in run.split())]
    assert boots[1] == boots[2]
    assert boots[3] == boots[4]
    assert len(set(boots)) == 3


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a namespace")
async def test_groups_left_by_an_earlier_run_of_the_container_are_not_in_the_way(
    connect: Connect, isolation: str, tmp_path: Path
) -> None:
    if isolation == "none":
        pytest.skip("makes no groups")
    first = await connect(isolation)
    await first.started(first.start("a", "sleep", "1000"))
    os.kill(first.pid, signal.SIGKILL)
    await first.lost()
    journal = tmp_path / "executor" / "journal"
    journal.write_text(journal.read_text().replace(boot_id(), "an earlier run"))

    second = await connect(isolation)

    assert second.client.hello.isolation == isolation
    (end,) = second.client.hello.ended
    assert end.message == "the host or container was restarted"


async def test_unfinished_last_line_of_the_journal_is_dropped(connect: Connect, tmp_path: Path) -> None:
    first = await connect()
    over = await first.exited(first.start("a", "true"))
    os.kill(first.pid, signal.SIGKILL)
    await first.lost()
    with (tmp_path / "executor" / "journal").open("a") as file:
        file.write('[["forget", ["framework", ')

    second = await connect()

    assert second.client.hello.ended == (over,)


@pytest.mark.parametrize("content", [None, b"", b"rubbish without an end", b"rubbish\n"])
async def test_whatever_an_executor_left_is_ended_though_its_journal_is_lost(
    connect: Connect, isolation: str, tmp_path: Path, content: bytes | None
) -> None:
    first = await connect(isolation)
    hidden = "env -i setsid -f sh -c 'echo $$; exec /bin/sleep 1000'"
    key = first.shell("a", f"setsid -f sleep 1000; {hidden}; exec sleep 1000")
    pids = [(await first.started(key)).pid, int(await first.output_of("a"))]
    os.kill(first.pid, signal.SIGKILL)
    await first.lost()
    journal = tmp_path / "executor" / "journal"
    journal.unlink()
    if content is not None:
        journal.write_bytes(content)

    second = await connect(isolation)

    assert [pid for pid in pids if is_running(pid)] == []
    assert [pid for pid in all_pids() if sandbox_of(pid) == str(first.sandbox("a"))] == []
    assert (second.client.hello.running, second.client.hello.ended) == ((), ())
    assert (await second.exited(second.start("a", "true"))).exit_code == 0
    if content:
        assert (tmp_path / "executor" / "journal.damaged").read_bytes() == content
        assert (
            "journal:1: expected entries of an executor's journal"
            in (tmp_path / "executor" / "log").read_text()
        )


async def test_tasks_that_can_be_read_in_a_damaged_journal_are_reported(
    connect: Connect, tmp_path: Path
) -> None:
    first = await connect()
    over = await first.exited(first.shell("over", "exit 9"))
    key = first.start("a", "sleep", "1000")
    main = (await first.started(key)).pid
    os.kill(first.pid, signal.SIGKILL)
    await first.lost()
    journal = tmp_path / "executor" / "journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"rubbish\n", *lines[2:]]))

    second = await connect()

    assert not is_running(main)
    ended = {end.key: end for end in second.client.hello.ended}
    assert ended[over.key] == over
    lost = ended[key]
    assert isinstance(lost, Exited)
    assert lost.message == "the executor's journal was damaged, and what was left of the task was killed"


async def test_processes_of_other_work_directories_are_left_alone(connect: Connect, tmp_path: Path) -> None:
    other = await connect(work_dir=tmp_path / "work and more")
    key = other.start("a", "sleep", "1000")
    await other.started(key)
    environment = {"FAIRLEAD_SANDBOX": f"{tmp_path}/work and more/x"}
    bystander = await asyncio.create_subprocess_exec("sleep", "1000", env=environment)

    try:
        await connect(work_dir=tmp_path / "work")

        assert is_running((await other.started(key)).pid)
        assert is_running(bystander.pid)
    finally:
        bystander.kill()
        await bystander.wait()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")
async def test_sandbox_of_the_same_name_in_another_container_is_not_ours(
    connect: Connect, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    script = 'mount -t tmpfs none "$0" && echo mounted && exec sleep 1000'
    command = ["unshare", "--mount", "sh", "-c", script, str(work)]
    environment = {**os.environ, "FAIRLEAD_SANDBOX": f"{work}/sandboxes/f/t"}
    container = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert container.stdout is not None
        assert await container.stdout.readline() == b"mounted\n"

        await connect(work_dir=work)

        assert is_running(container.pid)
    finally:
        container.kill()
        await container.wait()


def a_sleeper(**environment: str) -> tuple["subprocess.Popen[bytes]", int]:
    """A process that nobody but the test knows, and when it was started."""
    process = subprocess.Popen(["sleep", "1000"], env=environment)
    stat = stat_of(process.pid)
    assert stat is not None
    return process, stat.start_ticks


@pytest.mark.parametrize("difference", [0, 1, -1])
def test_recorded_pid_is_ended_only_with_the_start_that_was_recorded(tmp_path: Path, difference: int) -> None:
    process, start_ticks = a_sleeper()
    recorded = Recorded(key_of("a"), str(tmp_path / "s"), process.pid, start_ticks + difference)
    try:
        end_leftovers([recorded], [], str(tmp_path))

        assert (process.poll() is None) == bool(difference)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(("difference", "signal_that_came"), [(0, signal.SIGKILL), (1, signal.SIGTERM)])
def test_kill_is_for_one_process_and_no_later_one_of_its_number(
    difference: int, signal_that_came: int
) -> None:
    process, start_ticks = a_sleeper()

    kill_exactly(process.pid, start_ticks + difference)
    process.terminate()  # a SIGKILL before it would have come first

    assert process.wait() == -signal_that_came


async def test_isolation_that_does_not_work_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ExecutorFailed, match=r"isolation: expected one of auto, .*, got 'jail'"):
        await ExecutorClient.connect(tmp_path, ExecutorOptions(isolation="jail"))


async def test_work_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ExecutorFailed, match="cannot start an executor in"):
        await ExecutorClient.connect(tmp_path / "file")


async def test_two_agents_at_once_share_one_executor(connect: Connect) -> None:
    agents = await asyncio.gather(connect(), connect())

    assert agents[0].pid == agents[1].pid


async def test_newer_agent_takes_over_from_an_older_one(connect: Connect) -> None:
    first = await connect()
    second = await connect()

    assert "closed the connection" in await first.lost()
    assert (await second.exited(second.start("a", "true"))).exit_code == 0


async def test_stuck_executor_is_reported_after_a_bounded_time(connect: Connect, tmp_path: Path) -> None:
    agent = await connect()
    os.kill(agent.pid, signal.SIGSTOP)

    try:
        with pytest.raises(ExecutorFailed, match=r"to answer on .*socket within 0.2 s, got nothing"):
            await ExecutorClient.connect(tmp_path, timeout_s=0.2)
    finally:
        os.kill(agent.pid, signal.SIGCONT)


async def test_work_directory_may_be_longer_than_a_socket_address(tmp_path: Path) -> None:
    work_dir = tmp_path / ("d" * 120)

    first = await ExecutorClient.connect(work_dir, ExecutorOptions(isolation="none"))
    await first.close()
    second = await ExecutorClient.connect(work_dir, ExecutorOptions(isolation="none"))

    assert second.hello.pid == first.hello.pid
    second.shutdown(kill_tasks=True)
    await second.close()


async def test_executor_alone_without_tasks_ends_by_itself(connect: Connect, tmp_path: Path) -> None:
    agent = await connect(alone_timeout_ms=1)

    await agent.client.close()

    await until_gone(agent.pid)
    assert not (tmp_path / "executor" / "socket").exists()


async def test_executor_alone_stays_for_its_tasks(connect: Connect, tmp_path: Path) -> None:
    agent = await connect(alone_timeout_ms=1)
    key = agent.shell("a", "echo x; while [ ! -e go ]; do sleep 0.01; done; exit 5")
    await agent.started(key)

    await agent.client.close()
    assert executor_is_alive(tmp_path)
    (agent.sandbox("a") / "go").touch()
    await until_gone(agent.pid)

    (end,) = (await connect()).client.hello.ended
    assert isinstance(end, Exited)
    assert (end.key, end.exit_code) == (key, 5)
    assert (end.usage.stdout_bytes, end.usage.stderr_bytes) == (2, 0), "the count is in the journal"


async def test_shutdown_without_killing_waits_for_the_tasks(connect: Connect) -> None:
    agent = await connect()
    key = agent.shell("a", "while [ ! -e go ]; do sleep 0.01; done; exit 5")
    await agent.started(key)

    agent.client.shutdown(kill_tasks=False)
    (agent.sandbox("a") / "go").touch()

    assert (await agent.exited(key)).exit_code == 5
    await agent.lost()


async def test_shutdown_kills_tasks_and_their_daemons(connect: Connect, isolation: str) -> None:
    agent = await connect(isolation)
    key = agent.shell("a", "setsid -f sh -c 'echo $$; exec sleep 1000'; exec sleep 1000")
    daemon = int(await agent.output_of("a"))

    agent.client.shutdown(kill_tasks=True)

    assert (await agent.exited(key)).signal == signal.SIGKILL
    await agent.lost()
    assert not is_running(daemon)


async def test_groups_of_a_killed_executor_are_removed_by_the_next_one_beside_it(
    connect: Connect, cgroup_v1: str, tmp_path: Path
) -> None:
    first = await connect(cgroup_v1)
    await first.exited(first.start("t1", "true"))
    name = share_name(str(first.work_dir))
    left = [group for group in groups_now() if f"{name}/" in group]
    os.kill(first.pid, signal.SIGKILL)
    await first.lost()

    second = await connect(cgroup_v1, work_dir=tmp_path / "another")

    assert left
    assert not [group for group in groups_now() if group.endswith(name) or f"{name}/" in group]
    key = second.start("t2", "true")
    assert (await second.exited(key)).exit_code == 0


def groups_now() -> list[str]:
    """Every group of this host."""
    return [path for path, _, _ in os.walk("/sys/fs/cgroup")]
