"""Random histories under policies with prices: each price against the conditions of its optimum, each key against its equation.

Multipliers depend on what happened before, within a tolerance, so they are not computed a second time: the reference checks
from the facts alone that supply meets demand at them (paper 000, equations (3) and (4), with caps), and then makes every
key, and with them the order of every unit served, from these prices.
"""

from dataclasses import replace
from math import inf

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from fairlead_master.allocation.api import AllocationSettings, Weight
from fairlead_master.allocation.settings import DEMANDS
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import Vector, add, scale
from tests.allocation.reference import Reference, ReferenceFramework
from tests.allocation.test_against_reference import KINDS, WEIGHTS, AllocatorHistory, index

POLICIES = ["pf", "ceei", "alpha:2", "alpha:0.5", "alpha:0.1", "alpha:8", "alpha-tasks:0.5", "alpha-tasks:3"]
LOAD_ERROR = 1e-3
FLOOR = 1e-9
ROUNDING = 1e-9


class PricedReference(Reference):
    """Knows the prices in force, and makes keys from them."""

    prices: tuple[float, ...] = ()

    @property
    def alpha(self) -> float:
        return float(self.settings.policy.split(":")[1]) if ":" in self.settings.policy else 1.0

    @property
    def slots(self) -> int | None:
        return None

    def shares(self, vector: Vector) -> list[float]:
        return [
            amount / total if total else 0.0
            for amount, total in zip(vector, self.counted_capacity, strict=True)
        ]

    def factor(self, vector: Vector, units: int, least: float) -> float:
        """x (a . nu)^(1/alpha) for a holding: x its dominant share or its tasks, a what goes with one of x."""
        shares = self.shares(vector)
        size = units if self.settings.policy.startswith("alpha-tasks") else max(shares)
        if not any(shares):
            return 0.0
        row = [share / size for share in shares]
        cost = sum(a * price for a, price in zip(row, self.prices, strict=True))
        return float(size * max(cost, least * sum(row)) ** (1 / self.alpha))

    def key(self, name: str) -> float:
        least = FLOOR * (sum(self.prices) or 1.0)
        members = self.members(name)
        return self.factor(self.charged(members), self.units(members), least) / self.weight(name).default

    def order(self) -> list[ReferenceFramework]:
        """Frameworks that want something, in the order in which they are served."""
        roles = sorted(self.below(""), key=self.key)
        frameworks = [self.frameworks[FrameworkId(name)] for role in roles for name in self.level_of(role)]
        return [f for f in frameworks if any(self.is_open(f, wanted) for wanted in f.classes)]

    def stops_others(self, framework: ReferenceFramework) -> bool:
        """Whether others wait for it where the head freezes."""
        return self.settings.when_head_does_not_fit == "freeze" and any(
            self.is_open(framework, wanted) and self.freezes(framework, wanted)
            for wanted in framework.classes
        )

    def wish(self, framework: ReferenceFramework) -> tuple[Vector, int]:
        wish, units = self.charged([framework.framework_id]), self.units([framework.framework_id])
        for wanted in framework.classes:
            pending = self.pending(framework, wanted)
            unit = self.as_counted(framework.framework_id, wanted.unit)
            wish, units = add(wish, scale(unit, pending)), units + pending
        return wish, units

    def check_prices(self) -> None:
        load = [0.0] * len(self.zero)
        for framework in self.frameworks.values():
            wish, units = self.wish(framework)
            factor = self.factor(wish, units, 0.0)
            weight = self.weights.get(framework.role, Weight()).default
            part = min(1.0, weight / factor if factor else inf)
            load = [sum_ + part * share for sum_, share in zip(load, self.shares(wish), strict=True)]
        for taken, price in zip(load, self.prices, strict=True):
            assert taken <= 1 + LOAD_ERROR, f"{load} at prices {self.prices}"
            assert price * (1 - taken) <= LOAD_ERROR * sum(self.prices), f"{load} at prices {self.prices}"


def role_of(framework_id: FrameworkId) -> Role:
    """The role of which the framework is the only one."""
    return Role(f"role-{framework_id}")


class PricedHistory(AllocatorHistory):
    """One framework a role, so that all prices can be seen from outside."""

    reference: PricedReference

    @initialize(
        policy=st.sampled_from(POLICIES),
        demand=st.sampled_from(["declared", *DEMANDS]),
        mode=st.sampled_from(["skip", "skip", "freeze"]),
    )
    def start(self, policy: str, demand: str, mode: str) -> None:
        super().start(policy="drf", demand=demand, mode=mode)
        self.settings = replace(self.settings, policy=policy)
        held = self.reference
        self.reference = PricedReference(KINDS.zero, self.settings)
        self.reference.__dict__.update({**held.__dict__, "settings": self.settings})
        self.allocator.configure(self.settings, 0)

    @precondition(lambda self: len(self.reference.frameworks) < 6)
    @rule(role=index)
    def add_framework(self, role: int) -> None:
        self.count += 1
        framework_id = FrameworkId(f"f{self.count}")
        self.reference.add_framework(framework_id, role_of(framework_id))
        self.allocator.add_framework(framework_id, role_of(framework_id))

    @precondition(lambda self: self.reference.frameworks)
    @rule(choice=index, weight=st.sampled_from(WEIGHTS))
    def set_weight_of_framework(self, choice: int, weight: Weight) -> None:
        role = role_of(self._framework_id(choice))
        self.reference.weights[role] = weight
        self.allocator.set_weight(role, weight)

    @rule(
        policy=st.sampled_from([*POLICIES, "drf", "slots:2"]),
        then=st.sampled_from(POLICIES),
        demand=st.sampled_from(DEMANDS),
        mode=st.sampled_from(["skip", "freeze"]),
    )
    def configure(self, policy: str, then: str, demand: str, mode: str) -> None:
        """By way of another policy: what is held and wanted stays."""
        for name in (policy, then):
            self.settings = AllocationSettings(
                policy=name,
                demand=demand,
                when_head_does_not_fit=mode,
                reservation_after_ms=self.reservation_after_ms,
                units_per_grant_max=3,
            )
            self.allocator.configure(self.settings, self.reference.now_ms)
        self.reference.settings = self.settings

    @rule(wait_ms=st.sampled_from([1, 20, 999, 1_000, 5_000]))
    def let_time_pass(self, wait_ms: int) -> None:
        self.reference.now_ms += wait_ms
        self.allocator.advance(self.reference.now_ms)

    def _compare_step(self, step: tuple[FrameworkId, ClassId, AgentId]) -> None:
        self._look_at_prices()
        expected = self.reference.next_step()
        if step != expected:
            first = self._first_ahead_of(step[0])
            assert first is None, f"{step} instead of {expected}: {first} comes before it"

    def _first_ahead_of(self, framework_id: FrameworkId) -> FrameworkId | None:
        """Who stands before the framework by more than rounding, and is served or stops it."""
        for framework in self.reference.order():
            if framework.framework_id == framework_id:
                return framework_id
            if self._key(framework.framework_id) * (1 + ROUNDING) >= self._key(framework_id):
                return None
            served = any(
                self.reference.is_open(framework, wanted) and self.reference.candidates(framework, wanted)
                for wanted in framework.classes
            )
            if served or self.reference.stops_others(framework):
                return framework.framework_id
        return None

    def _compare_end(self) -> None:
        self._look_at_prices()
        expected = self.reference.next_step()
        if expected is not None:
            # Somebody may hold everyone up who has the same key but for rounding.
            key = self._key(expected[0])
            assert any(
                abs(self._key(framework.framework_id) - key) <= ROUNDING * key
                and self.reference.stops_others(framework)
                for framework in self.reference.order()
                if framework.framework_id != expected[0]
            ), (
                f"{expected} was not served, {[(f.framework_id, self._key(f.framework_id)) for f in self.reference.order()]}"
            )

    def _key(self, framework_id: FrameworkId) -> float:
        return self.reference.key(role_of(framework_id))

    def _look_at_prices(self) -> None:
        prices = self.allocator.prices()
        assert prices is not None
        self.reference.prices = prices.of_whole

    @invariant()
    def books_agree(self) -> None:
        if not hasattr(self, "allocator") or not isinstance(self.reference, PricedReference):
            return
        self.allocator.check()
        self._look_at_prices()
        self.reference.check_prices()
        rows = self.allocator.role_report()
        for row in rows:
            expected = self.reference.key(row.role)
            assert abs(row.key - expected) <= ROUNDING * expected, f"{row.role}: {row.key}, not {expected}"
        assert rows == sorted(rows, key=lambda row: row.key)


TestPricedHistory = PricedHistory.TestCase
TestPricedHistory.settings = hypothesis_settings(max_examples=60, stateful_step_count=40)
