"""Another policy ranks everybody anew in parts, and what comes of it is what one long step would have made."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import AllocationSettings, RoleRow
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import ClassId, FrameworkId, Role
from fairlead_proto.tasks import DemandClass
from tests.allocation.builders import add_agent, add_framework, an_allocator, cpus_and_mem, served, want
from tests.allocation.test_cut_cycles import KINDS, ROLES, Both, Step
from tests.allocation.test_tree import calls_made

OF_BOOKS = ["drf", "asset", "max-min", "max-min:mem", "slots:2", "fifo", "baa", "baa:tasks", "utilization"]
OF_HISTORY = ["pf", "ceei", "alpha:2", "alpha-tasks:0.5", "bbf"]
"""Whose keys depend on when they were looked at: prices within their tolerance, bottlenecks altogether."""
ONE = cpus_and_mem(1, 1)


class Renewed(Both):
    """Facts for an allocator that computes everybody anew in one step, and for one that does with facts in between."""

    def __init__(self, random: Random, policies: list[str]) -> None:
        super().__init__(random)
        self.policies = policies
        whole = replace(self.each[0].settings, when_head_does_not_fit="skip")
        cut = replace(whole, agents_examined_per_cycle_max=random.choice([1, 400, 1_500]))
        # All agents have a place in the windows: whose shape reads them in which order depends on when it was asked for.
        first = whole if policies is OF_BOOKS else cut
        self.each = tuple(Allocator(KINDS, settings, window=64) for settings in (first, cut))

    def configure(self) -> None:
        policy = self.random.choice(self.policies)
        placement = self.random.choice(["align", "pack", "spread", "least-loaded"])
        demand = self.random.choice(["declared", "measured"])
        for allocator in self.each:
            settings = replace(allocator.settings, policy=policy, placement=placement, demand=demand)
            allocator.configure(settings, self.now_ms)
            allocator.check()

    def carry_on(self) -> None:
        """One more part, if it is being done in parts; the last is followed by decisions."""
        begun: list[list[Step]] = [[], []]
        for steps, allocator in zip(begun, self.each, strict=True):
            if allocator.is_cut_short:
                allocator.cycle(self.now_ms)
                allocator.check()
                steps.extend(allocator.last_steps())
        if begun[1] or not self.each[1].is_cut_short:
            self.serve(*begun)

    def leave(self) -> None:
        if len(self.frameworks) < 2:
            return
        framework_id = self.frameworks.pop(self.random.randrange(len(self.frameworks)))
        for held in [held for held in self.held if held[0] == framework_id]:
            self.held.remove(held)
            for allocator in self.each:
                allocator.release(*held)
        for allocator in self.each:
            allocator.remove_framework(framework_id)

    def add_framework(self) -> None:
        self.joined += 1
        self.frameworks.append(FrameworkId(f"f{self.joined}"))
        role = Role(self.random.choice(ROLES))
        for allocator in self.each:
            allocator.add_framework(self.frameworks[-1], role)

    def weigh(self) -> None:
        role, weight = Role(self.random.choice(ROLES)), Weight(self.random.choice([1.0, 2.0, 0.3]))
        for allocator in self.each:
            allocator.set_weight(role, weight)

    def agent_leaves(self) -> None:
        free = [agent for agent in self.agents if not any(agent == held[1] for held in self.held)]
        # Their numbers decide whose turn it is, and who leaves before all are numbered leaves no gap.
        if free and not self.each[1].is_cut_short:
            self.agents.remove(free[0])
            for allocator in self.each:
                allocator.remove_agent(free[0])

    def add_agent(self) -> None:
        # Shares are counted on another capacity in parts too, and one that changes meanwhile waits for some to be served.
        if not self.each[1].is_cut_short:
            super().add_agent()

    def refuse(self) -> None:
        agent_id = self.random.choice([None, *self.agents])
        framework_id, class_id = self.random.choice(self.frameworks), ClassId(self.random.choice("xyz"))
        for allocator in self.each:
            allocator.refuse(framework_id, class_id, agent_id, self.now_ms + 10**6)

    def observe(self) -> None:
        framework_id, cpus = self.random.choice(self.frameworks), self.random.choice([200, 1_500])
        for allocator in self.each:
            allocator.observe(framework_id, (cpus, 1, 0, 0), (1_000, 2, 0, 0))


def rows(allocator: Allocator) -> list[RoleRow]:
    """By role, and but for keys: who could not be served may be put to sleep later, and a group counts for less until then."""
    return [
        replace(row, key=0.0, rank=0) for row in sorted(allocator.role_report(), key=lambda row: row.role)
    ]


@given(random=st.randoms(use_true_random=False))
def test_policies_that_change_in_parts_rank_and_serve_as_those_that_change_at_once(random: Random) -> None:
    live_through(Renewed(random, OF_BOOKS))


@given(random=st.randoms(use_true_random=False))
def test_prices_and_bottlenecks_that_are_made_in_parts_are_those_of_the_books(random: Random) -> None:
    live_through(Renewed(random, OF_HISTORY))


def live_through(both: Renewed) -> None:
    """Every step's books, and at its end every key, are checked by themselves as well."""
    random = both.random
    for _ in range(5):
        both.add_agent()
        both.add_framework()
    facts = [both.want, both.want, both.end_some, both.add_framework, both.leave, both.weigh, both.refuse]
    facts += [both.observe, both.add_agent, both.agent_leaves]
    for _ in range(4):
        for fact in random.choices(facts, k=3):
            fact()
        both.configure()
        for fact in random.choices([*facts, both.configure], k=6):
            both.carry_on()
            fact()
        both.cycle()
        whole, cut = both.each
        for one, other in zip(rows(cut), rows(whole), strict=True):
            assert one == other, whole.settings.policy


def policies_change(roles: int, agents: int, depth: int, classes: int) -> list[int]:
    """Functions called in each part when another policy ranks so many roles over so many agents, but for the last, which decides."""
    allocator = an_allocator(policy="drf")
    for number in range(agents):
        add_agent(allocator, f"a{number}", ONE)
    for number in range(roles):
        name = "/".join([f"r{number}", *"ab"[:depth]])
        framework_id = add_framework(allocator, f"f{number}", role=name)
        units = [(2_000, number, each, 0) for each in range(classes)]
        wanted = [
            DemandClass(class_id=ClassId(f"c{place}"), unit=unit, units=0) for place, unit in enumerate(units)
        ]
        allocator.set_demand(framework_id, wanted, 0)
    allocator.check()
    settings = replace(allocator.settings, policy="max-min")
    calls = [calls_made(lambda: allocator.configure(settings, 0))]
    while allocator.needs_cycle:
        calls.append(calls_made(lambda: allocator.cycle(0)))
    return calls[:-1]


@pytest.mark.parametrize(
    ("roles", "agents", "depth", "classes"),
    [(700, 50, 0, 1), (700, 50, 2, 1), (150, 50, 0, 20), (1, 1_100, 0, 1)],
)
def test_a_part_of_what_another_policy_takes_is_no_longer_where_there_are_more_of_all(
    roles: int, agents: int, depth: int, classes: int
) -> None:
    few, many = (policies_change(times * roles, times * agents, depth, classes) for times in (1, 4))

    assert len(many) > 2 * len(few)
    assert max(many) < 1.5 * max(few)


def test_who_joins_or_wants_more_while_all_are_ranked_anew_is_served_when_they_are() -> None:
    allocator = an_allocator(policy="fifo")
    add_agent(allocator, "a", cpus_and_mem(10, 10))
    for number in range(500):
        add_framework(allocator, f"f{number}", role=f"r{number}")
    allocator.configure(AllocationSettings(policy="drf"), 0)
    assert allocator.is_cut_short

    add_framework(allocator, "new", ONE, units=1)
    want(allocator, FrameworkId("f499"), ONE, 1)
    add_agent(allocator, "b", ONE)

    assert {row.key for row in allocator.role_report()} == {0.0}
    while allocator.needs_cycle:
        allocator.cycle(0)
    assert served(allocator) == ["f499", "new"]
    allocator.check()
