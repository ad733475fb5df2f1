"""Work that must not be done, counted: what is looked at when something changes on a cluster, and kept for it."""

import pytest

from fairlead_master.allocation.candidates import FREED_PER_CYCLE, UNFREED_MAX
from fairlead_master.allocation.demands import SLEEPER_EFFORT
from fairlead_master.allocation.search import WAKE_EFFORT
from fairlead_proto.ids import AgentId, ClassId
from fairlead_proto.tasks import DemandClass
from tests.allocation.builders import (
    add_agent,
    add_framework,
    an_allocator,
    cpus_and_mem,
    launch,
    units_of,
)

ONE = cpus_and_mem(1, 1)
HOST = cpus_and_mem(4, 4)


def test_an_idle_cycle_examines_nothing() -> None:
    allocator = an_allocator()
    for number in range(200):
        add_agent(allocator, f"h{number}", HOST)
    add_framework(allocator, "f", cpus_and_mem(3, 3), 1_000)
    allocator.cycle(0)
    examined, cycles = allocator.counters.agents_examined, allocator.counters.cycles

    assert not allocator.needs_cycle
    assert allocator.cycle(1) == []

    assert allocator.counters.agents_examined == examined
    assert allocator.counters.cycles == cycles
    assert allocator.counters.idle_cycles == 1


def test_a_cluster_nobody_wants_anything_of_is_idle_whatever_happens_on_it() -> None:
    allocator = an_allocator()
    holder = add_framework(allocator, "holder")
    for number in range(50):
        allocator.charge(holder, add_agent(allocator, f"h{number}", HOST), ONE)
    for number in range(50):
        allocator.release(holder, AgentId(f"h{number}"), ONE)

    assert not allocator.needs_cycle
    assert allocator.cycle(0) == []
    assert allocator.counters.agents_examined == 0


def test_a_release_wakes_only_what_fits() -> None:
    """What is too large for the agent that gained is not looked at beyond that agent."""
    allocator = an_allocator()
    for number in range(100):
        add_agent(allocator, f"h{number}", HOST)
    filler = add_framework(allocator, "filler", ONE, 400)
    for grant in allocator.cycle(0):
        launch(allocator, grant)
    for number in range(20):
        add_framework(allocator, f"large{number}", cpus_and_mem(3 + number / 100, 1), 5)
    add_framework(allocator, "small", ONE, 1)
    allocator.cycle(1)
    before = allocator.counters.agents_examined

    allocator.release(filler, AgentId("h7"), ONE)
    grants = allocator.cycle(2)

    assert [(g.framework_id, g.agent_id) for g in grants] == [("small", "h7")]
    # Each of 21 shapes looks at the one agent that gained, and four are listed in the time of a look; the small one some more.
    assert allocator.counters.agents_examined - before <= 26 + 6 + WAKE_EFFORT


@pytest.mark.parametrize("policy", ["drf", "slots:4"])
def test_what_one_task_gives_back_is_searched_for_by_the_first_alone(policy: str) -> None:
    """All others that want it are compared with it, parked again at once, and never put to sleep."""
    allocator = an_allocator(policy=policy)
    hosts = [add_agent(allocator, f"h{number}", HOST) for number in range(50)]
    filler = add_framework(allocator, "filler", ONE, 200)
    for grant in allocator.cycle(0):
        launch(allocator, grant)
    waiting = 100
    for number in range(waiting):
        add_framework(allocator, f"w{number}", cpus_and_mem(1 - number / 1_000, 1), 3)
    allocator.cycle(1)

    for now_ms, host in enumerate(hosts[:20], start=2):
        before = allocator.counters.agents_examined
        allocator.release(filler, host, ONE)
        grants = allocator.cycle(now_ms)

        assert [(g.framework_id, g.agent_id, g.units) for g in grants] == [(f"w{now_ms - 2}", host, 1)]
        awakened = waiting if now_ms == 2 else 0
        examined = allocator.counters.agents_examined - before
        assert examined <= waiting * (1.25 + WAKE_EFFORT) + awakened * SLEEPER_EFFORT + 6
        allocator.check()


def test_a_new_class_looks_at_a_full_cluster_once_however_long_the_log() -> None:
    allocator = an_allocator()
    host = [add_agent(allocator, f"h{number}", HOST) for number in range(20)][7]
    filler = add_framework(allocator, "filler", ONE, 1_000)
    for grant in allocator.cycle(0):
        launch(allocator, grant)
    for now_ms in range(1, 501):
        allocator.release(filler, host, ONE)
        for grant in allocator.cycle(now_ms):
            launch(allocator, grant)
    before = allocator.counters.agents_examined

    add_framework(allocator, "late", cpus_and_mem(2, 2), 1)
    assert allocator.cycle(501) == []

    one_chunk_of_the_log, one_cell = 64, 1
    assert allocator.counters.agents_examined - before <= one_chunk_of_the_log + 20 + one_cell
    allocator.check()
    for _ in range(2):
        allocator.release(filler, host, ONE)
    assert units_of(allocator.cycle(502)) == {"late": 1}


def test_shapes_woken_in_a_cycle_that_was_cut_short_are_served_in_the_next() -> None:
    allocator = an_allocator(looks_per_cycle_max=1)
    host = add_agent(allocator, "host", HOST)
    holder = add_framework(allocator, "holder")
    for _ in range(4):
        allocator.charge(holder, host, ONE)
    for number in range(3):
        add_framework(allocator, f"w{number}", cpus_and_mem(1, 1 - number / 10), 1)
    assert allocator.cycle(0) == []
    allocator.release(holder, host, ONE, 2)

    served = []
    for now_ms in (1, 2, 3):
        served += [grant.framework_id for grant in allocator.cycle(now_ms)]
        allocator.check()

    assert served == ["w0", "w1"]
    assert not allocator.needs_cycle
    allocator.release(holder, host, ONE)
    assert [grant.framework_id for grant in allocator.cycle(4)] == ["w2"]


def test_a_release_that_fits_nobody_wakes_nobody() -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", HOST)
    holder = add_framework(allocator, "holder")
    allocator.charge(holder, host, cpus_and_mem(3, 3))
    allocator.charge(holder, host, ONE)
    for number in range(20):
        add_framework(allocator, f"large{number}", cpus_and_mem(2 + number, 1), 5)
    allocator.cycle(0)
    allocator.release(holder, host, ONE)
    allocator.cycle(1)
    before = allocator.counters.agents_examined

    allocator.charge(holder, host, ONE)
    allocator.release(holder, host, ONE)
    assert allocator.cycle(2) == []

    assert allocator.counters.agents_examined == before


def test_the_gain_log_stays_short_however_long_the_cluster_runs() -> None:
    allocator = an_allocator()
    for number in range(5):
        add_agent(allocator, f"h{number}", HOST)
    add_framework(allocator, "f", ONE, 100_000)
    add_framework(allocator, "large", cpus_and_mem(2, 2), 3)
    add_framework(allocator, "late", cpus_and_mem(4, 4), 1)
    running = []
    for now_ms in range(3_000):
        for grant in allocator.cycle(now_ms):
            launch(allocator, grant)
            running += [(grant.framework_id, grant.agent_id, grant.unit)] * grant.units
        allocator.release(*running.pop(now_ms * 7 % len(running)))
        if now_ms % 100 == 0:
            allocator.check()

    assert len(allocator._search._candidates.log) <= 2 * 5 + 1_024 + 1
    assert allocator.counters.decisions > 3_000


def test_what_a_demand_drops_is_freed_so_many_shapes_a_cycle_and_bounded() -> None:
    allocator = an_allocator()
    for number in range(70):
        add_agent(allocator, f"h{number}", HOST)
    framework = add_framework(allocator, "f")
    kept = allocator._search._candidates.unfreed
    for version in range(4):
        demand = [
            DemandClass(class_id=ClassId(f"c{n}"), unit=(1, 1 + version * 1_000 + n, 0, 0), units=1)
            for n in range(1_000)
        ]
        allocator.set_demand(framework, demand, 0)
    assert len(kept) == UNFREED_MAX

    allocator.cycle(0)

    assert len(kept) == UNFREED_MAX - FREED_PER_CYCLE
