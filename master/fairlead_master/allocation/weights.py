"""What accounts are entitled to, as exactly as it was written."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

_WRITTEN_MAX: Final = 10**9
"""Denominator of a decimal that somebody wrote: nobody writes ten places."""

_COMPUTED_MAX: Final = 10**6
"""Of a number that was computed: the smallest weight is a millionth. With all its digits a decision would cost half as much
again."""


@dataclass(frozen=True, slots=True)
class Weight:
    """Entitlement of an account: one number, overridden for some resources (w_ij of DRF section 4.3)."""

    default: float = 1.0
    by_resource: Mapping[int, float] | None = None
    """Place in the vector to weight."""

    def of(self, place: int) -> float:
        """The weight for the resource at ``place`` of a vector."""
        if self.by_resource is None:
            return self.default
        return self.by_resource.get(place, self.default)

    def ratio(self, place: int) -> tuple[int, int]:
        """The same as numerator and denominator, so that keys tie where the written numbers do.

        The decimal that was written if it has up to nine places; else the number was computed, such as a third or
        0.1 + 0.2, and is the nearest fraction with a denominator of up to a million.
        """
        return _ratio(self.of(place))

    @property
    def ratio_of_all(self) -> tuple[int, int]:
        """The same of the one number, for keys that know no resources."""
        return _ratio(self.default)


def exact(amount: float) -> Fraction:
    """The decimal number that was written: a tenth for 0.1, and not the binary float next to it."""
    return Fraction(repr(float(amount)))


# As many as there may be roles with a weight: a change of capacity asks for all of them.
@lru_cache(maxsize=10_000)
def _ratio(amount: float) -> tuple[int, int]:
    written = exact(amount)
    if written.denominator > _WRITTEN_MAX:
        written = written.limit_denominator(_COMPUTED_MAX)
    return written.as_integer_ratio()
