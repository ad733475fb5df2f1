"""Dominant resource fairness: the account with the smallest weighted dominant share is served next.

    key_i = max over resources j of U_ij / (C_j w_ij)

Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of Multiple Resource Types", algorithm 1 for the order and
section 4.3 for the weights: U_ij is what account i holds or is offered of resource j (``used``), C_j the total of the
active agents (``capacity``), w_ij the account's ``Weight.of(j)``. How we differ: resources of zero capacity are skipped,
equal keys go to the account that was added earlier (the paper leaves ties open), and what is merely offered counts.

The share is one correctly rounded division of two integers where the weight is one, so that equal shares of different
resources, such as 12/18 and 6/9, are equal keys and the tie-break decides.
"""

from math import inf
from operator import add, sub, truediv

from fairlead_master.allocation.api import Policy, Weight
from fairlead_master.allocation.policies.ranking import Ranked, Ranking
from fairlead_proto.resources import Vector, scale

Divisors = tuple[float, ...]


def divisors(capacity: Vector, weight: Weight) -> Divisors:
    """C_j w_ij for each place; infinite where there is no capacity, so that the share there is zero."""
    return tuple([total * weight.of(place) if total > 0 else inf for place, total in enumerate(capacity)])


def dominant_share(used: Vector, by: Divisors) -> float:
    """The largest of ``used[j] / by[j]``."""
    share: float = max(map(truediv, used, by))
    return share


class _Account(Ranked):
    __slots__ = ("divisors", "used", "weight")

    def __init__(self, name: str, weight: Weight, used: Vector, by: Divisors) -> None:
        super().__init__(name, dominant_share(used, by))
        self.weight = weight
        self.used = used
        self.divisors = by


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
            state.divisors = self._divisors(state.weight)
            state.key = dominant_share(state.used, state.divisors)
        self._ranking.rebuild()

    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:  # noqa: ARG002 - see above
        """A new account, resting."""
        self._capacity = self._capacity or (0,) * len(charged)
        by = self._divisors(weight)
        self._accounts[account] = state = _Account(account, weight, charged, by)
        self._ranking.add(state)

    def remove(self, account: str) -> None:
        """Forget an account."""
        self._ranking.deactivate(self._accounts.pop(account))

    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on."""
        state = self._accounts[account]
        state.weight = weight
        state.divisors = self._divisors(weight)
        self._ranking.rekey(state, dominant_share(state.used, state.divisors))

    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:
        """The account got ``units`` more of ``unit``; gives its key before and after that."""
        state = self._accounts[account]
        state.used = used = tuple(map(add, state.used, unit if units == 1 else scale(unit, units)))
        key: float = max(map(truediv, used, state.divisors))  # dominant_share, without the call
        before = state.key
        self._ranking.rekey(state, key)
        return before, key

    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units`` of ``unit``."""
        state = self._accounts[account]
        state.used = tuple(map(sub, state.used, unit if units == 1 else scale(unit, units)))
        self._ranking.rekey(state, dominant_share(state.used, state.divisors))

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
