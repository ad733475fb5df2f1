"""A market that is never closed: who wants what, who is sated, and the prices at which supply meets demand.

Told of one account at a time, it is brought up to date in one batch when it is asked. In between, nothing is computed.

The fluid optimum with caps, phi_i <= what i wishes for, is that of the open members alone in the room that the sated
ones leave; who is sated follows from the prices again (``classes``). The two are found by turns, with members moving in
both directions: to take each who is over its cap for sated once and for all is wrong, since a member that leaves room may
lower the prices of one resource and raise those of another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import Final

from fairlead_master.allocation.multipliers.classes import AlphaRule, DemandClass, Direction, Member
from fairlead_master.allocation.multipliers.tracker import Tracker
from fairlead_proto.resources import Vector, add, subtract

ROUNDS_MAX: Final = 20
"""Turns of prices and sides in one batch. Four were the most seen; more means members on the very edge."""

_LOOSE: Final = 1e-4
"""A member changes sides when its cap is passed by this part: as much as the prices may be off."""

_TIGHT: Final = 1e-12
"""The same, for exact prices."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """How far prices are from those at which every optimality condition holds; all zero is the exact optimum."""

    overload: float
    """The largest part by which demand at these prices exceeds a resource."""
    slackness: float
    """The largest nu_j (1 - load_j), over what all open members pay together: prices of what is not scarce."""


class Market:
    """Members by demand class, and the multipliers of their fluid optimum."""

    def __init__(self, rule: AlphaRule) -> None:
        self.rule = rule
        self.classes: dict[Direction, DemandClass] = {}
        self.tracker = Tracker(rule)
        self._members: dict[str, Member] = {}
        self._places: list[int] = []
        """Of a vector, that the cluster has anything of."""
        self._capacity: Vector = ()
        self._wished: Vector = ()
        """By all members together."""
        self._sated: Vector = ()
        """By those of them who are sated."""
        self._is_free = True
        """Whether everyone can have all it wishes, so that nothing has a price."""
        self._is_settled = True
        """Whether nothing has happened since prices were brought up to date that could move them."""
        self._is_exact = True
        """Whether they were exact then."""

    def set_capacity(self, capacity: Vector) -> None:
        """The sum over active agents; every row changes."""
        places = [place for place, total in enumerate(capacity) if total > 0]
        if places != self._places:
            self.tracker.reset(len(places))
        self._capacity, self._places = capacity, places
        zero = (0,) * len(capacity)
        self._wished, self._sated = self._wished or zero, self._sated or zero
        self.tracker.lose()
        self._is_settled = False
        for demand_class in self.classes.values():
            self._describe(demand_class)

    def row(self, direction: Direction) -> tuple[float, ...]:
        """The part of each resource of the market that one multiple of the direction takes."""
        vector, divisor = direction
        return tuple([vector[place] / (divisor * self._capacity[place]) for place in self._places])

    def make_class(self, direction: Direction) -> DemandClass:
        """A class at today's prices that belongs to no population."""
        row = self.row(direction)
        demand_class = DemandClass(direction, row, self.rule.gain(row))
        demand_class.price(self.tracker.nu, self.rule)
        return demand_class

    def put(
        self, name: str, direction: Direction, *, entitlement: float, wish: Vector, multiples: float
    ) -> None:
        """The account wants ``multiples`` of the direction in all, which is ``wish``; what it wanted before is replaced."""
        member = self._members.get(name)
        if (
            member is not None
            and not member.is_sated
            and member.entitlement == entitlement
            and member.demand_class is self.classes.get(direction)
        ):
            self._revise(member, wish, multiples)
            return
        self.drop(name)
        demand_class = self.classes.get(direction)
        if demand_class is None:
            demand_class = self.make_class(direction)
            self.classes[direction] = demand_class
            self.tracker.enter(demand_class)
        self._members[name] = member = Member(name, entitlement, wish, multiples)
        before = demand_class.entitlement
        demand_class.add(member)
        self._wished = add(self._wished, wish)
        self._note(member, demand_class, before)

    def drop(self, name: str) -> None:
        """The account wants nothing any more. Repeats are harmless."""
        member = self._members.pop(name, None)
        if member is None:
            return
        demand_class = member.demand_class
        assert demand_class is not None, f"{name} is in the market and in no class"
        before = demand_class.entitlement
        demand_class.remove(member)
        self._is_settled = False
        self._wished = subtract(self._wished, member.wish)
        if member.is_sated:
            self._sated = subtract(self._sated, member.wish)
        elif not self._is_free:
            self.tracker.shift(demand_class, demand_class.entitlement - before)
        if not demand_class.members:
            del self.classes[demand_class.direction]

    def settle(self) -> bool:
        """Bring prices up to date, within the tolerance of the tracker; gives whether they may have moved."""
        return self._settle(exactly=False)

    def polish(self) -> bool:
        """Bring prices to the exact optimum, up to rounding; gives whether they may have moved."""
        return self._settle(exactly=True)

    def certificate(self) -> Certificate:
        """How good the prices in force are, computed from the members and nothing else."""
        load = [0.0] * len(self._places)
        paid = 0.0
        for demand_class in self.classes.values():
            cost = sum(map(mul, demand_class.row, self.tracker.nu))
            factor = self.rule.factor(demand_class.gain, cost)
            for member in demand_class.members.values():
                entitlement = member.entitlement
                most = entitlement / member.ratio
                got = most if member.ratio >= factor else entitlement / factor
                paid += got * cost
                load = [sum_ + got * a for sum_, a in zip(load, demand_class.row, strict=True)]
        return Certificate(
            overload=max([0.0, *(taken - 1.0 for taken in load)]),
            slackness=max(
                [0.0, *(p * (1.0 - t) / paid for p, t in zip(self.tracker.nu, load, strict=True) if p)]
            ),
        )

    def prices(self) -> tuple[float, ...]:
        """Prices by place in the vector; zero where the cluster has nothing."""
        found = dict(zip(self._places, self.tracker.nu, strict=True))
        return tuple([found.get(place, 0.0) for place in range(len(self._capacity))])

    def adopt(self, prices: Sequence[float]) -> None:
        """Take ``prices`` for those in force, whatever the members say; for comparisons."""
        self._is_settled = False
        self.tracker.nu = [prices[place] for place in self._places]
        for demand_class in self.classes.values():
            demand_class.price(self.tracker.nu, self.rule)

    def _revise(self, member: Member, wish: Vector, multiples: float) -> None:
        """An open member wishes for another amount: it takes what it took, unless that is more now than it wishes for."""
        demand_class = member.demand_class
        assert demand_class is not None, f"{member.name} is in the market and in no class"
        self._wished = add(subtract(self._wished, member.wish), wish)
        demand_class.revise(member, wish, multiples)
        if demand_class.low > demand_class.factor:
            self._is_settled = False

    def _note(self, member: Member, demand_class: DemandClass, before: float) -> None:
        self._is_settled = False
        if member.is_sated:
            self._sated = add(self._sated, member.wish)
        elif not self._is_free:
            self.tracker.shift(demand_class, demand_class.entitlement - before)

    def _describe(self, demand_class: DemandClass) -> None:
        demand_class.row = row = self.row(demand_class.direction)
        demand_class.total = sum(row)
        demand_class.gain = self.rule.gain(row)
        if not demand_class.total:
            # Only of resources the cluster has none of: no price would make anyone take less.
            demand_class.price((), self.rule)
            self._cross(demand_class, 0.0)

    def _settle(self, *, exactly: bool) -> bool:
        was_free, tracker = self._is_free, self.tracker
        self._is_free = all(self._wished[place] <= self._capacity[place] for place in self._places)
        if self._is_free:
            if not was_free:
                tracker.reset(len(self._places))
                tracker.price(self.classes.values())
            return not was_free
        if was_free:
            tracker.lose()
        elif self._is_settled and (self._is_exact or not exactly):
            return False
        self._find_prices(exactly=exactly)
        self._is_settled, self._is_exact = True, exactly
        return True

    def _find_prices(self, *, exactly: bool) -> None:
        """Turns of prices for those who are open and sides for everyone, until nobody changes sides."""
        tracker, slack = self.tracker, _TIGHT if exactly else _LOOSE
        for turn in range(3 * ROUNDS_MAX):
            room = self._room()
            if room is None:
                self._move_all_to_open()
                room = self._room()
                assert room is not None, "resources are short though nobody is sated"
            bring = tracker.sharpen if exactly else tracker.follow
            if not bring(self.classes.values(), room):
                tracker.start(self.classes.values(), room)
            crossing = self._crossing(slack)
            if not crossing:
                return
            # Late, one at a time: whole classes that keep changing sides together are on each other's edge.
            for demand_class in crossing if turn < ROUNDS_MAX else crossing[:1]:
                self._cross(demand_class, slack, 1 if turn >= ROUNDS_MAX else None)

    def _room(self) -> list[float] | None:
        """What the sated leave of each resource; None if they leave nothing of one that others want, or less than that."""
        room = []
        for index, place in enumerate(self._places):
            left = self._capacity[place] - self._sated[place]
            if left > 0:
                room.append(left / self._capacity[place])
            elif left == 0 and not any(c.row[index] and c.entitlement for c in self.classes.values()):
                room.append(
                    1.0
                )  # All of it is theirs and nobody misses it: any room does, since nobody takes any.
            else:
                return None
        return room

    def _crossing(self, slack: float) -> list[DemandClass]:
        """The classes of whom some members are on the wrong side by more than ``slack`` of the factor."""
        above, below = 1.0 + slack, 1.0 - slack
        return [
            demand_class
            for demand_class in self.classes.values()
            if demand_class.low > demand_class.factor * above
            or demand_class.high < demand_class.factor * below
        ]

    def _cross(self, demand_class: DemandClass, slack: float, count: int | None = None) -> None:
        before = demand_class.entitlement
        for member in demand_class.cross(slack, count):
            change = add if member.is_sated else subtract
            self._sated = change(self._sated, member.wish)
        self.tracker.shift(demand_class, demand_class.entitlement - before)

    def _move_all_to_open(self) -> None:
        self._sated = (0,) * len(self._capacity)
        for demand_class in self.classes.values():
            if demand_class.total:
                demand_class.open_all()
            else:
                for member in demand_class.members.values():
                    self._sated = add(self._sated, member.wish)
        self.tracker.lose()
