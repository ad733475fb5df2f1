"""What a framework asks of a master, as both hold it: the SDK as calls to send, the master's core as events.

``framework_call_messages`` writes them where they leave and reads them where they arrive. Demands and accepts are each side's
own: the SDK's name their resources, which a vector of the master's only numbers.
"""

from fairlead_proto.codes import DeclineScope
from fairlead_proto.ids import AgentId, FrameworkId, OfferId, Role, TaskId
from fairlead_proto.value import value

# ``session`` is the master's number of the session that asks. It is not in a message: a framework has one session.
# ``request_id`` is what the answer names; the SDK keeps it beside the call until the call is written.


@value
class FrameworkConnected:
    """A session said Hello."""

    session: int = 0
    framework_id: FrameworkId | None
    """None: a new framework."""
    name: str
    role: Role
    principal: str = ""
    failover_timeout_ms: int = 0
    """0: the default."""
    last_epoch: int = 0
    weight: float | None = None
    """Of the role, if it has none yet; None leaves it alone."""
    peer: str = ""
    """The host it connects from, as the network of its master says; empty if nobody knows. Bounds per peer are counted by it."""
    version: str = ""
    """Of its client, for listings, as its master reads it."""


@value
class OffersDeclined:
    """A framework gave offers back."""

    session: int = 0
    request_id: int = 0
    offer_ids: tuple[OfferId, ...]
    reason: str
    scope: DeclineScope
    ttl_ms: int
    """0: the default."""
    is_last: bool = True
    """False for the first parts of a long call, which is answered with the last one."""


@value
class KillAsked:
    """A framework wants tasks of its own ended."""

    session: int = 0
    request_id: int = 0
    task_ids: tuple[TaskId, ...]
    grace_period_ms: int
    """0: each task's own."""
    is_last: bool = True
    """False for the first parts of a long call, which is answered with the last one."""


Acknowledged = tuple[TaskId, int, AgentId]
"""Everything the agent reported of the task up to this sequence number is known; the agent may be empty."""


@value
class StatusesAcknowledged:
    """A framework has written down everything up to these sequences."""

    session: int = 0
    items: tuple[Acknowledged, ...]
    """At most one a task."""


@value
class ReconcileAsked:
    """A framework wants the state of these tasks, of all its tasks if there are none."""

    session: int = 0
    request_id: int = 0
    task_ids: tuple[TaskId, ...] = ()
    is_last: bool = True
    """False for the first parts of a long call, which is answered with the last one."""


@value
class TeardownAsked:
    """A framework ends itself and its tasks."""

    session: int = 0
    request_id: int = 0


FrameworkCall = (
    FrameworkConnected | OffersDeclined | KillAsked | StatusesAcknowledged | ReconcileAsked | TeardownAsked
)
"""What both sides hold alike."""
