"""A demand that nobody had before finds the few agents with room for it, and does not read all of a nearly full cluster."""

from dataclasses import replace
from random import Random

import pytest

from fairlead_master.allocation import candidates, rooms
from fairlead_proto.ids import AgentId, ClassId, FrameworkId
from fairlead_proto.tasks import DemandClass
from tests.allocation.builders import add_agent, add_framework, an_allocator, cpus_and_mem, launch

PLACEMENTS = ["align", "pack", "spread", "least-loaded", "random", "heartbeat"]
HOST, ONE = cpus_and_mem(4, 4), cpus_and_mem(1, 1)
Step = tuple[FrameworkId, ClassId, AgentId]


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_an_unseen_demand_does_not_read_every_agent(placement: str) -> None:
    looks = []
    for hosts in (1_500, 4_500):
        allocator = an_allocator(placement=placement)
        for number in range(hosts):
            add_agent(allocator, f"h{number}", HOST)
        filler = add_framework(allocator, "filler", ONE, 4 * hosts)
        while allocator.needs_cycle:
            for grant in allocator.cycle(0):
                launch(allocator, grant)
        late = add_framework(allocator, "late", cpus_and_mem(3, 3), 1)
        allocator.cycle(1)  # Cells are filled when they are asked for the first time.
        for number in range(0, 36, 3):
            allocator.release(filler, AgentId(f"h{number}"), ONE, 4)
        before = allocator.counters.agents_examined
        for number in range(8):
            unit = cpus_and_mem(3 + number / 100, 3)
            allocator.set_demand(late, [DemandClass(class_id=ClassId("c"), unit=unit, units=1)], 2)
            grants = allocator.cycle(2)
            assert len(grants) == 1
            launch(allocator, grants[0])
        looks.append((allocator.counters.agents_examined - before) / 8)
        allocator.check()

    assert max(looks) < 300
    assert looks[1] < looks[0] + 10


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_those_found_by_cells_are_those_that_reading_everything_finds(
    placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(6):
        with monkeypatch.context() as reading:
            reading.setattr(rooms.Rooms, "perhaps", lambda *_: None)
            expected = _history(placement, seed)
        monkeypatch.setattr(rooms, "_AGENTS_MAX", 10**6)
        monkeypatch.setattr(candidates, "_CELLS_FROM", 0)
        monkeypatch.setattr(candidates, "_RARELY", 0)
        assert _history(placement, seed) == expected


def _history(placement: str, seed: int) -> list[Step]:
    """What is served while units of all sizes come and go on a cluster that is often full, with windows smaller than it."""
    random = Random(seed)
    allocator = an_allocator(placement=placement, looks_per_cycle_max=10**9)
    allocator.settings = replace(allocator.settings, agents_examined_per_cycle_max=10**9)
    for number in range(150):
        add_agent(allocator, f"h{number}", cpus_and_mem(random.choice((2, 4, 9)), random.choice((2, 4, 8))))
    frameworks = [add_framework(allocator, f"f{number}") for number in range(5)]
    held = []
    steps: list[Step] = []
    for now_ms in range(12):
        for framework in random.sample(frameworks, 3):
            wanted = [
                DemandClass(
                    class_id=ClassId(f"c{number}"),
                    unit=cpus_and_mem(random.randint(1, 30) / 10, random.randint(1, 30) / 10),
                    units=random.choice((1, 1, 5, 40)),
                )
                for number in range(8)
            ]
            allocator.set_demand(framework, wanted, now_ms)
        grants = allocator.cycle(now_ms)
        steps += allocator.last_steps()
        for grant in grants:
            launch(allocator, grant)
            held += [(grant.framework_id, grant.agent_id, grant.unit)] * grant.units
        random.shuffle(held)
        for framework_id, agent_id, vector in held[: random.choice((0, 3, 60))]:
            allocator.release(framework_id, agent_id, vector)
            held.remove((framework_id, agent_id, vector))
        allocator.check()
    return steps
