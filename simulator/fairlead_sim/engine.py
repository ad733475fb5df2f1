"""Virtual time: what is to happen next, in an order that never depends on the machine that runs it.

Occurrences are ordered by (time, number); numbers count up as they are scheduled, so those of one millisecond happen in
the order in which they were asked for. Chance comes from one generator that is given from outside: an engine's run is a
function of its start, its generator and what is scheduled on it.
"""

import gc
import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random

_Entry = tuple[int, int, Callable[[], None] | None, "Occurrence | None"]
"""When, the number, and what: kept in an occurrence if it can be cancelled."""


class Occurrence:
    """Something that will happen, unless it is cancelled before."""

    __slots__ = ("happen",)

    def __init__(self, happen: Callable[[], None]) -> None:
        self.happen: Callable[[], None] | None = happen
        """None if it was cancelled, or has taken place. For the engine alone to call."""

    @property
    def is_cancelled(self) -> bool:
        """Whether it will not happen, or has."""
        return self.happen is None

    def cancel(self) -> None:
        """Let it not happen. Repeats are harmless."""
        self.happen = None


class Engine:
    """The clock, the calendar and the dice of one run."""

    def __init__(self, random: Random, *, now_ms: int = 1_700_000_000_000) -> None:
        self.random = random
        self.now_ms = now_ms
        self.occurred = 0
        """Occurrences so far, cancelled ones left out."""
        self._calendar: list[_Entry] = []
        self._number = 0

    def at(self, at_ms: int, happen: Callable[[], None]) -> None:
        """Let ``happen`` be called at a time, now if it has passed."""
        self._number = number = self._number + 1
        heapq.heappush(self._calendar, (max(at_ms, self.now_ms), number, happen, None))

    def after(self, delay_ms: int, happen: Callable[[], None]) -> None:
        """Let ``happen`` be called so many milliseconds from now."""
        # As ``at``, without a call: nearly everything is scheduled so.
        now_ms = self.now_ms
        self._number = number = self._number + 1
        heapq.heappush(self._calendar, (now_ms + delay_ms if delay_ms > 0 else now_ms, number, happen, None))

    def maybe_at(self, at_ms: int, happen: Callable[[], None]) -> Occurrence:
        """As ``at``, for what may be cancelled before."""
        occurrence = Occurrence(happen)
        self._number = number = self._number + 1
        heapq.heappush(self._calendar, (max(at_ms, self.now_ms), number, None, occurrence))
        return occurrence

    def maybe_after(self, delay_ms: int, happen: Callable[[], None]) -> Occurrence:
        """As ``after``, for what may be cancelled before."""
        return self.maybe_at(self.now_ms + delay_ms, happen)

    def next_ms(self) -> int | None:
        """When something happens next; None if nothing will."""
        calendar = self._calendar
        while calendar:
            at_ms, _, _, occurrence = calendar[0]
            if occurrence is None or occurrence.happen is not None:
                return at_ms
            heapq.heappop(calendar)
        return None

    def advance(self) -> bool:
        """Let the next thing happen; False if there is none."""
        # Written out, as simulations pass here a million times a second of theirs: calls cost more than what they do.
        calendar = self._calendar
        while calendar:
            at_ms, _, happen, occurrence = heapq.heappop(calendar)
            if occurrence is not None:
                happen, occurrence.happen = occurrence.happen, None
            if happen is not None:
                self.now_ms = at_ms
                self.occurred += 1
                happen()
                return True
        return False

    def run_until(self, end_ms: int) -> None:
        """Let everything happen that is due by ``end_ms``, which then is the time."""
        while (next_ms := self.next_ms()) is not None and next_ms <= end_ms:
            self.advance()
        self.now_ms = max(self.now_ms, end_ms)


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Let garbage be looked for at every half a million objects more than there were, and at all of them rarely.

    A simulation drops what is over by itself; Python, which cannot know that, would look at everything that is under way
    thousands of times, for a sixth of the time of a run on whole machines. What masters and agents remember, which is
    bounded, is some hundred thousand objects: to look at them whenever a fifth more is there takes a fortieth of it.
    """
    before = gc.get_threshold()
    gc.set_threshold(500_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Alarm:
    """One wake-up that can be moved."""

    def __init__(self, engine: Engine, wake: Callable[[], None]) -> None:
        self._engine = engine
        self._wake = wake
        self._at_ms: int | None = None
        self._set: Occurrence | None = None

    def move(self, at_ms: int | None) -> None:
        """Wake at this time and at no other; None: not at all."""
        if self._at_ms == at_ms:
            return
        if self._set is not None:
            self._set.cancel()
        self._at_ms = at_ms
        self._set = self._engine.maybe_at(at_ms, self._ring) if at_ms is not None else None

    def _ring(self) -> None:
        self._at_ms = self._set = None
        self._wake()


class Reminder:
    """A wake-up at a machine's next deadline, which moves with every turn, and nearly always further away.

    Most deadlines are made void by an answer milliseconds later. To put each into the calendar costs more than to wake up
    once in a while and find that there is another by now.
    """

    def __init__(
        self, engine: Engine, next_deadline_ms: Callable[[], int | None], wake: Callable[[], None]
    ) -> None:
        """``wake`` is called when a deadline has come that ``next_deadline_ms`` still gives then."""
        self._engine = engine
        self._next_deadline_ms = next_deadline_ms
        self._wake = wake
        self.at_ms: int | None = None
        """When it wakes up next; for itself alone to change."""

    def by(self, at_ms: int | None) -> None:
        """The next deadline is this one now; None: there is none."""
        if at_ms is not None and (self.at_ms is None or at_ms < self.at_ms):
            self.at_ms = at_ms
            self._engine.at(at_ms, partial(self._ring, at_ms))

    def _ring(self, at_ms: int) -> None:
        if at_ms != self.at_ms:
            return  # It was put earlier after that, and has rung.
        self.at_ms = None
        deadline_ms = self._next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= self._engine.now_ms:
            self._wake()
        else:
            self.by(deadline_ms)
