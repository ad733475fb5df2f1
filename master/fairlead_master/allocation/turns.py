"""Placement by turns: agents are chosen by chance or in rotation, and not by what they have left.

``Turns`` says which agents to try first, and which of some that fit comes first. While many agents have room the first few tries
find one, at a cost that does not grow with the cluster; when few have, the search knows all of them and asks for the first.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import Final

from fairlead_master.allocation.placement import Rule

TRIES: Final = 16
"""Agents tried before the search looks at its candidates. Where half of all have room, one unit in 65,000 needs more tries."""

_MASK: Final = 2**64 - 1


def mix(seed: int, number: int, index: int) -> int:
    """64 bits that look drawn: the finalizer of SplitMix64 (Steele et al., 2014) over the three numbers."""
    bits = (
        seed * 0x9E3779B97F4A7C15 + number * 0xD1342543DE82EF95 + (index + 1) * 0xDABA0B6EB09322E3
    ) & _MASK
    bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) & _MASK
    return bits ^ bits >> 31


class Turns(ABC):
    """Whose turn it is, of the agents by index."""

    @abstractmethod
    def add(self, index: int) -> None:
        """One agent more; indexes count up."""

    @abstractmethod
    def tries(self) -> Iterator[int]:
        """Indexes to be tried for the next unit, in order."""

    @abstractmethod
    def first(self, indexes: Sequence[int]) -> int:
        """Of these, at least one, the one whose turn comes first. It does not depend on their order."""

    @abstractmethod
    def took(self, index: int) -> None:
        """A unit went to the agent."""


class Chance(Turns):
    """Every agent with the same chance, drawn anew for each unit."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._number = 0
        self._agents = 0

    def add(self, index: int) -> None:
        """See ``Turns``."""
        self._agents = index + 1

    def tries(self) -> Iterator[int]:
        """See ``Turns``. Tried until one fits, each of those that fit has the same chance."""
        for number in range(TRIES if self._agents else 0):
            yield mix(self._seed, self._number, -2 - number) % self._agents

    def first(self, indexes: Sequence[int]) -> int:
        """See ``Turns``."""
        return min(indexes, key=lambda index: (mix(self._seed, self._number, index), index))

    def took(self, index: int) -> None:
        """See ``Turns``."""
        del index
        self._number += 1


class Rotation(Turns):
    """One after the other, in an order that the seed draws; whoever joins gets a place between others."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._ring: list[tuple[int, int]] = []
        """(phase, index), in order of phases. Agents that left stay until all are numbered anew, and never fit."""
        self._last = (-1, -1)

    def _entry(self, index: int) -> tuple[int, int]:
        return mix(self._seed, 0, index), index

    def add(self, index: int) -> None:
        """See ``Turns``."""
        insort(self._ring, self._entry(index))

    def tries(self) -> Iterator[int]:
        """See ``Turns``."""
        ring = self._ring
        start = bisect_right(ring, self._last)
        for place in range(start, start + min(TRIES, len(ring))):
            yield ring[place % len(ring)][1]

    def first(self, indexes: Sequence[int]) -> int:
        """See ``Turns``."""
        entries = [self._entry(index) for index in indexes]
        return min(entries, key=lambda entry: (entry <= self._last, entry))[1]

    def took(self, index: int) -> None:
        """See ``Turns``."""
        self._last = self._entry(index)


def make(rule: Rule) -> Turns | None:
    """The turns of a rule; None if it goes by a score."""
    if not rule.goes_by_turns:
        return None
    return Chance(rule.seed) if rule.name == "random" else Rotation(rule.seed)
