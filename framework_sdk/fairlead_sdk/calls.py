"""What a session asks of the master, as plain values. ``wire`` makes messages of them.

Calls without amounts are those of ``fairlead_proto.framework_calls``, which the master's core has as events.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, SupportsFloat

from fairlead_proto.codes import DeclineScope
from fairlead_proto.framework_calls import (
    FrameworkCall,
    FrameworkConnected,
    KillAsked,
    OffersDeclined,
    ReconcileAsked,
    StatusesAcknowledged,
    TeardownAsked,
)
from fairlead_proto.ids import FrameworkId, Role
from fairlead_proto.tasks import ArrayMember, Constraint
from fairlead_sdk.amounts import Amounts
from fairlead_sdk.task import Task

MEMBER_BYTES: Final = 128
"""What the two variables and the index in the name of an array's task take in a message, and a little more."""

Scope = DeclineScope
"""The name that programs know it by."""


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


Call = SetDemand | Accept | FrameworkCall

NumberedCall = tuple[int, Call]
"""A call with its request id."""


def greeting(
    *,
    name: str,
    framework_id: str = "",
    role: str = "",
    principal: str = "",
    failover_timeout_ms: int = 0,
    last_epoch: int = 0,
    weight: float = 0.0,
) -> FrameworkConnected:
    """The call that opens a session; an empty id asks for a new framework, a weight of 0 leaves the role's alone.

    Raises:
        ValueError: an argument is of another type. Without a type checker, a bad one is to be named as well.
    """
    texts = {"framework_id": framework_id, "name": name, "role": role, "principal": principal}
    for argument, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{argument}: expected a text, got {text!r}")  # noqa: TRY004 - one kind of error
    if not isinstance(weight, SupportsFloat):
        raise ValueError(f"weight: expected a number, got {weight!r}")  # noqa: TRY004 - as above
    return FrameworkConnected(
        framework_id=FrameworkId(framework_id) if framework_id else None,
        name=name,
        role=Role(role),
        principal=principal,
        failover_timeout_ms=failover_timeout_ms,
        last_epoch=last_epoch,
        weight=weight or None,
    )


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
        case FrameworkConnected() | TeardownAsked():
            return 1024


def _texts_size(texts: Sequence[str]) -> int:
    return sum(map(len, texts)) + 4 * len(texts)


def _demand_size(demand: Demand) -> int:
    values = sum(
        len(constraint.attribute) + _texts_size(constraint.values) for constraint in demand.constraints
    )
    return 128 + values + _texts_size(demand.waiting_task_ids)
