"""How long to wait before trying somebody again who does not answer."""

from collections.abc import Callable
from typing import Final

FIRST_MS: Final = 50
"""A master that restarts is back in a few hundred milliseconds; asking sooner only loads its host while it starts."""

LONGEST_MS: Final = 5_000
"""A thousand frameworks that have all backed off this far still ask only 200 times a second."""


class Backoff:
    """Doubling waits, each spread over its upper half so that peers cut off together do not return together."""

    def __init__(
        self, jitter: Callable[[], float], *, first_ms: int = FIRST_MS, longest_ms: int = LONGEST_MS
    ) -> None:
        """Args: ``jitter`` gives numbers in [0, 1); the first wait is at most ``first_ms``, none is more than ``longest_ms``."""
        self._jitter = jitter
        self._first_ms = self._next_ms = first_ms
        self._longest_ms = longest_ms

    def reset(self) -> None:
        """Start over: somebody answered."""
        self._next_ms = self._first_ms

    def next_ms(self) -> int:
        """The next wait; at least half and at most all of twice the one before."""
        ceiling_ms = self._next_ms
        self._next_ms = min(self._longest_ms, 2 * ceiling_ms)
        return round(ceiling_ms * (1 + self._jitter()) / 2)
