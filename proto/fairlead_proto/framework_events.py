"""What a master tells a framework, as both hold it: the master's core as actions, the SDK as what came from the master.

``framework_messages`` writes them where they leave and reads them where they arrive.
"""

from collections.abc import Mapping

from fairlead_proto.codes import CallCode, ErrorCode, Rejection
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, OfferId, Role
from fairlead_proto.resources import Vector
from fairlead_proto.tasks import TaskStatus
from fairlead_proto.value import short_value, value

# ``session`` is the master's number of the session that is told. It is not in a message: a framework has one session.


@value
class WelcomeFramework:
    """Tell a session who it is."""

    session: int = 0
    framework_id: FrameworkId
    role: Role
    failover_timeout_ms: int
    heartbeat_interval_ms: int


@value
class InfeasibleClass:
    """A class no registered agent is large enough for."""

    class_id: ClassId
    best_agent_id: AgentId | None
    """The one that comes nearest; None: no agent meets the constraints."""
    missing: Mapping[str, int]
    """What that agent lacks, by the name of the resource; zeros are left out."""
    detail: str


@value
class AnswerCall:
    """Answer a call."""

    session: int = 0
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

    @property
    def launched(self) -> bool:
        """Whether the task exists."""
        return self.rejection is None


@value
class AnswerAccept:
    """Answer an accept, task by task in the order of the call.

    After a broken stream the SDK learns the answer by reconciliation, in as many parts as that takes.
    """

    session: int = 0
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

    session: int = 0
    offers: tuple[OfferTerms, ...]


@value
class RescindOffers:
    """Take offers back."""

    session: int = 0
    offer_ids: tuple[OfferId, ...]
    reason: str


@value
class ForwardStatuses:
    """Tell a framework about its tasks, in order."""

    session: int = 0
    statuses: tuple[TaskStatus, ...]


@value
class FinishReconciliation:
    """Say that a reconciliation is answered, and whose tasks could not be judged."""

    session: int = 0
    request_id: int
    recovering_agent_ids: tuple[AgentId, ...] = ()


@value
class AnnounceAgentGone:
    """Tell a framework with tasks on it that an agent will not return."""

    session: int = 0
    agent_id: AgentId
    reason: str


@value
class EndFrameworkSession:
    """Send a last error and close the session."""

    session: int = 0
    code: ErrorCode
    detail: str


@short_value
class Heartbeat:
    """Show that the master is there; sent by its shell."""

    master_time_ms: int


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
"""What the master's core orders."""
