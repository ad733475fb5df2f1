"""A cycle that is cut short is carried on by the next: together they serve what one would have, in the same order."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import AllocationSettings, Grant
from fairlead_master.allocation.demands import SLEEPER_EFFORT
from fairlead_master.allocation.search import WAKE_EFFORT
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.tasks import Constraint, DemandClass, Operator
from tests.allocation.builders import add_agent, add_framework, an_allocator, cpus_and_mem

KINDS = ResourceKinds()
POLICIES = ["drf", "asset", "max-min", "max-min:mem", "slots:2", "fifo", "pf", "bbf", "baa", "utilization"]
PLACEMENTS = ["align", "pack", "spread", "least-loaded", "random", "heartbeat"]
TOTALS: list[Vector] = [(8000, 8, 0, 0), (16_000, 4, 0, 0), (4000, 16, 0, 1000)]
UNITS: list[Vector] = [(1000, 1, 0, 0), (1000, 4, 0, 0), (3000, 1, 0, 0), (6000, 3, 0, 0), (0, 1, 0, 1000)]
ROLES = ["r1", "r2", "r1/a", "r1/b", "r1/a/x"]
RACK_A = (Constraint("rack", Operator.EQUALS, ("a",)),)
NAMED = (Constraint("name", Operator.MATCHES, ("a[0-9]*[02468]",)), *RACK_A)
HOST, ONE = cpus_and_mem(4, 4), cpus_and_mem(1, 1)
NEVER_MS = 10**9
Step = tuple[FrameworkId, ClassId, AgentId]


class Both:
    """The same facts told to an allocator that is never cut short and to one that nearly always is."""

    def __init__(self, random: Random) -> None:
        self.random = random
        whole = AllocationSettings(
            policy=random.choice(POLICIES),
            placement=random.choice(PLACEMENTS),
            when_head_does_not_fit=random.choice(["skip", "skip", "freeze"]),
            reservation_after_ms=NEVER_MS,
            looks_per_cycle_max=NEVER_MS,
            agents_examined_per_cycle_max=NEVER_MS,
        )
        cut = replace(
            whole,
            looks_per_cycle_max=random.randint(1, 5),
            agents_examined_per_cycle_max=random.randint(1, 200),
        )
        window = random.choice([2, 4, 16])  # Small ones are filled often, so that it matters when.
        self.each = tuple(Allocator(KINDS, settings, window=window) for settings in (whole, cut))
        self.agents: list[AgentId] = []
        self.frameworks: list[FrameworkId] = []
        self.held: list[tuple[FrameworkId, AgentId, Vector]] = []
        self.classes: dict[tuple[FrameworkId, ClassId], Vector] = {}
        self.now_ms = self.joined = 0

    def add_agent(self) -> None:
        self.joined += 1
        agent_id = AgentId(f"a{self.joined}")
        total, rack = self.random.choice(TOTALS), self.random.choice("ab")
        self.agents.append(agent_id)
        for allocator in self.each:
            add_agent(allocator, agent_id, total, {"rack": rack, "name": agent_id})

    def add_framework(self) -> None:
        framework_id = FrameworkId(f"f{len(self.frameworks)}")
        self.frameworks.append(framework_id)
        role = Role(self.random.choice(ROLES))
        for allocator in self.each:
            allocator.add_framework(framework_id, role)

    def want(self) -> None:
        framework_id = self.random.choice(self.frameworks)
        wanted = [
            DemandClass(
                class_id=ClassId(name),
                unit=self.random.choice(UNITS),
                units=self.random.randint(0, 12),
                constraints=self.random.choice([(), RACK_A, NAMED]),
            )
            for name in "xyz"[: self.random.randint(1, 3)]
        ]
        for demand in wanted:
            self.classes[framework_id, demand.class_id] = demand.unit
        for allocator in self.each:
            allocator.set_demand(framework_id, wanted, self.now_ms)

    def end_some(self) -> None:
        self.random.shuffle(self.held)
        for framework_id, agent_id, unit in self.held[: len(self.held) // 2]:
            for allocator in self.each:
                allocator.release(framework_id, agent_id, unit)
        del self.held[: len(self.held) // 2]

    def cycle(self) -> int:
        """Serve all that fits, compare, launch it; gives the number of cycles the second allocator took."""
        self.now_ms += self.random.choice([1, 50, 2_000])
        for allocator in self.each:
            allocator.advance(self.now_ms)
        return self.serve([], [])

    def serve(self, *begun: list[Step]) -> int:
        """The same at the same time, where the allocators have served some already."""
        served: list[list[Step]] = []
        cycles = 0
        for allocator, before in zip(self.each, begun, strict=True):
            steps: list[Step] = list(before)
            cycles = 0
            while allocator.needs_cycle:
                allocator.cycle(self.now_ms)
                allocator.check()
                steps += allocator.last_steps()
                cycles += 1
                if not allocator.is_cut_short:
                    break
            served.append(steps)
        assert served[1] == served[0]
        for framework_id, class_id, agent_id in served[0]:
            unit = self.classes[framework_id, class_id]
            for allocator in self.each:
                allocator.settle(framework_id, agent_id, class_id, unit, 1, [unit])
            self.held.append((framework_id, agent_id, unit))
        whole, cut = self.each
        for agent_id in self.agents:
            assert cut.agent_books(agent_id) == whole.agent_books(agent_id)
        return cycles


@given(random=st.randoms(use_true_random=False))
def test_cycles_that_are_cut_short_serve_what_one_would(random: Random) -> None:
    both = Both(random)
    for _ in range(4):
        both.add_agent()
        both.add_framework()
    for _ in range(5):
        for fact in random.choices(
            [both.want, both.want, both.end_some, both.add_agent, both.add_framework], k=3
        ):
            fact()
        both.cycle()


def behind_others_for_cpus(looks_per_cycle_max: int) -> Allocator:
    """A role ``s`` that comes first until it is known that its next unit is one of CPUs, of which it holds half.

    Its framework ``f`` wants ``x``, which fits on ``a`` alone, then ``y``, and ``z``, of which the role holds nothing. ``other``
    may take all that is left on ``a`` before.
    """
    settings = AllocationSettings(reservation_after_ms=NEVER_MS, looks_per_cycle_max=looks_per_cycle_max)
    allocator = Allocator(KINDS, settings, window=2)
    for name, cpus in (("a", 4), ("b", 2), ("c", 2)):
        add_agent(allocator, name, cpus_and_mem(cpus, cpus), {"name": name})
    full = add_agent(allocator, "full", (8_000, 8 * 2**30, 0, 1_000), {"name": "full"})
    holder, f = add_framework(allocator, "holder", role="s"), add_framework(allocator, "f", role="s")
    allocator.charge(holder, full, cpus_and_mem(8, 8))
    wanted = [("x", cpus_and_mem(3, 1), 4), ("y", ONE, 4), ("z", (0, 0, 0, 500), 1)]
    demand = [DemandClass(class_id=ClassId(name), unit=unit, units=units) for name, unit, units in wanted]
    allocator.set_demand(f, demand, 0)
    on_a = (Constraint("name", Operator.EQUALS, ("a",)),)
    add_framework(allocator, "other", ONE, 4, constraints=on_a)
    return allocator


def steps_of(allocator: Allocator) -> list[Step]:
    """All units there are to serve, in order."""
    steps = []
    while allocator.needs_cycle:
        allocator.cycle(0)
        steps += allocator.last_steps()
        allocator.check()
    return steps


def test_a_role_that_stands_behind_others_looks_for_agents_no_earlier_where_cycles_are_cut_short() -> None:
    whole, cut = behind_others_for_cpus(NEVER_MS), behind_others_for_cpus(1)

    expected = steps_of(whole)

    assert [agent_id for framework_id, class_id, agent_id in expected if class_id == "y"] == [
        "b",
        "c",
        "b",
        "c",
    ]
    assert steps_of(cut) == expected


def test_a_role_stands_behind_others_for_no_unit_that_it_wants_no_more() -> None:
    allocator = behind_others_for_cpus(1)
    allocator.cycle(0)
    first = allocator.last_steps()

    for class_id in "xy":
        allocator.refuse(FrameworkId("f"), ClassId(class_id), None, NEVER_MS)
    allocator.cycle(0)

    assert [framework_id for framework_id, _, _ in first] == ["other"]
    assert allocator.last_steps() == [("f", "z", "full")]


def test_a_cycle_ends_at_its_looks_and_at_the_agents_it_examined() -> None:
    by_looks, by_agents = an_allocator(looks_per_cycle_max=7), an_allocator()
    by_agents.settings = replace(by_agents.settings, agents_examined_per_cycle_max=7)
    for allocator in (by_looks, by_agents):
        add_agent(allocator, "host", cpus_and_mem(1_000, 1_000))
        add_framework(allocator, "f", ONE, 100_000)

        allocator.cycle(0)

    assert by_looks.counters.looks == 7
    assert by_looks.is_cut_short
    assert 7 <= by_agents.counters.agents_examined <= 7 + 2


def test_units_of_frameworks_that_share_a_role_count_for_what_they_take() -> None:
    allocator = an_allocator(looks_per_cycle_max=60)
    add_agent(allocator, "host", cpus_and_mem(1_000, 1_000))
    for name in "fg":
        add_framework(allocator, name, ONE, 1_000, role="shared")

    allocator.cycle(0)

    assert allocator.is_cut_short
    assert 5 <= len(allocator.last_steps()) <= 11


def test_agents_that_become_candidates_count_for_what_they_take() -> None:
    allocator = an_allocator()
    allocator.settings = replace(allocator.settings, agents_examined_per_cycle_max=1_000)
    for number in range(100):
        add_agent(allocator, f"a{number}", HOST)
    for number in range(20):
        add_framework(allocator, f"f{number}", cpus_and_mem(1, 1 + number), 1)

    allocator.cycle(0)

    assert allocator.is_cut_short
    assert 0 < len(allocator.last_steps()) <= 3


def cycles_of(allocator: Allocator) -> Iterator[int]:
    """How many agents each cycle examines, until all is served that can be."""
    while allocator.needs_cycle:
        before = allocator.counters.agents_examined
        allocator.cycle(0)
        yield allocator.counters.agents_examined - before
        allocator.check()


def named(pattern: str) -> Constraint:
    return Constraint("name", Operator.MATCHES, (pattern,))


def test_a_cycle_ends_while_agents_are_matched_and_the_next_carries_on() -> None:
    allocator = an_allocator()
    allocator.settings = replace(allocator.settings, agents_examined_per_cycle_max=1_000)
    for number in range(300):
        add_agent(allocator, f"a{number}", HOST, {"name": f"host-{number}"})
    add_framework(allocator, "f", ONE, 1, constraints=(named("host-.*"), named("host-299")))

    examined = list(cycles_of(allocator))

    assert [agent_id for _, _, agent_id in allocator.last_steps()] == ["a299"]
    assert len(examined) > 20
    # The log is read so many entries at a time, and the last agent is matched before it is known that it was enough.
    assert max(examined) < 1_000 + 64 + 200


def test_an_agent_that_joins_is_matched_with_those_who_wait_in_parts() -> None:
    allocator = an_allocator()
    allocator.settings = replace(allocator.settings, agents_examined_per_cycle_max=1_000)
    for number in range(200):
        add_framework(allocator, f"f{number}", ONE, 1, constraints=(named(f"host-{number}"),))
    add_agent(allocator, "first", HOST, {"name": "other"})
    list(cycles_of(allocator))

    add_agent(allocator, "second", HOST, {"name": "host-77"})
    examined = list(cycles_of(allocator))

    assert allocator.pending(FrameworkId("f77")) == {"tasks": 0}
    assert len(examined) > 5
    # All who wait are compared with the agent by what they need, which is one look each.
    assert max(examined) < 200 + 1_000 + 200


def served(allocator: Allocator) -> list[Grant]:
    """All grants there are to make, the books unchecked."""
    grants = []
    while allocator.needs_cycle:
        grants += allocator.cycle(0)
    return grants


def beside_many_who_wait(waiting: int, hosts: int) -> tuple[Allocator, list[Grant]]:
    """A full cluster beside so many classes, no two alike, and what fills it; gives it with bounds of 1,000 agents a cycle."""
    allocator = an_allocator()
    for number in range(hosts):
        add_agent(allocator, f"a{number}", HOST)
    add_framework(allocator, "holder", HOST, hosts)
    held = served(allocator)
    for number in range(waiting):
        add_framework(allocator, f"f{number}", cpus_and_mem(1 + number / 1_000, 1), 1)
    served(allocator)
    allocator.settings = replace(allocator.settings, agents_examined_per_cycle_max=1_000)
    return allocator, held


@pytest.mark.parametrize("ended", [1, 100])
def test_who_waits_is_compared_with_what_came_free_so_many_a_cycle(ended: int) -> None:
    allocator, held = beside_many_who_wait(waiting=1_000, hosts=100)

    for grant in held[:ended]:
        allocator.take_back(grant.framework_id, grant.agent_id, grant.class_id, grant.unit, grant.units)
    allocator.set_demand(FrameworkId("holder"), [], 0)
    examined = list(cycles_of(allocator))

    # At most one search beyond the bound: of all that came free, and to score what a window holds.
    assert max(examined) <= 1_000 + 1_000
    # All are compared once, and only who is served, or is the first that finds nothing, searches.
    assert sum(examined) <= 1_000 * (1.25 + WAKE_EFFORT + SLEEPER_EFFORT) + (3 * ended + 1) * min(
        6 * ended, 1_000
    )
    assert all(allocator.pending(FrameworkId(f"f{number}")) == {"tasks": 0} for number in range(3 * ended))


@pytest.mark.parametrize("freezes", [False, True])
def test_all_who_sleep_over_one_class_are_woken_so_many_a_cycle(*, freezes: bool) -> None:
    allocator = an_allocator()
    rule = "freeze" if freezes else "skip"
    allocator.settings = replace(allocator.settings, when_head_does_not_fit=rule)
    add_agent(allocator, "small", ONE)
    for number in range(500):
        add_framework(allocator, f"f{number}", HOST, 1)
    add_framework(allocator, "fits", ONE, 1)
    served(allocator)
    allocator.settings = replace(allocator.settings, agents_examined_per_cycle_max=1_000)

    add_agent(allocator, "large", HOST)
    examined = list(cycles_of(allocator))

    assert [framework_id for framework_id, _, _ in allocator.last_steps()] == ["f0"]
    assert len(examined) >= 500 * SLEEPER_EFFORT // 1_000
    assert max(examined) <= 1_000 + SLEEPER_EFFORT + 100


def test_agents_that_gain_while_others_are_compared_do_not_put_off_who_is_served() -> None:
    allocator, held = beside_many_who_wait(waiting=1_000, hosts=60)
    cycles = 0

    for grant in held:
        allocator.take_back(grant.framework_id, grant.agent_id, grant.class_id, grant.unit, grant.units)
        allocator.cycle(0)
        allocator.check()
        cycles += 1
        if allocator.last_steps():
            break

    assert allocator.last_steps()
    assert 30 < cycles < 50
    list(cycles_of(allocator))
    allocator.check()


@given(random=st.randoms(use_true_random=False))
def test_facts_between_cycles_that_are_cut_short_leave_nothing_that_fits(random: Random) -> None:
    both = Both(random)
    for _ in range(4):
        both.add_agent()
        both.add_framework()
    cut = both.each[1]
    both.each = (cut,)
    given: list[Grant] = []
    for _ in range(30):
        random.choice([both.want, both.want, both.add_agent, both.add_framework, both.end_some])()
        if given and random.random() < 0.5:
            grant = given.pop(random.randrange(len(given)))
            cut.take_back(grant.framework_id, grant.agent_id, grant.class_id, grant.unit, grant.units)
        given += cut.cycle(0)
        cut.check()
    while cut.needs_cycle:
        cut.cycle(0)
        cut.check()  # All who still wait are parked then, and it finds that none of them fits anywhere.

    assert not cut.is_cut_short


def test_half_of_the_looks_and_half_of_the_agents_are_as_much_as_a_cycle_may() -> None:
    allocator = an_allocator(looks_per_cycle_max=100)
    allocator.settings = replace(allocator.settings, agents_examined_per_cycle_max=1_000)
    for number in range(2):
        add_agent(allocator, f"a{number}", cpus_and_mem(1_000, 1_000))
    for number in range(200):
        add_framework(allocator, f"f{number}", cpus_and_mem(1, 1 + number), 1)

    allocator.cycle(0)

    looks, examined = allocator.counters.looks, allocator.counters.agents_examined
    assert allocator.is_cut_short
    assert 1_000 <= examined + 5 * looks <= 1_000 + 20
    assert looks < 90
    assert examined < 900


def test_who_arrives_while_a_cycle_is_cut_short_is_served_by_the_next() -> None:
    allocator = an_allocator(looks_per_cycle_max=5)
    add_agent(allocator, "host", (10**9, 2**50, 0, 0))
    add_framework(allocator, "greedy", ONE, 10**7)
    allocator.cycle(0)
    add_framework(allocator, "honest", ONE, 1)

    allocator.cycle(0)

    assert allocator.last_steps()[0][0] == "honest"


def test_a_cycle_that_an_agent_gained_in_is_not_carried_on() -> None:
    allocator = an_allocator(looks_per_cycle_max=1)
    add_agent(allocator, "host", HOST)
    add_framework(allocator, "f", ONE, 4)
    (grant,) = allocator.cycle(0)
    was_cut_short = allocator.is_cut_short

    allocator.take_back(grant.framework_id, grant.agent_id, grant.class_id, grant.unit, grant.units)

    assert (was_cut_short, allocator.is_cut_short) == (True, False)
    assert allocator.needs_cycle
