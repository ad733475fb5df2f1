"""An agent of a simulated cluster: the real core of the agent, over a model of processes, a journal and a session.

The model stands in for the executor and the disk and for nothing else. What a process does is a ``Program``, by default the
one its command spells out: then a task is all that has to be carried to the host that runs it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from fairlead_agent.core import actions, events
from fairlead_agent.core.machine import AgentMachine
from fairlead_agent.core.records import Record
from fairlead_agent.core.restore import restore
from fairlead_agent.core.state import AgentSettings
from fairlead_agent.core.turn import Turn
from fairlead_agent.runner import JOURNAL_ATTEMPTS_MAX, JOURNAL_PAUSE_S
from fairlead_master.core import events as to_master
from fairlead_proto.ids import TaskKey
from fairlead_proto.task_state import Reason
from fairlead_proto.tasks import TaskSpec, TaskStatus, TaskUsage
from fairlead_sim.disk import Disk, DiskOptions
from fairlead_sim.engine import Alarm, Engine, Occurrence
from fairlead_sim.network import Connection, End, Message, Network

_COMPACT_AT = 200
"""Records after which the journal is rewritten; small, so that a run of seconds passes through it."""


@dataclass(slots=True)
class AgentObservers:
    """Whoever watches an agent; each is told before anything follows from it."""

    decided: Callable[["SimulatedAgent", list[events.Event], list[actions.Action]], None] = lambda *_: None
    """Of each turn."""
    durable: Callable[["SimulatedAgent", Sequence[Record]], None] = lambda *_: None
    """Of what the disk has more than before."""
    left: Callable[["SimulatedAgent", actions.Action], None] = lambda *_: None
    """Of what the agent does on its host or says to the master."""


@dataclass(slots=True)
class Journal:
    """What an agent has written down, and how much of that the disk has: a crash of the host may take the rest."""

    records: list[Record] = field(default_factory=list)
    durable_count: int = 0

    def synced(self, count: int) -> list[Record]:
        """The first so many are on the disk; gives those that were not before."""
        news = self.records[self.durable_count : count]
        self.durable_count = max(self.durable_count, count)
        return news

    def replace(self, records: list[Record]) -> list[Record]:
        """Rewrite it, shorter, and have that on the disk."""
        self.records, self.durable_count = records, len(records)
        return records

    def lose_end(self, random: Random) -> None:
        """The host crashes: of what the disk was not told to keep it has some."""
        del self.records[random.randint(self.durable_count, len(self.records)) :]


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
        observers: AgentObservers,
    ) -> None:
        self.name = name
        self.machine: AgentMachine | None = None
        """None while its process is down."""
        self.journal = Journal()
        self.disk = Disk(engine, DiskOptions())
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
        self._observers = observers
        self._turn: Turn | None = None
        self._is_under_way = False
        """A turn waits for the disk, or is being carried out."""
        self._is_syncing = False
        """For statuses, beside the turns."""
        self._compact_at = _COMPACT_AT
        self._boot = 1
        self._life = 0
        """Counts starts and crashes: what was scheduled in an earlier life does not happen in a later one."""
        self._connection: Connection | None = None
        self._sessions = 0
        """Opened in this life."""
        self._crash_after: int | None = None
        self._on_crash: Callable[[], None] = lambda: None
        self._alarm = Alarm(engine, self._run)

    def start(self) -> None:
        """Start the agent's process from its journal."""
        assert self.machine is None, f"agent {self.name} is running"
        self._life += 1
        self.machine = AgentMachine(self.settings, restore(self.journal.records, self.settings))
        self._turn = Turn(self.machine)
        self._turn.step = partial(self._decide, self.machine)
        self._is_under_way = self._is_syncing = False
        self._sessions = 0
        life = self._life
        self._post(events.AgentStarted(boot_id=f"boot-{self._boot}"))
        if life != self._life:
            return  # It crashed amid its first step.
        self._later(self._options.executor_ms, self._connect_executor)
        self._later(self._network.reconnect_ms(), self._dial)

    def crash(self) -> None:
        """Kill the agent's process; what runs on the host runs on."""
        if self.machine is not None:
            self._life += 1
            self.machine = self._turn = None
            self._crash_after = None
            self.processes.report = lambda _: None
            self._alarm.move(None)
            self._drop_connection()

    def crash_within_step(self, after_actions: int, on_crash: Callable[[], None]) -> None:
        """Have ``on_crash`` called in the next step that has more than so many actions, when they are carried out."""
        self._crash_after, self._on_crash = after_actions, on_crash

    def leave(self, *, is_stopping_tasks: bool) -> None:
        """Ask the agent to end; whoever supervises it starts it again."""
        self._post(events.LeaveRequested(is_stopping_tasks=is_stopping_tasks, reason="asked to"))

    def reboot(self) -> None:
        """Take the host down with everything on it, but for what the disk has."""
        self.crash()
        self.journal.lose_end(self._engine.random)
        self._boot += 1
        self.processes.die()
        self.processes.ended.clear()

    def crash_executor(self) -> None:
        """Kill the executor and with it the processes; the agent finds out if it is there."""
        self.processes.die()
        if self.machine is not None and self.machine.state.is_executor_connected:
            self.processes.report = lambda _: None
            self._post(events.ExecutorLost())

    def _later(self, delay_ms: int, happen: Callable[[], None]) -> None:
        life = self._life
        self._engine.after(delay_ms, lambda: happen() if life == self._life else None)

    def _connect_executor(self) -> None:
        assert self.machine is not None, "lives are told apart by their number"
        if self.machine.state.is_executor_connected:
            return
        self.processes.report = self._post
        self._post(
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
            self._sessions += 1
            self._post(events.SessionOpened())

    def _received(self, connection: Connection, message: Message) -> None:
        if connection is self._connection and self.machine is not None:
            self._post(message)  # type: ignore[arg-type]  # the master's shell sends events of the agent's core

    def _lost(self, connection: Connection) -> None:
        if connection is self._connection and self.machine is not None:
            self._connection = None
            self._post(events.SessionClosed())
            self._later(self._network.reconnect_ms(), self._dial)

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.break_off()

    # --- turns ---

    def _post(self, event: events.Event) -> None:
        """Take an event in the next turn; nothing if the process is down."""
        if self._turn is not None:
            self._turn.events.append(event)
            self._run()

    def _run(self) -> None:
        """Take what has come, and what is due, unless the turn before is not over."""
        turn = self._turn
        if turn is not None and not self._is_under_way:
            self._is_under_way = True
            turn.run(self._engine.now_ms)
            self._write(turn)

    def _decide(
        self, machine: AgentMachine, happened: list[events.Event], now_ms: int
    ) -> list[actions.Action]:
        decided = machine.turn(happened, now_ms)
        self._observers.decided(self, happened, decided)
        return decided

    def _write(self, turn: Turn, attempt: int = 1) -> None:
        if turn.records and self.disk.is_full:
            if attempt < JOURNAL_ATTEMPTS_MAX:
                self._later(round(1000 * JOURNAL_PAUSE_S), partial(self._write, turn, attempt + 1))
            else:
                self._restart()
            return
        self.journal.records += turn.records
        if turn.must_sync:
            self.disk.sync(partial(self._end_sync, turn, len(self.journal.records), self._release))
        else:
            self._release(turn)

    def _end_sync(self, turn: Turn, count: int, go_on: Callable[[Turn], None]) -> None:
        if turn is self._turn:
            self._observers.durable(self, self.journal.synced(count))
            go_on(turn)

    def _sync_statuses(self, turn: Turn) -> None:
        turn.begin_sync()
        self._is_syncing = True
        self.disk.sync(partial(self._end_sync, turn, len(self.journal.records), self._go_on))

    def _go_on(self, turn: Turn) -> None:
        self._is_syncing = False
        turn.end_sync()
        self._run()

    def _release(self, turn: Turn) -> None:
        assert self.machine is not None, "its turn is under way"
        if len(self.journal.records) > self._compact_at and not self._is_syncing:
            self._compact(self.machine)
        for number, action in enumerate(turn.release()):
            if self._crash_after == number:
                self._crash_after = None
                self._on_crash()
                return
            self._observers.left(self, action)
            self._carry_out(action)
            if turn is not self._turn:
                return
        self._is_under_way = False
        self._alarm.move(self.machine.next_deadline_ms())
        if turn.wants_sync:
            self._sync_statuses(turn)
        if turn.events:
            self._run()

    def _compact(self, machine: AgentMachine) -> None:
        self._observers.durable(self, self.journal.replace(machine.snapshot()))
        self._compact_at = max(_COMPACT_AT, 2 * len(self.journal.records))

    def _restart(self) -> None:
        """End, and be started again after a moment, as a supervisor of services does."""
        self.crash()
        self._later(self._network.reconnect_ms(), self.start)

    def _carry_out(self, action: actions.Action) -> None:
        match action:
            case actions.StartProcess():
                key = (action.framework_id, action.spec.task_id)
                self.starts.append(key)
                self.processes.start(key, action.spec)
            case actions.TerminateProcess() | actions.KillProcess():
                self.processes.signal(action.key, force=isinstance(action, actions.KillProcess))
            case actions.ForgetProcess():
                self.processes.forget(action.key)
            case actions.MeasureUsage():
                self._post(events.UsageMeasured(measurements=self.processes.usage()))
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
                self._restart()
            case _:
                self._say(action)

    def _say(self, action: actions.Action) -> None:
        connection, machine = self._connection, self.machine
        if connection is None or machine is None or machine.state.session_count != self._sessions:
            return  # Decided for a session that is over.
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
                self._post(events.SessionClosed())
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
