"""What makes an allocation optimal, asked of the answer alone."""

from collections.abc import Sequence
from math import inf


def optimality_error(
    rows: Sequence[Sequence[float]],
    weights: Sequence[float],
    limits: Sequence[float],
    units: Sequence[float],
    values: Sequence[float],
    alpha: float = 1.0,
) -> float:
    """By how much the conditions of Karush, Kuhn and Tucker are violated, relative to their terms; 0 at the optimum.

    Capacities are 1 and hold; a resource with a price is used up; everyone has w (a . nu)^(-1/alpha), or its limit where
    that is less.
    """
    errors = [0.0]
    for place, value in enumerate(values):
        load = sum(row[place] * amount for row, amount in zip(rows, units, strict=True))
        errors += [load - 1.0, -value, value * (1.0 - load) / max(sum(values), 1e-300)]
    for row, weight, limit, amount in zip(rows, weights, limits, units, strict=True):
        price = sum(need * value for need, value in zip(row, values, strict=True))
        wanted = min(limit, weight * price ** (-1.0 / alpha) if price else inf)
        errors.append(abs(amount / wanted - 1.0))
    return max(errors)
