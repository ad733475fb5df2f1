"""What shared roles count for when the capacity changes: found in parts, by which nobody is served, and the same as in one piece."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import AllocationSettings, RoleRow
from fairlead_master.allocation.level_counts import CLASS_EFFORT
from fairlead_master.allocation.parts import Parts, at_once
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.tasks import DemandClass
from tests.allocation.builders import add_agent

KINDS = ResourceKinds()
POLICIES = ["drf", "asset", "max-min", "max-min:mem", "slots:2"]
ROLES = [Role(role) for role in ("r1", "r1", "r2", "r1/a", "r1/b", "r1/a/x", "r3/y")]
TOTALS: list[Vector] = [(8000, 8, 0, 0), (16_000, 4, 0, 0), (4000, 16, 0, 1000)]
UNITS: list[Vector] = [(1000, 1, 0, 0), (1000, 4, 0, 0), (3000, 1, 0, 0), (0, 1, 0, 1000)]


class Both:
    """The same facts for an allocator that counts at once and for one that has a step between two facts."""

    def __init__(self, random: Random) -> None:
        self.random = random
        settings = AllocationSettings(
            policy=random.choice(POLICIES), demand=random.choice(["declared", "declared", "measured"])
        )
        self.each = tuple(Allocator(KINDS, settings) for _ in range(2))
        self.agents: list[AgentId] = []
        self.frameworks: list[FrameworkId] = []
        self.held: list[tuple[FrameworkId, AgentId, Vector]] = []
        self.made = 0
        self.parts: Parts[list[RoleRow]] | None = None
        self.steps = 0

    def agent(self) -> None:
        """One comes, or comes back, or leaves."""
        if len(self.agents) < 4:
            agent_id, total = AgentId(f"a{len(self.agents)}"), self.random.choice(TOTALS)
            self.agents.append(agent_id)
            for allocator in self.each:
                add_agent(allocator, agent_id, total)
        else:
            agent_id = self.random.choice(self.agents)
            active = not self.each[0].agent_books(agent_id).active
            for allocator in self.each:
                allocator.set_agent_active(agent_id, active)

    def framework(self) -> None:
        self.made += 1
        framework_id, role = FrameworkId(f"f{self.made}"), self.random.choice(ROLES)
        self.frameworks.append(framework_id)
        for allocator in self.each:
            allocator.add_framework(framework_id, role)

    def leave(self) -> None:
        holding = {framework_id for framework_id, _, _ in self.held}
        idle = [each for each in self.frameworks if each not in holding]
        if idle:
            framework_id = self.random.choice(idle)
            self.frameworks.remove(framework_id)
            for allocator in self.each:
                allocator.remove_framework(framework_id)

    def want(self) -> None:
        if self.frameworks:
            framework_id = self.random.choice(self.frameworks)
            wanted = [
                DemandClass(
                    class_id=ClassId(name), unit=self.random.choice(UNITS), units=self.random.randint(0, 2)
                )
                for name in "xyz"[: self.random.randint(0, 3)]
            ]
            for allocator in self.each:
                allocator.set_demand(framework_id, wanted, 0)

    def hold(self) -> None:
        if self.frameworks and self.agents:
            held = (
                self.random.choice(self.frameworks),
                self.random.choice(self.agents),
                self.random.choice(UNITS),
            )
            self.held.append(held)
            for allocator in self.each:
                allocator.charge(*held)

    def end(self) -> None:
        if self.held:
            held = self.held.pop(self.random.randrange(len(self.held)))
            for allocator in self.each:
                allocator.release(*held)

    def weigh(self) -> None:
        role, weight = self.random.choice(ROLES), Weight(self.random.choice([0.5, 1.0, 3.0]))
        for allocator in self.each:
            allocator.set_weight(role, weight)

    def policy(self) -> None:
        if self.random.random() < 0.2:
            settings = AllocationSettings(policy=self.random.choice(POLICIES))
            for allocator in self.each:
                allocator.configure(settings, 0)

    def part(self) -> None:
        """A step of the one in parts, which a report takes as a cycle does; the other counts at once."""
        self.each[0].check()
        if self.parts is None:
            self.parts = self.each[1].role_report_in_parts()
        try:
            next(self.parts)
            self.steps += 1
        except StopIteration:
            self.parts = None
        self.each[1].check()

    def finish(self) -> None:
        for allocator in self.each:
            allocator.role_report()
            allocator.check()
        assert self.each[1].role_report() == self.each[0].role_report()


@given(random=st.randoms(use_true_random=False))
def test_counting_in_parts_comes_to_what_counting_at_once_does_whatever_happens_between(
    random: Random,
) -> None:
    both = Both(random)
    facts = [both.agent, both.framework, both.framework, both.leave, both.want, both.want, both.hold]
    facts += [both.end, both.weigh, both.policy, *[both.part] * 8]
    for _ in range(6):
        both.agent()
        for fact in random.choices(facts, k=15):
            fact()
        both.finish()


def test_histories_meet_facts_between_the_parts() -> None:
    """Or the test above would prove nothing."""
    both = Both(Random(1))
    for _ in range(6):
        both.framework()
        both.want()
    both.agent()

    for _ in range(5):
        both.part()

    assert both.steps == 5


def test_a_framework_that_is_alone_for_a_while_is_counted_with_all_it_holds() -> None:
    allocator = Allocator(KINDS)
    host = add_agent(allocator, "host", TOTALS[0])
    first, second, third = (FrameworkId(f"f{number}") for number in range(3))
    for framework_id in (first, second):
        allocator.add_framework(framework_id, Role("shared"))

    parts = allocator.role_report_in_parts()
    next(parts)
    allocator.remove_framework(second)
    allocator.charge(first, host, UNITS[0])
    allocator.add_framework(third, Role("shared"))
    at_once(parts)

    allocator.check()


def many_classes(frameworks: int, each: int) -> Allocator:
    """Frameworks of one role that wait for so many classes each, no two alike, and an agent that has room for none."""
    allocator = Allocator(KINDS)
    add_agent(allocator, "small", (500, 10**6, 0, 0))
    for number in range(frameworks):
        framework_id = FrameworkId(f"f{number}")
        allocator.add_framework(framework_id, Role("shared"))
        classes = [
            DemandClass(class_id=ClassId(f"c{place}"), unit=(1000, 1 + number * each + place, 0, 0), units=1)
            for place in range(each)
        ]
        allocator.set_demand(framework_id, classes, 0)
    while allocator.needs_cycle:
        assert not allocator.cycle(0)
    return allocator


@pytest.mark.parametrize("joins", [True, False])
def test_what_classes_claim_is_found_so_much_a_cycle_when_an_agent_joins_or_leaves(joins: bool) -> None:
    frameworks, each = 30, 300
    allocator = many_classes(frameworks, each)
    counters, most = allocator.counters, allocator.settings.agents_examined_per_cycle_max
    if joins:
        add_agent(allocator, "large", (1500, 10**6, 0, 0))
    else:
        allocator.set_agent_active(AgentId("small"), active=False)

    efforts, granted = [], 0
    while allocator.needs_cycle:
        before = counters.agents_examined
        granted += len(allocator.cycle(1))
        efforts.append(counters.agents_examined - before)
        allocator.check()

    assert sum(efforts) >= frameworks * each * CLASS_EFFORT
    assert max(efforts) <= most + 2 * each * CLASS_EFFORT
    assert granted == joins


def test_agents_that_come_while_all_are_counted_do_not_put_off_who_is_served() -> None:
    allocator = many_classes(30, 300)
    add_agent(allocator, "large", (1500, 10**6, 0, 0))

    granted = []
    for number in range(20):
        granted += allocator.cycle(1)
        add_agent(allocator, f"a{number}", (500, 10**6, 0, 0))

    assert [grant.agent_id for grant in granted] == ["large"]
