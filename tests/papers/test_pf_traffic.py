"""Bonald and Roberts (paper 000), sections 3 and 4: jobs that come and go. Exact where the paper approximates or simulates.

Its figures are plots without numbers; what the text says of them in numbers or formulas is here. Four of the formulas
cannot be right, see docs/errata.md: the light traffic of proportional fairness, the heavy traffic of both policies, and
phi_1(n) of section 3.4.
"""

from fractions import Fraction
from itertools import pairwise

import pytest

from tests.papers import traffic
from tests.papers.problems import a_problem, tasks

F = Fraction
PROFILES = [(F(1, 10), F(1, 10)), (F(1, 10), F(1, 2)), (F(1, 5), F(4, 5)), (F(0), F(3, 4))]
"""alpha <= beta: figures 1 and 2, and two with beta above a half, where 2 - 1/beta counts."""
SMALL = F(1, 10**6)


@pytest.mark.parametrize(("alpha", "beta"), PROFILES[:3])
@pytest.mark.parametrize("policy", ["drf", "pf"])
def test_section_3_rates_of_two_classes_are_those_of_the_solvers(
    policy: str, alpha: Fraction, beta: Fraction
) -> None:
    """DRF is held back by the heaviest load, argmax_j (n_1 a_1j + n_2 a_2j); PF by prices: the closed forms of both."""
    rates = {"drf": traffic.drf, "pf": traffic.pf}[policy]
    for n1, n2 in ((1, 1), (1, 3), (2, 5), (4, 1), (3, 0), (0, 2)):
        users = {f"1.{n}": (1, alpha) for n in range(n1)} | {f"2.{n}": (beta, 1) for n in range(n2)}
        phi = rates(n1, n2, alpha, beta)
        expected = {name: float(phi[int(name[0]) - 1]) for name in users}
        assert tasks(a_problem((1, 1), users), policy) == pytest.approx(expected, rel=1e-8)


def test_section_3_3_loads_of_the_two_patterns() -> None:
    """lambda/2 (1 + 1/10) when balanced; lambda/4 (3 + 1/10) and lambda/4 (3/10 + 1) when not: 31/13, "nearly 3" times.

    31/13 is 2.38.
    """
    a1, a2 = (F(1), F(1, 10)), (F(1, 10), F(1))
    balanced = [F(1, 2) * x + F(1, 2) * y for x, y in zip(a1, a2, strict=True)]
    unbalanced = [F(3, 4) * x + F(1, 4) * y for x, y in zip(a1, a2, strict=True)]

    assert balanced == [F(1, 2) * (1 + F(1, 10))] * 2
    assert unbalanced == [F(1, 4) * (3 + F(1, 10)), F(1, 4) * (F(3, 10) + 1)]
    assert unbalanced[0] / unbalanced[1] == F(31, 13)


@pytest.mark.parametrize(("alpha", "beta"), PROFILES)
@pytest.mark.parametrize("rates", [traffic.drf, traffic.pf])
def test_section_3_3_light_traffic_is_what_the_chain_does(
    rates: traffic.Rates, alpha: Fraction, beta: Fraction
) -> None:
    """The derivation above against the chain with up to three jobs, solved exactly: apart by the square of the load only."""
    coefficients = traffic.light_traffic(rates, alpha, beta)

    for rho in ((SMALL, SMALL), (3 * SMALL, SMALL), (SMALL, 5 * SMALL)):
        gamma = traffic.service_rates(rates, alpha, beta, rho, jobs_max=3)
        first = 1 - coefficients[0] * rho[0] - coefficients[1] * rho[1]
        second = 1 - coefficients[2] * rho[0] - coefficients[3] * rho[1]
        assert abs(gamma[0] - first) < 100 * SMALL**2
        assert abs(gamma[1] - second) < 100 * SMALL**2


@pytest.mark.parametrize(("alpha", "beta"), PROFILES)
def test_section_3_3_light_traffic_of_drf_is_as_printed(alpha: Fraction, beta: Fraction) -> None:
    """phi = 1 / (1 + beta) for both, so 2 (1 - phi) / (2 phi) = beta."""
    assert traffic.light_traffic(traffic.drf, alpha, beta) == [1, beta, beta, 1]


@pytest.mark.parametrize(("alpha", "beta"), PROFILES)
def test_section_3_3_light_traffic_of_pf_is_not_as_printed(alpha: Fraction, beta: Fraction) -> None:
    """Printed: beta and max(2 - 1/beta, alpha). With both resources used up by one job of each class, phi_1 = (1 - beta) /
    (1 - alpha beta) and phi_2 = (1 - alpha) / (1 - alpha beta), else phi = (1/2, 1/(2 beta)).

    The printed numbers follow if the state of one job each has probability rho_1 rho_2 / phi_2 for class 1 and
    rho_1 rho_2 / phi_1 for class 2: two values for one probability. They are right where alpha = beta.
    """
    if alpha >= 2 - 1 / beta:
        both = 2 - alpha - beta
        corrected = [1, 2 * beta * (1 - alpha) / both, 2 * alpha * (1 - beta) / both, 1]
    else:
        corrected = [1, 2 * beta / (1 + beta), 2 * (2 * beta - 1) / (1 + beta), 1]
    printed = [1, beta, max(2 - 1 / beta, alpha), 1]

    assert traffic.light_traffic(traffic.pf, alpha, beta) == corrected
    assert (corrected == printed) == (alpha == beta)
    phi = traffic.pf(1, 1, alpha, beta)
    assert printed == [1, (1 - phi[0]) / phi[1], (1 - phi[1]) / phi[0], 1]


def test_section_3_3_pf_costs_class_1_something_in_light_traffic() -> None:
    """The text says class 1 behaves alike under both; it pays for what class 2 gains, as figure 2 does show."""
    for alpha, beta in PROFILES[1:]:
        drf, pf = (
            traffic.light_traffic(traffic.drf, alpha, beta),
            traffic.light_traffic(traffic.pf, alpha, beta),
        )
        assert pf[1] > drf[1]
        assert pf[2] < drf[2]
    assert traffic.light_traffic(traffic.pf, F(1, 10), F(1, 2)) == [1, F(9, 14), F(1, 14), 1]


def test_section_3_3_heavy_traffic_where_both_classes_need_all_of_resource_1() -> None:
    """beta = 1: resource 1 is always the one used up, and both policies are processor sharing: gamma = 1 - load for all.

    The printed gamma_2 = (1 - load) / alpha is ten times that for alpha = 1/10.
    """
    alpha, beta = F(1, 10), F(1)
    for n1, n2 in ((1, 1), (2, 7), (9, 1)):
        assert traffic.pf(n1, n2, alpha, beta) == traffic.drf(n1, n2, alpha, beta) == (F(1, n1 + n2),) * 2

    rho = (F(7, 10), F(2, 10))
    jobs = traffic.means_of_weighted_processor_sharing(rho, (F(1), beta), (F(1), F(1)))
    load = rho[0] + beta * rho[1]
    gamma_2 = rho[1] / jobs[1]
    assert gamma_2 == 1 - load == F(1, 10)
    assert (1 - load) / alpha == 1


@pytest.mark.parametrize(("alpha", "beta"), PROFILES[:3])
def test_section_3_3_heavy_traffic_of_pf(alpha: Fraction, beta: Fraction) -> None:
    """Prices (n, 0): each job has 1/n of resource 1, so phi_2 = 1/(beta n), and a job of class 2 is beta of work there.

    Processor sharing: E(n_1) = rho_1 / (1 - load), E(n_2) = beta rho_2 / (1 - load). So gamma_1 = 1 - load as printed, and
    gamma_2 = (1 - load) / beta where (1 - load) / alpha is printed. Resource 2 bears it: at the mean population it is used
    by (alpha rho_1 + rho_2) / load < 1.
    """
    for load in (F(9, 10), F(999, 1000)):
        rho = (load * 3 / (3 + beta), load / (3 + beta))
        assert alpha * rho[0] + rho[1] < rho[0] + beta * rho[1] == load

        jobs = traffic.means_of_weighted_processor_sharing(rho, (F(1), beta), (F(1), F(1)))

        assert jobs == (rho[0] / (1 - load), beta * rho[1] / (1 - load))
        assert rho[0] / jobs[0] == 1 - load
        assert rho[1] / jobs[1] == (1 - load) / beta
        n = sum(jobs)
        phi = traffic.pf(round(jobs[0] * 1000), round(jobs[1] * 1000), alpha, beta)
        assert float(phi[0]) == pytest.approx(float(1 / n / 1000), rel=1e-3)
        assert float(phi[1]) == pytest.approx(float(1 / n / 1000 / beta), rel=1e-3)


@pytest.mark.parametrize(("alpha", "beta"), PROFILES[:3])
def test_section_3_3_heavy_traffic_of_drf(alpha: Fraction, beta: Fraction) -> None:
    """Equal phi share resource 1 in the ratio 1 : beta. Both rates approach (1 - load) / (rho_1 + beta^2 rho_2).

    The paper has 1 - load for them, which is less: class 2's jobs are short there and are served at a lower weight.
    """
    limit = 1 / (3 / (3 + beta) + beta**2 / (3 + beta))
    distances = []
    for load in (F(99, 100), F(999, 1000), F(9999, 10_000)):
        rho = (load * 3 / (3 + beta), load / (3 + beta))
        assert alpha * rho[0] + rho[1] < load
        jobs = traffic.means_of_weighted_processor_sharing(rho, (F(1), beta), (F(1), beta))
        gamma = [rho[k] / jobs[k] / (1 - load) for k in range(2)]
        distances.append(max(abs(rate - limit) for rate in gamma))

    assert all(late < early / 5 for early, late in pairwise(distances))
    assert distances[-1] < F(1, 1000)
    assert limit > 1


def claimed(n: int, alpha: Fraction, beta: Fraction) -> tuple[Fraction, Fraction]:
    """Section 3.4 corrected: phi_1(n), phi_2(n) of one job that claims (1, beta) beside n of (alpha, 1).

    Both resources used up: phi_1 = (1 - alpha) / (1 - alpha beta); resource 2 alone: 1 / (beta (n + 1)); the smaller holds.
    """
    first = min((1 - alpha) / (1 - alpha * beta), 1 / (beta * (n + 1))) if n else F(1)
    return first, (1 - beta * first) / n if n else F(0)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("beta", [F(1, 10), F(2, 11), F(5, 14), F(10, 19), F(9, 10)])
def test_section_3_4_rates_of_a_job_that_lies(n: int, beta: Fraction) -> None:
    """The printed phi_1(n) has a factor 1/n too many in its first branch: too little for n > 1, unless the second is smaller still."""
    alpha = F(1, 10)
    first, second = claimed(n, alpha, beta)

    users = {"liar": (1, beta)} | {str(k): (alpha, 1) for k in range(n)}
    given = tasks(a_problem((1, 1), users), "pf")

    assert given["liar"] == pytest.approx(float(first), rel=1e-8)
    assert given["0"] == pytest.approx(float(second), rel=1e-8)
    printed = min((1 - alpha) / (1 - alpha * beta) / n, 1 / (beta * (n + 1)))
    assert printed <= first
    assert (printed == first) == (n == 1 or beta == F(9, 10))


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_section_3_4_the_best_claim_is_the_printed_one(n: int) -> None:
    """1 / (1 + n (1 - alpha)), where the two branches meet; with the printed 1/n they would meet at n / (n + 1 - alpha).

    It is above alpha if n < 1/alpha; at n = 1/alpha, which the paper counts in, it is alpha itself.
    """
    alpha = F(1, 10)
    best = 1 / (1 + n * (1 - alpha))

    assert (1 - alpha) / (1 - alpha * best) == 1 / (best * (n + 1))
    assert alpha < best < 1
    top = claimed(n, alpha, best)[0]
    for step in range(1, 90):
        assert claimed(n, alpha, alpha + F(step, 100))[0] <= top
    if n > 1:
        with_printed_factor = n / (n + 1 - alpha)
        assert claimed(n, alpha, with_printed_factor)[0] < top
    assert 1 / (1 + 10 * (1 - alpha)) == alpha


def mean_rate(rho: Fraction, alpha: Fraction, beta: Fraction) -> float:
    """gamma_1 = sum over n of pi(n) phi_1(n): births at rate rho_2, deaths at n phi_2(n); what is left out is below 1e-12."""
    weight, total, served = 1.0, 0.0, 0.0
    n = 0
    while weight > 1e-13 * (1 - float(rho)) * max(total, 1.0):
        first, _ = claimed(n, alpha, beta)
        total += weight
        served += weight * float(first)
        n += 1
        weight *= float(rho) / (n * float(claimed(n, alpha, beta)[1]))
    return served / total


def test_figure_4_no_claim_gains_anything() -> None:
    """alpha = 1/10; claims best for 1, 2 and 5 others are 10/19, 5/14 and 2/11; curves "from bottom to top" in that order."""
    alpha = F(1, 10)
    claims = [1 / (1 + n * (1 - alpha)) for n in (1, 2, 5)]
    assert claims == [F(10, 19), F(5, 14), F(2, 11)]

    for tenth in range(1, 10):
        rho = F(tenth, 10)
        rates = [mean_rate(rho, alpha, beta) for beta in (*claims, alpha)]
        assert rates == sorted(rates)
        assert rates[2] < rates[3]


def test_section_3_4_when_a_whole_class_lies_capacity_is_lost() -> None:
    """(10) with balanced load rho each: resource 2 bears rho (beta + 1) < 1, CPU load (1 + alpha) rho < (1 + alpha)/(1 + beta)."""
    alpha = F(1, 10)
    for beta in (F(10, 19), F(5, 14), F(2, 11)):
        largest_rho = 1 / (1 + beta)
        assert largest_rho * (alpha + 1) == (1 + alpha) / (1 + beta) < 1
        assert max(largest_rho * (1 + alpha), largest_rho * (beta + 1)) == 1


def test_section_4_2_ratio_of_service_times() -> None:
    """(500/100) / (401/100 + 1/99 + 1/98 + ... + 1) = 0.5442, printed 0.54; mu = C / (sigma tau) = 100 / (500 / 5) = 1."""
    ratio = F(500, 100) / (F(401, 100) + sum(F(1, n) for n in range(1, 100)))

    assert round(float(ratio), 2) == 0.54
    assert float(ratio) == pytest.approx(0.54422, abs=5e-6)
    assert F(100) / (500 * F(1, 5)) == 1
    assert 401 + 99 == 500
