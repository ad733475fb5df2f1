"""How much hosts were promised beyond what they have: only slots do that."""

from collections.abc import Sequence

from fairlead_lab.metrics.integral import Integral
from fairlead_proto.resources import Vector


class Crowding:
    """What tasks were promised of one host."""

    __slots__ = ("_at_ms", "_promised", "_tasks", "_total")

    def __init__(self, total: Vector) -> None:
        self._total = total
        self._promised = [0] * len(total)
        self._tasks = 0
        self._at_ms = 0

    def change(self, unit: Vector, tasks: int, now_ms: int, over: Sequence[Integral]) -> int:
        """Run so many tasks more, or fewer.

        Changes the levels of ``over``, by resource, by what is promised twice from now on and was not, and gives the time that
        tasks ran here since the last change if anything was, in task-milliseconds.
        """
        passed_ms = now_ms - self._at_ms
        self._at_ms = now_ms
        is_crowded = False
        for place, (before, total) in enumerate(zip(self._promised, self._total, strict=True)):
            is_crowded = is_crowded or before > total
            self._promised[place] = after = before + tasks * unit[place]
            if before > total or after > total:
                over[place].change(max(0, after - total) - max(0, before - total), now_ms)
        crowded_ms = self._tasks * passed_ms if is_crowded else 0
        self._tasks += tasks
        return crowded_ms
