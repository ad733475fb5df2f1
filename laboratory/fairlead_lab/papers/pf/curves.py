"""Curves of service rate over load, drawn as in paper 000: axes from 0 to 1, both policies and the classes in one plot."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from fairlead_lab.papers.experiment import Cell, Draw, Result, numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS: Final = ("load", "policy", "class", "service_rate", "half_width", "method")
"""Columns of every figure with a curve for each policy and class."""

EXACT: Final = "exact"
SIMULATED: Final = "simulated"

Row = tuple[float, str, int, float, float, str]
"""A row in the order of ``COLUMNS``."""

_COLOURS: Final = ("tab:blue", "tab:red", "tab:green", "tab:orange")
"""By class."""

_STYLES: Final = {"pf": "-", "drf": "--"}


def rates_of(rows: Sequence[Sequence[Cell]], policy: str, number: int, method: str) -> dict[float, float]:
    """Service rate by load, of one class under one policy, found by one method."""
    return {
        float(row[0] or 0): float(row[3] or 0)
        for row in rows
        if row[1] == policy and row[2] == number and row[5] == method
    }


def drawer(classes: Collection[int] | None = None) -> Draw:
    """Make a plot of some or all classes: lines through the best known rates, simulated ones as points with intervals."""

    def draw(figure: "Figure", result: Result) -> None:
        axes = framed(figure, "load of resource 1 (CPU)")
        keys = dict.fromkeys((str(row[1]), int(row[2] or 0)) for row in result.rows)
        for policy, number in keys:
            if classes is None or number in classes:
                _draw_curve(axes, result, policy, number)
        axes.legend()

    return draw


def framed(figure: "Figure", below: str) -> "Axes":
    """Add axes from 0 to 1 for service rates, with a label for the horizontal one."""
    axes = figure.add_subplot()
    axes.set_xlabel(below)
    axes.set_ylabel("service rate")
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.0)
    axes.grid(alpha=0.3)
    return axes


def best_of(rows: Sequence[Sequence[Cell]], policy: str, number: int) -> dict[float, float]:
    """Service rate by load, in increasing order: exact where known, else simulated."""
    found = rates_of(rows, policy, number, SIMULATED) | rates_of(rows, policy, number, EXACT)
    return dict(sorted(found.items()))


def _draw_curve(axes: "Axes", result: Result, policy: str, number: int) -> None:
    colour = _COLOURS[number - 1]
    curve = best_of(result.rows, policy, number)
    axes.plot(
        list(curve),
        list(curve.values()),
        _STYLES[policy],
        color=colour,
        label=f"{policy.upper()}, class {number}",
    )
    points = [row for row in result.rows if (row[1], row[2], row[5]) == (policy, number, SIMULATED)]
    axes.errorbar(
        numbers(points, 0),
        numbers(points, 3),
        yerr=numbers(points, 4),
        fmt="o" if policy == "pf" else "s",
        markersize=3,
        capsize=2,
        color=colour,
    )
