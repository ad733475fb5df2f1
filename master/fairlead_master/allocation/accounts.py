"""What the allocator keeps of a framework, its demand classes, its role, and the levels roles are ranked in.

Plain records without behaviour of their own beyond sums: the allocator alone changes them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import mul

from fairlead_master.allocation.api import Policy
from fairlead_master.allocation.balance import Balance, Tally
from fairlead_master.allocation.divisors import UNDIVIDED, Divisors
from fairlead_master.allocation.measured import FINENESS, Factors, UseEstimate
from fairlead_master.allocation.shape import Shape
from fairlead_master.allocation.weights import Weight
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
    is_untouched: bool = False
    """Whether no unit of it was granted since ``Reservations`` last looked. Kept only while a clock runs for it."""

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
    """``charged`` and all pending units together, as policies count them. Kept only while the policy follows wishes."""
    wish_units: int = 0
    """How many units that is. Kept as ``wish`` is."""
    excess: Vector = ()
    """What its tasks use beyond what they hold, as far as measured use counts: where the framework declares no demand, or
    demand is measured."""
    measurement: tuple[Vector, Vector] | None = None
    """What its measured tasks use, and what they hold; None before the first measurement."""
    is_declared: bool = True
    """Whether it says what its tasks need: its last demand did, if it ever had one."""
    factors: Factors = ()
    """What policies count of each resource that is declared for it, in thousandths (``measured.FINENESS``). Empty where it
    counts as it is declared."""
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
    ranking: int = 0
    """The number of the ranking that knows it: while all are ranked anew, an earlier one's where it has not had its turn."""
    counted: Tally = ()
    """``ranked`` and ``units`` as a tally, up to date within a cycle too. Kept only below a level that balances."""
    claims: dict[int, int] = field(default_factory=dict)
    """Of the classes it wants units of, how many are dominated by the resource at each place; no zeros. Kept only below
    a level that balances."""
    filters: dict[tuple[ClassId, AgentId], int] = field(default_factory=dict)
    """What it declined on single agents, and until when (ms); the oldest first. Bounded."""
    ready: list[Demand] = field(default_factory=list)
    """Demands that might be served, the first in declared order last. True for one wake stamp only."""
    ready_stamp: int = -1

    @property
    def pending(self) -> int:
        """Units wanted and not offered."""
        return sum(demand.pending for demand in self.demands.values())

    @property
    def ranked(self) -> Vector:
        """``charged``, as policies count it."""
        return self.as_counted(self.charged)

    @property
    def counted_now(self) -> Vector:
        """The same in resources' own units, rounded down."""
        if not self.factors:
            return self.charged
        return tuple([amount // FINENESS for amount in self.ranked])

    def as_counted(self, vector: Vector) -> Vector:
        """What policies count for ``vector`` of declared resources."""
        return tuple(map(mul, vector, self.factors)) if self.factors else vector

    def wish_from_books(self) -> Vector:
        """``wish``, computed from what it holds and what it waits for."""
        wish = self.charged
        for demand in self.demands.values():
            wish = add(wish, scale(demand.shape.unit, demand.pending))
        return self.as_counted(wish)


@dataclass(slots=True, eq=False)
class Level:
    """Accounts ranked against one another: the frameworks of a role, or the roles below it, or all roles at the top.

    Each level but the topmost is an account of the level above it.
    """

    name: str
    """As the policy of the level above knows it."""
    weight: Weight
    """There."""
    wish: Vector
    """What all frameworks below hold and want together. Kept only while the policy follows wishes."""
    excess: Vector
    """The sum of theirs. Kept only while the policy follows use."""
    wish_units: int = 0
    """How many units ``wish`` is. Kept as it is."""
    role: "RoleAccount | None" = None
    """Whose frameworks, or roles below it, are the members; None for the topmost."""
    above: "Level | None" = None
    members: "dict[str, Level | Framework]" = field(default_factory=dict)
    """By the name the policy knows them by, in the order in which they came."""
    policy: Policy | None = None
    """Ranks the members; None while they are one framework, which needs no ranking."""
    balance: Balance | None = None
    """What the level counts for above; None if that is all its members hold."""
    by: Divisors = UNDIVIDED
    """By what its tallies are divided. Kept only while the policy balances."""
    awake_count: int = 0
    """Of the members, those that take part. The level takes part above while there is one."""

    @property
    def began(self) -> int:
        """Its number in the order in which all began to wait; 0 if none of its members waits."""
        role = self.role
        assert role is not None, "the topmost level is in no queue"
        return role.began if role.top is self else role.own_began

    @property
    def awake(self) -> bool:
        """Whether it takes part in the level above."""
        return self.awake_count > 0

    def frameworks(self) -> "Iterator[Framework]":
        """All frameworks below, at any depth."""
        for member in self.members.values():
            if isinstance(member, Level):
                yield from member.frameworks()
            else:
                yield member


@dataclass(slots=True, eq=False)
class RoleAccount:
    """A role that has a framework, or a role below it that has one."""

    role: Role
    weight: Weight
    own: Level = field(init=False)
    """Ranks its own frameworks. Stands in ``below`` if there are roles below, directly under the parent otherwise. Belongs to
    the ranking, as ``below`` and ``only`` do, and is there from when that was told of the role."""
    parent: "RoleAccount | None" = None
    children: "dict[Role, RoleAccount]" = field(default_factory=dict)
    below: Level | None = None
    """Ranks the roles below it, and its own frameworks together as one account more; None without roles below."""
    frameworks: dict[FrameworkId, Framework] = field(default_factory=dict)
    """Its own."""
    only: Framework | None = None
    """Its framework if that is all there is to it: one framework, no role above and none below. Most roles are like
    that, and a decision about them needs the topmost level alone."""
    waiting_count: int = 0
    """Of its own frameworks and the roles below it, those that wait."""
    began: int = 0
    """The number of the framework with which that began; 0 if none waits."""
    own_waiting_count: int = 0
    own_began: int = 0
    """The same of its own frameworks alone."""

    @property
    def top(self) -> Level:
        """The level that stands for the whole role where it is ranked."""
        return self.own if self.below is None else self.below

    def all_frameworks(self) -> "Iterator[Framework]":
        """Its own and those of the roles below it, at any depth."""
        yield from self.frameworks.values()
        for child in self.children.values():
            yield from child.all_frameworks()


def note_waiting(framework: Framework) -> None:
    """The framework has begun to wait, or ended: since when its role and those above it wait."""
    role, began = framework.role, framework.began
    by = 1 if began else -1
    role.own_waiting_count += by
    if role.own_waiting_count == (began > 0):
        role.own_began = began
    account: RoleAccount | None = role
    while account is not None:
        account.waiting_count += by
        if account.waiting_count != (began > 0):
            return  # Others wait as well.
        account.began = began
        account = account.parent
