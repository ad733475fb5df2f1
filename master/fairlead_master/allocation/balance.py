"""What a group of accounts counts for where it is ranked among other groups: its level, not its largest column.

A group is a role with several frameworks, or with roles below it. Adding up what its members hold and taking the largest
share punishes complementary members for one another: let ``a`` want CPUs and ``b`` GPUs, and let nobody else want GPUs.
``b`` ends up with all of them, the group's largest share is 1, and every CPU that comes free goes to another group, until
``a`` has none. Bhattacharya et al., "Hierarchical Scheduling for Diverse Datacenter Workloads", section 3, describe this.

    part_m    = what member m would hold at level 1:  held_m / max over j of  held_mj / (C_j w_mj)
    level     = max(level of the member that is next, min over claimed j of  held_j / sum over m of part_mj)
    counted_j = min(held_j, level * sum over m of part_mj)

``held`` is what the group holds; of a member that is a group itself, the sum of its parts stands for ``held_m`` in the first
line. If all members were at one level, the group would hold that level times the sum of the parts, of every resource; so
held over parts is the level it has reached on a resource. *Claimed* is the dominant resource of the very unit the group
would be given next, and the member that would get it pays for all that it counts for itself (its own dominant share over its
weight). What the group holds beyond that level on other resources is left over from somebody: it does not count.

Consequences. Where all members use resources in the same proportions a group counts for exactly what it holds, however many
members it has and however unevenly they were served. And what others in its group hold elsewhere never keeps a member
from its dominant resource j: the group counts for at most its share of j times (sum of weights / weight of the member),
so it is served again before it has less of j than the member is due.

How we leave the paper: it takes as level the smallest key among members that are not blocked. Then a member that just
came and holds nothing makes its group count for nothing, and a role whose users submit one small framework after the
other takes the cluster. By resource, a newcomer weighs what it adds. ADR 0014 has the alternatives.

Where keys count units (``max-min``) the level of a member is its units over its weight, and everything else the same. So all
of this is kept as tallies: amounts by place in the vector, and the number of units behind them.

Integers throughout, so that the order of changes leaves no trace and equal levels are equal: parts are kept in 2^-20 of a
resource's unit.
"""

from collections.abc import Sequence
from math import inf
from typing import Final

from fairlead_master.allocation.divisors import Divisors, divisors, level_of
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector, add, subtract

PART_SCALE: Final = 2**20
"""Parts are whole numbers of this fraction of a unit: a thousandth of a core is kept to six more digits."""

Tally = Vector
"""Amounts by place in the vector, then the number of units."""

Places = tuple[int, ...]
"""Places in the vector, ascending."""

Quotient = tuple[int, int]
"""A level as numerator and denominator."""


class Balance:
    """The members of one group, what they hold together, and what the group counts for."""

    __slots__ = ("_part_of", "claims", "counted", "held", "parts")

    def __init__(self, zero: Tally) -> None:
        self._part_of: dict[str, Tally] = {}
        self.held = zero
        self.parts = zero
        """The sum of the members' parts."""
        self.claims = [0] * len(zero)
        """By place in the vector: how many frameworks below take part and want a unit of which it is dominant. While the unit
        to be given next is not known, all of these count as claimed: that gives the least the group may count for."""
        self.counted = zero
        """As of the last ``recount``."""

    def set_part(self, member: str, part: Tally) -> None:
        """The member's part from now on; zero to forget it."""
        before = self._part_of.pop(member, None)
        if before is not None:
            self.parts = subtract(self.parts, before)
        if any(part):
            self._part_of[member] = part
            self.parts = add(self.parts, part)

    def recount(self, pinned: Places | None, least: Quotient) -> Tally:
        """Compute ``counted`` again, for a unit of these dominant resources; gives by how much it changed.

        ``least`` is the level of the member that would get it.
        """
        claimed = [place for place, count in enumerate(self.claims) if count] if pinned is None else pinned
        return self.set_counted(level_off(self.held, self.parts, claimed, least))

    def set_counted(self, counted: Tally) -> Tally:
        """What the group counts for, if it is known otherwise; gives by how much it changed."""
        before, self.counted = self.counted, counted
        return subtract(counted, before)


def tally_divisors(capacity: Vector, weight: Weight, *, counts_units: bool) -> Divisors:
    """By what the numbers of a tally are divided: the largest quotient is the level of an account that holds it."""
    if counts_units:
        units, grains = weight.ratio_of_all
        return Divisors((*[inf] * len(capacity), units), grains)
    by, grains = divisors(capacity, weight)
    return Divisors((*by, inf), grains)


def part_of(held: Tally, by: Divisors) -> Tally:
    """What an account that holds ``held`` would hold at level 1, in ``PART_SCALE`` of a unit; zero if it has no share.

    ``by`` is what ``tally_divisors`` gives for its weight.
    """
    over, under = level_of(held, by)
    if not over:
        return (0,) * len(held)
    under *= PART_SCALE
    return tuple([amount * under // over for amount in held])


def level_off(held: Tally, parts: Tally, claimed: Sequence[int], least: Quotient) -> Tally:
    """What a group counts for; all that it holds if nothing is claimed. See the module's docstring."""
    over, under = -1, 0
    for place in claimed:
        # Cross-multiplied, so that levels are compared exactly. Where nobody has a part yet the level is zero.
        have, part = held[place], parts[place] or 1
        if over < 0 or have * under < over * part:
            over, under = have, part
    if over < 0:
        return held
    least_over, least_under = least[0], least[1] * PART_SCALE
    if over * least_under < least_over * under:
        # To the nearest, since parts are rounded down.
        return tuple(
            [
                min(have, (2 * least_over * part + least_under) // (2 * least_under))
                for have, part in zip(held, parts, strict=True)
            ]
        )
    return tuple([min(have, over * part // under) for have, part in zip(held, parts, strict=True)])


def dominant_places(unit: Vector, capacity: Vector) -> Places:
    """Where ``unit`` is the largest part of ``capacity``: several places on a tie; none without capacity."""
    # In one pass, since it is asked for every class of a group whenever an agent joins or leaves.
    largest = 0.0
    places: Places = ()
    for place, amount in enumerate(unit):
        total = capacity[place]
        if amount > 0 < total:
            share = amount / total
            if share > largest:
                largest, places = share, (place,)
            elif share == largest:
                places = (*places, place)
    return places
