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

from fairlead_master.allocation.api import Policy, Weight
from fairlead_master.allocation.policies.divisors import Divisors, divisors, dominant_share, regrained
from fairlead_master.allocation.policies.ranking import Ranked, Ranking
from fairlead_proto.resources import Vector, scale


class _Account(Ranked):
    __slots__ = ("by", "grains", "step", "unit", "used", "weight")

    def __init__(self, name: str, weight: Weight, used: Vector, divided: Divisors) -> None:
        self.weight = weight
        self.by, self.grains = divided
        self.used = scale(used, self.grains)
        """In grains."""
        self.unit: Vector = ()
        """The last one that was counted in grains."""
        self.step: Vector = ()
        """The same in grains."""
        super().__init__(name, dominant_share(self.used, self.by))

    def divide(self, divided: Divisors) -> None:
        """The account's share is made with these from now on."""
        self.used = regrained(self.used, self.grains, divided.grains)
        self.by, self.grains = divided
        self.unit = ()

    def counted(self, unit: Vector, units: int) -> Vector:
        """``units`` of ``unit`` in grains. Most decisions are about the same unit as the one before."""
        if units != 1:
            return scale(unit, units * self.grains)
        if unit is not self.unit:
            self.unit, self.step = unit, scale(unit, self.grains)
        return self.step


class DominantResourceFairness(Policy):
    """The policy ``drf``. See the module's docstring for its key."""

    name = "drf"
    balances = True

    def __init__(self) -> None:
        self._ranking = Ranking()
        self.first = self._ranking.first
        self._accounts: dict[str, _Account] = {}
        self._capacity: Vector = ()
        self._shared: dict[float, Divisors] = {}
        """The divisors of each single-number weight: most accounts have one of a few weights, and share them."""

    def set_capacity(self, capacity: Vector, slots: int) -> None:  # noqa: ARG002 - the interface of all policies
        """Every share changes, so this is O(n)."""
        self._capacity = capacity
        self._shared = {}
        for state in self._accounts.values():
            state.divide(self._divisors(state.weight))
            state.key = dominant_share(state.used, state.by)
        self._ranking.rebuild()

    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:  # noqa: ARG002 - see above
        """A new account, resting."""
        self._capacity = self._capacity or (0,) * len(charged)
        self._accounts[account] = state = _Account(account, weight, charged, self._divisors(weight))
        self._ranking.add(state)

    def remove(self, account: str) -> None:
        """Forget an account."""
        self._ranking.deactivate(self._accounts.pop(account))

    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on."""
        state = self._accounts[account]
        state.weight = weight
        state.divide(self._divisors(weight))
        self._ranking.rekey(state, dominant_share(state.used, state.by))

    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:
        """The account got ``units`` more of ``unit``; gives its key before and after that."""
        state = self._accounts[account]
        if units != 1 or state.grains != 1:
            unit = state.counted(unit, units)
        state.used = used = tuple(map(add, state.used, unit))
        key: float = max(map(truediv, used, state.by))  # dominant_share, without the call
        before = state.key
        self._ranking.rekey(state, key)
        return before, key

    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units`` of ``unit``."""
        state = self._accounts[account]
        if units != 1 or state.grains != 1:
            unit = state.counted(unit, units)
        state.used = tuple(map(sub, state.used, unit))
        self._ranking.rekey(state, dominant_share(state.used, state.by))

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
        """The account's weighted dominant share."""
        return self._accounts[account].key

    def _divisors(self, weight: Weight) -> Divisors:
        if weight.by_resource is not None:
            return divisors(self._capacity, weight)
        if weight.default not in self._shared:
            self._shared[weight.default] = divisors(self._capacity, weight)
        return self._shared[weight.default]
