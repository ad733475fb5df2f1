"""What a master wants done: orders to its shell, in the imperative, as plain values.

Actions of a step are carried out in their order. A ``Store…`` or ``Forget…`` action is durable before any action after
it leaves the process: an id a peer has been told must survive the master. ``durability`` says what leaves while nothing
can be made durable.
"""

from collections.abc import Mapping
from typing import Final, get_args

from fairlead_master.allocation.weights import Weight
from fairlead_proto.codes import CallCode, ErrorCode, Rejection
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, OfferId, Role, TaskId
from fairlead_proto.orders import ToAgent
from fairlead_proto.resources import Vector
from fairlead_proto.tasks import TaskStatus
from fairlead_proto.value import short_value, value

# --- to frameworks -----------------------------------------------------------------------------------------------


@value
class WelcomeFramework:
    """Tell a session who it is."""

    session: int
    framework_id: FrameworkId
    role: Role
    failover_timeout_ms: int
    heartbeat_interval_ms: int


@value
class InfeasibleClass:
    """A class no registered agent is large enough for."""

    class_id: ClassId
    best_agent_id: AgentId | None
    missing: Vector
    detail: str


@value
class AnswerCall:
    """Answer a call."""

    session: int
    request_id: int
    code: CallCode
    detail: str = ""
    demand_version: int = 0
    infeasible: tuple[InfeasibleClass, ...] = ()


@short_value
class LaunchAnswer:
    """What became of one task of an accept; ``rejection`` None means launched."""

    task_id: str
    rejection: Rejection | None = None
    detail: str = ""


@value
class AnswerAccept:
    """Answer an accept, task by task in the order of the call."""

    session: int
    request_id: int
    offer_id: OfferId
    answers: tuple[LaunchAnswer, ...]


@value
class OfferTerms:
    """What is on offer."""

    offer_id: OfferId
    agent_id: AgentId
    hostname: str
    attributes: Mapping[str, str]
    class_id: ClassId
    demand_version: int
    unit: Vector
    units: int
    lease_ms: int


@value
class SendOffers:
    """Make offers to a framework."""

    session: int
    offers: tuple[OfferTerms, ...]


@value
class RescindOffers:
    """Take offers back."""

    session: int
    offer_ids: tuple[OfferId, ...]
    reason: str


@value
class ForwardStatuses:
    """Tell a framework about its tasks, in order."""

    session: int
    statuses: tuple[TaskStatus, ...]


@value
class FinishReconciliation:
    """Say that a reconciliation is answered, and whose tasks could not be judged."""

    session: int
    request_id: int
    recovering_agent_ids: tuple[AgentId, ...]


@value
class AnnounceAgentGone:
    """Tell a framework with tasks on it that an agent will not return."""

    session: int
    agent_id: AgentId
    reason: str


@value
class EndFrameworkSession:
    """Send a last error and close the session."""

    session: int
    code: ErrorCode
    detail: str


# --- durable -----------------------------------------------------------------------------------------------------


@value
class StoreFramework:
    """Write down a framework: it may come back under its id."""

    framework_id: FrameworkId
    name: str
    role: Role
    principal: str
    failover_timeout_ms: int


@value
class ForgetFramework:
    """The framework is over; its id never works again."""

    framework_id: FrameworkId


@value
class StoreAgent:
    """Write down an admitted agent: a restarted master waits for it, unless it was away already."""

    agent_id: AgentId
    hostname: str
    total: Vector
    attributes: tuple[tuple[str, str], ...]
    is_away: bool = False


@value
class ForgetAgent:
    """The agent is gone for good."""

    agent_id: AgentId


@value
class StoreWeight:
    """Write down the weight of a role."""

    role: Role
    weight: Weight


@value
class StorePolicy:
    """Write down how the cluster allocates."""

    policy: str
    placement: str
    when_head_does_not_fit: str
    demand: str = "declared"


# --- to operators ------------------------------------------------------------------------------------------------


@value
class KillOutcome:
    """What became of one kill an operator asked for."""

    task_id: TaskId
    framework_id: FrameworkId | None
    outcome: str
    """``killing``, ``already over``, ``unknown``, ``pending`` or ``ambiguous``."""
    detail: str = ""


@value
class AnswerOperator:
    """Answer an operator's request; ``error`` empty means it was done."""

    request: int
    code: CallCode = CallCode.OK
    error: str = ""
    outcomes: tuple[KillOutcome, ...] = ()
    tasks_killed: int = 0


Durable = StoreFramework | ForgetFramework | StoreAgent | ForgetAgent | StoreWeight | StorePolicy
DURABLE: Final[frozenset[type]] = frozenset(get_args(Durable))
"""What is written down before any action after it leaves the process."""

ToFramework = (
    WelcomeFramework
    | AnswerCall
    | AnswerAccept
    | SendOffers
    | RescindOffers
    | ForwardStatuses
    | FinishReconciliation
    | AnnounceAgentGone
    | EndFrameworkSession
)
Action = Durable | ToFramework | ToAgent | AnswerOperator
