"""Placement by turns and by load: which agent gets a unit where no score of what is free decides."""

from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from fairlead_master.allocation import placement
from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import AllocationError, Grant
from fairlead_proto.ids import AgentId, FrameworkId
from tests.allocation.builders import add_agent, add_framework, an_allocator, cpus_and_mem

HOST = cpus_and_mem(8, 6)
SMALL, LARGE = cpus_and_mem(1, 0.5), cpus_and_mem(2, 2)


def a_cluster(hosts: int, *, policy: str = "slots:4", rule: str = "align") -> Allocator:
    allocator = an_allocator(policy=policy, placement=rule, units_per_grant_max=1)
    for number in range(hosts):
        add_agent(allocator, f"h{number:03d}", HOST)
    return allocator


def the_paper(rule: str, *, hosts: int = 48) -> dict[AgentId, Counter[str]]:
    """Section 7.2 of Ghodsi et al.: who has how many tasks on which host once four slots of each are dealt out."""
    allocator = a_cluster(hosts, rule=rule)
    for number in range(4):
        add_framework(allocator, f"small {number}", SMALL, 80)
        add_framework(allocator, f"large {number}", LARGE, 80)
    dealt: dict[AgentId, Counter[str]] = defaultdict(Counter)
    for grant in allocator.cycle(0):
        dealt[grant.agent_id][grant.framework_id.partition(" ")[0]] += grant.units
    allocator.check()
    return dealt


def of_one_kind(dealt: dict[AgentId, Counter[str]]) -> int:
    return sum(1 for tasks in dealt.values() if len(tasks) == 1)


@pytest.mark.parametrize("rule", ["align", "random:3", "least-loaded"])
def test_slots_mix_unlike_tasks_on_a_host(rule: str) -> None:
    """Dealt by free slots alone, a host gets its four tasks from one user: half the hosts thrash, and half stand idle."""
    assert of_one_kind(the_paper("spread")) == 48

    dealt = the_paper(rule)

    assert sum(tasks.total() for tasks in dealt.values()) == 48 * 4
    assert of_one_kind(dealt) <= 12


def placed(grants: list[Grant]) -> list[AgentId]:
    return [grant.agent_id for grant in grants]


def test_chance_repeats_itself_by_seed() -> None:
    def choices(rule: str) -> list[AgentId]:
        allocator = a_cluster(40, rule=rule)
        add_framework(allocator, "f", SMALL, 60)
        return placed(allocator.cycle(0))

    assert choices("random:1") == choices("random:1") != choices("random:2")
    assert choices("heartbeat:1") == choices("heartbeat:1") != choices("heartbeat:2")
    assert choices("random") == choices("random:0") == choices("align")


def test_every_host_with_room_has_the_same_chance() -> None:
    """Four hosts of forty have room: fewer than the tries find at once, so both ways of drawing take part."""
    allocator = a_cluster(40, policy="slots:1", rule="random")
    add_framework(allocator, "filler", SMALL, 36)
    full = set(placed(allocator.cycle(0)))
    add_framework(allocator, "f", SMALL, 1)
    found: Counter[AgentId] = Counter()
    for _ in range(2_000):
        (grant,) = allocator.cycle(0)
        found[grant.agent_id] += 1
        allocator.take_back(grant.framework_id, grant.agent_id, grant.class_id, grant.unit, grant.units)

    assert len(found) == 4
    assert not full & set(found)
    assert min(found.values()) > 430  # 500 each in the mean, with a standard deviation of 19.


def test_heartbeats_come_round_in_one_order() -> None:
    allocator = a_cluster(20, rule="heartbeat:5")
    add_framework(allocator, "f", SMALL, 80)

    found = placed(allocator.cycle(0))

    first_round = found[:20]
    assert len(set(first_round)) == 20
    assert first_round != sorted(first_round)
    assert found == first_round * 4


def test_a_heartbeat_passes_over_who_is_full() -> None:
    """More agents in a row than are tried at once: the turn goes on from the last one, and comes round."""
    allocator = a_cluster(40, policy="slots:1", rule="heartbeat:5")
    framework_id = FrameworkId("f")
    add_framework(allocator, "f", SMALL, 43)
    order = placed(allocator.cycle(0))

    def next_after_release(*places: int) -> list[AgentId]:
        for place in places:
            allocator.release(framework_id, order[place], SMALL)
        return placed(allocator.cycle(0))

    assert next_after_release(2) == [order[2]]
    assert next_after_release(1, 35) == [order[35], order[1]]


@pytest.mark.parametrize("policy", ["slots:3", "drf"])
def test_least_loaded_is_whose_dominant_part_is_smallest(policy: str) -> None:
    """A host's own parts count: two large tasks are 2/3 of the memory of a small host, and a sixth of a big one's CPUs."""
    allocator = an_allocator(policy=policy, placement="least-loaded", units_per_grant_max=1)
    add_agent(allocator, "small", HOST)
    add_agent(allocator, "big", cpus_and_mem(24, 100))
    add_framework(allocator, "f", LARGE, 5)

    # By parts of the dominant resource: 0 and 0; 1/3 and 0; 1/3 and 1/12; 1/3 and 2/12; 1/3 and 3/12, but three slots.
    last = "small" if policy == "slots:3" else "big"
    assert placed(allocator.cycle(0)) == ["small", "big", "big", "big", last]
    allocator.check()


@pytest.mark.parametrize("rule", ["random", "heartbeat"])
def test_turns_cost_no_more_on_a_larger_cluster(rule: str) -> None:
    """Not timed but counted: agents looked at for a unit while there is room, and when only one agent has any."""
    with_room, when_full = [], []
    for hosts in (100, 3_000):
        allocator = a_cluster(hosts, policy="slots:1", rule=rule)
        add_framework(allocator, "f", SMALL, hosts + 1)
        allocator.settings = replace(allocator.settings, looks_per_cycle_max=20)
        allocator.cycle(0)
        with_room.append(allocator.counters.agents_examined)
        allocator.settings = replace(
            allocator.settings, looks_per_cycle_max=hosts, agents_examined_per_cycle_max=10**6
        )
        held = placed(allocator.cycle(0))
        before = allocator.counters.agents_examined
        allocator.release(FrameworkId("f"), held[7], SMALL)
        assert placed(allocator.cycle(0)) == [held[7]]
        when_full.append(allocator.counters.agents_examined - before)
    assert with_room[1] <= 2 * with_room[0]
    assert when_full[1] <= 2 * when_full[0]


@pytest.mark.parametrize(
    "text",
    [
        "best",
        "",
        "random:",
        "random:x",
        "random:-1",
        "heartbeat:1.5",
        "align:3",
        f"random:{2**63}",
        "random:7:7",
    ],
)
def test_bad_placements_are_refused(text: str) -> None:
    with pytest.raises(AllocationError, match="placement: expected"):
        placement.parse(text)


def test_a_run_gives_its_seed_to_rules_without_one() -> None:
    assert placement.seeded("align", 4, 9) == "random:9"
    assert placement.seeded("align", None, 9) == "align"
    assert placement.seeded("random", None, 9) == "random:9"
    assert placement.seeded("heartbeat:2", 4, 9) == "heartbeat:2"
    assert placement.seeded("least-loaded", 4, 9) == "least-loaded"
