"""How a shell takes what comes: all that has arrived at a moment in one turn, and its machine's deadlines.

The shells of master and agents drain a queue once a turn of their loop; what arrived together is decided together, and
what is decided in one turn for one peer is one message. Here a millisecond is a turn.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

from fairlead_sim.engine import Engine

_T = TypeVar("_T")


class Inbox(Generic[_T]):
    """What has arrived and waits for the turn that takes it."""

    def __init__(self, engine: Engine, take: Callable[[list[_T]], None]) -> None:
        """``take`` is called with all there is, after everything that was due at that moment before it."""
        self._engine = engine
        self._take = take
        self._items: list[_T] = []
        self.is_planned = False
        """Whether a turn will come by itself; for itself alone to change."""

    def put(self, items: Iterable[_T], *, wait_ms: int = 0) -> None:
        """More has arrived; if no turn is planned yet, there is one after so long."""
        self._items += items
        if not self.is_planned:
            self.plan(wait_ms=wait_ms)

    def plan(self, *, wait_ms: int = 0) -> None:
        """Have a turn even if nothing arrives. Repeats are harmless."""
        if not self.is_planned:
            self.is_planned = True
            self._engine.after(wait_ms, self._turn)

    def _turn(self) -> None:
        self.is_planned = False
        items, self._items = self._items, []
        self._take(items)


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
