"""Time as the SDK sees it: one interface, so that a test may own the clock.

``LoopClock`` is the event loop's own; ``fairlead_sim.testing`` has one that stands still until told.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol


class Timer(Protocol):
    """Something that will happen unless cancelled."""

    def cancel(self) -> None:
        """Make sure it does not happen; harmless when it has, or twice."""


class Clock(Protocol):
    """What the SDK needs of time."""

    def now_ms(self) -> int:
        """Milliseconds from some start, never going back."""

    def unix_ms(self) -> int:
        """Milliseconds since 1970, for people."""

    def call_later(self, delay_ms: int, callback: Callable[[], object]) -> Timer:
        """Call ``callback`` once, ``delay_ms`` from now, on the event loop."""


class LoopClock:
    """The real time of the running event loop."""

    def now_ms(self) -> int:
        """Milliseconds of the monotonic clock."""
        return time.monotonic_ns() // 1_000_000

    def unix_ms(self) -> int:
        """Milliseconds since 1970 by the host's clock."""
        return time.time_ns() // 1_000_000

    def call_later(self, delay_ms: int, callback: Callable[[], object]) -> Timer:
        """Call ``callback`` once, ``delay_ms`` from now, on the running loop."""
        return asyncio.get_running_loop().call_later(delay_ms / 1000, callback)


class Alarm:
    """Calls back at a time that is moved as often as it changes."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback = callback
        self._due_ms: int | None = None
        self._timer: Timer | None = None

    def set(self, clock: Clock, due_ms: int | None) -> None:
        """Have the call come at this time of the clock, once; None is never."""
        if due_ms != self._due_ms:
            self.cancel()
            if due_ms is not None:
                self._due_ms = due_ms
                self._timer = clock.call_later(max(0, due_ms - clock.now_ms()), self._ring)

    def cancel(self) -> None:
        """Make sure that it does not come."""
        self._due_ms = None
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        self._due_ms = None
        self._callback()


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


async def sleep(clock: Clock, delay_ms: int) -> None:
    """Return ``delay_ms`` later by ``clock``."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_later(delay_ms, partial(_wake, done))
    try:
        await done
    finally:
        timer.cancel()


async def wait_until(clock: Clock, future: "asyncio.Future[Any]", limit_ms: int) -> bool:
    """Wait for ``future`` at most ``limit_ms`` by ``clock``, and say whether it is done. It is never cancelled."""
    if future.done():
        return True
    expired: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_later(limit_ms, partial(_wake, expired))
    try:
        await asyncio.wait({future, expired}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        expired.cancel()
    return future.done()
