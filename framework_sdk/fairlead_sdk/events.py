"""What a session tells the application, as plain values: what came from the master, checked, and what it means.

``Connected``, ``Disconnected`` and ``SessionOver`` are the session's own; the others name what the master said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead_proto.codes import CallCode, ErrorCode, Rejection
from fairlead_proto.tasks import Constraint, TaskStatus
from fairlead_sdk.amounts import Amounts
from fairlead_sdk.constraints import parse_constraints
from fairlead_sdk.errors import FairleadError


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """The master took the session."""

    framework_id: str
    epoch: int
    heartbeat_interval_ms: int
    failover_timeout_ms: int
    role: str
    custom_resources: tuple[str, ...] = ()
    master_version: str = ""
    """For people; empty from a master that says none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """A session stands; ``resumed`` if it continues an earlier one of this object."""

    welcome: Welcome
    resumed: bool


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The stream broke: every offer is void. The session goes on by itself when a master answers."""

    reason: str


@dataclass(frozen=True, slots=True)
class SessionOver:
    """The session ended for good, and why."""

    error: FairleadError


@dataclass(frozen=True, slots=True, kw_only=True)
class InfeasibleClass:
    """A demand class no registered agent can ever hold."""

    class_id: str
    best_agent_id: str
    missing: Mapping[str, int]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The answer to a call."""

    request_id: int
    code: CallCode
    detail: str = ""
    demand_version: int = 0
    infeasible: tuple[InfeasibleClass, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandAnswered:
    """The latest demand sent so far was answered."""

    result: CallResult


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptItem:
    """What became of one task of an accept; ``rejection`` is None if it was launched."""

    task_id: str
    rejection: Rejection | None = None
    detail: str = ""

    @property
    def launched(self) -> bool:
        """Whether the task exists."""
        return self.rejection is None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptResult:
    """The answer to an accept: one item a task, in the order of the call.

    After a broken stream an accept is answered by reconciliation, in as many parts as that takes.
    """

    request_id: int
    offer_id: str
    items: tuple[AcceptItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Room on one agent for some units of a demand class, until its lease ends."""

    offer_id: str
    agent_id: str
    hostname: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    """``hostname`` and ``agent_id`` among them."""
    class_id: str
    demand_version: int
    units: int
    unit: Amounts
    lease_ms: int

    def meets(self, *constraints: Constraint | str) -> bool:
        """Whether the agent meets all constraints (text as in ``Task``)."""
        return all(constraint.holds(self.attributes) for constraint in parse_constraints(constraints))


@dataclass(frozen=True, slots=True)
class OffersReceived:
    """Offers, all outstanding."""

    offers: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class OffersRescinded:
    """Offers that are gone."""

    offer_ids: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class StatusReceived:
    """A report about a task that was not seen before."""

    status: TaskStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileDone:
    """Everything asked by this request has been told."""

    request_id: int
    recovering_agent_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentGone:
    """An agent will not return."""

    agent_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class SessionError:
    """The master's last word in a session."""

    code: ErrorCode
    detail: str


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The master is there."""

    master_time_ms: int


Received = (
    Welcome
    | CallResult
    | AcceptResult
    | OffersReceived
    | OffersRescinded
    | StatusReceived
    | ReconcileDone
    | AgentGone
    | SessionError
    | Heartbeat
)
"""What may come from the master."""

Event = (
    Connected
    | Disconnected
    | SessionOver
    | CallResult
    | DemandAnswered
    | AcceptResult
    | OffersReceived
    | OffersRescinded
    | StatusReceived
    | ReconcileDone
    | AgentGone
    | Heartbeat
)
"""What the application is told."""
