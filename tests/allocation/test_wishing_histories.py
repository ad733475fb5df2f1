"""Random histories under policies whose keys depend on what accounts want: ``utilization`` and ``baa``, at every level.

The reference computes each key from the facts, with nothing kept from before: who wants what and in how many units, which
groups that makes, and their levels. The sums of a group are of parts of 2^128, as the policy says, so that keys are equal
and not only close; and with them the order of every unit served.
"""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from fairlead_master.allocation.policies.bottleneck_groups import GOALS, Group, levels
from fairlead_master.allocation.settings import DEMANDS
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import Role
from fairlead_proto.resources import Vector, add, scale, sum_vectors
from tests.allocation.reference import Reference
from tests.allocation.test_against_reference import PLACEMENTS, UNITS, AllocatorHistory

POLICIES = ["utilization", *GOALS]
PARTS = 2**128


class Wish(NamedTuple):
    vector: Vector
    units: int
    weight: float


class WishingReference(Reference):
    def wish(self, name: str) -> Wish:
        """Of a group: what its members wish for, each up to the whole cluster."""
        weight, members = self.weight(name).default, self.level_of(name)
        if name in self.frameworks or (len(members) == 1 and members[0] in self.frameworks):
            return self.wish_of_frameworks(name)
        wishes = [self.bounded(self.wish(member)) for member in members]
        units = sum(wish.units for wish in wishes)
        return Wish(sum_vectors((wish.vector for wish in wishes), self.zero), units, weight)

    def bounded(self, wish: Wish) -> Wish:
        most = max(
            (
                Fraction(want, total)
                for want, total in zip(wish.vector, self.counted_capacity, strict=True)
                if total
            ),
            default=Fraction(0),
        )
        if most <= 1:
            return wish
        vector = tuple(int(want / most) for want in wish.vector)
        return Wish(vector, max(1, int(wish.units / most)), wish.weight)

    def wish_of_frameworks(self, name: str) -> Wish:
        members = self.members(name)
        vector, units = self.charged(members), self.units(members)
        for framework_id in members:
            framework = self.frameworks[framework_id]
            for wanted in framework.classes:
                pending = self.pending(framework, wanted)
                unit = self.as_counted(framework_id, wanted.unit)
                vector, units = add(vector, scale(unit, pending)), units + pending
        return Wish(vector, units, self.weight(name).default)

    def shares(self, vector: Vector) -> list[float]:
        return [
            amount / total if total else 0.0
            for amount, total in zip(vector, self.counted_capacity, strict=True)
        ]

    def bottleneck(self, vector: Vector) -> int | None:
        shares = self.shares(vector)
        return shares.index(max(shares)) if any(shares) else None

    def key(self, name: str) -> Fraction:
        wish, charged, weight = self.wish(name).vector, self.charged(self.members(name)), self.weight(name)
        place = self.bottleneck(wish)
        if self.settings.policy == "utilization":
            shares = self.shares_of(wish, Weight())
            density = round(float(sum(shares) / max(shares)), 6) if any(shares) else 0.0
            share = max(self.shares_of(charged, Weight(weight.default)), default=Fraction(0))
            return Fraction(1e-6 * float(share / (1 + share)) - density)
        if place is None:
            return Fraction(0)
        level = charged[place] / (self.counted_capacity[place] * Fraction(*weight.ratio_of_all))
        return Fraction(float(level) / self.heights([self.wish(rival) for rival in self.rivals(name)])[place])

    def heights(self, rivals: list[Wish]) -> dict[int, float]:
        groups: dict[int, list[Wish]] = defaultdict(list)
        for wish in rivals:
            place = self.bottleneck(wish.vector)
            if place is not None:
                groups[place].append(wish)
        everyone = [wish for wishes in groups.values() for wish in wishes]
        # A whole number by a whole number would be rounded once; the policy rounds the sum before it divides.
        floor = float(PARTS) / sum(int(wish.weight * PARTS) for wish in everyone)
        made = [self.group(place, groups[place], floor) for place in sorted(groups)]
        whole = [1.0 if total else 0.0 for total in self.capacity]
        return dict(zip(sorted(groups), levels(made, whole, GOALS[self.settings.policy]), strict=True))

    def group(self, g: int, wishes: list[Wish], floor: float) -> Group:
        own = self.counted_capacity[g]
        scales = [own / total if total else 0.0 for total in self.counted_capacity]
        ratios = [[amount / wish.vector[g] for amount in wish.vector] for wish in wishes]
        units = [wish.vector[g] / wish.units for wish in wishes]
        loads = [
            sum(int(wish.weight * row[j] * PARTS) for wish, row in zip(wishes, ratios, strict=True)) / PARTS
            for j in range(len(scales))
        ]
        tasks = sum(int(wish.weight / unit * PARTS) for wish, unit in zip(wishes, units, strict=True)) / PARTS
        return Group(
            bottleneck=g,
            loads=tuple([load * by for load, by in zip(loads, scales, strict=True)]),
            largest=tuple([max(row[j] for row in ratios) * by for j, by in enumerate(scales)]),
            tasks=tasks * own,
            fewest=own / max(units),
            floor=floor,
        )


class WishingHistory(AllocatorHistory):
    reference: WishingReference
    reference_type = WishingReference

    @initialize(
        policy=st.sampled_from(POLICIES),
        demand=st.sampled_from(["declared", *DEMANDS]),
        mode=st.sampled_from(["skip", "skip", "freeze"]),
    )
    def start(self, policy: str, demand: str, mode: str) -> None:
        super().start(policy=policy, demand=demand, mode=mode)

    @rule(
        by_way_of=st.sampled_from([*POLICIES, "drf", "slots:2"]),
        policy=st.sampled_from(POLICIES),
        demand=st.sampled_from(DEMANDS),
        placement=st.sampled_from(PLACEMENTS),
        mode=st.sampled_from(["skip", "freeze"]),
    )
    def configure(self, by_way_of: str, policy: str, demand: str, placement: str, mode: str) -> None:
        """By way of a policy that may know nothing of wishes: what is held and wanted stays."""
        for name in (by_way_of, policy):
            self.settings = replace(
                self.settings, policy=name, demand=demand, placement=placement, when_head_does_not_fit=mode
            )
            self.allocator.configure(self.settings, self.reference.now_ms)
        self.reference.configure(self.settings)


def test_a_weight_that_no_binary_fraction_is_gives_the_key_of_the_reference() -> None:
    history = WishingHistory()
    history.start(policy="baa", demand="declared", mode="skip")
    history.recover_task(choice=1, agent=0, unit=UNITS[0])

    history.set_weight(role=Role("r1"), weight=Weight(0.3))
    history.recover_task(choice=0, agent=0, unit=UNITS[0])

    history.books_agree()


TestWishingHistory = WishingHistory.TestCase
TestWishingHistory.settings = hypothesis_settings(max_examples=60, stateful_step_count=40)
