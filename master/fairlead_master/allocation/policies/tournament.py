"""A tournament between queues of accounts: whose head has the smallest key of all, ties by arrival.

A binary tree over places: each queue has one, and each inner node holds the better of its two children's entries. A
queue whose head changed plays the log2 K matches above its place again, fewer if the outcome of one stays as it was;
when all keys change at once, all K - 1 matches are played again. Unlike a heap with stale entries this
needs no allowance for what has changed since, which suits keys of which all move together now and then.
"""

from collections.abc import Iterable
from math import inf
from typing import Final


class Contender:
    """Something that takes part in a tournament, or may. ``place`` belongs to ``Tournament``."""

    __slots__ = ("place",)

    def __init__(self) -> None:
        self.place = -1
        """-1 if it takes no part."""


Entry = tuple[float, int, Contender]
"""Key, arrival number, and whose they are. No two contenders have the same arrival number, so that none are compared."""

_NOBODY: Final[Entry] = (inf, 0, Contender())


class Tournament:
    """Contenders and the first of them."""

    def __init__(self) -> None:
        self._size = 1
        """Places; a power of two."""
        self._entries: list[Entry] = [_NOBODY, _NOBODY]
        """The winner of all at 1, those of the children of n at 2n and 2n + 1, the places behind the inner nodes."""
        self._empty = [0]
        """Places that nobody has."""
        self.matches = 0
        """Played so far."""

    def first(self) -> Contender | None:
        """The contender with the smallest key, ties by arrival; None if there is none."""
        winner = self._entries[1]
        return None if winner is _NOBODY else winner[2]

    def enter(self, contender: Contender, key: float, arrival: int) -> None:
        """The contender takes part with this key from now on; if it did already, its key changes."""
        if contender.place < 0:
            if not self._empty:
                self._grow()
            contender.place = self._empty.pop()
        now = self._entries[self._size + contender.place]
        if now[0] != key or now[1] != arrival:
            self._play(contender.place, (key, arrival, contender))

    def leave(self, contender: Contender) -> None:
        """The contender takes no part any more. Repeats are harmless."""
        if contender.place >= 0:
            self._play(contender.place, _NOBODY)
            self._empty.append(contender.place)
            contender.place = -1

    def replay(self, entries: Iterable[Entry]) -> None:
        """The keys of all who take part, in any order."""
        tree, size = self._entries, self._size
        for entry in entries:
            tree[size + entry[2].place] = entry
        self._play_all()

    def _play(self, place: int, entry: Entry) -> None:
        tree = self._entries
        node = self._size + place
        tree[node] = entry
        while node > 1:
            node >>= 1
            left, right = tree[2 * node], tree[2 * node + 1]
            winner = left if left < right else right  # noqa: FURB136 - a call would cost more than the match
            self.matches += 1
            if tree[node] is winner:
                return
            tree[node] = winner

    def _play_all(self) -> None:
        tree = self._entries
        for node in range(self._size - 1, 0, -1):
            left, right = tree[2 * node], tree[2 * node + 1]
            tree[node] = left if left < right else right  # noqa: FURB136 - see above
        self.matches += self._size - 1

    def _grow(self) -> None:
        size = self._size
        places = self._entries[size:]
        self._entries = [_NOBODY] * (2 * size) + places + [_NOBODY] * size
        self._empty = list(range(2 * size - 1, size - 1, -1))
        self._size = 2 * size
        self._play_all()
