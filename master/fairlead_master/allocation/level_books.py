"""Levels of roles and frameworks: the ways through them, what each wishes for, and what follows from the books alone.

A policy that follows wishes takes an account to want its resources in the proportions of its wish. The wish of a group is the
sum of its members' wishes, but each counts only up to the whole cluster. More nobody can get; and a member with a
thousand tasks waiting, each for a GPU, would make the group one that wants nothing but GPUs, charge it the GPUs' price, and so
keep the CPUs from its other members. A member beyond that bound counts with the proportions it wishes for and no more, so
how much longer its queue grows moves no prices. A framework alone in its role is passed on as it is.

``LevelBooks`` makes policies and balances from what frameworks hold and want. It is used when the operator chooses another
policy, when a level comes into being, and to check the levels that were kept up to date one fact at a time.
"""

from collections.abc import Iterator
from typing import Final

from fairlead_master.allocation.accounts import Framework, Level, RoleAccount
from fairlead_master.allocation.api import MakePolicy, Policy
from fairlead_master.allocation.balance import (
    Balance,
    Places,
    Tally,
    dominant_places,
    part_of,
    tally_divisors,
)
from fairlead_master.allocation.divisors import Divisors, level_of
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import ResourceKinds, Vector, add, subtract, sum_vectors

EQUAL: Final = Weight()
"""Every framework counts the same within its role, and a role's own frameworks together as one role below it."""

Wish = tuple[Vector, int]
"""Amounts, and in how many units they come."""


def policy_of(level: Level) -> Policy:
    """The policy of a level that has one."""
    assert level.policy is not None, f"the members of {level.name} are not ranked"
    return level.policy


def level_above(level: Level) -> Level:
    """The level of which this one is an account; the topmost has none."""
    assert level.above is not None, "nothing is above the topmost level"
    return level.above


def level_below(account: RoleAccount) -> Level:
    """The level that ranks the roles below a role that has some."""
    assert account.below is not None, f"no role is below {account.role}"
    return account.below


def name_of(member: Level | Framework) -> str:
    """What the policy of its level knows a member by."""
    return member.name if isinstance(member, Level) else member.framework_id


def is_ranked(level: Level) -> bool:
    """Whether a level other than the topmost needs a ranking: a single framework does not."""
    return len(level.members) > 1 or any(isinstance(member, Level) for member in level.members.values())


def path(level: Level) -> Iterator[Level]:
    """The level and those above it but the topmost."""
    while level.above is not None:
        yield level
        level = level.above


def ranked_above(framework: Framework) -> Iterator[tuple[str, Level]]:
    """The levels that rank the framework or what it is part of, upwards, each with the name it is ranked by."""
    name: str = framework.framework_id
    level: Level | None = framework.role.own
    while level is not None:
        if level.policy is not None:
            yield name, level
        name, level = level.name, level.above


def from_below(level: Level) -> Iterator[Level]:
    """The level and all below it, each after those below it."""
    for member in level.members.values():
        if isinstance(member, Level):
            yield from from_below(member)
    yield level


def taken_apart(level: Level) -> Iterator[Framework]:
    """All frameworks below a level that is of no use any more; it is freed with them and not all at once."""
    for name in list(level.members):
        member = level.members.pop(name)
        if level.policy is not None:
            level.policy.remove(name)
        if isinstance(member, Level):
            yield from taken_apart(member)
        else:
            yield member


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


def tell_wish(member: Level | Framework, level: Level, before: Wish, capacity: Vector) -> None:
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


def tell_wish_anew(level: Level, capacity: Vector) -> None:
    """Who is a member, or the capacity, has changed: compute what the level passes on again."""
    before = (level.wish, level.wish_units)
    level.wish, level.wish_units = wish_of(level, capacity)
    if level.above is not None and before != (level.wish, level.wish_units):
        tell_wish(level, level.above, before, capacity)


class LevelBooks:
    """What is computed of levels and frameworks from nothing but the books."""

    def __init__(self, new_policy: MakePolicy, kinds: ResourceKinds) -> None:
        self.capacity = kinds.zero
        self.slots = 0
        self.now_ms = 0
        self._zero = kinds.zero
        self.nothing: Tally = (*kinds.zero, 0)
        self.new_policy = new_policy
        policy = new_policy()
        self._counts_units, self.balances = policy.counts_units, policy.balances
        self.equal_by = self._divisors(EQUAL)

    def set_capacity(self, capacity: Vector, slots: int) -> None:
        """The sums over active agents."""
        self.capacity, self.slots = capacity, slots
        self.equal_by = self._divisors(EQUAL)

    def divisors(self, weight: Weight) -> Divisors:
        """By what tallies of an account of this weight are divided."""
        if weight is EQUAL:
            return self.equal_by
        return self._divisors(weight)

    def _divisors(self, weight: Weight) -> Divisors:
        return tally_divisors(self.capacity, weight, counts_units=self._counts_units)

    def make(self, level: Level) -> Policy:
        """A new policy for the level, which knows no account yet."""
        policy = self.new_policy()
        if level.above is not None:
            policy.follow(policy_of(level.above))
        policy.set_capacity(self.capacity, self.slots)
        if policy.interval_ms is not None:
            policy.advance(self.now_ms)
        return policy

    def fill(self, level: Level, policy: Policy) -> Balance | None:
        """Tell a new policy of the members as they are in the books; gives what the level counts for if it balances."""
        for name, member in level.members.items():
            weight = member.weight if isinstance(member, Level) else EQUAL
            *charged, units = self.counted(member)
            policy.add(name, weight, tuple(charged), units)
            if policy.follows_wishes:
                policy.set_wish_units(name, member.wish_units)
                policy.set_wish(name, member.wish)
            if policy.follows_use:
                policy.observe(name, member.excess)
            if member.began:
                policy.begin_waiting(name, member.began)
        for name, member in level.members.items():
            if member.awake:
                policy.activate(name)
        if not policy.balances or level.above is None:
            return None
        balance = Balance(self.nothing)
        for name, member in level.members.items():
            balance.set_part(name, self.part(member))
        balance.held = self._held(level)
        for framework in level.frameworks():
            for place in framework.claims if framework.awake else ():
                balance.claims[place] += 1
        return balance

    def counted(self, member: "Level | Framework") -> Tally:
        """What its account in the level above is charged, by the books."""
        if isinstance(member, Level) and member.balance is not None:
            return member.balance.counted
        return self._held(member)

    def part(self, member: "Level | Framework") -> Tally:
        """Its part in the balance of its level, by the books."""
        if isinstance(member, Framework):
            return part_of(self._held(member), self.equal_by)
        held = self._held(member) if member.balance is None else member.balance.parts
        return part_of(held, member.by)

    def _held(self, member: "Level | Framework") -> Tally:
        frameworks = (member,) if isinstance(member, Framework) else member.frameworks()
        return sum_vectors(((*framework.ranked, framework.units) for framework in frameworks), self.nothing)

    def note(self, framework: Framework) -> None:
        """Compute what is kept of a framework only below a level that balances."""
        framework.counted = (*framework.ranked, framework.units)
        framework.claims = self.claims(framework) if self.balances else {}

    def claims(self, framework: Framework) -> dict[int, int]:
        """Of how many classes that it wants units of each resource is dominant."""
        claims: dict[int, int] = {}
        for demand in framework.demands.values():
            if demand.wants:
                for place in dominant_places(framework.as_counted(demand.shape.unit), self.capacity):
                    claims[place] = claims.get(place, 0) + 1
        return claims

    def count_again(self, level: Level, pinned: Places | None) -> Tally:
        """Compute what a level counts for if a unit of these dominant resources is given next; gives the change.

        None while that unit is not known.
        """
        balance, policy = level.balance, policy_of(level)
        assert balance is not None, f"{level.name} does not balance"
        name = policy.first()
        if name is None:
            return balance.set_counted(balance.held)
        member = level.members[name]
        if len(level.members) == 1:
            return balance.set_counted(counted_by(member))
        by = member.by if isinstance(member, Level) else self.equal_by
        return balance.recount(pinned, level_of(counted_by(member), by))

    def check(self, level: Level, kept: Policy) -> None:
        """Raise AssertionError unless keys and balance are those of a level made afresh."""
        fresh = self.make(level)
        balance = self.fill(level, fresh)
        fresh.agree_with(kept)
        # Who does not wait keeps the number that it had in the queue, which the books do not know.
        waiting = [name for name, member in level.members.items() if member.began or kept.name != "fifo"]
        for name in waiting:
            assert kept.key(name) == fresh.key(name), (
                f"{name}: key {kept.key(name)} kept, {fresh.key(name)} recomputed"
            )
        assert sorted(waiting, key=kept.key) == sorted(waiting, key=fresh.key), (
            "order kept and recomputed differ"
        )
        if level.balance is None or balance is None:
            assert level.balance is balance, f"{level.name}: balanced for nothing, or not balanced"
            return
        counted = level.balance.counted
        self.count_again(level, None)
        assert counted == level.balance.counted, (
            f"{level.name}: {counted} counted, not {level.balance.counted}"
        )
        for what in ("held", "parts", "claims"):
            mine, other = getattr(level.balance, what), getattr(balance, what)
            assert mine == other, f"{level.name}: {what} {mine} kept, {other} recomputed"


def counted_by(member: "Level | Framework") -> Tally:
    """What a member of a level that balances counts for, up to date within a cycle too."""
    while isinstance(member, Level):
        if member.balance is not None:
            return member.balance.counted
        (member,) = member.members.values()
    return member.counted


def check_sums(level: Level, topmost: Level, capacity: Vector) -> None:
    """Raise AssertionError unless a level's counts and sums are those of its members."""
    policy = policy_of(topmost)
    members = level.members.values()
    assert level.awake_count == sum(m.awake for m in members), f"{level.name}: awake miscounted"
    is_single = level is not topmost and not is_ranked(level)
    assert (level.policy is None) == is_single, f"{level.name}: ranked for nothing, or not ranked"
    if policy.follows_wishes and level is not topmost:
        kept, wish = (level.wish, level.wish_units), wish_of(level, capacity)
        assert kept == wish, f"{level.name}: wish {kept} kept, {wish} recomputed"
    if policy.follows_use and level is not topmost:
        excess = sum_vectors((m.excess for m in members), (0,) * len(capacity))
        assert level.excess == excess, f"{level.name}: excess {level.excess} kept, {excess} recomputed"


def tell_count(level: Level, name: str, change: Tally) -> None:
    """Tell a level that one of its members counts for so much more."""
    *amounts, units = change
    policy_of(level).recount(name, tuple(amounts), units)
