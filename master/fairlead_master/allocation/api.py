"""What the allocation module is told, what it answers, and the interface of a policy.

The allocator (``allocator.Allocator``) is told facts: agents, frameworks, weights, demands, charges, releases. Asked for
a cycle, it answers with grants. It decides from these facts and from nothing else, keeps its indexes up to date as
facts arrive, and never sees offers' ids, leases, messages or the network.

Words: an *account* is what a policy ranks: a role, or a framework within its role. *Charged* is what fairness counts:
offered or held by tasks. A *unit* is one task's demand of a class.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import Vector
from fairlead_proto.value import value


class Grant(NamedTuple):
    """The allocator's decision: ``units`` of a class of a framework on one agent, already charged.

    A named tuple and not a frozen dataclass, because a cycle makes ten thousand of them and a dataclass of eight fields
    takes four times as long to make: a tenth of the whole cycle.
    """

    framework_id: FrameworkId
    role: Role
    agent_id: AgentId
    class_id: ClassId
    unit: Vector
    units: int
    key_before: float
    """Of the role, before the first unit of this grant and after the last."""
    key_after: float


@dataclass(frozen=True, slots=True)
class Prices:
    """What resources cost under a policy whose fluid optimum is a market (paper 000: the multipliers)."""

    of_whole: tuple[float, ...]
    """By place in the vector, what all of a resource costs, in units of weight; 0 for what is not scarce."""
    overload: float
    """Part of a resource by which the demand at these prices exceeds it, at most."""
    slackness: float
    """What is charged for resources that are not all in demand at these prices, as a part of all that is charged."""

    @property
    def error(self) -> float:
        """The larger of the two. Both are 0 at the optimum, and nowhere else: its conditions (3) and (4)."""
        return max(self.overload, self.slackness)


class Policy(ABC):
    """Ranks accounts: the one with the smallest key that wants something is served next.

    A policy is told of each change and keeps its own index, so that ``first`` and every report cost O(log n) amortised.
    Equal keys go to the account that was added earlier. Accounts are opaque strings. A policy knows nothing of
    agents but the total capacity, and nothing of placement.

    Three things are told only to policies that ask for them: what accounts wish for, what time it is, and what accounts
    measurably use. A policy that does not ask need not mention them.
    """

    name: str
    """As the operator writes it, parameters included: ``drf``, ``slots:4``."""
    follows_wishes: bool = False
    """Whether the key depends on what accounts hold and want together, so that ``set_wish`` must be told."""
    follows_use: bool = False
    """Whether the key depends on what accounts measurably use, so that ``observe`` must be told. What such a policy is
    told of charges is always what was declared."""
    interval_ms: int | None = None
    """How often keys are looked at again because time passes; None: time means nothing, ``advance`` is never told."""
    remembers: bool = False
    """Whether keys depend on what happened before, so that a policy made anew from the books may rank otherwise."""
    balances: bool = False
    """Whether a group of accounts counts above for its level (``balance.Balance``) and not for all it holds, so that
    ``recount`` is told of it."""
    counts_units: bool = False
    """Whether keys are made of numbers of units and not of amounts. Asked of policies that balance."""

    first: Callable[[], str | None]
    """The active account with the smallest key; None if none is active. A field, so that a policy may hand on the method
    of its index: the call it saves is a twentieth of a decision."""

    @abstractmethod
    def set_capacity(self, capacity: Vector, slots: int) -> None:
        """The sum over active agents; ``slots`` is the sum of their slots where the policy has slots, else 0."""

    @abstractmethod
    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:
        """A new account, resting, that holds ``charged`` in ``units`` units.

        Both are zero if the account is new to the cluster and not only to this policy.
        """

    @abstractmethod
    def remove(self, account: str) -> None:
        """Forget an account; it holds nothing any more."""

    @abstractmethod
    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on."""

    @abstractmethod
    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:
        """The account got ``units`` more of ``unit``; gives its key before and after that."""

    @abstractmethod
    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units`` of ``unit``."""

    def recount(self, account: str, change: Vector, units: int) -> None:
        """The account counts for ``change`` in ``units`` units more, all together and maybe below zero; nobody asks for its key.

        Of accounts that the ranking gets to know with what they hold, or whose holdings count otherwise than before.
        """
        self.charge(account, change, 1)
        self.charge(account, (0,) * len(change), units - 1)

    def begin_waiting(self, account: str, number: int) -> None:  # noqa: B027 - most policies need not know
        """The account wants something after having wanted nothing; whoever began later has a larger number.

        Said before ``activate``, and not again when an offer comes back, so that arrival order is kept.
        """

    @abstractmethod
    def activate(self, account: str) -> None:
        """The account wants something that might fit: it takes part in ``first``. Repeats are harmless."""

    @abstractmethod
    def deactivate(self, account: str) -> None:
        """The account does not take part in ``first`` for now. Repeats are harmless."""

    @abstractmethod
    def key(self, account: str) -> float:
        """The account's key now."""

    def set_wish(self, account: str, wish: Vector) -> None:  # noqa: B027 - most policies need not know
        """The account holds and wants ``wish`` in all: what is charged to it plus every unit it still waits for.

        A grant does not change it, since a unit waited for becomes one charged. Zero is an account that holds and wants
        nothing. Between two calls of ``first`` it may go down and up again, as an offer comes back and is wanted anew.
        """

    def set_wish_units(self, account: str, units: int) -> None:  # noqa: B027 - see above
        """How many units the next ``set_wish`` of the account is told in: those it holds plus those it waits for."""

    def advance(self, now_ms: int) -> None:  # noqa: B027 - see above
        """It is ``now_ms``. Told before each fact and each cycle, if ``interval_ms`` is set; never goes back."""

    def observe(self, account: str, excess: Vector) -> None:  # noqa: B027 - see above
        """The account's measured tasks use ``excess`` more than is charged for them, less where it is below zero.

        As rates: milli-CPUs, bytes held, ... What is charged for anything else is not measured.
        """

    def follow(self, above: "Policy") -> None:  # noqa: B027 - see above
        """The accounts ranked here are together one account of ``above``, a policy of the same kind. Told first of all."""

    def agree_with(self, other: "Policy") -> None:  # noqa: B027 - see above
        """Take over what of ``other``, the same policy over the same accounts, depends on its history within a tolerance.

        So that a policy made from the books can be compared with the one in force, key by key.

        Raises:
            AssertionError: it is off by more than the tolerance.
        """

    def prices(self) -> Prices | None:
        """What resources cost, for policies that have prices; None for others."""
        return None

    def find_bottlenecks(self) -> tuple[int, ...] | None:
        """Places of the resources that are contended now, for policies that look for such; None for others."""
        return None


MakePolicy = Callable[[], Policy]
"""Makes policies of one kind that know no account yet: the allocator chooses the kind, and each level has its own."""


class AllocationError(ValueError):
    """A setting or a fact that cannot be used; the message says what was expected and what came."""


@value
class Decision:
    """A grant with its number and time, as kept in the bounded decision log."""

    number: int
    """From 1, in the order of decisions since the allocator was made."""
    time_ms: int
    policy: str
    grant: Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBooks:
    """What the allocator knows of one agent."""

    total: Vector
    charged: Vector
    free: Vector
    """``total - charged``; negative where an agent shrank, or where slots gave more than there is."""
    tasks: int
    """Units offered or held there: the slots taken, under a policy that has slots."""
    active: bool
    reserved_for: FrameworkId | None
    """Whose unit the agent is kept for; None if for nobody's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRow:
    """A role as the policy sees it, the roles below it included."""

    role: Role
    parent: Role | None
    """The role above it; None at the top."""
    weight: Weight
    charged: Vector
    """Offered or held."""
    counted: Vector
    """What the policy counts for it: the same, or what its tasks are estimated to use of it."""
    dominant_share: float
    """Largest share of an active capacity, of what is counted and before dividing by the weight; 0 if there is no
    capacity."""
    dominant_resource: str
    """Its name; empty if the share is 0."""
    key: float
    rank: int
    """1 is served next among the roles beside it that want something; 0 wants nothing."""
    fair_share: float
    """Weight over the weights of the roles beside it that hold or want something, of what the parent's is (1 at the top); 0
    for a role that does neither."""
    pending: int
    """Units wanted and not offered."""
    frameworks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasibility:
    """Why a unit can never run on the agents registered now, even if they were empty."""

    agents: int
    """Registered, active or not."""
    agents_matching: int
    """Of them, meeting the constraints."""
    fits_without_constraints: bool
    """Whether some agent that does not meet the constraints is large enough."""
    best_agent_id: AgentId | None
    """Among the matching ones, the one whose largest relative shortfall is smallest; None if none matches."""
    best_total: Vector | None
    missing: Vector
    """What that agent lacks; the whole unit if none matches."""


@dataclass(slots=True)
class Counters:
    """Work done since the allocator was made; what the tests count in place of time."""

    cycles: int = 0
    """That had something to look at."""
    idle_cycles: int = 0
    decisions: int = 0
    """Units granted."""
    looks: int = 0
    """Times a cycle found out who is next, and whether a unit fits: a unit granted, a shape parked, a framework put to sleep."""
    agents_examined: int = 0
    """Checks of one agent against one class: looks at one column of it, and what it takes at most to match it with constraints."""
    agents_asked: int = 0
    """The same before there is a demand, to find out whether any agent could ever hold a unit."""


@dataclass(frozen=True, slots=True)
class AllocationSettings:
    """What an operator may change on a running cluster, and the bounds of a cycle."""

    policy: str = "drf"
    placement: str = "align"
    """``align``, ``pack`` or ``spread``."""
    demand: str = "declared"
    """What policies count: what is ``declared`` for tasks, or what such tasks of the framework were ``measured`` to use
    (``measured.UseEstimate``). Placement always goes by what is declared: a task is promised that much."""
    when_head_does_not_fit: str = "skip"
    """``skip`` (work-conserving, with reservations) or ``freeze`` (paper 000, section 4.1)."""
    reservation_after_ms: int = 10_000
    """How long the head's unit may be passed over under ``skip`` before an agent is reserved for it. Ten seconds is
    several offer leases: shorter, and a single slow framework makes the cluster hold machines empty; much longer, and a
    large task waits for as long as small ones keep coming."""
    looks_per_cycle_max: int = 1_000
    """Then the cycle stops and the next one carries on, so that whoever asks for one does not wait for all that is wanted: some
    8 ms, as a look takes 5 to 10 µs. Of a hundred, what a cycle costs by itself would show."""
    agents_examined_per_cycle_max: int = 25_000
    """The same for agents that are looked at for them: up to 0.4 µs each. After 1,000 looks half of them are left."""
    units_per_grant_max: int = 1_000
    """Keeps one accept under the bound of tasks per accept."""
