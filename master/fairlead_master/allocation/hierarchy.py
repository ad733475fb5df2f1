"""The tree of roles and the frameworks in them, with what they are charged, ranked level by level.

A role is a path such as ``eng/ml``: it stands below ``eng``, which is there as long as a framework is anywhere below it.
Keeps the ranking (``levels``) told of everything it must know, and each fact once: the books are what frameworks hold
and want, the ranking can be made from them at any time, and is when the operator chooses another policy.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from fairlead_master.allocation.accounts import Framework, RoleAccount, note_waiting
from fairlead_master.allocation.api import AllocationError, MakePolicy, Prices
from fairlead_master.allocation.level_books import EQUAL, taken_apart
from fairlead_master.allocation.levels import OWN, LevelRanking
from fairlead_master.allocation.measured import FINENESS, Factors, excess, taken_at_its_word
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector, add, scale, subtract

WEIGHTS_MAX: Final = 10_000
"""Weights kept, roles without frameworks included. Operators set them by hand or from a file; more is a runaway script."""


RANK_EFFORT: Final = 150
CLASS_EFFORT: Final = 10
"""What it takes to rank a framework, and on top of that for each of its classes, in looks at one column of an agent."""


class Hierarchy:
    """Roles and frameworks with their charges, ranked by a policy."""

    def __init__(self, new_policy: MakePolicy, demand: str, kinds: ResourceKinds) -> None:
        self.roles: dict[Role, RoleAccount] = {}
        """Roles with frameworks and those above them."""
        self.frameworks: dict[FrameworkId, Framework] = {}
        self.weights: dict[Role, Weight] = {}
        self._new_policy = new_policy
        self._demand = demand
        self._zero = kinds.zero
        self._capacity = kinds.zero
        self._slots = 0
        self._begun = 0
        self._now_ms = 0
        self._kinds = kinds
        self._number = 0
        """Of the ranking, which frameworks that it knows have noted."""
        self._unranked: deque[Iterator[Framework]] = deque()
        """Those that an earlier ranking knew, in its order. Some have left or are ranked again."""
        self._newcomers: dict[FrameworkId, Framework] = {}
        """Those that came meanwhile."""
        self.is_ranking = False
        """Whether frameworks are being ranked anew. Until all are nobody is first and nobody has a key."""
        self._begin_ranking(LevelRanking(new_policy, kinds, self._capacity, self._slots))

    def _begin_ranking(self, ranking: LevelRanking) -> None:
        self._ranking = ranking
        self._number += 1
        self.counts_estimates = self._may_count_estimates()
        """Whether the policy counts what frameworks are estimated to use of what they declare (``measured``)."""
        # Handed on as they are: a call between costs a twentieth of a decision.
        self.first = ranking.first
        self.serve = self._server()
        self.confirm = ranking.confirm
        self.unpin, self.pin_again = ranking.unpin, ranking.pin_again
        self.set_pins_aside = ranking.set_pins_aside

    @property
    def follows_wishes(self) -> bool:
        """Whether the policy is told what frameworks hold and want together."""
        return self._ranking.policy.follows_wishes

    @property
    def interval_ms(self) -> int | None:
        """How often the policy looks at its keys again because time passes; None: never."""
        return self._ranking.policy.interval_ms

    @property
    def must_confirm(self) -> bool:
        """Whether who comes first is to be confirmed with the unit it would be given."""
        return self._ranking.balances

    def set_policy(self, new_policy: MakePolicy, demand: str) -> None:
        """Rank by other settings from now on: nobody is ranked, and nobody awake, until ``rank_anew`` has come to its end.

        All that frameworks hold and want stays, and facts may come meanwhile.
        """
        self._new_policy, self._demand = new_policy, demand
        self.counts_estimates = self._may_count_estimates()
        self._unranked.appendleft(taken_apart(self._ranking.topmost))
        self.is_ranking = True
        self._begin_ranking(
            LevelRanking(new_policy, self._kinds, self._counted_capacity, self._slots, self._now_ms)
        )

    def rank_anew(self) -> Iterator[int]:
        """Rank all whom the ranking does not know, in the order in which an earlier one did; gives for each what it took.

        Equal keys go to whoever came first, be it that ranked anew or not. A second ranking that is begun meanwhile, and
        whoever comes and leaves, changes nothing about that.
        """
        while self._unranked or self._newcomers:
            if not self._unranked:
                self._unranked.append(iter(self._newcomers.values()))
                self._newcomers = {}
            framework = next(self._unranked[0], None)
            if framework is None:
                self._unranked.popleft()
            elif self.frameworks.get(framework.framework_id) is framework and not self._knows(framework):
                self._rank(framework)
                yield RANK_EFFORT + CLASS_EFFORT * len(framework.demands)
        self.is_ranking = False
        if self.interval_ms is not None:
            self._ranking.advance(self._now_ms)

    def set_capacity(self, capacity: Vector, slots: int) -> Iterator[int]:
        """The sums over active agents. Shares are counted on them in the steps this gives, each with what it took."""
        self._capacity, self._slots = capacity, slots
        return self._ranking.set_capacity(self._counted_capacity, slots)

    def recount(self, framework: Framework) -> None:
        """What is known of the framework's use has changed."""
        if not self.counts_estimates or not self._knows(framework):
            return
        wanted = [demand.shape.unit for demand in framework.demands.values() if demand.wants]
        for unit in wanted:
            self.change_wanting(framework, unit, -1)
        before, wish = framework.ranked, framework.wish
        framework.factors = self._factors(framework)
        self._ranking.recount(framework, subtract(framework.ranked, before), 0)
        if self.follows_wishes:
            self._ranking.change_wish(framework, subtract(framework.wish_from_books(), wish), 0)
        for unit in wanted:
            self.change_wanting(framework, unit, 1)

    def add_framework(self, framework_id: FrameworkId, role: Role) -> Framework:
        """A new framework that holds and wants nothing; its role, and those above it, come with their first one."""
        account = self._account(role)
        zero = self._zero
        framework = Framework(framework_id, role=account, charged=zero, wish=zero, excess=zero)
        self.frameworks[framework_id] = account.frameworks[framework_id] = framework
        if self.is_ranking:
            self._newcomers[framework_id] = framework
        else:
            self._rank(framework)
        return framework

    def _rank(self, framework: Framework) -> None:
        """Let the ranking know a framework with all that it holds and wants, asleep."""
        zero = self._zero
        framework.ranking = self._number
        framework.awake = False
        framework.factors = self._factors(framework)
        held, units = framework.charged, framework.units
        framework.charged, framework.units = zero, 0
        framework.wish, framework.wish_units, framework.excess = zero, 0, zero
        self._ranking.add_framework(framework)
        framework.charged, framework.units = held, units
        self._ranking.recount(framework, framework.ranked, units)
        if self.follows_wishes and (units or framework.targeted):
            self._ranking.change_wish(framework, framework.wish_from_books(), units + framework.pending)
        self._count_use(framework)
        if framework.began:
            self._ranking.begin_waiting(framework)

    def _knows(self, framework: Framework) -> bool:
        return framework.ranking == self._number

    def remove_framework(self, framework: Framework) -> None:
        """Forget a framework that holds and wants nothing; roles without frameworks go with it."""
        self.sleep(framework)
        self.set_waiting(framework, waiting=False)
        del self.frameworks[framework.framework_id], framework.role.frameworks[framework.framework_id]
        self._newcomers.pop(framework.framework_id, None)
        if self._knows(framework):
            self._ranking.remove_framework(framework)
        self._ranking.drop_own(framework.role)
        account: RoleAccount | None = framework.role
        while account is not None and not account.frameworks and not account.children:
            self._ranking.remove_role(account)
            del self.roles[account.role]
            if account.parent is not None:
                del account.parent.children[account.role]
            account = account.parent

    def set_weight(self, role: Role, weight: Weight) -> None:
        """The role's weight among those beside it from now on, whether or not it exists yet. The default need not be kept.

        Raises:
            AllocationError: too many roles have weights already.
        """
        if weight == EQUAL:
            self.weights.pop(role, None)
        elif role not in self.weights and len(self.weights) >= WEIGHTS_MAX:
            raise AllocationError(
                f"weights: expected at most {WEIGHTS_MAX} roles with one, got another for {role!r}"
            )
        else:
            self.weights[role] = weight
        account = self.roles.get(role)
        if account is not None:
            account.weight = weight
            self._ranking.set_weight(account)

    def charge(self, framework: Framework, vector: Vector) -> None:
        """The framework got one unit of ``vector``."""
        if self._knows(framework):
            self.serve(framework, vector)
        framework.charged = add(framework.charged, vector)
        framework.units += 1
        self.change_wish(framework, vector, 1)

    def release(self, framework: Framework, vector: Vector, units: int) -> None:
        """The framework gave back ``units`` of ``vector``."""
        if self._knows(framework):
            self._ranking.count(framework, framework.as_counted(vector), -units)
        framework.charged = subtract(framework.charged, vector if units == 1 else scale(vector, units))
        framework.units -= units
        assert framework.units >= 0 <= min(framework.charged), (
            f"{framework.framework_id} gave back more than it held"
        )
        self.change_wish(framework, vector, -units)

    def change_wish(self, framework: Framework, unit: Vector, units: int) -> None:
        """The framework holds or waits for ``units`` more, or fewer, of ``unit``. A grant changes neither sum."""
        if units and self._ranking.policy.follows_wishes and self._knows(framework):
            self._ranking.change_wish(framework, scale(framework.as_counted(unit), units), units)

    def change_wanting(self, framework: Framework, unit: Vector, by: int) -> None:
        """A cycle may grant the framework units of ``by`` classes more, or fewer, of this unit."""
        if framework.ranking == self._number:
            self._ranking.change_wanting(framework, framework.as_counted(unit), by)

    def advance(self, now_ms: int) -> None:
        """It is ``now_ms``. While all are ranked anew time stands still for those who are."""
        self._now_ms = now_ms
        if not self.is_ranking:
            self._ranking.advance(now_ms)

    def observe(self, framework: Framework, used: Vector, held: Vector) -> None:
        """Those of the framework's tasks that were measured use ``used`` and hold ``held``."""
        framework.measurement = used, held
        self._count_use(framework)

    def set_declared(self, framework: Framework, *, is_declared: bool) -> None:
        """Whether the framework says what its tasks need."""
        framework.is_declared = is_declared
        self._count_use(framework)

    def _count_use(self, framework: Framework) -> None:
        if not self._knows(framework):
            return
        before, framework.excess = framework.excess, self._find_excess(framework)
        if self._ranking.policy.follows_use and framework.excess != before:
            self._ranking.observe(framework, subtract(framework.excess, before))

    def _find_excess(self, framework: Framework) -> Vector:
        if framework.measurement is None or (framework.is_declared and self._demand == "declared"):
            return self._zero
        return excess(*framework.measurement)

    def prices(self) -> Prices | None:
        """What resources cost roles under the policy; None if it has no prices."""
        return None if self.is_ranking else self._ranking.policy.prices()

    def find_bottlenecks(self) -> tuple[int, ...] | None:
        """Places of the resources that are contended now; None if the policy does not look for such."""
        return None if self.is_ranking else self._ranking.policy.find_bottlenecks()

    def set_waiting(self, framework: Framework, *, waiting: bool) -> None:
        """Whether the framework wants anything at all, offers that are out included. Repeats are harmless."""
        if waiting == (framework.began > 0):
            return
        self._begun += waiting
        framework.began = self._begun if waiting else 0
        note_waiting(framework)
        if waiting and self._knows(framework):
            self._ranking.begin_waiting(framework)

    def wake(self, framework: Framework) -> None:
        """The framework takes part. Repeats are harmless."""
        if self._knows(framework) and not framework.awake:
            self._ranking.wake(framework)

    def sleep(self, framework: Framework) -> None:
        """The framework does not take part for now. Repeats are harmless."""
        if self._knows(framework) and framework.awake:
            self._ranking.sleep(framework)

    def key(self, role: Role) -> float:
        """The role's key among those beside it now; 0 while all are ranked anew."""
        return 0.0 if self.is_ranking else self._ranking.key(self.roles[role])

    def order(self) -> Iterator[RoleAccount]:
        """All roles with frameworks of their own, the one that comes first first, whether or not they want anything."""
        for level in self._ranking.in_order():
            yield self.roles[Role(level.name.removesuffix(OWN))]

    def behind(self) -> Callable[[Framework], bool]:
        """Tells of frameworks whether anybody beside them or their roles has a larger key now. For one look: keys move."""
        is_behind = self._ranking.behind()
        return lambda framework: self._knows(framework) and is_behind(framework)

    def beside(self, parent: RoleAccount | None) -> list[RoleAccount]:
        """The roles below ``parent``, or at the top, in the same order."""
        accounts = parent.children.values() if parent is not None else self._at_the_top()
        return list(accounts) if self.is_ranking else sorted(accounts, key=self._ranking.key)

    @staticmethod
    def order_within(role: RoleAccount) -> list[Framework]:
        """The role's own frameworks in the same way."""
        policy = role.own.policy
        if policy is None:
            return list(role.frameworks.values())
        return sorted(role.frameworks.values(), key=lambda framework: policy.key(framework.framework_id))

    def check_keys(self) -> None:
        """Raise AssertionError unless the ranking is that made afresh from the books."""
        self._ranking.check()

    def _may_count_estimates(self) -> bool:
        """Not where the policy is told of use itself."""
        return self._demand == "measured" and not self._new_policy().follows_use

    def _server(self) -> Callable[[Framework, Vector], tuple[float, float]]:
        return self._serve_measured if self.counts_estimates else self._ranking.serve

    def _serve_measured(self, framework: Framework, unit: Vector) -> tuple[float, float]:
        return self._ranking.serve(framework, framework.as_counted(unit))

    def _factors(self, framework: Framework) -> Factors:
        if not self.counts_estimates:
            return ()
        if framework.estimate is None:
            return taken_at_its_word(len(self._zero))
        return framework.estimate.factors

    @property
    def _counted_capacity(self) -> Vector:
        """The capacity in the unit that policies count in."""
        return scale(self._capacity, FINENESS) if self.counts_estimates else self._capacity

    def _at_the_top(self) -> list[RoleAccount]:
        return [account for account in self.roles.values() if account.parent is None]

    def _account(self, role: Role) -> RoleAccount:
        account = self.roles.get(role)
        if account is None:
            above = parent_of(role)
            parent = None if above is None else self._account(above)
            self.roles[role] = account = RoleAccount(role, self.weights.get(role, EQUAL), parent)
            if parent is not None:
                parent.children[role] = account
        return account


def parent_of(role: Role) -> Role | None:
    """The role above it; None at the top."""
    above, slash, _ = role.rpartition("/")
    return Role(above) if slash else None


def with_those_above(role: Role) -> list[Role]:
    """The role and all above it, upwards: ``eng/ml``, ``eng``."""
    words = role.split("/")
    return [Role("/".join(words[:depth])) for depth in range(len(words), 0, -1)]
