"""Light and heavy traffic of two classes: the formulas of paper 000, section 3.3, beside what the chain does.

Profiles are (1, alpha) and (beta, 1), alpha <= beta <= 1. In light traffic

    gamma_k = 1 - c_k1 rho_1 - c_k2 rho_2

and in heavy traffic, with load = rho_1 + beta rho_2 the larger of the two and going to 1, gamma_k = c_k (1 - load). The paper
prints the c; some cannot be right, and ``docs/errata.md`` derives others ("corrected"). What the chain does is computed
from the rates of the solvers, and knows neither.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fairlead_lab.papers.experiment import Cell, Experiment, Result, RunOptions, numbers
from fairlead_lab.papers.pf.chain import Chain
from fairlead_lab.papers.pf.rates import POLICIES, Rates
from fairlead_lab.papers.pf.traffic import Profiles, Traffic
from fairlead_lab.papers.statements import Statement, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIGHT_COLUMNS: Final = ("alpha", "beta", "policy", "class", "load_of", "printed", "corrected", "chain")
"""c_kl of class k and the load of class l."""

HEAVY_COLUMNS: Final = (
    "alpha",
    "beta",
    "policy",
    "class",
    "load",
    "service_rate",
    "scaled",
    "printed",
    "corrected",
)
"""``scaled`` is the service rate over 1 - load, the last two what it is said to become at load 1."""

_LIGHT_PAIRS: Final = ((0.1, 0.1), (0.1, 0.5), (0.2, 0.8), (0.0, 0.75))
"""alpha and beta: figures 1 and 2, and two with beta above a half, where 2 - 1/beta counts."""

_HEAVY_PAIRS: Final = ((0.1, 0.1), (0.1, 0.5), (0.1, 1.0))
_HEAVY_PARTS: Final = (3, 1)

_SMALL: Final = 1e-3
"""A light load; a second one of half of it cancels the term of its square."""

_LIGHT_JOBS: Final = 5
"""More jobs at once have a probability of the order of the load to the fifth."""

_SAME: Final = 1e-4
"""Coefficients that differ by less are the same."""

_NEAR: Final = 0.03
"""Relative distance from a limit in heavy traffic that the computed loads cannot tell from 0."""


@dataclass(frozen=True, slots=True)
class _Pair:
    alpha: float
    beta: float

    @property
    def profiles(self) -> Profiles:
        return ((1.0, self.alpha), (self.beta, 1.0))

    def printed_light(self, policy: str) -> tuple[float, float]:
        """c_12 and c_21 of the paper; c_11 = c_22 = 1."""
        if policy == "drf":
            return self.beta, self.beta
        return self.beta, max(2.0 - 1.0 / self.beta, self.alpha)

    def corrected_light(self, policy: str) -> tuple[float, float]:
        """The same, of docs/errata.md."""
        alpha, beta = self.alpha, self.beta
        if policy == "drf":
            return beta, beta
        if alpha >= 2.0 - 1.0 / beta:
            both = 2.0 - alpha - beta
            return 2.0 * beta * (1.0 - alpha) / both, 2.0 * alpha * (1.0 - beta) / both
        return 2.0 * beta / (1.0 + beta), 2.0 * (2.0 * beta - 1.0) / (1.0 + beta)

    def printed_heavy(self, policy: str) -> tuple[float, float]:
        """c_1 and c_2 of the paper."""
        return (1.0, 1.0) if policy == "drf" else (1.0, 1.0 / self.alpha)

    def corrected_heavy(self, policy: str, parts: tuple[int, int]) -> tuple[float, float]:
        """The same, of docs/errata.md."""
        if policy == "pf":
            return 1.0, 1.0 / self.beta
        first, second = Traffic(self.profiles, parts).arrivals(1.0)
        both = 1.0 / (first + self.beta**2 * second)
        return both, both


def _run_light(_: RunOptions) -> Result:
    """Compute light traffic; options change nothing, as it is exact and quick."""
    rows: list[tuple[float, float, str, int, int, float, float, float]] = []
    for pair in (_Pair(*values) for values in _LIGHT_PAIRS):
        for policy in POLICIES:
            chain = Chain(Rates(policy, pair.profiles))
            printed, corrected = pair.printed_light(policy), pair.corrected_light(policy)
            for k, other in ((1, 2), (2, 1)):
                said, derived = printed[k - 1], corrected[k - 1]
                head = (pair.alpha, pair.beta, policy, k)
                rows.append((*head, k, 1.0, 1.0, _coefficient(chain, k, k)))
                rows.append((*head, other, said, derived, _coefficient(chain, k, other)))
    drf = [row for row in rows if row[2] == "drf"]
    pf = [row for row in rows if row[2] == "pf"]
    off = max(abs(row[7] - row[5]) for row in drf)
    furthest = max(pf, key=lambda row: abs(row[7] - row[5]))
    shown = f"class {furthest[3]} at alpha = {furthest[0]:g}, beta = {furthest[1]:g}"
    derived_off = max(abs(row[7] - row[6]) for row in rows)
    statements = [
        Statement(f"DRF's coefficients are the printed ones (within {off:.1g})", off < _SAME),
        Statement(
            f"PF's are {furthest[7]:.4f} where {furthest[5]:.4f} is printed, for {shown}",
            all(abs(row[7] - row[5]) < _SAME for row in pf),
            f"the corrected formulas hold within {derived_off:.1g}: docs/errata.md#light-traffic",
        ),
    ]
    if derived_off >= _SAME:
        statements.append(Statement(f"our own correction is off by {derived_off:.2g}", holds=False))
    return Result(rows=rows, verdict=judge(statements, besides="besides, "), notes=_LIGHT_NOTES)


_LIGHT_NOTES: Final = "Coefficient of the load of class load_of in 1 - gamma of class. The chain's is taken at loads of 0.001 and half of that."


def _coefficient(chain: Chain, k: int, other: int) -> float:
    """c_kl from two small loads of class l, with hardly anything of the others."""

    def slope(rho: float) -> float:
        arrivals = [rho if number == other else rho * 1e-9 for number in (1, 2)]
        return (1.0 - chain.solve(arrivals, jobs_max=_LIGHT_JOBS, close=1e-13).service_rates[k - 1]) / rho

    return 2.0 * slope(_SMALL / 2) - slope(_SMALL)


def _run_heavy(options: RunOptions) -> Result:
    rows: list[tuple[float, float, str, int, float, float, float, float, float]] = []
    # The first needs most states, and shows least: its limits are as printed under PF.
    for pair in (_Pair(*values) for values in _HEAVY_PAIRS[1 if options.is_quick else 0 :]):
        traffic = Traffic(pair.profiles, _HEAVY_PARTS)
        for policy in POLICIES:
            chain = Chain(Rates(policy, pair.profiles))
            printed, corrected = pair.printed_heavy(policy), pair.corrected_heavy(policy, _HEAVY_PARTS)
            for load in (0.7, 0.8, 0.9) if options.is_quick else (0.7, 0.8, 0.9, 0.95):
                found = chain.solve(traffic.arrivals(load)).service_rates
                rows += [
                    (pair.alpha, pair.beta, policy, k, load, gamma, gamma / (1.0 - load), said, derived)
                    for k, gamma, said, derived in zip((1, 2), found, printed, corrected, strict=True)
                ]
    return Result(rows=rows, verdict=judge(_heavy_statements(rows), besides="besides, "), notes=_HEAVY_NOTES)


_HEAVY_NOTES: Final = "rho_1 = 3 rho_2. Exact. scaled is service_rate / (1 - load); printed and corrected are what it is to become at load 1."


_Curve = list[tuple[float, float, float]]
"""Scaled rate, printed limit, corrected limit: by load."""


def _heavy_statements(
    rows: Sequence[tuple[float, float, str, int, float, float, float, float, float]],
) -> list[Statement]:
    """Compare the curves with the printed limits, naming the one that is furthest off, and with the corrected limits."""
    curves: dict[tuple[float, float, str, int], _Curve] = {}
    for row in rows:
        curves.setdefault(row[:4], []).append(row[6:])
    statements = []
    for policy in POLICIES:
        ours = {key: points for key, points in curves.items() if key[2] == policy}
        key, points = max(ours.items(), key=lambda item: abs(item[1][-1][1] - item[1][-1][2]))
        alpha, beta, _, k = key
        scaled, printed, corrected = points[-1]
        statements.append(
            Statement(
                f"{policy.upper()}'s gamma_{k} / (1 - load) is {scaled:.3g} at load {rows[-1][4]:g} for alpha = {alpha:g}, "
                f"beta = {beta:g}",
                all(_is_near(curve, 1) for curve in ours.values()),
                f"{printed:.3g} is printed, {corrected:.3g} right: docs/errata.md#heavy-traffic",
            )
        )
    approached = sum(_is_near(curve, 2) for curve in curves.values())
    return [
        *statements,
        Statement(
            f"{approached} of {len(curves)} curves approach the corrected limits or are there",
            approached == len(curves),
            "so the correction is wrong too",
        ),
    ]


def _is_near(points: _Curve, place: int) -> bool:
    """Whether the scaled rate ends near the limit, or comes nearer to it with each load."""
    distances = [abs(point[0] - point[place]) for point in points]
    return distances[-1] < _NEAR * points[-1][place] or distances == sorted(distances, reverse=True)


def _draw_light(figure: "Figure", result: Result) -> None:
    """Draw printed, corrected and computed coefficients side by side."""
    axes = figure.add_subplot()
    rows: list[Sequence[Cell]] = [row for row in result.rows if row[3] != row[4]]
    places = range(len(rows))
    axes.bar(places, numbers(rows, 7), color="lightgrey", label="chain")
    axes.plot(places, numbers(rows, 6), "k_", markersize=14, label="corrected")
    axes.plot(places, numbers(rows, 5), "rx", label="printed")
    axes.set_xticks(
        list(places),
        [f"{str(row[2]).upper()} class {row[3]}\n({row[0]:g}, {row[1]:g})" for row in rows],
        rotation=90,
        fontsize=7,
    )
    axes.set_ylabel("fall of the service rate per load of the other class")
    axes.legend()


def _draw_heavy(figure: "Figure", result: Result) -> None:
    """Draw a panel for each pair of alpha and beta."""
    pairs = list(dict.fromkeys((float(row[0] or 0), float(row[1] or 0)) for row in result.rows))
    panels = figure.subplots(1, len(pairs))
    for axes, pair in zip(panels, pairs, strict=True):
        for colour, (policy, k) in zip(
            ("tab:blue", "tab:cyan", "tab:red", "tab:orange"),
            ((policy, k) for policy in POLICIES for k in (1, 2)),
            strict=True,
        ):
            rows: list[Sequence[Cell]] = [row for row in result.rows if tuple(row[:4]) == (*pair, policy, k)]
            loads = numbers(rows, 4)
            axes.plot(loads, numbers(rows, 6), "o-", color=colour, label=f"{policy.upper()} {k}")
            axes.plot([1.0], [float(rows[0][8] or 0)], "s", color=colour)
            axes.plot([1.0], [float(rows[0][7] or 0)], "x", color=colour)
        axes.set_title(f"alpha {pair[0]:g}, beta {pair[1]:g}", fontsize=9)
        axes.set_xlabel("CPU load")
        axes.set_yscale("log")
        axes.set_ylim(0.8, 15.0)
    panels[0].set_ylabel("service rate / (1 - load); squares: corrected, x: printed")
    panels[0].legend(fontsize=7)


_TITLE: Final = "traffic of two classes: the formulas of section 3.3 and the chain"

EXPERIMENTS: Final = (
    Experiment("pf-light", f"light {_TITLE}", LIGHT_COLUMNS, _run_light, _draw_light),
    Experiment("pf-heavy", f"heavy {_TITLE}", HEAVY_COLUMNS, _run_heavy, _draw_heavy),
)
