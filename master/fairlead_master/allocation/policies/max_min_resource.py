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

from typing import NamedTuple

from fairlead_master.allocation.policies.skeleton import Holder, KeyedPolicy
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector


class _Divisors(NamedTuple):
    whole: int
    """C_RES w_i,RES in grains; 0 where there is no capacity."""
    grains: int
    """In one unit of the resource."""
    of_all: tuple[int, int]
    """w_i, as numerator and denominator."""


class _Account(Holder[_Divisors]):
    """``key`` is the weighted share of the resource; below zero while none of it is held."""

    __slots__ = ("by", "place", "units", "used")

    def __init__(self, name: str, place: int, used: int, units: int) -> None:
        super().__init__(name, 0.0)
        self.place = place
        self.used = used
        self.units = units
        self.by = _Divisors(0, 1, (1, 1))

    def divide(self, by: _Divisors) -> float:
        """The capacity and the weights are these from now on."""
        self.by = by
        return self._key()

    def count(self, unit: Vector, units: int) -> float:
        """So many more are held."""
        self.used += unit[self.place] * units
        self.units += units
        return self._key()

    def _key(self) -> float:
        whole, grains, of_all = self.by
        if self.used > 0 and whole > 0:
            return self.used * grains / whole
        over, under = of_all
        return -over / (over + self.units * under)


class ResourceFairness(KeyedPolicy[_Divisors]):
    """The policy ``max-min:RES``. See the module's docstring for its key."""

    def __init__(self, resource: str, place: int) -> None:
        """Args: the resource's name, and its place in vectors."""

        def hold(name: str, charged: Vector, units: int) -> _Account:
            return _Account(name, place, charged[place], units)

        def divide(capacity: Vector, weight: Weight) -> _Divisors:
            over, under = weight.ratio(place)
            return _Divisors(capacity[place] * over, under, weight.ratio_of_all)

        super().__init__(hold, divide)
        self.name = f"max-min:{resource}"
