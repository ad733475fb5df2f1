"""The tree of roles: shares level by level, members of a group that complement each other, what it costs."""

import random
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType

import pytest

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.explain import WaitReason
from fairlead_master.allocation.parts import at_once
from fairlead_master.allocation.policies.drf import DominantResourceFairness
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import AgentId, FrameworkId, Role
from fairlead_proto.resources import Vector
from tests.allocation.builders import (
    TASKS,
    add_agent,
    add_framework,
    an_allocator,
    cpus_and_mem,
    launch,
    take_back,
    units_of,
    want,
)

HOST = AgentId("host")
CPU: Vector = (1_000, 0, 0, 0)
GPU: Vector = (0, 0, 0, 1_000)


def roles_of(allocator: Allocator) -> list[str]:
    return [row.role for row in allocator.role_report()]


@pytest.mark.parametrize("policy", ["drf", "asset", "max-min", "max-min:cpus", "slots:90", "pf"])
def test_weights_divide_each_level(policy: str) -> None:
    """Of 90: eng 60 and ops 30; of eng's ml 45 and web 15; of ml's two frameworks 22 or 23 each."""
    allocator = an_allocator(policy=policy)
    add_agent(allocator, HOST, cpus_and_mem(90, 90))
    for role, weight in (("eng", 2.0), ("eng/ml", 3.0)):
        allocator.set_weight(Role(role), Weight(weight))
    for name, role in (("m1", "eng/ml"), ("m2", "eng/ml"), ("w", "eng/web"), ("o", "ops")):
        add_framework(allocator, name, cpus_and_mem(1, 1), role=role)

    units = units_of(allocator.cycle(0))

    assert units["o"] == 30
    assert units["w"] == 15
    assert {units["m1"], units["m2"]} == {22, 23}
    allocator.check()


def test_a_role_without_a_weight_is_equal_to_those_beside_it_however_many_are_below() -> None:
    allocator = an_allocator()
    add_agent(allocator, HOST, cpus_and_mem(100, 100))
    for number in range(10):
        add_framework(allocator, f"a{number}", cpus_and_mem(1, 1), role=f"eng/team{number}")
    add_framework(allocator, "b", cpus_and_mem(1, 1), role="ops")

    assert units_of(allocator.cycle(0))["b"] == 50


def test_frameworks_of_a_role_stand_beside_the_roles_below_it_as_one() -> None:
    allocator = an_allocator()
    add_agent(allocator, HOST, cpus_and_mem(60, 60))
    for name, role in (("own1", "eng"), ("own2", "eng"), ("ml", "eng/ml"), ("web", "eng/web")):
        add_framework(allocator, name, cpus_and_mem(1, 1), role=role)

    assert units_of(allocator.cycle(0)) == {"own1": 10, "own2": 10, "ml": 20, "web": 20}


def test_the_report_shows_what_each_role_is_due_of_what_its_parent_is_due() -> None:
    allocator = an_allocator()
    add_agent(allocator, HOST, cpus_and_mem(12, 12))
    allocator.set_weight(Role("eng"), Weight(3.0))
    for name, role in (("ml", "eng/ml"), ("web", "eng/web"), ("ops", "ops")):
        add_framework(allocator, name, cpus_and_mem(1, 1), role=role)
    allocator.cycle(0)

    rows = {row.role: row for row in allocator.role_report()}

    assert {role: (row.parent, row.fair_share) for role, row in rows.items()} == {
        "eng": (None, 0.75),
        "eng/ml": ("eng", 0.375),
        "eng/web": ("eng", 0.375),
        "ops": (None, 0.25),
    }
    assert rows[Role("eng")].charged == cpus_and_mem(9, 9)
    assert rows[Role("eng")].frameworks == 2
    assert roles_of(allocator).index("eng") < roles_of(allocator).index("eng/web")


def test_roles_above_come_with_the_first_below_them_and_go_with_the_last() -> None:
    allocator = an_allocator()
    for round_ in range(3):
        add_framework(allocator, f"f{round_}", role="a/b/c")
        add_framework(allocator, f"g{round_}", role="a/d")
        assert sorted(roles_of(allocator)) == ["a", "a/b", "a/b/c", "a/d"]

        allocator.remove_framework(FrameworkId(f"f{round_}"))
        assert sorted(roles_of(allocator)) == ["a", "a/d"]
        allocator.check()

        allocator.remove_framework(FrameworkId(f"g{round_}"))
        assert roles_of(allocator) == []
        allocator.check()


def test_a_weight_waits_for_an_inner_role_and_outlives_it() -> None:
    allocator = an_allocator()
    allocator.set_weight(Role("eng"), Weight(2.0))
    for name in ("first", "second"):
        add_framework(allocator, name, role="eng/ml")
        assert {row.role: row.weight.default for row in allocator.role_report()} == {
            "eng": 2.0,
            "eng/ml": 1.0,
        }
        allocator.remove_framework(FrameworkId(name))


class Churn:
    """Role ``x`` has a framework that needs CPUs and one that needs GPUs, role ``y`` one that needs CPUs; tasks end one by one."""

    def __init__(self, policy: str, wanted: tuple[int, int, int]) -> None:
        self.units = {"x/cpus": CPU, "x/gpus": GPU, "y": CPU}
        self.allocator = an_allocator(policy=policy)
        self.wanted = dict(zip(self.units, wanted, strict=True))
        self.held: Counter[str] = Counter()
        self.random = random.Random(1)
        add_agent(self.allocator, HOST, (100_000, 2**40, 0, 100_000))
        for name in self.units:
            add_framework(self.allocator, name)
            self.declare(name)

    def declare(self, name: str) -> None:
        want(self.allocator, FrameworkId(name), self.units[name], max(0, self.wanted[name] - self.held[name]))

    def run(self, ends: int) -> None:
        for now_ms in range(ends):
            self.allocator.advance(now_ms)
            for grant in self.allocator.cycle(now_ms):
                launch(self.allocator, grant)
                self.held[grant.framework_id] += grant.units
                self.declare(grant.framework_id)
            name = self.random.choice(sorted(self.held.elements()))
            self.held[name] -= 1
            self.allocator.release(FrameworkId(name), HOST, self.units[name])
            self.declare(name)


WANTED = [(500, 500, 500), (60, 3_000, 500)]


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize(
    ("policy", "due"), [("drf", 50), ("pf", 50), ("alpha:2", 38), ("asset", 34), ("max-min", 34)]
)
def test_members_that_complement_each_other_do_not_starve(
    policy: str, due: int, wanted: tuple[int, int, int]
) -> None:
    """Nobody but one of them wants GPUs, and it may have all; the other is due its role's part of the CPUs.

    Which is half under policies that compare the most a role has of anything, and less where all it has is added up.
    """
    churn = Churn(policy, wanted)
    churn.run(600)

    assert abs(churn.held["x/cpus"] - due) <= 1
    assert churn.held["x/gpus"] >= 99
    churn.allocator.check()


def test_without_balance_they_do_starve(monkeypatch: pytest.MonkeyPatch) -> None:
    """The naive hierarchy, which adds up members and takes the largest share: what the test above is about."""
    monkeypatch.setattr(DominantResourceFairness, "balances", False)
    churn = Churn("drf", WANTED[0])
    churn.run(600)

    assert churn.held["x/cpus"] <= 1


def test_a_role_does_not_gain_by_many_frameworks_that_come_one_after_the_other() -> None:
    """A newcomer holds nothing; its group does not count for nothing because of that."""
    allocator = an_allocator()
    add_agent(allocator, HOST, cpus_and_mem(40, 40))
    add_framework(allocator, "ops", cpus_and_mem(1, 1))
    held: Counter[str] = Counter()
    for number in range(30):
        add_framework(allocator, f"ml{number}", cpus_and_mem(1, 1), 1, role="eng/ml")
        for grant in allocator.cycle(number):
            launch(allocator, grant)
            held["ops" if grant.framework_id == "ops" else "eng"] += grant.units
        # Somebody's task ends: the role with the most has to wait until the others have as much.
        if held["ops"]:
            allocator.release(FrameworkId("ops"), HOST, cpus_and_mem(1, 1))
            held["ops"] -= 1

    assert held["eng"] <= 21


def calls_made(act: Callable[[], object]) -> int:
    """Functions called meanwhile, built-in ones included."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


def wide_tree(policy: str, width: int, depth: int) -> Allocator:
    """``width`` roles at each of ``depth`` levels, below the first of the level above, each with a framework that waits."""
    allocator = an_allocator(policy=policy, looks_per_cycle_max=100)
    add_agent(allocator, HOST, cpus_and_mem(100_000, 100_000))
    above = ""
    for level in range(depth):
        for number in range(width):
            add_framework(
                allocator, f"f{level}-{number}", cpus_and_mem(1, 1), 1_000_000, role=f"{above}r{number}"
            )
        above += "r0/"
    allocator.role_report()  # Counts all on the capacity, which is in parts otherwise.
    for grant in allocator.cycle(0):
        take_back(allocator, grant)
    return allocator


def test_a_decision_costs_what_its_path_is_long_and_not_what_the_tree_is_wide() -> None:
    def cost(width: int, depth: int) -> int:
        allocator = wide_tree("drf", width, depth)
        return calls_made(lambda: allocator.cycle(1))

    narrow, wide, deep = cost(10, 3), cost(200, 3), cost(10, 6)

    assert wide <= 2 * narrow
    assert deep <= 4 * narrow


@pytest.mark.parametrize("policy", ["utilization", "bbf"])
def test_a_fact_about_one_framework_costs_no_look_at_the_others_of_its_role(policy: str) -> None:
    def cost(frameworks: int) -> int:
        allocator = an_allocator(policy=policy)
        allocator.advance(0)
        add_agent(allocator, HOST, cpus_and_mem(10, 10))
        for number in range(frameworks):
            add_framework(allocator, f"f{number}", cpus_and_mem(1, 1), 5, role="eng/ml")
        allocator.cycle(0)
        want(allocator, FrameworkId("f1"), cpus_and_mem(1, 1), 6)

        def act() -> None:
            want(allocator, FrameworkId("f1"), cpus_and_mem(1, 1), 7)
            allocator.observe(FrameworkId("f1"), cpus_and_mem(0.5, 0.5), cpus_and_mem(1, 1))

        return calls_made(act)

    assert cost(1_000) <= 2 * cost(10)


def test_a_wait_is_explained_by_the_level_that_holds_the_role_back() -> None:
    allocator = an_allocator()
    add_agent(allocator, HOST, cpus_and_mem(8, 8))
    for name, role in (("ml", "eng/ml"), ("web", "eng/web"), ("ops", "ops")):
        add_framework(allocator, name, cpus_and_mem(1, 1), role=role)
    for grant in allocator.cycle(0):
        launch(allocator, grant)
    allocator.release(FrameworkId("ops"), HOST, cpus_and_mem(1, 1))

    top = at_once(allocator.diagnose(FrameworkId("web"), TASKS, []))
    allocator.cycle(1)
    allocator.set_weight(Role("eng"), Weight(9.0))
    allocator.set_weight(Role("eng/ml"), Weight(9.0))
    inner = at_once(allocator.diagnose(FrameworkId("web"), TASKS, []))

    assert top.sentence == "it fits and is served in its turn, in one of the next allocation cycles"
    assert inner.reason is WaitReason.SHARE
    assert inner.evidence.items() >= {"held_back_at": "eng/web", "next_role": "eng/ml"}.items()
    assert "fairlead weight set eng/web W" in " ".join(inner.next_steps)

    allocator.set_weight(Role("ops"), Weight(100.0))
    outer = at_once(allocator.diagnose(FrameworkId("web"), TASKS, []))
    assert outer.evidence.items() >= {"held_back_at": "eng", "next_role": "ops"}.items()
    assert (
        "role ops is served before role eng (number 2 in the queue), of which eng/web is a part"
        in outer.sentence
    )


def test_the_head_that_freezes_is_named_as_far_down_as_it_is_known() -> None:
    allocator = an_allocator(head="freeze")
    add_agent(allocator, HOST, cpus_and_mem(8, 8))
    allocator.set_weight(Role("eng"), Weight(100.0))
    add_framework(allocator, "ml", cpus_and_mem(6, 6), 2, role="eng/ml")
    add_framework(allocator, "ops", cpus_and_mem(1, 1), 2, role="ops")
    assert units_of(allocator.cycle(0)) == {"ml": 1, "ops": 1}

    found = at_once(allocator.diagnose(FrameworkId("ops"), TASKS, []))
    add_framework(allocator, "own", role="eng")
    less_known = at_once(allocator.diagnose(FrameworkId("ops"), TASKS, []))

    assert found.reason is less_known.reason is WaitReason.FROZEN
    assert found.evidence["head_role"] == "eng/ml"
    assert less_known.evidence["head_role"] == "eng", "its own framework might be the one"


def test_a_group_alone_at_the_top_pays_for_one_resource_under_pf() -> None:
    """As docs/policies.md warns: one buyer of 13.5 CPUs and 21 GB together runs out of CPUs first, and memory is free."""

    def served(roles: tuple[str, str]) -> tuple[dict[str, int], tuple[float, ...]]:
        allocator = an_allocator(policy="pf")
        add_agent(allocator, "host", cpus_and_mem(9, 18))
        for name, role, unit in zip(("a", "b"), roles, (cpus_and_mem(1, 4), cpus_and_mem(3, 1)), strict=True):
            add_framework(allocator, name, unit, role=role)
        counts = units_of(allocator.cycle(0))
        prices = allocator.prices()
        assert prices is not None
        return counts, prices.of_whole[:2]

    counts, prices = served(("ml", "web"))
    assert counts == {"a": 3, "b": 2}
    assert prices == pytest.approx((1.8, 0.2))
    counts, prices = served(("eng/ml", "eng/web"))
    assert counts == {"a": 4, "b": 1}
    assert prices == pytest.approx((1, 0))
