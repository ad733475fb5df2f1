"""From multipliers that are nearly right to those that are, by Newton's method on the resources that are scarce.

If it is known which resources are saturated, their multipliers solve load_j = 1 and the others are zero, and Newton's
method doubles the digits with each pass. The guess of who is saturated is corrected on the way: a multiplier that would
fall below zero leaves, a resource that is overloaded enters.
"""

from collections.abc import Sequence
from typing import Final

from fairlead_master.allocation.multipliers.dual import Dual, Point, newton_step

_NEAR: Final = 0.25
"""The longest first step, in the local norm, from which Newton's method certainly converges without damping."""

_EXACT: Final = 1e-9
"""A step shorter than this squares to nothing: the point behind it is exact to rounding."""

_OVERLOAD: Final = 1e-13
"""A load above 1 by no more is rounding."""


def polished(
    dual: Dual, start: Sequence[float], saturated: Sequence[int]
) -> tuple[list[float], Point, int] | None:
    """Multipliers that sum to 1, exact to rounding, the point there, and the passes it took; None if ``start`` is too far.

    Args:
        dual: The classes.
        start: Per resource; those outside ``saturated`` are ignored.
        saturated: Which resources are thought to be scarce.
    """
    face = list(saturated)
    values = [value if place in face else 0.0 for place, value in enumerate(start)]
    final = False
    # Each resource may enter and leave once, and a converged face takes three passes.
    for passes in range(1, 2 * len(dual.needed) + 5):
        total = sum(values)
        values = [value / total for value in values] if total > 0 else values
        try:
            point = dual.at(values)
        except ZeroDivisionError:
            return None
        entering = [
            place for place in dual.needed if place not in face and point.load[place] > 1.0 + _OVERLOAD
        ]
        if final and not entering:
            return values, point, passes
        face = sorted(face + entering)
        step, length = newton_step(point, face)
        if length > _NEAR:
            return None
        for place, move in zip(face, step, strict=True):
            values[place] = max(0.0, values[place] + move)
        leaving = [place for place in face if values[place] == 0.0]
        face = [place for place in face if place not in leaving]
        final = length < _EXACT and not leaving
    return None
