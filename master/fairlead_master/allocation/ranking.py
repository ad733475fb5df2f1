"""An index of accounts by key: the smallest key first, ties by arrival, O(log n) amortised a change.

It decides nothing but the order; what a key means belongs to the policy. Kept honest by one rule: an account takes part
through exactly one entry of the heap, the one it points to, and that entry's key is never above the account's own. A
key that grows therefore costs nothing when it grows; the entry is brought up to date by one ``heapreplace`` if it
ever comes to the top. That is the served head's way, and two ``heappush`` and ``heappop`` would cost twice as much.
"""

from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

COMPACT_FACTOR: Final = 2
"""Rebuild when the heap holds this many times the active accounts. Lower rebuilds too often; higher only costs memory."""

_COMPACT_SLACK: Final = 16
"""So that a handful of accounts going up and down does not rebuild at every step."""


class Ranked:
    """An account in a ranking. ``key`` is read by the policy; everything else belongs to ``Ranking``.

    Policies extend it by what they know of an account: one object instead of two for each account is one miss of the
    cache less for each decision, which at 100,000 accounts is what decisions are made of.
    """

    __slots__ = ("arrival", "entry", "key", "name")

    def __init__(self, name: str, key: float) -> None:
        self.name = name
        self.arrival = 0
        self.key = key
        self.entry: _Entry | None = None


_Entry = tuple[float, int, Ranked]


class Ranking:
    """Accounts that take part or rest, the first among those that take part at hand."""

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._active_count = 0
        self._arrivals = 0

    def __del__(self) -> None:
        # An account and its entry are a circle, which nobody but Python's collector would find. A ranking that is dropped with
        # all its accounts, as when an agent joins, would leave megabytes of them.
        for entry in self._heap:
            if entry[2].entry is entry:  # The account may take part in another ranking by now.
                entry[2].entry = None

    def add(self, ranked: Ranked) -> None:
        """A new account, resting. Arrival numbers are unique, so that no comparison ever reaches the account itself."""
        self._arrivals += 1
        ranked.arrival = self._arrivals

    def activate(self, ranked: Ranked) -> None:
        """Let the account take part. Repeats are harmless."""
        if ranked.entry is None:
            self._active_count += 1
            self._push(ranked)

    def deactivate(self, ranked: Ranked) -> None:
        """Let the account rest. Repeats are harmless."""
        if ranked.entry is not None:
            self._active_count -= 1
            ranked.entry = None

    def rekey(self, ranked: Ranked, key: float) -> None:
        """The account's key is ``key`` from now on."""
        ranked.key = key
        if ranked.entry is not None and key < ranked.entry[0]:
            self._push(ranked)

    def rebuild(self) -> None:
        """Bring every entry up to date: after many keys changed at once, this is O(n) where single steps are not."""
        live = [entry[2] for entry in self._heap if entry[2].entry is entry]
        self._heap = [(ranked.key, ranked.arrival, ranked) for ranked in live]
        for entry in self._heap:
            entry[2].entry = entry
        heapify(self._heap)

    def first(self) -> str | None:
        """The name of the account with the smallest key among those that take part; None if none does."""
        heap = self._heap
        while heap:
            entry = heap[0]
            ranked = entry[2]
            if ranked.entry is not entry:
                heappop(heap)
            elif ranked.key is not entry[0]:
                ranked.entry = renewed = (ranked.key, ranked.arrival, ranked)
                heapreplace(heap, renewed)
            else:
                return ranked.name
        return None

    def head(self) -> Ranked | None:
        """The account itself whose name ``first`` gives."""
        return None if self.first() is None else self._heap[0][2]

    def __len__(self) -> int:
        """Entries in the heap, stale ones included: at most twice the active accounts and a little."""
        return len(self._heap)

    def _push(self, ranked: Ranked) -> None:
        ranked.entry = entry = (ranked.key, ranked.arrival, ranked)
        heappush(self._heap, entry)
        if len(self._heap) > COMPACT_FACTOR * self._active_count + _COMPACT_SLACK:
            self.rebuild()
