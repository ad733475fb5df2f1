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

Alpha-fairness (their equation (6) with U the power function; alpha = 1 is proportional fairness) maximises
sum_i w_i^alpha phi_i^(1 - alpha) / (1 - alpha), hence phi_i = w_i (a_i . nu)^(-1/alpha): w users of weight 1 are one of
weight w. Its dual has the multipliers' scale in closed form. Put in, and after a logarithm, what is left is

    D(nu) = sum_j nu_j - (1 / beta) log sum_k W_k (a_k . nu)^beta        beta = 1 - 1 / alpha

with the same gradient as above, each class now weighing what it spends, s_k = W_k (a_k . nu)^beta over the sum of these,
and sum nu = 1 at its minimum; the multipliers are that times (sum_k W_k (a_k . nu)^beta)^alpha. Its Hessian is
(1 / alpha) sum_k s_k a_k a_k^T / (a_k . nu)^2 + beta load load^T.

This module knows nothing of how a minimum is found; that is ``interior_point`` and ``polish``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, isfinite, sqrt
from operator import mul, sub
from typing import Final, Protocol

from fairlead_master.allocation.multipliers.symmetric import solve_semidefinite

Row = Sequence[float]
"""What one unit takes of each resource, per capacity, in any unit above zero; not all zero."""

DemandClass = tuple[Row, float]
"""A row and the sum of the weights, above zero, of the users who want it."""

PRICE_FLOOR: Final = 1e-9
"""Of all money, what a resource costs at least for those who keep multipliers while classes come and go: a class that
needs only resources that were free of charge would otherwise get infinitely much."""


@dataclass(frozen=True, slots=True)
class Point:
    """The dual at some multipliers, for weights that sum to 1."""

    load: list[float]
    """Per resource, the fraction of its capacity that is taken at these multipliers; 1 is all of it."""
    hessian: list[list[float]]
    """Resource by resource; only the lower triangle is filled."""


@dataclass(frozen=True, slots=True)
class Differences:
    """The dual at some multipliers that sum to 1, seen from one resource of them, the pivot.

    Along directions that keep the sum, the gradient is ``load_j - load_pivot`` and the Hessian is made of the columns
    ``a_kj - a_k,pivot``. Where resources are needed in nearly the same proportions these subtractions are exact, while
    those of loads and Hessians would leave nothing but rounding.
    """

    pivot: int
    excess: list[float]
    """Per resource, load - 1."""
    gram: list[list[float]]
    """Alpha times the Hessian, resource by resource, the lower triangle; row and column of the pivot are zero."""
    alpha: float
    lightest: float
    """The smallest part of all money that a class spends."""

    def step(self, excess: Sequence[float], face: Sequence[int]) -> list[float]:
        """The Newton step that makes the loads of ``face``, the pivot among it, equal, where they are 1 + ``excess``.

        Moves are in the order of ``face``; they sum to 0.
        """
        gradient = [self.alpha * (excess[place] - excess[self.pivot]) for place in face]
        moves = solve_semidefinite([[self.entry(row, column) for column in face] for row in face], gradient)
        moves[face.index(self.pivot)] = -fsum(moves)
        return moves

    def excess_after(self, moves: Sequence[float]) -> list[float]:
        """What the excess over the pivot's becomes, to first order, when each multiplier moves by this much."""
        base = self.excess[self.pivot]
        return [
            excess
            - base
            - sum(self.entry(place, other) * move for other, move in enumerate(moves) if move) / self.alpha
            for place, excess in enumerate(self.excess)
        ]

    def norm(self, moves: Sequence[float]) -> float:
        """The length of a move: the root of the mean square, by money spent, of the relative change of prices."""
        places = range(len(moves))
        square = sum(
            moves[row] * moves[column] * self.entry(row, column) for row in places for column in places
        )
        return sqrt(max(0.0, square))

    def is_finite(self) -> bool:
        """Whether floats hold it; not so where a class is nearly free of charge."""
        return all(isfinite(row[place]) for place, row in enumerate(self.gram))

    def entry(self, row: int, column: int) -> float:
        """Of ``gram``, whichever triangle it is in."""
        return self.gram[row][column] if column <= row else self.gram[column][row]


class DualFunction(Protocol):
    """What finding a minimum needs to know of the dual of one problem, however its sums are made."""

    @property
    def alpha(self) -> float:
        """Of alpha-fairness."""

    @property
    def width(self) -> int:
        """How many resources there are."""

    @property
    def needed(self) -> Sequence[int]:
        """The resources that anybody needs, in order; the others cost nothing."""

    def is_charged(self, values: Sequence[float]) -> bool:
        """Whether every class costs more than nothing at these multipliers."""

    def scale(self, values: Sequence[float]) -> float:
        """What multipliers that sum to 1 are to be multiplied by, to be those for the caller's weights."""

    def at(self, values: Sequence[float]) -> Point:
        """Load and Hessian; ZeroDivisionError if a class costs nothing."""

    def beside(self, values: Sequence[float]) -> Differences:
        """The differences at multipliers that sum to 1, from the dearest resource; errors as for ``at``."""


class Dual:
    """The classes of one problem in lists, ready to be summed over again and again: a pass costs O(classes x resources^2).

    The sums are ``sum(map(mul, ...))`` over columns, which stay within the interpreter's own C code: three times as fast
    as a loop over the classes.
    """

    def __init__(self, classes: Sequence[DemandClass], alpha: float = 1.0) -> None:
        """Normalise the classes.

        Raises:
            ValueError: There are none, a row is empty, zero, negative or not finite, a weight is not above zero, or
                alpha is not.
        """
        check(classes, alpha)
        self.alpha = alpha
        self.beta = 1.0 - 1.0 / alpha
        largest = [max(row) for row, _ in classes]
        # A unit of the normalised row is `largest` of the caller's units: phi in them, hence the weight, changes by that.
        weights = [weight * unit**self.beta for (_, weight), unit in zip(classes, largest, strict=True)]
        self.total_weight = fsum(weights)
        self.weights = [weight / self.total_weight for weight in weights]
        self.rows = [[entry / unit for entry in row] for (row, _), unit in zip(classes, largest, strict=True)]
        self.columns = [list(column) for column in zip(*self.rows, strict=True)]
        self.width = len(self.columns)
        self.needed = [place for place, column in enumerate(self.columns) if any(column)]

    def prices(self, values: Sequence[float]) -> list[float]:
        """What one unit of each class, normalised to a largest entry of 1, costs at these multipliers."""
        return [sum(map(mul, row, values)) for row in self.rows]

    def is_charged(self, values: Sequence[float]) -> bool:
        """Whether every class costs more than nothing at these multipliers."""
        return all(self.prices(values))

    def scale(self, values: Sequence[float]) -> float:
        """What multipliers that sum to 1 are to be multiplied by, to be those for the caller's weights."""
        if self.alpha == 1.0:
            return self.total_weight
        prices = self.prices(values)
        spent = fsum(weight * price**self.beta for weight, price in zip(self.weights, prices, strict=True))
        return float((self.total_weight * spent) ** self.alpha)

    def at(self, values: Sequence[float]) -> Point:
        """Load and Hessian; every class must cost more than nothing.

        Raises:
            ZeroDivisionError: A class costs nothing.
        """
        prices = self.prices(values)
        spending = self._spending(prices)
        load = _products(self.columns, spending, prices)
        return point_of(load, _gram(self.columns, spending, prices), self.alpha)

    def beside(self, values: Sequence[float]) -> Differences:
        """The differences at multipliers that sum to 1, from the dearest resource; every class must cost something.

        Raises:
            ZeroDivisionError: A class costs nothing.
        """
        pivot = dearest(values)
        prices = self.prices(values)
        spending = self._spending(prices)
        columns = [list(map(sub, column, self.columns[pivot])) for column in self.columns]
        gradient = _products(columns, spending, prices)
        gram = _gram(columns, spending, prices)
        return Differences(pivot, excess_of(values, gradient), gram, self.alpha, min(spending))

    def _spending(self, prices: Sequence[float]) -> list[float]:
        """The part of all money that each class spends."""
        if self.alpha == 1.0:
            return self.weights
        spent = [weight * price**self.beta for weight, price in zip(self.weights, prices, strict=True)]
        total = sum(spent)
        return [part / total for part in spent]


def point_of(load: list[float], gram: list[list[float]], alpha: float) -> Point:
    """The dual's load and Hessian, from the sums over classes that both are made of."""
    if alpha == 1.0:
        return Point(load, gram)
    beta = 1.0 - 1.0 / alpha
    hessian = [
        [entry / alpha + beta * load[row] * load[column] for column, entry in enumerate(entries)]
        for row, entries in enumerate(gram)
    ]
    return Point(load, hessian)


def dearest(values: Sequence[float]) -> int:
    """The pivot: the resource with the largest multiplier, the first of equal ones."""
    return max(range(len(values)), key=values.__getitem__)


def excess_of(values: Sequence[float], gradient: Sequence[float]) -> list[float]:
    """Per resource load - 1, from ``load - load_pivot`` at multipliers that sum to 1.

    Multipliers times loads sum to 1, always: so the mean of the gradient tells what the pivot's load is.
    """
    mean = sum(map(mul, values, gradient))
    return [slope - mean for slope in gradient]


def load(classes: Sequence[DemandClass], values: Sequence[float]) -> list[float]:
    """Per resource, the fraction of its capacity that is taken at multipliers ``values``: sum_k W_k a_kj / (a_k . nu)."""
    dual = Dual(classes)
    return dual.at([value / dual.total_weight for value in values]).load


def floored(values: Sequence[float], total_weight: float) -> list[float]:
    """The multipliers, none below ``PRICE_FLOOR`` of all money: safe to divide by, whatever class comes next."""
    floor = PRICE_FLOOR * total_weight
    return [max(floor, value) for value in values]


def _products(
    columns: Sequence[Sequence[float]], spending: Sequence[float], prices: Sequence[float]
) -> list[float]:
    """Per column, sum_k spending_k column_k / price_k."""
    volumes = [money / price for money, price in zip(spending, prices, strict=True)]
    return [sum(map(mul, column, volumes)) for column in columns]


def _gram(
    columns: Sequence[Sequence[float]], spending: Sequence[float], prices: Sequence[float]
) -> list[list[float]]:
    """Per pair of columns, in the lower triangle, sum_k spending_k column_k other_k / price_k^2."""
    factors = [sqrt(money) / price for money, price in zip(spending, prices, strict=True)]
    scaled = [list(map(mul, column, factors)) for column in columns]
    return [
        [sum(map(mul, row, scaled[other])) for other in range(place + 1)] for place, row in enumerate(scaled)
    ]


def check(classes: Sequence[DemandClass], alpha: float) -> None:
    """Refuse what is no problem.

    Raises:
        ValueError: as ``Dual`` does.
    """
    if not (isfinite(alpha) and alpha > 0):
        raise ValueError(f"alpha: expected a finite number above 0, got {alpha}")
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
