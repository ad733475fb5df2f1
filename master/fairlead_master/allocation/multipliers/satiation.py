"""Users who want only so much: who of them is satiated, and what the others' multipliers are then.

With limits phi_i <= b_i the optimum is that of the users below their limits in the capacity that the satiated leave. Who
is satiated is found in rounds: given multipliers, it is everyone whose w_i (a_i . nu)^(-1/alpha) exceeds b_i. Users join
*and leave*: what a satiated user leaves may make another resource dearer, and a user of that one wants less then, so that
to cap all who are above their limits once and for all is wrong in a few of a hundred random cases.

Each round can be solved: those who join take less than they did, those who leave take b_i less, so that the satiated
never need more than there is. Rounds end after a few. If they have not after ``ROUNDS_MAX``, users join and leave
one at a time and only on the way to a better allocation (``_ascend``), which must end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, Protocol

from fairlead_master.allocation.multipliers import interior_point
from fairlead_master.allocation.multipliers.certificate import Multipliers
from fairlead_master.allocation.multipliers.dual import DemandClass, Row

ROUNDS_MAX: Final = 20
"""Rounds in which everyone joins or leaves at once; random instances took at most four."""

_TIE: Final = 1e-12
"""A wish above the limit by a smaller part is the limit itself: rounding must not decide who joins."""

_UNRELIABLE: Final = 1e-6
"""Multipliers with a larger error, or one that is not known, do not tell who is satiated: rounds might never end."""

_TAKEN: Final = 1e-15
"""What is left of a capacity that the satiated take whole, but for rounding."""


class Solve(Protocol):
    """What finds multipliers: ``interior_point.solve``, or the same with faster sums."""

    def __call__(self, classes: Sequence[DemandClass], /, *, alpha: float) -> Multipliers:
        """The multipliers of these classes."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What one user, or several with the same wish per weight, asks for."""

    row: Row
    """What one unit takes of each resource, per capacity; not all zero."""
    weight: float
    """Above zero."""
    limit: float = inf
    """How many units are wanted at most; above zero."""


@dataclass(frozen=True, slots=True)
class Satiation:
    """The optimum under limits."""

    units: tuple[float, ...]
    """Per wish."""
    satiated: frozenset[int]
    """Whose limit is reached, by place."""
    values: tuple[float, ...]
    """nu_j per resource, for capacities of 1: sum_j nu_j = sum_i units_i (a_i . nu), what all pay. Under proportional
    fairness users below their limit pay their weight, and the satiated no more than theirs."""
    rounds: int
    """How often multipliers were solved for."""
    relative_error: float
    """Of the units of those below their limits; see ``certificate.Certificate``. Where it is large or infinite, as may be
    where floats cannot hold how far prices are apart, nothing else here is certain."""


def satiate(wishes: Sequence[Wish], alpha: float = 1.0, solve: Solve = interior_point.solve) -> Satiation:
    """Alpha-fair units under limits: proportionally fair where ``alpha`` is 1.

    Args:
        wishes: Of all users, all rows of one length.
        alpha: Above zero.
        solve: What finds multipliers.

    Raises:
        ValueError: A wish is none, see ``dual.Dual``; or a limit is not above zero.
    """
    for place, wish in enumerate(wishes):
        if not wish.limit > 0:
            raise ValueError(f"wishes[{place}]: expected a limit above 0, got {wish.limit}")
    satiated: frozenset[int] = frozenset()
    found = _solve(wishes, satiated, alpha, solve)
    for _ in range(ROUNDS_MAX):
        if found.relative_error > _UNRELIABLE:
            return found.settled(satiated)
        wanted = found.wanted
        excessive = frozenset(
            [place for place, wish in enumerate(wishes) if wanted[place] > wish.limit * (1 + _TIE)]
        )
        # Who is exactly at the limit stays where it is.
        kept = frozenset([place for place in satiated if wanted[place] >= wishes[place].limit * (1 - _TIE)])
        if excessive | kept == satiated:
            return found.settled(satiated)
        satiated = excessive | kept
        found = replace(_solve(wishes, satiated, alpha, solve), rounds=found.rounds + 1)
    return _ascend(wishes, alpha, found, satiated, solve)


@dataclass(frozen=True, slots=True)
class _Round:
    wishes: Sequence[Wish]
    values: tuple[float, ...]
    wanted: list[float]
    """At these multipliers, by everyone, limits or not."""
    rounds: int
    relative_error: float

    def units(self, satiated: frozenset[int]) -> list[float]:
        return [
            wish.limit if place in satiated else self.wanted[place] for place, wish in enumerate(self.wishes)
        ]

    def settled(self, satiated: frozenset[int]) -> Satiation:
        return Satiation(tuple(self.units(satiated)), satiated, self.values, self.rounds, self.relative_error)


def _solve(wishes: Sequence[Wish], satiated: frozenset[int], alpha: float, solve: Solve) -> _Round:
    """The multipliers of those who are not satiated, in what the satiated leave; what nobody of them needs costs nothing."""
    width = len(wishes[0].row) if wishes else 0
    room = [
        1.0 - sum(wishes[place].limit * wishes[place].row[resource] for place in sorted(satiated))
        for resource in range(width)
    ]
    room = [max(_TAKEN, left) for left in room]
    classes: dict[tuple[float, ...], float] = {}
    for place, wish in enumerate(wishes):
        if place not in satiated:
            row = tuple([need / left for need, left in zip(wish.row, room, strict=True)])
            classes[row] = classes.get(row, 0.0) + wish.weight
    if not classes and wishes:
        return _Round(wishes, (0.0,) * width, [inf] * len(wishes), 1, 0.0)
    multipliers = solve(list(classes.items()), alpha=alpha)
    values = tuple([value / left for value, left in zip(multipliers.values, room, strict=True)])
    wanted = [_wanted(wish, values, alpha) for wish in wishes]
    return _Round(wishes, values, wanted, 1, multipliers.certificate.relative_error)


def _wanted(wish: Wish, values: Sequence[float], alpha: float) -> float:
    price = sum(need * value for need, value in zip(wish.row, values, strict=True))
    if price == 0:
        return inf
    return wish.weight / price if alpha == 1.0 else float(wish.weight * price ** (-1.0 / alpha))


def _ascend(
    wishes: Sequence[Wish], alpha: float, found: _Round, satiated: frozenset[int], solve: Solve
) -> Satiation:
    """Join and leave one at a time, on feasible allocations that only get better.

    The classical active-set method for limits: go from the allocation towards the optimum of those who are not satiated,
    stop where the first reaches its limit, who joins; at the optimum the first who would rather have less leaves. As the
    objective grows with every step no set of satiated users can come back.
    """
    units = [min(have, wish.limit) for have, wish in zip(found.units(satiated), wishes, strict=True)]
    satiated = frozenset([place for place, wish in enumerate(wishes) if units[place] >= wish.limit])
    rounds = found.rounds
    while True:
        found = replace(_solve(wishes, satiated, alpha, solve), rounds=rounds + 1)
        rounds += 1
        if found.relative_error > _UNRELIABLE:
            return found.settled(satiated)
        target = found.units(satiated)
        length, blocking = 1.0, -1
        for place, wish in enumerate(wishes):
            if target[place] > wish.limit * (1 + _TIE):
                reach = (wish.limit - units[place]) / (target[place] - units[place])
                if reach < length:
                    length, blocking = reach, place
        if blocking >= 0:
            units = [have + length * (goal - have) for have, goal in zip(units, target, strict=True)]
            units[blocking] = wishes[blocking].limit
            satiated |= {blocking}
            continue
        units = target
        reluctant = [
            place for place in sorted(satiated) if found.wanted[place] < wishes[place].limit * (1 - _TIE)
        ]
        if not reluctant:
            return found.settled(satiated)
        satiated -= {reluctant[0]}
