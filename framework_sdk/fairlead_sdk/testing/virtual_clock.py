"""A clock that stands still until it is told to go on."""

import asyncio
import heapq
from collections.abc import Callable
from typing import Final

START_UNIX_MS: Final = 1_700_000_000_000
"""What the clock shows at first: a fixed time, so that results repeat exactly."""

QUIET_TURNS: Final = 30
"""Turns of the event loop without a message or a timer after which all is taken to be at rest. Handing a value through a
few nested tasks takes two or three turns each; whoever computes longer without either is not waited for."""


class VirtualTimer:
    """Something that happens when the clock gets there, unless cancelled."""

    def __init__(self, due_ms: int, callback: Callable[[], object]) -> None:
        self.due_ms = due_ms
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        """Make sure it does not happen."""
        self.callback = None


class VirtualClock:
    """Time that moves by ``advance`` only, through every timer on its way."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._timers: list[tuple[int, int, VirtualTimer]] = []
        self._made = 0
        self.activity = 0
        """Grows with everything that happens; ``settle`` waits until it stops growing."""

    def now_ms(self) -> int:
        """Milliseconds since the clock was made."""
        return self._now_ms

    def unix_ms(self) -> int:
        """Milliseconds since 1970, as the clock shows them."""
        return START_UNIX_MS + self._now_ms

    def call_later(self, delay_ms: int, callback: Callable[[], object]) -> VirtualTimer:
        """Call ``callback`` once the clock has moved ``delay_ms``; timers for one moment go in the order they were made."""
        timer = VirtualTimer(self._now_ms + max(0, delay_ms), callback)
        self._made += 1
        self.activity += 1
        heapq.heappush(self._timers, (timer.due_ms, self._made, timer))
        return timer

    def next_due_ms(self) -> int | None:
        """When the next timer is due; None if there is none."""
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    async def settle(self) -> None:
        """Let everything happen that needs no time."""
        quiet = 0
        seen = self.activity
        while quiet < QUIET_TURNS:
            await asyncio.sleep(0)
            quiet = quiet + 1 if seen == self.activity else 0
            seen = self.activity

    async def advance(self, duration_ms: int) -> None:
        """Move the clock, stopping at each timer on the way until all is at rest again."""
        target_ms = self._now_ms + duration_ms
        await self.settle()
        while (due_ms := self.next_due_ms()) is not None and due_ms <= target_ms:
            self._now_ms = max(self._now_ms, due_ms)
            while self.next_due_ms() == due_ms:
                self._fire_next()
            await self.settle()
        self._now_ms = target_ms

    def _fire_next(self) -> None:
        _, _, timer = heapq.heappop(self._timers)
        callback, timer.callback = timer.callback, None
        assert callback is not None, "a cancelled timer was next"
        self.activity += 1
        callback()
