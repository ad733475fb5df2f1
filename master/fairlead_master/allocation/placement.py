"""Placement rules: which agent gets a unit, of those that have room for it.

By a score of what the agent has free; the largest wins, and equal scores go to the agent that was added first. With free_j what
the agent has free of j, d_j what the unit needs and C_j the largest agent of the cluster:

- ``align``: sum over j of (d_j / C_j)(free_j / C_j), the dot product of Grandl et al., "Multi-Resource Packing for Cluster
  Schedulers" (Tetris): agents whose free part looks like the unit;
- ``spread``: sum over j of free_j / C_j, the emptiest agent (worst fit);
- ``pack``: minus that sum, the agent with the least left over (best fit; what the unit itself takes is the same everywhere);
- ``least-loaded``: minus max over j of used_j / total_j, the agent whose dominant used part of its own resources is smallest, by
  what tasks declare, whatever "fits" means.

By turns (``turns``), whatever agents have left:

- ``random``: any agent with room, each with the same chance;
- ``heartbeat``: agents take turns in an order drawn once, one unit a turn: as Hadoop's fair scheduler gave a task to whichever host
  sent its heartbeat.

Chance is a function of a seed, the number of the decision and the agent, so the same calls choose the same agents. ``random:7`` and
``heartbeat:7`` name the seed; it is 0 otherwise.

Under ``slots:K`` the free part is a number of slots, and no shape: ``spread`` and ``pack`` count free slots, and for ``align`` all
agents with a free slot look alike, so that it is ``random``. The emptiest by slots deals tasks to agents in
turn: on a full cluster each agent gets those of the same few frameworks, and unlike tasks never meet.

We differ from Tetris in that columns of zero size are skipped.
"""

from dataclasses import dataclass
from typing import Final

from fairlead_master.allocation.api import AllocationError
from fairlead_proto.resources import Vector

NAMES: Final = ("align", "pack", "spread", "least-loaded", "random", "heartbeat")

SEEDED: Final = ("random", "heartbeat")
"""Names that a seed may follow, as in ``random:7``."""

SEED_MAX: Final = 2**63 - 1

Terms = tuple[tuple[int, float], ...]
"""(column, factor): the score is the sum of factor times what is free in the column."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A placement rule by its name."""

    name: str
    seed: int = 0
    """Of all chance, for rules that go by turns."""

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

    @property
    def goes_by_turns(self) -> bool:
        """Whether the agent is chosen by ``turns`` and not by a score."""
        return self.name in SEEDED

    @property
    def weighs_load(self) -> bool:
        """Whether the score is of the agent's load alone, which is a column behind those of the view."""
        return self.name == "least-loaded"

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
            case "pack":
                return tuple([(place, -1 / largest[place]) for place in places])
            case "least-loaded":
                return ((len(need), -1.0),)
            case _:
                return ()


def parse(text: str) -> Rule:
    """The rule of that name.

    Raises:
        AllocationError: there is none.
    """
    name, colon, seed = text.partition(":")
    if name not in NAMES or (colon and name not in SEEDED):
        raise AllocationError(f"placement: expected one of {', '.join(NAMES)}, got {text!r}")
    if not colon:
        return Rule(name)
    if not (seed.isascii() and seed.isdigit() and len(seed) <= len(str(SEED_MAX)) and int(seed) <= SEED_MAX):
        raise AllocationError(
            f"placement: expected {name}:SEED with SEED from 0 to 2^63 - 1, such as {name}:7, got {text!r}"
        )
    return Rule(name, int(seed))


def in_force(text: str, slots: int | None) -> Rule:
    """The rule of that name where agents have so many slots, or none.

    Raises:
        AllocationError: there is none.
    """
    rule = parse(text)
    return Rule("random") if slots is not None and rule.name == "align" else rule


def seeded(text: str, slots: int | None, seed: int) -> str:
    """The name of the rule in force, with this seed if it goes by turns and names none of its own.

    Raises:
        AllocationError: there is no rule of that name.
    """
    rule = in_force(text, slots)
    return f"{rule.name}:{seed}" if rule.goes_by_turns and ":" not in text else text
