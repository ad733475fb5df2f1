"""Finds matplotlib, an optional extra, when a plot is asked for, and writes plots into files."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE_INCHES: Final = (7.0, 4.5)
_DOTS_PER_INCH: Final = 120


class PlotsUnavailable(RuntimeError):
    """The library that draws is not installed; the message says how to install it."""


def figure_class() -> "type[Figure]":
    """The class of a figure, which draws itself into files and needs no screen.

    Raises:
        PlotsUnavailable: see there.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotsUnavailable(
            "plots: expected matplotlib, which is not installed: pip install 'fairlead[plot]'"
        ) from None
    found: type[Figure] = Figure  # the library has no types of its own
    return found


def save(path: Path, draw_on: Callable[["Figure"], None]) -> Path:
    """Call ``draw_on`` with an empty figure, write the figure into a PNG file and return the path.

    Raises:
        PlotsUnavailable: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    figure = figure_class()(figsize=_SIZE_INCHES, dpi=_DOTS_PER_INCH, layout="constrained")
    draw_on(figure)
    # Without the date and the version of the library, the same numbers are the same file.
    figure.savefig(path, metadata={"Software": None})
    return path
