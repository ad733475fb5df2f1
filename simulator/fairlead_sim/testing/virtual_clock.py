"""A clock that stands still until it is told to go on: an engine's calendar, moved from within an event loop."""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from fairlead_sim.engine import Engine, Occurrence

QUIET_TURNS: Final = 30
"""Turns of the event loop without a message or a timer after which all is taken to be at rest. Handing a value through a
few nested tasks takes two or three turns each; whoever computes longer without either is not waited for."""


class VirtualClock:
    """Time that moves by ``advance`` only, through every timer on its way."""

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or Engine(Random(0))  # noqa: S311 - chance that repeats
        self._start_ms = self.engine.now_ms
        self._noted = 0
        self._is_run_planned = False

    def now_ms(self) -> int:
        """Milliseconds since the clock was made."""
        return self.engine.now_ms - self._start_ms

    def unix_ms(self) -> int:
        """Milliseconds since 1970, as the clock shows them: from a fixed time on, so that results repeat exactly."""
        return self.engine.now_ms

    def call_later(self, delay_ms: int, callback: Callable[[], object]) -> Occurrence:
        """Call ``callback`` once the clock has moved ``delay_ms``; timers for one moment go in the order they were made."""
        self.note()
        return self.engine.maybe_after(max(0, delay_ms), partial(_call, callback))

    def note(self) -> None:
        """Something happened: ``settle`` goes on until nothing more does."""
        self._noted += 1

    def soon(self) -> None:
        """Let what is due now happen in the next turn of the event loop, without waiting for ``advance``."""
        if not self._is_run_planned:
            self._is_run_planned = True
            asyncio.get_running_loop().call_soon(self._run_due)

    def next_due_ms(self) -> int | None:
        """When the next timer is due; None if there is none."""
        next_ms = self.engine.next_ms()
        return None if next_ms is None else next_ms - self._start_ms

    async def settle(self) -> None:
        """Let everything happen that needs no time."""
        quiet = 0
        seen = self._activity
        while quiet < QUIET_TURNS:
            await asyncio.sleep(0)
            quiet = quiet + 1 if seen == self._activity else 0
            seen = self._activity

    async def advance(self, duration_ms: int) -> None:
        """Move the clock, stopping at each timer on the way until all is at rest again."""
        target_ms = self.engine.now_ms + duration_ms
        await self.settle()
        while (next_ms := self.engine.next_ms()) is not None and next_ms <= target_ms:
            self.engine.run_until(next_ms)
            await self.settle()
        self.engine.run_until(target_ms)

    @property
    def _activity(self) -> int:
        """Grows with everything that happens."""
        return self.engine.occurred + self._noted

    def _run_due(self) -> None:
        self._is_run_planned = False
        self.engine.run_until(self.engine.now_ms)


def _call(callback: Callable[[], object]) -> None:
    callback()
