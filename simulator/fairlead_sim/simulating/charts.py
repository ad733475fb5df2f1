"""Draws a study's charts from their tables, with matplotlib, which is an extra and needs no display."""

import logging
import warnings
from collections.abc import Callable, Sequence
from io import BytesIO
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from fairlead_sim.simulating.measures import span
from fairlead_sim.simulating.plot_data import Cell, Data
from fairlead_sim.simulating.tables import size_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES: Final = 9.0
_DOTS_PER_INCH: Final = 110
_LEGEND_MAX: Final = 12
_LEAST_S: Final = 0.1
"""Left end of a logarithmic axis of times: jobs of no length are there too."""
_LENGTHS_S: Final = (0.1, 1, 10, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400)
_RATIO_MAX: Final = 32.0
"""A user whose jobs take that much longer, or shorter, is drawn at the edge."""


class PlotsUnavailable(RuntimeError):
    """The library that draws is not installed; the message says how to install it."""


def draw_all(data: dict[str, Data], policies: Sequence[str]) -> dict[str, bytes]:
    """Every chart as PNG, by the name of its table; those with nothing to show are left out.

    Raises:
        PlotsUnavailable: see there.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotsUnavailable(
            "plots: expected matplotlib, which is not installed: pip install 'fairlead[plot]'"
        ) from None
    # Its remarks on fonts and caches are no business of who wants a plot.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    found = {}
    for name, draw in CHARTS.items():
        if data[name].rows:
            figure = Figure(dpi=_DOTS_PER_INCH, layout="constrained")
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
    for axes, resource in zip(_panels(figure, len(resources), 2.4), resources, strict=True):
        for number, policy in enumerate(policies):
            points = [(row[1], row[2]) for row in data.of(policy) if row[0] == resource]
            _curve(axes, points, number, policy)
        _time_axis(axes, data.rows, 2)
        axes.set_ylim(bottom=0)
        _percent(axes.yaxis)
        axes.set_ylabel(f"{resource} in use")
        _legend(axes)


def _shares(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    users = list(dict.fromkeys(str(row[1]) for row in data.rows))
    panels = _panels(figure, len(policies), 2.4, shares_y=True)
    for axes, policy in zip(panels, policies, strict=True):
        for number, user in enumerate(users):
            points = [(row[1], row[2]) for row in data.of(policy) if row[0] == user]
            is_rest = user == users[-1]
            _curve(axes, points, number, user, **({"color": "0.6", "linestyle": ":"} if is_rest else {}))
        _time_axis(axes, data.rows, 2)
        axes.set_ylim(bottom=0)
        _percent(axes.yaxis)
        axes.set_ylabel("dominant share")
        _title(axes, policy)
    _legend(panels[0], outside=True)


def _queue(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    (axes,) = _panels(figure, 1, 3.0)
    for number, policy in enumerate(policies):
        _curve(axes, [(row[0], row[1]) for row in data.of(policy)], number, policy)
    _time_axis(axes, data.rows, 1)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("tasks that wait")
    _legend(axes)


def _completion(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    (axes,) = _panels(figure, 1, 3.6)
    for number, policy in enumerate(policies):
        points = [(max(_LEAST_S, _number(row[0])), _number(row[1])) for row in data.of(policy)]
        _steps(axes, [points[0], *points] if points else [], number, policy)
    last_s = max(_number(row[1]) for row in data.rows)
    shown = [size for size in _LENGTHS_S if size <= 2 * last_s]
    axes.set_xscale("log")
    axes.set_xticks(shown, [span(1000 * size) for size in shown], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, 1)
    _percent(axes.yaxis)
    axes.set_xlabel("completion time")
    axes.set_ylabel("of all jobs")
    axes.grid(visible=True, alpha=0.3)
    _legend(axes)


def _slowdown(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    """Those beyond a value and not those up to it: what matters are the few that are slowed down a lot."""
    (axes,) = _panels(figure, 1, 3.6)
    for number, policy in enumerate(policies):
        points = [(max(1.0, _number(row[0])), 1 - _number(row[1])) for row in data.of(policy)]
        _steps(axes, [(1.0, 1.0), *points], number, policy)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_yscale("log")
    axes.set_ylim(top=1)
    _percent(axes.yaxis)
    axes.set_xlabel("slowdown: completion time over that with nothing to wait for")
    axes.set_ylabel("of all jobs are slowed down more")
    axes.grid(visible=True, alpha=0.3)
    _legend(axes)


def _sizes(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    (axes,) = _panels(figure, 1, 3.6)
    others = policies[1:]
    classes = [(int(_number(row[0])), int(_number(row[1])), _number(row[2])) for row in data.of(policies[0])]
    places = {least: place for place, (least, _, _) in enumerate(classes)}
    for number, policy in enumerate(others):
        rows = [row for row in data.of(policy) if row[0] in places]
        _bars(
            axes, [places[int(_number(row[0]))] for row in rows], [_number(row[4]) for row in rows],
            number, len(others), policy, errors=[_number(row[5]) for row in rows],
        )  # fmt: skip
    axes.set_xticks(range(len(classes)), [f"{size_name(a, b)}\n{jobs:,.0f} jobs" for a, b, jobs in classes])
    axes.axhline(0, color="black", linewidth=0.8)
    _percent(axes.yaxis)
    axes.set_xlabel("tasks of the job")
    axes.set_ylabel(f"shorter than under {policies[0]} by")
    _legend(axes)


def _waits(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    (axes,) = _panels(figure, 1, 3.6)
    sizes = sorted({_number(row[1]) for row in data.rows})
    for number, policy in enumerate(policies):
        rows = data.of(policy)
        places = [sizes.index(_number(row[0])) for row in rows]
        centres = _bars(axes, places, [_number(row[2]) for row in rows], number, len(policies), policy)
        axes.plot(centres, [_number(row[4]) for row in rows], linestyle="", marker="_", color="black")
    axes.set_xticks(range(len(sizes)), [f"up to {100 * size:.3g} %" for size in sizes])
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(bottom=0)
    longest_s = max(max(_number(row[3]), _number(row[5])) for row in data.rows)
    shown = [0, *(size for size in _LENGTHS_S if 1 <= size <= 2 * longest_s)]
    axes.set_yticks(shown, ["0", *(span(1000 * size) for size in shown[1:])])
    axes.set_xlabel(
        "demand of a task, of the largest node; the bar is the mean wait, the dash that of 95 % of tasks at most"
    )
    axes.set_ylabel("wait")
    _legend(axes)


def _changes(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    (axes,) = _panels(figure, 1, 3.6)
    for number, policy in enumerate(policies[1:], 1):
        ratios = sorted(1 - _number(row[3]) for row in data.of(policy))
        shown = [min(max(ratio, 1 / _RATIO_MAX), _RATIO_MAX) for ratio in ratios]
        axes.plot(
            range(1, len(shown) + 1), shown, marker=".", linewidth=0.8, color=f"C{number % 10}", label=policy
        )
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} ×")
    axes.set_xlabel("users, those who gain most first")
    axes.set_ylabel(f"completion, of that under {policies[0]}")
    _legend(axes)


def _ratios(figure: "Figure", data: Data, policies: Sequence[str]) -> None:
    """A line a policy, in the order asked for, with its interval."""
    shown = [policy for policy in policies if data.of(policy)]
    (axes,) = _panels(figure, 1, 0.8 + 0.32 * len(shown))
    for place, policy in enumerate(shown):
        ratio, low, high = (_number(cell) for cell in data.of(policy)[0])
        errors = [[ratio - low], [high - ratio]] if high else None
        colour = f"C{policies.index(policy) % 10}"
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
    "slowdown": _slowdown,
    "reduction-by-job-size": _sizes,
    "wait-by-demand-size": _waits,
    "better-and-worse": _changes,
}
"""By the name of the table that a chart shows. Those of ratios, of job sizes and of users compare with the first policy and need two."""

_TIMES: Final = (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("s", 1))
_STYLES: Final = ("-", "--", "-.", ":")


def _panels(figure: "Figure", count: int, height: float, *, shares_y: bool = False) -> list["Axes"]:
    figure.set_size_inches(_WIDTH_INCHES, max(height, height * count))
    return list(figure.subplots(count, 1, squeeze=False, sharex=True, sharey=shares_y)[:, 0])


def _curve(axes: "Axes", points: Sequence[tuple[Cell, Cell]], number: int, label: str, **look: Any) -> None:
    """Means over intervals, each drawn to its end."""
    if points:
        times = [0.0, *(_number(time_s) for time_s, _ in points)]
        values = [_number(value) for _, value in points]
        given = {"color": f"C{number % 10}", "linestyle": _STYLES[number // 10 % 4]} | look
        axes.stairs(values, times, baseline=None, label=label, linewidth=1.2, **given)


def _steps(axes: "Axes", points: Sequence[tuple[float, float]], number: int, label: str) -> None:
    look: dict[str, Any] = {"color": f"C{number % 10}", "linestyle": _STYLES[number // 10 % 4]}
    axes.step([x for x, _ in points], [y for _, y in points], where="post", label=label, **look)


def _bars(
    axes: "Axes", places: Sequence[int], values: Sequence[float], number: int, count: int, label: str,
    errors: Sequence[float] | None = None,
) -> list[float]:  # fmt: skip
    """One policy's bars beside the others'; gives where they stand."""
    width = 0.8 / count
    centres = [place + (number - (count - 1) / 2) * width for place in places]
    colour = f"C{(number + (errors is not None)) % 10}"  # of a comparison, the first policy is not drawn
    shown = errors if errors is not None and any(errors) else None
    axes.bar(centres, values, width, color=colour, label=label, yerr=shown, capsize=2)
    return centres


def _time_axis(axes: "Axes", rows: Sequence[tuple[Cell, ...]], place: int) -> None:
    """In days or hours from the start, whatever suits the length of the longest run."""
    last_s = max((_number(row[place]) for row in rows), default=0.0)
    unit, size = next(((name, size) for name, size in _TIMES if last_s >= 3 * size), _TIMES[-1])
    step = max(1, ceil(last_s / size / 10))
    axes.set_xlim(0, last_s or 1)
    axes.set_xticks([number * step * size for number in range(int(last_s / size / step) + 1)])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / size:g}")
    axes.set_xlabel(f"{unit} from the first arrival")
    axes.label_outer()
    axes.grid(visible=True, alpha=0.3)


def _percent(axis: Any) -> None:
    axis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")


def _legend(axes: "Axes", *, outside: bool = False) -> None:
    handles, labels = axes.get_legend_handles_labels()
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)}
    if not outside and len(labels) <= 4:
        where = {"loc": "best"}
    legend = axes.legend(handles[:_LEGEND_MAX], labels[:_LEGEND_MAX], fontsize=8, **where)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a dollar in a name is a dollar


def _title(axes: "Axes", text: str) -> None:
    axes.set_title(text, loc="left", fontsize=10).set_parse_math(False)


def _number(cell: Cell) -> float:
    """A cell that is a number; an empty one is 0."""
    return float(cell) if isinstance(cell, int | float) else 0.0
