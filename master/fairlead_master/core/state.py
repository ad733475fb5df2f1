"""What a master knows: its frameworks, agents, offers and tasks, and the bounded memory of what is over.

Plain mutable records, changed only by the functions of this package under ``machine.Machine.step``. Everything that
grows is bounded by a constant of ``settings``. Iteration is over dicts in insertion order, never over sets, so that the
same events give the same actions.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.hierarchy import WEIGHTS_MAX
from fairlead_master.allocation.weights import Weight
from fairlead_master.core import settings as bounds
from fairlead_master.core.actions import Action
from fairlead_master.core.deadlines import Deadlines
from fairlead_master.core.peers import Peers
from fairlead_master.core.settings import CoreSettings
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, OfferId, Role, TaskId, TaskKey
from fairlead_proto.pace import Pace
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.task_state import TERMINAL, Reason, TaskState
from fairlead_proto.tasks import DemandClass, RunningTask, TaskStatus, TaskUsage


@unique
class AgentState(Enum):
    """Where an agent is in its life."""

    RECOVERING = "RECOVERING"
    """Known from before the master's start, not back yet."""
    ACTIVE = "ACTIVE"
    OVERCOMMITTED = "OVERCOMMITTED"
    """Connected, but its totals no longer cover its tasks: nothing of what it lacks is offered until they do."""
    DISCONNECTED = "DISCONNECTED"
    UNREACHABLE = "UNREACHABLE"


@unique
class FrameworkState(Enum):
    """Where a framework is in its life."""

    CONNECTED = "CONNECTED"
    DISCONNECTED = "DISCONNECTED"
    COMPLETED = "COMPLETED"


@dataclass(slots=True, eq=False)
class Measured:
    """What is known of a task's use."""

    since_ms: int
    """When measuring began."""
    cpu_time_ms: int
    """Spent by then."""
    last_ms: int
    last_cpu_time_ms: int
    used: Vector
    """At the last measurement, as rates: milli-CPUs, bytes held. Zeros until there are two to take a rate from."""

    @property
    def has_rate(self) -> bool:
        """Whether ``used`` was measured."""
        return self.last_ms > self.since_ms


@dataclass(slots=True, eq=False)
class Task:
    """A task some agent was asked to run, or says it runs."""

    framework_id: FrameworkId
    task_id: TaskId
    role: Role
    agent_id: AgentId
    name: str
    command: tuple[str, ...]
    labels: Mapping[str, str]
    resources: Vector
    """Empty if it ended before this master heard of it: nobody says what it asked for."""
    state: TaskState
    submitted_ms: int
    """0 if nobody says."""
    offer_id: OfferId | None = None
    """The offer it was launched with; None if it was adopted from an agent's registration."""
    sequence: int = 0
    """Of the last status taken from its agent."""
    state_sequence: int = 0
    """Of the status that says where it is now; 0 if that is the master's own judgement."""
    acknowledged: int = 0
    """By its framework, cumulative."""
    reason: Reason = Reason.NONE
    message: str = ""
    started_ms: int = 0
    finished_ms: int = 0
    exit_code: int | None = None
    signal: int | None = None
    usage: TaskUsage | None = None
    measured: Measured | None = None
    """None before the first measurement and after its end."""
    kill_reason: Reason | None = None
    """Set once somebody asked for its end; sent again until it ends."""
    kill_grace_ms: int = 0

    @property
    def is_held(self) -> bool:
        """Whether what it needs counts as held: until it is over, and not while it is unreachable."""
        return self.state is not TaskState.UNREACHABLE and self.state not in TERMINAL

    @property
    def key(self) -> TaskKey:
        """Its name in the whole cluster."""
        return self.framework_id, self.task_id


@dataclass(slots=True, eq=False)
class Framework:
    """A client that launches tasks."""

    framework_id: FrameworkId
    name: str
    role: Role
    principal: str
    failover_timeout_ms: int
    registered_ms: int
    version: str = ""
    """Of its client, which is not remembered over a restart; empty if it says none."""
    session: int | None = None
    """None while it is away."""
    away_until_ms: int | None = None
    """When its tasks are given up, while it is away."""
    state: FrameworkState = FrameworkState.DISCONNECTED
    demand_version: int = 0
    demand: dict[ClassId, DemandClass] = field(default_factory=dict)
    demand_since_ms: int = 0
    demand_bytes: int = 0
    """What ``demand`` takes in memory, estimated."""
    peer: str = ""
    """The host it last connected from; empty if nobody knows."""
    is_remembered: bool = False
    """From before this master's start: agents that are not back may have tasks of it."""
    tasks: dict[TaskId, Task] = field(default_factory=dict)
    """Those that are not over."""
    used: Vector = ()
    """What they were last measured to use together; empty before the first measurement."""
    measured_held: Vector = ()
    """What those of them that were measured hold; empty before the first measurement."""
    offers: dict[OfferId, "Offer"] = field(default_factory=dict)
    """In the order they were made."""
    offers_over: int = 0
    """The number of the last of them that nobody may use any more, although it may not have ended yet (``offers.leave``)."""
    tasks_finished: int = 0
    offers_sent: int = 0
    offers_accepted: int = 0
    offers_declined: int = 0
    offers_expired: int = 0
    remarks: list[str] = field(default_factory=list)
    """What is to be said in the answer to a long call of which more parts are to come: at most a few ids."""
    unanswered: int = 0
    """Times in a row that it let offers expire."""


@dataclass(slots=True, eq=False)
class Registration:
    """What an agent brought when it registered, as far as it is not settled."""

    left: deque[RunningTask | TaskStatus | Task]
    """In this order: tasks it runs, statuses nobody has acknowledged, tasks it was known to have, and what it has reported
    since."""
    was_known: bool
    """Before it registered; otherwise nothing it runs is adopted."""
    may_be_called_unreachable: bool
    """Tasks that only it knows of: a reconciliation may have said so."""
    reported: set[TaskKey] = field(default_factory=set)
    """The tasks that it runs, as far as they are settled."""


@dataclass(slots=True, eq=False)
class Measuring:
    """Tasks that an agent measured, as far as their figures are not taken."""

    left: deque[Task]
    at_ms: int
    """When it said so."""


@dataclass(slots=True, eq=False)
class Agent:
    """A host that runs tasks."""

    agent_id: AgentId
    hostname: str
    total: Vector
    attributes: Mapping[str, str]
    state: AgentState
    registered_ms: int = 0
    session: int | None = None
    incarnation: int = 0
    deadline_ms: int | None = None
    """When a disconnected agent becomes unreachable, or an unreachable one is gone."""
    used: Vector = ()
    """Measured; empty before the first heartbeat."""
    clock_skew_ms: int = 0
    isolation: str = ""
    version: str = ""
    tasks: dict[TaskKey, Task] = field(default_factory=dict)
    offers: dict[OfferId, "Offer"] = field(default_factory=dict)
    """In the order they were made."""
    offers_over: int = 0
    """As a framework's."""
    offers_over_how: str = ""
    """Why these are over."""
    answers_ping: bool = False
    has_registered: bool = False
    """With this master, to the last of its tasks; before it has, nobody knows which tasks it runs."""
    registration: Registration | None = None
    """What it brought, as long as that is not settled. It has a session then, and nothing of it is offered."""
    mourners: dict[FrameworkId, None] = field(default_factory=dict)
    """Frameworks that had tasks on it when it was forgotten, as far as that has come."""

    @property
    def is_connected(self) -> bool:
        """Whether messages reach it."""
        return self.session is not None


@dataclass(slots=True, eq=False)
class Offer:
    """Units of a class promised to a framework on one agent, until a deadline."""

    offer_id: OfferId
    number: int
    """In the order in which offers were made, from 1."""
    framework: Framework
    agent: Agent
    class_id: ClassId
    unit: Vector
    units: int
    expires_ms: int


@dataclass(slots=True, eq=False)
class Reconciliation:
    """All tasks of a framework, as far as their states are still to be told."""

    task_ids: deque[TaskId]
    unheard: tuple[AgentId, ...]
    """Agents that had not registered with this master when it began: tasks of theirs are not among these."""
    requests: deque[int]
    """That are answered when it ends."""
    next_requests: deque[int] = field(default_factory=deque)
    """That came since it began: another one answers them."""


@dataclass(slots=True, eq=False)
class Tallies:
    """How often what happened since the start, for metrics."""

    offers_ended: Counter[str] = field(default_factory=Counter)
    """By how they ended."""
    launches: Counter[str] = field(default_factory=Counter)
    """Tasks of accepts by what was answered: ``LAUNCHED`` or a rejection."""
    moves: Counter[str] = field(default_factory=Counter)
    """Changes of tasks by the state they came to."""


@dataclass(slots=True, eq=False)
class Master:
    """The complete state of the master."""

    kinds: ResourceKinds
    settings: CoreSettings
    epoch: int
    allocator: Allocator
    watches_time: bool = False
    """Whether the allocator must be told the time of each event; asked again when the policy changes."""
    out: list[Action] = field(default_factory=list)
    """Actions of the step under way."""

    frameworks: dict[FrameworkId, Framework] = field(default_factory=dict)
    framework_by_session: dict[int, Framework] = field(default_factory=dict)
    frameworks_away: dict[FrameworkId, Framework] = field(default_factory=dict)
    failover_deadlines: Deadlines = field(default_factory=Deadlines)
    """Of the frameworks that are away."""
    completed_frameworks: OrderedDict[FrameworkId, Framework] = field(default_factory=OrderedDict)
    agents: dict[AgentId, Agent] = field(default_factory=dict)
    agent_by_session: dict[int, Agent] = field(default_factory=dict)
    agents_heard: OrderedDict[AgentId, int] = field(default_factory=OrderedDict)
    """Connected agents and when they were last heard, longest silent first."""
    agents_doubted: dict[AgentId, int] = field(default_factory=dict)
    """Connected agents that were asked for a sign of life, and until when they may take: in order of deadlines."""
    agents_away: dict[AgentId, Agent] = field(default_factory=dict)
    """Disconnected, recovering and unreachable ones."""
    registering: dict[AgentId, Agent] = field(default_factory=dict)
    """Connected agents of which not all they brought is settled."""
    measuring: dict[AgentId, Measuring] = field(default_factory=dict)
    """Of connected agents."""
    judging: deque[AgentId] = field(default_factory=deque)
    """Agents of which nobody knows yet whether they hold more than they may, since the policy has changed."""
    giving_up: dict[AgentId, deque[Task]] = field(default_factory=dict)
    """Unreachable agents, with their tasks that are not judged yet."""
    weights: dict[Role, Weight] = field(default_factory=dict)
    peers: Peers = field(default_factory=Peers)
    """What frameworks make the master keep, by the host they connect from."""

    offers: dict[OfferId, Offer] = field(default_factory=dict)
    """In the order they were made, so the first one expires first."""
    ended_offers: OrderedDict[OfferId, str] = field(default_factory=OrderedDict)
    """How recent offers ended."""
    leaving: dict[Framework | Agent, None] = field(default_factory=dict)
    """Those of whose offers some are over and may not have ended."""
    hoarders: dict[FrameworkId, None] = field(default_factory=dict)
    """Frameworks whose leases are over, while not all of these offers have ended."""
    staging: dict[TaskKey, int] = field(default_factory=dict)
    """Tasks their agent has not spoken of yet, and until when it may take: in order of deadlines."""
    killing: OrderedDict[TaskKey, int] = field(default_factory=OrderedDict)
    """Tasks asked to end, and when to ask again: in order of deadlines."""
    ending: dict[FrameworkId, deque[Task]] = field(default_factory=dict)
    """Frameworks that are over, with the tasks whose end has not been asked for."""
    reconciling: dict[FrameworkId, Reconciliation] = field(default_factory=dict)
    """Reconciliations that are not at their end, the next one first."""
    finished: OrderedDict[TaskKey, Task] = field(default_factory=OrderedDict)
    """The last tasks that ended, oldest first."""

    recovering: dict[AgentId, None] = field(default_factory=dict)
    """Agents known from before the start that are not back, or have not brought all their tasks."""
    recovery_until_ms: int | None = None
    """While set, nothing is offered."""
    is_behind: bool = False
    """Whether the last tick left something undone that was due."""
    owes_cycle: bool = False
    """Whether the last tick had too much else to do for the allocation cycle that was due."""
    last_cycle_ms: int = -(10**9)
    pace: Pace = field(default_factory=lambda: Pace(bounds.BUSY_GRANTS))
    """Of grants."""
    offers_made: int = 0
    frameworks_made: int = 0
    agents_made: int = 0
    tasks_ended: int = 0
    tallies: Tallies = field(default_factory=Tallies)

    version: int = 0
    """How often something changed that watchers may hear of."""
    changes: deque[tuple[str, str | TaskKey, str]] = field(
        default_factory=lambda: deque(maxlen=bounds.CHANGES_KEPT)
    )
    """The last changes, oldest first: (kind, id, what). The last one made the ``version``, each before it the one before."""

    @property
    def life(self) -> str:
        """The epoch as it stands in ids: short, and never used by another start."""
        return _base_36(self.epoch)

    def note(self, kind: str, identity: str | TaskKey, what: str) -> None:
        """Record a change for watchers. A task is named by its key, of which words are made only if somebody watches."""
        self.version += 1
        self.changes.append((kind, identity, what))

    def hear(self, agent: Agent, now_ms: int) -> None:
        """A connected agent said something, so it is alive."""
        self.agents_heard[agent.agent_id] = now_ms
        self.agents_heard.move_to_end(agent.agent_id)
        if self.agents_doubted:
            self.agents_doubted.pop(agent.agent_id, None)

    def has_room_for_weight(self, role: Role) -> bool:
        """Whether the role's weight can be kept: it has one already, or there are not too many."""
        return role in self.weights or len(self.weights) < WEIGHTS_MAX

    def find_task(self, key: TaskKey) -> Task | None:
        """A live task, else one of the remembered finished ones."""
        framework = self.frameworks.get(key[0])
        if framework is not None:
            task = framework.tasks.get(key[1])
            if task is not None:
                return task
        return self.finished.get(key)


def _base_36(number: int) -> str:
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


def status_of(task: Task, agent_time_ms: int = 0) -> TaskStatus:
    """The status that says where a task is now, for reconciliation.

    With the number of the agent's status only where it repeats that one: under it, a judgement of the master's would look
    like something its framework has seen.
    """
    return TaskStatus(
        framework_id=task.framework_id,
        task_id=task.task_id,
        agent_id=task.agent_id,
        sequence=task.state_sequence,
        state=task.state,
        reason=task.reason,
        message=task.message,
        timestamp_ms=agent_time_ms,
        exit_code=task.exit_code,
        signal=task.signal,
        usage=task.usage,
    )


def remember(memory: OrderedDict[OfferId, str], offer_id: OfferId, how: str) -> None:
    """Keep how an offer ended, forgetting the oldest beyond the bound."""
    memory[offer_id] = how
    if len(memory) > bounds.ENDED_OFFERS_KEPT:
        memory.popitem(last=False)
