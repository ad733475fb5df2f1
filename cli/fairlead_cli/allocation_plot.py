"""Draws who holds what of each resource: one bar a resource, one colour a user.

The one file that knows matplotlib, which is an extra: it is imported when a plot is asked for. No display is needed.
"""

import logging
import os
import warnings
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from fairlead_cli.errors import Failed, Invalid
from fairlead_master.solvers.report import Report

FORMATS: Final = (".png", ".svg", ".pdf")

USERS_MAX: Final = 18
"""Shown by name, as many as there are colours; with more, those with the smallest dominant shares are one part of each bar."""

_OTHERS_COLOUR: Final = "0.55"
_WRITTEN_SHARE_MIN: Final = 0.06
"""Of a bar: in a smaller part no number fits."""


@dataclass(frozen=True, slots=True)
class Holder:
    """What one colour stands for."""

    label: str
    shares: tuple[float, ...]
    """Of each resource, the fraction of the capacity that is held."""


def check(path: Path) -> None:
    """Refuse before anything is computed what could not be drawn.

    Raises:
        Invalid: the name has no known ending, or is not in a directory that is there.
        Failed: matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise Invalid(f"--plot: expected a name that ends in {', '.join(FORMATS)}, got {str(path)!r}")
    if not path.parent.is_dir():
        raise Invalid(f"--plot: expected a directory that is there, got {str(path.parent)!r}")
    if find_spec("matplotlib") is None:
        raise Failed("--plot needs matplotlib, which is not installed: pip install matplotlib")


def draw(report: Report, path: Path) -> None:
    """Write the plot to a file, whole or not at all: what was there before stays if anything goes wrong.

    Raises:
        Failed: the file cannot be written.
    """
    # Its remarks on fonts and caches are no business of who wants a plot.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    target = path.resolve()
    drawn = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that no font has a sign of somebody's name
        _figure(report).savefig(drawn, format=target.suffix[1:].lower(), dpi=150)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_bytes(drawn.getvalue())
        beside.replace(target)
    except OSError as error:
        raise Failed(f"--plot: cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def holders(report: Report) -> list[Holder]:
    """Who is drawn, in the problem's order: everybody who holds anything, or the largest and the sum of the others."""
    problem = report.problem
    everybody = [
        Holder(user.name, tuple([tasks * part for part in problem.share(user)]))
        for user, tasks in zip(problem.users, report.solution.tasks, strict=True)
    ]
    if len(everybody) <= USERS_MAX:
        return everybody
    by_size = sorted(range(len(everybody)), key=lambda place: -report.dominant_shares[place])
    shown = sorted(by_size[:USERS_MAX])
    others = [everybody[place].shares for place in by_size[USERS_MAX:]]
    total = Holder(
        f"{len(others)} other{'s' * (len(others) != 1)}", tuple(map(sum, zip(*others, strict=True)))
    )
    return [*(everybody[place] for place in shown), total]


def _figure(report: Report) -> Any:
    from matplotlib.figure import Figure

    drawn = holders(report)
    names = report.problem.resources
    figure = Figure(
        figsize=(9, max(2.4, 1.2 + 0.6 * len(names), 0.9 + 0.2 * len(drawn))), layout="constrained"
    )
    axes = figure.add_subplot()
    palette = _palette(len(drawn))
    starts = [0.0] * len(names)
    handles = []
    for number, holder in enumerate(drawn):
        bars = axes.barh(
            range(len(names)), holder.shares, left=starts, color=palette[number], edgecolor="white"
        )
        handles.append(bars)
        axes.bar_label(bars, [_written(share) for share in holder.shares], label_type="center", fontsize=8)
        starts = [start + share for start, share in zip(starts, holder.shares, strict=True)]
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlim(0, max(1.0, *starts) * 1.02)
    axes.xaxis.set_major_formatter(lambda part, _: f"{part:.0%}")
    axes.set_xlabel("of the capacity")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_title(f"{report.policy}, {'whole tasks' if report.is_discrete else 'tasks may be split'}")
    legend = axes.legend(handles, ["user"] * len(drawn), loc="upper left", bbox_to_anchor=(1, 1))
    # Set now, since a label that begins with an underscore would be left out of the legend.
    for text, holder in zip(legend.get_texts(), drawn, strict=True):
        text.set_text(holder.label)
    for text in (*legend.get_texts(), *axes.get_yticklabels(), axes.title):
        text.set_parse_math(False)  # a dollar in a name is a dollar
    return figure


def _palette(count: int) -> list[Any]:
    """A colour for each of so many; the grey one is for the others."""
    from matplotlib import colormaps

    if count <= 10:
        return list(colormaps["tab10"].colors)
    twenty = list(colormaps["tab20"].colors)
    return [*twenty[:14], *twenty[16:], _OTHERS_COLOUR]


def _written(share: float) -> str:
    return f"{share:.0%}" if share >= _WRITTEN_SHARE_MIN else ""
