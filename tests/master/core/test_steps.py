"""No step does more than so much at once, however much there is to do: the rest has its turn with the next ticks."""

from dataclasses import replace

import pytest

from fairlead_master.core import settings
from fairlead_master.core.actions import Action
from fairlead_master.core.machine import Machine
from fairlead_proto.codes import CallCode, DeclineScope
from fairlead_proto.framework_calls import KillAsked, OffersDeclined, ReconcileAsked
from fairlead_proto.framework_events import AnswerCall, FinishReconciliation, ForwardStatuses, SendOffers
from fairlead_proto.ids import FrameworkId, OfferId, TaskId
from fairlead_proto.orders import EndAgentSession, KillTask
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import Constraint, Operator
from tests.builders.master import Cluster, a_class, a_status, resources

TINY = resources(cpus=0.001)
MANY = 2 * settings.TASKS_PER_STEP_MAX + 7


def with_tasks(count: int) -> tuple[Cluster, int]:
    """A cluster whose one framework has so many tasks; gives its session as well."""
    cluster = Cluster()
    cluster.new_agent(cpus=100)
    session, _ = cluster.new_framework()
    for start in range(0, count, 1_000):
        cluster.now_ms += cluster.master.settings.busy_window_ms
        names = [f"t{number}" for number in range(start, min(count, start + 1_000))]
        cluster.launch(session, *names, unit=TINY)
    return cluster, session


def kills_by_tick(cluster: Cluster) -> list[int]:
    """How many tasks each tick that is due now kills."""
    kills = []
    machine: Machine = cluster.machine
    while (due_ms := machine.next_deadline_ms(cluster.now_ms)) is not None and due_ms <= cluster.now_ms:
        kills.append(sum(isinstance(action, KillTask) for action in cluster.tick()))
    return kills


def test_a_teardown_kills_so_many_tasks_a_step_and_all_of_them_at_once_after_another() -> None:
    cluster, session = with_tasks(MANY)

    *orders, answer = cluster.teardown(session)
    at_once = [order for order in orders if isinstance(order, KillTask)]

    assert isinstance(answer, AnswerCall)
    assert len(at_once) == settings.TASKS_PER_STEP_MAX
    assert kills_by_tick(cluster) == [settings.TASKS_PER_STEP_MAX, 7]


def told(found: list[Action]) -> list[str]:
    """The tasks whose states are told."""
    return [
        status.task_id
        for action in found
        if isinstance(action, ForwardStatuses)
        for status in action.statuses
    ]


def test_all_tasks_are_reconciled_so_many_a_step_and_the_end_is_marked_after_the_last() -> None:
    cluster, session = with_tasks(MANY)
    most = settings.TASKS_PER_STEP_MAX

    begun = cluster.reconcile(session)
    again = cluster.reconcile(session)
    cluster.report(1, a_status("f1-1", f"t{MANY - 1}", TaskState.FINISHED))
    parts = [cluster.tick() for _ in range(5)]

    assert len(told(begun)) == most
    assert again == []
    assert all(len(told(part)) <= most for part in parts)
    found = [action for part in (begun, *parts) for action in part]
    ends = [index for index, action in enumerate(found) if isinstance(action, FinishReconciliation)]
    assert [found[index].request_id for index in ends] == [cluster.request - 1, cluster.request]  # type: ignore[union-attr]  # ends
    live = sorted(cluster.master.frameworks[FrameworkId("f1-1")].tasks)
    assert sorted(told(found[: ends[0]])) == live
    assert sorted(told(found[ends[0] :])) == live
    assert not cluster.master.reconciling


def test_a_reconciliation_ends_with_its_session() -> None:
    cluster, session = with_tasks(MANY)
    cluster.reconcile(session)

    cluster.framework_leaves(session)

    assert told(cluster.tick()) == []


def test_frameworks_are_reconciled_in_turns() -> None:
    cluster, session = with_tasks(MANY)
    other, _ = cluster.new_framework()
    cluster.now_ms += cluster.master.settings.busy_window_ms
    cluster.launch(other, "mine", unit=TINY)
    cluster.reconcile(session)

    assert told(cluster.reconcile(other)) == ["mine"]


def test_frameworks_whose_time_is_over_end_so_many_a_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "TASKS_PER_STEP_MAX", 50)
    cluster = Cluster()
    for _ in range(settings.TASKS_PER_STEP_MAX + 3):
        session, _ = cluster.new_framework(failover_timeout_ms=1_000)
        cluster.framework_leaves(session)
    cluster.now_ms += 1_000

    cluster.tick()
    left = len(cluster.master.frameworks)
    cluster.tick()

    assert (left, len(cluster.master.frameworks)) == (3, 0)


def test_a_kill_in_parts_is_answered_once_and_names_what_is_unknown_in_any_of_them() -> None:
    cluster, session = with_tasks(1)
    first = KillAsked(
        session=session, request_id=9, task_ids=(TaskId("x"),), grace_period_ms=0, is_last=False
    )
    last = KillAsked(session=session, request_id=9, task_ids=(TaskId("t0"),), grace_period_ms=0)

    assert cluster.step(first) == []
    kill, answer = cluster.step(last)

    assert isinstance(kill, KillTask)
    assert answer == AnswerCall(
        session=session, request_id=9, code=CallCode.UNKNOWN, detail="tasks not known: x"
    )
    assert cluster.kill(session, "t0")[-1].code is CallCode.OK  # type: ignore[union-attr]  # an answer


def test_a_reconciliation_in_parts_ends_once() -> None:
    cluster, session = with_tasks(2)
    parts = [
        ReconcileAsked(session=session, request_id=9, task_ids=(TaskId(f"t{number}"),), is_last=number == 1)
        for number in range(2)
    ]

    first, last = (cluster.step(part) for part in parts)

    assert [type(action) for action in first] == [ForwardStatuses]
    assert [type(action) for action in last] == [ForwardStatuses, FinishReconciliation]


def test_a_decline_in_parts_is_answered_once() -> None:
    cluster = Cluster()
    cluster.new_agent()
    mine, _ = cluster.new_framework()
    other, _ = cluster.new_framework()
    cluster.demand(other, a_class())
    (foreign,) = cluster.offers()
    last = OffersDeclined(
        session=mine,
        request_id=9,
        offer_ids=(OfferId("o9"),),
        reason="",
        scope=DeclineScope.NOTHING,
        ttl_ms=0,
    )
    first = replace(last, offer_ids=(OfferId(foreign.offer_id),), is_last=False)

    assert cluster.step(first) == []
    (answer,) = cluster.step(last)

    assert isinstance(answer, AnswerCall)
    assert answer.code is CallCode.UNAUTHORIZED


def test_what_no_agent_could_hold_is_looked_for_so_long_and_the_rest_taken_at_its_word() -> None:
    cluster = Cluster()
    for _ in range(20):
        cluster.new_agent(cpus=1)
    session, _ = cluster.new_framework()
    classes = [a_class(f"c{number}", unit=resources(cpus=2 + number)) for number in range(1_000)]
    before = cluster.master.allocator.counters.agents_asked

    (answer,) = cluster.demand(session, *classes)

    assert isinstance(answer, AnswerCall)
    assert answer.code is CallCode.INFEASIBLE
    assert 0 < len(answer.infeasible) < len(classes)
    asked = cluster.master.allocator.counters.agents_asked - before
    assert settings.AGENTS_ASKED_MAX <= asked <= settings.AGENTS_ASKED_MAX + 100


def test_one_class_is_looked_for_so_long_however_many_patterns_it_has() -> None:
    cluster = Cluster()
    for number in range(100):
        cluster.agent(attributes={"name": f"host-{number}"})
    session, _ = cluster.new_framework()
    patterns = [f"host-[0-9]{{1,{most}}}" for most in range(10, 41)]
    wanted = [Constraint("name", Operator.MATCHES, (pattern,)) for pattern in [*patterns, "host-101"]]
    before = cluster.master.allocator.counters.agents_asked

    (answer,) = cluster.demand(session, a_class(constraints=wanted))

    assert isinstance(answer, AnswerCall)
    assert answer.code is CallCode.OK
    asked = cluster.master.allocator.counters.agents_asked - before
    assert settings.AGENTS_ASKED_MAX <= asked < settings.AGENTS_ASKED_MAX + 5_000


def test_a_refusal_repeats_no_more_of_long_constraints_than_a_person_reads() -> None:
    cluster = Cluster()
    cluster.new_agent()
    session, _ = cluster.new_framework()
    long = Constraint("rack", Operator.EQUALS, tuple(f"value{number}" for number in range(100)))

    (answer,) = cluster.demand(session, a_class(constraints=[long]))

    assert isinstance(answer, AnswerCall)
    assert answer.detail.startswith("class c: no registered agent meets rack=value0|value1|")
    assert len(answer.detail) < settings.DETAIL_LENGTH_MAX + 100


def with_offers(count: int) -> Cluster:
    """A cluster whose one framework has so many offers, each of a class of its own and made at one time."""
    cluster = Cluster()
    cluster.new_agent(cpus=1_000)
    session, _ = cluster.new_framework()
    cluster.demand(session, *[a_class(f"c{number}", unit=(1 + number, 1, 0, 0)) for number in range(count)])
    while len(cluster.master.offers) < count:
        cluster.now_ms += cluster.master.settings.busy_window_ms
        cluster.tick()
    (*_, last) = cluster.master.offers.values()
    for offer in cluster.master.offers.values():
        offer.expires_ms = last.expires_ms  # As if one cycle had made them all.
    return cluster


def test_leases_end_so_many_a_tick_and_count_as_one_time_that_nobody_answered() -> None:
    most = settings.OFFERS_ENDED_PER_STEP_MAX
    cluster = with_offers(2 * most + 7)
    (framework,) = cluster.master.frameworks.values()
    cluster.now_ms += cluster.master.settings.offer_lease_ms

    ended = []
    for _ in range(3):
        before = framework.offers_expired
        cluster.tick()
        ended.append(framework.offers_expired - before)
        cluster.master.owes_cycle = False  # Cycles in between are not the point here.

    assert ended == [most, most, 7]
    assert framework.unanswered == 1
    assert not cluster.master.hoarders


def test_a_cycle_has_a_tick_of_its_own_where_much_else_is_due() -> None:
    cluster, session = with_tasks(MANY)
    other, _ = cluster.new_framework()
    cluster.now_ms += 1_000
    cluster.reconcile(session)
    cluster.demand(other, a_class(unit=TINY))

    ticks = [[type(action) for action in cluster.tick()] for _ in range(3)]

    assert ticks == [[ForwardStatuses], [SendOffers], [ForwardStatuses, FinishReconciliation]]


def test_agents_that_are_silent_at_once_are_left_so_many_a_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "TASKS_PER_STEP_MAX", 50)
    cluster = Cluster()
    for _ in range(settings.TASKS_PER_STEP_MAX + 3):
        cluster.new_agent()
    cluster.now_ms += cluster.master.settings.agent_silence_ms

    ended = []
    while cluster.master.agents_heard:
        ended.append(sum(isinstance(action, EndAgentSession) for action in cluster.tick()))

    assert ended == [settings.TASKS_PER_STEP_MAX, 3]
