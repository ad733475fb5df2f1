"""From multipliers that are nearly right to those that are, by Newton's method on the resources that are scarce.

Each pass minimises the quadratic model of the dual at the multipliers found so far, over all multipliers that are not
negative and have the same sum: an active-set method, a few systems of as many equations as there are resources. So who is
saturated is found along with the multipliers, and the digits double with each pass once that is settled.
"""

from collections.abc import Sequence
from math import inf, sqrt
from typing import Final

from fairlead_master.allocation.multipliers.dual import Differences, DualFunction

PASSES_MAX: Final = 12
"""Near the optimum two to four do; more are needed where resources are so nearly proportional that their difference is
mostly rounding, and help little."""

_NEAR: Final = 0.25
"""The longest first step, in the local norm, from which Newton's method certainly converges without damping."""

_SHORT: Final = 1e-9
"""A step that changes no price by more, relatively, squares to nothing; it is repeated only while repeating helps."""

_EXACT: Final = 1e-14
"""Relative changes and overloads below this are rounding."""


def polished(dual: DualFunction, start: Sequence[float]) -> tuple[list[float], int] | None:
    """Multipliers that sum to 1, exact to rounding, and the passes it took; None if ``start`` is too far from them.

    Args:
        dual: The classes.
        start: Per resource, none negative, not all zero.
    """
    total = sum(start)
    values = [value / total for value in start]
    previous = inf
    for passes in range(1, PASSES_MAX + 1):
        try:
            there = dual.beside(values)
        except ZeroDivisionError:
            return None
        if not there.is_finite():
            return None
        values, length = _model_minimum(there, values)
        if length > _NEAR:
            return None
        lightest = length / sqrt(there.lightest)
        if lightest < _EXACT or (lightest < _SHORT and length > previous / 2):
            return values, passes
        previous = length
    return values, PASSES_MAX


def _model_minimum(there: Differences, start: Sequence[float]) -> tuple[list[float], float]:
    """Where the quadratic model is least among multipliers >= 0 of the same sum, and how far that is in its norm.

    If the pivot itself would become negative the way ends there: the next pass has another pivot.
    """
    size = len(start)
    values = list(start)
    face = [place for place, value in enumerate(values) if value > 0.0]
    moved = [0.0] * size
    # Each change of the face lowers the model; this many changes only happen where rounding makes them go in circles.
    for _ in range(4 * size):
        excess = there.excess_after(moved)
        outside = [place for place in range(size) if place not in face]
        moves = there.step(excess, face)
        length, blocking = 1.0, -1
        for place, move in zip(face, moves, strict=True):
            if values[place] + length * move < 0.0:
                length, blocking = -values[place] / move, place
        for place, move in zip(face, moves, strict=True):
            moved[place] += length * move
            values[place] = max(0.0, values[place] + length * move)
        if blocking >= 0:
            values[blocking] = 0.0
            face.remove(blocking)
            if blocking == there.pivot:
                break
            continue
        excess = there.excess_after(moved)
        entering = max(outside, key=lambda place: excess[place] - excess[there.pivot], default=there.pivot)
        surplus = excess[entering] - excess[there.pivot]
        if surplus <= _EXACT * sqrt(there.entry(entering, entering)):
            break
        face = sorted([*face, entering])
    total = sum(values)
    return [value / total for value in values], there.norm(moved)
