"""What a master wants done: orders to its shell, in the imperative, as plain values.

Actions of a step are carried out in their order. A ``Store…`` or ``Forget…`` action is durable before any action after
it leaves the process: an id a peer has been told must survive the master. ``durability`` says what leaves while nothing
can be made durable.
"""

from typing import Final, get_args

from fairlead_master.allocation.weights import Weight
from fairlead_proto.codes import CallCode
from fairlead_proto.framework_events import ToFramework
from fairlead_proto.ids import AgentId, FrameworkId, Role, TaskId
from fairlead_proto.orders import ToAgent
from fairlead_proto.resources import Vector
from fairlead_proto.value import value

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

Action = Durable | ToFramework | ToAgent | AnswerOperator
