"""Random histories under policies with prices: each price against the conditions of its optimum, each key against its equation.

Multipliers depend on what happened before, within a tolerance, so they are not computed a second time: the reference checks
from the facts alone that supply meets demand at them (paper 000, equations (3) and (4), with caps), and then makes every
key, and with them the order of every unit served, from these prices.
"""

from fractions import Fraction
from math import inf

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from fairlead_master.allocation.api import AllocationSettings
from fairlead_master.allocation.settings import DEMANDS
from fairlead_proto.ids import AgentId, ClassId, FrameworkId
from fairlead_proto.resources import Vector
from tests.allocation.reference import ReferenceFramework
from tests.allocation.test_against_reference import AllocatorHistory
from tests.allocation.test_wishing_histories import WishingReference

POLICIES = ["pf", "ceei", "alpha:2", "alpha:0.5", "alpha:0.1", "alpha:8", "alpha-tasks:0.5", "alpha-tasks:3"]
LOAD_ERROR = 1e-3
FLOOR = 1e-9
ROUNDING = 1e-9


class PricedReference(WishingReference):
    """Knows the prices in force, and makes keys from them."""

    prices: tuple[float, ...] = ()

    @property
    def alpha(self) -> float:
        return float(self.settings.policy.split(":")[1]) if ":" in self.settings.policy else 1.0

    @property
    def slots(self) -> int | None:
        return None

    def factor(self, vector: Vector, units: int, least: float) -> float:
        """x (a . nu)^(1/alpha) for a holding: x its dominant share or its tasks, a what goes with one of x."""
        shares = self.shares(vector)
        size = units if self.settings.policy.startswith("alpha-tasks") else max(shares)
        if not any(shares):
            return 0.0
        row = [share / size for share in shares]
        cost = sum(a * price for a, price in zip(row, self.prices, strict=True))
        return float(size * max(cost, least * sum(row)) ** (1 / self.alpha))

    def key(self, name: str) -> Fraction:
        least = FLOOR * (sum(self.prices) or 1.0)
        members = self.members(name)
        return Fraction(
            self.factor(self.charged(members), self.units(members), least) / self.weight(name).default
        )

    def order(self, name: str = "") -> list[ReferenceFramework]:
        """Frameworks that want something, in the order in which they are served."""
        if name in self.frameworks:
            framework = self.frameworks[FrameworkId(name)]
            return [framework] if self.wants(framework) else []
        return [f for member in sorted(self.level_of(name), key=self.key) for f in self.order(member)]

    def is_ahead(self, one: FrameworkId, other: FrameworkId) -> bool:
        """Whether it is served before the other, by more than rounding, at the level at which they part."""
        for mine, theirs in zip(self.path(one), self.path(other), strict=False):
            if mine != theirs:
                return self.key(mine) * (1 + ROUNDING) < self.key(theirs)
        return False

    def path(self, framework_id: FrameworkId) -> list[str]:
        """What it is ranked as, from the top down."""
        found = [""]
        while found[-1] != framework_id:
            found += [name for name in self.level_of(found[-1]) if framework_id in self.members(name)]
        return found

    def stops_others(self, framework: ReferenceFramework) -> bool:
        """Whether others wait for it where the head freezes."""
        return self.settings.when_head_does_not_fit == "freeze" and any(
            self.is_open(framework, wanted) and self.freezes(framework, wanted)
            for wanted in framework.classes
        )

    def check_prices(self) -> None:
        load = [0.0] * len(self.zero)
        for name in self.below(""):
            wish = self.wish(name)
            factor = self.factor(wish.vector, wish.units, 0.0)
            part = min(1.0, wish.weight / factor if factor else inf)
            load = [sum_ + part * share for sum_, share in zip(load, self.shares(wish.vector), strict=True)]
        for taken, price in zip(load, self.prices, strict=True):
            assert taken <= 1 + LOAD_ERROR, f"{load} at prices {self.prices}"
            assert price * (1 - taken) <= LOAD_ERROR * sum(self.prices), f"{load} at prices {self.prices}"


class PricedHistory(AllocatorHistory):
    reference: PricedReference
    reference_type = PricedReference

    @initialize(
        policy=st.sampled_from(POLICIES),
        demand=st.sampled_from(["declared", *DEMANDS]),
        mode=st.sampled_from(["skip", "skip", "freeze"]),
    )
    def start(self, policy: str, demand: str, mode: str) -> None:
        super().start(policy=policy, demand=demand, mode=mode)

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
        self.reference.configure(self.settings)

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
            if not self.reference.is_ahead(framework.framework_id, framework_id):
                continue
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
        # Somebody may hold everyone up who has the same key but for rounding.
        assert expected is None or any(
            self.reference.stops_others(framework)
            and not self.reference.is_ahead(expected[0], framework.framework_id)
            for framework in self.reference.order()
        ), f"{expected} was not served"

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
        for row in self.allocator.role_report():
            expected = self.reference.key(row.role)
            assert abs(row.key - expected) <= ROUNDING * expected, f"{row.role}: {row.key}, not {expected}"


TestPricedHistory = PricedHistory.TestCase
TestPricedHistory.settings = hypothesis_settings(max_examples=60, stateful_step_count=40)
