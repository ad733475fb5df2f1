"""What a session asks of the master, as plain values. ``wire`` makes messages of them.

Calls without amounts are those of ``fairlead_proto.framework_calls``, which the master's core has as events.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, SupportsFloat

from fairlead_proto.codes import DeclineScope
from fairlead_proto.framework_calls import (
    FrameworkCall,
    KillAsked,
    OffersDeclined,
    ReconcileAsked,
    StatusesAcknowledged,
    TeardownAsked,
)
from fairlead_proto.tasks import ArrayMember, Constraint
from fairlead_sdk.amounts import Amounts
from fairlead_sdk.task import Task

MEMBER_BYTES: Final = 128
"""What the two variables and the index in the name of an array's task take in a message, and a little more."""

Scope = DeclineScope
"""The name that programs know it by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Opens a session; an empty id asks for a new framework."""

    framework_id: str = ""
    name: str
    role: str = ""
    failover_timeout_ms: int = 0
    principal: str = ""
    last_epoch: int = 0
    weight: float = 0.0
    """Of the role, if it has none yet; 0 leaves it alone."""

    def __post_init__(self) -> None:
        """Say what a type checker would have said; without one, a bad argument is to be named as well.

        Raises:
            ValueError: an argument is of another type.
        """
        for name in ("framework_id", "name", "role", "principal"):
            text = getattr(self, name)
            if not isinstance(text, str):
                raise ValueError(f"{name}: expected a text, got {text!r}")  # noqa: TRY004 - one kind of error
        if not isinstance(self.weight, SupportsFloat):
            raise ValueError(f"weight: expected a number, got {self.weight!r}")  # noqa: TRY004 - as above


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One class: what one task of it needs, how many are wanted, and where they may run."""

    class_id: str
    unit: Amounts
    """All zeros do not say: then offers are of the master's quantum."""
    units: int
    constraints: tuple[Constraint, ...] = ()
    waiting_task_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDemand:
    """All that is wanted beyond the accepts sent before; replaces every earlier demand."""

    version: int
    classes: tuple[Demand, ...]
    lift_declines: bool = False
    """Whether what was declined may be offered again at once; otherwise it stays declined where its class is as before."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One attempt to run a task, under the attempt's own id."""

    task_id: str
    task: Task
    member: ArrayMember | None = None
    """Which one, of an array whose template the task is."""

    @property
    def name(self) -> str:
        """For people: the task's name, of a member of an array with its index, or else the id."""
        name = self.task.name if self.member is None else self.member.name(self.task.name)
        return name or self.task_id

    @property
    def size_bytes(self) -> int:
        """About how large the description of the attempt is in a message."""
        size = len(self.task_id) + self.task.size_bytes
        if self.member is None:
            return size
        inserted = (
            0 if self.member.argument is None else sum(map(len, self.member.command(self.task.command)))
        )
        return size + 4 * inserted + MEMBER_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """Takes an offer, whole, for these tasks."""

    offer_id: str
    agent_id: str
    launches: tuple[Launch, ...]


Call = Hello | SetDemand | Accept | FrameworkCall

NumberedCall = tuple[int, Call]
"""A call with its request id."""


def call_size(call: Call) -> int:
    """About how many bytes a call takes in a message; generous, so that a bound on it holds."""
    match call:
        case Accept():
            return 64 + sum(launch.size_bytes for launch in call.launches)
        case SetDemand():
            return 64 + sum(_demand_size(demand) for demand in call.classes)
        case KillAsked() | ReconcileAsked():
            return 16 + _texts_size(call.task_ids)
        case OffersDeclined():
            return 64 + len(call.reason) + _texts_size(call.offer_ids)
        case StatusesAcknowledged():
            return 16 + sum(len(task_id) + len(agent_id) + 16 for task_id, _, agent_id in call.items)
        case Hello() | TeardownAsked():
            return 1024


def _texts_size(texts: Sequence[str]) -> int:
    return sum(map(len, texts)) + 4 * len(texts)


def _demand_size(demand: Demand) -> int:
    values = sum(
        len(constraint.attribute) + _texts_size(constraint.values) for constraint in demand.constraints
    )
    return 128 + values + _texts_size(demand.waiting_task_ids)
