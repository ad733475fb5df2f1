"""Executors for the tests: started in a work directory of the test, and gone when it ends."""

import asyncio
import contextlib
import fcntl
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from fairlead_agent.executor.client import ExecutorClient, ExecutorLost, ExecutorOptions
from fairlead_agent.executor.isolation import IsolationError
from fairlead_agent.executor.probe import choose
from fairlead_agent.executor.processes import is_running
from fairlead_agent.executor.protocol import Event, Exited, Measurement, Start, Started, StartFailed, Usage
from fairlead_proto.ids import FrameworkId, TaskId, TaskKey


def key_of(name: str) -> TaskKey:
    return FrameworkId("framework"), TaskId(name)


class Agent:
    """What a test does with an executor, as an agent would."""

    def __init__(self, client: ExecutorClient, work_dir: Path) -> None:
        self.client = client
        self.work_dir = work_dir
        self.seen: list[Event] = []

    @property
    def pid(self) -> int:
        return self.client.hello.pid

    def sandbox(self, name: str) -> Path:
        return self.work_dir / "sandboxes" / name

    def start(self, name: str, *argv: str, **fields: object) -> TaskKey:
        start = Start(key_of(name), str(self.sandbox(name)), argv, {})
        self.client.start(start._replace(**fields))  # type: ignore[arg-type] # the test names fields of Start
        return start.key

    def shell(self, name: str, script: str, **fields: object) -> TaskKey:
        return self.start(name, "sh", "-c", script, **fields)

    async def until(self, is_it: Callable[[Event], bool]) -> Event:
        """Give the first event, seen before or to come, that is it."""
        for event in self.seen:
            if is_it(event):
                return event
        async for batch in self.client.events():
            self.seen += batch
            for event in batch:
                if is_it(event):
                    return event
        raise AssertionError("the connection was closed")

    async def started(self, key: TaskKey) -> Started:
        event = await self.until(lambda event: isinstance(event, Started | StartFailed) and event.key == key)
        assert isinstance(event, Started), event
        return event

    async def failed(self, key: TaskKey) -> StartFailed:
        event = await self.until(lambda event: isinstance(event, Started | StartFailed) and event.key == key)
        assert isinstance(event, StartFailed), event
        return event

    async def exited(self, key: TaskKey) -> Exited:
        event = await self.until(lambda event: isinstance(event, Exited | StartFailed) and event.key == key)
        assert isinstance(event, Exited), event
        return event

    async def lost(self) -> str:
        try:
            async for batch in self.client.events():
                self.seen += batch
        except ExecutorLost as loss:
            return str(loss)
        raise AssertionError("the connection was closed, and not lost")

    async def usage(self, key: TaskKey) -> Measurement:
        self.seen = [event for event in self.seen if not isinstance(event, Usage)]
        self.client.measure_usage()
        event = await self.until(lambda event: isinstance(event, Usage))
        assert isinstance(event, Usage)
        return dict(event.measurements)[key]

    def output(self, name: str) -> str:
        return (self.sandbox(name) / "stdout").read_text()

    async def output_of(self, name: str, stream: str = "stdout") -> str:
        """Wait until the task has written a whole line."""
        while True:
            with contextlib.suppress(FileNotFoundError):
                if (text := (self.sandbox(name) / stream).read_text()).endswith("\n"):
                    return text
            await asyncio.sleep(0.005)


Connect = Callable[..., Awaitable[Agent]]


@pytest.fixture
async def connect(tmp_path: Path) -> AsyncIterator[Connect]:
    """Give what connects to the test's executor, again if called again."""
    agents: list[Agent] = []

    async def connect_now(
        isolation: str = "none",
        *,
        alone_timeout_ms: int = 10_000,
        work_dir: Path = tmp_path,
        **options: str,
    ) -> Agent:
        client = await ExecutorClient.connect(
            work_dir, ExecutorOptions(isolation=isolation, alone_timeout_ms=alone_timeout_ms, **options)
        )
        agents.append(Agent(client, work_dir))
        return agents[-1]

    yield connect_now
    for work_dir, pid in {(agent.work_dir, agent.pid) for agent in agents}:
        end_executor(work_dir, pid)
    for agent in agents:
        with contextlib.suppress(ExecutorLost):
            async for _ in agent.client.events():
                pass
        await agent.client.close()
    for work_dir in {agent.work_dir for agent in agents}:
        log = (work_dir / "executor" / "log").read_text()
        assert "Traceback" not in log, log


def end_executor(work_dir: Path, pid: int) -> None:
    """Have it end with all its tasks; only if it is the one that serves the directory (its pid may be anybody's)."""
    lock = work_dir / "executor" / "lock"
    if lock.read_text().strip() == str(pid) and executor_is_alive(work_dir):
        os.kill(pid, signal.SIGTERM)


def executor_is_alive(work_dir: Path) -> bool:
    with (work_dir / "executor" / "lock").open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.fixture
def cgroup_v1() -> str:
    """The isolation's name, where it works."""
    try:
        choose("cgroup v1", parent="", work_dir=f"probe of {os.getpid()}", agent_pid=0).close()
    except IsolationError as error:
        pytest.skip(str(error))
    return "cgroup v1"


@pytest.fixture(params=["none", "cgroup v1"])
def isolation(request: pytest.FixtureRequest) -> str:
    """Each isolation that works here, in turn."""
    if request.param == "cgroup v1":
        request.getfixturevalue("cgroup_v1")
    return str(request.param)


async def until_gone(*pids: int) -> None:
    """Wait until none of these processes runs; the test's timeout bounds it."""
    while True:
        if not any(map(is_running, pids)):
            return
        await asyncio.sleep(0.005)
