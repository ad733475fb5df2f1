"""Ranks frameworks level by level: the roles at the top, the roles below one, at last the frameworks of one.

Every level has a policy object of its own, and each level but the topmost is an account of the level above. A unit that
is charged to a framework is told to each level on the way up, O(depth log n), and the way down to who is next asks each
for its first. Frameworks of a role that has roles below it are one account among those, together, of weight 1: who moves
work into sub-roles need not move all of it at once, and a hundred small frameworks do not crowd out the sub-roles.

A role that is one framework, with no role above or below it, is an account of the topmost level and needs nothing else.
Most are like that, so they have a short way of their own through the calls that a decision consists of.

Under a policy that balances, a level counts above for what ``balance`` says, which depends on the unit it would be given
next. To find that for every level at all times would cost a search of each at every change. So a level counts for the
least it may until it comes first; then ``confirm`` *pins* it to the unit at hand. If that makes its key grow, it may not
be first any more, and the next iteration ranks it again. The order is the same as if all had been known.
"""

from collections.abc import Callable, Iterator
from typing import Final

from fairlead_master.allocation.accounts import Framework, Level, RoleAccount
from fairlead_master.allocation.api import MakePolicy, Policy
from fairlead_master.allocation.level_books import (
    EQUAL,
    LevelBooks,
    check_sums,
    from_below,
    is_ranked,
    level_above,
    level_below,
    path,
    policy_of,
    ranked_above,
    tell_wish,
    tell_wish_anew,
)
from fairlead_master.allocation.level_counts import LevelCounts
from fairlead_proto.resources import ResourceKinds, Vector, add, scale, subtract

OWN: Final = "/."
"""Added to the name of a role that has roles below it, it names its own frameworks. No role can be called so."""


class LevelRanking:
    """The levels of all roles, and who is next."""

    def __init__(
        self, new_policy: MakePolicy, kinds: ResourceKinds, capacity: Vector, slots: int, now_ms: int = 0
    ) -> None:
        """Knows nobody yet; ``capacity`` and ``slots`` are the sums over active agents."""
        self._zero = kinds.zero
        self._books = LevelBooks(new_policy, kinds)
        self._books.set_capacity(capacity, slots)
        self._books.now_ms = now_ms
        self._known: dict[RoleAccount, None] = {}
        self._plain: dict[str, Framework] = {}
        """Roles that are one framework and nothing else."""
        self._counts = LevelCounts(self._books)
        self.confirm, self.unpin = self._counts.confirm, self._counts.unpin
        self.set_pins_aside, self.pin_again = self._counts.set_pins_aside, self._counts.pin_again
        self.change_wanting = self._counts.change_wanting
        self.topmost = Level("", EQUAL, self._zero, self._zero)
        self._ranked: dict[Level, None] = {self.topmost: None}
        """Levels with a policy. The topmost comes first, and each level before those made below it later."""
        self._adopt(self._books.make(self.topmost))

    def _adopt(self, policy: Policy) -> None:
        self.topmost.policy = self.policy = policy

    @property
    def balances(self) -> bool:
        """Whether who comes first is to be confirmed with the unit it would be given."""
        return self._books.balances

    # --- what is ranked -----------------------------------------------------------------------------------------

    def set_capacity(self, capacity: Vector, slots: int) -> Iterator[int]:
        """The sums over active agents. What levels count for follows in the steps this gives, each with what it took."""
        self._books.set_capacity(capacity, slots)
        if self.balances and len(self._plain) < len(self.topmost.members):
            return self._counts.count_anew(self.topmost)
        for level in self._ranked:
            policy_of(level).set_capacity(capacity, slots)
        if len(self._plain) < len(self.topmost.members):
            for level in from_below(self.topmost):
                self._tell_wish(level)
        return iter(())

    def _enter(self, account: RoleAccount) -> None:
        """Its first framework comes, or that of a role below it."""
        if account in self._known:
            return
        self._known[account] = None
        parent = account.parent
        above = self.topmost
        if parent is not None:
            self._enter(parent)
            if parent.below is None:
                self._split(parent)
            above = level_below(parent)
        account.below = account.only = None
        account.own = Level(account.role, account.weight, self._zero, self._zero, role=account, above=above)
        self._insert(account.own, above)

    def remove_role(self, account: RoleAccount) -> None:
        """Forget a role without frameworks and without roles below it, if it is known."""
        if account not in self._known:
            return
        del self._known[account]
        self._take_out(account.own)
        parent = account.parent
        if parent is not None and level_below(parent).members.keys() <= {parent.own.name}:
            self._merge(parent)

    def add_framework(self, framework: Framework) -> None:
        """A framework in its role, asleep. It holds nothing that is counted yet; it may want something."""
        account = framework.role
        self._enter(account)
        own = account.own
        if account.below is not None and own.name not in account.below.members:
            self._insert(own, account.below)
        own.members[framework.framework_id] = framework
        self._books.note(framework)
        if own.policy is not None:
            own.policy.add(framework.framework_id, EQUAL, self._zero, 0)
        elif len(own.members) > 1:
            self._rank_again(own)
        self._note_plain(account)

    def remove_framework(self, framework: Framework) -> None:
        """Forget a framework that is asleep, holds and wants nothing."""
        account = framework.role
        own = account.own
        self._counts.forget(framework)
        if self.policy.follows_use and any(framework.excess):
            self.observe(framework, scale(framework.excess, -1))
        del own.members[framework.framework_id]
        if own.balance is not None:
            own.balance.set_part(framework.framework_id, self._books.nothing)
        if own.policy is not None:
            own.policy.remove(framework.framework_id)
            if len(own.members) == 1:
                self._rank_again(own)
        self._note_plain(account)

    def drop_own(self, account: RoleAccount) -> None:
        """A role with roles below it may have lost its last own framework: these are no account any more then."""
        below = account.below if account in self._known else None
        if below is not None and not account.frameworks and account.own.name in below.members:
            self._take_out(account.own)

    def set_weight(self, account: RoleAccount) -> None:
        """The account's weight has changed."""
        if account not in self._known:
            return
        level = account.top
        level.weight, level.by = account.weight, self._books.divisors(account.weight)
        policy_of(level_above(level)).set_weight(level.name, account.weight)
        self._counts.tell(level, self._books.nothing)

    # --- what happens -------------------------------------------------------------------------------------------

    def serve(self, framework: Framework, unit: Vector) -> tuple[float, float]:
        """The framework gets one unit; gives its role's key before and after."""
        role = framework.role
        if role.only is not None:
            return self.policy.charge(role.role, unit, 1)
        top = role.top
        policy = policy_of(level_above(top))
        before = policy.key(top.name)
        self.count(framework, unit, 1)
        return before, policy.key(top.name)

    def count(self, framework: Framework, unit: Vector, units: int) -> None:
        """The framework holds ``units`` more of ``unit``, or fewer.

        Everything policies are charged passes here or in ``serve``. Nobody asks for keys: a policy whose keys follow prices
        would have to find them anew for each task that ends.
        """
        if framework.role.only is None and self.balances:
            self._counts.count(framework, (*scale(unit, units), units))
            return
        for name, level in ranked_above(framework):
            if units >= 0:
                policy_of(level).charge(name, unit, units)
            else:
                policy_of(level).release(name, unit, -units)

    def recount(self, framework: Framework, change: Vector, units: int) -> None:
        """What the framework holds counts for ``change`` in ``units`` units more from now on."""
        if not units and not any(change):
            return
        if framework.role.only is None and self.balances:
            self._counts.count(framework, (*change, units))
            return
        for name, level in ranked_above(framework):
            policy_of(level).recount(name, change, units)

    def change_wish(self, framework: Framework, change: Vector, units: int) -> None:
        """The framework holds and wants ``change`` more in all, in ``units`` units more."""
        before = (framework.wish, framework.wish_units)
        framework.wish = add(framework.wish, change)
        framework.wish_units += units
        tell_wish(framework, framework.role.own, before, self._books.capacity)

    def observe(self, framework: Framework, change: Vector) -> None:
        """The framework's tasks use ``change`` more than when they were measured before."""
        own = framework.role.own
        if own.policy is not None:
            own.policy.observe(framework.framework_id, framework.excess)
        for level in path(own):
            level.excess = add(level.excess, change)
            policy_of(level_above(level)).observe(level.name, level.excess)

    def _tell_wish(self, level: Level) -> None:
        """Members of the level came or went, so that it may pass on another wish."""
        if self.policy.follows_wishes:
            tell_wish_anew(level, self._books.capacity)

    def advance(self, now_ms: int) -> None:
        """It is ``now_ms``."""
        self._books.now_ms = now_ms
        for level in self._ranked:
            policy_of(level).advance(now_ms)

    def begin_waiting(self, framework: Framework) -> None:
        """The framework wants something; its number in the queue is ``framework.began``."""
        own = framework.role.own
        if own.policy is not None:
            own.policy.begin_waiting(framework.framework_id, framework.began)
        # What it is part of may have begun before, and with one that nothing was told of.
        for level in path(own):
            above = level_above(level)
            if above.policy is not None:
                above.policy.begin_waiting(level.name, level.began)

    def wake(self, framework: Framework) -> None:
        """The framework takes part."""
        framework.awake = True
        name: str = framework.framework_id
        for level in (*path(framework.role.own), self.topmost):
            if level.policy is not None:
                level.policy.activate(name)
            level.awake_count += 1
            if level.awake_count > 1:
                break
            name = level.name
        self._counts.claim(framework, framework.claims, 1)

    def sleep(self, framework: Framework) -> None:
        """The framework does not take part for now."""
        framework.awake = False
        name: str = framework.framework_id
        for level in (*path(framework.role.own), self.topmost):
            if level.policy is not None:
                level.policy.deactivate(name)
            level.awake_count -= 1
            if level.awake_count:
                break
            name = level.name
        self._counts.claim(framework, framework.claims, -1)

    # --- who is next --------------------------------------------------------------------------------------------

    def first(self) -> Framework | None:
        """The framework to be served next; None if none is awake. Under a policy that balances: to be confirmed."""
        name = self.policy.first()
        if name is None:
            return None
        framework = self._plain.get(name)
        if framework is not None:
            return framework
        member = self.topmost.members[name]
        while isinstance(member, Level):
            if member.policy is None:
                (member,) = member.members.values()
                continue
            name = member.policy.first()
            assert name is not None, f"{member.name} is awake and none of its members is"
            member = member.members[name]
        return member

    def key(self, account: RoleAccount) -> float:
        """The role's key now, at its level."""
        return policy_of(level_above(account.top)).key(account.top.name)

    def in_order(self, level: Level | None = None) -> Iterator[Level]:
        """The levels that rank frameworks, in the order in which they come first, whether or not they want anything."""
        level = level or self.topmost
        policy = policy_of(level)
        for name in sorted(level.members, key=policy.key):
            member = level.members[name]
            if isinstance(member, Level) and any(
                isinstance(below, Level) for below in member.members.values()
            ):
                yield from self.in_order(member)
            elif isinstance(member, Level):
                yield member

    def behind(self) -> Callable[[Framework], bool]:
        """Tells of frameworks whether somebody beside them, or beside a level they are in, has a larger key now."""
        largest: dict[Level, float] = {}

        def is_behind(framework: Framework) -> bool:
            level: Level | None = framework.role.own
            name: str = framework.framework_id
            while level is not None:
                policy = level.policy
                if policy is not None:
                    if level not in largest:
                        largest[level] = max(map(policy.key, level.members))
                    if policy.key(name) < largest[level]:
                        return True
                name, level = level.name, level.above
            return False

        return is_behind

    def check(self) -> None:
        """Raise AssertionError unless counts and keys are those of levels made afresh from the books, ties included.

        Of a policy that remembers the books do not know all, so its keys are not compared.
        """
        self._counts.check(self.topmost)
        for level in from_below(self.topmost):
            check_sums(level, self.topmost, self._books.capacity)
            assert (level in self._ranked) == (level.policy is not None), (
                f"{level.name}: told of time, or not"
            )
            if level.policy is not None and not self.policy.remembers:
                self._books.check(level, level.policy)

    # --- the tree -----------------------------------------------------------------------------------------------

    def _split(self, account: RoleAccount) -> None:
        """The first role below this one comes: a level of its own for those, in which its frameworks stand as one."""
        own, counted = account.own, self._books.counted(account.own)
        above = level_above(own)
        by = self._books.divisors(own.weight)
        below = Level(own.name, own.weight, own.wish, own.excess, own.wish_units, account, above=above, by=by)
        above.members[below.name] = account.below = below
        own.name, own.weight, own.above = account.role + OWN, EQUAL, below
        own.by = self._books.equal_by
        if own.members:
            below.members[own.name] = own
            below.awake_count = int(own.awake)
        self._note_plain(account)
        self._rank(below)
        self._counts.tell(below, subtract(self._books.counted(below), counted))
        self._tell_wish(below)

    def _merge(self, account: RoleAccount) -> None:
        """The last role below this one has left: its frameworks stand for it as before."""
        own, below = account.own, level_below(account)
        above, counted = level_above(below), self._books.counted(below)
        own.name, own.weight, own.by, own.above = below.name, below.weight, below.by, above
        above.members[own.name] = own
        account.below = None
        self._counts.drop_pin(below)
        self._ranked.pop(below, None)
        self._note_plain(account)
        self._counts.tell(own, subtract(self._books.counted(own), counted))
        if self.policy.follows_wishes:
            tell_wish(own, above, (below.wish, below.wish_units), self._books.capacity)

    def _note_plain(self, account: RoleAccount) -> None:
        account.only = None
        if len(account.own.members) == 1 and account.below is None and account.parent is None:
            (account.only,) = account.own.frameworks()
            self._plain[account.role] = account.only
            self._counts.forget(account.only)
        else:
            self._plain.pop(account.role, None)

    def _insert(self, level: Level, above: Level) -> None:
        above.members[level.name] = level
        level.by = self._books.divisors(level.weight)
        policy_of(above).add(level.name, level.weight, self._zero, 0)
        if level.began:
            policy_of(above).begin_waiting(level.name, level.began)
        if self.balances:
            self._counts.settle(above)

    def _take_out(self, level: Level) -> None:
        above = level_above(level)
        del above.members[level.name]
        policy_of(above).remove(level.name)
        if above.balance is not None:
            above.balance.set_part(level.name, self._books.nothing)
            self._counts.settle(above)

    def _rank_again(self, level: Level) -> None:
        """The level got its second framework, or lost its last but one."""
        counted = self._books.counted(level)
        self._counts.drop_pin(level)
        if is_ranked(level):
            self._rank(level)
        else:
            level.policy = level.balance = None
            self._ranked.pop(level, None)
        self._counts.tell(level, subtract(self._books.counted(level), counted))
        self._tell_wish(level)

    def _rank(self, level: Level) -> None:
        self._counts.note(level)
        level.policy = self._books.make(level)
        self._ranked[level] = None
        self._fill_kept(level)

    def _fill_kept(self, level: Level) -> None:
        level.balance = self._books.fill(level, policy_of(level))
        if level.balance is not None:
            self._counts.count_again(level)
