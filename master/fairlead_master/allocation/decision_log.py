"""The last decisions, for whoever asks what the allocator did and why."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from fairlead_master.allocation.api import Decision, Grant

DECISIONS_KEPT: Final = 1_000
"""Grants kept: what the operator's call for them may ask for at most."""


class DecisionLog:
    """Grants with their numbers and times, the oldest first."""

    def __init__(self) -> None:
        self._decisions: deque[Decision] = deque(maxlen=DECISIONS_KEPT)
        self._count = 0

    def add(self, grants: list[Grant], now_ms: int, policy: str) -> None:
        """Note what a cycle granted. Of a long cycle only what is kept is looked at."""
        last = self._count + len(grants)
        first_kept = max(self._count, last - DECISIONS_KEPT) + 1
        for number, grant in enumerate(grants[-DECISIONS_KEPT:], first_kept):
            self._decisions.append(Decision(number=number, time_ms=now_ms, policy=policy, grant=grant))
        self._count = last

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._decisions)

    def __iter__(self) -> Iterator[Decision]:
        """The oldest first."""
        return iter(self._decisions)

    def __reversed__(self) -> Iterator[Decision]:
        """The newest first."""
        return reversed(self._decisions)
