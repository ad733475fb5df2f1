"""An agent of a simulated cluster: the real core of the agent, over a model of processes, a journal and a session.

The model stands in for the executor and the disk and for nothing else. What a process does is a ``Program``, by default the
one its command spells out: then a task is all that has to be carried to the host that runs it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fairlead_agent.core import actions, events
from fairlead_agent.core.machine import AgentMachine
from fairlead_agent.core.records import Record
from fairlead_agent.core.restore import restore
from fairlead_agent.core.state import AgentSettings
from fairlead_master.core import events as to_master
from fairlead_proto.ids import TaskKey
from fairlead_proto.task_state import Reason
from fairlead_proto.tasks import TaskSpec, TaskStatus, TaskUsage
from fairlead_sim.engine import Alarm, Engine, Occurrence
from fairlead_sim.network import Connection, End, Message, Network

_COMPACT_AT = 200
"""Records after which the journal is rewritten; small, so that a run of seconds passes through it."""

Step = Callable[[str, events.Event, list[actions.Action]], None]
"""Told of each step of an agent: its name, the event, the actions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """How long things take on a host, in milliseconds."""

    start_min_ms: int = 1
    start_max_ms: int = 1
    """From the order to start a process to its running; drawn evenly."""
    end_ms: int = 1
    """From a signal to the end."""
    executor_ms: int = 5
    """From an agent's start, or an executor's loss, to a connected executor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a task's process does."""

    duration_ms: int | None = None
    """None: it runs until it is ended."""
    exit_code: int | None = 0
    """None, and no signal: nobody sees the end."""
    signal: int | None = None
    message: str = ""
    usage: TaskUsage | None = None
    is_stubborn: bool = False
    """Ignores SIGTERM."""
    is_missing: bool = False
    """There is no such command."""


def program_of_command(_key: TaskKey, spec: TaskSpec) -> Program:
    """The program a command spells out: ``run DURATION_MS [EXIT_CODE]``, ``stubborn …``, or ``missing``."""
    verb, *numbers = spec.command
    if verb == "missing":
        return Program(is_missing=True)
    return Program(
        duration_ms=int(numbers[0]),
        exit_code=int(numbers[1]) if len(numbers) > 1 else 0,
        is_stubborn=verb == "stubborn",
    )


@dataclass(slots=True, eq=False)
class _Process:
    program: Program
    end: Occurrence | None = None


@dataclass(slots=True, eq=False)
class ProcessTable:
    """The processes of one host, and the ends nobody has been told to forget. Outlives the agent's process."""

    engine: Engine
    options: HostOptions
    running: dict[TaskKey, _Process] = field(default_factory=dict)
    ended: dict[TaskKey, events.ProcessExited | events.ProcessStartFailed] = field(default_factory=dict)
    report: Callable[[events.Event], None] = lambda _: None
    """Whoever is connected; reports to nobody are kept in ``ended``."""
    program_of: Callable[[TaskKey, TaskSpec], Program] = program_of_command

    def start(self, key: TaskKey, spec: TaskSpec) -> None:
        """Make a process of a task."""
        program = self.program_of(key, spec)
        if program.is_missing:
            failure = events.ProcessStartFailed(
                key=key, reason=Reason.COMMAND_NOT_FOUND, message=program.message or "no such command"
            )
            self.engine.after(0, lambda: self._over(failure))
            return
        started_ms = self.engine.random.randint(self.options.start_min_ms, self.options.start_max_ms)
        process = self.running[key] = _Process(program)
        self.engine.after(started_ms, lambda: self._started(key, process))
        if program.duration_ms is not None:
            process.end = self.engine.maybe_after(
                started_ms + program.duration_ms,
                lambda: self._exit(key, program.exit_code, program.signal, program.message),
            )

    def signal(self, key: TaskKey, *, force: bool) -> None:
        """End a process, if it is there and lets itself be ended."""
        process = self.running.get(key)
        if process is not None and (force or not process.program.is_stubborn):
            self.engine.after(self.options.end_ms, lambda: self._exit(key, None, 9 if force else 15))

    def forget(self, key: TaskKey) -> None:
        """The end need not be kept any longer."""
        self.ended.pop(key, None)

    def die(self) -> None:
        """Every process ends and nobody sees how: the host went down, or the executor."""
        for process in self.running.values():
            if process.end is not None:
                process.end.cancel()
        self.running.clear()

    def usage(self) -> tuple[tuple[TaskKey, TaskUsage], ...]:
        """What each process uses: a fixed little memory."""
        return tuple((key, TaskUsage(mem_bytes=2**20)) for key in self.running)

    def _started(self, key: TaskKey, process: _Process) -> None:
        if self.running.get(key) is process:
            self.report(events.ProcessStarted(key=key))

    def _exit(self, key: TaskKey, exit_code: int | None, signal: int | None, message: str = "") -> None:
        process = self.running.pop(key, None)
        if process is None:
            return
        if process.end is not None:
            process.end.cancel()
        self._over(
            events.ProcessExited(
                key=key,
                exit_code=exit_code,
                signal=signal,
                message=message,
                usage=process.program.usage,
                ended_ms=self.engine.now_ms,
            )
        )

    def _over(self, end: events.ProcessExited | events.ProcessStartFailed) -> None:
        self.ended[end.key] = end
        self.report(end)


class SimulatedAgent:
    """A host with an agent on it, which can crash and come back, and whose host can."""

    def __init__(
        self,
        name: str,
        engine: Engine,
        network: Network,
        settings: AgentSettings,
        options: HostOptions,
        tell: Step,
    ) -> None:
        self.name = name
        self.machine: AgentMachine | None = None
        """None while its process is down."""
        self.journal: list[Record] = []
        self.processes = ProcessTable(engine, options)
        self.settings = settings
        """May be replaced while the agent is down: other totals, other attributes."""
        self.starts: list[TaskKey] = []
        """Every process that was ever ordered here, in order."""
        self.retell: Callable[[TaskStatus], TaskStatus] = lambda status: status
        """What becomes of a status on its way to the master: ends that no process can have are made so."""
        self._engine = engine
        self._network = network
        self._options = options
        self._tell = tell
        self._compact_at = _COMPACT_AT
        self._boot = 1
        self._life = 0
        """Counts starts and crashes: what was scheduled in an earlier life does not happen in a later one."""
        self._connection: Connection | None = None
        self._crash_after: int | None = None
        self._on_crash: Callable[[], None] = lambda: None
        self._alarm = Alarm(engine, lambda: self._step(events.Tick()))

    def start(self) -> None:
        """Start the agent's process from its journal."""
        assert self.machine is None, f"agent {self.name} is running"
        self._life += 1
        self.machine = AgentMachine(self.settings, restore(self.journal, self.settings))
        life = self._life
        self._step(events.AgentStarted(boot_id=f"boot-{self._boot}"))
        if life != self._life:
            return  # It crashed amid its first step.
        self._later(self._options.executor_ms, self._connect_executor)
        self._later(self._network.reconnect_ms(), self._dial)

    def crash(self) -> None:
        """Kill the agent's process; what runs on the host runs on."""
        if self.machine is not None:
            self._life += 1
            self.machine = None
            self._crash_after = None
            self.processes.report = lambda _: None
            self._alarm.move(None)
            self._drop_connection()

    def crash_within_step(self, after_actions: int, on_crash: Callable[[], None]) -> None:
        """Have ``on_crash`` called in the next step that has more than so many actions, when they are carried out."""
        self._crash_after, self._on_crash = after_actions, on_crash

    def leave(self, *, is_stopping_tasks: bool) -> None:
        """Ask the agent to end; whoever supervises it starts it again."""
        self._step(events.LeaveRequested(is_stopping_tasks=is_stopping_tasks, reason="asked to"))

    def reboot(self) -> None:
        """Take the host down with everything on it, but for the disk."""
        self.crash()
        self._boot += 1
        self.processes.die()
        self.processes.ended.clear()

    def crash_executor(self) -> None:
        """Kill the executor and with it the processes; the agent finds out if it is there."""
        self.processes.die()
        if self.machine is not None and self.machine.state.is_executor_connected:
            self.processes.report = lambda _: None
            self._step(events.ExecutorLost())

    def _later(self, delay_ms: int, happen: Callable[[], None]) -> None:
        life = self._life
        self._engine.after(delay_ms, lambda: happen() if life == self._life else None)

    def _connect_executor(self) -> None:
        assert self.machine is not None, "lives are told apart by their number"
        if self.machine.state.is_executor_connected:
            return
        self.processes.report = self._step
        self._step(
            events.ExecutorConnected(
                isolation="none",
                running=tuple(self.processes.running),
                ended=tuple(self.processes.ended.values()),
            )
        )

    def _dial(self) -> None:
        if self._connection is not None:
            return
        self._connection = self._network.dial(self.name, End(self._received, self._lost))
        if self._connection is None:
            self._later(self._network.reconnect_ms(), self._dial)
        else:
            self._step(events.SessionOpened())

    def _received(self, connection: Connection, message: Message) -> None:
        if connection is self._connection and self.machine is not None:
            self._step(message)  # type: ignore[arg-type]  # the master's shell sends events of the agent's core

    def _lost(self, connection: Connection) -> None:
        if connection is self._connection and self.machine is not None:
            self._connection = None
            self._step(events.SessionClosed())
            self._later(self._network.reconnect_ms(), self._dial)

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.break_off()

    def _step(self, event: events.Event) -> None:
        machine = self.machine
        if machine is None:
            return
        decided = machine.turn([event], self._engine.now_ms)
        self._tell(self.name, event, decided)
        for number, action in enumerate(decided):
            if self._crash_after == number:
                self._crash_after = None
                self._on_crash()
                return
            self._carry_out(machine, action)
            if self.machine is not machine:
                return
        self._alarm.move(machine.next_deadline_ms())

    def _carry_out(self, machine: AgentMachine, action: actions.Action) -> None:
        match action:
            case actions.Checkpoint():
                self.journal += action.records
                if len(self.journal) > self._compact_at:
                    self.journal = machine.snapshot()
                    self._compact_at = max(_COMPACT_AT, 2 * len(self.journal))
            case actions.StartProcess():
                key = (action.framework_id, action.spec.task_id)
                self.starts.append(key)
                self.processes.start(key, action.spec)
            case actions.TerminateProcess() | actions.KillProcess():
                self.processes.signal(action.key, force=isinstance(action, actions.KillProcess))
            case actions.ForgetProcess():
                self.processes.forget(action.key)
            case actions.MeasureUsage():
                self._later(0, lambda: self._step(events.UsageMeasured(measurements=self.processes.usage())))
            case actions.StartExecutor():
                self._later(self._options.executor_ms, self._connect_executor)
            case actions.StopExecutor():
                self.processes.die()
            case actions.MeasureDisk() | actions.RemoveSandboxes() | actions.ConfirmSession():
                pass
            case actions.LeaveCluster():
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
                self.crash()
                # As a supervisor of services would, after a moment.
                self._later(self._network.reconnect_ms(), self.start)
            case _:
                self._say(action)

    def _say(self, action: actions.Action) -> None:
        connection = self._connection
        if connection is None:
            return
        match action:
            case actions.SendRegistration():
                owed = tuple(map(self.retell, action.unacknowledged))
                hello = replace(action, unacknowledged=owed)
                connection.send_up(registration(connection.number, hello, self._engine.now_ms), is_first=True)
            case actions.SendStatuses():
                statuses = tuple(map(self.retell, action.statuses))
                connection.send_up(to_master.StatusesReported(session=connection.number, statuses=statuses))
            case actions.SendHeartbeat():
                connection.send_up(
                    to_master.AgentBeat(session=connection.number, used=action.used, tasks=action.tasks)
                )
            case actions.SendGoodbye():
                pass  # Nothing but a farewell: the end of the stream says the same.
            case actions.CloseSession():
                connection.close()
                self._connection = None
                self._later(0, lambda: self._step(events.SessionClosed()))
                self._later(self._network.reconnect_ms(), self._dial)
            case _:
                raise AssertionError(f"agent {self.name}: nobody carries out {action}")


def registration(session: int, action: actions.SendRegistration, now_ms: int) -> to_master.AgentConnected:
    """What the master's shell makes of an agent's registration in a session."""
    return to_master.AgentConnected(
        session=session,
        agent_id=action.agent_id or None,
        incarnation=action.incarnation,
        hostname=action.hostname,
        total=action.total,
        attributes=action.attributes,
        tasks=action.tasks,
        unacknowledged=action.unacknowledged,
        last_epoch=action.last_epoch,
        agent_time_ms=now_ms,
        isolation=action.isolation,
    )
