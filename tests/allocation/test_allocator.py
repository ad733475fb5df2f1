"""Demands, offers, filters and bounds."""

from dataclasses import replace
from typing import Any

import pytest

from fairlead_master.allocation.api import AllocationError
from fairlead_master.allocation.decision_log import DECISIONS_KEPT
from fairlead_master.allocation.filters import FILTERS_MAX
from fairlead_master.allocation.hierarchy import WEIGHTS_MAX
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import AgentId, ClassId, Role
from fairlead_proto.resources import scale
from fairlead_proto.tasks import Constraint, DemandClass, Operator
from tests.allocation.builders import (
    KINDS,
    TASKS,
    add_agent,
    add_framework,
    an_allocator,
    cpus_and_mem,
    launch,
    served,
    take_back,
    units_of,
    want,
)

ONE = cpus_and_mem(1, 1)
TWO = cpus_and_mem(2, 2)
HOST = cpus_and_mem(4, 4)


def test_units_in_offers_are_part_of_what_is_wanted() -> None:
    allocator = an_allocator()
    add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 2)
    (grant,) = allocator.cycle(0)
    assert grant.units == 2

    want(allocator, framework_id, ONE, 3)

    assert allocator.pending(framework_id) == {TASKS: 1}
    assert [g.units for g in allocator.cycle(1)] == [1]


def test_units_not_launched_are_wanted_again() -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 3)
    (grant,) = allocator.cycle(0)

    allocator.settle(framework_id, host, grant.class_id, grant.unit, 3, [ONE])

    assert allocator.pending(framework_id) == {TASKS: 2}
    assert allocator.free(host) == cpus_and_mem(3, 3)
    assert allocator.agent_books(host).tasks == 1


def test_launched_tasks_may_be_smaller_than_the_unit() -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 2)
    (grant,) = allocator.cycle(0)

    allocator.settle(framework_id, host, grant.class_id, grant.unit, 2, [cpus_and_mem(0.5, 1), ONE])

    assert allocator.free(host) == cpus_and_mem(2.5, 2)
    assert allocator.pending(framework_id) == {TASKS: 0}
    allocator.check()


def test_more_than_was_offered_cannot_be_launched() -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 1)
    (grant,) = allocator.cycle(0)

    with pytest.raises(AssertionError, match="more was launched"):
        allocator.settle(framework_id, host, grant.class_id, grant.unit, 1, [cpus_and_mem(2, 1)])


def test_an_offer_of_a_class_that_is_gone_is_only_given_back() -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 2)
    (grant,) = allocator.cycle(0)
    allocator.set_demand(framework_id, [], 1)

    take_back(allocator, grant)

    assert allocator.free(host) == HOST
    assert allocator.pending(framework_id) == {}
    assert not allocator.needs_cycle
    allocator.check()


def test_classes_are_served_in_declared_order_as_far_as_they_fit() -> None:
    allocator = an_allocator()
    add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f")
    allocator.set_demand(
        framework_id,
        [
            DemandClass(class_id=ClassId("large"), unit=cpus_and_mem(3, 3), units=2),
            DemandClass(class_id=ClassId("small"), unit=ONE, units=2),
        ],
        0,
    )

    assert [(g.class_id, g.units) for g in allocator.cycle(0)] == [("large", 1), ("small", 1)]


def test_constraints_are_kept() -> None:
    allocator = an_allocator()
    add_agent(allocator, "plain", HOST, {"rack": "b"})
    add_agent(allocator, "racked", HOST, {"rack": "a"})
    add_framework(allocator, "f", ONE, 10, constraints=(Constraint("rack", Operator.EQUALS, ("a",)),))

    assert [(g.agent_id, g.units) for g in allocator.cycle(0)] == [("racked", 4)]

    allocator.update_agent(AgentId("plain"), HOST, {"rack": "a"})
    assert [(g.agent_id, g.units) for g in allocator.cycle(1)] == [("plain", 4)]


def test_a_filter_of_one_framework_hides_the_agent_from_no_other() -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", HOST)
    picky = add_framework(allocator, "picky", ONE, 1)
    add_framework(allocator, "other", ONE, 1)
    grants = allocator.cycle(0)
    for grant in grants:
        take_back(allocator, grant)

    allocator.refuse(picky, TASKS, host, 1_000)
    assert units_of(allocator.cycle(1)) == {"other": 1}

    assert allocator.next_deadline_ms() == 1_000
    assert allocator.cycle(999) == []
    assert units_of(allocator.cycle(1_000)) == {"picky": 1}
    assert allocator.next_deadline_ms() is None


def test_a_class_declined_everywhere_waits_until_the_filter_ends() -> None:
    allocator = an_allocator()
    add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 1)
    (grant,) = allocator.cycle(0)
    take_back(allocator, grant)

    allocator.refuse(framework_id, TASKS, None, 500)

    assert not allocator.needs_cycle
    assert allocator.next_deadline_ms() == 500
    assert units_of(allocator.cycle(500)) == {"f": 1}


def test_sending_the_demand_again_lifts_the_filters() -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 1)
    (grant,) = allocator.cycle(0)
    take_back(allocator, grant)
    allocator.refuse(framework_id, TASKS, host, 10**9)

    want(allocator, framework_id, ONE, 1)

    assert units_of(allocator.cycle(1)) == {"f": 1}
    assert allocator.next_deadline_ms() is None


@pytest.mark.parametrize("agent_id", [AgentId("host"), None])
def test_filters_of_a_class_that_stays_hold_until_they_end(agent_id: AgentId | None) -> None:
    allocator = an_allocator()
    add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 1)
    (grant,) = allocator.cycle(0)
    take_back(allocator, grant)
    allocator.refuse(framework_id, TASKS, agent_id, 500)

    again = DemandClass(class_id=TASKS, unit=ONE, units=2)
    allocator.set_demand(framework_id, [again], 1, lift=False)

    assert allocator.cycle(499) == []
    assert allocator.next_deadline_ms() == 500
    assert units_of(allocator.cycle(500)) == {"f": 2}
    allocator.check()


@pytest.mark.parametrize(
    "changed",
    [
        {"class_id": ClassId("other")},
        {"unit": TWO},
        {"constraints": (Constraint("rack", Operator.NOT_EXISTS),)},
    ],
)
def test_filters_of_a_class_that_changed_are_over(changed: dict[str, Any]) -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 1)
    (grant,) = allocator.cycle(0)
    take_back(allocator, grant)
    allocator.refuse(framework_id, TASKS, host, 10**9)

    again = replace(DemandClass(class_id=TASKS, unit=ONE, units=1), **changed)
    allocator.set_demand(framework_id, [again], 1, lift=False)

    assert units_of(allocator.cycle(2)) == {"f": 1}
    assert allocator.next_deadline_ms() is None
    allocator.check()


def test_refusing_what_is_not_there_any_more_is_nothing() -> None:
    allocator = an_allocator()
    add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 1)

    allocator.refuse(framework_id, ClassId("gone"), None, 1_000)
    allocator.refuse(framework_id, TASKS, AgentId("gone"), 1_000)

    assert allocator.next_deadline_ms() is None
    assert units_of(allocator.cycle(0)) == {"f": 1}


def test_one_filter_too_many_replaces_the_oldest() -> None:
    allocator = an_allocator()
    for number in range(FILTERS_MAX + 1):
        add_agent(allocator, f"h{number}", HOST)
    framework_id = add_framework(allocator, "f", ONE, 1)
    for number in range(FILTERS_MAX + 1):
        allocator.refuse(framework_id, TASKS, AgentId(f"h{number}"), 10**9)
        if number % 250 == 0:
            allocator.check()

    (grant,) = allocator.cycle(0)

    assert grant.agent_id == "h0"
    allocator.check()


def test_filters_that_are_set_over_and_over_leave_no_trace() -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 1)
    for until_ms in range(1, 2_000):
        allocator.refuse(framework_id, TASKS, host, until_ms)
        want(allocator, framework_id, ONE, 1)

    assert allocator.next_deadline_ms() is None
    assert units_of(allocator.cycle(0)) == {"f": 1}


def test_grants_merge_up_to_their_bound() -> None:
    allocator = an_allocator(units_per_grant_max=3)
    add_agent(allocator, "host", HOST)
    add_framework(allocator, "f", ONE, 4)

    assert [grant.units for grant in allocator.cycle(0)] == [3, 1]


def test_a_cycle_stops_at_its_bound_and_the_next_carries_on() -> None:
    allocator = an_allocator(looks_per_cycle_max=3)
    add_agent(allocator, "host", HOST)
    add_framework(allocator, "f", ONE, 10)

    assert [grant.units for grant in allocator.cycle(0)] == [3]
    assert allocator.needs_cycle
    assert [grant.units for grant in allocator.cycle(0)] == [1]
    assert not allocator.needs_cycle


def test_the_decision_log_is_bounded_and_numbered() -> None:
    allocator = an_allocator(units_per_grant_max=1, looks_per_cycle_max=2 * DECISIONS_KEPT)
    add_agent(allocator, "host", scale(HOST, 1_000))
    add_framework(allocator, "f", ONE, DECISIONS_KEPT + 500)

    allocator.cycle(7)

    assert len(allocator.decisions) == DECISIONS_KEPT
    assert [d.number for d in allocator.decisions] == list(range(501, DECISIONS_KEPT + 501))
    last = next(reversed(allocator.decisions))
    assert last.time_ms == 7
    assert last.grant.key_after > last.grant.key_before


def test_a_grant_tells_the_roles_key_before_and_after_it() -> None:
    allocator = an_allocator()
    add_agent(allocator, "host", HOST)
    add_framework(allocator, "f", ONE, 2)

    (grant,) = allocator.cycle(0)

    assert (grant.key_before, grant.key_after) == (0.0, 0.5)


def test_weights_of_roles_to_come_are_kept_and_bounded() -> None:
    allocator = an_allocator()
    for number in range(WEIGHTS_MAX):
        allocator.set_weight(Role(f"r{number}"), Weight(2.0))
    with pytest.raises(AllocationError, match=str(WEIGHTS_MAX)):
        allocator.set_weight(Role("one more"), Weight(2.0))
    allocator.set_weight(Role("r0"), Weight())
    allocator.set_weight(Role("one more"), Weight(3.0))

    add_framework(allocator, "f", role="one more")

    assert [row.weight for row in allocator.role_report()] == [Weight(3.0)]


def test_roles_report_rank_and_fair_share() -> None:
    allocator = an_allocator()
    add_agent(allocator, "host", HOST)
    allocator.set_weight(Role("b"), Weight(3.0))
    add_framework(allocator, "a", ONE, 10)
    add_framework(allocator, "b", ONE, 10)
    add_framework(allocator, "idle")
    allocator.cycle(0)

    rows = {row.role: row for row in allocator.role_report()}

    assert {role: row.rank for role, row in rows.items()} == {"a": 1, "b": 2, "idle": 0}
    assert {role: row.fair_share for role, row in rows.items()} == {"a": 0.25, "b": 0.75, "idle": 0.0}
    assert rows[Role("b")].dominant_share == 0.75
    assert rows[Role("a")].pending == 9


def test_a_removed_agent_takes_no_index_for_ever() -> None:
    allocator = an_allocator()
    add_framework(allocator, "f", ONE, 3)
    for number in range(1_000):
        add_agent(allocator, f"h{number}", HOST)
        if number:
            allocator.remove_agent(AgentId(f"h{number - 1}"))

    grants = allocator.cycle(0)

    assert [grant.agent_id for grant in grants] == ["h999"]
    allocator.check()


def test_agents_that_hold_something_cannot_be_removed() -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 1)
    allocator.cycle(0)

    with pytest.raises(AssertionError, match="held"):
        allocator.remove_agent(host)
    with pytest.raises(AssertionError, match="held"):
        allocator.remove_framework(framework_id)


def test_a_shrunken_agent_gets_nothing_until_it_fits_again() -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", HOST)
    framework_id = add_framework(allocator, "f", ONE, 4)
    for grant in allocator.cycle(0):
        launch(allocator, grant)
    allocator.update_agent(host, cpus_and_mem(2, 2), {})
    want(allocator, framework_id, ONE, 1)
    allocator.check()

    for held in (3, 2):
        assert allocator.cycle(0) == []
        allocator.release(framework_id, host, ONE)
        allocator.check()
        assert allocator.agent_books(host).tasks == held
    allocator.release(framework_id, host, ONE)

    assert [grant.units for grant in allocator.cycle(0)] == [1]


def test_the_reported_best_agent_lacks_least() -> None:
    allocator = an_allocator()
    add_agent(allocator, "a", cpus_and_mem(4, 1), active=False)
    add_agent(allocator, "b", cpus_and_mem(2, 3))
    unit = cpus_and_mem(4, 4)

    verdict = allocator.feasibility(unit, ())

    assert verdict is not None
    assert verdict.best_agent_id == "b"
    assert verdict.missing == cpus_and_mem(2, 1)
    assert allocator.feasibility(cpus_and_mem(4, 1), ()) is None
    assert an_allocator().feasibility(unit, ()) is None


def test_pack_fills_one_host_and_spread_none_first() -> None:
    for placement, hosts in (("pack", 1), ("spread", 4)):
        allocator = an_allocator(placement=placement)
        for number in range(4):
            add_agent(allocator, f"h{number}", HOST)
        add_framework(allocator, "f", ONE, 4)

        assert len({grant.agent_id for grant in allocator.cycle(0)}) == hosts


def test_align_puts_each_unit_where_its_shape_is_free() -> None:
    allocator = an_allocator()
    add_agent(allocator, "memory", cpus_and_mem(4, 16))
    add_agent(allocator, "cores", cpus_and_mem(16, 4))
    add_framework(allocator, "cruncher", cpus_and_mem(3, 0.5), 1)
    add_framework(allocator, "cache", cpus_and_mem(0.5, 3), 1)

    placed = {grant.framework_id: grant.agent_id for grant in allocator.cycle(0)}

    assert placed == {"cruncher": "cores", "cache": "memory"}


def test_the_same_facts_give_the_same_grants() -> None:
    def history() -> list[str]:
        allocator = an_allocator()
        for number in range(30):
            add_agent(allocator, f"h{number}", scale(HOST, 1 + number % 3))
        for number in range(10):
            add_framework(allocator, f"f{number}", cpus_and_mem(1 + number % 4, 1 + number % 3), 50)
        grants = allocator.cycle(0)
        return [str(grant) for grant in grants] + served(allocator)

    assert history() == history()
    assert KINDS.zero == (0, 0, 0, 0)


def test_weights_of_roles_that_nobody_is_in_are_told_apart() -> None:
    allocator = an_allocator()
    allocator.set_weight(Role("eng/ml"), Weight(3.0))
    allocator.set_weight(Role("ops"), Weight(2.0))

    add_framework(allocator, "f", role="eng/ml/alice")

    assert allocator.weights_in_waiting() == {"ops": Weight(2.0)}
