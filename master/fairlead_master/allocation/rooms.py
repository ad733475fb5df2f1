"""Which agents have how much left, in octaves: how a unit finds the few agents that have room for it on a nearly full cluster.

Agents whose free amounts have the same numbers of bits stand in one cell. A unit fits on no agent of a cell that has fewer bits of any
resource than it needs, and cells are some hundred however many agents there are. Where an agent stands is found out when it is asked
for and not when it changes, so that those who never ask pay nothing but a note.
"""

from collections.abc import Sequence
from typing import Final

from fairlead_master.allocation.api import Counters

_AGENTS_MAX: Final = 256
"""Agents that may have room, of which a fourth has as a rule: of more there are enough to be found by reading on."""


class Rooms:
    """Agents by index, in cells."""

    def __init__(self, columns: Sequence[list[int]], counters: Counters) -> None:
        """``columns`` are what agents have left, kept by others."""
        self.changed: dict[int, None] = {}
        """Agents of which something was taken, or given back, since cells were last asked. For others to add to."""
        self._columns = columns
        self._counters = counters
        self._cells: dict[tuple[int, ...], dict[int, None]] = {}
        self._cell_of: dict[int, tuple[int, ...]] = {}

    def perhaps(self, needs: Sequence[tuple[int, int]]) -> list[int] | None:
        """All agents that have so much of these columns, and some that have not; None if they may be many."""
        self._refresh()
        self._counters.agents_examined += len(self._cells)
        least = [(place, _bits(amount)) for place, amount in needs]
        found: list[int] = []
        for cell, agents in self._cells.items():
            for place, bits in least:
                if cell[place] < bits:
                    break
            else:
                found += agents
                if len(found) > _AGENTS_MAX:
                    return None
        return found

    def _refresh(self) -> None:
        """Let those that changed stand where they belong by what they have left now."""
        self._counters.agents_examined += len(self.changed)
        for index in self.changed:
            cell = tuple([_bits(column[index]) for column in self._columns])
            before = self._cell_of.get(index)
            if cell == before:
                continue
            if before is not None:
                del self._cells[before][index]
                if not self._cells[before]:
                    del self._cells[before]
            self._cell_of[index] = cell
            self._cells.setdefault(cell, {})[index] = None
        self.changed.clear()


def _bits(amount: int) -> int:
    return amount.bit_length() if amount > 0 else 0
