"""Equation (9) of the paper on proportional fairness: multipliers by projected gradient, as slow as it is obvious.

    nu_j <- (nu_j + gamma (sum_i psi_i a_ij - 1))^+        psi_i = w_i / sum_j a_ij nu_j

The paper leaves the step gamma open. The Hessian at the optimum is of the order of 1 / sum nu, so that no constant works for
few and for many jobs: one tenth of the sum of the multipliers does. A multiplier that is projected to zero stays a little
above it, or a job that needs only such resources would divide by zero.
"""

from collections.abc import Sequence

STEP = 0.1
"""Of the sum of the multipliers."""

FLOOR = 1e-12
"""Of the sum of the weights."""


def multipliers_by_gradient(
    rows: Sequence[Sequence[float]], weights: Sequence[float], *, precision: float, iterations_max: int
) -> list[float]:
    """Multipliers once no load is above 1, or below it where it is charged for, by more than ``precision``."""
    total = sum(weights)
    width = len(rows[0])
    values = [total / width] * width
    loads: list[float] = []
    for _ in range(iterations_max):
        loads = [0.0] * width
        for row, weight in zip(rows, weights, strict=True):
            psi = weight / sum(need * value for need, value in zip(row, values, strict=True))
            for place, need in enumerate(row):
                loads[place] += psi * need
        slack = max(value / total * (1 - load) for value, load in zip(values, loads, strict=True))
        if max(loads) < 1 + precision and slack < precision:
            return values
        gamma = STEP * sum(values)
        values = [
            max(FLOOR * total, value + gamma * (load - 1)) for value, load in zip(values, loads, strict=True)
        ]
    raise AssertionError(f"no multipliers within {iterations_max} iterations: loads {loads}")
