"""How long to wait before trying the master again."""

from collections.abc import Callable
from typing import Final

FIRST_MS: Final = 50
"""A master that restarts is back in a few hundred milliseconds; asking sooner only loads its host while it starts."""

LONGEST_MS: Final = 5_000
"""A thousand frameworks that have all backed off this far still ask only 200 times a second."""


class Backoff:
    """Doubling waits, each spread over its upper half so that frameworks cut off together do not return together."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._next_ms = FIRST_MS

    def reset(self) -> None:
        """Start over: the master answered."""
        self._next_ms = FIRST_MS

    def next_ms(self) -> int:
        """The next wait; at least half and at most all of twice the one before."""
        ceiling_ms = self._next_ms
        self._next_ms = min(LONGEST_MS, 2 * ceiling_ms)
        return round(ceiling_ms * (1 + self._jitter()) / 2)
