"""What the allocation module is told, what it answers, and the interface of a policy.

The allocator (``allocator.Allocator``) is told facts: agents, frameworks, weights, demands, charges, releases. Asked for
a cycle, it answers with grants. It decides from these facts and from nothing else, keeps its indexes up to date as
facts arrive, and never sees offers' ids, leases, messages or the network.

Words: an *account* is what a policy ranks: a role, or a framework within its role. *Charged* is what fairness counts:
offered or held by tasks. A *unit* is one task's demand of a class.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import Vector


@dataclass(frozen=True, slots=True)
class Grant:
    """The allocator's decision: ``units`` of a class of a framework on one agent, already charged."""

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
class Weight:
    """Entitlement of an account: one number, overridden for some resources (w_ij of DRF section 4.3)."""

    default: float = 1.0
    by_resource: Mapping[int, float] | None = None
    """Place in the vector to weight."""

    def of(self, place: int) -> float:
        """The weight for the resource at ``place`` of a vector."""
        if self.by_resource is None:
            return self.default
        return self.by_resource.get(place, self.default)


class Policy(Protocol):
    """Ranks accounts: the one with the smallest key that wants something is served next.

    A policy is told of each change and keeps its own index, so that ``first`` and every report cost O(log n) amortised.
    Equal keys go to the account that was added earlier. Accounts are opaque strings. A policy knows nothing of
    agents but the total capacity, nothing of placement, and nothing of time.
    """

    name: str
    """As the operator writes it, parameters included: ``drf``, ``slots:4``."""

    def set_capacity(self, capacity: Vector, slots: int) -> None:
        """The sum over active agents; ``slots`` is the sum of their slots where the policy has slots, else 0."""

    def add(self, account: str, weight: Weight) -> None:
        """A new account, holding and wanting nothing."""

    def remove(self, account: str) -> None:
        """Forget an account; it holds nothing any more."""

    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on."""

    def charge(self, account: str, unit: Vector, units: int) -> None:
        """The account got ``units`` more of ``unit``."""

    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units`` of ``unit``."""

    def activate(self, account: str) -> None:
        """The account wants something that might fit: it takes part in ``first``. Repeats are harmless."""

    def deactivate(self, account: str) -> None:
        """The account does not take part in ``first`` for now. Repeats are harmless."""

    def first(self) -> str | None:
        """The active account with the smallest key; None if none is active."""

    def key(self, account: str) -> float:
        """The account's key now."""


@dataclass(frozen=True, slots=True)
class AllocationSettings:
    """What an operator may change on a running cluster, and the bounds of a cycle."""

    policy: str = "drf"
    placement: str = "align"
    """``align``, ``pack`` or ``spread``."""
    when_head_does_not_fit: str = "skip"
    """``skip`` (work-conserving, with reservations) or ``freeze`` (paper 000, section 4.1)."""
    reservation_after_ms: int = 10_000
    """How long the head's unit may be passed over under ``skip`` before an agent is reserved for it. Ten seconds is
    several offer leases: shorter, and a single slow framework makes the cluster hold machines empty; much longer, and a
    large task waits for as long as small ones keep coming."""
    grants_per_cycle_max: int = 20_000
    """Then the cycle stops and the next one carries on, so that the loop is never held longer than about 0.2 s."""
    units_per_grant_max: int = 1_000
    """Keeps one accept under the bound of tasks per accept."""

