"""How fast tasks run on a host that was promised more than it has.

Only slots promise more than there is. A host's tasks then all progress at one speed, a fraction of the normal one, which
follows from what is promised; when that changes, the speed of what is left of each task changes with it. The speed is a
model and not a measurement: results that depend on it are shown for several of its values.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from fairlead_proto.resources import Vector, add, scale, subtract
from fairlead_sim.engine import Alarm, Engine
from fairlead_sim.watching import Batch

_CPUS, _MEM = 0, 1


@dataclass(frozen=True, slots=True)
class Slowdown:
    """The speed of tasks on a host whose tasks want more than it has.

    CPUs are shared: where D cores are wanted of C, tasks run at C / D. Memory thrashes: where D bytes are wanted of C, at
    1 / (1 + ``memory`` (D / C - 1)). The two are multiplied. Other resources do not slow anybody down.
    """

    memory: float = 10.0
    """How steeply: with 10, a host that is asked for 10 % more memory than it has runs at half its speed."""

    def speed(self, wanted: Vector, total: Vector) -> float:
        """Above 0, and 1 if nothing is promised twice."""
        speed = 1.0
        if wanted[_CPUS] > total[_CPUS]:
            speed *= total[_CPUS] / wanted[_CPUS]
        if wanted[_MEM] > total[_MEM]:
            over = wanted[_MEM] / total[_MEM] - 1.0 if total[_MEM] else 1.0
            speed /= 1.0 + self.memory * over
        return speed


class CrowdedHost:
    """The tasks of one host, each with the work that is left of it."""

    def __init__(self, engine: Engine, total: Vector, slowdown: Slowdown) -> None:
        self._engine = engine
        self._total = total
        self._slowdown = slowdown
        self._wanted: Vector = (0,) * len(total)
        self._speed = 1.0
        self._progress = 0.0
        """Milliseconds of normal speed that a task would have had here since the start."""
        self._at_ms = engine.now_ms
        self._ends: list[tuple[float, int, Batch, Callable[[], None]]] = []
        """By the progress at which they end."""
        self._number = 0
        self._alarm = Alarm(engine, self._look)

    def start(self, batch: Batch, left_ms: int, end: Callable[[], None]) -> None:
        """These tasks run for so long from now on, at normal speed; ``end`` is called when they are over."""
        self._settle()
        self._number += 1
        heapq.heappush(self._ends, (self._progress + left_ms, self._number, batch, end))
        self._wanted = add(self._wanted, scale(batch.bundle.unit, batch.units))
        self._replan()

    def _look(self) -> None:
        self._settle()
        # A wake-up is rounded up to a whole millisecond; what rounding of floats leaves is less than any task's.
        while self._ends and self._ends[0][0] <= self._progress + 1e-6:
            _, _, batch, end = heapq.heappop(self._ends)
            self._wanted = subtract(self._wanted, scale(batch.bundle.unit, batch.units))
            end()
        self._replan()

    def _settle(self) -> None:
        now_ms = self._engine.now_ms
        self._progress += (now_ms - self._at_ms) * self._speed
        self._at_ms = now_ms

    def _replan(self) -> None:
        self._speed = self._slowdown.speed(self._wanted, self._total)
        if not self._ends:
            self._alarm.move(None)
            return
        left = max(0.0, self._ends[0][0] - self._progress)
        self._alarm.move(self._engine.now_ms + ceil(left / self._speed - 1e-6))
