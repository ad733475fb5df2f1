"""Max-min fairness in tasks: the account with the fewest units for its weight is served next, whatever they need.

    key_i = x_i / w_i

x_i is the number of units account i holds or is offered, w_i its weight. This is the max-min fairness both Bonald and
Roberts, "Enhanced Cluster Computing Performance through Proportional Fairness" (section 2.3), and Ghodsi et al., "Dominant
Resource Fairness", begin from: fair for tasks of one size, and paid for by those with small tasks where sizes differ.
Per-resource weights mean nothing here: only the weight's default counts. It counts as the decimal that was written, and the
key is one division of whole numbers (``divisors``). Equal keys go to the account that was added earlier. Slot scheduling has the same key, and differs in what an agent holds: see ``slots``.
"""

from fairlead_master.allocation.policies.skeleton import Holder, KeyedPolicy
from fairlead_proto.resources import Vector

_Ratio = tuple[int, int]


class _Account(Holder[_Ratio]):
    """``key`` is the number of units held over the weight."""

    __slots__ = ("by", "grains", "used")

    def __init__(self, name: str, charged: Vector, units: int) -> None:  # noqa: ARG002 - only units count
        super().__init__(name, 0.0)
        self.used = units
        """Units, in grains."""
        self.by = self.grains = 1

    def divide(self, by: _Ratio) -> float:
        """The weight is this from now on."""
        units = self.used // self.grains
        self.by, self.grains = by
        self.used = units * self.grains
        return self.used / self.by

    def count(self, unit: Vector, units: int) -> float:  # noqa: ARG002 - a unit is a unit
        """So many more are held."""
        self.used = used = self.used + units * self.grains
        return used / self.by


class UnitFairness(KeyedPolicy[_Ratio]):
    """The policy ``max-min``. See the module's docstring for its key."""

    name = "max-min"
    balances = True
    counts_units = True

    def __init__(self) -> None:
        super().__init__(_Account, lambda _, weight: weight.ratio_of_all)

    def set_capacity(self, capacity: Vector, slots: int) -> None:
        """Without effect: all accounts' keys would change by the same factor."""

    def recount(self, account: str, change: Vector, units: int) -> None:
        """The account counts for so much more, or less."""
        self.charge(account, change, units)
