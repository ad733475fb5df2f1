"""The skeleton of policies whose key is a function of the account alone: of what it holds, and of its weight.

A policy of this kind is one file with its key: a ``Holder`` that counts units and gives its key, and a function from the
capacity and a weight to what holdings are divided by. What all of them do with keys is here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from operator import add, sub
from typing import Generic, TypeVar

from fairlead_master.allocation.api import Policy
from fairlead_master.allocation.ranking import Ranked, Ranking
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector, scale

By = TypeVar("By")
"""What a policy divides holdings by: made from the capacity and a weight, and shared by the accounts of that weight."""


class Holder(Ranked, ABC, Generic[By]):
    """An account and what it holds. It is divided before it is counted or its key is read."""

    __slots__ = ("weight", "wish")

    weight: Weight
    wish: Vector
    """What it holds and wants together. Read only by policies that follow wishes, which begin it."""

    @abstractmethod
    def divide(self, by: By) -> float:
        """Holdings are divided by this from now on; gives the account's key."""

    @abstractmethod
    def count(self, unit: Vector, units: int) -> float:
        """The account holds ``units`` more of ``unit``, fewer where below zero; gives its key."""


class KeyedPolicy(Policy, Generic[By]):
    """Ranks accounts by keys that their own holdings and weights decide."""

    def __init__(
        self, hold: Callable[[str, Vector, int], Holder[By]], divisors: Callable[[Vector, Weight], By]
    ) -> None:
        """Args: how an account is made of name, charges and units, and what is divided by at a capacity and a weight."""
        self._ranking = Ranking()
        self.first = self._ranking.first
        self._hold = hold
        self._divisors = divisors
        self._accounts: dict[str, Holder[By]] = {}
        self._capacity: Vector = ()
        self._shared: dict[float, By] = {}
        """The divisors of each single-number weight: most accounts have one of a few weights."""

    def set_capacity(self, capacity: Vector, slots: int) -> None:  # noqa: ARG002 - the interface of all policies
        """Every key changes, so this is O(n)."""
        self._capacity = capacity
        self._shared = {}
        for state in self._accounts.values():
            state.key = state.divide(self._by(state.weight))
        self._ranking.rebuild()

    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:
        """A new account, resting."""
        self._capacity = self._capacity or (0,) * len(charged)
        self._accounts[account] = state = self._hold(account, charged, units)
        state.weight = weight
        state.key = state.divide(self._by(weight))
        self._ranking.add(state)

    def remove(self, account: str) -> None:
        """Forget an account."""
        self._ranking.deactivate(self._accounts.pop(account))

    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on."""
        state = self._accounts[account]
        state.weight = weight
        self._ranking.rekey(state, state.divide(self._by(weight)))

    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:
        """The account got ``units`` more of ``unit``; gives its key before and after that."""
        state = self._accounts[account]
        before = state.key
        key = state.count(unit, units)
        if key < before:
            self._ranking.rekey(state, key)
        else:
            state.key = (
                key  # What ``rekey`` does with a key that grows, without the call: most decisions are this.
            )
        return before, key

    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units`` of ``unit``."""
        state = self._accounts[account]
        self._ranking.rekey(state, state.count(unit, -units))

    def set_wish(self, account: str, wish: Vector) -> None:
        """The account holds and wants ``wish`` in all."""
        state = self._accounts[account]
        state.wish = wish
        self._ranking.rekey(state, state.divide(self._by(state.weight)))

    def activate(self, account: str) -> None:
        """The account takes part in ``first``."""
        self._ranking.activate(self._accounts[account])

    def deactivate(self, account: str) -> None:
        """The account rests."""
        self._ranking.deactivate(self._accounts[account])

    def key(self, account: str) -> float:
        """The account's key now."""
        return self._accounts[account].key

    def _by(self, weight: Weight) -> By:
        if weight.by_resource is not None:
            return self._divisors(self._capacity, weight)
        if weight.default not in self._shared:
            self._shared[weight.default] = self._divisors(self._capacity, weight)
        return self._shared[weight.default]


def counted(used: Vector, unit: Vector, units: int) -> Vector:
    """``used`` and ``units`` more of ``unit``. One unit, the most frequent number, is not multiplied."""
    if units == 1:
        return tuple(map(add, used, unit))
    if units == -1:
        return tuple(map(sub, used, unit))
    return tuple(map(add, used, scale(unit, units)))
