"""Everything an agent knows, changed only inside ``AgentMachine``; and what one step has decided so far."""

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead_agent.core import limits
from fairlead_agent.core.actions import Action, Checkpoint, SendStatuses
from fairlead_agent.core.deadlines import Deadlines
from fairlead_agent.core.records import IdentityTaken, Record
from fairlead_proto.ids import AgentId, FrameworkId, TaskKey
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskSpec, TaskStatus, TaskUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """What does not change while the agent runs."""

    hostname: str
    total: Vector
    kinds: ResourceKinds = field(default_factory=ResourceKinds)
    attributes: Mapping[str, str] = field(default_factory=dict)
    sandbox_retention_ms: int = limits.SANDBOX_RETENTION_MS
    sandbox_count_max: int = limits.SANDBOX_COUNT_MAX
    sandbox_bytes_max: int = limits.SANDBOX_BYTES_MAX
    history_count_max: int = limits.HISTORY_COUNT_MAX


@dataclass(slots=True, kw_only=True)
class Kill:
    """Why and since when a task is being ended."""

    reason: Reason
    requested_ms: int
    is_forced: bool = False
    """SIGKILL has been sent."""


@dataclass(slots=True, kw_only=True)
class LiveTask:
    """A task this agent has taken and that is not over."""

    key: TaskKey
    """Its name in the whole cluster."""
    spec: TaskSpec
    """Without its environment."""
    launched_ms: int
    state: TaskState = TaskState.STARTING
    """STAGING is the master's: whatever is here has arrived."""
    latest: TaskStatus | None = None
    started_ms: int = 0
    """When it was RUNNING first; 0 before."""
    is_ordered: bool = False
    """StartProcess was given."""
    kill: Kill | None = None
    usage: TaskUsage | None = None
    """Latest measurement."""
    is_usage_new: bool = False
    """Not yet in a heartbeat."""

    @property
    def sequence(self) -> int:
        """Number of the latest status; 0 before the first."""
        return self.latest.sequence if self.latest else 0

    @property
    def framework_id(self) -> FrameworkId:
        """Whose it is."""
        return self.key[0]


@dataclass(slots=True, kw_only=True)
class Sandbox:
    """The sandbox of a task that is over."""

    ended_ms: int
    size_bytes: int


@dataclass(slots=True, kw_only=True)
class Leave:
    """The agent is on its way out."""

    """A master wants it so."""
    is_stopping_tasks: bool
    reason: str
    is_over: bool = False
    """Nothing is left to wait for."""


@dataclass(slots=True, kw_only=True)
class AgentState:
    """The whole state. A key is in ``live`` or in ``over`` or unknown, never in both."""

    agent_id: AgentId = field(default=AgentId(""))
    boot_id: str = ""
    incarnation: int = 0
    epoch: int = 0
    """Highest seen."""
    isolation: str = ""

    is_session_open: bool = False
    session_count: int = 0
    """Opened in this life."""
    is_registered: bool = False
    heartbeat_interval_ms: int = 0
    is_executor_connected: bool = False
    had_executor: bool = False
    """An executor was connected since this process began."""
    leave: Leave | None = None

    live: dict[TaskKey, LiveTask] = field(default_factory=dict)
    over: dict[TaskKey, TaskStatus] = field(default_factory=dict)
    """The final status of each task that is over and remembered."""
    fileless: dict[TaskKey, None] = field(default_factory=dict)
    """Those of ``over`` that had no files."""
    history: OrderedDict[TaskKey, None] = field(default_factory=OrderedDict)
    """Those of ``over`` that are fully acknowledged, oldest first; bounded."""
    outboxes: dict[TaskKey, list[TaskStatus]] = field(default_factory=dict)
    """Statuses that the master has not acknowledged, of each task oldest first; never empty."""
    resend_delays_ms: dict[TaskKey, int] = field(default_factory=dict)
    """Of outboxes that were sent again; the others wait for ``RESEND_FIRST_MS``."""
    held: list[TaskStatus] = field(default_factory=list)
    """To be sent once the master has answered the registration, which did not contain them."""
    unordered: dict[TaskKey, TaskSpec] = field(default_factory=dict)
    """Live tasks that wait for an executor, environment included: the only place that holds one."""
    sandboxes: OrderedDict[TaskKey, Sandbox] = field(default_factory=OrderedDict)
    """Of tasks that are over, oldest end first; a key in ``over`` but not here has had its sandbox removed."""
    sandbox_bytes: int = 0
    """The sum over ``sandboxes``."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    usage_ms: int = 0
    """When usage was last measured; 0 if never."""
    cpu_time_ms: dict[TaskKey, int] = field(default_factory=dict)
    """Of each measured live task at that time."""
    tallies: Counter[tuple[TaskState, Reason]] = field(default_factory=Counter)
    """Statuses made since the start of this process, for metrics."""
    executors_lost: int = 0
    """Since the start of this process."""
    used_cpus_milli: int = 0
    """Over the time between the last two measurements."""


@dataclass(slots=True, kw_only=True)
class Step:
    """Collects the outcome of one event.

    A machine has one and uses it for each of its steps: ``finish`` leaves it empty. Most events lead to one or two of these
    things, and to make all anew for each would cost as much as what follows from it.
    """

    settings: AgentSettings
    state: AgentState
    now_ms: int = 0
    records: list[Record] = field(default_factory=list)
    is_identity_new: bool = False
    is_status_new: bool = False
    actions: list[Action] = field(default_factory=list)
    statuses: list[TaskStatus] = field(default_factory=list)
    endings: list[Action] = field(default_factory=list)

    def write(self, record: Record) -> None:
        """Have ``record`` in the journal before any action of this step is carried out."""
        self.records.append(record)

    def write_identity(self) -> None:
        """Have the agent's id and epoch on disk, whatever happens to the host."""
        self.is_identity_new = True

    def do(self, action: Action) -> None:
        """Order ``action``, after all that was ordered before."""
        self.actions.append(action)

    def do_last(self, action: Action) -> None:
        """Order ``action`` after the statuses of this step: what it ends is what carries them."""
        self.endings.append(action)

    def finish(self) -> list[Action]:
        """Give the actions of the step, and be ready for the next one.

        The records come first: a status that is sent, or a process that is started, before it is written down could be
        contradicted by the agent's next life. Statuses come after the other actions, in one message, so that a start
        is not held up by encoding them.
        """
        if self.is_identity_new:
            self.records.insert(0, identity_of(self.state))
        actions: list[Action] = []
        records, statuses = self.records, self.statuses
        if records:
            is_durable = self.is_identity_new or self.is_status_new
            actions.append(Checkpoint(records=tuple(records), is_durable=is_durable))
            records.clear()
            self.is_identity_new = self.is_status_new = False
        if self.actions:
            actions += self.actions
            self.actions.clear()
        if statuses:
            actions.append(SendStatuses(statuses=tuple(statuses)))
            statuses.clear()
        if self.endings:
            actions += self.endings
            self.endings.clear()
        return actions


def identity_of(state: AgentState) -> IdentityTaken:
    """The record of who the agent is now."""
    return IdentityTaken(
        agent_id=state.agent_id, boot_id=state.boot_id, incarnation=state.incarnation, epoch=state.epoch
    )
