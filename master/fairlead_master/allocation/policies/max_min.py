"""Max-min fairness in tasks: the account with the fewest units for its weight is served next, whatever they need.

    key_i = x_i / w_i

x_i is the number of units account i holds or is offered, w_i its weight. This is the max-min fairness both Bonald and
Roberts, "Enhanced Cluster Computing Performance through Proportional Fairness" (section 2.3), and Ghodsi et al., "Dominant
Resource Fairness", begin from: fair for tasks of one size, and paid for by those with small tasks where sizes differ.
Per-resource weights mean nothing here: only the weight's default counts. It counts as the decimal that was written, and the
key is one division of whole numbers (``divisors``). Equal keys go to the account that was added earlier. Slot scheduling has the same key, and differs in what an agent holds: see ``slots``.
"""

from fairlead_master.allocation.api import Policy, Weight
from fairlead_master.allocation.policies.ranking import Ranked, Ranking
from fairlead_proto.resources import Vector


class _Account(Ranked):
    __slots__ = ("by", "grains", "used")

    def __init__(self, name: str, weight: Weight, units: int) -> None:
        self.by, self.grains = weight.ratio_of_all
        self.used = units * self.grains
        """Units, in grains."""
        super().__init__(name, self.used / self.by)


class UnitFairness(Policy):
    """The policy ``max-min``. See the module's docstring for its key."""

    name = "max-min"
    balances = True
    counts_units = True

    def __init__(self) -> None:
        self._ranking = Ranking()
        self.first = self._ranking.first
        self._accounts: dict[str, _Account] = {}

    def set_capacity(self, capacity: Vector, slots: int) -> None:
        """Without effect: all accounts' keys would change by the same factor."""

    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:  # noqa: ARG002 - only units count
        """A new account, resting."""
        self._accounts[account] = state = _Account(account, weight, units)
        self._ranking.add(state)

    def remove(self, account: str) -> None:
        """Forget an account."""
        self._ranking.deactivate(self._accounts.pop(account))

    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on."""
        state = self._accounts[account]
        units = state.used // state.grains
        state.by, state.grains = weight.ratio_of_all
        state.used = units * state.grains
        self._ranking.rekey(state, state.used / state.by)

    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:  # noqa: ARG002 - a unit is a unit
        """The account got ``units`` more; gives its key before and after that."""
        state = self._accounts[account]
        state.used += units * state.grains
        key = state.used / state.by
        before = state.key
        self._ranking.rekey(state, key)
        return before, key

    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units``."""
        self.charge(account, unit, -units)

    def recount(self, account: str, change: Vector, units: int) -> None:
        """The account counts for so much more, or less."""
        self.charge(account, change, units)

    def begin_waiting(self, account: str) -> None:
        """Without effect: units held do not depend on who waited first."""

    def activate(self, account: str) -> None:
        """The account takes part in ``first``."""
        self._ranking.activate(self._accounts[account])

    def deactivate(self, account: str) -> None:
        """The account rests."""
        self._ranking.deactivate(self._accounts[account])

    def key(self, account: str) -> float:
        """Units held over the weight."""
        return self._accounts[account].key
