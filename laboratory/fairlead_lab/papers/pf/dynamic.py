"""Figures 1 to 3 of paper 000: service rates of classes of fluid jobs that come and go, under DRF and PF."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from fairlead_lab.papers.experiment import Experiment, Result, RunOptions
from fairlead_lab.papers.pf.chain import LEFT_OUT_MAX, Chain
from fairlead_lab.papers.pf.curves import COLUMNS, EXACT, SIMULATED, Row, best_of, drawer, rates_of
from fairlead_lab.papers.pf.fluid import simulate
from fairlead_lab.papers.pf.intervals import CONFIDENCE
from fairlead_lab.papers.pf.rates import POLICIES, Rates
from fairlead_lab.papers.pf.traffic import FIGURE_2, FIGURE_3, SYMMETRIC, Traffic
from fairlead_lab.papers.statements import Statement, judge

_TENTHS: Final = tuple(tenth / 10 for tenth in range(1, 10))
_TWENTIETHS: Final = tuple(part / 20 for part in range(1, 19))
_FEW: Final = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Loads and jobs to compute."""

    exact_loads: tuple[float, ...]
    simulated_loads: tuple[float, ...]
    jobs: int
    """Of a simulation at load 0; divided by 1 - load at others, where the population takes longer to forget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure: its traffic, how much is computed, and how it is judged."""

    traffic: Traffic
    quick: Scale
    full: Scale
    judged: Callable[[Sequence[Row]], list[Statement]]
    """What the paper's text says of it."""
    drawn: Collection[int] | None = None
    """The classes that its plot has, or all."""

    def run(self, options: RunOptions) -> Result:
        """All points, by load, policy, class and method."""
        scale = self.quick if options.is_quick else self.full
        rows: list[Row] = []
        intervals = len(scale.simulated_loads) * len(POLICIES) * len(self.traffic.parts)
        for policy in POLICIES:
            rates = Rates(policy, self.traffic.profiles)
            chain = Chain(rates)
            for load in scale.exact_loads:
                found = chain.solve(self.traffic.arrivals(load)).service_rates
                rows += [(load, policy, k, gamma, 0.0, EXACT) for k, gamma in enumerate(found, start=1)]
            for load in scale.simulated_loads:
                # The same jobs under both policies.
                dice = Random(f"{options.seed} {load}")  # noqa: S311 - chance that can be repeated
                jobs = round(scale.jobs / (1.0 - load))
                taken = simulate(rates, self.traffic.arrivals(load), jobs=jobs, dice=dice)
                rows += [
                    (load, policy, k, each.service_rate(), each.half_width(intervals), SIMULATED)
                    for k, each in enumerate(taken, start=1)
                ]
        rows.sort(key=lambda row: (row[0], row[1], row[2], row[5]))
        return Result(
            rows=rows, verdict=judge([*self.judged(rows), *_methods(rows)], besides="besides, "), notes=_NOTES
        )


_NOTES: Final = (
    f"Exact rows are of the stationary distribution, without states that add less than {LEFT_OUT_MAX:g} of the mean number "
    f"of jobs. Half widths are such that all intervals of the figure hold at once with {CONFIDENCE:.0%}. The paper's curves "
    "are pictures without numbers: the verdict is on what its text says of them."
)


def _methods(rows: Sequence[Row]) -> list[Statement]:
    """Compare simulated rates with exact ones."""
    exact = {row[:3]: row[3] for row in rows if row[5] == EXACT}
    both = [(row, exact[row[:3]]) for row in rows if row[5] == SIMULATED and row[:3] in exact]
    widest = max(abs(row[3] - gamma) for row, gamma in both)
    within = sum(abs(row[3] - gamma) <= row[4] for row, gamma in both)
    found = f"{within} of {len(both)} simulated rates are within their half width of the exact ones, all within {widest:.2g}"
    return [Statement(found, within == len(both), "chance, or a mistake of ours")]


def _gains(rows: Sequence[Row], number: int) -> dict[float, float]:
    """PF's rate over DRF's, by load."""
    drf = best_of(rows, "drf", number)
    return {load: gamma / drf[load] for load, gamma in best_of(rows, "pf", number).items()}


def _gain(rows: Sequence[Row], number: int, at_least: float) -> Statement:
    """The class gains under PF, by this factor or more at load 0.5; less than a line's width in a plot is no loss."""
    gains = _gains(rows, number)
    found = f"class {number} has by PF {_factors(gains)}"
    return Statement(found, min(gains.values()) > 0.995 and gains[0.5] > at_least, "it is printed to gain")


def _no_loss(rows: Sequence[Row], number: int, at_most: float) -> Statement:
    """The class loses little under PF at any load, and is at about 1 - load."""
    gains = _gains(rows, number)
    off = max(abs(gamma - 1 + load) for load, gamma in best_of(rows, "pf", number).items())
    found = f"class {number} has {_factors(gains)}, and under PF is within {off:.2g} of 1 - load"
    return Statement(
        found,
        all(abs(gain - 1) <= at_most for gain in gains.values()),
        "no more than a slight loss is printed",
    )


def _factors(gains: dict[float, float]) -> str:
    """Of the lowest load, the middle and the highest."""
    loads = list(gains)
    shown = dict.fromkeys((loads[0], 0.5, loads[-1]))
    return (
        ", ".join(f"x {gains[load]:.3f}" for load in shown)
        + f" at loads {', '.join(f'{load:g}' for load in shown)}"
    )


def _figure_1a(rows: Sequence[Row]) -> list[Statement]:
    apart = max(
        abs(gamma - best_of(rows, policy, 2)[load])
        for policy in POLICIES
        for load, gamma in rates_of(rows, policy, 1, EXACT).items()
    )
    gains = list(_gains(rows, 1).values())
    return [
        Statement(
            f"the two classes coincide (within {apart:.1g})", apart < 1e-4, "they coincide by symmetry"
        ),
        _gain(rows, 1, 1.1),
        Statement("the more so the higher the load", gains == sorted(gains), "especially at high load"),
    ]


def _unbalanced(rows: Sequence[Row]) -> list[Statement]:
    return [_gain(rows, 2, 1.05), _no_loss(rows, 1, 0.02)]


def _figure_2(rows: Sequence[Row]) -> list[Statement]:
    return [_gain(rows, 2, 1.1), _no_loss(rows, 1, 0.06)]


def _figure_3(rows: Sequence[Row]) -> list[Statement]:
    return [_gain(rows, 3, 1.03), _gain(rows, 4, 1.03)]


def _two_classes(traffic: Traffic, judged: Callable[[Sequence[Row]], list[Statement]]) -> Figure:
    return Figure(
        traffic=traffic,
        quick=Scale(exact_loads=_FEW, simulated_loads=_FEW, jobs=3_000),
        full=Scale(exact_loads=_TWENTIETHS, simulated_loads=_TENTHS, jobs=100_000),
        judged=judged,
    )


def _four_classes(traffic: Traffic) -> Figure:
    """At load 0.5 the chain of four classes has 60,000 states; beyond, there is the simulation only."""
    return Figure(
        traffic=traffic,
        quick=Scale(exact_loads=(0.1, 0.3), simulated_loads=_FEW, jobs=2_000),
        full=Scale(exact_loads=_TWENTIETHS[:10], simulated_loads=_TENTHS, jobs=50_000),
        judged=_figure_3,
        drawn=(3, 4),
    )


_FIGURES: Final = {
    "1a": ("profiles (1, 1/10) and (1/10, 1), balanced", _two_classes(Traffic(SYMMETRIC, (1, 1)), _figure_1a)),
    "1b": ("profiles (1, 1/10) and (1/10, 1), rho_1 = 3 rho_2", _two_classes(Traffic(SYMMETRIC, (3, 1)), _unbalanced)),
    "2a": ("profiles (1, 1/10) and (1/2, 1), balanced", _two_classes(Traffic(FIGURE_2, (1, 1)), _figure_2)),
    "2b": ("profiles (1, 1/10) and (1/2, 1), rho_1 = 3 rho_2", _two_classes(Traffic(FIGURE_2, (3, 1)), _figure_2)),
    "3a": ("four classes, balanced", _four_classes(Traffic(FIGURE_3, (1, 1, 1, 1)))),
    "3b": ("four classes, rho_1 = rho_2 = 3 rho_3 = 3 rho_4", _four_classes(Traffic(FIGURE_3, (3, 3, 1, 1)))),
}  # fmt: skip
"""What arrives, in words and as it is computed."""

EXPERIMENTS: Final = tuple([
    Experiment(
        f"pf-fig{name}",
        f"service rates under DRF and PF over CPU load, {arriving}",
        COLUMNS,
        figure.run,
        drawer(figure.drawn),
    )
    for name, (arriving, figure) in _FIGURES.items()
])  # fmt: skip
