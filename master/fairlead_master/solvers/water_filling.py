"""Progressive filling of one pool: everybody's key rises together until a resource runs out or a cap is reached.

All users of a tier begin at key 0 and have x_i = level / rise_i tasks as the common level rises (``max_min`` has the rises of
each policy). A resource that runs out stops those who need it, a cap stops its user, and the others go on: Bertsekas and
Gallager, "Data Networks", section 6.5.2, with the keys of Ghodsi et al., "Dominant Resource Fairness". The result is the
lexicographically largest vector of keys, smallest first. Zero demands and caps, which the paper leaves out, need no rule of
their own: a resource stops only those who need it.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, inf
from typing import Final

from fairlead_master.allocation.weights import exact
from fairlead_master.solvers.problem import User

Number = float | Fraction
Tier = list[tuple[int, Number]]
"""Users by their place in the problem, each with its rise; all of them begin together."""

_CLOSE: Final = 1e-12
"""In floats, resources that run out within this fraction of the level run out together."""

_PARTS_MAX: Final = 64
"""Users that may have stopped before what they hold is added up for good. Where each has a tier of its own, to add up all
of them for each tier would be quadratic, and to round each time would round as often as there are users."""


@dataclass(frozen=True, slots=True)
class _Rising:
    """A user whose key still rises."""

    place: int
    rise: Number
    ceiling: Number
    """The level at which it has all the tasks it wants; infinite without a cap."""
    shares: Sequence[Number]

    def pace(self, resource: int) -> Number:
        """How much of the resource it takes for each step of the level."""
        return self.shares[resource] / self.rise

    def load(self, resource: int, level: Number) -> Number:
        """The fraction of the resource it holds at a level."""
        return self.pace(resource) * min(level, self.ceiling)


def fill(shares_of: Sequence[Sequence[Number]], users: Sequence[User], tiers: Iterable[Tier]) -> list[float]:
    """The tasks of each user when the tiers are filled one after the other; ``shares_of`` is a_ij.

    A task's key rises, its share of some resource is above zero, and nobody begins in two tiers.
    """
    is_exact = isinstance(shares_of[0][0], Fraction)
    pool = _Pool(len(shares_of[0]), is_exact=is_exact)
    for tier in tiers:
        rising = []
        for place, rise in tier:
            cap = users[place].max_tasks
            ceiling = (exact(cap) if is_exact and cap < inf else cap) * rise
            rising.append(_Rising(place, rise, ceiling, shares_of[place]))
        pool.fill(rising)
    return [float(pool.tasks.get(place, 0)) for place in range(len(users))]


class _Pool:
    """Resources as fractions of their capacity, and what has been taken of them by those that have stopped."""

    def __init__(self, resources: int, *, is_exact: bool) -> None:
        self.tasks: dict[int, Number] = {}
        self._used: list[list[Number]] = [[] for _ in range(resources)]
        """What each user that has stopped holds of each resource; summed when needed, so that errors do not add up."""
        self._sum: Callable[[Iterable[Number]], Number] = sum if is_exact else fsum
        self._slack: Number = Fraction(0) if is_exact else _CLOSE

    def fill(self, rising: Sequence[_Rising]) -> None:
        """Raise all of them together from level 0 until each has been stopped."""
        if len(self._used[0]) > _PARTS_MAX:
            self._used = [[self._sum(parts)] for parts in self._used]
        level: Number = 0
        while rising:
            level = self._last_cap(rising, level)
            rising = self._stop(rising, [user for user in rising if user.ceiling <= level], level)
            if not rising:
                return
            level, spent = self._next_exhaustion(rising, level)
            stopped = [user for user in rising if any(user.shares[place] for place in spent)]
            rising = self._stop(rising, stopped, level)

    def _last_cap(self, rising: Sequence[_Rising], level: Number) -> Number:
        """The last level at which a cap is reached before any resource runs out; ``level`` if there is none.

        Found by bisection over the caps: what is held at a level is a sum that grows with the level.
        """
        ceilings = sorted({user.ceiling for user in rising if level <= user.ceiling < inf})
        taken = [self._sum(parts) for parts in self._used]

        def overflows(at: Number) -> bool:
            return any(
                used + self._sum(user.load(place, at) for user in rising) > 1
                for place, used in enumerate(taken)
            )

        count = bisect_right(ceilings, False, key=overflows)
        return ceilings[count - 1] if count else level

    def _next_exhaustion(self, rising: Sequence[_Rising], level: Number) -> tuple[Number, list[int]]:
        """The level at which the next resource runs out if nobody reaches a cap before, and all that run out there."""
        at: dict[int, Number] = {}
        for place, used in enumerate(self._used):
            pace = self._sum(user.pace(place) for user in rising)
            if pace > 0:
                at[place] = max((1 - self._sum(used)) / pace, level)
        first = min(at.values())
        return first, [place for place, when in at.items() if when <= first * (1 + self._slack)]

    def _stop(self, rising: Sequence[_Rising], stopped: Iterable[_Rising], level: Number) -> list[_Rising]:
        """Stop users, who keep what they have at ``level``; return the others of ``rising``."""
        for user in stopped:
            self.tasks[user.place] = tasks = min(level, user.ceiling) / user.rise
            for place, used in enumerate(self._used):
                used.append(tasks * user.shares[place])
        return [user for user in rising if user.place not in self.tasks]
