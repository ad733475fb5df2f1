"""Draws runs as paper 004 does: a lane for each resource, and what each process has used by each time.

Colours are those of processes that are called by one (``red``, ``blue 1``); others get one of their own. Needs matplotlib.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fairlead_lab.papers.bbf.timesharing.averages import Averages
from fairlead_lab.papers.bbf.timesharing.history import History, Periods

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMED: Final[Mapping[str, str]] = {
    "red": "#d62728",
    "green": "#2ca02c",
    "blue": "#1f77b4",
    "purple": "#9467bd",
}
OTHERS: Final = ("#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#bcbd22", "#7f7f7f", "#393b79", "#637939")

_BAR: Final = 0.7
"""Part of a lane's height; the rest is space and the line of the bottleneck."""

_LANES_HIGH: Final = 20
"""From so many resources on lanes grow narrower, so that the figure stays within a page."""

_ERROR_BARS: Final = 25
"""Along one line, at most."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The runs of some programs, as they are drawn."""

    example: History
    averages: Averages | None
    """None if they were run once."""
    title: str = ""


def draw_panels(figure: "Figure", panels: Sequence[Panel]) -> None:
    """Draw one run as lanes and lines and, if averaged, the mean of all runs below; panels stand side by side."""
    lines = 3 if any(panel.averages is not None for panel in panels) else 2
    lanes = max(len(panel.example.resources) for panel in panels)
    heights = [0.3 + 0.25 * min(lanes, _LANES_HIGH), 1.5, 1.5][:lines]
    figure.set_size_inches(7.0 if len(panels) == 1 else 11.0, 0.6 * lines + 1.6 * sum(heights))
    grid = figure.subplots(lines, len(panels), squeeze=False, gridspec_kw={"height_ratios": heights})
    for column, panel in enumerate(panels):
        lanes_axes, usage_axes, *others = [grid[line][column] for line in range(lines)]
        draw_lanes(lanes_axes, panel.example)
        draw_usage(usage_axes, panel.example)
        if panel.averages is not None:
            draw_averages(others[0], panel.averages)
        if panel.title:
            lanes_axes.set_title(panel.title)


def colours(processes: Sequence[str]) -> dict[str, str]:
    """A colour for each process."""
    found: dict[str, str] = {}
    others = 0
    for process in processes:
        named = next((word for word in process.lower().split() if word in NAMED), None)
        if named is not None:
            found[process] = NAMED[named]
        else:
            found[process] = OTHERS[others % len(OTHERS)]
            others += 1
    return found


def draw_lanes(axes: "Axes", history: History) -> None:
    """Draw who uses which resource when, with a black line above a lane while the resource is a bottleneck."""
    colour_of = colours(history.processes)
    for lane, resource in enumerate(history.resources):
        for process in history.processes:
            periods = history.uses.get((process, resource), Periods()).until(history.ends_ms)
            spans = [(start / 1000, (end - start) / 1000) for start, end in periods]
            axes.broken_barh(spans, (lane - _BAR / 2, _BAR), color=colour_of[process], linewidth=0)
        for start, end in history.bottlenecks.get(resource, Periods()).until(history.ends_ms):
            height = lane - _BAR / 2 - 0.09  # The axis points downwards, so this is above the lane.
            axes.plot((start / 1000, end / 1000), (height, height), color="black", linewidth=2)
    axes.set_yticks(range(len(history.resources)), history.resources)
    axes.set_ylim(len(history.resources) - 0.5, -0.6)
    axes.set_xlim(0, max(1, history.ends_ms) / 1000)
    axes.set_xlabel("time [s]")


def draw_usage(axes: "Axes", history: History) -> None:
    """Draw each process's use of all resources together: slope 1 while it runs, 0 while it waits."""
    colour_of = colours(history.processes)
    for process in history.processes:
        corners = {0, history.finished_ms.get(process, history.ends_ms)}
        for (user, _), periods in history.uses.items():
            if user == process:
                corners.update(at for period in periods.until(history.ends_ms) for at in period)
        times = sorted(corners)
        used = [sum(history.used_ms(process, each, at) for each in history.resources) / 1000 for at in times]
        axes.plot([at / 1000 for at in times], used, color=colour_of[process], label=process)
    axes.set_xlim(0, max(1, history.ends_ms) / 1000)
    _finish(axes, "used [s]")


def draw_averages(axes: "Axes", averages: Averages) -> None:
    """Draw the mean use over many runs, with the standard deviation from run to run."""
    colour_of = colours(list(averages.progress_s))
    every = -(-len(averages.times_s) // _ERROR_BARS)
    for number, (process, progress) in enumerate(averages.progress_s.items()):
        axes.errorbar(
            averages.times_s,
            progress,
            yerr=averages.deviation_s[process],
            # Side by side, so that those of one line do not hide those of another.
            errorevery=(number * every // max(1, len(averages.progress_s)), every),
            color=colour_of[process],
            label=process,
            elinewidth=0.8,
            capsize=1.5,
        )
    axes.set_xlim(0, averages.times_s[-1])
    _finish(axes, "used, mean [s]")


def _finish(axes: "Axes", label: str) -> None:
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time [s]")
    axes.set_ylabel(label)
    legend = axes.legend(loc="upper left", fontsize="small")
    for text in legend.get_texts():
        text.set_parse_math(False)  # A dollar in a name is a dollar.
