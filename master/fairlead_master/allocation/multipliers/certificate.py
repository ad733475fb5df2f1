"""What is certain about multipliers: computed from them and the classes alone, however they were found."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, inf, log1p, sqrt
from typing import Final

from fairlead_master.allocation.multipliers.dual import DemandClass, Differences, Dual

_ROUNDING: Final = 1e-14
"""Differences of loads are sums of rounded quotients: below this part of the terms they are no information."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """How far multipliers are from the right ones, computed from nothing but the multipliers and the classes."""

    overload: float
    """Largest load above 1, as a fraction of the capacity: 0 if the allocation fits."""
    slackness: float
    """Largest nu_j (1 - load_j) / W: what is charged for capacity that nobody uses; 0 at the optimum."""
    gap: float
    """The allocation, shrunk until it fits, is worse than the best by at most this, in the weighted mean of log phi."""
    relative_error: float
    """No phi is further from the right one than this, relatively, up to rounding; infinite where nothing is known."""


@dataclass(frozen=True, slots=True)
class Multipliers:
    """Prices of resources, with their proof."""

    values: tuple[float, ...]
    """nu_j per resource, for capacities of 1; they sum to the sum of the weights. 0: not scarce, or not needed."""
    iterations: int
    """Passes over the classes that it took."""
    certificate: Certificate


def certify(classes: Sequence[DemandClass], values: Sequence[float]) -> Certificate:
    """How far multipliers, in the unit of the weights, are from the right ones."""
    return certify_scaled(Dual(classes), [value / fsum(values) for value in values])


def certify_scaled(dual: Dual, values: Sequence[float]) -> Certificate:
    """The same for multipliers that sum to 1."""
    there = dual.beside(values)
    fullest = max(there.excess)
    return Certificate(
        overload=max(0.0, fullest),
        slackness=max(-value * excess for value, excess in zip(values, there.excess, strict=True)),
        gap=max(0.0, log1p(fullest)),
        relative_error=_relative_error(values, there, min(dual.weights)),
    )


def _relative_error(values: Sequence[float], there: Differences, smallest_weight: float) -> float:
    """A bound on the relative error of every price, hence of every phi.

    Let nu* be right, d = nu* - nu, r = load - 1 at nu, |d| the norm of the Hessian H at nu, F where nu_j > 0. Since D,
    divided by its smallest weight, is self-concordant, r . d >= |d|^2 / (1 + |d|). Outside F d_j >= 0, so r_j may be
    replaced there by anything larger: by what the Newton step u on F predicts, row j of H u, where that is larger, and
    otherwise plus the rest e_j. So r . d <= H u . d + e |d|_1 with e the largest rest; H u . d <= lambda |d| with
    lambda^2 = u . H u; and |d|_1 <= 2, as both nu sum to 1. Hence |d|^2 <= (lambda |d| + 2 e) (1 + |d|), and |d| bounds
    the relative error of each class's price. As d sums to 0, all of it holds of the differences to one resource.
    """
    face = [place for place, value in enumerate(values) if value > 0]
    moves = [0.0] * len(values)
    for place, move in zip(face, there.step(there.excess, face), strict=True):
        moves[place] = move
    length = there.norm(moves)
    rest = 0.0
    for place, left in enumerate(there.excess_after(moves)):
        error = abs(left) if place in face else left
        if error > _ROUNDING * sqrt(there.entry(place, place)):
            rest = max(rest, error)
    length /= sqrt(smallest_weight)
    rest *= 2.0 / smallest_weight
    middle = length + rest
    if middle >= 1.0:
        return inf
    return (middle + sqrt(middle * middle + 4.0 * rest * (1.0 - length))) / (2.0 * (1.0 - length))
