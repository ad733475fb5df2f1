"""What a level is told its members wish for, and what it passes on to the level above as the wish of them all.

A policy that follows wishes takes an account to want its resources in the proportions of its wish. The wish of a group is the
sum of its members' wishes, but each counts only up to the whole cluster. More nobody can get; and a member with a
thousand tasks waiting, each for a GPU, would make the group one that wants nothing but GPUs, charge it the GPUs' price, and so
keep the CPUs from its other members.

A member beyond that bound counts with the proportions it wishes for and no more, so how much longer its queue grows
moves no prices. A framework alone in its role is passed on as it is.
"""

from fairlead_master.allocation.accounts import Framework, Level
from fairlead_master.allocation.level_paths import is_ranked, name_of, policy_of
from fairlead_proto.resources import Vector, add, subtract, sum_vectors

Wish = tuple[Vector, int]
"""Amounts, and in how many units they come."""


def up_to_the_cluster(wish: Wish, capacity: Vector) -> Wish:
    """The wish, made smaller in proportion until no resource is wished for beyond ``capacity``.

    Resources of which there are none bound nothing. Integers throughout: wishes in the same proportions come to the same.
    """
    amounts, units = wish
    bound, most = 1, 0
    for amount, total in zip(amounts, capacity, strict=True):
        if total > 0 and amount * bound > most * total:
            bound, most = total, amount
    if most <= bound:
        return wish
    return tuple([amount * bound // most for amount in amounts]), max(1, units * bound // most)


def wish_of(level: Level, capacity: Vector) -> Wish:
    """What the level passes on, computed from its members."""
    wishes = [(member.wish, member.wish_units) for member in level.members.values()]
    if is_ranked(level):
        wishes = [up_to_the_cluster(wish, capacity) for wish in wishes]
    zero = (0,) * len(capacity)
    return sum_vectors((amounts for amounts, _ in wishes), zero), sum(units for _, units in wishes)


def tell(member: Level | Framework, level: Level, before: Wish, capacity: Vector) -> None:
    """The wish of a member of ``level`` has changed from ``before``: tell all who rank it, upwards, as far as it matters.

    A step at each level, however many members there are.
    """
    above: Level | None = level
    while above is not None:
        after = (member.wish, member.wish_units)
        if above.policy is not None:
            policy = policy_of(above)
            policy.set_wish_units(name_of(member), after[1])
            policy.set_wish(name_of(member), after[0])
        if above.above is None:
            return
        if is_ranked(above):
            before, after = up_to_the_cluster(before, capacity), up_to_the_cluster(after, capacity)
        if before == after:
            return
        passed_on = (above.wish, above.wish_units)
        above.wish = add(above.wish, subtract(after[0], before[0]))
        above.wish_units += after[1] - before[1]
        member, above, before = above, above.above, passed_on


def tell_anew(level: Level, capacity: Vector) -> None:
    """Who is a member, or the capacity, has changed: compute what the level passes on again."""
    before = (level.wish, level.wish_units)
    level.wish, level.wish_units = wish_of(level, capacity)
    if level.above is not None and before != (level.wish, level.wish_units):
        tell(level, level.above, before, capacity)
