"""Bonald and Roberts (paper 000), figures 1 to 6: what the text says of the curves, by the stationary distribution.

The paper simulates; here the chain of section 3.1 is solved, up to so many jobs that the rest does not show.
"""

from fractions import Fraction
from itertools import pairwise

import pytest

from fairlead_proto.resources import Vector
from tests.allocation.builders import add_agent, an_allocator, launch, want
from tests.allocation.builders import add_framework as add_job
from tests.papers import chain, traffic

F = Fraction
SYMMETRIC = ((1.0, 0.1), (0.1, 1.0))
"""Figure 1 and, with the claims below for the 1/10 of class 1, figure 5."""
FIGURE_2 = ((1.0, 0.1), (0.5, 1.0))
FIGURE_3 = ((1.0, 0.1), (1.0, 0.5), (0.5, 1.0), (0.1, 1.0))
CLAIMS = (F(10, 19), F(5, 14), F(2, 11))
"""Best against 1, 2 and 5 jobs of class 2: section 3.4."""


def arrivals(profiles: chain.Profiles, parts: tuple[int, ...], load: float) -> list[float]:
    """rho of each class, in these parts, for a load of resource 1."""
    each = load / sum(part * row[0] for part, row in zip(parts, profiles, strict=True))
    return [part * each for part in parts]


def both(
    profiles: chain.Profiles, parts: tuple[int, ...], load: float, jobs_max: int
) -> tuple[list[float], list[float]]:
    """gamma under DRF and under PF."""
    rho = arrivals(profiles, parts, load)
    drf = chain.service_rates(chain.drf, rho, profiles, jobs_max=jobs_max)
    return drf, chain.service_rates(chain.pf, rho, profiles, jobs_max=jobs_max)


@pytest.mark.parametrize("load", [0.001, 0.2, 0.5])
def test_section_3_3_one_resource_is_processor_sharing(load: float) -> None:
    """ "1 - load for both", and 1 "at load zero"; two resources that are needed alike are one."""
    for gamma in both(((1.0, 1.0), (1.0, 1.0)), (1, 3), load, 22):
        assert gamma == pytest.approx([1 - load] * 2, rel=1e-4)


def test_figure_1a_pf_outperforms_drf_especially_at_high_load() -> None:
    """The two classes coincide "by symmetry". PF is at 1 - load; DRF behaves "rather worse" than that."""
    gains = []
    for load, jobs_max in ((0.1, 10), (0.3, 18), (0.5, 24)):
        drf, pf = both(SYMMETRIC, (1, 1), load, jobs_max)
        assert drf[0] == pytest.approx(drf[1])
        assert pf == pytest.approx([1 - load] * 2, rel=1e-3)
        gains.append(pf[0] / drf[0])
    assert all(late > early + 0.04 for early, late in pairwise(gains))
    assert gains[0] > 1


@pytest.mark.parametrize(("load", "jobs_max"), [(0.3, 18), (0.5, 24)])
def test_figure_1b_the_class_of_the_idle_resource_gains_and_the_other_is_the_same(
    load: float, jobs_max: int
) -> None:
    """rho_1 = 3 rho_2: "significantly higher" for class 2, "practically the same" for class 1, about 1 - load."""
    drf, pf = both(SYMMETRIC, (3, 1), load, jobs_max)

    assert pf[1] > 1.07 * drf[1]
    assert drf[0] == pytest.approx(pf[0], rel=0.01)
    assert [drf[0], pf[0]] == pytest.approx([1 - load] * 2, rel=0.01)


@pytest.mark.parametrize("parts", [(1, 1), (3, 1)], ids=["balanced", "unbalanced"])
@pytest.mark.parametrize(("load", "jobs_max"), [(0.1, 10), (0.3, 18), (0.5, 24)])
def test_figure_2_class_2_gains_much_at_a_slight_cost_to_class_1(
    parts: tuple[int, int], load: float, jobs_max: int
) -> None:
    """ "At low load" too."""
    drf, pf = both(FIGURE_2, parts, load, jobs_max)

    assert pf[1] > drf[1] * (1 + load / 4)
    assert 0.97 * drf[0] < pf[0] < drf[0]


@pytest.mark.parametrize("parts", [(1, 1, 1, 1), (3, 3, 1, 1)], ids=["balanced", "unbalanced"])
def test_figure_3_four_classes_show_the_same(parts: tuple[int, ...]) -> None:
    """Classes 3 and 4, whose dominant resource is RAM, gain; the gain is larger if RAM has less load."""
    drf, pf = both(FIGURE_3, parts, 0.4, 9)

    gains = [late / early for early, late in zip(drf, pf, strict=True)]
    assert min(gains[2:]) > (1.03 if parts[0] == parts[3] else 1.07)
    assert min(gains) > 0.995


@pytest.mark.parametrize("claim", CLAIMS)
def test_figure_5_at_higher_loads_a_class_that_lies_loses_under_both(claim: Fraction) -> None:
    """ "Service rates at stable loads are reduced for both", class 2's too; loads of the true requirements."""
    claimed = ((1.0, float(claim)), SYMMETRIC[1])
    load = 0.6
    rho = arrivals(SYMMETRIC, (1, 1), load)
    for rate in (chain.drf, chain.pf):
        honest = chain.service_rates(rate, rho, SYMMETRIC, jobs_max=20)
        lying = chain.service_rates(rate, rho, SYMMETRIC, claimed=claimed, jobs_max=20)
        assert all(late < early for early, late in zip(honest, lying, strict=True))


@pytest.mark.parametrize("claim", CLAIMS)
def test_figure_5b_in_light_traffic_a_class_that_lies_gains_under_pf(claim: Fraction) -> None:
    """By the approximation of section 3.3, as corrected: with one job of each class, phi_1 = (1 - alpha) / (1 - alpha beta)
    and phi_2 = (1 - beta) / (1 - alpha beta) of a claimed beta. gamma_1 falls by 2 alpha (1 - beta) / (2 - alpha - beta) rho_2:
    by alpha rho_2 if it is honest, and by less for every beta > alpha. The text has rates reduced, and "no winning strategy".
    """
    alpha = F(1, 10)

    coefficients = traffic.light_traffic(traffic.pf, claim, alpha)

    assert traffic.light_traffic(traffic.pf, alpha, alpha) == [1, alpha, alpha, 1]
    assert coefficients[1] == 2 * alpha * (1 - claim) / (2 - alpha - claim) < alpha
    assert coefficients[2] > alpha


def test_figure_5b_the_gain_in_the_chain() -> None:
    """At load 0.1, for the claim of 5/14: 0.9011 after 0.9000. Class 2 pays. Under DRF class 1 loses at once."""
    rho = arrivals(SYMMETRIC, (1, 1), 0.1)
    claimed = ((1.0, 5 / 14), SYMMETRIC[1])

    honest = chain.service_rates(chain.pf, rho, SYMMETRIC, jobs_max=12)
    lying = chain.service_rates(chain.pf, rho, SYMMETRIC, claimed=claimed, jobs_max=12)
    with_drf = [
        chain.service_rates(chain.drf, rho, SYMMETRIC, claimed=claims, jobs_max=12)
        for claims in (None, claimed)
    ]

    assert honest == pytest.approx([0.9, 0.9], abs=1e-6)
    assert lying[0] == pytest.approx(0.90111, abs=1e-5)
    assert lying[1] == pytest.approx(0.87187, abs=1e-5)
    assert with_drf[1][0] < with_drf[0][0]


def test_section_4_2_a_job_alone_on_the_allocator() -> None:
    """500 tasks, 100 at a time: "100 tasks in progress until 400 are completed and then 99, 98 and so on".

    The next one to end does so after 1/n of a mean task, n in progress; 5 is the fluid job's time in such tasks. 0.54.
    """
    unit: Vector = (100, 10, 0, 0)
    allocator = an_allocator(policy="pf")
    add_agent(allocator, "cluster", (10_000, 10_000, 0, 0))
    job = add_job(allocator, "job", unit, 500)
    running, completed, taken, counts = [], 0, F(0), []
    while completed < 500:
        for grant in allocator.cycle(completed):
            launch(allocator, grant)
            running.extend([grant] * grant.units)
        counts.append(len(running))
        taken += F(1, len(running))
        ended = running.pop()
        allocator.release(ended.framework_id, ended.agent_id, ended.unit)
        completed += 1
        want(allocator, job, unit, 500 - completed - len(running))

    assert counts == [100] * 401 + list(range(99, 0, -1))
    assert F(500, 100) / taken == F(5) / (F(401, 100) + sum(F(1, n) for n in range(1, 100)))
    assert round(float(5 / taken), 2) == 0.54
