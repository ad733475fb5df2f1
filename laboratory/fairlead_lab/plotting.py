"""The library that draws: an extra, looked for only when something is to be drawn."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
