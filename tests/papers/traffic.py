"""Two classes of jobs that come and go: rates of a job in each state, and exact means (paper 000, section 3).

Class 1 has the profile (1, alpha), class 2 (beta, 1); mu = 1 for both, so that traffic and arrival rates are one. All in
fractions.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

Rates = Callable[[int, int, Fraction, Fraction], tuple[Fraction, Fraction]]
"""From n_1, n_2, alpha, beta to phi_1, phi_2; a class without jobs has rate 0."""

_NONE: Final = Fraction(0)


def drf(n1: int, n2: int, alpha: Fraction, beta: Fraction) -> tuple[Fraction, Fraction]:
    """Largest requirements are 1, so that all have the same rate, set by the resource with the heaviest load."""
    rate = 1 / max(n1 + n2 * beta, n1 * alpha + n2)
    return (rate if n1 else _NONE), (rate if n2 else _NONE)


def pf(n1: int, n2: int, alpha: Fraction, beta: Fraction) -> tuple[Fraction, Fraction]:
    """One resource alone used up, if the other holds what follows from it; else both."""
    n = n1 + n2
    if not n1 or not n2:
        return (Fraction(1, n) if n1 else _NONE), (Fraction(1, n) if n2 else _NONE)
    if n1 * alpha + n2 / beta <= n:
        return Fraction(1, n), 1 / (beta * n)
    if n1 / alpha + n2 * beta <= n:
        return 1 / (alpha * n), Fraction(1, n)
    both = 1 - alpha * beta
    return (1 - beta) / both / n1, (1 - alpha) / both / n2


def light_traffic(rates: Rates, alpha: Fraction, beta: Fraction) -> list[Fraction]:
    """c_11, c_12, c_21, c_22 of gamma_k = 1 - c_k1 rho_1 - c_k2 rho_2, of second order in the populations.

    gamma_k = rho_k / E(n_k) and rho_k = E(n_k phi_k) give gamma_k = 1 - E(n_k (1 - phi_k)) / E(n_k), which two jobs decide.
    Two of one class: probability rho_k^2, phi_k = 1/2. One of each: rho_1 and rho_2 each lead there at the other's rate, and
    phi_1 + phi_2 leads out, so that the probability is 2 rho_1 rho_2 / (phi_1 + phi_2).
    """
    one, other = rates(1, 1, alpha, beta)
    return [Fraction(1), 2 * (1 - one) / (one + other), 2 * (1 - other) / (one + other), Fraction(1)]


def service_rates(
    rates: Rates, alpha: Fraction, beta: Fraction, rho: tuple[Fraction, Fraction], *, jobs_max: int
) -> tuple[Fraction, Fraction]:
    """gamma_k = rho_k / E(n_k) of the Markov chain that turns away who would be one more than ``jobs_max``."""
    states = [(n1, n - n1) for n in range(jobs_max + 1) for n1 in range(n + 1)]
    at = {state: place for place, state in enumerate(states)}
    # Column by column what flows into a state less what flows out; the first balance is replaced by: sums to one.
    rows = [[_NONE] * (len(states) + 1) for _ in states]

    def flow(source: tuple[int, int], target: tuple[int, int], rate: Fraction) -> None:
        if target in at:
            rows[at[target]][at[source]] += rate
            rows[at[source]][at[source]] -= rate

    for n1, n2 in states:
        phi = rates(n1, n2, alpha, beta) if n1 + n2 else (_NONE, _NONE)
        flow((n1, n2), (n1 + 1, n2), rho[0])
        flow((n1, n2), (n1, n2 + 1), rho[1])
        if n1:
            flow((n1, n2), (n1 - 1, n2), n1 * phi[0])
        if n2:
            flow((n1, n2), (n1, n2 - 1), n2 * phi[1])
    rows[0] = [Fraction(1)] * (len(states) + 1)
    chance = solved(rows)
    return (
        rho[0] / sum(p * n1 for p, (n1, _) in zip(chance, states, strict=True)),
        rho[1] / sum(p * n2 for p, (_, n2) in zip(chance, states, strict=True)),
    )


def means_of_weighted_processor_sharing(
    arrivals: Sequence[Fraction], sizes: Sequence[Fraction], weights: Sequence[Fraction]
) -> tuple[Fraction, Fraction]:
    """E(n_1), E(n_2) of one server whose jobs share it by weight; exponential sizes of these means.

    A_jk = E(n_j n_k / sum_l g_l n_l) has sum_k g_k A_jk = E(n_j). That the drift of n_j n_k is zero gives
    A_jj = lambda_j s_j (E(n_j) + 1) / g_j and, for j != k, A_jk = (lambda_j E(n_k) + lambda_k E(n_j)) / (g_j / s_j + g_k / s_k):
    two linear equations.
    """
    (l1, l2), (s1, s2), (g1, g2) = arrivals, sizes, weights
    both = g1 / s1 + g2 / s2
    rows = [
        [1 - l1 * s1 - g2 * l2 / both, -g2 * l1 / both, l1 * s1],
        [-g1 * l2 / both, 1 - l2 * s2 - g1 * l1 / both, l2 * s2],
    ]
    first, second = solved(rows)
    return first, second


def solved(rows: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """The solution of linear equations, each with its right side last; there is exactly one."""
    left = [list(row) for row in rows]
    for place in range(len(left)):
        pivot = next(row for row in range(place, len(left)) if left[row][place])
        left[place], left[pivot] = left[pivot], left[place]
        head = left[place] = [entry / left[place][place] for entry in left[place]]
        for row, line in enumerate(left):
            if row != place and line[place]:
                by = line[place]
                left[row] = [entry - by * other for entry, other in zip(line, head, strict=True)]
    return [row[-1] for row in left]
