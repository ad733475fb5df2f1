"""The baseline that keeps as much busy as it can: whose tasks keep the most busy for what they take is served next.

    key_i = -rho_i + 1e-6 s_i / (1 + s_i)
    rho_i = (sum over resources j of W_ij / C_j) / (max over j of W_ij / C_j)
    s_i = max over j of U_ij / (C_j w_i)

W_ij is what account i holds and wants of resource j together, U_ij what it holds or is offered, C_j the total of the active
agents, w_i the account's weight as one number. rho_i is the utilisation, summed over resources, that a dominant share of 1
of its tasks would give: between 1 and the number of resources, counted in millionths. Among accounts of one rho_i the
weighted dominant share decides, so that equal users share equally; equal keys go to the account that was added earlier.
s and rho are each one division of whole numbers (``divisors``), so that equal ones are equal keys.

It stands for what the talk on dominant resource fairness calls a utilisation-optimal scheduler (slides "Gaming
Utilization-Optimal Schedulers"): who claims to need more of what is plenty is preferred, and takes everything. It is
greedy: the static solver ``utilization`` may mix accounts whose needs complement each other, this one never does.
"""

from math import inf
from operator import add, mul, sub

from fairlead_master.allocation.api import Policy, Weight
from fairlead_master.allocation.policies.asset import Prices, prices
from fairlead_master.allocation.policies.divisors import divisors, dominant_share, regrained
from fairlead_master.allocation.policies.ranking import Ranked, Ranking
from fairlead_proto.resources import Vector, scale

_STEP = 1e-6
"""Of rho: what differs by less is equally good. Below it there is room for the share, to ten digits."""

_DIGITS = 6


class _Account(Ranked):
    __slots__ = ("by", "density", "grains", "used", "weight", "wish")

    def __init__(self, name: str, weight: Weight, used: Vector) -> None:
        super().__init__(name, 0.0)
        self.weight = weight
        self.by: tuple[float, ...] = (inf,) * len(used)
        """C_j w_i."""
        self.grains = 1
        self.used = used
        """In grains."""
        self.wish: Vector = (0,) * len(used)
        self.density = 0.0
        """rho; 0 if nothing is wanted that the cluster has."""


class UtilizationFirst(Policy):
    """The policy ``utilization``. See the module's docstring for its key."""

    name = "utilization"
    follows_wishes = True

    def __init__(self) -> None:
        self._ranking = Ranking()
        self.first = self._ranking.first
        self._accounts: dict[str, _Account] = {}
        self._capacity: Vector = ()
        self._prices = Prices((), 1)
        """Of each resource such that all of it costs the same."""

    def set_capacity(self, capacity: Vector, slots: int) -> None:  # noqa: ARG002 - the interface of all policies
        """Every key changes, so this is O(n)."""
        self._capacity, self._prices = capacity, prices(capacity, Weight())
        for state in self._accounts.values():
            state.density = self._density(state.wish)
            self._divide(state)
            state.key = _key(state)
        self._ranking.rebuild()

    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:  # noqa: ARG002 - see above
        """A new account, resting."""
        if not self._capacity:
            self.set_capacity((0,) * len(charged), 0)
        self._accounts[account] = state = _Account(account, weight, charged)
        self._divide(state)
        state.key = _key(state)
        self._ranking.add(state)

    def remove(self, account: str) -> None:
        """Forget an account."""
        self._ranking.deactivate(self._accounts.pop(account))

    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on."""
        state = self._accounts[account]
        state.weight = weight
        self._divide(state)
        self._ranking.rekey(state, _key(state))

    def set_wish(self, account: str, wish: Vector) -> None:
        """What the account wants has other proportions, perhaps."""
        state = self._accounts[account]
        state.wish = wish
        state.density = self._density(wish)
        self._ranking.rekey(state, _key(state))

    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:
        """The account got ``units`` more of ``unit``; gives its key before and after that."""
        state = self._accounts[account]
        before = state.key
        units *= state.grains
        state.used = tuple(map(add, state.used, unit if units == 1 else scale(unit, units)))
        self._ranking.rekey(state, _key(state))
        return before, state.key

    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units`` of ``unit``."""
        state = self._accounts[account]
        units *= state.grains
        state.used = tuple(map(sub, state.used, unit if units == 1 else scale(unit, units)))
        self._ranking.rekey(state, _key(state))

    def begin_waiting(self, account: str) -> None:
        """Without effect: keys do not depend on who waited first."""

    def activate(self, account: str) -> None:
        """The account takes part in ``first``."""
        self._ranking.activate(self._accounts[account])

    def deactivate(self, account: str) -> None:
        """The account rests."""
        self._ranking.deactivate(self._accounts[account])

    def key(self, account: str) -> float:
        """Minus what its tasks keep busy for a dominant share of 1, and by far less, its share."""
        return self._accounts[account].key

    def _density(self, wish: Vector) -> float:
        costs = list(map(mul, wish, self._prices.parts))
        dominant = max(costs)
        return round(sum(costs) / dominant, _DIGITS) if dominant else 0.0

    def _divide(self, state: _Account) -> None:
        by, grains = divisors(self._capacity, Weight(state.weight.default))
        state.used = regrained(state.used, state.grains, grains)
        state.by, state.grains = by, grains


def _key(state: _Account) -> float:
    share = dominant_share(state.used, state.by)
    return _STEP * share / (1 + share) - state.density
