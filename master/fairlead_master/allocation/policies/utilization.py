"""Serves the account with the highest utilisation per unit of dominant share: the baseline that keeps most busy.

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
from operator import mul, truediv
from typing import NamedTuple

from fairlead_master.allocation.divisors import divisors, regrained
from fairlead_master.allocation.policies.asset import prices
from fairlead_master.allocation.policies.skeleton import Holder, KeyedPolicy, counted
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector

_STEP = 1e-6
"""Of rho: what differs by less is equally good. Below it there is room for the share, to ten digits."""

_DIGITS = 6


class _Divisors(NamedTuple):
    by: tuple[float, ...]
    """C_j w_i in grains."""
    grains: int
    costs: Vector
    """Of each resource such that all of it costs the same."""


class _Account(Holder[_Divisors]):
    """``key`` is minus what its tasks keep busy for a dominant share of 1, and by far less, its share."""

    __slots__ = ("by", "costs", "density", "grains", "used")

    def __init__(self, name: str, used: Vector, units: int) -> None:  # noqa: ARG002 - shares count
        super().__init__(name, 0.0)
        self.used = used
        """In grains."""
        self.wish = (0,) * len(used)
        self.by, self.grains, self.costs = _Divisors((inf,) * len(used), 1, self.wish)
        self.density = 0.0
        """rho; 0 if nothing is wanted that the cluster has."""

    def divide(self, by: _Divisors) -> float:
        """The capacity, the weight or the wish is another from now on."""
        self.used = regrained(self.used, self.grains, by.grains)
        self.by, self.grains, self.costs = by
        costs = list(map(mul, self.wish, self.costs))
        dominant = max(costs)
        self.density = round(sum(costs) / dominant, _DIGITS) if dominant else 0.0
        return self._key()

    def count(self, unit: Vector, units: int) -> float:
        """So many more are held."""
        self.used = counted(self.used, unit, units * self.grains)
        return self._key()

    def _key(self) -> float:
        share: float = max(map(truediv, self.used, self.by))  # dominant_share, without the call
        return _STEP * share / (1 + share) - self.density


class UtilizationFirst(KeyedPolicy[_Divisors]):
    """The policy ``utilization``. See the module's docstring for its key."""

    name = "utilization"
    follows_wishes = True

    def __init__(self) -> None:
        super().__init__(_Account, _divisors)


def _divisors(capacity: Vector, weight: Weight) -> _Divisors:
    by, grains = divisors(capacity, Weight(weight.default))
    return _Divisors(by, grains, prices(capacity, Weight()).parts)
