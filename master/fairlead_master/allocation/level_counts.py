"""What levels count for where they are ranked, under a policy that balances (``balance``): kept up to date fact by fact.

What an account counts for depends on the capacity in all of it: its share, its part, and which resources its classes claim.
So when an agent joins or leaves all are counted anew, level by level from below, in parts. Meanwhile the levels that had
their turn count on the new capacity and the others on the earlier one; facts may come, and nobody may be served.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead_master.allocation.accounts import Framework, Level
from fairlead_master.allocation.balance import Tally, dominant_places, part_of
from fairlead_master.allocation.level_books import (
    LevelBooks,
    from_below,
    level_above,
    path,
    ranked_above,
    tell_count,
)
from fairlead_master.allocation.shape import Shape
from fairlead_proto.resources import Vector, add

LEVEL_EFFORT: Final = 100
MEMBER_EFFORT: Final = 5
"""What it takes to count a level anew, and on top of that for each of its members, in looks at one column of an agent."""

CLAIMS_EFFORT: Final = 25
CLASS_EFFORT: Final = 5
"""The same of what a framework claims, and on top of that for each of its classes."""

Pin = tuple[Shape, Vector]
"""The shape of a unit, and what policies count for it."""


class LevelCounts:
    """Counts for the levels of a ranking."""

    def __init__(self, books: LevelBooks) -> None:
        self._books = books
        self.pins: dict[Level, Pin] = {}
        """Levels that count for what such a unit makes them count for. A level that makes one above it count for something else
        comes before that one."""
        self._aside: dict[Level, Pin] = {}
        """Pins at the end of the last cycle, in the same order, of levels below which nothing has changed since."""
        self._uncounted: dict[Framework, None] = {}
        """Frameworks that share a role and whose claims and parts are still those on an earlier capacity."""

    def count(self, framework: Framework, held: Tally) -> None:
        """The framework, which is not all there is to its role, holds so much more, or less."""
        framework.counted = add(framework.counted, held)
        change, part = held, part_of(framework.counted, self._books.equal_by)
        own = framework.role.own
        if own.policy is None:
            part = part_of(framework.counted, own.by)
        for name, level in ranked_above(framework):
            if any(change):
                tell_count(level, name, change)
            balance = level.balance
            if balance is not None:
                balance.held = add(balance.held, held)
                balance.set_part(name, part)
                change, part = self.count_again(level), part_of(balance.parts, level.by)

    def change_wanting(self, framework: Framework, unit: Vector, by: int) -> None:
        """The framework wants units of one class more, or fewer, of this unit."""
        if not self._books.balances or framework.role.only is not None:
            return
        if framework in self._uncounted:
            return  # Its claims are still those on an earlier capacity.
        toggled = []
        for place in dominant_places(unit, self._books.capacity):
            count = framework.claims.pop(place, 0) + by
            if count:
                framework.claims[place] = count
            if count == (by > 0):
                toggled.append(place)
        if framework.awake:
            self.claim(framework, toggled, by)

    def confirm(self, framework: Framework, shape: Shape) -> bool:
        """Whether the framework, which comes first, still does when all it is part of counts for a unit of ``shape``.

        If not, ask for the first again: every level then counts for what it must.
        """
        if framework.role.only is not None:
            return True
        pin = shape, framework.as_counted(shape.unit)
        for level in path(framework.role.own):
            if level.balance is not None and self.pins.get(level) != pin and self._pin(level, pin):
                return False
        return True

    def _pin(self, level: Level, pin: Pin) -> bool:
        """Let a level count for what such a unit makes it count for; whether that is something else than before."""
        self.pins[level] = pin
        change = self._books.count_again(level, dominant_places(pin[1], self._books.capacity))
        if not any(change):
            return False
        tell_count(level_above(level), level.name, change)
        self.settle(level_above(level))
        return True

    def set_pins_aside(self) -> None:
        """A cycle ends: no level is pinned until the next."""
        aside = dict(self.pins)
        self.unpin(None)
        self._aside = aside

    def pin_again(self) -> None:
        """The cycle is carried on: pin levels as they were, unless something changed below them.

        Otherwise those that count for more would come first once more, and look for agents earlier than in one cycle: while
        there is room that somebody else is to take first.
        """
        aside, self._aside = self._aside, {}
        for level, pin in aside.items():
            self._pin(level, pin)

    def unpin(self, shape: Shape | None) -> None:
        """A unit of this shape fits nowhere any more, so that no level is given one next; None for all shapes."""
        if self.pins:
            for level in [level for level, (pin, _) in self.pins.items() if shape in {None, pin}]:
                self.settle(level)

    def claim(self, framework: Framework, places: Iterable[int], by: int) -> None:
        """The framework claims more of these resources, or fewer, or takes part from now on, or rests."""
        if not self._books.balances or framework.role.only is not None:
            return
        for level in path(framework.role.own):
            if level.balance is not None:
                for place in places:
                    level.balance.claims[place] += by
        self.settle(framework.role.own)

    def count_again(self, level: Level) -> Tally:
        """Let a level count for the least it may; gives the change."""
        self.drop_pin(level)
        return self._books.count_again(level, None)

    def drop_pin(self, level: Level) -> None:
        """The level is not pinned, or not to be again."""
        self.pins.pop(level, None)
        self._aside.pop(level, None)

    def settle(self, level: Level) -> None:
        """The same for the level and all above it, which are told."""
        for each in path(level):
            change = self.count_again(each) if each.balance is not None else self._books.nothing
            if any(change):
                tell_count(level_above(each), each.name, change)

    def tell(self, level: Level, change: Tally) -> None:
        """The level counts for ``change`` more above, and its part may have changed."""
        if not self._books.balances:
            return
        above = level_above(level)
        if any(change):
            tell_count(above, level.name, change)
        if above.balance is not None:
            above.balance.set_part(level.name, self._books.part(level))
            self.tell(above, self.count_again(above))

    def note(self, level: Level) -> None:
        """Compute what is kept of the frameworks below a level that is ranked from now on."""
        for framework in level.frameworks():
            if framework not in self._uncounted:
                self._books.note(framework)

    def forget(self, framework: Framework) -> None:
        """The framework has left, or is all there is to its role, which counts for what it holds."""
        self._uncounted.pop(framework, None)

    def count_anew(self, topmost: Level) -> Iterator[int]:
        """Count all levels that are not one framework on the capacity there is now, each step when asked for the next.

        Gives what each step took.
        """
        levels = [
            level
            for level in from_below(topmost)
            if level.policy is not None
            or level.above is not topmost  # A role that is one framework counts for that.
        ]
        self._uncounted = {
            member: None
            for level in levels
            for member in level.members.values()
            if isinstance(member, Framework)
        }
        return self._count_anew(levels)

    def _count_anew(self, levels: list[Level]) -> Iterator[int]:
        books = self._books
        for level in levels:
            level.by = books.divisors(level.weight)
            if level.policy is not None:
                level.policy.set_capacity(books.capacity, books.slots)
            yield LEVEL_EFFORT + MEMBER_EFFORT * len(level.members)
            for member in list(level.members.values()):
                if isinstance(member, Framework) and member in self._uncounted:
                    del self._uncounted[member]
                    self._claim_anew(level, member)
                    yield CLAIMS_EFFORT + CLASS_EFFORT * len(member.demands)
            # Not if its last member left meanwhile, or its role has no roles below it any more.
            if level.above is not None and _stands(level):
                self.tell(level, self.count_again(level) if level.balance is not None else books.nothing)

    def check(self, topmost: Level) -> None:
        """Raise AssertionError unless all are counted on the capacity there is, and no unit is about to be given."""
        assert not self.pins, "a level is pinned between two cycles"
        assert not self._uncounted, (
            f"{len(self._uncounted)} frameworks are not counted on the capacity there is"
        )
        for framework in topmost.frameworks() if self._books.balances else ():
            claims = self._books.claims(framework)
            assert framework.role.only is not None or framework.claims == claims, (
                f"{framework.framework_id} claims {framework.claims}, and {claims} recomputed"
            )

    def _claim_anew(self, own: Level, framework: Framework) -> None:
        if own.balance is not None:
            own.balance.set_part(framework.framework_id, part_of(framework.counted, self._books.equal_by))
        before = framework.claims
        framework.claims = after = self._books.claims(framework)
        if framework.awake and before.keys() != after.keys():
            self.claim(framework, before.keys() - after.keys(), -1)
            self.claim(framework, after.keys() - before.keys(), 1)


def _stands(level: Level) -> bool:
    """Whether the level is still part of the tree."""
    return level.above is None or (level.above.members.get(level.name) is level and _stands(level.above))
