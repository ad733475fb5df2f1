"""When a master looks for garbage, so that no step waits for long while it does.

Objects die by reference count. Python's collector is for circles of them, of which a master's books leave none but those of
policies with prices. By itself it looks over everything whenever a quarter more has been made: a tenth of a second with 10,000
frameworks, in the middle of any step. Here it looks over the young only, in milliseconds, and over everything once the
process has twice the memory that it had when that was last done. So what circles there are, of grpc's or ours, take no more
than the rest does.
"""

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Final

import psutil
import structlog

log = structlog.get_logger()

YOUNG_MAX: Final = 5_000
"""Objects made, above those that died, before the young are looked at: 1 to 3 ms. Most live on, so to look sooner costs more."""

YOUNG_LOOKS_MAX: Final = 4
"""Before those that have lived on are looked at once more, 25,000 at most: 4 to 8 ms."""

NEVER: Final = 2**31 - 1

GROWTH_BYTES_MIN: Final = 64 * 1024 * 1024
"""A master that has just begun has less than this, and doubles within seconds."""

LOOK_S: Final = 1.0
"""Between two looks at how much memory there is, 20 us each."""


class Garbage:
    """Looks for garbage when memory has doubled."""

    def __init__(self, memory_bytes: Callable[[], int], collect: Callable[[], int] = gc.collect) -> None:
        """Args: how much memory the process has; what looks over everything and gives how many objects were garbage."""
        self._memory_bytes = memory_bytes
        self._collect = collect
        self._bound_bytes = self._next_bound()

    def look(self) -> None:
        """Collect if it is time."""
        before = self._memory_bytes()
        if before <= self._bound_bytes:
            return
        started_s = time.thread_time()
        found = self._collect()
        took_ms = round((time.thread_time() - started_s) * 1000)
        self._bound_bytes = self._next_bound()
        log.info("garbage.collected", objects=found, took_ms=took_ms, memory_bytes=before)

    def _next_bound(self) -> int:
        now = self._memory_bytes()
        return max(2 * now, now + GROWTH_BYTES_MIN)


def leave_the_old() -> None:
    """Let Python look over the young only, from now on."""
    gc.set_threshold(YOUNG_MAX, YOUNG_LOOKS_MAX, NEVER)


async def keep_bounded() -> None:
    """Look every second, until cancelled."""
    process = psutil.Process()
    garbage = Garbage(lambda: process.memory_info().rss)
    while True:
        await asyncio.sleep(LOOK_S)
        garbage.look()
