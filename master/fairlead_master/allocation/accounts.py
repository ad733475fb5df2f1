"""What the allocator keeps of a framework, its demand classes and its role.

Plain records without behaviour of their own beyond sums: the allocator alone changes them.
"""

from dataclasses import dataclass, field

from fairlead_master.allocation.api import Policy, Weight
from fairlead_master.allocation.measured import UseEstimate
from fairlead_master.allocation.search import Shape
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import Vector, add, scale


@dataclass(slots=True, eq=False)
class Demand:
    """One demand class of a framework."""

    framework_id: FrameworkId
    class_id: ClassId
    shape: Shape
    target: int = 0
    """Units wanted beyond what was accepted, those now in offers included."""
    pending: int = 0
    """Units wanted and not in an offer: what a cycle may grant."""
    declined: dict[AgentId, int] = field(default_factory=dict)
    """Until when (ms) it takes nothing on which agent."""
    declined_everywhere_until_ms: int | None = None
    unfit_since_ms: int | None = None
    """Since when it has been passed over as the first in the policy's order; None if it has not."""

    @property
    def wants(self) -> bool:
        """Whether a cycle may grant a unit of it."""
        return self.pending > 0 and self.declined_everywhere_until_ms is None


@dataclass(slots=True, eq=False)
class Framework:
    """A framework, what it holds and what it wants."""

    framework_id: FrameworkId
    role: "RoleAccount"
    charged: Vector
    """Offered or held."""
    units: int = 0
    """Units offered or tasks held."""
    wish: Vector = ()
    """``charged`` and all pending units together. Kept only while the policy follows wishes."""
    wish_units: int = 0
    """How many units that is. Kept as ``wish`` is."""
    used: Vector | None = None
    """What its tasks were last measured to use; None before the first measurement."""
    estimate: UseEstimate | None = None
    """How much of what it declares it uses; None before the first sample."""
    demands: dict[ClassId, Demand] = field(default_factory=dict)
    """In declared order."""
    offered: dict[ClassId, int] = field(default_factory=dict)
    """Units out in offers by class, classes that are no longer declared included; no zeros."""
    wanting: int = 0
    """Demands a cycle may grant a unit of."""
    targeted: int = 0
    """Demands that want something, be it all in offers."""
    awake: bool = False
    """Whether it takes part in its policy: it wants something that might fit."""
    began: int = 0
    """Its number in the order in which frameworks began to wait; 0 if it does not wait."""
    filters: dict[tuple[ClassId, AgentId], int] = field(default_factory=dict)
    """What it declined on single agents, and until when (ms); the oldest first. Bounded."""
    ready: list[Demand] = field(default_factory=list)
    """Demands that might be served, the first in declared order last. True for one wake stamp only."""
    ready_stamp: int = -1

    @property
    def pending(self) -> int:
        """Units wanted and not offered."""
        return sum(demand.pending for demand in self.demands.values())

    def wish_from_books(self) -> Vector:
        """``wish``, computed from what it holds and what it waits for."""
        wish = self.charged
        for demand in self.demands.values():
            wish = add(wish, scale(demand.shape.unit, demand.pending))
        return wish


@dataclass(slots=True, eq=False)
class RoleAccount:
    """A role with at least one framework."""

    role: Role
    weight: Weight
    frameworks: dict[FrameworkId, Framework] = field(default_factory=dict)
    only: Framework | None = None
    """Its framework if there is only one."""
    policy: Policy | None = None
    """Ranks its frameworks; None while there is only one, which needs no ranking."""
    awake_count: int = 0
    """Of its frameworks, those awake. The role takes part in the policy while there is one."""
    waiting_count: int = 0
    """Of its frameworks, those that began to wait."""
    began: int = 0
    """Its number in the order in which roles began to wait; 0 if none of its frameworks waits."""

    def charged(self, zero: Vector) -> Vector:
        """What its frameworks hold together."""
        return tuple(
            [sum(column) for column in zip(zero, *(f.charged for f in self.frameworks.values()), strict=True)]
        )

    def used(self, zero: Vector) -> Vector:
        """What the tasks of its frameworks were last measured to use together."""
        return tuple(
            [
                sum(column)
                for column in zip(zero, *(f.used or zero for f in self.frameworks.values()), strict=True)
            ]
        )

    def wish(self, zero: Vector) -> Vector:
        """What its frameworks hold and want together."""
        return tuple(
            [sum(column) for column in zip(zero, *(f.wish for f in self.frameworks.values()), strict=True)]
        )

    @property
    def wish_units(self) -> int:
        """Units its frameworks hold and want together."""
        return sum(framework.wish_units for framework in self.frameworks.values())

    @property
    def units(self) -> int:
        """Units its frameworks hold together."""
        return sum(framework.units for framework in self.frameworks.values())

    @property
    def pending(self) -> int:
        """Units wanted and not offered."""
        return sum(framework.pending for framework in self.frameworks.values())
