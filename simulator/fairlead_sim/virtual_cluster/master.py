"""The master of a virtual cluster: the live core in turns, a registry on a disk, and its sessions.

What the live shell does around the turn is done here: events of a millisecond are taken together, durable actions are
written in batches while turns go on, and what one turn has for a peer is one message. The process can crash and come back.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from fairlead_master.allocation.weights import Weight
from fairlead_master.core import actions, events
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_master.core.turn import EVENTS_PER_TURN_MAX, Turn
from fairlead_proto.framework_calls import FrameworkConnected
from fairlead_proto.framework_events import EndFrameworkSession, Heartbeat
from fairlead_proto.ids import AgentId, FrameworkId, Role
from fairlead_proto.orders import EndAgentSession
from fairlead_proto.reports import AgentConnected
from fairlead_proto.resources import ResourceKinds
from fairlead_sim.engine import Engine, Reminder
from fairlead_sim.virtual_cluster.disk import Disk
from fairlead_sim.virtual_cluster.network import Connection, End, Message, Network, NetworkOptions

DISK_IS_FULL: Final = "the disk is full"

_FIRST: Final = (AgentConnected, FrameworkConnected)
_LAST: Final = (EndFrameworkSession, EndAgentSession)


@dataclass(slots=True)
class Registry:
    """What masters write down, kept across their lives."""

    epoch: int = 0
    frameworks: dict[FrameworkId, actions.StoreFramework] = field(default_factory=dict)
    agents: dict[AgentId, actions.StoreAgent] = field(default_factory=dict)
    weights: dict[Role, Weight] = field(default_factory=dict)
    policy: actions.StorePolicy | None = None

    def write(self, action: actions.Durable) -> None:
        """Write down one durable action."""
        match action:
            case actions.StoreFramework():
                self.frameworks[action.framework_id] = action
            case actions.ForgetFramework():
                self.frameworks.pop(action.framework_id, None)
            case actions.StoreAgent():
                self.agents[action.agent_id] = action
            case actions.ForgetAgent():
                self.agents.pop(action.agent_id, None)
            case actions.StoreWeight():
                self.weights[action.role] = action.weight
            case actions.StorePolicy():
                self.policy = action

    def begin(self) -> Remembered:
        """What a master finds that starts now."""
        self.epoch += 1
        return Remembered(
            epoch=self.epoch,
            frameworks=tuple(self.frameworks.values()),
            agents=tuple(self.agents.values()),
            weights=tuple(self.weights.items()),
        )


@dataclass(slots=True)
class MasterObservers:
    """Whoever watches a master; each is told before anything follows from it."""

    decided: Callable[[Machine, events.Event, Sequence[actions.Action]], None] = lambda *_: None
    """Of each step."""
    written: Callable[[Sequence[actions.Durable]], None] = lambda *_: None
    """Of what the disk has."""
    no_room: Callable[[], None] = lambda: None
    """Of a write for which the disk had no room."""
    left: Callable[[actions.Action], None] = lambda *_: None
    """Of what leaves, before it does."""
    counters: Counter[str] = field(default_factory=Counter)
    """Events and actions by type."""


class SimulatedMaster:
    """The master's process."""

    def __init__(
        self,
        engine: Engine,
        kinds: ResourceKinds,
        settings: CoreSettings,
        network: NetworkOptions,
        *,
        disk: Disk | None,
        observers: MasterObservers | None = None,
        events_per_turn_max: int = EVENTS_PER_TURN_MAX,
    ) -> None:
        """Without a disk nothing is written down, and without observers nobody is told, which takes a fifth off a run.

        Args:
            engine: its time.
            kinds: of resources.
            settings: of its core.
            network: of the network to it.
            disk: that of its registry.
            observers: told of all it does.
            events_per_turn_max: then its turn ends, whatever is left.
        """
        self.machine: Machine | None = None
        """None while its process is down."""
        self.registry = Registry()
        self.answers: list[actions.AnswerOperator] = []
        """To operators, in order."""
        self.disk = disk
        self.network = Network(engine, network, End(self._received, self._lost, self._run, self._open))
        self._engine = engine
        self._kinds = kinds
        self._settings = settings
        self._observers = observers
        self._events_per_turn_max = events_per_turn_max
        self._connections: dict[int, Connection] = {}
        self._agent_sessions: dict[int, None] = {}
        self._turn: Turn | None = None
        self._is_planned = False
        self._is_syncing = False
        self._writing: list[actions.Durable] = []
        self._reminder = Reminder(engine, self._next_deadline_ms, self._plan)
        self._crash_after: int | None = None
        self._on_crash: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start the process from the registry."""
        assert self.machine is None, "the master is running"
        settings = self._settings
        policy = self.registry.policy
        if policy is not None:
            allocation = replace(
                settings.allocation,
                policy=policy.policy,
                placement=policy.placement,
                when_head_does_not_fit=policy.when_head_does_not_fit,
                demand=policy.demand,
            )
            settings = replace(settings, allocation=allocation)
        machine = self.machine = Machine(self._kinds, settings, self.registry.begin(), self._engine.now_ms)
        self._turn = Turn(machine, self._shortage if self.disk is not None else None)
        if self._observers is not None:
            self._turn.step = partial(self._step, machine, self._observers)
        self._reminder.by(self._next_deadline_ms())
        if self._observers is not None:
            self._engine.after(settings.heartbeat_interval_ms, partial(self._beat, machine))

    def _next_deadline_ms(self) -> int | None:
        return None if self.machine is None else self.machine.next_deadline_ms(self._engine.now_ms)

    def _beat(self, machine: Machine) -> None:
        """Show every framework that the master is there."""
        if machine is not self.machine:
            return
        for session, connection in self._connections.items():
            if session not in self._agent_sessions:
                connection.send_down([Heartbeat(self._engine.now_ms)])
        self._engine.after(machine.master.settings.heartbeat_interval_ms, partial(self._beat, machine))

    def _shortage(self) -> str | None:
        disk = self.disk
        return DISK_IS_FULL if disk is not None and disk.is_full and disk.looks_full else None

    def crash(self) -> None:
        """Kill the process: what it knows is gone, what it wrote down is not; of a write under way nobody can say."""
        if self._writing and self._engine.random.random() < 0.5:
            self._write_down()
        self.machine = self._turn = None
        self._writing = []
        self._is_planned = self._is_syncing = False
        self._connections.clear()
        self._agent_sessions.clear()
        self._crash_after = None

    def crash_amid_turn(self, after_actions: int, on_crash: Callable[[], None]) -> None:
        """Have ``on_crash`` called as soon as more than so many actions leave together, after so many of them."""
        self._crash_after, self._on_crash = after_actions, on_crash

    # --- turns ---

    def post(self, event: events.Event) -> None:
        """Take one event in the next turn, with all that happens in this millisecond; nothing if the process is down."""
        if self._turn is not None:
            self._turn.events.append(event)
            self._plan()

    def _plan(self) -> None:
        """Have a turn after all that happens now."""
        if not self._is_planned and self._turn is not None:
            self._is_planned = True
            self._engine.after(0, partial(self._run_planned, self._turn))

    def _run_planned(self, turn: Turn) -> None:
        if turn is self._turn:
            self._is_planned = False
            self._run()

    def _run(self) -> None:
        turn, now_ms = self._turn, self._engine.now_ms
        if turn is None:
            return
        self._reminder.by(turn.run(lambda: now_ms, events_max=self._events_per_turn_max))
        self._carry_on(turn)
        if turn.events:
            self._plan()

    def _step(
        self, machine: Machine, observers: MasterObservers, event: events.Event, now_ms: int
    ) -> list[actions.Action]:
        decided = machine.step(event, now_ms)
        observers.counters[type(event).__name__] += 1
        observers.counters.update(type(action).__name__ for action in decided)
        observers.decided(machine, event, decided)
        return decided

    def _carry_on(self, turn: Turn) -> None:
        """Let leave what may, and write what is to be written."""
        by_session, unaddressed = turn.collect()
        if self._observers is not None and not self._tell(self._observers, by_session, unaddressed):
            return
        if unaddressed:
            self.answers += [action for action in unaddressed if isinstance(action, actions.AnswerOperator)]
        if by_session:
            self._send(by_session)
        if self.disk is not None:
            self._writing = self._writing or turn.to_write()
            if self._writing and not self._is_syncing:
                self._is_syncing = True
                self.disk.sync(partial(self._end_write, turn, self.disk))

    def _tell(
        self,
        observers: MasterObservers,
        by_session: dict[int, list[actions.Action]],
        unaddressed: Sequence[actions.Action],
    ) -> bool:
        """Tell of what leaves; False if the process dies amid it, which takes with it what was sent in this moment."""
        leaving = [*unaddressed, *(order for orders in by_session.values() for order in orders)]
        for number, action in enumerate(leaving):
            if self._crash_after == number:
                self._crash_after = None
                self._on_crash()
                return False
            observers.left(action)
        return True

    def _end_write(self, turn: Turn, disk: Disk) -> None:
        if turn is not self._turn:
            return
        self._is_syncing = False
        if disk.is_full:
            self._writing = []
            if self._observers is not None:
                self._observers.no_room()
            turn.lacked_room(DISK_IS_FULL, self._engine.now_ms)
            self._plan()
        else:
            self._write_down()
            turn.written()
        self._carry_on(turn)

    def _write_down(self) -> None:
        for action in self._writing:
            self.registry.write(action)
        if self._observers is not None:
            self._observers.written(self._writing)
        self._writing = []

    # --- sessions ---

    def _begin_session(self, connection: Connection, first: events.Event) -> None:
        session = connection.number
        # A live master refuses another first message for good.
        assert isinstance(first, _FIRST), f"session {session}: expected a first message, got {first}"
        assert self.machine is not None, "its process is up"
        connection.epoch = self.machine.master.epoch
        self._connections[session] = connection
        if isinstance(first, AgentConnected):
            self._agent_sessions[session] = None

    def _open(self, connection: Connection, message: Message) -> Message:
        """A session opened by this message, and the answer, at once."""
        turn = self._turn
        assert turn is not None, "sessions are opened at once where no master fails"
        self._begin_session(connection, message[0])
        for event in message:
            turn.take(event, self._engine.now_ms)
        by_session, _ = turn.collect()
        # Whatever else follows has time until the next turn.
        self._plan()
        return by_session.get(connection.number, [])

    def _received(self, connection: Connection, message: Message) -> None:
        if self._turn is None:
            return
        if connection.number not in self._connections:
            self._begin_session(connection, message[0])
        else:
            assert not isinstance(message[0], _FIRST), (
                f"session {connection.number} began twice: {message[0]}"
            )
        self._turn.events.extend(message)

    def _lost(self, connection: Connection) -> None:
        session = connection.number
        if self._connections.pop(session, None) is None:
            return
        if session in self._agent_sessions:
            del self._agent_sessions[session]
            self.post(events.AgentDisconnected(session=session, reason="the stream broke"))
        else:
            self.post(events.FrameworkDisconnected(session=session))

    def _send(self, by_session: dict[int, list[actions.Action]]) -> None:
        connections = self._connections
        messages: list[tuple[Connection, Message]] = []
        for session, orders in by_session.items():
            connection = connections.get(session)
            if connection is None:
                continue
            if isinstance(orders[-1], _LAST):
                del connections[session]
                self._agent_sessions.pop(session, None)
                connection.end(orders)
            else:
                messages.append((connection, orders))
        if messages:
            self.network.deliver(messages)
