"""Frameworks: sessions, who may come back under which id, and when it is over for their tasks."""

from fairlead_master.allocation.weights import Weight
from fairlead_master.core import actions, events
from fairlead_master.core.machine import Remembered
from fairlead_proto.codes import CallCode, ErrorCode
from fairlead_proto.framework_calls import FrameworkConnected
from fairlead_proto.framework_events import AnswerCall, EndFrameworkSession, WelcomeFramework
from fairlead_proto.ids import FrameworkId, Role, TaskId
from fairlead_proto.orders import AcknowledgeStatuses, KillTask
from fairlead_proto.task_state import Reason, TaskState
from tests.builders.master import Cluster, a_class, a_status

HOUR_MS = 3600 * 1000


def stored(framework_id: str = "f1-1", role: str = "default", principal: str = "") -> actions.StoreFramework:
    return actions.StoreFramework(
        framework_id=FrameworkId(framework_id),
        name="test",
        role=Role(role),
        principal=principal,
        failover_timeout_ms=HOUR_MS,
    )


def welcomed(session: int, framework_id: str = "f1-1", role: str = "default") -> WelcomeFramework:
    return WelcomeFramework(
        session=session,
        framework_id=FrameworkId(framework_id),
        role=Role(role),
        failover_timeout_ms=HOUR_MS,
        heartbeat_interval_ms=5_000,
    )


def ended(session: int, code: ErrorCode, detail: str) -> EndFrameworkSession:
    return EndFrameworkSession(session=session, code=code, detail=detail)


def kill_of(session: int, task_id: str, reason: Reason, framework_id: str = "f1-1") -> KillTask:
    return KillTask(
        session=session,
        framework_id=FrameworkId(framework_id),
        task_id=TaskId(task_id),
        grace_period_ms=0,
        reason=reason,
    )


def test_a_new_framework_is_written_down_before_it_is_told_its_id() -> None:
    cluster = Cluster()

    assert cluster.framework() == [stored(), welcomed(1)]
    assert cluster.framework() == [stored("f1-2"), welcomed(2, "f1-2")]


def test_a_framework_that_comes_back_keeps_its_id() -> None:
    cluster = Cluster()
    session, framework_id = cluster.new_framework()
    cluster.framework_leaves(session)

    assert cluster.framework(framework_id=framework_id) == [welcomed(2)]


def test_a_newer_session_supersedes_the_old_one_and_its_calls_are_ignored() -> None:
    cluster = Cluster()
    cluster.new_agent()
    old, framework_id = cluster.new_framework()
    cluster.demand(old, a_class())
    (offer,) = cluster.offers()

    taken_over = cluster.framework(framework_id=framework_id)

    assert taken_over == [
        ended(2, ErrorCode.SUPERSEDED, "a newer session took over framework f1-1"),
        welcomed(3),
    ]
    assert cluster.accept(old, offer.offer_id) == []
    assert cluster.demand(old, a_class()) == []
    assert cluster.decline(old, offer.offer_id) == []
    assert cluster.kill(old, "t1") == []
    assert cluster.acknowledge(old, ("t1", 1, "")) == []
    assert cluster.reconcile(old) == []
    assert cluster.teardown(old) == []
    assert cluster.framework_leaves(old) == []
    assert cluster.master.frameworks[framework_id].session == 3


def test_an_unknown_id_is_refused_with_what_to_do() -> None:
    cluster = Cluster()

    assert cluster.framework(framework_id="f9-9") == [
        ended(
            1,
            ErrorCode.UNKNOWN_FRAMEWORK,
            "framework f9-9 is not known here, or is over; start a new one without an id",
        )
    ]


def test_an_id_of_another_principal_is_refused() -> None:
    cluster = Cluster()
    cluster.new_framework(principal="alice")

    assert cluster.framework(framework_id="f1-1", principal="mallory") == [
        ended(2, ErrorCode.UNAUTHORIZED, "framework f1-1 belongs to another principal")
    ]
    assert cluster.master.frameworks[FrameworkId("f1-1")].session == 1


def test_a_framework_cannot_change_its_role() -> None:
    cluster = Cluster()
    session, _ = cluster.new_framework(role="eng")
    cluster.framework_leaves(session)

    assert cluster.framework(framework_id="f1-1", role="ops") == [
        ended(2, ErrorCode.INVALID, "role: expected eng as before, got ops")
    ]


def test_a_framework_that_has_seen_a_newer_master_is_sent_away() -> None:
    cluster = Cluster(remembered=Remembered(epoch=3))

    assert cluster.framework(last_epoch=4) == [
        ended(1, ErrorCode.OLD_EPOCH, "this master has epoch 3, you have seen 4")
    ]
    assert cluster.framework(last_epoch=3)[-1] == welcomed(2, "f3-1")


def test_a_framework_may_bring_the_weight_of_a_role_that_has_none() -> None:
    cluster = Cluster()

    first = cluster.framework(role="eng", weight=2.0)
    second = cluster.framework(role="eng", weight=5.0)

    assert actions.StoreWeight(role=Role("eng"), weight=Weight(2.0)) in first
    assert not any(isinstance(action, actions.StoreWeight) for action in second)
    assert cluster.master.weights == {Role("eng"): Weight(2.0)}


def test_offers_and_demand_of_a_lost_session_are_free_for_others() -> None:
    cluster = Cluster()
    cluster.new_agent(cpus=1)
    first, _ = cluster.new_framework(role="a")
    second, _ = cluster.new_framework(role="b")
    cluster.demand(first, a_class())
    (held,) = cluster.offers()
    cluster.demand(second, a_class())
    assert cluster.offers() == []

    gone = cluster.framework_leaves(first)

    assert gone == []
    (offer,) = cluster.offers()
    assert offer.offer_id != held.offer_id
    assert next(iter(cluster.master.offers.values())).framework.role == "b"


def test_demand_does_not_survive_the_session_and_its_version_starts_anew() -> None:
    cluster = Cluster()
    cluster.new_agent()
    session, framework_id = cluster.new_framework()
    cluster.demand(session, a_class(), version=7)
    cluster.framework_leaves(session)
    cluster.framework(framework_id=framework_id)

    assert cluster.offers() == []
    answer = cluster.demand(cluster.session, a_class(), version=1)

    assert answer == [AnswerCall(session=3, request_id=cluster.request, code=CallCode.OK, demand_version=1)]


def test_tasks_outlive_their_framework_until_its_failover_timeout() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    session, framework_id = cluster.new_framework()
    cluster.launch(session, "t1")
    cluster.report(agent, a_status(framework_id))
    cluster.framework_leaves(session)
    cluster.step(events.AgentBeat(session=agent, used=()))

    early = _wait_with_beats(cluster, agent, HOUR_MS - 1)
    late = _wait_with_beats(cluster, agent, 1)

    assert early == []
    assert late == [
        kill_of(agent, "t1", Reason.FRAMEWORK_REMOVED),
        actions.ForgetFramework(framework_id=framework_id),
    ]
    assert cluster.framework(framework_id=framework_id)[0] == ended(
        3, ErrorCode.UNKNOWN_FRAMEWORK, "framework f1-1 is over; start a new one without an id"
    )


def _wait_with_beats(cluster: Cluster, agent: int, milliseconds: int) -> list[actions.Action]:
    end_ms = cluster.now_ms + milliseconds
    found = []
    while cluster.now_ms < end_ms:
        found += cluster.wait(min(10_000, end_ms - cluster.now_ms))
        found += cluster.step(events.AgentBeat(session=agent, used=()))
    return found


def test_a_framework_chooses_its_failover_timeout() -> None:
    cluster = Cluster()
    session, framework_id = cluster.new_framework(failover_timeout_ms=5_000)
    cluster.framework_leaves(session)

    assert cluster.wait(4_999) == []
    assert cluster.wait(1) == [actions.ForgetFramework(framework_id=framework_id)]
    assert framework_id in cluster.master.completed_frameworks


def test_teardown_ends_the_tasks_and_closes_the_account_after_the_last_of_them() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    session, framework_id = cluster.new_framework()
    cluster.launch(session, "t1", "t2")
    cluster.report(agent, a_status(framework_id, "t1"))

    answer = cluster.teardown(session)

    assert answer == [
        kill_of(agent, "t1", Reason.FRAMEWORK_REMOVED),
        kill_of(agent, "t2", Reason.FRAMEWORK_REMOVED),
        actions.ForgetFramework(framework_id=framework_id),
        AnswerCall(session=session, request_id=cluster.request, code=CallCode.OK),
    ]
    assert framework_id in cluster.master.frameworks, "its tasks still hold resources"

    ends = cluster.report(
        agent,
        a_status(framework_id, "t1", TaskState.KILLED, 2),
        a_status(framework_id, "t2", TaskState.KILLED, 1),
    )

    assert ends == [
        AcknowledgeStatuses(
            session=agent, items=(((framework_id, TaskId("t1")), 2), ((framework_id, TaskId("t2")), 1))
        )
    ], "nobody else will acknowledge them"
    assert framework_id not in cluster.master.frameworks
    assert cluster.framework(framework_id=framework_id)[0] == ended(
        3, ErrorCode.UNKNOWN_FRAMEWORK, "framework f1-1 is over; start a new one without an id"
    )


def test_a_report_on_a_task_of_a_removed_framework_is_acknowledged_and_the_task_killed() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    session, framework_id = cluster.new_framework()
    cluster.teardown(session)

    running = cluster.report(agent, a_status(framework_id))
    over = cluster.report(agent, a_status(framework_id, state=TaskState.KILLED, sequence=2))

    assert running == [
        kill_of(agent, "t1", Reason.FRAMEWORK_REMOVED),
        AcknowledgeStatuses(session=agent, items=(((framework_id, TaskId("t1")), 1),)),
    ]
    assert over == [AcknowledgeStatuses(session=agent, items=(((framework_id, TaskId("t1")), 2),))]


def test_no_more_frameworks_are_admitted_than_the_bound() -> None:
    cluster = Cluster()
    _, framework_id = cluster.new_framework()
    known = cluster.master.frameworks[framework_id]
    # A bound of a hundred thousand is reached by filling the table, since filling it by sessions takes seconds.
    filler = dict.fromkeys((FrameworkId(f"x{number}") for number in range(99_999)), known)
    cluster.master.frameworks.update(filler)

    refused = cluster.machine.step(
        FrameworkConnected(session=9, framework_id=None, name="late", role=Role("default")), cluster.now_ms
    )

    detail = "frameworks: expected at most 100000, got another: tear down those that are over"
    assert refused == [ended(9, ErrorCode.LIMIT, detail)]


def test_ids_carry_the_epoch_in_short() -> None:
    cluster = Cluster()
    cluster.master.epoch = 1_795_231_785

    cluster.new_framework()

    assert list(cluster.master.frameworks) == ["ftou1pl-1"]
