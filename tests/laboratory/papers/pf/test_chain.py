"""Rates by the solvers, the stationary distribution, and the simulation: each against something that is known."""

from random import Random

import pytest

from fairlead_lab.papers.pf.chain import LEFT_OUT_MAX, Chain
from fairlead_lab.papers.pf.fluid import simulate
from fairlead_lab.papers.pf.intervals import quantile_of_t
from fairlead_lab.papers.pf.rates import POLICIES, Rates
from fairlead_lab.papers.pf.traffic import FIGURE_2, FIGURE_3, SYMMETRIC, Profiles, Traffic, loads
from fairlead_master.solvers.problem import Problem, User
from fairlead_master.solvers.registry import solve
from tests.papers import chain as reference

ALIKE: Profiles = ((1.0, 1.0), (1.0, 1.0))
"""Two classes that share one resource, in effect."""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("profiles", [SYMMETRIC, FIGURE_2, FIGURE_3])
def test_rates_are_those_that_fairlead_allocate_gives_each_job(policy: str, profiles: Profiles) -> None:
    rates = Rates(policy, profiles)
    dice = Random(4)
    for _ in range(20):
        state = tuple([dice.randrange(5) for _ in profiles])
        jobs = [row for n, row in zip(state, profiles, strict=True) for _ in range(n)]
        users = tuple([User(str(place), row, (1.0, 1.0)) for place, row in enumerate(jobs)])
        alone = iter(solve(Problem(("cpus", "mem"), (1.0, 1.0), users), policy).tasks) if users else iter(())
        expected = [sum(next(alone) for _ in range(n)) for n in state]

        assert rates.tasks(state) == pytest.approx(expected, rel=1e-9)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="policy: expected one of drf, pf, got 'fifo'"):
        Rates("fifo", SYMMETRIC)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("load", [0.001, 0.3, 0.9])
def test_one_resource_is_processor_sharing(policy: str, load: float) -> None:
    """ "For a single resource, the service rate would in fact be 1 - load for both"."""
    found = Chain(Rates(policy, ALIKE)).solve(Traffic(ALIKE, (1, 3)).arrivals(load))

    assert found.service_rates == pytest.approx([1 - load] * 2, rel=1e-4)
    assert found.left_out <= LEFT_OUT_MAX


@pytest.mark.parametrize(("profiles", "parts"), [(SYMMETRIC, (3, 1)), (FIGURE_2, (1, 1))])
def test_the_chain_of_paper_000_is_that_of_its_closed_forms(
    profiles: Profiles, parts: tuple[int, ...]
) -> None:
    arrivals = Traffic(profiles, parts).arrivals(0.5)
    pairs = [(row[0], row[1]) for row in profiles]
    for policy, rate in (("drf", reference.drf), ("pf", reference.pf)):
        expected = reference.service_rates(rate, arrivals, pairs, jobs_max=24)

        found = Chain(Rates(policy, profiles)).solve(arrivals, jobs_max=24)

        assert found.service_rates == pytest.approx(expected, rel=1e-5)


def test_more_states_change_nothing() -> None:
    arrivals = Traffic(SYMMETRIC, (1, 1)).arrivals(0.6)
    chain = Chain(Rates("drf", SYMMETRIC))

    enough = chain.solve(arrivals)
    more = chain.solve(arrivals, jobs_max=2 * enough.jobs_max)

    assert more.service_rates == pytest.approx(enough.service_rates, rel=3 * LEFT_OUT_MAX)
    assert more.left_out < enough.left_out / 1_000


def test_too_few_states_are_owned_up_to() -> None:
    arrivals = Traffic(ALIKE, (1, 1)).arrivals(0.8)

    cut_short = Chain(Rates("pf", ALIKE)).solve(arrivals, jobs_max=20)

    true_mean, mean = 0.8 / 0.2, sum(cut_short.mean_jobs)
    assert cut_short.left_out > 0.01
    assert true_mean > mean > true_mean * (1 - 2 * cut_short.left_out)


@pytest.mark.parametrize("load", [1.0, 1.5])
def test_an_overload_has_no_mean(load: float) -> None:
    with pytest.raises(ValueError, match="arrivals: expected rates above 0 and loads below 1"):
        Chain(Rates("pf", SYMMETRIC)).solve(Traffic(SYMMETRIC, (1, 1)).arrivals(load))


def test_loads_of_the_two_patterns() -> None:
    """Section 3.3: lambda/4 (3 + 1/10) and lambda/4 (3/10 + 1)."""
    arrivals = Traffic(SYMMETRIC, (3, 1)).arrivals(0.31)

    assert arrivals == pytest.approx((0.3, 0.1))
    assert loads(arrivals, SYMMETRIC) == pytest.approx((0.31, 0.13))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("parts", [(1, 1), (3, 1)])
def test_the_simulation_agrees_with_the_chain(policy: str, parts: tuple[int, ...]) -> None:
    rates = Rates(policy, SYMMETRIC)
    for load in (0.3, 0.7):
        arrivals = Traffic(SYMMETRIC, parts).arrivals(load)

        found = simulate(rates, arrivals, jobs=20_000, dice=Random(2))

        exact = Chain(rates).solve(arrivals).service_rates
        for each, gamma in zip(found, exact, strict=True):
            assert abs(each.service_rate() - gamma) < each.half_width(16) < 0.08


def test_intervals_narrow_with_the_root_of_the_jobs() -> None:
    rates = Rates("pf", SYMMETRIC)
    arrivals = Traffic(SYMMETRIC, (1, 1)).arrivals(0.5)
    few, many = (
        simulate(rates, arrivals, jobs=jobs, dice=Random(3))[0].half_width(1) for jobs in (4_000, 64_000)
    )

    assert few / many == pytest.approx(4.0, rel=0.4)


@pytest.mark.parametrize(
    ("chance", "degrees", "expected"),
    [(0.975, 31, 2.0395), (0.995, 31, 2.7440), (0.9995, 31, 3.6335), (0.975, 20, 2.0860)],
)
def test_quantiles_are_those_of_the_tables(chance: float, degrees: int, expected: float) -> None:
    assert quantile_of_t(chance, degrees) == pytest.approx(expected, abs=5e-4)
