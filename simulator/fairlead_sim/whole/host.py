"""A host: the machine of a live agent in its shell, and processes that do nothing but take their time."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Final

from fairlead_agent.core import actions, events
from fairlead_agent.core.actions import SendStatuses, StartProcess
from fairlead_agent.core.machine import AgentMachine
from fairlead_agent.core.restore import restore
from fairlead_agent.core.state import AgentSettings
from fairlead_agent.core.turn import Turn
from fairlead_agent.runner import BUSY_EVENTS
from fairlead_master.core import events as to_master
from fairlead_proto.ids import TaskKey
from fairlead_proto.pace import Pace
from fairlead_proto.tasks import TaskStatus
from fairlead_sim.cluster import order_of
from fairlead_sim.cluster_agent import registration
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.observer import Watcher
from fairlead_sim.pool.hosts import CrowdedHost
from fairlead_sim.whole.master import MasterShell, Order
from fairlead_sim.whole.turns import Inbox, Reminder
from fairlead_sim.whole.work import Launch, Programs, Tally

Report = Callable[[list[events.Event]], None]
"""Takes what has happened to processes, in order."""

_OF_NO_CONCERN: Final = frozenset(
    {
        actions.ForgetProcess,
        actions.MeasureDisk,
        actions.ConfirmSession,
        actions.RemoveSandboxes,
    }
)
"""Actions that leave no trace here: no end is forgotten that nobody kept, and a sandbox is only a number."""

_REMEMBERED: Final = 100
"""Tasks that are over an agent remembers, and their sandboxes: it does so in case a session breaks, which none does here,
and ten thousand of them on each of a thousand hosts would be gigabytes."""


class Processes:
    """The processes of one host: they do nothing but take their time."""

    def __init__(
        self,
        programs: Programs,
        watcher: Watcher,
        tally: Tally,
        start_ms: int,
        crowded: CrowdedHost | None,
    ) -> None:
        """``crowded`` says how fast tasks run, where the policy promises more than there is."""
        self._programs = programs
        self._watcher = watcher
        self._tally = tally
        self._start_ms = start_ms
        self._crowded = crowded
        self.ordered: dict[str, list[TaskKey]] = {}
        """To be started at the end of the agent's turn, by command."""

    def order(self, order: StartProcess) -> None:
        """Make a process of a task when ``start`` is called."""
        key = (order.framework_id, order.spec.task_id)
        command = order.spec.command[0]
        if command in self.ordered:
            self.ordered[command].append(key)
        else:
            self.ordered[command] = [key]

    def start(self, engine: Engine, report: Report) -> int:
        """Start what was ordered; what happens to the processes is reported. Gives how long it takes to report the start."""
        ordered, self.ordered = self.ordered, {}
        engine.after(self._start_ms, partial(self._begin, ordered, engine, report))
        return self._start_ms

    def _begin(self, ordered: dict[str, list[TaskKey]], engine: Engine, report: Report) -> None:
        for command, keys in ordered.items():
            launch = self._programs.take(command)
            batch = launch.batch
            batch.started_ms = engine.now_ms
            self._tally.started += len(keys)
            self._watcher.started(batch)
            end = partial(self._end, launch, keys, engine, report)
            if self._crowded is not None:
                self._crowded.start(batch, batch.bundle.duration_ms, end)
            else:
                engine.after(batch.bundle.duration_ms, end)
        report([events.ProcessStarted(key=key) for keys in ordered.values() for key in keys])

    def _end(self, launch: Launch, keys: list[TaskKey], engine: Engine, report: Report) -> None:
        """The processes of a launch end, all of them well."""
        now_ms = engine.now_ms
        self._tally.ended += len(keys)
        self._watcher.ended(launch.batch, now_ms)
        report([events.ProcessExited(key=key, exit_code=0, signal=None, ended_ms=now_ms) for key in keys])


class Host:
    """One agent that does not fail, with its executor, which is always there."""

    def __init__(
        self,
        node: Node,
        engine: Engine,
        master: MasterShell,
        processes: Processes,
        *,
        gather_ms: int,
    ) -> None:
        """Registers at once. A busy agent waits for ``gather_ms`` before it takes what has come."""
        self.name = node.name
        settings = AgentSettings(
            hostname=node.name,
            total=node.total,
            attributes=node.attributes,
            history_count_max=_REMEMBERED,
            sandbox_count_max=_REMEMBERED,
        )
        self.machine = AgentMachine(settings, restore([], settings))
        self._engine = engine
        self._master = master
        self._processes = processes
        self._gather_ms = gather_ms
        self._pace = Pace(BUSY_EVENTS)
        self._inbox: Inbox[events.Event] = Inbox(engine, self._take)
        self._reminder = Reminder(engine, self.machine.next_deadline_ms, lambda: self._take([]))
        self._turn = Turn(self.machine, has_journal=False)
        self._session = 0
        self._register()

    def _register(self) -> None:
        now_ms = self._engine.now_ms
        executor = events.ExecutorConnected(isolation="none", running=(), ended=())
        begin: list[events.Event] = [events.AgentStarted(boot_id="boot"), executor, events.SessionOpened()]
        decided = self.machine.turn(begin, now_ms)
        hello = next(action for action in decided if isinstance(action, actions.SendRegistration))

        def connected(session: int) -> to_master.Event:
            self._session = session
            return registration(session, hello, now_ms)

        self._receive(self._master.connect(connected, self._receive))

    def _receive(self, orders: list[Order]) -> None:
        """A message of the master."""
        master = self._master.machine.master
        epoch, settings = master.epoch, master.settings
        self._put([order_of(epoch, settings, order) for order in orders])  # type: ignore[arg-type]  # none to frameworks

    def _put(self, happened: list[events.Event]) -> None:
        """Take what has happened: at once, or together with what else comes soon if much does."""
        if self._inbox.is_planned or (self._gather_ms and self._pace.is_busy(self._engine.now_ms)):
            self._inbox.put(happened, wait_ms=self._gather_ms)
        else:
            self._take(happened)

    def _take(self, happened: list[events.Event]) -> None:
        now_ms, machine, turn = self._engine.now_ms, self.machine, self._turn
        self._pace.note(len(happened), now_ms)
        statuses: tuple[TaskStatus, ...] = ()
        message: list[to_master.Event] = []
        processes = self._processes
        turn.events.extend(happened)
        while True:
            turn.run(now_ms, events_max=sys.maxsize)
            # No journal is read where no agent fails.
            for action in turn.release():
                if type(action) in _OF_NO_CONCERN:
                    continue
                if isinstance(action, StartProcess):
                    processes.order(action)
                elif isinstance(action, SendStatuses):
                    statuses = statuses + action.statuses if statuses else action.statuses
                else:
                    self._carry_out(action, message)
            if not turn.events:
                break
        if statuses:
            message.append(to_master.StatusesReported(session=self._session, statuses=statuses))
        if message:
            self._master.send(message)
        if processes.ordered:
            # They report soon, which makes the deadlines of their launches void: only an earlier one is worth a wake-up.
            wakes_ms: int | None = now_ms + processes.start(self._engine, self._put) + self._gather_ms
        else:
            wakes_ms = self._reminder.at_ms
        if wakes_ms is None or machine.may_be_due_before(wakes_ms):
            self._reminder.by(machine.next_deadline_ms())

    def _carry_out(self, action: actions.Action, message: list[to_master.Event]) -> None:
        """Add to what is to be sent, or to what the turn under way has still to take."""
        match action:
            case actions.SendHeartbeat():
                beat = to_master.AgentBeat(session=self._session, used=action.used, tasks=action.tasks)
                message.append(beat)
            case actions.MeasureUsage():
                # What tasks use is not modelled: they hold what they asked for, and nobody has measured it.
                self._turn.events.append(events.UsageMeasured(measurements=()))
            case _:
                raise AssertionError(f"host {self.name}: {action} on a cluster in which nothing fails")
