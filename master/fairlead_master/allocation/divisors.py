"""By what holdings are divided to make a weighted share, such that equal shares are equal keys.

    U_ij / (C_j w_ij) = grains U_ij / by_j

with whole numbers ``grains`` and ``by_j``. Weights count as the decimals that were written (``Weight.ratio``). Python
divides two whole numbers with one rounding, so quotients of one value are one float, whatever they are quotients of:
3 CPUs at a weight of 0.3 and 2 at 0.2 tie, where ``3 / (6 * 0.3)`` and ``2 / (6 * 0.2)`` do not. What rounding cannot tell
apart, some 16 digits, ties as well; it never turns an order round.

Accounts keep what they hold in grains. There are as few of them as will do, mostly one: a weight of 0.3 of 6000
thousandths of a CPU is 1800 of them. A decision then costs no more than one with floats.
"""

from math import gcd, inf, lcm
from operator import truediv
from typing import Final, NamedTuple

from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector


class Divisors(NamedTuple):
    """What an account holds, in grains, is divided by these."""

    by: tuple[float, ...]
    """C_j w_ij in grains, by place: whole numbers, infinite where there is no capacity, so that the share there is zero."""
    grains: int
    """In one unit of an amount."""


_FLOAT_MAX: Final = 2**53
"""Up to here all whole numbers are floats. Beyond, dividing two of them takes a tenth of a decision longer, and floats that are
whole numbers do as well, as sums of memory in whole MiB are: who holds so much of it is not counted in odd bytes."""

UNDIVIDED: Final = Divisors((), 1)
"""Of what makes no share."""


def divisors(capacity: Vector, weight: Weight) -> Divisors:
    """C_j w_ij for each place, and the grains they are in."""
    grains, quotients = 1, []
    for place, total in enumerate(capacity):
        over, under = weight.ratio(place)
        quotients.append((total * over, under) if total > 0 else (0, 0))
        if total > 0:
            grains = lcm(grains, under // gcd(total * over, under))
    return Divisors(
        tuple([_cheapest(over * grains // under) if under else inf for over, under in quotients]), grains
    )


def _cheapest(number: int) -> float:
    """The same number as what Python divides by soonest: large ones as floats if they are floats."""
    return number if number <= _FLOAT_MAX or float(number) != number else float(number)


def regrained(used: Vector, before: int, grains: int) -> Vector:
    """What an account holds, in this many ``grains`` of a unit, where it was in as many as ``before``."""
    return used if before == grains else tuple([amount // before * grains for amount in used])


def dominant_share(used: Vector, by: tuple[float, ...]) -> float:
    """The largest of ``used[j] / by[j]``, of what is held in grains."""
    share: float = max(map(truediv, used, by))
    return share


def level_of(held: Vector, divisors: Divisors) -> tuple[int, int]:
    """The dominant share of an account that holds ``held``, in units, as numerator and denominator."""
    by, grains = divisors
    shares = list(map(truediv, held, by))
    place = shares.index(max(shares))
    return (held[place] * grains, int(by[place])) if held[place] > 0 < shares[place] else (0, 1)
