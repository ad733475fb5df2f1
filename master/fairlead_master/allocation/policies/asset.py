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
from operator import add, mul, sub
from typing import NamedTuple

from fairlead_master.allocation.api import Policy, Weight
from fairlead_master.allocation.policies.ranking import Ranked, Ranking
from fairlead_proto.resources import Vector, scale


class Prices(NamedTuple):
    """What one of each resource adds to the key, as whole parts of one denominator."""

    parts: Vector
    whole: int

    def sum(self, used: Vector) -> float:
        """The key of an account that holds ``used``, rounded once."""
        total: int = sum(map(mul, used, self.parts))
        return total / self.whole


def prices(capacity: Vector, weight: Weight) -> Prices:
    """1 / (C_j w_ij) for each place; zero where there is no capacity, so that the share there is zero."""
    exact = [
        1 / (total * Fraction(*weight.ratio(place))) if total > 0 else Fraction(0)
        for place, total in enumerate(capacity)
    ]
    whole = lcm(*(price.denominator for price in exact))
    return Prices(tuple([int(price * whole) for price in exact]), whole)


class _Account(Ranked):
    __slots__ = ("prices", "used", "weight")

    def __init__(self, name: str, weight: Weight, used: Vector, by: Prices) -> None:
        super().__init__(name, by.sum(used))
        self.weight = weight
        self.used = used
        self.prices = by


class AssetFairness(Policy):
    """The policy ``asset``. See the module's docstring for its key."""

    name = "asset"
    balances = True

    def __init__(self) -> None:
        self._ranking = Ranking()
        self.first = self._ranking.first
        self._accounts: dict[str, _Account] = {}
        self._capacity: Vector = ()
        self._shared: dict[float, Prices] = {}
        """The prices of each single-number weight: most accounts have one of a few weights, and share them."""

    def set_capacity(self, capacity: Vector, slots: int) -> None:  # noqa: ARG002 - the interface of all policies
        """Every share changes, so this is O(n)."""
        self._capacity = capacity
        self._shared = {}
        for state in self._accounts.values():
            state.prices = self._prices(state.weight)
            state.key = state.prices.sum(state.used)
        self._ranking.rebuild()

    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:  # noqa: ARG002 - see above
        """A new account, resting."""
        self._capacity = self._capacity or (0,) * len(charged)
        self._accounts[account] = state = _Account(account, weight, charged, self._prices(weight))
        self._ranking.add(state)

    def remove(self, account: str) -> None:
        """Forget an account."""
        self._ranking.deactivate(self._accounts.pop(account))

    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on."""
        state = self._accounts[account]
        state.weight = weight
        state.prices = self._prices(weight)
        self._ranking.rekey(state, state.prices.sum(state.used))

    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:
        """The account got ``units`` more of ``unit``; gives its key before and after that."""
        state = self._accounts[account]
        state.used = tuple(map(add, state.used, unit if units == 1 else scale(unit, units)))
        key = state.prices.sum(state.used)
        before = state.key
        self._ranking.rekey(state, key)
        return before, key

    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units`` of ``unit``."""
        state = self._accounts[account]
        state.used = tuple(map(sub, state.used, unit if units == 1 else scale(unit, units)))
        self._ranking.rekey(state, state.prices.sum(state.used))

    def recount(self, account: str, change: Vector, units: int) -> None:  # noqa: ARG002 - shares count
        """The account counts for so much more, or less."""
        self.charge(account, change, 1)

    def begin_waiting(self, account: str) -> None:
        """Without effect: shares do not depend on who waited first."""

    def activate(self, account: str) -> None:
        """The account takes part in ``first``."""
        self._ranking.activate(self._accounts[account])

    def deactivate(self, account: str) -> None:
        """The account rests."""
        self._ranking.deactivate(self._accounts[account])

    def key(self, account: str) -> float:
        """The account's weighted sum of shares."""
        return self._accounts[account].key

    def _prices(self, weight: Weight) -> Prices:
        if weight.by_resource is not None:
            return prices(self._capacity, weight)
        if weight.default not in self._shared:
            self._shared[weight.default] = prices(self._capacity, weight)
        return self._shared[weight.default]
