"""When to act at once, and when to gather: a calm program answers in the moment, a busy one in batches.

A message of one record costs nearly as much as one of a hundred. While little happens, each thing is done as it comes,
because somebody waits for it; once much happens, a few milliseconds of gathering save most of the work, and nobody can
tell. What is much is counted, not guessed: so many things within the last interval that came with others.

Of what comes together the first is not counted. A client that starts one task when the last is over never has company, however
quick its tasks are. If they counted, gathering would save nothing and slow them down until they seemed calm, then let them be quick
again, and so on: single tasks of 4 ms took 4 ms and 16 ms by turns.
"""

from typing import Final

INTERVAL_MS: Final = 100
"""Over which things are counted: long enough to tell a stream from a burst, short enough to be calm again soon."""


class Pace:
    """Counts what happens and says whether it is much. Time comes in as an argument and never goes back."""

    def __init__(self, busy_count: int) -> None:
        """Busy is at least ``busy_count`` things that came with others in an interval of 100 ms."""
        self._busy_count = busy_count
        self._began_ms = 0
        self._count = 0
        self._count_before = 0

    def note(self, count: int, now_ms: int) -> None:
        """So many things came together now."""
        if now_ms - self._began_ms >= INTERVAL_MS:
            self._turn(now_ms)
        self._count += max(0, count - 1)

    def is_busy(self, now_ms: int) -> bool:
        """Whether much happened in the interval before this one, or already in this one."""
        if now_ms - self._began_ms >= INTERVAL_MS:
            self._turn(now_ms)
        return self._count >= self._busy_count or self._count_before >= self._busy_count

    def _turn(self, now_ms: int) -> None:
        """One interval or more is over."""
        passed = (now_ms - self._began_ms) // INTERVAL_MS
        self._count_before = self._count if passed == 1 else 0
        self._count = 0
        self._began_ms += passed * INTERVAL_MS
