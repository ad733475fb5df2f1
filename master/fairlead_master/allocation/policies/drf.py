"""Dominant resource fairness: the account with the smallest weighted dominant share is served next.

    key_i = max over resources j of U_ij / (C_j w_ij)

Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of Multiple Resource Types", algorithm 1 for the order and
section 4.3 for the weights: U_ij is what account i holds or is offered of resource j (``used``), C_j the total of the
active agents (``capacity``), w_ij the account's ``Weight.of(j)``. How we differ: resources of zero capacity are skipped,
equal keys go to the account that was added earlier (the paper leaves ties open), and what is merely offered counts.

The share is one correctly rounded division of two integers (``divisors``), so that equal shares of different resources,
such as 12/18 and 6/9, and equal shares for different weights, such as 3 for 0.3 and 2 for 0.2, are equal keys and the
tie-break decides.
"""

from operator import add, sub, truediv

from fairlead_master.allocation.divisors import (
    UNDIVIDED,
    Divisors,
    divisors,
    dominant_share,
    regrained,
)
from fairlead_master.allocation.policies.skeleton import Holder, KeyedPolicy
from fairlead_proto.resources import Vector, scale


class _Account(Holder[Divisors]):
    """``key`` is the weighted dominant share."""

    __slots__ = ("by", "grains", "step", "unit", "used")

    def __init__(self, name: str, used: Vector, units: int) -> None:  # noqa: ARG002 - shares count
        super().__init__(name, 0.0)
        self.used = used
        """In grains."""
        self.by, self.grains = UNDIVIDED
        self.unit: Vector = ()
        """The last one that was counted in grains."""
        self.step: Vector = ()
        """The same in grains."""

    def divide(self, by: Divisors) -> float:
        """What is held, in grains, is divided by these from now on."""
        self.used = regrained(self.used, self.grains, by.grains)
        self.by, self.grains = by
        self.unit = ()
        return dominant_share(self.used, self.by)

    def count(self, unit: Vector, units: int) -> float:
        """So many more are held."""
        if units == 1:
            used = tuple(map(add, self.used, unit if self.grains == 1 else self._in_grains(unit)))
        elif units == -1:
            used = tuple(map(sub, self.used, unit if self.grains == 1 else self._in_grains(unit)))
        else:
            used = tuple(map(add, self.used, scale(unit, units * self.grains)))
        self.used = used
        key: float = max(map(truediv, used, self.by))  # dominant_share, without the call
        return key

    def _in_grains(self, unit: Vector) -> Vector:
        """Most decisions are about the same unit as the one before."""
        if unit is not self.unit:
            self.unit, self.step = unit, scale(unit, self.grains)
        return self.step


class DominantResourceFairness(KeyedPolicy[Divisors]):
    """The policy ``drf``. See the module's docstring for its key."""

    name = "drf"
    balances = True

    def __init__(self) -> None:
        super().__init__(_Account, divisors)

    def recount(self, account: str, change: Vector, units: int) -> None:  # noqa: ARG002 - shares count
        """The account counts for so much more, or less."""
        self.charge(account, change, 1)
