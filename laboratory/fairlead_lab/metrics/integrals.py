"""Integrals over time of what changes in steps, and how they grew.

A timeline writes down what has been summed up until a moment, so that leaving out every other moment loses resolution and
nothing else: the mean of a rate between any two moments that remain is exact.
"""

from collections.abc import Callable, Sequence
from typing import Final

from fairlead_proto.resources import Vector

MOMENTS_MAX: Final = 1024
"""Of a whole run: more than a plot has pixels to show. At least half as many are kept once a run is long enough."""
_FIRST_STEP_MS: Final = 1000


class Integral:
    """The integral over time of a level that changes in steps: O(1) a change, and no work while nothing changes.

    With changes d_i at times t_i the level is L = sum d_i and the integral up to t is t L - sum d_i t_i. Whole numbers
    throughout, so nothing is lost to rounding however long the run. Time begins at 0 and never goes back.
    """

    __slots__ = ("_moment", "level")

    def __init__(self) -> None:
        self.level = 0
        self._moment = 0

    def change(self, amount: int, now_ms: int) -> None:
        """The level is higher by ``amount`` from now on."""
        self.level += amount
        self._moment += amount * now_ms

    def until(self, now_ms: int) -> int:
        """The integral from 0 to now, in level-milliseconds."""
        return self.level * now_ms - self._moment


class Holding:
    """What somebody holds, the dominant share that is, and its integral over time."""

    __slots__ = ("_at_ms", "_capacity", "_share_ms", "held", "share")

    def __init__(self, capacity: Vector) -> None:
        self.held = [0] * len(capacity)
        self.share = 0.0
        self._share_ms = 0.0
        self._at_ms = 0
        self._capacity = capacity

    def hold(self, unit: Vector, tasks: int, now_ms: int) -> None:
        """Hold so many tasks more; fewer, if below zero."""
        self._share_ms += self.share * (now_ms - self._at_ms)
        self._at_ms = now_ms
        share = 0.0
        held = self.held
        for place, total in enumerate(self._capacity):
            if total:
                held[place] = amount = held[place] + tasks * unit[place]
                if amount > share * total:
                    share = amount / total
        self.share = share

    def until(self, now_ms: int) -> float:
        """The integral of the dominant share up to now, in share-milliseconds."""
        return self._share_ms + self.share * (now_ms - self._at_ms)


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


class Timeline:
    """Sums at 0, one step, two steps, ...; the step doubles whenever there are ``MOMENTS_MAX``."""

    def __init__(self, look: Callable[[int], Sequence[float]]) -> None:
        """Args: what gives all sums as they are at a moment, in ms, that is not before the last change of any."""
        self.step_ms = _FIRST_STEP_MS
        self.next_ms = 0
        """When to look next."""
        self.moments: list[Sequence[float]] = []
        self._look = look

    def catch_up(self, now_ms: int) -> None:
        """Write down every moment before now. To be called before anything changes at ``now_ms >= next_ms``."""
        while self.next_ms <= now_ms:
            if len(self.moments) == MOMENTS_MAX:
                self.moments = self.moments[::2]
                self.step_ms *= 2
                self.next_ms = len(self.moments) * self.step_ms
                continue
            self.moments.append(self._look(self.next_ms))
            self.next_ms += self.step_ms

    def rates(self, place: int, end_ms: int, last: Sequence[float]) -> list[float]:
        """Mean rate of one of the sums in each interval, per ms.

        Args:
            place: Which of the sums.
            end_ms: The end of the run, caught up with; the last interval ends there and may be shorter.
            last: The sums then.
        """
        times = self.times_ms(end_ms)
        sums = [moment[place] for moment in self.moments[: len(times) - 1]] + [last[place]]
        return [
            (sums[i + 1] - sums[i]) / (times[i + 1] - times[i]) if times[i + 1] > times[i] else 0.0
            for i in range(len(times) - 1)
        ]

    def times_ms(self, end_ms: int) -> list[int]:
        """The moments before the end of the run, and the end: one more than there are intervals."""
        return [i * self.step_ms for i in range(len(self.moments)) if i * self.step_ms < end_ms] + [end_ms]
