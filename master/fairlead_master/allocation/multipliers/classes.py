"""Demand classes of a market: those who want resources in the same proportion, and who of them can have all they wish.

What members of a class have is counted in *multiples* of the class's vector, so that one number c_k, what a multiple
costs, stands for all prices: a member of weight w gets w / f(c_k) multiples in the fluid optimum (``AlphaRule``),
unless it wishes for fewer. Then it is *sated*: it takes what it wishes for, whatever the prices. Both sets are indexed by
w over the multiples wished for, so that who changes sides when c_k moves is at hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, inf
from operator import mul
from typing import Final

from fairlead_master.allocation.ranking import Ranked, Ranking
from fairlead_proto.resources import Vector

Direction = tuple[Vector, int]
"""A vector and what to divide it by: of one multiple. Both are integers, so that equal directions are equal keys."""

_GRAINS: Final = 2.0**256
"""Entitlements are summed as whole numbers of this part of one: exactly, so that a small one is still there when a large
one has come and gone. Every float from 2^-204 up is a whole number of them."""


@dataclass(frozen=True, slots=True)
class AlphaRule:
    """How much the fluid optimum of alpha-fairness gives for a price.

    Maximise the sum of w_i^alpha u(x_i), u'(x) = x^-alpha: x_i = w_i / (price of x_i)^(1/alpha), so that an account of
    weight 2 is two of weight 1. With x_i = g_k m_i, m_i the multiples of class k and g_k the *size* of one, a multiple
    costs c_k = sum_j a_kj nu_j, and

        m_i = w_i / f_k,    f_k = g_k^(1 - 1/alpha) c_k^(1/alpha)

    For alpha = 1 this is w_i / c_k whatever g_k is: proportional fairness knows no sizes (paper 000, proposition 6).
    """

    alpha: float
    counts_tasks: bool = False
    """Whether x_i is a number of tasks, each of size 1 whatever it needs, and not a share."""

    @property
    def power(self) -> float:
        """1 / alpha."""
        return 1.0 / self.alpha

    def factor(self, gain: float, cost: float) -> float:
        """f_k; ``gain`` is g_k^(1 - 1/alpha)."""
        return cost if self.alpha == 1.0 else float(gain * cost**self.power)

    def size(self, row: Sequence[float]) -> float:
        """g_k of a multiple that takes ``row`` of the resources; 1 where it takes nothing, since it costs nothing then."""
        return 1.0 if self.counts_tasks else max(row, default=0.0) or 1.0

    def gain(self, row: Sequence[float]) -> float:
        """g_k^(1 - 1/alpha) of a multiple that takes ``row`` of the resources."""
        return 1.0 if self.alpha == 1.0 else float(self.size(row) ** (1.0 - self.power))


class Member(Ranked):
    """One account of the population. Its key in either index is its entitlement over the multiples it wishes for."""

    __slots__ = ("demand_class", "entitlement", "grains", "is_sated", "ratio", "wish")

    def __init__(self, name: str, entitlement: float, wish: Vector, multiples: float) -> None:
        self.ratio = entitlement / multiples
        super().__init__(name, -self.ratio)
        self.entitlement = entitlement
        self.grains = int(entitlement * _GRAINS)
        self.wish = wish
        self.is_sated = False
        self.demand_class: DemandClass | None = None


class DemandClass:
    """A direction, its row in the market, its members, and what a multiple costs."""

    __slots__ = (
        "_grains",
        "_open",
        "_sated",
        "cost",
        "direction",
        "factor",
        "gain",
        "high",
        "low",
        "members",
        "reference",
        "row",
        "total",
    )

    def __init__(self, direction: Direction, row: tuple[float, ...], gain: float) -> None:
        self.direction = direction
        self.row = row
        """a_kj: the part of each resource of the market that one multiple takes."""
        self.gain = gain
        self.total = sum(row)
        self.cost = 0.0
        """c_k, at the prices it was last told."""
        self.factor = 0.0
        """f_k at those prices."""
        self.reference = 0.0
        """c_k at the point the tracker's model was made at, up to the tracker's scale."""
        self.low = 0.0
        """The largest ratio of an open member: with f_k below it, that member is sated."""
        self.high = inf
        """The smallest ratio of a sated one."""
        self.members: dict[str, Member] = {}
        self._grains = 0
        self._open = Ranking()
        self._sated = Ranking()

    @property
    def entitlement(self) -> float:
        """The sum over open members."""
        return self._grains / _GRAINS if self._grains else 0.0

    def price(self, nu: Sequence[float], rule: AlphaRule) -> None:
        """Bring ``cost`` and ``factor`` up to date."""
        self.cost = cost = sum(map(mul, self.row, nu))
        self.factor = rule.factor(self.gain, cost)

    def add(self, member: Member) -> None:
        """A new member, sated if a multiple costs so little that it is."""
        member.demand_class = self
        self.members[member.name] = member
        self._enter(member, is_sated=member.ratio > self.factor)
        self._note_limits()

    def remove(self, member: Member) -> None:
        """Forget a member."""
        del self.members[member.name]
        self._exit(member)
        self._note_limits()

    def revise(self, member: Member, wish: Vector, multiples: float) -> None:
        """An open member wishes for another amount, and stays open until it is moved to the other side."""
        self._exit(member)
        member.wish, member.ratio = wish, member.entitlement / multiples
        self._enter(member, is_sated=False)
        self._note_limits()

    def cross(self, slack: float, count_max: int | None = None) -> list[Member]:
        """Move the members whom ``factor`` puts on the other side by more than ``slack`` of it, all or so many; gives them."""
        moved: list[Member] = []
        above, below = self.factor * (1.0 + slack), self.factor * (1.0 - slack)
        while len(moved) != count_max:
            if self.low > above:
                member = self._top(self._open)
            elif self.high < below:
                member = self._top(self._sated)
            else:
                break
            self._exit(member)
            self._enter(member, is_sated=not member.is_sated)
            self._note_limits()
            moved.append(member)
        return moved

    def open_all(self) -> list[Member]:
        """Take nobody for sated any more; gives who was."""
        moved = [member for member in self.members.values() if member.is_sated]
        for member in moved:
            self._exit(member)
            self._enter(member, is_sated=False)
        self._note_limits()
        return moved

    def _enter(self, member: Member, *, is_sated: bool) -> None:
        member.is_sated = is_sated
        if is_sated:
            member.key, ranking = member.ratio, self._sated
        else:
            member.key, ranking = -member.ratio, self._open
            self._grains += member.grains
        ranking.add(member)
        ranking.activate(member)

    def _exit(self, member: Member) -> None:
        if member.is_sated:
            self._sated.deactivate(member)
        else:
            self._open.deactivate(member)
            self._grains -= member.grains

    def _note_limits(self) -> None:
        first = self._open.first()
        self.low = 0.0 if first is None else self.members[first].ratio
        first = self._sated.first()
        self.high = inf if first is None else self.members[first].ratio

    def _top(self, ranking: Ranking) -> Member:
        name = ranking.first()
        assert name is not None, f"the class of {self.direction} has a limit and nobody at it"
        return self.members[name]


def reduced(vector: Vector, divisor: int) -> Direction:
    """The direction of ``vector / divisor``, in the smallest whole numbers."""
    common = gcd(divisor, *vector)
    return (tuple([amount // common for amount in vector]), divisor // common)


def primitive(vector: Vector) -> tuple[Direction, int]:
    """The smallest whole vector along a vector that is not zero, and how many times that is the vector."""
    common = gcd(*vector)
    return (tuple([amount // common for amount in vector]), 1), common


def multiples_of(vector: Vector, direction: Vector) -> int | None:
    """How many times ``direction``, a smallest whole vector, is ``vector``; None if it is none of its multiples."""
    for amount, step in zip(vector, direction, strict=True):
        if step:
            count = amount // step
            return count if tuple([count * one for one in direction]) == vector else None
    return None
