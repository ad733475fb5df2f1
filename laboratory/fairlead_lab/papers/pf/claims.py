"""Figures 4 and 5 of paper 000, section 3.4: service rates of jobs that claim more than they need, alone or as a class.

Profiles are (1, alpha) and (alpha, 1), alpha = 1/10. Those of class 1 claim beta > alpha of resource 2, which pays against
n jobs of class 2 if n is known: best is beta = 1 / (1 + n (1 - alpha)), at which the claims use up both resources. A
job runs the tasks that are shared out to what it claims, whatever they would really take.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from fairlead_lab.papers.experiment import Cell, Experiment, Result, RunOptions, numbers
from fairlead_lab.papers.pf.chain import LEFT_OUT_MAX, Chain
from fairlead_lab.papers.pf.curves import framed
from fairlead_lab.papers.pf.rates import Rates
from fairlead_lab.papers.pf.traffic import SYMMETRIC, Profiles, Traffic, loads
from fairlead_lab.papers.statements import Statement, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS: Final = ("load", "claim", "service_rate")

ALPHA: Final = 0.1

TRUE: Final = "true"

CLAIMS: Final[Mapping[str, float]] = {
    TRUE: ALPHA,
    "n5": 1 / (1 + 5 * (1 - ALPHA)),
    "n2": 1 / (1 + 2 * (1 - ALPHA)),
    "n1": 1 / (1 + 1 * (1 - ALPHA)),
}
"""Claims of resource 2: the true need, and the best claims against 5, 2 and 1 jobs of class 2: 2/11, 5/14 and 10/19."""

_ALONE: Final = tuple(part / 20 for part in range(20))
"""rho_2 in figure 4."""

_TOGETHER: Final = tuple(part / 20 for part in range(1, 19))
_TOGETHER_QUICK: Final = (0.1, 0.3, 0.5, 0.6, 0.8)
"""CPU loads by true requirements in figure 5."""

_NEAR_CAPACITY: Final = 0.95
"""From this load of what is claimed up to 1, points are left out: their chains have too many states."""

_NEGLIGIBLE: Final = 1e-12

_Row = tuple[float, str, float]


def claiming(beta: float) -> Profiles:
    """Profiles that the policy sees when class 1 claims beta of resource 2."""
    return ((1.0, beta), SYMMETRIC[1])


def mean_rate_of_permanent_job(rates: Rates, rho: float) -> float:
    """gamma_1 = sum over n of pi(n) phi_1(n): one job of class 1 that never ends, and n of class 2.

    These are born at rate ``rho`` and die at n phi_2(n). rho < 1.
    """
    weight, total, served = 1.0, 0.0, 0.0
    n = 0
    while weight > _NEGLIGIBLE * (1.0 - rho) * total:
        first, _ = rates.tasks((1, n))
        total += weight
        served += weight * first
        n += 1
        weight *= rho / rates.tasks((1, n))[1]
    return served / total


def _run_figure_4(_: RunOptions) -> Result:
    """Compute figure 4; options change nothing, as it is exact and quick."""
    rows: list[_Row] = []
    for claim, beta in CLAIMS.items():
        rates = Rates("pf", claiming(beta))
        rows += [(rho, claim, mean_rate_of_permanent_job(rates, rho)) for rho in _ALONE]
    rows.sort(key=_by_load)
    at = {(load, claim): rate for load, claim, rate in rows}
    ordered = all(
        at[load, honest] > at[load, lying] for honest, lying in pairwise(CLAIMS) for load in _ALONE if load
    )
    half = ", ".join(f"{at[0.5, claim]:.3f} ({claim})" for claim in CLAIMS)
    found = Statement(
        f"no false claim gains at any load: from top to bottom {half} at load 0.5",
        ordered,
        "it is printed that no claim gains",
    )
    notes = (
        "Service rate of one permanent job of class 1 by the load of class 2, PF. Exact; states of more jobs are left out "
        "when all of them together do not show. phi_1(n) is by the solver: the printed formula has a factor 1/n too many "
        "(docs/errata.md, 000, 3.4), the curves do not."
    )
    return Result(rows=rows, verdict=judge([found], besides="besides, "), notes=notes)


def _by_load(row: _Row) -> tuple[float, int]:
    return row[0], list(CLAIMS).index(row[1])


def _run_figure_5(policy: str, options: RunOptions) -> Result:
    rows: list[_Row] = []
    for claim, beta in CLAIMS.items():
        rows += _class_1(policy, claim, beta, _TOGETHER_QUICK if options.is_quick else _TOGETHER)
    rows.sort(key=_by_load)
    notes = (
        f"Service rate of class 1 under {policy.upper()} when all its jobs make the claim; both classes arrive alike. The load "
        "is of true requirements. Exact but for states that add less than "
        f"{LEFT_OUT_MAX:g} of the mean number of jobs. Beyond the capacity (1 + alpha) / (1 + beta) jobs grow without end and the "
        "rate is 0; within 5 % below it points are left out."
    )
    return Result(rows=rows, verdict=judge(_figure_5(rows), besides="besides, "), notes=notes)


def _class_1(policy: str, claim: str, beta: float, cpu_loads: Sequence[float]) -> list[_Row]:
    """gamma_1 at each load at which there is one that can be found."""
    traffic = Traffic(SYMMETRIC, (1, 1))
    chain = Chain(Rates(policy, claiming(beta)))
    rows: list[_Row] = []
    for load in cpu_loads:
        arrivals = traffic.arrivals(load)
        highest = max(loads(arrivals, claiming(beta)))
        if highest >= 1.0:
            rows.append((load, claim, 0.0))
        elif highest <= _NEAR_CAPACITY:
            rows.append((load, claim, chain.solve(arrivals).service_rates[0]))
    return rows


def _figure_5(rows: Sequence[_Row]) -> list[Statement]:
    at = {(load, claim): rate for load, claim, rate in rows}
    changes = {
        (load, claim): rate / at[load, TRUE] - 1.0 for (load, claim), rate in at.items() if claim != TRUE
    }
    gains = {point: change for point, change in changes.items() if change > 0.0}
    if not gains:
        least = -max(changes.values())
        return [Statement(f"false claims cost class 1 at least {least:.2%} of its service rate", holds=True)]
    (load, claim), most = max(gains.items(), key=lambda pair: pair[1])
    last = max(load for load, _ in gains)
    return [
        Statement(
            f"above load {last:g} every false claim costs class 1", last < 0.7, "also below, it is printed"
        ),
        Statement(
            f"up to load {last:g} some gain it a little, at most {most:.2%}: {claim} at load {load:g}",
            holds=False,
            why_not='"service rates at stable loads are reduced" is printed; docs/errata.md, 000, 3.4, figure 5',
        ),
    ]


def _draw(below: str, figure: "Figure", result: Result) -> None:
    """Draw a solid line for true requirements and dashed ones for false claims, as in the paper."""
    axes = framed(figure, below)
    for claim, beta in CLAIMS.items():
        points: list[Sequence[Cell]] = [row for row in result.rows if row[1] == claim]
        style = "-" if claim == TRUE else "--"
        label = f"{claim}: claims {beta:.3g} of resource 2"
        axes.plot(numbers(points, 0), numbers(points, 2), style, label=label)
    axes.legend()


EXPERIMENTS: Final = (
    Experiment(
        "pf-fig4",
        "PF: service rate of one job that claims more than it needs, over the load of class 2",
        COLUMNS,
        _run_figure_4,
        partial(_draw, "load of class 2"),
    ),
    *[
        Experiment(
            f"pf-fig5{letter}",
            f"{policy.upper()}: service rate of class 1 when all of it claims more than it needs, over CPU load",
            COLUMNS,
            partial(_run_figure_5, policy),
            partial(_draw, "load of resource 1 (CPU)"),
        )
        for letter, policy in (("a", "drf"), ("b", "pf"))
    ],
)
