"""Which of many deadlines comes first, without looking at all of them each time somebody asks."""

from heapq import heapify, heappop, heappush
from typing import Final

from fairlead_proto.ids import FrameworkId

_STALE_MAX: Final = 64
"""Entries that no longer hold, beyond as many as hold, before the heap is made anew."""


class Deadlines:
    """A deadline for each of some frameworks. The earliest comes first, equal ones in the order in which they were set."""

    def __init__(self) -> None:
        self._known: dict[FrameworkId, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, FrameworkId]] = []
        """With entries that no longer hold."""
        self._count = 0

    def __len__(self) -> int:
        return len(self._known)

    def set(self, framework_id: FrameworkId, deadline_ms: int) -> None:
        """The framework has this deadline from now on."""
        self._count += 1
        self._known[framework_id] = (deadline_ms, self._count)
        heappush(self._heap, (deadline_ms, self._count, framework_id))
        if len(self._heap) > 2 * len(self._known) + _STALE_MAX:
            self._heap = [(*when, known_id) for known_id, when in self._known.items()]
            heapify(self._heap)

    def drop(self, framework_id: FrameworkId) -> None:
        """It has none any more. Repeats are harmless."""
        self._known.pop(framework_id, None)

    def first(self) -> tuple[int, FrameworkId] | None:
        """The earliest deadline, and whose it is; None if there is none."""
        while self._heap:
            deadline_ms, count, framework_id = self._heap[0]
            if self._known.get(framework_id) == (deadline_ms, count):
                return deadline_ms, framework_id
            heappop(self._heap)
        return None
