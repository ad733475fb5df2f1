"""How much of something was used in the last while, from the rates it was used at; and how much somebody was entitled to.

Use is exact: rates are integers, times are milliseconds, so what was used is an integer (resource-milliseconds) and
nothing drifts. The window slides in steps: ``mark`` is called once an interval, and the window begins at the oldest mark
kept. Between two marks it is therefore longer by what has passed since the last one.
"""

from collections import deque
from operator import add, sub

from fairlead_proto.resources import Vector, scale


class Meter:
    """The integral of a vector of rates over time, and the part of it that falls within the window."""

    __slots__ = ("_marks", "_since_ms", "_total", "rate")

    def __init__(self, rate: Vector, now_ms: int, intervals: int) -> None:
        """It has used nothing until ``now_ms``; the window is ``intervals`` marks long."""
        self.rate = rate
        """Used per millisecond from now on."""
        self._since_ms = now_ms
        self._total: Vector = (0,) * len(rate)
        self._marks = deque([(now_ms, self._total)], intervals + 1)

    def set_rate(self, rate: Vector, now_ms: int) -> None:
        """It is used at ``rate`` from now on."""
        if now_ms != self._since_ms:
            self._total = self._total_at(now_ms)
            self._since_ms = now_ms
        self.rate = rate

    def mark(self, now_ms: int) -> None:
        """An interval is over: the window begins one mark later, unless it is not yet at its full length."""
        self._marks.append((now_ms, self._total_at(now_ms)))

    def within(self, now_ms: int) -> Vector:
        """What was used within the window."""
        return tuple(map(sub, self._total_at(now_ms), self._marks[0][1]))

    def span_ms(self, now_ms: int) -> int:
        """How long the window is: shorter than its full length while the meter is new."""
        return now_ms - self._marks[0][0]

    def _total_at(self, now_ms: int) -> Vector:
        if now_ms == self._since_ms:
            return self._total
        return tuple(map(add, self._total, scale(self.rate, now_ms - self._since_ms)))


class EntitlementClock:
    """What a grain of weight is entitled to, by place: the integral of 1 / (sum of the weights of those active there).

    It makes the entitlements of all who are active grow at a cost that does not depend on how many they are: each
    notes where the clock stood when it came, as in virtual-time scheduling.
    """

    __slots__ = ("_now_ms", "elapsed_ms", "weights")

    def __init__(self, width: int, now_ms: int) -> None:
        self.weights: Vector = (0,) * width
        """Of all who are active together, in whole grains, so that the sum does not drift."""
        self.elapsed_ms: tuple[float, ...] = (0.0,) * width
        """Milliseconds of the whole resource, for each grain."""
        self._now_ms = now_ms

    def advance(self, now_ms: int) -> None:
        """It is ``now_ms``."""
        passed_ms = now_ms - self._now_ms
        if passed_ms:
            self.elapsed_ms = tuple(
                [
                    elapsed + (passed_ms / weight if weight else 0.0)
                    for elapsed, weight in zip(self.elapsed_ms, self.weights, strict=True)
                ]
            )
            self._now_ms = now_ms


class Credit:
    """What one account was entitled to, by place, in milliseconds of the whole resource, and the window's part of it."""

    __slots__ = ("_marks", "_since", "_total", "active")

    def __init__(self, width: int, intervals: int) -> None:
        """Active nowhere, and entitled to nothing so far."""
        self.active: Vector = (0,) * width
        """Its weight in the clock's grains, by place; 0 where it is not active."""
        self._total: tuple[float, ...] = (0.0,) * width
        self._since = self._total
        """The clock as of ``_total``."""
        self._marks = deque([self._total], intervals + 1)

    def set_active(self, active: Vector, clock: EntitlementClock) -> None:
        """Its weights, where it is active, are these from now on; the clock says what time it is."""
        self._settle(clock)
        clock.weights = tuple(map(add, clock.weights, map(sub, active, self.active)))
        self.active = active

    def mark(self, clock: EntitlementClock) -> None:
        """An interval is over. Settled here and at changes only, so that accounts alike have credits alike to the bit."""
        self._settle(clock)
        self._marks.append(self._total)

    def within(self, clock: EntitlementClock) -> tuple[float, ...]:
        """What it was entitled to within the window."""
        return tuple(map(sub, self._total_at(clock), self._marks[0]))

    def _settle(self, clock: EntitlementClock) -> None:
        self._total = self._total_at(clock)
        self._since = clock.elapsed_ms

    def _total_at(self, clock: EntitlementClock) -> tuple[float, ...]:
        if self._since is clock.elapsed_ms:
            return self._total
        return tuple(
            [
                total + weight * (elapsed - since)
                for total, weight, elapsed, since in zip(
                    self._total, self.active, clock.elapsed_ms, self._since, strict=True
                )
            ]
        )
