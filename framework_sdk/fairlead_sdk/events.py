"""What a session tells the application, as plain values: what came from the master, checked, and what it means.

``Connected``, ``Disconnected``, ``SessionOver`` and ``DemandAnswered`` are the session's own; the others are what the master
said, most of them by the master's own values. An ``Offer`` names its resources, which a vector of the master's only numbers,
and a ``Welcome`` has what the master's shell adds to its core's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead_proto.framework_events import (
    AnnounceAgentGone,
    AnswerAccept,
    AnswerCall,
    EndFrameworkSession,
    FinishReconciliation,
    Heartbeat,
    LaunchAnswer,
    RescindOffers,
)
from fairlead_proto.peers import NONE, Capabilities
from fairlead_proto.tasks import Constraint, TaskStatus
from fairlead_sdk.amounts import Amounts
from fairlead_sdk.constraints import parse_constraints
from fairlead_sdk.errors import FairleadError

AcceptItem = LaunchAnswer
"""The name that programs know it by."""


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
    capabilities: Capabilities = NONE
    """Of the master, as far as they are known here."""


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
class DemandAnswered:
    """The latest demand sent so far was answered."""

    result: AnswerCall


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
class StatusReceived:
    """A report about a task that was not seen before."""

    status: TaskStatus


Received = (
    Welcome
    | AnswerCall
    | AnswerAccept
    | OffersReceived
    | RescindOffers
    | StatusReceived
    | FinishReconciliation
    | AnnounceAgentGone
    | EndFrameworkSession
    | Heartbeat
)
"""What may come from the master."""

Event = (
    Connected
    | Disconnected
    | SessionOver
    | AnswerCall
    | DemandAnswered
    | AnswerAccept
    | OffersReceived
    | RescindOffers
    | StatusReceived
    | FinishReconciliation
    | AnnounceAgentGone
    | Heartbeat
)
"""What the application is told."""
