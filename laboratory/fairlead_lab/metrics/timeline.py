"""How sums grew over the run, at moments evenly apart: the source of every plot over time, in bounded memory.

What is written down is what has been summed up until then, so that leaving out every other moment loses resolution and
nothing else: the mean of a rate between any two moments that remain is exact.
"""

from collections.abc import Callable, Sequence
from typing import Final

MOMENTS_MAX: Final = 1024
"""Of a whole run: more than a plot has pixels to show. At least half as many are kept once a run is long enough."""
_FIRST_STEP_MS: Final = 1000


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
