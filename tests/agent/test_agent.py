"""A whole agent: real gRPC on loopback, a real executor, real processes."""

import asyncio
import contextlib
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from fairlead_agent.agent import Agent, Outcome
from fairlead_agent.config import AgentOptions
from fairlead_agent.executor.processes import is_running
from fairlead_proto.task_state import Reason
from fairlead_proto.tasks import TaskSpec
from fairlead_proto.v1 import agent_pb2
from tests.agent.builders import a_spec
from tests.agent.executor.conftest import until_gone
from tests.agent.fake_master import FakeMaster

pytestmark = pytest.mark.shell

LOG = structlog.get_logger()


def a_command(task: str, *argv: str, **fields: Any) -> TaskSpec:
    return a_spec(task, command=argv, resources=(100, 64 * 1024**2, 0, 0), **fields)


def a_script(task: str, script: str, **fields: Any) -> TaskSpec:
    return a_command(task, "sh", "-c", script, **fields)


@contextlib.asynccontextmanager
async def an_agent(master: FakeMaster, work_dir: Path, **fields: Any) -> AsyncIterator[Agent]:
    """An agent in this process that knows it is registered; it and all it started are gone afterwards."""
    told = fields.pop("on_registered", None)
    is_registered = asyncio.Event()

    def tell(agent_id: str) -> None:
        is_registered.set()
        if told is not None:
            told(agent_id)

    given = {"resources": "cpus=4,mem=4GiB", "isolation": "none", "stop_tasks_on_exit": True, **fields}
    agent = Agent(AgentOptions(master=master.address, work_dir=work_dir, on_registered=tell, **given), LOG)
    run = asyncio.create_task(agent.run())
    try:
        # The master has the registration before the agent has the answer, and tests build on both.
        await is_registered.wait()
        yield agent
    finally:
        agent.leave("the test is over")
        await run


@contextlib.asynccontextmanager
async def an_agent_process(
    master: FakeMaster, work_dir: Path, *arguments: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.agent.agent_process",
        master.address,
        str(work_dir),
        *arguments,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def test_task_runs_and_its_end_is_reported(tmp_path: Path) -> None:
    async with FakeMaster() as master, an_agent(master, tmp_path):
        master.is_acknowledging = True
        master.launch(a_script("t1", "exit 0"), a_script("t2", "exit 3"), a_command("t3", "no-such-program"))

        await master.until(lambda: master.states("t1")[-1:] == ["FINISHED"])
        await master.until(lambda: master.states("t2")[-1:] == master.states("t3")[-1:] == ["FAILED"])

    assert master.states("t1") == ["RUNNING", "FINISHED"]
    assert [master.last(task).exit_code for task in ("t1", "t2", "t3")] == [0, 3, 127]
    assert master.last("t2").reason is Reason.EXITED
    assert master.last("t3").reason is Reason.COMMAND_NOT_FOUND
    assert master.states("t3") == ["FAILED"]


async def test_nothing_an_agent_makes_can_be_read_by_other_users(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        async with FakeMaster() as master, an_agent(master, tmp_path / "work"):
            master.launch(a_script("t1", "head -c 25000000 /dev/zero; echo told >&2; exec sleep 1000"))
            await master.ask("t1", "stderr", length=5, wait_ms=30_000)
            made = {path: path.lstat() for path in [tmp_path / "work", *(tmp_path / "work").rglob("*")]}
    finally:
        os.umask(umask)

    names = {path.name for path in made}
    assert {
        "checkpoint",
        "checkpoint.identity",
        "agent.lock",
        "sandboxes",
        "f1",
        "t1",
        "stdout",
        "stdout.1",
        "stderr",
    } <= names
    assert {".stdout.offset", "executor", "socket", "journal", "lock", "log"} <= names
    modes = {path: stat.filemode(status.st_mode)[1:] for path, status in made.items()}
    assert {path: mode for path, mode in modes.items() if mode not in ("rw-------", "rwx------")} == {}


async def test_registration_tells_what_the_agent_has(tmp_path: Path) -> None:
    async with (
        FakeMaster() as master,
        an_agent(master, tmp_path, attributes={"rack": "a"}, hostname="host-9"),
    ):
        register = master.registrations[0]

    assert (register.agent_id, register.incarnation, register.hostname) == ("", 1, "host-9")
    assert (register.total.cpus_milli, register.total.mem_bytes) == (4000, 4 * 1024**3)
    assert dict(register.attributes) == {"rack": "a"}
    assert register.isolation == "none"
    assert master.goodbyes == ["the test is over"]


async def test_task_that_ignores_the_signal_is_killed_after_its_grace_period(tmp_path: Path) -> None:
    async with FakeMaster() as master, an_agent(master, tmp_path):
        master.launch(a_script("t1", "trap '' TERM; echo ready; while :; do sleep 0.05; done"))
        await master.ask("t1", "stdout", length=100, wait_ms=30_000)

        master.kill("t1", grace_ms=100, reason=9)
        await master.until(lambda: master.states("t1")[-1:] == ["KILLED"])

    assert master.states("t1") == ["RUNNING", "KILLING", "KILLED"]
    assert (master.last("t1").reason, master.last("t1").signal) == (Reason.KILLED_BY_OPERATOR, 9)


async def test_longest_runtime_is_enforced(tmp_path: Path) -> None:
    async with FakeMaster() as master, an_agent(master, tmp_path):
        master.launch(a_command("t1", "sleep", "1000", max_runtime_ms=100))

        await master.until(lambda: master.states("t1")[-1:] == ["FAILED"])

    assert master.last("t1").reason is Reason.MAX_RUNTIME


async def test_unusable_description_is_an_error_and_the_others_run(tmp_path: Path) -> None:
    async with FakeMaster() as master, an_agent(master, tmp_path):
        master.launch(a_command("bad", ""), a_script("good", "exit 0"))

        await master.until(lambda: "FINISHED" in master.states("good") and master.states("bad"))

    assert master.states("bad") == ["ERROR"]
    assert "command: expected at least one word" in master.last("bad").message


async def test_status_is_sent_again_until_acknowledged(tmp_path: Path) -> None:
    async with FakeMaster() as master, an_agent(master, tmp_path) as agent:
        master.launch(a_script("t1", "exit 0"))
        await master.until(lambda: [s.sequence for s in master.statuses].count(2) == 2)

        master.acknowledge(master.last("t1"))
        master.kill("t9")  # the stream is ordered: what answers this was decided after the acknowledgement
        await master.until(lambda: master.states("t9"))

        assert [key[1] for key in agent._runner.machine.state.outboxes] == ["t9"]


async def test_broken_stream_is_resumed_with_what_runs_and_what_is_owed(tmp_path: Path) -> None:
    async with FakeMaster() as master, an_agent(master, tmp_path):
        master.launch(a_command("t1", "sleep", "1000"), a_script("t2", "exit 0"))
        await master.until(lambda: "RUNNING" in master.states("t1") and "FINISHED" in master.states("t2"))

        master.cut()
        await master.until(lambda: len(master.registrations) == 2)

    again = master.registrations[1]
    assert again.agent_id == "a1-1"
    assert [task.task.task_id for task in again.tasks] == ["t1"]
    owed = {(status.task_id, status.sequence) for status in again.unacknowledged}
    assert owed == {("t1", 1), ("t2", 1), ("t2", 2)}


async def test_request_of_a_session_that_ended_is_not_answered_in_the_next(tmp_path: Path) -> None:
    """Each session numbers its requests from 1: a late answer would be taken for that of another file."""
    async with FakeMaster() as master, an_agent(master, tmp_path):
        master.launch(a_script("t1", "while [ ! -e go ]; do sleep 0.01; done; echo 42"))
        await master.until(lambda: "RUNNING" in master.states("t1"))
        before = master.ask_later("t1", "stdout", length=100, wait_ms=30_000)
        await master.ask("t1", "stdout", length=100)  # answered after the other one was taken up

        master.cut()
        await master.until(lambda: len(master.registrations) == 2)
        (tmp_path / "sandboxes" / "f1" / "t1" / "go").touch()
        await master.until(lambda: "FINISHED" in master.states("t1"))
        after = await master.ask("t1", "stdout", length=100, wait_ms=30_000)

        assert after.data == b"42\n"
        assert before not in master.chunks


async def test_master_that_comes_back_with_a_new_epoch_is_obeyed_and_the_old_one_not(tmp_path: Path) -> None:
    async with FakeMaster(epoch=1) as old, an_agent(old, tmp_path):
        await old.until(lambda: old.registrations)
        address = old.address
        await old.stop()
        new = FakeMaster(epoch=2)
        await new.listen(address)
        await new.until(lambda: new.registrations)
        new.launch(a_script("t1", "exit 0"))
        await new.until(lambda: "FINISHED" in new.states("t1"))

        new.epoch = 1
        new.launch(a_script("t2", "exit 0"))
        await new.until(lambda: len(new.registrations) == 3)
        await new.stop()

    assert [register.last_epoch for register in new.registrations[:3]] == [1, 2, 2]
    assert new.states("t2") == []


async def test_heartbeat_carries_what_the_tasks_use(tmp_path: Path) -> None:
    async with FakeMaster(heartbeat_ms=100) as master, an_agent(master, tmp_path):
        await master.until(lambda: master.heartbeats)
        master.launch(a_command("t1", "sleep", "1000"))

        await master.until(lambda: master.heartbeats[-1].used.mem_bytes > 0)

    reported = [report for heartbeat in master.heartbeats for report in heartbeat.tasks]
    assert [report.task_id for report in reported][:1] == ["t1"]


async def test_files_of_a_sandbox(tmp_path: Path) -> None:
    async with FakeMaster() as master, an_agent(master, tmp_path):
        master.launch(
            a_script("t1", "mkdir out; echo data > out/file; ln -s /etc out/etc; echo hello; sleep 1000")
        )
        first = await master.ask("t1", "stdout", length=5, wait_ms=30_000)
        await master.until(lambda: master.states("t1"))
        rest = await master.ask("t1", "stdout", offset=5, length=100)
        end = await master.ask("t1", "stdout", offset=-3, length=100)
        listing = await master.ask("t1", "", list=True)
        outside = await master.ask("t1", "out/etc/passwd")
        missing = await master.ask("t1", "nothing")
        unknown = await master.ask("t9", "stdout")

    assert (first.data, first.offset, first.size, first.complete) == (b"hello", 0, 6, False)
    assert (rest.data, rest.offset) == (b"\n", 5)
    assert (end.data, end.offset) == (b"lo\n", 3)
    assert {entry.path for entry in listing.entries} >= {"out", "stdout"}
    assert outside.code == agent_pb2.FILE_CODE_OUTSIDE_SANDBOX
    assert missing.code == agent_pb2.FILE_CODE_NOT_FOUND
    assert (unknown.code, unknown.detail) == (
        agent_pb2.FILE_CODE_NOT_FOUND,
        "no task f1/t9 has run here lately",
    )


async def test_reader_that_follows_is_answered_when_there_is_more_and_when_it_is_over(tmp_path: Path) -> None:
    async with FakeMaster() as master, an_agent(master, tmp_path):
        master.launch(
            a_script(
                "t1", "until [ -e go ]; do sleep 0.02; done; echo more; until [ -e end ]; do sleep 0.02; done"
            )
        )
        await master.until(lambda: master.states("t1"))
        sandbox = tmp_path / "sandboxes" / "f1" / "t1"
        followed = master.ask_later("t1", "stdout", length=100, wait_ms=30_000)
        before = await master.ask("t1", "stdout", length=100)
        assert followed not in master.chunks

        (sandbox / "go").touch()
        await master.until(lambda: followed in master.chunks)
        last = master.ask_later("t1", "stdout", offset=5, length=100, wait_ms=30_000)
        (sandbox / "end").touch()
        await master.until(lambda: last in master.chunks)

    assert (before.data, before.complete) == (b"", False)
    assert master.chunks[followed].data == b"more\n"
    assert (master.chunks[last].data, master.chunks[last].complete) == (b"", True)


async def test_collected_sandbox_is_gone_and_said_to_be(tmp_path: Path) -> None:
    async with FakeMaster() as master, an_agent(master, tmp_path, sandbox_count_max=1):
        master.launch(a_script("t1", "echo one"))
        await master.until(lambda: "FINISHED" in master.states("t1"))
        master.launch(a_script("t2", "echo two"))
        await master.until(lambda: "FINISHED" in master.states("t2"))

        collected = await master.ask("t1", "stdout")
        kept = await master.ask("t2", "stdout", length=100)

    assert collected.code == agent_pb2.FILE_CODE_COLLECTED
    assert (kept.data, kept.complete) == (b"two\n", True)
    assert [path.name for path in (tmp_path / "sandboxes" / "f1").iterdir()] == ["t2"]


async def test_agent_killed_and_restarted_keeps_its_task_and_learns_its_exit_code(tmp_path: Path) -> None:
    async with FakeMaster() as master:
        master.is_acknowledging = True
        async with an_agent_process(master, tmp_path) as first:
            await master.until(lambda: master.registrations)
            master.launch(a_script("t1", "until [ -e go ]; do sleep 0.02; done; exit 7"))
            await master.until(lambda: master.states("t1"))
            first.kill()
            await first.wait()

        async with an_agent_process(master, tmp_path, "stop") as second:
            await master.until(lambda: len(master.registrations) == 2)
            (tmp_path / "sandboxes" / "f1" / "t1" / "go").touch()
            await master.until(lambda: "FAILED" in master.states("t1"))
            second.terminate()
            _, stderr = await second.communicate()

    again = master.registrations[1]
    assert (again.agent_id, again.incarnation) == ("a1-1", 2)
    assert [(task.task.task_id, task.sequence) for task in again.tasks] == [("t1", 1)]
    assert master.states("t1") == ["RUNNING", "FAILED"]
    assert master.last("t1").exit_code == 7
    assert second.returncode == 0, stderr.decode()


async def test_task_that_ends_while_no_agent_is_there_is_reported_by_the_next(tmp_path: Path) -> None:
    async with FakeMaster() as master:
        async with an_agent(master, tmp_path, stop_tasks_on_exit=False):
            master.launch(a_script("t1", "until [ -e go ]; do sleep 0.02; done; echo done > said; exit 5"))
            await master.until(lambda: master.states("t1"))
        sandbox = tmp_path / "sandboxes" / "f1" / "t1"
        (sandbox / "go").touch()
        while not (sandbox / "said").exists():  # noqa: ASYNC110 - no agent is there to tell
            await asyncio.sleep(0.01)

        async with an_agent(master, tmp_path):
            await master.until(lambda: "FAILED" in master.states("t1"))

    assert master.last("t1").exit_code == 5


async def test_agent_that_stops_its_tasks_leaves_no_process(tmp_path: Path) -> None:
    async with FakeMaster() as master, an_agent(master, tmp_path):
        master.launch(a_script("t1", "echo $$; exec sleep 1000"))
        pid = (await master.ask("t1", "stdout", length=100, wait_ms=30_000)).data.decode().strip()
        await master.until(lambda: master.states("t1"))

    assert master.states("t1") == ["RUNNING", "KILLING", "KILLED"]
    assert master.last("t1").reason is Reason.AGENT_REMOVED
    assert not Path(f"/proc/{pid}").exists()


async def test_refused_registration_ends_the_process_with_four(tmp_path: Path) -> None:
    async with FakeMaster() as master:
        master.refusal = agent_pb2.RegistrationRefused(
            code=agent_pb2.REFUSAL_CODE_INVALID, detail="hostname: expected something else"
        )
        async with an_agent_process(master, tmp_path, "stop") as process:
            _, stderr = await process.communicate()

    assert process.returncode == 4
    assert stderr.decode().splitlines()[-1] == (
        "fairlead agent: the master refused (INVALID): hostname: expected something else"
    )


async def test_work_dir_in_use_ends_the_process_with_two(tmp_path: Path) -> None:
    async with (
        FakeMaster() as master,
        an_agent(master, tmp_path),
        an_agent_process(master, tmp_path) as process,
    ):
        _, stderr = await process.communicate()

    assert process.returncode == 2
    assert stderr.decode().splitlines() == [
        f"fairlead agent: work directory {tmp_path}: in use by another agent (process {os.getpid()})"
    ]


async def test_metrics_address_in_use_ends_the_process_with_two_and_nothing_was_started(
    tmp_path: Path,
) -> None:
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        async with FakeMaster() as master, an_agent_process(master, tmp_path, "run", address) as process:
            _, stderr = await process.communicate()

    assert process.returncode == 2
    assert [line for line in stderr.decode().splitlines() if not line.startswith("{")] == [
        f"fairlead agent: metrics: cannot listen on {address}: Address already in use"
    ]
    assert not list(tmp_path.glob("executor*"))
    assert not master.registrations


async def test_corrupt_checkpoint_ends_the_process_with_two_and_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_bytes(b"garbage\nand more\n")
    async with FakeMaster() as master, an_agent_process(master, tmp_path) as process:
        _, stderr = await process.communicate()

    assert process.returncode == 2
    (line,) = stderr.decode().splitlines()
    assert line.startswith(f"fairlead agent: {tmp_path}/checkpoint: damaged at byte 0: ")
    assert (tmp_path / "checkpoint").read_bytes() == b"garbage\nand more\n"


async def test_emptied_checkpoint_is_refused_and_its_tasks_run_on_until_told_to_start_anew(
    tmp_path: Path,
) -> None:
    async with FakeMaster() as master:
        async with an_agent(master, tmp_path, stop_tasks_on_exit=False):
            master.launch(a_script("t1", "echo $$; exec sleep 1000"))
            pid = int((await master.ask("t1", "stdout", length=100, wait_ms=30_000)).data)
        (tmp_path / "checkpoint").write_bytes(b"")
        async with an_agent_process(master, tmp_path) as process:
            _, stderr = await process.communicate()

        assert process.returncode == 2
        (line,) = stderr.decode().splitlines()
        assert line.startswith(
            f"fairlead agent: {tmp_path}/checkpoint: expected the journal of agent a1-1 in life 1, epoch 1, which was here"
        )
        assert len(master.registrations) == 1
        assert is_running(pid)

        (tmp_path / "checkpoint").rename(tmp_path / "lost")
        (tmp_path / "checkpoint.identity").rename(tmp_path / "lost.identity")
        async with an_agent(master, tmp_path):
            await until_gone(pid)

    assert [register.agent_id for register in master.registrations] == ["", ""]


async def test_agent_waits_for_a_master_that_is_not_there_yet(tmp_path: Path) -> None:
    master = FakeMaster()
    await master.listen()
    address = master.address
    await master.stop()
    options = AgentOptions(master=address, work_dir=tmp_path, isolation="none", stop_tasks_on_exit=True)
    agent = Agent(options, LOG)
    run = asyncio.create_task(agent.run())
    await asyncio.sleep(0)

    await master.listen(address)
    await master.until(lambda: master.registrations)

    agent.leave("the test is over")
    assert await run == Outcome(is_refused=False, message="the test is over")
    await master.stop()


async def test_ready_file_and_callback_tell_the_agents_id(tmp_path: Path) -> None:
    told: list[str] = []
    async with (
        FakeMaster() as master,
        an_agent(master, tmp_path / "work", ready_file=tmp_path / "ready", on_registered=told.append),
    ):
        master.launch(a_script("t1", "exit 0"))
        await master.until(lambda: master.states("t1"))

    assert (tmp_path / "ready").read_text() == "a1-1\n"
    assert told == ["a1-1"]
