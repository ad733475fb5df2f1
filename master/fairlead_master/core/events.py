"""What can happen to a master: facts, in the past tense, as plain values.

A *session* is the number the shell gives to one connection; it is never used twice while the master lives.
Everything in an event has passed the border, so its fields are well-formed; whether they make sense now is for the core.
"""

from dataclasses import dataclass

from fairlead_master.allocation.weights import Weight
from fairlead_proto.framework_calls import (
    FrameworkConnected,
    KillAsked,
    OffersDeclined,
    ReconcileAsked,
    StatusesAcknowledged,
    TeardownAsked,
)
from fairlead_proto.ids import AgentId, FrameworkId, OfferId, Role, TaskId, TaskKey
from fairlead_proto.reports import AgentConnected
from fairlead_proto.resources import Vector
from fairlead_proto.tasks import DemandClass, TaskSpec, TaskStatus, TaskUsage
from fairlead_proto.value import value


@value
class FrameworkDisconnected:
    """A framework's session ended, whatever the reason."""

    session: int


@value
class DemandSet:
    """A framework said what it wants; replaces all it said before."""

    session: int
    request_id: int
    version: int
    classes: tuple[DemandClass, ...]
    cost_bytes: int = 0
    """What it takes in memory, estimated from its message."""
    lift_declines: bool = True
    """Whether what was declined may be offered again at once; a framework that does not say expects it."""


@dataclass(frozen=True, slots=True)
class InvalidTask:
    """A task description that did not pass the border."""

    task_id: str
    detail: str


@value
class OfferAccepted:
    """A framework took an offer to launch tasks; entries keep the order of the call."""

    session: int
    request_id: int
    offer_id: OfferId
    tasks: tuple[TaskSpec | InvalidTask, ...]


@value
class AgentDisconnected:
    """An agent's session ended."""

    session: int
    reason: str


@value
class StatusesReported:
    """An agent reported on tasks, in order."""

    session: int
    statuses: tuple[TaskStatus, ...]


@value
class AgentDoubted:
    """Somebody other than its session says that the agent is gone."""

    agent_id: AgentId


@value
class AgentBeat:
    """An agent is alive and measured what is used."""

    session: int
    used: Vector
    tasks: tuple[tuple[TaskKey, TaskUsage], ...] = ()
    is_last: bool = True
    """Of the parts of one heartbeat, which together are all that was measured."""


@value
class OperatorKillAsked:
    """An operator wants tasks ended; without a framework id the task ids must be unique."""

    request: int
    task_ids: tuple[TaskId, ...]
    framework_id: FrameworkId | None
    grace_period_ms: int


@value
class OperatorTeardownAsked:
    """An operator ends a framework and its tasks."""

    request: int
    framework_id: FrameworkId
    detail: str = ""
    """Why, as its session is told; empty if the operator did not say."""


@value
class WeightSet:
    """An operator set the weight of a role."""

    request: int
    role: Role
    weight: Weight


@value
class PolicySet:
    """An operator changed the policy, the placement, what happens when the head does not fit or which demand counts.

    None leaves it.
    """

    request: int
    policy: str | None = None
    placement: str | None = None
    when_head_does_not_fit: str | None = None
    demand: str | None = None


@value
class Ticked:
    """A deadline of the core has come."""


Event = (
    FrameworkConnected
    | FrameworkDisconnected
    | DemandSet
    | OfferAccepted
    | OffersDeclined
    | KillAsked
    | StatusesAcknowledged
    | ReconcileAsked
    | TeardownAsked
    | AgentConnected
    | AgentDisconnected
    | StatusesReported
    | AgentBeat
    | AgentDoubted
    | OperatorKillAsked
    | OperatorTeardownAsked
    | WeightSet
    | PolicySet
    | Ticked
)
