"""Asset fairness: the account whose shares of all resources add up to least is served next.

    key_i = sum over resources j of U_ij / (C_j w_ij)

Ghodsi et al., "Dominant Resource Fairness", section 5.1: U_ij is what account i holds or is offered of resource j, C_j the
total of the active agents, w_ij the account's ``Weight.of(j)`` (one weight w_i in the paper). The paper's own objection
stands: an account may end with less than its 1/n of every resource. How we differ: resources of zero capacity are skipped,
equal keys go to the account that was added earlier (the paper leaves ties open), and what is merely offered counts.

The sum is kept in integers and divided once, so that equal sums of different shares, such as 1/9 + 4/18 and 2/9 + 2/18,
are equal keys and the tie-break decides; weights count as the decimals that were written. With p_j = L / (C_j w_ij), L the least common multiple that makes them whole:

    key_i = (sum over j of U_ij p_j) / L
"""

from fractions import Fraction
from math import lcm
from operator import mul
from typing import NamedTuple

from fairlead_master.allocation.policies.skeleton import Holder, KeyedPolicy, counted
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector


class Prices(NamedTuple):
    """What one of each resource adds to the key, as whole parts of one denominator."""

    parts: Vector
    whole: int


def prices(capacity: Vector, weight: Weight) -> Prices:
    """1 / (C_j w_ij) for each place; zero where there is no capacity, so that the share there is zero."""
    exact = [
        1 / (total * Fraction(*weight.ratio(place))) if total > 0 else Fraction(0)
        for place, total in enumerate(capacity)
    ]
    whole = lcm(*(price.denominator for price in exact))
    return Prices(tuple([int(price * whole) for price in exact]), whole)


class _Account(Holder[Prices]):
    """``key`` is the weighted sum of shares, rounded once."""

    __slots__ = ("prices", "used")

    def __init__(self, name: str, used: Vector, units: int) -> None:  # noqa: ARG002 - shares count
        super().__init__(name, 0.0)
        self.used = used
        self.prices = Prices((), 1)

    def divide(self, by: Prices) -> float:
        """What is held costs this much from now on."""
        self.prices = by
        return self.count(self.used, 0)

    def count(self, unit: Vector, units: int) -> float:
        """So many more are held."""
        self.used = used = counted(self.used, unit, units)
        parts, whole = self.prices
        total: int = sum(map(mul, used, parts))
        return total / whole


class AssetFairness(KeyedPolicy[Prices]):
    """The policy ``asset``. See the module's docstring for its key."""

    name = "asset"
    balances = True

    def __init__(self) -> None:
        super().__init__(_Account, prices)

    def recount(self, account: str, change: Vector, units: int) -> None:  # noqa: ARG002 - shares count
        """The account counts for so much more, or less."""
        self.charge(account, change, 1)
