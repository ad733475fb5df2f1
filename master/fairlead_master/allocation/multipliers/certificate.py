"""What is certain about multipliers: computed from them and the classes alone, however they were found."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, inf, log1p, sqrt
from typing import Final

from fairlead_master.allocation.multipliers.dual import DemandClass, Differences, Dual, DualFunction

_ROUNDING: Final = 1e-14
"""Differences of loads are sums of rounded quotients: below this part of the terms they are no information."""

_SMALL: Final = 0.3
"""(1 + m)^(1 + 1/alpha), squared for the scale of the multipliers, is below 2 where m (1 + 1/alpha) is below this."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """How far multipliers are from the right ones, computed from nothing but the multipliers and the classes."""

    overload: float
    """Largest load above 1, as a fraction of the capacity: 0 if the allocation fits."""
    slackness: float
    """Largest nu_j (1 - load_j) / sum nu: what is charged for capacity that nobody uses; 0 at the optimum."""
    gap: float
    """The objective of the allocation, shrunk until it fits, is that of the best shrunk by at most this, relatively."""
    relative_error: float
    """No phi is further from the right one than this, relatively, up to rounding; infinite where nothing is known."""


@dataclass(frozen=True, slots=True)
class Multipliers:
    """Prices of resources, with their proof."""

    values: tuple[float, ...]
    """nu_j per resource, for capacities of 1. 0: not scarce, or not needed. Those of proportional fairness sum to the weights'."""
    iterations: int
    """Passes over the classes that it took."""
    certificate: Certificate


def certify(classes: Sequence[DemandClass], values: Sequence[float], alpha: float = 1.0) -> Certificate:
    """How far multipliers are from the right ones of these classes."""
    dual = Dual(classes, alpha)
    total = fsum(values)
    scaled = [value / total for value in values]
    # All loads are larger or smaller by this factor if the multipliers have the right proportions and the wrong sum.
    stretch: float = (dual.scale(scaled) / total) ** (1.0 / alpha)
    right = certify_scaled(dual, scaled)
    there = dual.beside(scaled)
    loads = [(1.0 + excess) * stretch for excess in there.excess]
    return Certificate(
        overload=max(0.0, right.overload * stretch + (stretch - 1.0)),
        slackness=max(value * (1.0 - load) for value, load in zip(scaled, loads, strict=True)),
        gap=right.gap,
        relative_error=right.relative_error + abs(stretch - 1.0),
    )


def certify_scaled(dual: DualFunction, values: Sequence[float]) -> Certificate:
    """The same for multipliers that sum to 1 and are meant up to their scale."""
    there = dual.beside(values)
    fullest = max(there.excess)
    return Certificate(
        overload=max(0.0, fullest),
        slackness=max(-value * excess for value, excess in zip(values, there.excess, strict=True)),
        gap=max(0.0, log1p(fullest)),
        relative_error=_relative_error(values, there),
    )


def _relative_error(values: Sequence[float], there: Differences) -> float:
    """A bound on the relative error of every phi.

    Let nu* be right and sum to 1 as nu does, d = nu* - nu, t_k = a_k . d / a_k . nu the relative error of a price, m the
    largest |t_k|, s_k what class k spends, |d|^2 = sum_k s_k t_k^2, r = load - 1 at nu, F where nu_j > 0. Convexity, class
    by class, gives r . d >= sum_k s_k t_k (1 - (1 + t_k)^(-1/alpha)) >= |d|^2 / (alpha (1 + m)^(1 + 1/alpha)), up to a
    factor for the scale of nu* that is no larger. Outside F d_j >= 0, so r_j may be replaced there by anything larger: by
    what the Newton step u on F predicts where that is larger, otherwise plus the rest e_j. So r . d <= |u| |d| / alpha +
    e |d|_1 with e the largest rest, and |d|_1 <= 2. With 2 for the factors in m, |d|^2 <= 2 |u| |d| + 4 alpha e, which
    bounds |d|, hence m by |d| / sqrt(min s), hence the error of phi by m / alpha; and m then has to be small enough for the
    2. As d sums to 0, all of it holds of the differences to one resource, too.
    """
    if not there.is_finite():
        return inf
    face = [place for place, value in enumerate(values) if value > 0]
    moves = [0.0] * len(values)
    for place, move in zip(face, there.step(there.excess, face), strict=True):
        moves[place] = move
    rest = 0.0
    for place, left in enumerate(there.excess_after(moves)):
        error = abs(left) if place in face else left
        if error > _ROUNDING * sqrt(there.entry(place, place)):
            rest = max(rest, error)
    length = there.norm(moves)
    distance = length + sqrt(length * length + 4.0 * there.alpha * rest)
    largest = distance / sqrt(there.lightest) if there.lightest > 0 else inf
    return largest / there.alpha if largest * (1.0 + 1.0 / there.alpha) < _SMALL else inf
