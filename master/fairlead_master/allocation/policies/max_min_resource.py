"""Max-min fairness of one resource: the account with the smallest weighted share of it is served next.

    key_i = U_i,RES / (C_RES w_i,RES)         if the account holds some of RES
    key_i = -1 / (1 + x_i / w_i)              if it holds none

U_i,RES is what account i holds or is offered of the resource the policy names, C_RES the total of the active agents,
w_i,RES the account's ``Weight.of(RES)``, x_i its units, w_i the weight's default: a scheduler that shares CPUs and looks at
nothing else, as those that Ghodsi et al., "Dominant Resource Fairness", compare with in section 7.2.

Who holds none of RES has a share of 0 whatever it holds of the rest, and so is served before all who hold some. The
paper does not say who of those is next. By the tie-break alone one that never needs RES would take all it wants before
the second got its first unit, so they are ranked by units for their weight: from -1 with none up towards 0. Equal keys
go to the account that was added earlier, and are quotients of whole numbers (``divisors``); where there is no capacity of RES nobody holds any.
"""

from fairlead_master.allocation.api import Policy, Weight
from fairlead_master.allocation.policies.ranking import Ranked, Ranking
from fairlead_proto.resources import Vector


class _Account(Ranked):
    __slots__ = ("of_all", "of_resource", "units", "used")

    def __init__(self, name: str, used: int, units: int) -> None:
        super().__init__(name, 0.0)
        self.used = used
        self.units = units
        self.of_resource = self.of_all = (1, 1)
        """Its weights, as numerator and denominator."""

    def weigh(self, weight: Weight, place: int) -> None:
        """The account has this weight from now on."""
        self.of_resource, self.of_all = weight.ratio(place), weight.ratio_of_all


class ResourceFairness(Policy):
    """The policy ``max-min:RES``. See the module's docstring for its key."""

    def __init__(self, resource: str, place: int) -> None:
        """Args: the resource's name, and its place in vectors."""
        self.name = f"max-min:{resource}"
        self._place = place
        self._ranking = Ranking()
        self.first = self._ranking.first
        self._accounts: dict[str, _Account] = {}
        self._total = 0

    def set_capacity(self, capacity: Vector, slots: int) -> None:  # noqa: ARG002 - the interface of all policies
        """Every share changes, so this is O(n)."""
        self._total = capacity[self._place]
        for state in self._accounts.values():
            state.key = self._key(state)
        self._ranking.rebuild()

    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:
        """A new account, resting."""
        self._accounts[account] = state = _Account(account, charged[self._place], units)
        state.weigh(weight, self._place)
        state.key = self._key(state)
        self._ranking.add(state)

    def remove(self, account: str) -> None:
        """Forget an account."""
        self._ranking.deactivate(self._accounts.pop(account))

    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on."""
        state = self._accounts[account]
        state.weigh(weight, self._place)
        self._ranking.rekey(state, self._key(state))

    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:
        """The account got ``units`` more of ``unit``; gives its key before and after that."""
        state = self._accounts[account]
        state.used += unit[self._place] * units
        state.units += units
        before, key = state.key, self._key(state)
        self._ranking.rekey(state, key)
        return before, key

    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units`` of ``unit``."""
        self.charge(account, unit, -units)

    def begin_waiting(self, account: str) -> None:
        """Without effect: shares do not depend on who waited first."""

    def activate(self, account: str) -> None:
        """The account takes part in ``first``."""
        self._ranking.activate(self._accounts[account])

    def deactivate(self, account: str) -> None:
        """The account rests."""
        self._ranking.deactivate(self._accounts[account])

    def key(self, account: str) -> float:
        """The account's weighted share of the resource; below zero while it holds none of it."""
        return self._accounts[account].key

    def _key(self, state: _Account) -> float:
        if state.used > 0 and self._total > 0:
            over, under = state.of_resource
            return state.used * under / (self._total * over)
        over, under = state.of_all
        return -over / (over + state.units * under)
