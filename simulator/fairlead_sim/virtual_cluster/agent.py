"""An agent of a virtual cluster: the real core of the agent in its turns, over a journal on a disk, processes and a session.

The models stand in for the executor, the disk and the stream, and for nothing else. What is decided in one turn for the master
is one message; a busy agent waits a moment for company, as live.
"""

import sys
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
from fairlead_agent.runner import BUSY_TASKS, JOURNAL_ATTEMPTS_MAX, JOURNAL_PAUSE_S
from fairlead_master.core import events as to_master
from fairlead_proto.pace import Pace
from fairlead_proto.tasks import TaskStatus
from fairlead_sim.engine import Reminder
from fairlead_sim.virtual_cluster.disk import Disk
from fairlead_sim.virtual_cluster.launches import Processes
from fairlead_sim.virtual_cluster.network import Connection, End, Message, Network
from fairlead_sim.virtual_cluster.processes import HostOptions

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


class SimulatedAgent:
    """A host with an agent on it, which can crash and come back, and whose host can."""

    def __init__(
        self,
        network: Network,
        settings: AgentSettings,
        processes: Processes,
        options: HostOptions,
        *,
        disk: Disk | None,
        observers: AgentObservers | None = None,
    ) -> None:
        """Nothing happens before ``start``.

        Args:
            network: to the master.
            settings: of its core; its host's name is its name on the network.
            processes: of its host.
            options: how long things take there.
            disk: that of its journal; None if nothing is written down, as nothing fails.
            observers: told of all it does.
        """
        self.name = settings.hostname
        self.machine: AgentMachine | None = None
        """None while its process is down."""
        self.journal = Journal()
        self.disk = disk
        self.processes = processes
        self.settings = settings
        """May be replaced while the agent is down: other totals, other attributes."""
        self.retell: Callable[[TaskStatus], TaskStatus] | None = None
        """What becomes of a status on its way to the master: ends that no process can have are made so."""
        self._engine = network.engine
        self._network = network
        self._options = options
        self._observers = observers
        self._pace = Pace(BUSY_TASKS)
        self._turn: Turn | None = None
        self._is_planned = False
        """A turn waits for company."""
        self._is_under_way = False
        """A turn waits for the disk, or is being carried out."""
        self._is_syncing = False
        """For statuses, beside the turns."""
        self._message: list[to_master.Event] = []
        """What the turn under way has for the master."""
        self._compact_at = _COMPACT_AT
        self._boot = 1
        self._life = 0
        """Counts starts and crashes: what was scheduled in an earlier life does not happen in a later one."""
        self._connection: Connection | None = None
        self._sessions = 0
        """Opened in this life."""
        self._crash_after: int | None = None
        self._on_crash: Callable[[], None] = lambda: None
        self._reminder = Reminder(self._engine, self._next_deadline_ms, self._run)

    def start(self) -> None:
        """Start the agent's process from its journal."""
        assert self.machine is None, f"agent {self.name} is running"
        self._life += 1
        machine = self.machine = AgentMachine(self.settings, restore(self.journal.records, self.settings))
        self._turn = Turn(machine, has_journal=self.disk is not None)
        if self._observers is not None:
            self._turn.step = partial(self._decide, machine, self._observers)
        self._is_planned = self._is_under_way = self._is_syncing = False
        self._sessions = 0
        life = self._life
        self._post([events.AgentStarted(boot_id=f"boot-{self._boot}")])
        if life != self._life:
            return  # It crashed amid its first step.
        self._later(self._options.executor_ms, self._connect_executor)
        self._later(self._network.reconnect_ms(), self._dial)

    def crash(self) -> None:
        """Kill the agent's process; what runs on the host runs on."""
        if self.machine is not None:
            self._life += 1
            self.machine = self._turn = None
            self._message = []
            self._crash_after = None
            self.processes.report_to(None)
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.break_off()

    def crash_within_step(self, after_actions: int, on_crash: Callable[[], None]) -> None:
        """Have ``on_crash`` called in the next turn that has more than so many actions, when they are carried out."""
        self._crash_after, self._on_crash = after_actions, on_crash

    def leave(self, *, is_stopping_tasks: bool) -> None:
        """Ask the agent to end; whoever supervises it starts it again."""
        self._post([events.LeaveRequested(is_stopping_tasks=is_stopping_tasks, reason="asked to")])

    def reboot(self) -> None:
        """Take the host down with everything on it, but for what the disk has."""
        self.crash()
        self.journal.lose_end(self._engine.random)
        self._boot += 1
        self.processes.reboot()

    def crash_executor(self) -> None:
        """Kill the executor and with it the processes; the agent finds out if it is there."""
        self.processes.die()
        if self.machine is not None and self.machine.state.is_executor_connected:
            self.processes.report_to(None)
            self._post([events.ExecutorLost()])

    def _later(self, delay_ms: int, happen: Callable[[], None]) -> None:
        life = self._life
        self._engine.after(delay_ms, lambda: happen() if life == self._life else None)

    def _restart(self) -> None:
        """End, and be started again after a moment, as a supervisor of services does."""
        self.crash()
        self._later(self._network.reconnect_ms(), self.start)

    # --- executor and session ---

    def _connect_executor(self) -> None:
        assert self.machine is not None, "lives are told apart by their number"
        if self.machine.state.is_executor_connected:
            return
        self.processes.report_to(self._post)
        running, ended = self.processes.known()
        self._post([events.ExecutorConnected(isolation="none", running=tuple(running), ended=tuple(ended))])

    def _dial(self) -> None:
        if self._connection is not None:
            return
        self._connection = self._network.dial(self.name, End(self._received, self._lost))
        if self._connection is None:
            self._later(self._network.reconnect_ms(), self._dial)
        else:
            self._sessions += 1
            self._post([events.SessionOpened()])

    def _received(self, connection: Connection, message: Message) -> None:
        if connection is self._connection:
            self._post([events.Ordered(connection.epoch, order) for order in message])

    def _lost(self, connection: Connection) -> None:
        if connection is self._connection and self.machine is not None:
            self._connection = None
            self._post([events.SessionClosed()])
            self._later(self._network.reconnect_ms(), self._dial)

    # --- turns ---

    def _post(self, happened: list[events.Event]) -> None:
        """Take what has happened: at once, or together with what else comes soon if much does; nothing if the process is down."""
        turn = self._turn
        if turn is None:
            return
        turn.events.extend(happened)
        if self._is_planned or self._is_under_way:
            return
        gather_ms = self._options.gather_ms
        if gather_ms and self._pace.is_busy(self._engine.now_ms):
            self._is_planned = True
            self._engine.after(gather_ms, partial(self._run_planned, turn))
        else:
            self._run()

    def _run_planned(self, turn: Turn) -> None:
        if turn is self._turn:
            self._is_planned = False
            self._run()

    def _next_deadline_ms(self) -> int | None:
        return None if self.machine is None else self.machine.next_deadline_ms()

    def _run(self) -> None:
        """Take what has come, and what is due, unless the turn before is not over."""
        turn = self._turn
        if turn is None or self._is_under_way:
            return
        self._is_under_way = True
        now_ms = self._engine.now_ms
        turn.run(now_ms, events_max=sys.maxsize)
        if self._options.gather_ms:
            self._pace.note(turn.moved_count, now_ms)
        if self.disk is None:
            self._release(turn)
        else:
            self._write(turn, self.disk)

    def _decide(
        self,
        machine: AgentMachine,
        observers: AgentObservers,
        happened: list[events.Event],
        now_ms: int,
    ) -> list[actions.Action]:
        decided = machine.turn(happened, now_ms)
        observers.decided(self, happened, decided)
        return decided

    def _release(self, turn: Turn) -> None:
        """Carry out what follows from a turn, and send what it has for the master."""
        observers = self._observers
        for number, action in enumerate(turn.release()):
            if number == self._crash_after:
                self._crash_after = None
                self._on_crash()
                return
            if observers is not None:
                observers.left(self, action)
            self._carry_out(turn, action)
            if turn is not self._turn:
                return
        self._flush()
        self._is_under_way = False
        if turn.wants_sync and self.disk is not None:
            self._sync_statuses(turn, self.disk)
        if turn.events:
            self._run()
        else:
            self._rest()

    def _rest(self) -> None:
        """Start what was ordered, and wake up for the next deadline."""
        machine, reminder = self.machine, self._reminder
        if machine is None:
            return
        wakes_ms = self.processes.start_ordered()
        if wakes_ms is None:
            wakes_ms = reminder.at_ms
        else:
            # They report then, which makes the deadlines of their launches void: only an earlier one is worth a wake-up.
            wakes_ms += self._engine.now_ms + self._options.gather_ms
        if wakes_ms is None or machine.may_be_due_before(wakes_ms):
            reminder.by(machine.next_deadline_ms())

    def _carry_out(self, turn: Turn, action: actions.Action) -> None:
        match action:
            # Those of every task come first, as cases are tried in their order.
            case actions.StartProcess():
                self.processes.order(action)
            case actions.SendStatuses():
                self._say(self._reported(action.statuses))
            case actions.ForgetProcess():
                self.processes.forget(action.key)
            case actions.TerminateProcess() | actions.KillProcess():
                self.processes.signal(action.key, force=isinstance(action, actions.KillProcess))
            case actions.MeasureUsage():
                turn.events.append(events.UsageMeasured(measurements=self.processes.usage()))
            case actions.MeasureDisk() | actions.RemoveSandboxes() | actions.ConfirmSession():
                pass
            case actions.SendHeartbeat():
                self._say(to_master.AgentBeat(session=self._session, used=action.used, tasks=action.tasks))
            case actions.StartExecutor():
                self._later(self._options.executor_ms, self._connect_executor)
            case actions.StopExecutor():
                self.processes.die()
            case _:
                self._carry_out_session(action)

    # --- what is said ---

    @property
    def _session(self) -> int:
        return self._connection.number if self._connection is not None else 0

    def _is_for_this_session(self) -> bool:
        """Whether what is decided now was not decided for a session that is over."""
        return (
            self._connection is not None
            and self.machine is not None
            and self.machine.state.session_count == self._sessions
        )

    def _reported(self, statuses: tuple[TaskStatus, ...]) -> to_master.StatusesReported:
        if self.retell is not None:
            statuses = tuple(map(self.retell, statuses))
        return to_master.StatusesReported(session=self._session, statuses=statuses)

    def _say(self, event: to_master.Event) -> None:
        if self._is_for_this_session():
            self._message.append(event)

    def _flush(self) -> None:
        message = self._message
        if message and self._connection is not None:
            self._message = []
            self._connection.send_up(message)

    def _carry_out_session(self, action: actions.Action) -> None:
        connection = self._connection
        match action:
            case actions.SendRegistration():
                if connection is not None and self._is_for_this_session():
                    report = replace(
                        action.report, session=connection.number, agent_time_ms=self._engine.now_ms
                    )
                    if self.retell is not None:
                        owed = tuple(map(self.retell, report.unacknowledged))
                        report = replace(report, unacknowledged=owed)
                    connection.open([report])
            case actions.SendGoodbye():
                pass  # Nothing but a farewell: the end of the stream says the same.
            case actions.CloseSession():
                self._hang_up()
                if connection is not None:
                    self._post([events.SessionClosed()])
                    self._later(self._network.reconnect_ms(), self._dial)
            case actions.LeaveCluster():
                self._hang_up()
                self._restart()
            case _:
                raise AssertionError(f"agent {self.name}: nobody carries out {action}")

    def _hang_up(self) -> None:
        self._flush()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # --- the journal ---

    def _write(self, turn: Turn, disk: Disk, attempt: int = 1) -> None:
        if turn.records and disk.is_full:
            if attempt < JOURNAL_ATTEMPTS_MAX:
                self._later(round(1000 * JOURNAL_PAUSE_S), partial(self._write, turn, disk, attempt + 1))
            else:
                self._restart()
            return
        self.journal.records += turn.records
        if turn.must_sync:
            disk.sync(partial(self._end_sync, turn, len(self.journal.records), self._go_on))
        else:
            self._go_on(turn)

    def _go_on(self, turn: Turn) -> None:
        if len(self.journal.records) > self._compact_at and not self._is_syncing and self.machine is not None:
            self._now_durable(self.journal.replace(self.machine.snapshot()))
            self._compact_at = max(_COMPACT_AT, 2 * len(self.journal.records))
        self._release(turn)

    def _sync_statuses(self, turn: Turn, disk: Disk) -> None:
        turn.begin_sync()
        self._is_syncing = True
        disk.sync(partial(self._end_sync, turn, len(self.journal.records), self._end_sync_of_statuses))

    def _end_sync_of_statuses(self, turn: Turn) -> None:
        self._is_syncing = False
        turn.end_sync()
        self._run()

    def _end_sync(self, turn: Turn, count: int, go_on: Callable[[Turn], None]) -> None:
        if turn is self._turn:
            self._now_durable(self.journal.synced(count))
            go_on(turn)

    def _now_durable(self, records: Sequence[Record]) -> None:
        if self._observers is not None:
            self._observers.durable(self, records)
