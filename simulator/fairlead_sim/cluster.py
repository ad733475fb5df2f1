"""A cluster on virtual time: the real cores of the master and of the agents, wired together.

What is modelled is what the shells stand for: streams (``network``), processes and the agent's journal
(``cluster_agent``), the master's registry, and the programs that use the cluster (``cluster_framework``). The cores are
the ones that run on hosts; they do not know where they are. Everything that happens is an occurrence on one engine, so a
run is repeated exactly by its generator's seed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fairlead_agent.core import actions as agent_actions
from fairlead_agent.core import events as to_agent
from fairlead_agent.core.state import AgentSettings
from fairlead_master.allocation.api import Weight
from fairlead_master.core import actions, events
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_proto.codes import RefusalCode
from fairlead_proto.ids import AgentId, FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_sim.cluster_agent import HostOptions, SimulatedAgent
from fairlead_sim.cluster_framework import Delivery, FrameworkOptions, Job, SimulatedFramework
from fairlead_sim.engine import Alarm, Engine
from fairlead_sim.network import Connection, End, Message, Network, NetworkOptions


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
    """Whoever watches a run; each is called after the step and before its actions are carried out."""

    master: Callable[[Machine, events.Event, Sequence[actions.Action]], None] = lambda *_: None
    agent: Callable[[SimulatedAgent, to_agent.Event, Sequence[agent_actions.Action]], None] = lambda *_: None
    framework: Callable[[str, Delivery], None] = lambda *_: None


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
        self._alarm = Alarm(engine, lambda: self.step(events.Ticked()))
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
        self._alarm.move(self.machine.next_deadline_ms(self._engine.now_ms))

    def crash(self) -> None:
        """Kill the process: what it knows is gone, what it wrote down is not."""
        self.machine = None
        self._connections.clear()
        self._agent_sessions.clear()
        self._alarm.move(None)
        self._crash_after = None

    def crash_within_step(self, after_actions: int, on_crash: Callable[[], None]) -> None:
        """Have ``on_crash`` called in the next step that has more than so many actions, when they are carried out."""
        self._crash_after, self._on_crash = after_actions, on_crash

    def step(self, event: events.Event) -> None:
        """Take one event now, and carry out what follows."""
        machine = self.machine
        if machine is None:
            return
        decided = machine.step(event, self._engine.now_ms)
        self._counters[type(event).__name__] += 1
        self._observers.master(machine, event, decided)
        for number, action in enumerate(decided):
            if self._crash_after == number:
                self._crash_after = None
                self._on_crash()
                return
            self._carry_out(machine, action)
        self._alarm.move(machine.next_deadline_ms(self._engine.now_ms))

    def _received(self, connection: Connection, message: Message) -> None:
        if isinstance(message, events.AgentConnected | events.FrameworkConnected):
            self._connections[connection.number] = connection
            if isinstance(message, events.AgentConnected):
                self._agent_sessions[connection.number] = None
        if connection.number in self._connections:
            self.step(message)  # type: ignore[arg-type]  # the peers' shells send events of the master's core

    def _lost(self, connection: Connection) -> None:
        if self._connections.pop(connection.number, None) is None:
            return
        if connection.number in self._agent_sessions:
            del self._agent_sessions[connection.number]
            self.step(events.AgentDisconnected(session=connection.number, reason="the stream broke"))
        else:
            self.step(events.FrameworkDisconnected(session=connection.number))

    def _carry_out(self, machine: Machine, action: actions.Action) -> None:
        self._counters[type(action).__name__] += 1
        if isinstance(action, actions.Durable):
            self.registry.write(action)
        elif isinstance(action, actions.AnswerOperator):
            self.answers.append(action)
        else:
            self._send(machine.master.epoch, machine.master.settings, action)

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
            framework_id, role = action.framework_id, action.role
            orders = [to_agent.LaunchOrder(framework_id, role, spec) for spec in action.tasks]
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
        self.master = SimulatedMaster(
            engine, self.kinds, settings or CoreSettings(), self.observers, self.counters
        )
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

        def tell(which: str, event: to_agent.Event, decided: list[agent_actions.Action]) -> None:
            self.observers.agent(self.agents[which], event, decided)

        agent = SimulatedAgent(name, self.engine, self.network, settings, options or HostOptions(), tell)
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
            self.engine,
            self.network,
            options or FrameworkOptions(),
            role=Role(role),
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
        """Kill the master now, or amid its next step with more than so many actions, and start it again later."""
        if self.master.machine is None:
            return
        if after_actions is not None:
            self.master.crash_within_step(after_actions, lambda: self.crash_master(down_ms))
            return
        self.master.crash()
        self.network.is_host_up = False
        self.network.break_all()
        self.engine.after(down_ms, self._start_master)

    def _start_master(self) -> None:
        self.network.is_host_up = True
        self.master.start()
