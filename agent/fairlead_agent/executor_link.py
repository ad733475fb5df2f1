"""The agent's side of its executor: the core's orders become commands, the executor's events become the core's.

A lost executor is replaced when the core says so. One that cannot be replaced after some attempts ends the agent: an
agent that accepts tasks and cannot run them is worse than none.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, Protocol

from structlog.typing import FilteringBoundLogger

from fairlead_agent.core import actions, events
from fairlead_agent.executor import protocol
from fairlead_agent.executor.client import ExecutorFailed, ExecutorLost
from fairlead_agent.work_dir import WorkDir
from fairlead_proto.ids import TaskKey
from fairlead_proto.resources import CPUS, MEM
from fairlead_proto.tasks import TaskUsage

RESTART_ATTEMPTS_MAX: Final = 5
RESTART_PAUSE_S: Final = 1.0
"""Between attempts to replace an executor: five seconds in all is longer than a burst of memory shortage that kills
processes, and shorter than what a master waits for an agent."""

STOP_TIMEOUT_S: Final = 10.0
"""For an executor told to kill its tasks and end. SIGKILL works at once unless a process hangs in the kernel."""


class Executor(Protocol):
    """What the agent needs of an executor: ``ExecutorClient``, or one that only pretends to run tasks, for benchmarks."""

    @property
    def hello(self) -> protocol.Hello:
        """What it knew when the connection was made."""

    def start(self, command: protocol.Start) -> None:
        """Order a task to be run."""

    def signal(self, key: TaskKey, signal: int) -> None:
        """Order a signal to the process group of a task."""

    def kill_all(self, key: TaskKey) -> None:
        """Order SIGKILL for every process of a task."""

    def forget(self, key: TaskKey) -> None:
        """Say that the end of a task is written down."""

    def measure_usage(self) -> None:
        """Order one Usage event."""

    def shutdown(self, *, kill_tasks: bool) -> None:
        """Order the executor's end."""

    def events(self) -> AsyncIterator[list[protocol.Event]]:
        """Yield batches of events; ends after ``close``, raises ExecutorLost when the executor is gone."""

    async def close(self) -> None:
        """Leave the executor to itself."""


Connect = Callable[[], Awaitable[Executor]]
Feed = Callable[[Sequence[events.Event]], Awaitable[None]]


class ExecutorLink:
    """Keeps one executor connected."""

    def __init__(self, connect: Connect, work_dir: WorkDir, feed: Feed, log: FilteringBoundLogger) -> None:
        self._connect = connect
        self._work_dir = work_dir
        self._feed = feed
        self._log = log
        self._executor: Executor | None = None
        self._restart_wanted = asyncio.Event()
        self._gone = asyncio.Event()
        self._is_stopping = False

    async def open(self) -> events.ExecutorConnected:
        """Connect to a living executor or start one, and give what it knows.

        Raises:
            ExecutorFailed: there is none and none could be started.
        """
        self._executor = await self._connect()
        self._gone.clear()
        hello = self._executor.hello
        self._log.info(
            "executor.connected",
            executor_pid=hello.pid,
            isolation=hello.isolation,
            running_count=len(hello.running),
            ended_count=len(hello.ended),
        )
        if hello.isolation_note:
            self._log.warning("isolation.limited", isolation=hello.isolation, note=hello.isolation_note)
        ended = (core_event(event) for event in hello.ended)
        return events.ExecutorConnected(
            isolation=hello.isolation,
            running=tuple(started.key for started in hello.running),
            ended=tuple(
                event
                for event in ended
                if isinstance(event, events.ProcessExited | events.ProcessStartFailed)
            ),
        )

    async def run(self) -> None:
        """Feed the executor's events; replace it when it is lost. Ends when told to stop.

        Raises:
            ExecutorFailed: a lost executor could not be replaced.
        """
        while await self._feed_events():
            self._log.error("executor.lost")
            await self._feed([events.ExecutorLost()])
            await self._restart_wanted.wait()
            self._restart_wanted.clear()
            await self._feed([await self._reopen()])

    async def _feed_events(self) -> bool:
        """Feed until the connection ends; whether that was a loss."""
        executor = self._executor
        assert executor is not None, "the executor's events are read after it was opened"
        try:
            async for batch in executor.events():
                await self._feed([core_event(event) for event in batch])
        except ExecutorLost:
            self._gone.set()
            self._executor = None
            return not self._is_stopping
        return False

    async def _reopen(self) -> events.ExecutorConnected:
        for attempt in range(1, RESTART_ATTEMPTS_MAX):
            try:
                return await self.open()
            except ExecutorFailed as error:
                self._log.error("executor.start_failed", attempt=attempt, detail=str(error))
                await asyncio.sleep(RESTART_PAUSE_S)
        return await self.open()

    def carry_out(
        self,
        action: actions.StartProcess
        | actions.TerminateProcess
        | actions.KillProcess
        | actions.ForgetProcess
        | actions.MeasureUsage
        | actions.StartExecutor,
    ) -> None:
        """Pass an order on. Without an executor it is dropped: the core settles everything when there is one again."""
        if isinstance(action, actions.StartExecutor):
            self._restart_wanted.set()
            return
        executor = self._executor
        if executor is None:
            return
        match action:
            case actions.StartProcess():
                executor.start(self._start_command(action))
            case actions.TerminateProcess():
                executor.signal(action.key, signal.SIGTERM)
            case actions.KillProcess():
                executor.kill_all(action.key)
            case actions.ForgetProcess():
                executor.forget(action.key)
            case actions.MeasureUsage():
                executor.measure_usage()

    def _start_command(self, action: actions.StartProcess) -> protocol.Start:
        spec = action.spec
        key = (action.framework_id, spec.task_id)
        return protocol.Start(
            key=key,
            sandbox=self._work_dir.sandbox(key),
            argv=spec.command,
            environment=dict(spec.environment),
            working_directory=spec.working_directory,
            cpus_milli=spec.resources[CPUS],
            mem_bytes=spec.resources[MEM],
            log_bytes_max=0 if spec.no_files else protocol.LOG_BYTES_MAX,
        )

    async def stop(self) -> None:
        """End the executor and all it runs, and wait for it; a stuck one is not waited for beyond a bound."""
        executor = self._executor
        if executor is None:
            return
        self._is_stopping = True
        executor.shutdown(kill_tasks=True)
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await self._gone.wait()
        except TimeoutError:
            self._log.error("executor.stop_timed_out", timeout_s=STOP_TIMEOUT_S)

    async def close(self) -> None:
        """Leave the executor to itself."""
        if self._executor is not None:
            await self._executor.close()


def core_event(event: protocol.Event) -> events.Event:
    """The core's form of an executor's event."""
    match event:
        case protocol.Started():
            return events.ProcessStarted(key=event.key)
        case protocol.Exited():
            return events.ProcessExited(
                key=event.key,
                exit_code=event.exit_code,
                signal=event.signal,
                is_out_of_memory=event.out_of_memory,
                message=_plain(event.message),
                usage=_usage(event.usage),
                ended_ms=event.finished_ms,
            )
        case protocol.StartFailed():
            return events.ProcessStartFailed(
                key=event.key, reason=event.reason, message=_plain(event.message)
            )
        case protocol.Usage():
            return events.UsageMeasured(
                measurements=tuple((key, _usage(measured)) for key, measured in event.measurements)
            )
        case protocol.Hello():
            raise AssertionError("an executor says hello once, before its events are read")


def _usage(measured: protocol.Measurement) -> TaskUsage:
    return TaskUsage(
        cpu_time_ms=measured.cpu_time_ms,
        mem_bytes=measured.mem_bytes,
        mem_peak_bytes=measured.mem_peak_bytes,
        mem_limit_bytes=measured.mem_limit_bytes,
        sandbox_bytes=measured.sandbox_bytes,
        stdout_bytes=measured.stdout_bytes,
        stderr_bytes=measured.stderr_bytes,
    )


def _plain(text: str) -> str:
    # A file name in it may hold bytes that are no UTF-8, which no message of the schema can carry.
    return text.encode(errors="replace").decode()
