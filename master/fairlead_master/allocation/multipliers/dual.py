"""The dual of proportional fairness: prices of resources, the load they cause, and how far from right they are.

Users with demand in the same proportions form a *class* k: a row a_k (what one unit takes of each resource, as a fraction
of its capacity) and W_k, the sum of the weights of its users. Proportional fairness maximises sum_i w_i log phi_i under
sum_i phi_i a_ij <= 1 (equation (2) of T. Bonald and J. Roberts, Enhanced Cluster Computing Performance through
Proportional Fairness, 2014). Its multipliers nu, one per resource, minimise the convex

    D(nu) = sum_j nu_j - sum_k W_k log(a_k . nu)        over nu >= 0

and the allocation follows from them: phi_i = w_i / (a_i . nu), their equation (3). With load_j = sum_k W_k a_kj / (a_k . nu)

    gradient = 1 - load        Hessian = sum_k W_k a_k a_k^T / (a_k . nu)^2        sum_j nu_j load_j = sum_k W_k

so that at the optimum sum nu = sum W (5): each unit of weight is a unit of money, and nu_j what all of resource j costs.
Multiplying a row by a constant multiplies only prices a_k . nu: rows are normalised to a largest entry of 1 here, and
weights to a sum of 1, and answers are given in the caller's weights.

This module knows nothing of how a minimum is found; that is ``interior_point`` and ``polish``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, inf, isfinite, log, sqrt
from operator import mul
from typing import Final

from fairlead_master.allocation.multipliers.symmetric import solve_semidefinite

Row = Sequence[float]
"""What one unit takes of each resource, per capacity, in any unit above zero; not all zero."""

DemandClass = tuple[Row, float]
"""A row and the sum of the weights, above zero, of the users who want it."""

PRICE_FLOOR: Final = 1e-9
"""Of all money, what a resource costs at least for those who keep multipliers while classes come and go: a class that
needs only resources that were free of charge would otherwise get infinitely much."""

_ROUNDING: Final = 4e-15
"""Loads are sums of rounded quotients; differences below this are no information."""


@dataclass(frozen=True, slots=True)
class Point:
    """The dual at some multipliers, for weights that sum to 1."""

    prices: Sequence[float]
    """Of one unit of each class: a_k . nu."""
    load: list[float]
    """Per resource, the fraction of its capacity that is taken at these multipliers; 1 is all of it."""
    hessian: list[list[float]]
    """Resource by resource; only the lower triangle is filled."""


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


class Dual:
    """The classes of one problem, ready to be summed over again and again: a pass costs O(classes x resources^2).

    The sums are ``sum(map(mul, ...))`` over columns, which stay within the interpreter's own C code: three times as fast
    as a loop over the classes.
    """

    def __init__(self, classes: Sequence[DemandClass]) -> None:
        """Normalise the classes.

        Raises:
            ValueError: There are none, a row is empty, zero, negative or not finite, or a weight is not above zero.
        """
        _check(classes)
        self.total_weight = fsum(weight for _, weight in classes)
        self.weights = [weight / self.total_weight for _, weight in classes]
        self.rows = [
            [entry / largest for entry in row] for row, largest in ((row, max(row)) for row, _ in classes)
        ]
        self.columns = [list(column) for column in zip(*self.rows, strict=True)]
        self.needed = [place for place, column in enumerate(self.columns) if any(column)]
        """The resources that anybody needs, in order; the others cost nothing."""
        self._roots = [sqrt(weight) for weight in self.weights]

    def prices(self, values: Sequence[float]) -> list[float]:
        """What one unit of each class, normalised to a largest entry of 1, costs at these multipliers."""
        return [sum(map(mul, row, values)) for row in self.rows]

    def at(self, values: Sequence[float]) -> Point:
        """Prices, load and Hessian; every class must cost more than nothing.

        Raises:
            ZeroDivisionError: A class costs nothing.
        """
        prices = self.prices(values)
        volumes = [weight / price for weight, price in zip(self.weights, prices, strict=True)]
        roots = [root / price for root, price in zip(self._roots, prices, strict=True)]
        scaled = [list(map(mul, column, roots)) for column in self.columns]
        return Point(
            prices,
            [sum(map(mul, column, volumes)) for column in self.columns],
            [
                [sum(map(mul, row, scaled[other])) for other in range(place + 1)]
                for place, row in enumerate(scaled)
            ],
        )

    def certify(self, values: Sequence[float], point: Point) -> Certificate:
        """What is certain about multipliers that sum to 1, from the point there."""
        fullest = max(point.load)
        return Certificate(
            overload=max(0.0, fullest - 1.0),
            slackness=max(value * (1.0 - load) for value, load in zip(values, point.load, strict=True)),
            gap=max(0.0, fsum(values) - 1.0 + log(fullest)),
            relative_error=_relative_error(values, point, min(self.weights)),
        )


def load(classes: Sequence[DemandClass], values: Sequence[float]) -> list[float]:
    """Per resource, the fraction of its capacity that is taken at multipliers ``values``: sum_k W_k a_kj / (a_k . nu)."""
    dual = Dual(classes)
    return dual.at([value / dual.total_weight for value in values]).load


def certify(classes: Sequence[DemandClass], values: Sequence[float]) -> Certificate:
    """How far multipliers, in the unit of the weights, are from the right ones; by sums made anew from the classes."""
    dual = Dual(classes)
    scaled = [value / dual.total_weight for value in values]
    return dual.certify(scaled, dual.at(scaled))


def floored(values: Sequence[float], total_weight: float) -> list[float]:
    """The multipliers, none below ``PRICE_FLOOR`` of all money: safe to divide by, whatever class comes next."""
    floor = PRICE_FLOOR * total_weight
    return [value if value > floor else floor for value in values]


def _relative_error(values: Sequence[float], point: Point, smallest_weight: float) -> float:
    """A bound on the relative error of every price, hence of every phi.

    Let d = nu* - nu and r = load - 1 at nu. The optimum nu* makes r . d >= |d|^2 / (1 + |d|) in the norm of the Hessian
    H at nu, because D, divided by its smallest weight, is self-concordant; and d_j >= 0 where nu_j = 0, so that there
    r_j may be replaced by anything larger. With u the Newton step on the other resources, r . d <= H u . d + e |d|_1,
    where e is what the step leaves of the excess; H u . d <= lambda |d| with lambda^2 = u . H u; and |d|_1 <= 2, both nu
    summing to 1. So |d|^2 <= (lambda |d| + 2 e) (1 + |d|), and |d| bounds the relative error of each class.
    """
    face = [place for place, value in enumerate(values) if value > 0]
    step, decrement = newton_step(point, face)
    left = 0.0
    for place in range(len(values)):
        # Row `place` of H u: by how much the step lowers that load.
        lowered = sum(
            _entry(point.hessian, place, other) * move for other, move in zip(face, step, strict=True)
        )
        excess = point.load[place] - 1.0 - lowered
        left = max(left, excess if place not in face else abs(excess))
    decrement /= sqrt(smallest_weight)
    left = 2.0 * left / smallest_weight if left > _ROUNDING else 0.0
    if decrement + left >= 1.0:
        return inf
    middle = decrement + left
    return (middle + sqrt(middle * middle + 4.0 * left * (1.0 - decrement))) / (2.0 * (1.0 - decrement))


def newton_step(point: Point, face: Sequence[int]) -> tuple[list[float], float]:
    """The step, along the resources of ``face`` only, to loads of 1, and its length in the norm of the Hessian."""
    excess = [point.load[place] - 1.0 for place in face]
    step = solve_semidefinite(
        [[_entry(point.hessian, row, column) for column in face] for row in face], excess
    )
    return step, sqrt(max(0.0, sum(map(mul, step, excess))))


def _entry(lower: Sequence[Sequence[float]], row: int, column: int) -> float:
    return lower[row][column] if column <= row else lower[column][row]


def _check(classes: Sequence[DemandClass]) -> None:
    if not classes:
        raise ValueError("classes: expected at least one, got none")
    width = len(classes[0][0])
    for place, (row, weight) in enumerate(classes):
        if len(row) != width:
            raise ValueError(f"classes[{place}]: expected {width} resources as in the first, got {len(row)}")
        if not all(isfinite(entry) and entry >= 0 for entry in row) or not any(row):
            raise ValueError(
                f"classes[{place}]: expected finite demand, none below 0 and not all 0, got {list(row)}"
            )
        if not (isfinite(weight) and weight > 0):
            raise ValueError(f"classes[{place}]: expected a finite weight above 0, got {weight}")
