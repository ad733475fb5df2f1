"""Large units are not starved by small ones that keep coming, and do not stay behind them."""

import random
from heapq import heappop, heappush

import pytest

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import Grant
from fairlead_master.allocation.feasibility import ASKED_MAX
from fairlead_proto.ids import AgentId, ClassId, FrameworkId
from fairlead_proto.patterns import matches
from fairlead_proto.resources import Vector
from fairlead_proto.tasks import Constraint, DemandClass, Operator
from tests.allocation.builders import (
    add_agent,
    add_framework,
    an_allocator,
    cpus_and_mem,
    launch,
    take_back,
    units_of,
    want,
)

SMALL = cpus_and_mem(1, 1)
LARGE = cpus_and_mem(4, 4)


class SmallTasksForEver:
    """Hosts kept full by two frameworks of one-core tasks, one of which ends every 100 ms."""

    def __init__(self, hosts: int, *, reservation_after_ms: int = 10_000) -> None:
        self.allocator = an_allocator(reservation_after_ms=reservation_after_ms)
        for number in range(hosts):
            add_agent(self.allocator, f"h{number}", LARGE)
        add_framework(self.allocator, "small", SMALL, 100_000)
        self.running: list[tuple[FrameworkId, AgentId, Vector]] = []
        self.now_ms = 0
        self.run_cycle()

    def run_cycle(self) -> list[Grant]:
        grants = self.allocator.cycle(self.now_ms)
        self.allocator.check()
        for grant in grants:
            launch(self.allocator, grant)
            self.running += [(grant.framework_id, grant.agent_id, grant.unit)] * grant.units
        return grants

    def step(self) -> list[Grant]:
        """The oldest task that is not on the host where one ended just before ends, so that hosts empty evenly."""
        self.now_ms += 100
        self.allocator.release(*self.running.pop(0))
        return self.run_cycle()

    def run_until_served(self, framework_id: str, steps: int) -> int | None:
        for step in range(steps):
            if any(grant.framework_id == framework_id for grant in self.step()):
                return step
        return None


def test_a_large_unit_is_served_although_small_tasks_never_stop() -> None:
    history = SmallTasksForEver(hosts=3)
    add_framework(history.allocator, "large", LARGE, 1)

    served_at = history.run_until_served("large", 300)

    assert served_at is not None
    # 10 s until the reservation, then at most as long as the tasks on one host take to end.
    assert 100 <= served_at <= 100 + 3 * 4 + 13
    assert all(history.allocator.agent_books(AgentId(f"h{n}")).reserved_for is None for n in range(3))


def test_without_reservations_it_would_starve() -> None:
    """So that the test above proves something."""
    history = SmallTasksForEver(hosts=3, reservation_after_ms=10**9)
    add_framework(history.allocator, "large", LARGE, 1)

    assert history.run_until_served("large", 300) is None


def a_large_unit_passed_over() -> tuple[Allocator, AgentId, FrameworkId, FrameworkId]:
    """On a host that one small task keeps from being empty; a second later the host is reserved.

    Gives the allocator, the host, who has the small task and who wants the large one.
    """
    allocator = an_allocator(reservation_after_ms=1_000)
    host = add_agent(allocator, "host", LARGE)
    small = add_framework(allocator, "small")
    allocator.charge(small, host, SMALL)
    large = add_framework(allocator, "large", LARGE, 1)
    allocator.cycle(0)
    return allocator, host, small, large


class ClosedLoop:
    """Full hosts of eight cores: every task that ends is wanted again by its framework."""

    def __init__(
        self, units: dict[str, Vector], *, policy: str = "drf", hosts: int = 5, length_ms: int = 10_000
    ) -> None:
        self._length_ms = length_ms
        """Mean of tasks; they take half as long more or less."""
        self.allocator = an_allocator(policy=policy)
        for number in range(hosts):
            add_agent(self.allocator, f"h{number}", cpus_and_mem(8, 8))
        self.units = {FrameworkId(name): unit for name, unit in units.items()}
        for name, unit in units.items():
            add_framework(self.allocator, name, unit, 1_000, role=name)
        self.served: dict[FrameworkId, int] = dict.fromkeys(self.units, 0)
        """What tasks that began had in cores and milliseconds."""
        self.looks_at_reserved = 0
        self._random = random.Random(1)
        self._ends: list[tuple[int, int, FrameworkId, AgentId]] = []
        self._count = 0
        self._now_ms = 0

    def run(self, from_ms: int, until_ms: int) -> dict[str, float]:
        """The parts of the cores that went to whom between the two."""
        self.served = dict.fromkeys(self.units, 0)
        while self._now_ms < until_ms:
            for grant in self.allocator.cycle(self._now_ms):
                launch(self.allocator, grant)
                for _ in range(grant.units):
                    self._start(grant, is_counted=self._now_ms >= from_ms)
            self.looks_at_reserved += any(
                self.allocator.agent_books(agent_id).reserved_for for _, _, _, agent_id in self._ends
            )
            deadline_ms = self.allocator.next_deadline_ms()
            self._now_ms = min(self._ends[0][0], deadline_ms or until_ms)
            while self._ends[0][0] <= self._now_ms:
                _, _, framework_id, agent_id = heappop(self._ends)
                self.allocator.release(framework_id, agent_id, self.units[framework_id])
                want(
                    self.allocator,
                    framework_id,
                    self.units[framework_id],
                    1_000,
                    now_ms=self._now_ms,
                )
        self.allocator.check()
        everything = sum(self.served.values())
        return {name: amount / everything for name, amount in self.served.items()}

    def _start(self, grant: Grant, *, is_counted: bool) -> None:
        length_ms = self._random.randint(self._length_ms // 2, self._length_ms * 3 // 2)
        self._count += 1
        heappush(self._ends, (self._now_ms + length_ms, self._count, grant.framework_id, grant.agent_id))
        if is_counted:
            self.served[grant.framework_id] += grant.unit[0] * length_ms


@pytest.mark.parametrize("policy", ["drf", "pf", "bbf", "max-min:cpus"])
def test_whose_tasks_are_larger_does_not_stay_behind(policy: str) -> None:
    """A framework gets the places of its own tasks back when they end, and that is no reason to let it wait anew."""
    loop = ClosedLoop({"small": cpus_and_mem(1, 1), "large": cpus_and_mem(3, 3)}, policy=policy)

    shares = loop.run(200_000, 800_000)

    assert shares == {"small": pytest.approx(0.5, abs=0.03), "large": pytest.approx(0.5, abs=0.03)}


def test_nor_do_several_of_them_that_come_first_in_turn() -> None:
    units = {f"small{n}": cpus_and_mem(1, 1) for n in range(3)} | {
        f"large{n}": cpus_and_mem(5, 5) for n in range(3)
    }

    shares = ClosedLoop(units, hosts=20).run(200_000, 800_000)

    assert sum(share for name, share in shares.items() if name.startswith("large")) == pytest.approx(
        0.5, abs=0.04
    )


def test_nor_does_it_below_a_role_of_its_own() -> None:
    units = {"eng/small": cpus_and_mem(1, 1), "ops/large": cpus_and_mem(3, 3)}

    shares = ClosedLoop(units).run(200_000, 800_000)

    assert shares["ops/large"] == pytest.approx(0.5, abs=0.04)


def test_nor_where_tasks_take_hours() -> None:
    hour_ms = 3_600_000
    loop = ClosedLoop({"small": cpus_and_mem(1, 1), "large": cpus_and_mem(6, 6)}, hosts=20, length_ms=hour_ms)

    shares = loop.run(20 * hour_ms, 60 * hour_ms)

    assert shares["large"] == pytest.approx(0.5, abs=0.04)


def test_the_wait_is_as_long_as_reservations_have_stood_of_late() -> None:
    """Agents that take minutes to empty are not emptied every second."""
    allocator, host, small, large = a_large_unit_passed_over()
    allocator.cycle(1_000)
    allocator.release(small, host, SMALL)
    (grant,) = allocator.cycle(101_000)
    launch(allocator, grant)
    allocator.release(large, host, LARGE)
    allocator.charge(small, host, SMALL)

    want(allocator, large, LARGE, 1, now_ms=105_000)
    allocator.cycle(105_000)

    # A quarter of the hundred seconds that one reservation stood.
    assert allocator.next_deadline_ms() == 105_000 + 25_000
    allocator.cycle(129_999)
    assert allocator.agent_books(host).reserved_for is None
    allocator.cycle(130_000)
    assert allocator.agent_books(host).reserved_for == large


def test_nothing_is_reserved_for_those_whom_nobody_passes_over() -> None:
    """Each waits longer than a reservation takes, and is served whenever it is first."""
    loop = ClosedLoop({f"f{n}": cpus_and_mem(1, 1) for n in range(4)})

    loop.run(0, 300_000)

    assert loop.looks_at_reserved == 0


@pytest.mark.parametrize("others", [[], ["idle"], ["level"]])
def test_nothing_is_reserved_for_who_holds_no_less_than_anybody(others: list[str]) -> None:
    """Nobody passes it over, so a newcomer with nothing comes before it wherever a place becomes free."""
    allocator = an_allocator(reservation_after_ms=1_000)
    host = add_agent(allocator, "host", LARGE)
    greedy = add_framework(allocator, "greedy", SMALL, 100)
    for name in others:
        add_framework(allocator, name, None if name == "idle" else SMALL, 100)
    for now_ms in range(0, 10_000, 100):
        for grant in allocator.cycle(now_ms):
            launch(allocator, grant)
        assert allocator.agent_books(host).reserved_for is None

    add_framework(allocator, "newcomer", SMALL, 1)
    allocator.cycle(10_000)
    allocator.release(greedy, host, SMALL)

    assert [grant.framework_id for grant in allocator.cycle(10_100)] == ["newcomer"]


def test_a_reservation_ends_when_its_role_is_behind_nobody_any_more() -> None:
    allocator, host, small, large = a_large_unit_passed_over()
    allocator.cycle(1_000)
    assert allocator.agent_books(host).reserved_for == large

    allocator.charge(large, add_agent(allocator, "other", LARGE), LARGE)
    want(allocator, small, SMALL, 3, now_ms=2_000)

    assert units_of(allocator.cycle(2_000)) == {"small": 3}
    assert allocator.agent_books(host).reserved_for is None


def test_a_large_unit_behind_frameworks_or_classes_of_its_own_role_is_served_too() -> None:
    for first in ("framework", "class"):
        allocator = an_allocator(reservation_after_ms=1_000)
        host = add_agent(allocator, "host", LARGE)
        small = add_framework(allocator, "small", SMALL, 4, role="eng")
        for grant in allocator.cycle(0):
            launch(allocator, grant)
        if first == "framework":
            large = add_framework(allocator, "large", LARGE, 1, role="eng")
        else:
            large = small
            classes = [
                DemandClass(class_id=ClassId(name), unit=unit, units=1, constraints=())
                for name, unit in (("large", LARGE), ("small", SMALL))
            ]
            allocator.set_demand(small, classes, 0)

        for now_ms in (500, 1_500):
            allocator.cycle(now_ms)

        assert allocator.agent_books(host).reserved_for == large, first


def test_the_reserved_agent_is_the_one_nearest_to_fitting() -> None:
    allocator = an_allocator(reservation_after_ms=1_000)
    for name in ("a", "b", "c"):
        add_agent(allocator, name, LARGE)
    small = add_framework(allocator, "small")
    for name, tasks in (("a", 3), ("b", 1), ("c", 2)):
        for _ in range(tasks):
            allocator.charge(small, AgentId(name), SMALL)
    large = add_framework(allocator, "large", LARGE, 1)
    allocator.cycle(0)
    assert allocator.next_deadline_ms() == 1_000

    allocator.cycle(1_000)

    assert allocator.agent_books(AgentId("b")).reserved_for == large
    assert allocator.next_deadline_ms() is None
    allocator.check()


def test_nobody_else_is_given_anything_on_a_reserved_agent() -> None:
    allocator, host, small, _ = a_large_unit_passed_over()
    allocator.cycle(1_000)

    want(allocator, small, SMALL, 10)
    assert allocator.cycle(1_001) == []

    allocator.release(small, host, SMALL)
    (grant,) = allocator.cycle(1_002)
    assert (grant.framework_id, grant.units) == ("large", 1)
    allocator.check()


def test_a_reservation_ends_when_its_unit_is_served_elsewhere() -> None:
    allocator, host, small, _ = a_large_unit_passed_over()
    allocator.cycle(1_000)
    want(allocator, small, SMALL, 3)

    add_agent(allocator, "other", LARGE)
    grants = allocator.cycle(1_001)

    # In the same cycle: the large unit on the new agent, and then the small ones where nothing is kept any more.
    assert [(g.framework_id, g.agent_id, g.units) for g in grants] == [
        ("large", "other", 1),
        ("small", "host", 3),
    ]
    assert allocator.agent_books(host).reserved_for is None
    allocator.check()


def test_a_reservation_ends_when_the_demand_goes_away() -> None:
    allocator, host, small, large = a_large_unit_passed_over()
    allocator.cycle(1_000)
    want(allocator, small, SMALL, 3)

    allocator.set_demand(large, [], 1_001)

    assert allocator.agent_books(host).reserved_for is None
    assert [grant.units for grant in allocator.cycle(1_001)] == [3]


def test_a_reservation_ends_with_its_agent_or_its_framework() -> None:
    for ending in ("agent", "framework", "inactive", "configure"):
        allocator = an_allocator(reservation_after_ms=1_000)
        host = add_agent(allocator, "host", LARGE)
        small = add_framework(allocator, "small")
        allocator.charge(small, host, SMALL)
        large = add_framework(allocator, "large", LARGE, 1)
        allocator.cycle(0)
        allocator.cycle(1_000)
        assert allocator.agent_books(host).reserved_for == large

        match ending:
            case "agent":
                allocator.release(small, host, SMALL)
                allocator.remove_agent(host)
            case "framework":
                allocator.remove_framework(large)
            case "inactive":
                allocator.set_agent_active(host, False)
            case _:
                allocator.configure(allocator.settings, 1_001)

        allocator.check()
        if ending != "agent":
            assert allocator.agent_books(host).reserved_for is None, ending


def test_sending_the_same_demand_again_does_not_restart_the_wait() -> None:
    allocator, host, _, large = a_large_unit_passed_over()

    want(allocator, large, LARGE, 1, now_ms=900)
    allocator.cycle(900)
    allocator.cycle(1_000)

    assert allocator.agent_books(host).reserved_for == large


def test_one_agent_in_ten_is_reserved_at_most() -> None:
    allocator = an_allocator(reservation_after_ms=1_000)
    small = add_framework(allocator, "small")
    for number in range(20):
        host = add_agent(allocator, f"h{number}", LARGE)
        allocator.charge(small, host, SMALL)
    for number in range(5):
        add_framework(allocator, f"large{number}", LARGE, 2)
    for now_ms in range(0, 10_000, 100):
        want(allocator, FrameworkId("large4"), LARGE, 2, now_ms=now_ms)
        allocator.cycle(now_ms)
        allocator.check()

    reserved = [allocator.agent_books(AgentId(f"h{n}")).reserved_for for n in range(20)]
    kept = [framework_id for framework_id in reserved if framework_id is not None]
    assert sorted(kept) == ["large0", "large1"]


def test_what_no_agent_could_ever_hold_gets_no_reservation() -> None:
    allocator = an_allocator(reservation_after_ms=1_000)
    host = add_agent(allocator, "host", LARGE)
    small = add_framework(allocator, "small")
    allocator.charge(small, host, SMALL)
    add_framework(allocator, "too large", cpus_and_mem(40, 4), 1)
    large = add_framework(allocator, "large", LARGE, 1)
    allocator.cycle(0)
    allocator.cycle(1_000)

    assert allocator.agent_books(host).reserved_for == large


def test_a_refused_reservation_does_not_stay() -> None:
    """Its framework declines what was kept for it: the wait begins again."""
    allocator, host, small, large = a_large_unit_passed_over()
    allocator.cycle(1_000)
    allocator.release(small, host, SMALL)
    (grant,) = allocator.cycle(1_001)
    want(allocator, small, SMALL, 4)

    take_back(allocator, grant)
    allocator.refuse(large, grant.class_id, host, 60_000)
    grants = allocator.cycle(1_002)

    assert [(g.framework_id, g.units) for g in grants] == [("small", 4)]
    allocator.check()


def test_freeze_stops_behind_a_head_that_does_not_fit() -> None:
    allocator = an_allocator(head="freeze")
    host = add_agent(allocator, "host", cpus_and_mem(4, 8))
    small = add_framework(allocator, "small")
    allocator.charge(small, host, SMALL)
    large = add_framework(allocator, "large", LARGE, 1)
    want(allocator, small, SMALL, 10)

    assert allocator.cycle(0) == []

    allocator.release(small, host, SMALL)
    # Equal shares now: the small framework was added first, and then the large one is the head again and stops it.
    assert [(g.framework_id, g.units) for g in allocator.cycle(1)] == [("small", 1)]
    allocator.set_demand(large, [], 2)
    assert [(g.framework_id, g.units) for g in allocator.cycle(2)] == [("small", 3)]


def test_an_impossible_head_does_not_freeze_the_cluster() -> None:
    allocator = an_allocator(head="freeze")
    add_agent(allocator, "host", LARGE)
    add_framework(allocator, "too large", cpus_and_mem(40, 4), 1)
    add_framework(allocator, "small", SMALL, 2)

    assert [(g.framework_id, g.units) for g in allocator.cycle(0)] == [("small", 2)]


def test_a_head_that_declined_does_not_freeze_the_cluster() -> None:
    allocator = an_allocator(head="freeze")
    host = add_agent(allocator, "host", LARGE)
    picky = add_framework(allocator, "picky", SMALL, 1)
    add_framework(allocator, "small", SMALL, 2)
    grants = allocator.cycle(0)
    take_back(allocator, grants[0])
    allocator.refuse(picky, grants[0].class_id, host, 60_000)
    want(allocator, FrameworkId("small"), SMALL, 4)

    assert [(g.framework_id, g.units) for g in allocator.cycle(1)] == [("small", 2)]


@pytest.mark.parametrize("policy", ["drf", "slots:1"])
def test_an_agent_that_a_unit_is_larger_than_is_not_kept_for_it(policy: str) -> None:
    """It may lack less of the unit than the agent that could hold it, and under slots it lacks nothing."""
    allocator = an_allocator(policy=policy, reservation_after_ms=1_000)
    add_agent(allocator, "tiny", cpus_and_mem(3, 3))
    host = add_agent(allocator, "host", LARGE)
    small = add_framework(allocator, "small")
    for _ in range(2 if policy == "drf" else 1):
        allocator.charge(small, host, SMALL)
    large = add_framework(allocator, "large", LARGE, 1)

    assert allocator.cycle(0) == allocator.cycle(1_000) == []

    assert allocator.agent_books(host).reserved_for == large
    allocator.check()


@pytest.mark.parametrize("policy", ["drf", "slots:1"])
def test_a_reserved_agent_takes_no_unit_larger_than_itself(policy: str) -> None:
    """Neither when the agent shrinks while it is kept nor when the unit grows."""
    for grows in (False, True):
        allocator = an_allocator(policy=policy, reservation_after_ms=1_000)
        host = add_agent(allocator, "host", LARGE)
        small = add_framework(allocator, "small")
        allocator.charge(small, host, SMALL)
        large = add_framework(allocator, "large", LARGE, 1)
        allocator.cycle(0)
        allocator.cycle(1_000)
        assert allocator.agent_books(host).reserved_for == large

        if grows:
            want(allocator, large, cpus_and_mem(5, 4), 1, now_ms=1_001)
        else:
            allocator.update_agent(host, cpus_and_mem(3, 4), {})
        allocator.release(small, host, SMALL)

        assert allocator.cycle(1_001) == []
        assert allocator.agent_books(host).reserved_for is None
        allocator.check()


def test_who_is_level_does_not_pass_over_who_came_later() -> None:
    """The clock of a role that was served goes on only if somebody behind it was served as well."""
    allocator = an_allocator(reservation_after_ms=1_000)
    host = add_agent(allocator, "host", LARGE)
    add_agent(allocator, "other", cpus_and_mem(5, 5))
    filler, level = add_framework(allocator, "filler"), add_framework(allocator, "level", SMALL, 1)
    for _ in range(4):
        allocator.charge(filler, host, SMALL)
        allocator.charge(level, AgentId("other"), SMALL)
    allocator.charge(filler, AgentId("other"), SMALL)
    add_framework(allocator, "large", LARGE, 2)
    allocator.cycle(0)
    assert allocator.next_deadline_ms() == 1_000

    for agent_id in (host, host, host, host, AgentId("other")):
        allocator.release(filler, agent_id, SMALL)
    grants = allocator.cycle(200)

    # ``level`` got its unit at a key of 4/9, which is the large one's after its own.
    assert [grant.framework_id for grant in grants] == ["large", "level"]
    assert grants[1].key_before == grants[0].key_after
    assert allocator.next_deadline_ms() == 200 + 1_000


def test_one_look_asks_so_many_agents_however_many_classes_nobody_could_hold() -> None:
    allocator = an_allocator(reservation_after_ms=1_000)
    small = add_framework(allocator, "small")
    for number in range(400):
        host = add_agent(allocator, f"h{number}", LARGE, {"name": f"h{number}"})
        allocator.charge(small, host, SMALL)
    for number in range(20):
        nowhere = Constraint("name", Operator.MATCHES, (f"host{number}",))
        add_framework(allocator, f"f{number:02d}", LARGE, 1, constraints=(nowhere,))
    matches.cache_clear()

    allocator.cycle(0)

    assert 0 < matches.cache_info().misses < ASKED_MAX // 50
