"""Draws a study's charts from their tables, with matplotlib, which is an extra and needs no display."""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from fairlead_lab.metrics.measures import span
from fairlead_lab.plotting import figure_class
from fairlead_lab.study.plot_data import Cell, Data
from fairlead_lab.study.tables import size_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES: Final = 9.0
_DOTS_PER_INCH: Final = 110
_LEGEND_MAX: Final = 12
_JOBS_MIN: Final = 10
"""A class of fewer jobs is an anecdote: the table has it, the chart has not."""
_USERS_DRAWN: Final = 4
"""Whose shares have a panel each: those with the most work. The CSV has more."""
_LEAST_S: Final = 0.1
"""Left end of a logarithmic axis of times: jobs of no length are there too."""
_LENGTHS_S: Final = (0.1, 1, 10, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400)

_TIMES: Final = (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("s", 1))
_STYLES: Final = ("-", "--", "-.", ":")
_MULTIPLES: Final = (
    *(10.0**power for power in range(-9, -1)), 0.1, 0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 5.0, 10.0, *(10.0**power for power in range(2, 10)),
)  # fmt: skip
_WIDE: Final = 100.0


def draw_all(data: dict[str, Data], policies: Sequence[str]) -> dict[str, bytes]:
    """Every chart as PNG, by the name of its table; those with nothing to show are left out.

    Raises:
        PlotsUnavailable: see there.
    """
    make_figure = figure_class()
    # Its remarks on fonts and caches are no business of who wants a plot.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    found = {}
    for name, draw in CHARTS.items():
        if data[name].rows:
            figure = make_figure(dpi=_DOTS_PER_INCH, layout="constrained")
            draw(figure, data[name], policies)
            found[name] = _png(figure)
    return found


def _png(figure: "Figure") -> bytes:
    drawn = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that no font has a sign of somebody's name
        # Without the version of the library, the same numbers are the same file.
        figure.savefig(drawn, format="png", metadata={"Software": None})
    return drawn.getvalue()


def _utilization(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    resources = list(dict.fromkeys(str(row[1]) for row in data.rows))
    for axes, resource in _panels_over_time(figure, data, policies, resources, 2.4):
        axes.set_ylabel(f"{resource} held")


def _shares(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    """A panel a user, so that colours are policies here as everywhere."""
    users = list(dict.fromkeys(str(row[1]) for row in data.rows))[:-1][:_USERS_DRAWN]
    for axes, user in _panels_over_time(figure, data, policies, users, 1.7):
        axes.set_title(user, loc="left", fontsize=10).set_parse_math(False)
    figure.supylabel("dominant share", fontsize=10)


def _panels_over_time(
    figure: "Figure", data: Data, policies: Sequence[str], names: Sequence[str], height: float
) -> list[tuple["Axes", str]]:
    """A panel for each name, with the curve of each policy's rows of that name."""
    panels = _panels(figure, len(names), height)
    for axes, name in zip(panels, names, strict=True):
        for policy, look in _looks(policies):
            _curve(axes, [(row[1], row[2]) for row in data.of(policy) if row[0] == name], look)
        _time_axis(axes, data.rows, 2)
        axes.set_ylim(bottom=0)
        _percent(axes.yaxis)
    _legend(panels[0])
    return list(zip(panels, names, strict=True))


def _queue(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    (axes,) = _panels(figure, 1, 3.0)
    for policy, look in _looks(policies):
        _curve(axes, [(row[0], row[1]) for row in data.of(policy)], look)
    _time_axis(axes, data.rows, 1)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(0, 1.5 * max(1.0, *(_number(row[2]) for row in data.rows)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.set_ylabel("tasks that wait")
    _legend(axes)


def _completion(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    (axes,) = _panels(figure, 1, 3.6)
    for policy, look in _looks(policies):
        points = [(max(_LEAST_S, _number(row[0])), _number(row[1])) for row in data.of(policy)]
        _steps(axes, [*points[:1], *points], look)
    last_s = max(_number(row[1]) for row in data.rows)
    shown = [size for size in _LENGTHS_S if size <= 2 * last_s]
    axes.set_xscale("log")
    axes.set_xticks(shown, [span(1000 * size) for size in shown], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_xlim(_LEAST_S, 1.5 * max(last_s, 1.0))
    axes.set_ylim(0, 1.02)
    _end(axes, "completion time", "of all jobs")


def _slowdown(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    """Those beyond a value and not those up to it: what matters are the few that are slowed down a lot."""
    (axes,) = _panels(figure, 1, 3.6)
    for policy, look in _looks(policies):
        points = [(max(1.0, _number(row[0])), 1 - _number(row[1])) for row in data.of(policy)]
        _steps(axes, [(1.0, 1.0), *points], look)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_yscale("log")
    axes.set_ylim(top=1)
    what = "bounded slowdown: completion over that with nothing to wait for, of 10 s at least"
    _end(axes, what, "of all jobs are slowed down more")


def _end(axes: "Axes", x_label: str, y_label: str) -> None:
    """Finish a chart of fractions of all jobs."""
    _percent(axes.yaxis)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(visible=True, alpha=0.3)
    _legend(axes)


def _sizes(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    (axes,) = _panels(figure, 1, 3.6)
    classes = [
        (int(_number(row[0])), int(_number(row[1])), _number(row[2]))
        for row in data.of(policies[0])
        if _number(row[2]) >= _JOBS_MIN
    ]
    places = {least: place for place, (least, _, _) in enumerate(classes)}
    step = 0.6 / max(1, len(policies) - 2)
    for number, policy in enumerate(policies[1:], 1):
        rows = [row for row in data.of(policy) if row[0] in places]
        centres = [places[int(_number(row[0]))] + (number - len(policies) / 2) * step for row in rows]
        ratios = [1 - _number(row[4]) for row in rows]
        above = [_number(row[5]) for row in rows]
        below = [min(half_width, 0.99 * ratio) for half_width, ratio in zip(above, ratios, strict=True)]
        axes.errorbar(
            centres, ratios, yerr=[below, above], color=_colour(number), marker="o", linestyle="", capsize=3, label=policy
        )  # fmt: skip
    axes.set_xticks(range(len(classes)), [f"{size_name(a, b)}\n{jobs:,.0f} jobs" for a, b, jobs in classes])
    axes.set_xlim(-0.6, max(0, len(classes) - 1) + 0.6)
    _multiples(axes, policies[0], "tasks of the job")


def _waits(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    (axes,) = _panels(figure, 1, 3.6)
    tasks = {_number(row[1]): _number(row[2]) for row in reversed(data.rows)}
    sizes = sorted(tasks)
    width = 0.8 / len(policies)
    for number, policy in enumerate(policies):
        rows = data.of(policy)
        shift = (number - (len(policies) - 1) / 2) * width
        centres = [sizes.index(_number(row[0])) + shift for row in rows]
        means = [_number(row[2]) for row in rows]
        axes.bar(centres, means, width, color=_colour(number), label=policy)
        for centre, mean, row in zip(centres, means, rows, strict=True):
            if not mean:
                axes.annotate("0", (centre, 0), ha="center", va="bottom", fontsize=8, color=_colour(number))
            if most := _number(row[4]):
                axes.plot([centre], [most], linestyle="", marker="_", color="black")
    axes.set_xticks(
        range(len(sizes)), [f"up to {100 * size:.3g} %\n{tasks[size]:,.0f} tasks" for size in sizes]
    )
    axes.set_yscale("symlog", linthresh=1)
    longest_s = max(max(_number(row[3]), _number(row[5])) for row in data.rows)
    axes.set_ylim(0, 2 * max(1.0, longest_s))
    shown = [0, *(size for size in _LENGTHS_S if 1 <= size <= 2 * longest_s)]
    axes.set_yticks(shown, ["0", *(span(1000 * size) for size in shown[1:])])
    axes.set_yticks([], minor=True)
    axes.set_xlabel("demand of a task, of the largest node: each class begins where the one before ends")
    axes.set_ylabel("wait")
    _legend(axes)


def _changes(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    (axes,) = _panels(figure, 1, 3.6)
    for number, policy in enumerate(policies[1:], 1):
        ratios = sorted(1 - _number(row[3]) for row in data.of(policy))
        shown = [ratio for ratio in ratios if ratio > 0]  # of jobs that take no time there is no ratio
        axes.plot(
            range(1, len(shown) + 1), shown, marker=".", linewidth=0.8, color=_colour(number), label=policy
        )
    _multiples(axes, policies[0], "users, those who gain most first")


def _multiples(axes: "Axes", first: str, x_label: str) -> None:
    """Finish a chart with a logarithmic axis of ratios that reaches as far as they do, and a line at 1."""
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    low, high = min(low, 0.8), max(high, 1.25)
    is_wide = high > _WIDE * low  # with room for powers of ten alone
    shown = [
        tick for tick in _MULTIPLES if low <= tick <= high and not (is_wide and 0.1 < tick < 10 and tick != 1)
    ]
    axes.set_ylim(low, high)
    axes.set_yticks(
        shown, [f"{tick:,g} ×" if tick >= 1 else f"1/{1 / tick:,.3g} ×" for tick in shown], minor=False
    )
    axes.set_yticks([], minor=True)
    axes.set_xlabel(x_label)
    axes.set_ylabel(f"mean completion, of that under {first}")
    axes.grid(visible=True, axis="y", alpha=0.3)
    _legend(axes)


def _ratios(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    """A line a policy, in the order asked for, with its interval."""
    shown = [policy for policy in policies if data.of(policy)]
    (axes,) = _panels(figure, 1, 0.8 + 0.32 * len(shown))
    for place, policy in enumerate(shown):
        ratio, low, high = (_number(cell) for cell in data.of(policy)[0])
        errors = [[ratio - low], [high - ratio]] if high else None
        colour = _colour(policies.index(policy))
        axes.errorbar([ratio], [place], xerr=errors, color=colour, marker="o", capsize=3)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(shown)), shown)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} ×")
    axes.set_xlabel(f"mean completion, of that under {policies[0]}; with 95 % interval")
    axes.grid(visible=True, axis="x", alpha=0.3)


CHARTS: Final[dict[str, Callable[["Figure", Data, Sequence[str]], None]]] = {
    "completion-ratio": _ratios,
    "utilization": _utilization,
    "dominant-shares": _shares,
    "queue": _queue,
    "completion": _completion,
    "bounded-slowdown": _slowdown,
    "reduction-by-job-size": _sizes,
    "wait-by-demand-size": _waits,
    "better-and-worse": _changes,
}
"""By the name of the table that a chart shows. Those of ratios, of job sizes and of users compare with the first policy and need two."""


def _looks(policies: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each policy and how its line looks, for matplotlib: the first are the widest and lie below, so that all are seen."""
    for number, policy in enumerate(policies):
        behind = (len(policies) - 1 - number) / max(1, len(policies) - 1)
        yield policy, {
            "color": _colour(number), "linestyle": _STYLES[number // 10 % 4], "linewidth": 1.0 + 2.2 * behind, "label": policy
        }  # fmt: skip


def _colour(number: int) -> str:
    return f"C{number % 10}"


def _panels(figure: "Figure", count: int, height: float) -> list["Axes"]:
    figure.set_size_inches(_WIDTH_INCHES, max(height, height * count))
    return list(figure.subplots(count, 1, squeeze=False, sharex=True)[:, 0])


def _curve(axes: "Axes", points: Sequence[tuple[Cell, Cell]], look: dict[str, Any]) -> None:
    """Means over intervals, each drawn to its end."""
    if points:
        times = [0.0, *(_number(time_s) for time_s, _ in points)]
        axes.stairs([_number(value) for _, value in points], times, baseline=None, **look)


def _steps(axes: "Axes", points: Sequence[tuple[float, float]], look: dict[str, Any]) -> None:
    axes.step([x for x, _ in points], [y for _, y in points], where="post", **look)


def _time_axis(axes: "Axes", rows: Sequence[tuple[Cell, ...]], place: int) -> None:
    """In days or hours from the start, whatever suits the length of the longest run."""
    last_s = max((_number(row[place]) for row in rows), default=0.0)
    unit, size = next(((name, size) for name, size in _TIMES if last_s >= 3 * size), _TIMES[-1])
    step = max(1, ceil(last_s / size / 10))
    ticks = max(1, ceil(last_s / size / step))  # the last of them at the end of the run or beyond
    axes.set_xlim(0, ticks * step * size)
    axes.set_xticks([number * step * size for number in range(ticks + 1)])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / size:g}")
    axes.set_xlabel(f"{unit} from the first arrival")
    axes.label_outer()
    axes.grid(visible=True, alpha=0.3)


def _percent(axis: Any) -> None:
    axis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")


def _legend(axes: "Axes") -> None:
    """Beside the chart, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    legend = axes.legend(
        handles[:_LEGEND_MAX], labels[:_LEGEND_MAX], fontsize=8, loc="upper left", bbox_to_anchor=(1, 1)
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a dollar in a name is a dollar


def _number(cell: Cell) -> float:
    """A cell that is a number; an empty one is 0."""
    return float(cell) if isinstance(cell, int | float) else 0.0
