"""What must happen later, by name, in a heap that forgets lazily."""

import heapq
from enum import IntEnum, unique
from typing import Final

from fairlead_proto.ids import TaskKey

_STALE_COUNT_MIN: Final = 64
"""Below this many abandoned entries, rebuilding the heap costs more than it saves."""


@unique
class Due(IntEnum):
    """What a deadline is for. The value orders those of one millisecond.

    An ``IntEnum``, because it is part of the key of a dictionary that every task touches six times, and hashing a plain
    ``Enum`` costs as much as the rest of the look-up.
    """

    ESCALATE = 1
    """A grace period is over."""
    RUNTIME = 2
    """A task has run for its longest time."""
    SLOW_START = 3
    """A launch that should be confirmed although its process does not run yet."""
    RESEND = 4
    """Statuses without acknowledgement."""
    HEARTBEAT = 5
    USAGE = 6
    """A heartbeat has waited long enough for its figures."""
    SANDBOX = 7
    """The oldest sandbox has been kept for its time."""
    LEAVE = 8
    """An agent that leaves has waited long enough for its tasks."""


_NEVER_MS: Final = 2**63

DeadlineName = tuple[Due, TaskKey | None]

_QUEUED: Final = (Due.SLOW_START, Due.RESEND)
"""Kinds every task has, nearly always set for a fixed time from now and cancelled long before: a queue has them in order
for a fraction of what a heap costs."""


class Deadlines:
    """Named times in milliseconds, at most one for each name; setting, cancelling and popping cost O(log n) or less."""

    __slots__ = ("_at", "_bound_ms", "_count", "_has_strays", "_heap", "_last_ms", "_queues")

    def __init__(self) -> None:
        self._queues: dict[Due, dict[TaskKey | None, tuple[int, int]]] = {due: {} for due in _QUEUED}
        """Names of a kind that were set in the order of their times."""
        self._last_ms = dict.fromkeys(_QUEUED, 0)
        """Of each queue, the time that was put into it last."""
        self._at: dict[DeadlineName, int] = {}
        """Those in no queue."""
        self._has_strays = False
        """Whether one of a kind that has a queue was ever set out of order, and so is in the heap."""
        # The count breaks ties in the order in which deadlines were set, and keeps names from being compared.
        self._heap: list[tuple[int, int, int, DeadlineName]] = []
        self._count = 0
        self._bound_ms = _NEVER_MS
        """Nothing is due before."""

    def __len__(self) -> int:
        return len(self._at) + sum(map(len, self._queues.values()))

    def __contains__(self, name: DeadlineName) -> bool:
        queue = self._queues.get(name[0])
        return (queue is not None and name[1] in queue) or name in self._at

    def at(self, name: DeadlineName) -> int | None:
        """The time of a name; None if it is not set."""
        queue = self._queues.get(name[0])
        if queue is not None and name[1] in queue:
            return queue[name[1]][0]
        return self._at.get(name)

    def set(self, due: Due, at_ms: int, key: TaskKey | None = None) -> None:
        """Set the time of a name; an earlier setting of the same name is void."""
        queue = self._queues.get(due)
        if queue is None:
            self._push(due, at_ms, key)
            return
        if key in queue:
            if queue[key][0] == at_ms:
                return
            del queue[key]
        if queue and at_ms < self._last_ms[due]:
            self._has_strays = True
            self._push(due, at_ms, key)
            return
        if self._has_strays:
            self._at.pop((due, key), None)
        self._count = count = self._count + 1
        queue[key] = (at_ms, count)
        self._last_ms[due] = at_ms
        self._bound_ms = min(self._bound_ms, at_ms)

    def _push(self, due: Due, at_ms: int, key: TaskKey | None) -> None:
        name = (due, key)
        if self._at.get(name) == at_ms:
            return
        self._at[name] = at_ms
        self._count += 1
        heapq.heappush(self._heap, (at_ms, due, self._count, name))
        self._bound_ms = min(self._bound_ms, at_ms)
        if len(self._heap) > 2 * len(self._at) + _STALE_COUNT_MIN:
            self._drop_stale()

    def cancel(self, due: Due, key: TaskKey | None = None) -> None:
        """Drop a name; nothing happens if it is not set."""
        queue = self._queues.get(due)
        if queue is None or (queue.pop(key, None) is None and self._has_strays):
            self._at.pop((due, key), None)

    def next_ms(self) -> int | None:
        """The earliest time; None if nothing is set."""
        heap, at = self._heap, self._at
        while heap and at.get(heap[0][3]) != heap[0][0]:
            heapq.heappop(heap)
        next_ms = heap[0][0] if heap else None
        for queue in self._queues.values():
            if queue:
                for at_ms, _ in queue.values():
                    if next_ms is None or at_ms < next_ms:
                        next_ms = at_ms
                    break
        self._bound_ms = _NEVER_MS if next_ms is None else next_ms
        return next_ms

    def may_come_before(self, at_ms: int) -> bool:
        """Whether one may be earlier than that. Costs nothing; true also of one that was cancelled since ``next_ms``."""
        return self._bound_ms < at_ms

    def pop_due(self, now_ms: int) -> DeadlineName | None:
        """Take away and give the earliest name that is due; None if none is."""
        next_ms = self.next_ms()
        if next_ms is None or next_ms > now_ms:
            return None
        earliest = self._heap[0] if self._heap else None
        for due, queue in self._queues.items():
            if queue:
                key, (at_ms, count) = next(iter(queue.items()))
                if earliest is None or (at_ms, due, count) < earliest[:3]:
                    earliest = (at_ms, due, count, (due, key))
        assert earliest is not None, "something is due, and nothing is set"
        name = earliest[3]
        if name in self._at:
            heapq.heappop(self._heap)
            del self._at[name]
        else:
            del self._queues[name[0]][name[1]]
        return name

    def _drop_stale(self) -> None:
        self._heap = [entry for entry in self._heap if self._at.get(entry[3]) == entry[0]]
        heapq.heapify(self._heap)
