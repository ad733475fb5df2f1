"""How fast tasks run on a host that was promised more than it has.

Only slots promise more than there is. A host's tasks then progress at a fraction of the normal speed, which follows from
what is promised: all at the same, except that only tasks with GPUs wait for GPUs. When what is promised changes, the speed
of what is left of each task changes with it. The speed is a model and not a measurement: results that depend on it are
shown for several of its values.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil

from fairlead_proto.resources import Vector, add, scale, subtract
from fairlead_sim.engine import Alarm, Engine
from fairlead_sim.observer import Batch

_CPUS, _MEM, _GPUS = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Slowdown:
    """The speed of tasks on a host whose tasks want more than it has.

    CPUs are shared: where D cores are wanted of C, tasks run at C / D. Memory thrashes: where D bytes are wanted of C, at
    1 / (1 + ``memory`` (D / C - 1)). The two are multiplied. GPUs are shared as CPUs are, by those who use them, which flatters
    whoever promises them twice: that their own memory may not hold the work of several is left out. Disk slows nobody down.
    """

    memory: float = 10.0
    """How steeply: with 10, a host that is asked for 10 % more memory than it has runs at half its speed."""

    def speed(self, wanted: Vector, total: Vector) -> float:
        """Of tasks without GPUs: above 0, and 1 if nothing is promised twice."""
        speed = 1.0
        if wanted[_CPUS] > total[_CPUS]:
            speed *= total[_CPUS] / wanted[_CPUS]
        if wanted[_MEM] > total[_MEM]:
            over = wanted[_MEM] / total[_MEM] - 1.0 if total[_MEM] else 1.0
            speed /= 1.0 + self.memory * over
        return speed

    def speed_with_gpus(self, wanted: Vector, total: Vector) -> float:
        """The same of tasks that use GPUs."""
        speed = self.speed(wanted, total)
        if wanted[_GPUS] > total[_GPUS]:
            speed *= total[_GPUS] / wanted[_GPUS]
        return speed


class _Progress:
    """Tasks of one host that progress at one speed."""

    def __init__(self, speed_of: Callable[[Vector, Vector], float]) -> None:
        self._speed_of = speed_of
        self._speed = 1.0
        self._made = 0.0
        """Milliseconds of normal speed that a task would have had here since the start."""
        self._ends: list[tuple[float, int, Batch, Callable[[], None]]] = []
        """By the progress at which they end."""
        self._number = 0

    def start(self, batch: Batch, left_ms: int, end: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._ends, (self._made + left_ms, self._number, batch, end))

    def pass_time(self, passed_ms: int) -> None:
        self._made += passed_ms * self._speed

    def over(self) -> Iterator[tuple[Batch, Callable[[], None]]]:
        """Those at their end, which are forgotten."""
        # A wake-up is rounded up to a whole millisecond; what rounding of floats leaves is less than any task's.
        while self._ends and self._ends[0][0] <= self._made + 1e-6:
            yield heapq.heappop(self._ends)[2:]

    def change_speed(self, wanted: Vector, total: Vector) -> int | None:
        """How long until the next of them ends, in ms, if so much is wanted of the host; None if there are none."""
        if not self._ends:
            return None
        self._speed = self._speed_of(wanted, total)
        return ceil(max(0.0, self._ends[0][0] - self._made) / self._speed - 1e-6)


class CrowdedHost:
    """The tasks of one host, each with the work that is left of it."""

    def __init__(self, engine: Engine, total: Vector, slowdown: Slowdown) -> None:
        self._engine = engine
        self._total = total
        self._wanted: Vector = (0,) * len(total)
        self._without_gpus = _Progress(slowdown.speed)
        self._with_gpus = _Progress(slowdown.speed_with_gpus)
        self._at_ms = engine.now_ms
        self._alarm = Alarm(engine, self._look)

    def start(self, batch: Batch, left_ms: int, end: Callable[[], None]) -> None:
        """These tasks run for so long from now on, at normal speed; ``end`` is called when they are over."""
        self._settle()
        unit = batch.bundle.unit
        (self._with_gpus if unit[_GPUS] else self._without_gpus).start(batch, left_ms, end)
        self._wanted = add(self._wanted, scale(unit, batch.units))
        self._replan()

    def _look(self) -> None:
        self._settle()
        for tasks in (self._without_gpus, self._with_gpus):
            for batch, end in tasks.over():
                self._wanted = subtract(self._wanted, scale(batch.bundle.unit, batch.units))
                end()
        self._replan()

    def _settle(self) -> None:
        now_ms = self._engine.now_ms
        self._without_gpus.pass_time(now_ms - self._at_ms)
        self._with_gpus.pass_time(now_ms - self._at_ms)
        self._at_ms = now_ms

    def _replan(self) -> None:
        without = self._without_gpus.change_speed(self._wanted, self._total)
        with_gpus = self._with_gpus.change_speed(self._wanted, self._total)
        ahead_ms = min((each for each in (without, with_gpus) if each is not None), default=None)
        self._alarm.move(None if ahead_ms is None else self._engine.now_ms + ahead_ms)
