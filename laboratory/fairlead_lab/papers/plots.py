"""Plots that several experiments share: lines in panels, one below the other."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead_lab.papers.experiment import Draw, Result, numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def lines_over_time(panels: Mapping[int, str], styles: Mapping[str, str]) -> Draw:
    """Draw shares over time, from rows that begin with seconds and the name of a line.

    Args:
        panels: Column of a panel's values, which are at most 1, and the panel's label; from the top, two or more.
        styles: Name of a line and its style; a panel has all lines.
    """

    def draw(figure: "Figure", result: Result) -> None:
        all_axes = figure.subplots(len(panels), 1, sharex=True)
        for axes, (column, label) in zip(all_axes, panels.items(), strict=True):
            for name, style in styles.items():
                own = [row for row in result.rows if row[1] == name]
                axes.plot(numbers(own, 0), numbers(own, column), style, label=name)
            axes.set_ylim(0.0, 1.0)
            axes.set_ylabel(label)
            axes.grid(alpha=0.3)
        all_axes[0].legend(loc="lower right")
        all_axes[-1].set_xlabel("time (s)")

    return draw
