"""Two levels of one policy: roles are ranked first, then the frameworks within the role that comes first.

Keeps the policy objects told of everything they must know, and can make new ones from the books when the operator chooses
another policy. A role with one framework skips the second level: ranking one account would only cost time.
"""

from typing import Final

from fairlead_master.allocation.accounts import Framework, RoleAccount
from fairlead_master.allocation.api import AllocationError, Policy, Weight
from fairlead_master.allocation.policies import names
from fairlead_proto.ids import FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector, add, scale, subtract

WEIGHTS_MAX: Final = 10_000
"""Weights kept, roles without frameworks included. Operators set them by hand or from a file; more is a runaway script."""

_EQUAL: Final = Weight()
"""Every framework counts the same within its role."""


class Hierarchy:
    """Roles and frameworks with their charges, ranked by a policy."""

    def __init__(self, policy: str, kinds: ResourceKinds) -> None:
        self.roles: dict[Role, RoleAccount] = {}
        self._accounts: dict[str, RoleAccount] = {}
        """The same, as the policies name them."""
        self.frameworks: dict[FrameworkId, Framework] = {}
        self.weights: dict[Role, Weight] = {}
        self.policy_name = policy
        self._kinds = kinds
        self._policy = names.parse(policy, self._kinds.names)
        self._zero = kinds.zero
        self._capacity = kinds.zero
        self._slots = 0
        self._now_ms = 0
        self._begun = 0

    @property
    def follows_wishes(self) -> bool:
        """Whether the policy is told what frameworks hold and want together."""
        return self._policy.follows_wishes

    @property
    def interval_ms(self) -> int | None:
        """How often the policy looks at its keys again because time passes; None: never."""
        return self._policy.interval_ms

    def set_policy(self, policy: str) -> None:
        """Rank by another policy from now on; charges stay, who is awake is forgotten: wake them again."""
        self.policy_name = policy
        follows_wishes = names.parse(policy, self._kinds.names).follows_wishes
        for framework in self.frameworks.values():
            framework.awake = False
            framework.wish = framework.wish_from_books() if follows_wishes else self._zero
            framework.wish_units = framework.units + framework.pending if follows_wishes else 0
        self._policy = self._roles_from_books()
        for role in self.roles.values():
            role.awake_count = 0
            if role.policy is not None:
                self._rank_frameworks(role)

    def set_capacity(self, capacity: Vector, slots: int) -> None:
        """The sums over active agents."""
        self._capacity, self._slots = capacity, slots
        self._policy.set_capacity(capacity, slots)
        for role in self.roles.values():
            if role.policy is not None:
                role.policy.set_capacity(capacity, slots)

    def add_framework(self, framework_id: FrameworkId, role: Role) -> Framework:
        """A new framework that holds and wants nothing; its role comes with its first one."""
        account = self.roles.get(role)
        if account is None:
            self.roles[role] = self._accounts[role] = account = RoleAccount(
                role=role, weight=self.weights.get(role, _EQUAL)
            )
            self._policy.add(role, account.weight, self._zero, 0)
        framework = Framework(framework_id=framework_id, role=account, charged=self._zero, wish=self._zero)
        self.frameworks[framework_id] = framework
        account.frameworks[framework_id] = framework
        account.only = framework if len(account.frameworks) == 1 else None
        if account.policy is not None:
            account.policy.add(framework_id, _EQUAL, self._zero, 0)
        elif len(account.frameworks) > 1:
            self._rank_frameworks(account)
        return framework

    def remove_framework(self, framework: Framework) -> None:
        """Forget a framework that holds and wants nothing; the last one of a role takes the role with it."""
        self.sleep(framework)
        self.set_waiting(framework, waiting=False)
        role = framework.role
        del self.frameworks[framework.framework_id], role.frameworks[framework.framework_id]
        if role.policy is not None:
            role.policy.remove(framework.framework_id)
            if len(role.frameworks) == 1:
                role.policy = None
                (role.only,) = role.frameworks.values()
        if not role.frameworks:
            self._policy.remove(role.role)
            del self.roles[role.role], self._accounts[role.role]

    def set_weight(self, role: Role, weight: Weight) -> None:
        """The role's weight from now on, whether or not it exists yet. The default weight need not be kept.

        Raises:
            AllocationError: too many roles have weights already.
        """
        if weight == _EQUAL:
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
            self._policy.set_weight(role, weight)

    def charge(self, framework: Framework, vector: Vector) -> None:
        """The framework got one unit of ``vector``."""
        self.serve(framework, vector)
        framework.charged = add(framework.charged, vector)
        framework.units += 1
        self.change_wish(framework, vector, 1)

    def serve(self, framework: Framework, unit: Vector) -> tuple[float, float]:
        """Tell the policies of a unit the caller writes into the books later; gives the role's key before and after."""
        role = framework.role
        if role.policy is not None:
            role.policy.charge(framework.framework_id, unit, 1)
        return self._policy.charge(role.role, unit, 1)

    def release(self, framework: Framework, vector: Vector, units: int) -> None:
        """The framework gave back ``units`` of ``vector``."""
        role = framework.role
        if role.policy is not None:
            role.policy.release(framework.framework_id, vector, units)
        self._policy.release(role.role, vector, units)
        framework.charged = subtract(framework.charged, scale(vector, units))
        framework.units -= units
        assert framework.units >= 0 <= min(framework.charged), (
            f"{framework.framework_id} gave back more than it held"
        )
        self.change_wish(framework, vector, -units)

    def change_wish(self, framework: Framework, unit: Vector, units: int) -> None:
        """The framework holds or waits for ``units`` more, or fewer, of ``unit``. A grant changes neither sum."""
        if units and self._policy.follows_wishes:
            framework.wish = add(framework.wish, scale(unit, units))
            framework.wish_units += units
            self._tell_wish(framework)

    def advance(self, now_ms: int) -> None:
        """It is ``now_ms``."""
        self._now_ms = now_ms
        self._policy.advance(now_ms)
        for role in self.roles.values():
            if role.policy is not None:
                role.policy.advance(now_ms)

    def observe(self, framework: Framework, used: Vector) -> None:
        """The framework's tasks were measured to use ``used``."""
        framework.used = used
        if not self._policy.follows_use:
            return
        role = framework.role
        if role.policy is not None:
            role.policy.observe(framework.framework_id, used)
        self._policy.observe(role.role, role.used(self._zero))

    def prices(self) -> tuple[float, ...] | None:
        """What a whole resource costs under the policy, by place in the vector; None if it has no prices."""
        return self._policy.prices()

    def set_waiting(self, framework: Framework, *, waiting: bool) -> None:
        """Whether the framework wants anything at all, offers that are out included. Repeats are harmless."""
        if waiting == (framework.began > 0):
            return
        role = framework.role
        if not waiting:
            framework.began = 0
            role.waiting_count -= 1
            return
        self._begun += 1
        framework.began = self._begun
        if role.policy is not None:
            role.policy.begin_waiting(framework.framework_id)
        role.waiting_count += 1
        if role.waiting_count == 1:
            role.began = self._begun
            self._policy.begin_waiting(role.role)

    def wake(self, framework: Framework) -> None:
        """The framework takes part. Repeats are harmless."""
        if framework.awake:
            return
        framework.awake = True
        role = framework.role
        if role.policy is not None:
            role.policy.activate(framework.framework_id)
        role.awake_count += 1
        if role.awake_count == 1:
            self._policy.activate(role.role)

    def sleep(self, framework: Framework) -> None:
        """The framework does not take part for now. Repeats are harmless."""
        if not framework.awake:
            return
        framework.awake = False
        role = framework.role
        if role.policy is not None:
            role.policy.deactivate(framework.framework_id)
        role.awake_count -= 1
        if role.awake_count == 0:
            self._policy.deactivate(role.role)

    def first(self) -> Framework | None:
        """The framework to be served next; None if none is awake."""
        name = self._policy.first()
        if name is None:
            return None
        role = self._accounts[name]
        if role.policy is None:
            return role.only
        first = role.policy.first()
        assert first is not None, f"role {name} is awake and none of its frameworks is"
        return role.frameworks[FrameworkId(first)]

    def key(self, role: Role) -> float:
        """The role's key now."""
        return self._policy.key(role)

    def order(self) -> list[RoleAccount]:
        """All roles, the one with the smallest key first, whether or not they want anything."""
        return sorted(self.roles.values(), key=lambda role: self._policy.key(role.role))

    @staticmethod
    def order_within(role: RoleAccount) -> list[Framework]:
        """The role's frameworks in the same way."""
        policy = role.policy
        if policy is None:
            return list(role.frameworks.values())
        return sorted(role.frameworks.values(), key=lambda framework: policy.key(framework.framework_id))

    def check_keys(self) -> None:
        """Raise AssertionError unless every key is that of a policy made afresh from the books, ties included.

        Of a policy that remembers the books do not know all, so nothing is compared.
        """
        if self._policy.remembers:
            return
        self._compare(self._policy, self._roles_from_books(), list(self.roles))
        for role in self.roles.values():
            if role.policy is not None:
                self._compare(role.policy, self._frameworks_from_books(role), list(role.frameworks))

    def _compare(self, kept: Policy, fresh: Policy, accounts: list[str]) -> None:
        fresh.agree_with(kept)
        # Numbers in a queue mean nothing but their order, so for them only the order of those who wait is compared.
        if self.policy_name != "fifo":
            for account in accounts:
                assert kept.key(account) == fresh.key(account), (
                    f"{account}: key {kept.key(account)} kept, {fresh.key(account)} recomputed"
                )
        waiting = [account for account in accounts if fresh.key(account) or self.policy_name != "fifo"]
        assert sorted(waiting, key=kept.key) == sorted(waiting, key=fresh.key), (
            "order kept and recomputed differ"
        )

    def _tell_wish(self, framework: Framework) -> None:
        role = framework.role
        if role.policy is not None:
            role.policy.set_wish_units(framework.framework_id, framework.wish_units)
            role.policy.set_wish(framework.framework_id, framework.wish)
        self._policy.set_wish_units(role.role, role.wish_units)
        self._policy.set_wish(role.role, role.wish(self._zero))

    def _roles_from_books(self) -> Policy:
        policy = self._make()
        for role in self.roles.values():
            policy.add(role.role, role.weight, role.charged(self._zero), role.units)
            if policy.follows_wishes:
                policy.set_wish_units(role.role, role.wish_units)
                policy.set_wish(role.role, role.wish(self._zero))
            policy.observe(role.role, role.used(self._zero))
        for role in sorted(self.roles.values(), key=lambda role: role.began):
            if role.waiting_count:
                policy.begin_waiting(role.role)
        return policy

    def _frameworks_from_books(self, role: RoleAccount) -> Policy:
        policy = self._make()
        policy.follow(self._policy)
        for framework in role.frameworks.values():
            policy.add(framework.framework_id, _EQUAL, framework.charged, framework.units)
            if policy.follows_wishes:
                policy.set_wish_units(framework.framework_id, framework.wish_units)
                policy.set_wish(framework.framework_id, framework.wish)
            policy.observe(framework.framework_id, framework.used or self._zero)
        for framework in sorted(role.frameworks.values(), key=lambda framework: framework.began):
            if framework.began:
                policy.begin_waiting(framework.framework_id)
        return policy

    def _make(self) -> Policy:
        policy = names.parse(self.policy_name, self._kinds.names)
        policy.set_capacity(self._capacity, self._slots)
        if policy.interval_ms is not None:
            policy.advance(self._now_ms)
        return policy

    def _rank_frameworks(self, role: RoleAccount) -> None:
        role.policy = self._frameworks_from_books(role)
        for framework in role.frameworks.values():
            if framework.awake:
                role.policy.activate(framework.framework_id)
