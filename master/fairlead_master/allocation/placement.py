"""Placement rules: how well an agent suits a unit, as a score of what the agent has free. The largest wins.

With free_j what the agent has free of j, d_j what the unit needs and C_j the largest agent of the cluster:

- ``align``: sum over j of (d_j / C_j)(free_j / C_j), the dot product of Grandl et al., "Multi-Resource Packing for Cluster
  Schedulers" (Tetris): agents whose free part looks like the unit;
- ``spread``: sum over j of free_j / C_j, the emptiest agent (worst fit);
- ``pack``: minus that sum, the agent with the least left over (best fit; what the unit itself takes is the same everywhere).

We differ from Tetris in that columns of zero size are skipped.
"""

from dataclasses import dataclass
from typing import Final

from fairlead_master.allocation.api import AllocationError
from fairlead_proto.resources import Vector

NAMES: Final = ("align", "pack", "spread")

Terms = tuple[tuple[int, float], ...]
"""(column, factor): the score is the sum of factor times what is free in the column."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A placement rule by its name."""

    name: str

    @property
    def window(self) -> int:
        """How many candidates are compared for one unit.

        On the mixed cluster of the benchmark ``align`` fills 88 % of the scarcest resource by comparing 16, 94 % by 32 and
        99 % by 64, at the same cost, since only the top is looked at again. ``pack`` looks at all of them every time and
        gains nothing from more than 16.
        """
        return 64 if self.falls else 16

    @property
    def falls(self) -> bool:
        """Whether scores fall while agents fill up. Only then may the best be found by looking at the top again."""
        return self.name != "pack"

    def terms(self, need: Vector, largest: list[int]) -> Terms:
        """The factors of the score of a unit that needs ``need``, where the largest agent has ``largest``."""
        places = [place for place, size in enumerate(largest) if size > 0]
        match self.name:
            case "align":
                return tuple(
                    [
                        (place, need[place] / largest[place] / largest[place])
                        for place in places
                        if need[place]
                    ]
                )
            case "spread":
                return tuple([(place, 1 / largest[place]) for place in places])
            case _:
                return tuple([(place, -1 / largest[place]) for place in places])


def parse(text: str) -> Rule:
    """The rule of that name.

    Raises:
        AllocationError: there is none.
    """
    if text not in NAMES:
        raise AllocationError(f"placement: expected one of {', '.join(NAMES)}, got {text!r}")
    return Rule(text)
