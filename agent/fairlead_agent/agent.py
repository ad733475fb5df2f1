"""One agent put together: work directory, journal, machine, executor, session, file server; and how they end."""

import asyncio
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from structlog.typing import FilteringBoundLogger

from fairlead_agent.checkpoint import Checkpoint
from fairlead_agent.config import AgentOptions, kinds_of, settings_of
from fairlead_agent.core import actions, events
from fairlead_agent.core.machine import AgentMachine
from fairlead_agent.core.restore import restore
from fairlead_agent.core.state import AgentSettings
from fairlead_agent.executor.client import ExecutorClient, ExecutorOptions
from fairlead_agent.executor_link import Connect, ExecutorLink
from fairlead_agent.files import FileServer
from fairlead_agent.output_follows import OutputFollows
from fairlead_agent.probe import probe_host
from fairlead_agent.runner import Runner
from fairlead_agent.session import MasterSession
from fairlead_agent.work_dir import WorkDir
from fairlead_proto.agent_messages import write_heartbeat, write_register, write_statuses
from fairlead_proto.clock import SteadyClock, wall_ms
from fairlead_proto.ids import TaskKey
from fairlead_proto.v1 import agent_pb2

if TYPE_CHECKING:
    # They import libraries that are extras.
    from fairlead_agent.metrics import AgentMetrics
    from fairlead_agent.telemetry import AgentTelemetry


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an agent ended."""

    is_refused: bool
    """A master refused it for good; else somebody asked it to end."""
    message: str


class Agent:
    """One agent. ``run`` once; several may run in one event loop, each with its own work directory."""

    def __init__(
        self, options: AgentOptions, log: FilteringBoundLogger, connect_executor: Connect | None = None
    ) -> None:
        """Take the work directory and read the journal; nothing is started before ``run``.

        Args:
            options: checked by their own constructor.
            log: bound to whatever tells this agent from others.
            connect_executor: for benchmarks, an executor that runs no processes; None for the real one.

        Raises:
            WorkDirUnusable: the work directory cannot be written or is in use.
            CheckpointCorrupt: its journal is damaged.
            OSError: the host cannot be probed, or the journal not read.
        """
        self._options = options
        self._log = log
        self._kinds = kinds_of(options)
        self._work_dir = WorkDir.open(options.work_dir)
        try:
            host = probe_host(self._work_dir.path, self._kinds)
            settings = settings_of(options, host, self._kinds)
            self._journal, records = Checkpoint.open(
                self._work_dir.checkpoint_path, self._kinds, host.boot_id
            )
        except BaseException:
            self._work_dir.close()
            raise
        self._boot_id = host.boot_id
        self._clock = SteadyClock()
        machine = AgentMachine(settings, restore(records, settings))
        self._runner = Runner(machine, self._journal, self._clock, self._carry_out, log)
        self._executor = ExecutorLink(
            connect_executor or self._connect_executor, self._work_dir, self._runner.feed, log
        )
        self._files = FileServer(self._work_dir, machine.sandbox_state, self._reply, log)
        self._follows = OutputFollows(self._work_dir, machine.state, self._send_followed, log)
        self._session = MasterSession(
            options.master,
            kinds=self._kinds,
            feed=self._runner.feed,
            on_file_request=self._request_file,
            on_follow=self._follows.take,
            on_files_end=self._follows.forget,
            on_end=self._files.forget,
            random=random.random,
            log=log,
        )
        self._settings = settings
        self._telemetry = _make_telemetry(options, settings, log)
        self._is_announced = False
        self._is_stopping_executor = False
        self._removals: set[asyncio.Task[None]] = set()
        log.info(
            "agent.started",
            work_dir=str(self._work_dir.path),
            master=options.master,
            total=self._kinds.as_dict(settings.total),
            tasks_restored=len(machine.state.live),
        )

    async def _connect_executor(self) -> ExecutorClient:
        isolation = self._options.isolation.replace("cgroup-", "cgroup ")
        options = ExecutorOptions(isolation=isolation, cgroup_parent=self._options.cgroup_parent)
        return await ExecutorClient.connect(self._work_dir.path, options)

    def leave(self, reason: str) -> None:
        """Begin to end: tasks run on or are stopped, as the options say. A second time: do not wait for them."""
        self._runner.put(
            events.LeaveRequested(is_stopping_tasks=self._options.stop_tasks_on_exit, reason=reason)
        )

    async def run(self) -> Outcome:
        """Serve until asked to leave or refused for good.

        Raises:
            ExecutorFailed: no executor could be started, or a lost one not replaced.
            JournalFailed: the journal can no longer be written.
            InvalidMetricsAddress: the metrics' address cannot be listened on; nothing was started.
        """
        metrics: AgentMetrics | None = None
        try:
            metrics = self._serve_metrics()
            await self._runner.feed([events.AgentStarted(boot_id=self._boot_id)])
            connected = await self._executor.open()
            found = await asyncio.to_thread(self._work_dir.find_sandboxes)
            await self._runner.feed([connected, events.SandboxesFound(keys=tuple(found))])
            return await self._serve()
        finally:
            if metrics is not None:
                await asyncio.to_thread(metrics.close)
            await self._executor.close()
            self._journal.close()
            self._work_dir.close()

    async def _serve(self) -> Outcome:
        loop = asyncio.get_running_loop()
        parts: list[asyncio.Task[object]] = [
            loop.create_task(self._runner.run(), name="agent-runner"),
            loop.create_task(self._executor.run(), name="agent-executor"),
            loop.create_task(self._session.run(), name="agent-session"),
            loop.create_task(self._files.run(), name="agent-files"),
            loop.create_task(self._follows.run(), name="agent-follows"),
        ]
        runner = parts[0]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in parts:
                if part.done() and part is not runner:
                    # None of them ends before the runner but by an error.
                    part.result()
            leave = await runner
            assert isinstance(leave, actions.LeaveCluster), f"the runner ends by leaving, got {leave!r}"
            await self._session.finish()
            if self._telemetry is not None:
                await self._telemetry.stop()
            if self._is_stopping_executor:
                await self._executor.stop()
            self._log.info("agent.left", is_refused=leave.is_refused, detail=leave.message)
            return Outcome(leave.is_refused, leave.message)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, *self._removals, return_exceptions=True)

    def _serve_metrics(self) -> "AgentMetrics | None":
        if not self._options.metrics:
            return None
        from fairlead_agent.metrics import AgentMetrics

        return AgentMetrics(
            self._options.metrics,
            self._runner.machine,
            self._settings,
            lambda: self._session.ended_count,
            self._session.unknowns,
            self._telemetry,
        )

    def _carry_out(self, action: actions.Action) -> None:
        match action:
            case actions.SendStatuses():
                self._files.wake()
                self._follows.ended(action.statuses)
                self._send(*write_statuses(action.statuses, self._session.peer))
            case actions.SendRegistration():
                report = replace(action.report, agent_time_ms=wall_ms())
                self._send(write_register(report, self._kinds))
            case actions.SendHeartbeat():
                if self._telemetry is not None:
                    self._telemetry.publish_usage(action, self._runner.machine.state)
                self._send(write_heartbeat(wall_ms(), action.used, action.tasks, self._kinds))
            case actions.SendGoodbye():
                self._send(agent_pb2.AgentMessage(goodbye=agent_pb2.Goodbye(reason=action.reason)))
            case (
                actions.StartProcess()
                | actions.TerminateProcess()
                | actions.KillProcess()
                | actions.ForgetProcess()
                | actions.MeasureUsage()
                | actions.StartExecutor()
            ):
                self._executor.carry_out(action)
            case actions.CloseSession():
                self._log.warning("session.closed", detail=action.reason)
                self._session.close(action.reason)
            case actions.MeasureDisk():
                total_bytes, free_bytes = self._work_dir.disk_bytes()
                self._runner.put(events.DiskMeasured(total_bytes=total_bytes, free_bytes=free_bytes))
            case actions.RemoveSandboxes():
                self._remove_sandboxes(action.keys)
            case actions.StopExecutor():
                self._is_stopping_executor = True
            case actions.Checkpoint() | actions.LeaveCluster():
                raise AssertionError(f"the runner keeps {type(action).__name__} to itself")
            case actions.ConfirmSession():
                self._session.confirm(action.files_token, action.capabilities)
                self._announce(action)

    def _send(self, *messages: agent_pb2.AgentMessage) -> None:
        # One session may end and another begin while a turn waits for the disk.
        self._session.send(messages, session=self._runner.machine.state.session_count)

    def _announce(self, confirmed: actions.ConfirmSession) -> None:
        agent_id, version = confirmed.agent_id, confirmed.version
        self._log.info(
            "agent.registered", agent_id=agent_id, master=self._options.master, master_version=version
        )
        if self._telemetry is not None:
            self._telemetry.identify(agent_id)
        ready_file = self._options.ready_file
        if ready_file is not None and not self._is_announced:
            ready_file.write_text(f"{agent_id}\n", encoding="ascii")
        self._is_announced = True
        if self._options.on_registered is not None:
            self._options.on_registered(agent_id)

    def _remove_sandboxes(self, keys: tuple[TaskKey, ...]) -> None:
        task = asyncio.get_running_loop().create_task(self._removal(keys), name="sandbox-removal")
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    async def _removal(self, keys: tuple[TaskKey, ...]) -> None:
        failures = await asyncio.to_thread(self._work_dir.remove_sandboxes, keys)
        self._log.info("sandboxes.removed", removed_count=len(keys) - len(failures))
        for failure in failures:
            self._log.warning("sandbox.removal_failed", detail=failure)

    def _request_file(self, request: agent_pb2.FileRequest) -> None:
        ended_count = self._session.ended_count

        def begin() -> None:
            # The session it was asked in may have ended while it waited for its turn.
            if self._session.ended_count == ended_count:
                self._files.request(request)

        self._runner.after(begin)

    def _send_followed(self, output: agent_pb2.FollowedOutput) -> None:
        self._session.send_followed(output)

    def _reply(self, chunk: agent_pb2.FileChunk) -> None:
        self._session.send_chunk(chunk)


def _make_telemetry(
    options: AgentOptions, settings: AgentSettings, log: FilteringBoundLogger
) -> "AgentTelemetry | None":
    if options.mqtt is None:
        return None
    from fairlead_agent.telemetry import AgentTelemetry

    return AgentTelemetry(options.mqtt, settings, log)
