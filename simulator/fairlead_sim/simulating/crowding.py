"""How much hosts were promised beyond what they have: only slots do that, see ``reporting.shares``."""

from fairlead_proto.resources import Vector


class Crowding:
    """What tasks were promised of one host."""

    __slots__ = ("_at_ms", "_promised", "_tasks", "_total")

    def __init__(self, total: Vector) -> None:
        self._total = total
        self._promised = [0] * len(total)
        self._tasks = 0
        self._at_ms = 0

    def change(self, unit: Vector, tasks: int, now_ms: int, over: list[int]) -> int:
        """Run so many tasks more, or fewer.

        Adds to ``over``, in amount-milliseconds, what was promised twice since the last change, and gives the time that
        tasks ran here meanwhile if anything was, in task-milliseconds.
        """
        passed_ms = now_ms - self._at_ms
        self._at_ms = now_ms
        is_crowded = False
        for place, (promised, total) in enumerate(zip(self._promised, self._total, strict=True)):
            if promised > total:
                over[place] += (promised - total) * passed_ms
                is_crowded = True
            self._promised[place] = promised + tasks * unit[place]
        crowded_ms = self._tasks * passed_ms if is_crowded else 0
        self._tasks += tasks
        return crowded_ms
