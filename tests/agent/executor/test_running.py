"""Tasks as real processes: how they start, what they get, and that nothing of them is left."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_agent.executor.cgroup_shares import share_name
from fairlead_agent.executor.processes import all_pids, is_running
from fairlead_agent.executor.protocol import Started
from tests.agent.executor.conftest import Connect, key_of, until_gone

pytestmark = pytest.mark.shell

STARTS_OF_MANY_TURNS = 400
"""More than an executor starts before it looks again at what else there is."""


async def test_exit_code_is_reported(connect: Connect, isolation: str) -> None:
    agent = await connect(isolation)

    key = agent.shell("a", "exit 7")

    ended = await agent.exited(key)
    assert (ended.exit_code, ended.signal, ended.out_of_memory, ended.message) == (7, None, False, "")


async def test_signal_that_ended_it_is_reported(connect: Connect, isolation: str) -> None:
    agent = await connect(isolation)

    key = agent.shell("a", "kill -SEGV $$")

    ended = await agent.exited(key)
    assert (ended.exit_code, ended.signal) == (None, signal.SIGSEGV)


async def test_task_is_told_who_and_where_it_is_and_nothing_else(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_AGENT", "x")
    agent = await connect(path="/usr/bin:/bin")

    key = agent.start(
        "a", "env", environment={"GREETING": "hello", "HOME": "/nowhere"}, cpus_milli=1500, mem_bytes=1 << 30
    )

    await agent.exited(key)
    sandbox = str(agent.sandbox("a"))
    assert dict(line.split("=", 1) for line in agent.output("a").splitlines()) == {
        "GREETING": "hello",
        "HOME": "/nowhere",
        "PATH": "/usr/bin:/bin",
        "TMPDIR": sandbox,
        "PWD": sandbox,
        "FAIRLEAD_TASK_ID": "a",
        "FAIRLEAD_FRAMEWORK_ID": "framework",
        "FAIRLEAD_SANDBOX": sandbox,
        "FAIRLEAD_CPUS": "1.5",
        "FAIRLEAD_MEM_BYTES": str(1 << 30),
    }


async def test_working_directory_is_relative_to_the_sandbox_or_absolute(
    connect: Connect, tmp_path: Path
) -> None:
    agent = await connect()
    (agent.sandbox("a") / "inside").mkdir(parents=True)

    relative = agent.start("a", "pwd", working_directory="inside")
    absolute = agent.start("b", "pwd", working_directory=str(tmp_path))

    await agent.exited(relative)
    await agent.exited(absolute)
    assert agent.output("a").strip() == str(agent.sandbox("a") / "inside")
    assert agent.output("b").strip() == str(tmp_path)


async def test_task_without_files_has_no_sandbox_and_prints_to_nowhere(
    connect: Connect, isolation: str, tmp_path: Path
) -> None:
    agent = await connect(isolation)
    said = tmp_path / "said"
    script = f"echo lost; echo lost >&2; {{ pwd; env; ls -l /proc/self/fd; }} > {said}; exit 3"

    ended = await agent.exited(agent.shell("a", script, log_bytes_max=0))

    usage = ended.usage
    assert (ended.exit_code, ended.message) == (3, "")
    assert (usage.sandbox_bytes, usage.stdout_bytes, usage.stderr_bytes) == (0, 0, 0)
    assert not agent.sandbox("a").parent.exists()
    lines = said.read_text().splitlines()
    assert lines[0] == "/"
    assert "HOME=/" in lines
    assert not [line for line in lines if line.startswith("TMPDIR=")]
    assert [line.split()[-3:] for line in lines if line.endswith("/dev/null")] == [
        ["0", "->", "/dev/null"],
        ["2", "->", "/dev/null"],
    ]


async def test_more_tasks_run_at_once_than_a_limit_on_descriptors_of_theirs_would_let(
    connect: Connect, isolation: str
) -> None:
    """The usual limit of 1,024 ended at some five hundred tasks."""
    own = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, own[1]))
    try:
        agent = await connect(isolation)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, own)

    keys = [agent.shell(f"t{number}", "ulimit -n; exec sleep 1000") for number in range(60)]
    last = agent.shell("last", "ulimit -n; ulimit -n >&2")
    for key in keys:
        await agent.started(key)

    assert (await agent.exited(last)).exit_code == 0
    assert (agent.output("last"), await agent.output_of("last", "stderr")) == ("128\n", "128\n")


async def test_task_without_files_starts_in_the_directory_it_names(connect: Connect, tmp_path: Path) -> None:
    agent = await connect()

    ended = await agent.exited(
        agent.shell("a", "pwd > here", log_bytes_max=0, working_directory=str(tmp_path))
    )

    assert ended.exit_code == 0
    assert (tmp_path / "here").read_text() == f"{tmp_path}\n"


async def test_program_with_a_slash_is_found_from_the_working_directory(connect: Connect) -> None:
    agent = await connect()
    program = agent.sandbox("a") / "run.sh"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho here\n")
    program.chmod(0o755)

    await agent.exited(agent.start("a", "./run.sh"))

    assert agent.output("a") == "here\n"


async def test_stdin_is_empty_and_signals_are_as_a_program_expects_them(connect: Connect) -> None:
    agent = await connect()

    key = agent.shell("a", "cat; readlink /proc/self/fd/0; grep -E 'SigIgn|SigBlk' /proc/self/status")

    await agent.exited(key)
    stdin, _, blocked, _, ignored = agent.output("a").split()
    assert stdin == "/dev/null"
    assert int(blocked, 16) == 0
    # The C library itself leaves its two internal signals, 32 and 33, ignored.
    assert int(ignored, 16) & ~(0b11 << 31) == 0


async def test_task_inherits_no_descriptor_of_the_executor(connect: Connect) -> None:
    agent = await connect()
    await agent.started(agent.start("other", "sleep", "1000"))

    key = agent.start("a", "python3", "-I", "-S", "-c", "import os; print(os.listdir('/proc/self/fd'))")

    await agent.exited(key)
    # 3 is what the listing itself is read through.
    assert agent.output("a") == "['0', '1', '2', '3']\n"


async def test_output_may_be_any_bytes(connect: Connect) -> None:
    agent = await connect()

    key = agent.shell("a", r"printf '\000\377\303\244'; printf 'sch\303\266n' >&2")
    named = agent.start("b", "printf", "%s", "schön ☃")

    await agent.exited(key)
    await agent.exited(named)
    assert (agent.sandbox("a") / "stdout").read_bytes() == b"\x00\xff\xc3\xa4"
    assert (agent.sandbox("a") / "stderr").read_bytes() == "schön".encode()
    assert agent.output("b") == "schön ☃"


async def test_task_without_output_makes_no_files(connect: Connect) -> None:
    agent = await connect()

    ended = await agent.exited(agent.start("a", "true"))

    assert list(agent.sandbox("a").iterdir()) == []
    assert (ended.usage.sandbox_bytes, ended.usage.stdout_bytes, ended.usage.stderr_bytes) == (0, 0, 0)


async def test_what_children_write_until_they_are_killed_is_counted(connect: Connect) -> None:
    agent = await connect()

    ended = await agent.exited(agent.shell("a", "while :; do echo late; done & sleep 0.1"))

    size = (agent.sandbox("a") / "stdout").stat().st_size
    assert size > 0
    assert (ended.usage.stdout_bytes, ended.usage.stderr_bytes) == (size, 0)


async def test_daemon_in_the_tasks_session_does_not_outlive_it(connect: Connect, isolation: str) -> None:
    agent = await connect(isolation)

    key = agent.shell("a", "sleep 1000 & echo $!; exit 3")

    assert (await agent.exited(key)).exit_code == 3
    assert not is_running(int(agent.output("a")))


async def test_daemon_in_its_own_session_does_not_outlive_its_task(connect: Connect, isolation: str) -> None:
    agent = await connect(isolation)

    key = agent.shell(
        "a", "setsid sh -c 'setsid sh -c \"echo \\$\\$; exec sleep 1000\" & exit' ; sleep 0.1; exit 3"
    )

    assert (await agent.exited(key)).exit_code == 3
    assert not is_running(int(agent.output("a")))


async def test_daemon_that_hides_its_environment_goes_with_the_last_task_it_may_be_of(
    connect: Connect, isolation: str
) -> None:
    agent = await connect(isolation)

    hidden = "env -i setsid -f sh -c 'echo $$; exec /bin/sleep 1000'"
    first = agent.shell("a", f"{hidden}; while [ ! -s stdout ]; do sleep 0.01; done")
    await agent.exited(first)

    await until_gone(int(agent.output("a")))


async def test_daemon_without_session_and_environment_ends_with_its_task_and_not_with_those_beside_it(
    connect: Connect, isolation: str
) -> None:
    agent = await connect(isolation)
    neighbour = await agent.started(agent.start("neighbour", "sleep", "1000"))
    hidden = "env -i setsid -f sh -c 'echo $$; cd /; exec /bin/sleep 1000'"
    key = agent.shell("a", f"setsid -f {hidden}; while [ ! -s stdout ]; do sleep 0.01; done")

    await agent.exited(key)

    assert not is_running(int(agent.output("a")))
    assert is_running(neighbour.pid)


async def test_daemon_without_any_mark_ends_with_the_last_task_beside_it(connect: Connect) -> None:
    agent = await connect()
    neighbour = agent.start("neighbour", "sleep", "1000")
    await agent.started(neighbour)
    script = "import os, resource; resource.setrlimit(resource.RLIMIT_RTTIME, (-1, -1)); "
    script += "os.write(1, b'%d\\n' % os.getpid()); os.execv('/bin/sleep', ['sleep', '1000'])"
    hidden = f'env -i setsid -f {sys.executable} -I -S -c "{script}"'
    key = agent.shell("a", f"setsid -f {hidden}; while [ ! -s stdout ]; do sleep 0.01; done")
    await agent.exited(key)
    later = agent.start("later", "sleep", "1000")
    await agent.started(later)
    daemon = int(agent.output("a"))
    assert is_running(daemon)

    agent.client.kill_all(neighbour)
    await agent.exited(neighbour)

    assert not is_running(daemon)


async def test_daemon_that_never_stops_forking_ends_with_its_task(connect: Connect, isolation: str) -> None:
    """Each of its processes has lost its parent, lives for a moment, and leaves another one behind."""
    agent = await connect(isolation)
    neighbour = await agent.started(agent.start("neighbour", "sleep", "1000"))
    script = "import os, sys\nos.write(1, b'ready\\n')\nwhile True:\n    os.fork() and os._exit(0)\n    os.setsid()"
    hidden = f'env -i setsid -f {sys.executable} -I -S -c "{script}" {agent.work_dir}/restless'
    key = agent.shell("a", f"{hidden}; while [ ! -s stdout ]; do sleep 0.01; done; exit 3")

    ended = await agent.exited(key)

    assert (ended.exit_code, ended.message) == (3, "")
    assert processes_named(f"{agent.work_dir}/restless") == []
    assert is_running(neighbour.pid)


def processes_named(argument: str) -> list[int]:
    return [pid for pid in all_pids() if os.fsencode(argument) in command_line_of(pid).split(b"\0")]


def command_line_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


AS_A_REAPER = """
import ctypes, os, subprocess, sys
from fairlead_agent.executor.no_isolation import NoIsolation
from fairlead_agent.executor.processes import children_of, stat_of
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
isolation = NoIsolation("", sys.argv[1])
def make_orphan(script):
    subprocess.run(["env", "-i", "setsid", "-f", "sh", "-c", script], check=True)
    (orphan,) = children_of(os.getpid())
    return orphan
"""


async def run_as_a_reaper(script: str, work_dir: Path) -> None:
    """Run in a process of its own, which the test may make the parent of orphans; the script raises if it fails."""
    command = [sys.executable, "-c", AS_A_REAPER + script, str(work_dir)]
    result = await asyncio.to_thread(
        subprocess.run, command, check=False, capture_output=True, timeout=30, text=True
    )
    assert (result.returncode, result.stderr) == (0, "")


async def test_orphan_that_nobody_owns_is_ended_with_its_children(tmp_path: Path) -> None:
    script = """
orphan = make_orphan("sleep 1000 & exec sleep 1000")
while not children_of(orphan):
    pass
isolation.refresh()
os.waitpid(orphan, 0)
os.wait()
"""
    await run_as_a_reaper(script, tmp_path)


async def test_orphan_that_could_be_of_two_tasks_is_ended_with_the_later(tmp_path: Path) -> None:
    script = """
orphan = make_orphan("exec sleep 1000")
first, second = isolation.create("a", "/a"), isolation.create("b", "/b")
isolation.refresh()
assert (first.pids(), second.pids()) == ([], [])
first.remove()
isolation.refresh()
assert second.pids() == [orphan]
isolation.create("c", "/c")
isolation.refresh()
assert second.pids() == [orphan]
second.remove()
isolation.refresh()
os.waitpid(orphan, 0)
"""
    await run_as_a_reaper(script, tmp_path)


async def test_task_is_not_over_while_one_of_its_processes_is_a_zombie(tmp_path: Path) -> None:
    """What it left when it died may not have been in the list yet: only a list without it says that nothing is left."""
    script = """
group = isolation.create("a", "/a")
group.enter()
orphan = make_orphan("exit")
group.leave()
while stat_of(orphan).state != "Z":
    pass
isolation.refresh()
assert group.pids() == [orphan]
os.waitpid(orphan, 0)
isolation.refresh()
assert group.pids() == []
"""
    await run_as_a_reaper(script, tmp_path)


async def test_daemon_of_one_task_survives_the_end_of_another(connect: Connect, isolation: str) -> None:
    agent = await connect(isolation)
    keeper = agent.shell("keeper", "setsid -f sh -c 'echo $$; exec sleep 1000'; exec sleep 1000")
    daemon = int(await agent.output_of("keeper"))

    await agent.exited(agent.start("other", "true"))

    assert is_running(daemon)
    agent.client.kill_all(keeper)
    await agent.exited(keeper)
    assert not is_running(daemon)


async def test_task_that_ignores_sigterm_is_killed_with_all_it_started(
    connect: Connect, isolation: str
) -> None:
    agent = await connect(isolation)
    child_script = "sh -c 'echo $$; exec sleep 1000' &"
    key = agent.shell(
        "a", f"trap 'echo no >&2' TERM; setsid -f sleep 1000; {child_script} while :; do wait; done"
    )
    child = int(await agent.output_of("a"))

    agent.client.signal(key, signal.SIGTERM)
    await until_gone(child)  # the signal went to the whole process group; the shell has stayed
    assert await agent.output_of("a", "stderr") == "no\n"
    assert (await agent.usage(key)).cpu_time_ms >= 0
    agent.client.kill_all(key)

    ended = await agent.exited(key)
    assert (ended.exit_code, ended.signal) == (None, signal.SIGKILL)


async def test_orders_for_unknown_tasks_and_unknown_signals_change_nothing(connect: Connect) -> None:
    agent = await connect()
    key = agent.start("a", "sleep", "1000")
    await agent.started(key)

    agent.client.signal(key_of("nobody"), signal.SIGTERM)
    agent.client.kill_all(key_of("nobody"))
    agent.client.forget(key_of("nobody"))
    agent.client.forget(key)
    agent.client.signal(key, 12345)

    assert (await agent.usage(key)).sandbox_bytes == 0


@pytest.mark.parametrize("order", ["signal", "kill"])
async def test_task_ended_while_its_start_waits_behind_others_is_not_started(
    connect: Connect, order: str
) -> None:
    """An agent may launch ten thousand tasks at once, which takes their executor half a minute."""
    agent = await connect()
    keys = [agent.shell(f"t{number}", "touch ran; sleep 1000") for number in range(STARTS_OF_MANY_TURNS)]

    for key in keys:
        if order == "signal":
            agent.client.signal(key, signal.SIGTERM)
        else:
            agent.client.kill_all(key)

    last = await agent.failed(keys[-1])
    assert last.message == "ended before it was started"
    assert not agent.sandbox(keys[-1][1]).exists()
    agent.client.forget(keys[-1])
    agent.seen.clear()
    agent.shell("later", "exit 3")
    assert (await agent.exited(key_of("later"))).exit_code == 3, "others are started as before"


@pytest.mark.parametrize("is_asked_by_the_agent", [True, False])
async def test_executor_that_is_told_to_end_starts_nothing_any_more(
    connect: Connect, is_asked_by_the_agent: bool
) -> None:
    agent = await connect()
    keys = [agent.shell(f"t{number}", "sleep 1000") for number in range(STARTS_OF_MANY_TURNS)]
    await agent.started(keys[0])

    if is_asked_by_the_agent:
        agent.client.shutdown(kill_tasks=True)
    else:
        os.kill(agent.pid, signal.SIGTERM)

    await agent.lost()
    started = {event.key for event in agent.seen if isinstance(event, Started)}
    assert keys[-1] not in started
    assert not agent.sandbox(keys[-1][1]).exists()


async def test_second_start_of_a_task_answers_where_it_is_and_runs_nothing(connect: Connect) -> None:
    agent = await connect()
    key = agent.shell("a", "echo once >> runs; echo ready; exec sleep 1000")
    await agent.output_of("a")
    first = await agent.started(key)
    agent.seen.clear()

    agent.start("a", "sh", "-c", "echo twice >> runs")

    assert await agent.started(key) == first
    agent.client.kill_all(key)
    ended = await agent.exited(key)
    agent.seen.clear()
    agent.start("a", "sh", "-c", "echo thrice >> runs")
    assert await agent.exited(key) == ended
    assert (agent.sandbox("a") / "runs").read_text() == "once\n"


async def test_usage_of_a_running_task_counts_its_children(connect: Connect, isolation: str) -> None:
    agent = await connect(isolation)
    script = "x = bytearray(40 << 20); import os, time; os.write(1, b'ready\\n'); time.sleep(1000)"
    key = agent.shell("a", f'python3 -c "{script}"; true')
    await agent.output_of("a")

    usage = await agent.usage(key)

    assert 40 << 20 <= usage.mem_bytes <= usage.mem_peak_bytes < 400 << 20
    assert usage.cpu_time_ms > 0
    assert usage.sandbox_bytes == len("ready\n")
    assert usage.mem_limit_bytes == 0


async def test_cpu_time_of_a_task_that_is_over_counts_its_children(connect: Connect, isolation: str) -> None:
    agent = await connect(isolation)

    key = agent.shell("a", "python3 -c 'import time\nwhile time.process_time() < 0.2: pass'; true")

    assert 200 <= (await agent.exited(key)).usage.cpu_time_ms < 5_000


async def test_many_short_tasks_leave_no_zombie_descriptor_or_cgroup(
    connect: Connect, isolation: str
) -> None:
    agent = await connect(isolation)
    await agent.exited(agent.start("warm-up", "true"))
    descriptors = set(Path(f"/proc/{agent.pid}/fd").iterdir())

    keys = [agent.shell(f"t{number}", "echo x") for number in range(500)]
    for key in keys:
        await agent.exited(key)
        agent.client.forget(key)

    # A later start and its answer: by then everything before is done.
    last = agent.start("last", "sleep", "1000")
    await agent.started(last)
    children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    assert len(children) == 1
    # The last task's pipes, and for cgroup v1 eight files of each of at most 64 kept groups.
    kept = 8 * 64 if isolation == "cgroup v1" else 0
    assert len(set(Path(f"/proc/{agent.pid}/fd").iterdir()) - descriptors) <= 2 + kept
    agent.client.shutdown(kill_tasks=True)
    await agent.lost()
    assert leftover_groups(agent.work_dir) == []


def leftover_groups(work_dir: Path) -> list[str]:
    name = share_name(str(work_dir))
    return [path for path, _, _ in os.walk("/sys/fs/cgroup") if f"/{name}" in path]
