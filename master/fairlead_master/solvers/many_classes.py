"""Multipliers of however many classes: by numpy where there are many and it is installed, otherwise without.

The answers agree but for rounding, and are certified the same way. numpy is the extra ``solve``; with it a hundred thousand
classes take a twentieth of the time.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from fairlead_master.allocation.multipliers import interior_point
from fairlead_master.allocation.multipliers.certificate import Multipliers
from fairlead_master.allocation.multipliers.dual import DemandClass

CLASSES_MIN: Final = 2_000
"""From here on what numpy gains begins to pay for its import."""


def solve(classes: Sequence[DemandClass], *, alpha: float = 1.0) -> Multipliers:
    """The multipliers of ``interior_point.solve``.

    Raises:
        ValueError: A class is no class; see ``dual.Dual``.
    """
    if len(classes) >= CLASSES_MIN:
        with suppress(ImportError):
            from fairlead_master.solvers.array_dual import ArrayDual

            return interior_point.minimise(ArrayDual(classes, alpha))
    return interior_point.solve(classes, alpha=alpha)
