"""A cluster on virtual time: the real cores of the master and of the agents, wired together.

What is modelled is what the shells stand for: streams (``network``), processes and the agent's journal
(``cluster_agent``), the master's registry, and the programs that use the cluster (``cluster_framework``). The cores are
the ones that run on hosts; they do not know where they are. Everything that happens is an occurrence on one engine, so a
run is repeated exactly by its generator's seed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from fairlead_agent.core import events as to_agent
from fairlead_agent.core.state import AgentSettings
from fairlead_master.allocation.weights import Weight
from fairlead_master.core import actions, events
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_master.core.turn import Turn
from fairlead_proto.codes import RefusalCode
from fairlead_proto.ids import AgentId, FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_sdk.events import Event
from fairlead_sim.cluster_agent import AgentObservers, HostOptions, SimulatedAgent
from fairlead_sim.cluster_framework import FrameworkOptions, Job, SimulatedFramework
from fairlead_sim.disk import Disk, DiskOptions
from fairlead_sim.engine import Alarm, Engine
from fairlead_sim.framework_stream import Delivery, Heartbeat
from fairlead_sim.network import Connection, End, Message, Network, NetworkOptions

DISK_IS_FULL: Final = "the disk is full"


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
class Observers:
    """Whoever watches a run; each is called after the step and before its actions are carried out.

    Of a framework's session, with what happened in it.
    """

    master: Callable[[Machine, events.Event, Sequence[actions.Action]], None] = lambda *_: None
    agent: AgentObservers = field(default_factory=AgentObservers)
    framework: Callable[[str, Event], None] = lambda *_: None
    written: Callable[[Sequence[actions.Durable]], None] = lambda *_: None
    """Of what the master's disk has."""
    no_room: Callable[[], None] = lambda: None
    """Of a write for which the master's disk had no room."""
    left: Callable[[actions.Action], None] = lambda *_: None
    """Of what leaves the master, before it does."""


class SimulatedMaster:
    """The master's process, which can crash and come back."""

    def __init__(
        self,
        engine: Engine,
        kinds: ResourceKinds,
        settings: CoreSettings,
        observers: Observers,
        counters: Counter[str],
    ) -> None:
        self.machine: Machine | None = None
        """None while its process is down."""
        self.registry = Registry()
        self.answers: list[actions.AnswerOperator] = []
        """To operators, in order."""
        self._engine = engine
        self._kinds = kinds
        self._settings = settings
        self._observers = observers
        self._counters = counters
        self._connections: dict[int, Connection] = {}
        self._agent_sessions: dict[int, None] = {}
        self.disk = Disk(engine, DiskOptions())
        self._turn: Turn | None = None
        self._is_planned = False
        self._is_syncing = False
        self._writing: list[actions.Durable] = []
        self._alarm = Alarm(engine, lambda: self._run(self._turn) if self._turn is not None else None)
        self._crash_after: int | None = None
        self._on_crash: Callable[[], None] = lambda: None

    @property
    def end(self) -> End:
        """The end of the network that peers dial."""
        return End(self._received, self._lost)

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
        self.machine = Machine(self._kinds, settings, self.registry.begin(), self._engine.now_ms)
        self._turn = Turn(self.machine, self._shortage)
        self._turn.step = partial(self._step, self.machine)
        self._alarm.move(self.machine.next_deadline_ms(self._engine.now_ms))
        self._engine.after(settings.heartbeat_interval_ms, partial(self._beat, self.machine))

    def _beat(self, machine: Machine) -> None:
        """Show every framework that the master is there."""
        if machine is not self.machine:
            return
        beat = Delivery(machine.master.epoch, Heartbeat(self._engine.now_ms))
        for session, connection in self._connections.items():
            if session not in self._agent_sessions:
                connection.send_down(beat)
        self._engine.after(machine.master.settings.heartbeat_interval_ms, partial(self._beat, machine))

    def _shortage(self) -> str | None:
        return DISK_IS_FULL if self.disk.is_full and self.disk.looks_full else None

    def crash(self) -> None:
        """Kill the process: what it knows is gone, what it wrote down is not; of a write under way nobody can say."""
        if self._writing and self._engine.random.random() < 0.5:
            self._write_down()
        self.machine = self._turn = None
        self._writing = []
        self._is_planned = self._is_syncing = False
        self._connections.clear()
        self._agent_sessions.clear()
        self._alarm.move(None)
        self._crash_after = None

    def crash_amid_turn(self, after_actions: int, on_crash: Callable[[], None]) -> None:
        """Have ``on_crash`` called as soon as more than so many actions leave together, after so many of them."""
        self._crash_after, self._on_crash = after_actions, on_crash

    def post(self, event: events.Event) -> None:
        """Take one event in the next turn, with all that happens in this millisecond; nothing if the process is down."""
        if self._turn is not None:
            self._turn.events.append(event)
            self._plan(self._turn)

    def _plan(self, turn: Turn) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._engine.after(0, lambda: self._run(turn))

    def _run(self, turn: Turn) -> None:
        if turn is not self._turn:
            return
        self._is_planned = False
        now_ms = self._engine.now_ms
        self._alarm.move(turn.run(lambda: now_ms))
        self._carry_on(turn)
        if turn.events and turn is self._turn:
            self._plan(turn)

    def _step(self, machine: Machine, event: events.Event, now_ms: int) -> list[actions.Action]:
        decided = machine.step(event, now_ms)
        self._counters[type(event).__name__] += 1
        self._counters.update(type(action).__name__ for action in decided)
        self._observers.master(machine, event, decided)
        return decided

    def _carry_on(self, turn: Turn) -> None:
        """Let leave what may, and write what is to be written."""
        by_session, unaddressed = turn.collect()
        leaving = [*unaddressed, *(order for orders in by_session.values() for order in orders)]
        for number, action in enumerate(leaving):
            if self._crash_after == number:
                self._crash_after = None
                self._on_crash()
                return
            self._let_go(action)
        self._writing = self._writing or turn.to_write()
        if self._writing and not self._is_syncing:
            self._is_syncing = True
            self.disk.sync(lambda: self._end_write(turn))

    def _end_write(self, turn: Turn) -> None:
        if turn is not self._turn:
            return
        self._is_syncing = False
        if self.disk.is_full:
            self._writing = []
            self._observers.no_room()
            turn.lacked_room(DISK_IS_FULL, self._engine.now_ms)
            self._plan(turn)
        else:
            self._write_down()
            turn.written()
        self._carry_on(turn)

    def _write_down(self) -> None:
        for action in self._writing:
            self.registry.write(action)
        self._observers.written(self._writing)
        self._writing = []

    def _received(self, connection: Connection, message: Message) -> None:
        is_first = isinstance(message, events.AgentConnected | events.FrameworkConnected)
        is_open = connection.number in self._connections
        # A live master refuses such a session for good.
        assert is_first != is_open, (
            f"session {connection.number}: a first message expected once, got {message}"
        )
        if is_first:
            self._connections[connection.number] = connection
            if isinstance(message, events.AgentConnected):
                self._agent_sessions[connection.number] = None
        self.post(message)  # type: ignore[arg-type]  # the peers' shells send events of the master's core

    def _lost(self, connection: Connection) -> None:
        if self._connections.pop(connection.number, None) is None:
            return
        if connection.number in self._agent_sessions:
            del self._agent_sessions[connection.number]
            self.post(events.AgentDisconnected(session=connection.number, reason="the stream broke"))
        else:
            self.post(events.FrameworkDisconnected(session=connection.number))

    def _let_go(self, action: actions.Action) -> None:
        self._observers.left(action)
        if isinstance(action, actions.AnswerOperator):
            self.answers.append(action)
        elif not isinstance(action, actions.Durable) and self.machine is not None:
            self._send(self.machine.master.epoch, self.machine.master.settings, action)

    def _send(
        self, epoch: int, settings: CoreSettings, action: actions.ToFramework | actions.ToAgent
    ) -> None:
        connection = self._connections.get(action.session)
        if connection is None:
            return
        if isinstance(action, actions.ToFramework):
            message: Message = Delivery(epoch, action)
        else:
            message = order_of(epoch, settings, action)
        if isinstance(action, actions.EndFrameworkSession | actions.EndAgentSession):
            del self._connections[action.session]
            self._agent_sessions.pop(action.session, None)
            connection.end(message)
        else:
            connection.send_down(message)


def order_of(epoch: int, settings: CoreSettings, action: actions.ToAgent) -> to_agent.Event:
    """What an agent's shell makes of a message of the master."""
    match action:
        # Those of every task come first, as cases are tried in their order.
        case actions.AcknowledgeStatuses():
            return to_agent.StatusesAcknowledged(epoch=epoch, items=action.items)
        case actions.LaunchTasks():
            orders = [to_agent.LaunchOrder(action.framework_id, spec) for spec in action.tasks]
            return to_agent.LaunchRequested(epoch=epoch, orders=tuple(orders))
        case actions.ConfirmAgent():
            return to_agent.Registered(
                epoch=epoch, agent_id=action.agent_id, heartbeat_interval_ms=settings.heartbeat_interval_ms
            )
        case actions.KillTask():
            order = to_agent.KillOrder(
                key=(action.framework_id, action.task_id),
                grace_period_ms=action.grace_period_ms,
                reason=action.reason,
            )
            return to_agent.KillRequested(epoch=epoch, orders=(order,))
        case actions.PingAgent():
            return to_agent.Pinged(epoch=epoch)
        case actions.EndAgentSession():
            code = RefusalCode[action.code.name]
            return to_agent.RegistrationRefused(epoch=epoch, code=code, detail=action.detail)


class Cluster:
    """One master, its agents and its frameworks. Nothing happens before ``start`` and ``run_for``."""

    def __init__(
        self,
        engine: Engine,
        *,
        kinds: ResourceKinds | None = None,
        settings: CoreSettings | None = None,
        network: NetworkOptions | None = None,
        observers: Observers | None = None,
    ) -> None:
        self.engine = engine
        self.kinds = kinds or ResourceKinds()
        self.counters: Counter[str] = Counter()
        """The master's events and actions by type."""
        self.observers = observers or Observers()
        self.settings = settings or CoreSettings()
        self.master = SimulatedMaster(engine, self.kinds, self.settings, self.observers, self.counters)
        self.network = Network(engine, network or NetworkOptions(), self.master.end)
        self.agents: dict[str, SimulatedAgent] = {}
        self.frameworks: dict[str, SimulatedFramework] = {}

    def add_agent(
        self,
        name: str,
        total: Vector,
        *,
        attributes: Mapping[str, str] | None = None,
        options: HostOptions | None = None,
    ) -> SimulatedAgent:
        """One more host; its agent is started by ``start``, or by the caller if the cluster runs already."""
        settings = AgentSettings(hostname=name, total=total, kinds=self.kinds, attributes=attributes or {})
        agent = SimulatedAgent(
            name, self.engine, self.network, settings, options or HostOptions(), self.observers.agent
        )
        self.agents[name] = agent
        return agent

    def add_framework(
        self,
        name: str,
        jobs: Sequence[Job],
        *,
        role: str = "default",
        options: FrameworkOptions | None = None,
    ) -> SimulatedFramework:
        """One more framework with its work; started by ``start``, or by the caller if the cluster runs already."""
        framework = SimulatedFramework(
            name,
            self.network,
            self.kinds,
            options or FrameworkOptions(),
            role=role,
            heartbeat_interval_ms=self.settings.heartbeat_interval_ms,
            jobs=jobs,
            tell=self.observers.framework,
        )
        self.frameworks[name] = framework
        return framework

    def start(self) -> None:
        """Start every process."""
        self.master.start()
        for agent in self.agents.values():
            agent.start()
        for framework in self.frameworks.values():
            framework.start()

    def run_for(self, duration_ms: int) -> None:
        """Let so much time pass."""
        self.engine.run_until(self.engine.now_ms + duration_ms)

    def crash_master(self, down_ms: int, *, after_actions: int | None = None) -> None:
        """Kill the master now, or when more than so many actions leave together, and start it again later."""
        if self.master.machine is None:
            return
        if after_actions is not None:
            self.master.crash_amid_turn(after_actions, lambda: self.crash_master(down_ms))
            return
        self.master.crash()
        self.network.is_host_up = False
        self.network.break_all()
        self.engine.after(down_ms, self._start_master)

    def _start_master(self) -> None:
        self.network.is_host_up = True
        self.master.start()
