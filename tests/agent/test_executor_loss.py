"""The executor dies, hangs, or cannot be replaced."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
import structlog

from fairlead_agent import executor_link
from fairlead_agent.agent import Agent
from fairlead_agent.config import AgentOptions
from fairlead_agent.executor.client import ExecutorClient, ExecutorFailed
from fairlead_proto.task_state import Reason
from tests.agent.builders import a_spec
from tests.agent.fake_master import FakeMaster

pytestmark = pytest.mark.shell

LOG = structlog.get_logger()


def options(master: FakeMaster, work_dir: Path) -> AgentOptions:
    return AgentOptions(master=master.address, work_dir=work_dir, isolation="none", stop_tasks_on_exit=True)


def executor_pid(agent: Agent) -> int:
    executor = agent._executor._executor
    assert executor is not None
    return executor.hello.pid


async def test_tasks_of_a_dead_executor_are_lost_and_the_next_one_runs_new_tasks(tmp_path: Path) -> None:
    async with FakeMaster() as master:
        agent = Agent(options(master, tmp_path), LOG)
        run = asyncio.create_task(agent.run())
        await master.until(lambda: master.registrations)
        master.launch(a_spec("t1", command=("sleep", "1000")))
        await master.until(lambda: master.states("t1"))

        os.kill(executor_pid(agent), signal.SIGKILL)
        await master.until(lambda: "LOST" in master.states("t1"))
        master.launch(a_spec("t2", command=("true",)))
        await master.until(lambda: "FINISHED" in master.states("t2"))
        agent.leave("the test is over")
        await run

    assert master.last("t1").reason is Reason.EXECUTOR_FAILED
    assert len(master.registrations) == 1


async def test_executor_that_cannot_be_replaced_ends_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_link, "RESTART_PAUSE_S", 0)
    attempts = 0

    async def connect() -> ExecutorClient:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            return await ExecutorClient.connect(tmp_path)
        raise ExecutorFailed("no memory")

    async with FakeMaster() as master:
        agent = Agent(options(master, tmp_path), LOG, connect)
        run = asyncio.create_task(agent.run())
        await master.until(lambda: master.registrations)

        os.kill(executor_pid(agent), signal.SIGKILL)
        with pytest.raises(ExecutorFailed, match="no memory"):
            await run

    assert attempts == 1 + executor_link.RESTART_ATTEMPTS_MAX


async def test_executor_that_cannot_be_started_ends_the_agent_and_frees_its_directory(tmp_path: Path) -> None:
    async def connect() -> ExecutorClient:
        raise ExecutorFailed("no memory")

    async with FakeMaster() as master:
        for _ in range(2):
            agent = Agent(options(master, tmp_path), LOG, connect)
            with pytest.raises(ExecutorFailed, match="no memory"):
                await agent.run()


async def test_stuck_executor_does_not_keep_the_agent_from_leaving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_link, "STOP_TIMEOUT_S", 0.05)
    async with FakeMaster() as master:
        agent = Agent(options(master, tmp_path), LOG)
        run = asyncio.create_task(agent.run())
        await master.until(lambda: master.registrations)
        pid = executor_pid(agent)
        os.kill(pid, signal.SIGSTOP)

        agent.leave("the test is over")
        outcome = await run

        os.kill(pid, signal.SIGKILL)
    assert outcome.message == "the test is over"
