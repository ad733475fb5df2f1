"""One session over many streams, as plain values."""

from collections.abc import Sequence

import pytest

from fairlead_proto.codes import CallCode, ErrorCode, Rejection
from fairlead_proto.framework_calls import (
    FrameworkConnected,
    KillAsked,
    OffersDeclined,
    ReconcileAsked,
    StatusesAcknowledged,
    TeardownAsked,
)
from fairlead_proto.framework_events import (
    AnswerAccept,
    AnswerCall,
    EndFrameworkSession,
    FinishReconciliation,
    Heartbeat,
)
from fairlead_proto.ids import AgentId, FrameworkId, OfferId, TaskId
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskStatus
from fairlead_sdk import Amounts, FrameworkExpired, Refused, Superseded
from fairlead_sdk.calls import Call, Demand, Launch, Scope, SetDemand, greeting
from fairlead_sdk.errors import LinkBroken
from fairlead_sdk.events import (
    AcceptItem,
    Connected,
    DemandAnswered,
    Disconnected,
    Event,
    Offer,
    OffersReceived,
    SessionOver,
    StatusReceived,
    Welcome,
)
from fairlead_sdk.session_state import SessionState
from tests.sdk.builders import a_task

WELCOME = Welcome(
    framework_id="f1", epoch=3, heartbeat_interval_ms=1000, failover_timeout_ms=60_000, role="default"
)
DEMAND = Demand(class_id="c", unit=Amounts(cpus_milli=1000), units=2)
OFFER = Offer(
    offer_id="o1",
    agent_id="a1",
    hostname="h",
    class_id="c",
    demand_version=1,
    units=2,
    unit=DEMAND.unit,
    lease_ms=1000,
)


def a_reconciliation(*task_ids: str) -> ReconcileAsked:
    return ReconcileAsked(task_ids=tuple(map(TaskId, task_ids)))


def acknowledged(*items: tuple[str, int, str]) -> StatusesAcknowledged:
    typed = tuple((TaskId(task_id), sequence, AgentId(agent_id)) for task_id, sequence, agent_id in items)
    return StatusesAcknowledged(items=typed)


def a_status(
    task_id: str = "t1",
    *,
    sequence: int = 1,
    state: TaskState = TaskState.RUNNING,
    reason: Reason = Reason.NONE,
    agent_id: str = "a1",
) -> StatusReceived:
    return StatusReceived(
        TaskStatus(
            framework_id=FrameworkId("f1"),
            task_id=TaskId(task_id),
            agent_id=AgentId(agent_id),
            sequence=sequence,
            state=state,
            reason=reason,
        )
    )


def an_open_session() -> SessionState:
    session = SessionState(greeting(name="n"))
    session.link_opened()
    session.take_outgoing()
    session.receive(3, [WELCOME])
    return session


def sent(session: SessionState) -> list[Call]:
    return [call for _, call in session.take_outgoing()]


def accepted(session: SessionState, *task_ids: str) -> int:
    session.receive(3, [OffersReceived((OFFER,))])
    return session.accept(OFFER, [Launch(task_id, a_task()) for task_id in task_ids])


def reopen(session: SessionState) -> list[tuple[int, Call]]:
    session.link_opened()
    calls = session.take_outgoing()
    session.receive(3, [WELCOME])
    return calls


def rejections(events: Sequence[Event]) -> dict[str, Rejection | None]:
    items = [item for event in events if isinstance(event, AnswerAccept) for item in event.answers]
    assert len({item.task_id for item in items}) == len(items), "a task was answered twice"
    return {item.task_id: item.rejection for item in items}


def test_hello_and_demand_leave_together() -> None:
    session = SessionState(greeting(name="n"))
    session.set_demand((DEMAND,))
    session.link_opened()

    assert sent(session) == [greeting(name="n"), SetDemand(version=2, classes=(DEMAND,))]


def test_only_the_last_of_several_demands_is_sent_and_answers_all() -> None:
    session = an_open_session()
    first = session.set_demand((DEMAND,))
    second = session.set_demand(())

    assert sent(session) == [SetDemand(version=2, classes=())]
    answer = AnswerCall(request_id=second, code=CallCode.OK)
    events = session.receive(3, [answer])
    assert events == [
        AnswerCall(request_id=first, code=CallCode.OK),
        answer,
        DemandAnswered(result=answer),
    ]


def test_of_several_demands_one_that_lifts_declines_is_enough() -> None:
    session = an_open_session()
    session.set_demand((DEMAND,), lift_declines=True)
    session.set_demand(())
    assert sent(session) == [SetDemand(version=2, classes=(), lift_declines=True)]

    session.set_demand((DEMAND,))

    assert sent(session) == [SetDemand(version=3, classes=(DEMAND,), lift_declines=False)]


def test_a_task_that_nobody_knew_is_asked_for_once_it_was_launched() -> None:
    session = an_open_session()
    session.receive(3, [a_status(sequence=0, state=TaskState.LOST, reason=Reason.UNKNOWN_TASK)])
    request_id = accepted(session, "t1")
    session.take_outgoing()
    item = AcceptItem(task_id="t1")
    session.receive(
        3, [AnswerAccept(request_id=request_id, offer_id=OfferId(OFFER.offer_id), answers=(item,))]
    )

    session.link_broken("gone")
    calls = [call for _, call in reopen(session)]

    assert a_reconciliation("t1") in calls


def test_acknowledgements_are_cumulative_and_share_one_call() -> None:
    session = an_open_session()
    for received in (a_status(sequence=1), a_status(sequence=2), a_status("t2")):
        session.receive(3, [received])
        session.acknowledge(received.status)

    assert sent(session) == [acknowledged(("t1", 2, "a1"), ("t2", 1, "a1"))]
    assert sent(session) == []


def test_a_repeated_report_is_passed_on_once_and_acknowledged_again() -> None:
    session = an_open_session()
    assert session.receive(3, [a_status(), a_status()]) == [a_status()]
    assert sent(session) == []

    session.acknowledge(a_status().status)
    assert sent(session) == [acknowledged(("t1", 1, "a1"))]
    assert session.receive(3, [a_status()]) == []
    assert sent(session) == [acknowledged(("t1", 1, "a1"))]


def test_a_report_of_another_agent_on_the_same_id_is_no_repeat() -> None:
    """Forgotten with an end that it had not told, an agent is back; the task was run again elsewhere meanwhile."""
    session = an_open_session()
    session.receive(3, [a_status(sequence=1), a_status(sequence=2, state=TaskState.KILLING)])
    end = a_status(sequence=2, state=TaskState.FINISHED, agent_id="a0")

    assert session.receive(3, [end, end]) == [end]
    session.acknowledge(end.status)
    assert sent(session) == [acknowledged(("t1", 2, "a0"))]


def test_reports_made_by_the_master_are_always_passed_on_and_never_acknowledged() -> None:
    session = an_open_session()
    unreachable = a_status(sequence=0, state=TaskState.UNREACHABLE)

    assert session.receive(3, [unreachable, unreachable]) == [unreachable, unreachable]
    session.acknowledge(unreachable.status)
    assert sent(session) == []


def test_an_accept_never_sent_when_the_stream_breaks_never_happened() -> None:
    session = an_open_session()
    accepted(session, "t1", "t2")

    events = session.link_broken("cut")

    assert rejections(events) == {"t1": Rejection.EXPIRED, "t2": Rejection.EXPIRED}
    assert events[-1] == Disconnected("cut")
    assert not session.in_doubt


def test_an_accept_in_flight_when_the_stream_breaks_is_reconciled() -> None:
    session = an_open_session()
    request_id = accepted(session, "t1", "t2", "t3")
    sent(session)
    assert session.link_broken("cut") == [Disconnected("cut")]
    assert dict(session.in_doubt) == {"t1": "a1", "t2": "a1", "t3": "a1"}

    calls = reopen(session)
    assert [call for _, call in calls] == [
        greeting(framework_id="f1", name="n", last_epoch=3),
        a_reconciliation("t1", "t2", "t3"),
    ]
    events = session.receive(
        3,
        [
            a_status("t1"),
            a_status("t2", sequence=0, state=TaskState.LOST, reason=Reason.UNKNOWN_TASK),
            FinishReconciliation(request_id=calls[1][0]),
        ],
    )

    assert rejections(events) == {"t1": None, "t2": Rejection.EXPIRED, "t3": Rejection.EXPIRED}
    assert [event for event in events if isinstance(event, StatusReceived)] == [a_status("t1")]
    assert {event.request_id for event in events if isinstance(event, AnswerAccept)} == {request_id}
    assert not session.in_doubt


def test_a_doubt_about_an_agent_still_away_is_asked_again_with_a_heartbeat() -> None:
    session = an_open_session()
    accepted(session, "t1")
    sent(session)
    session.link_broken("cut")
    [_, (reconcile_id, _)] = reopen(session)

    away = FinishReconciliation(
        request_id=reconcile_id,
        recovering_agent_ids=(
            AgentId("a1"),
            AgentId("a2"),
        ),
    )
    assert session.receive(3, [away]) == []
    assert sent(session) == []
    session.receive(3, [Heartbeat(1)])
    [(again_id, again)] = session.take_outgoing()
    assert again == a_reconciliation("t1")
    session.receive(3, [Heartbeat(2)])
    assert sent(session) == []

    done = FinishReconciliation(request_id=again_id, recovering_agent_ids=(AgentId("a2"),))
    assert rejections(session.receive(3, [done])) == {"t1": Rejection.EXPIRED}


def test_a_launched_task_the_restarted_master_does_not_know_yet_is_asked_for_again() -> None:
    session = an_open_session()
    request_id = accepted(session, "t1")
    sent(session)
    answer = AnswerAccept(request_id=request_id, offer_id=OfferId("o1"), answers=(AcceptItem(task_id="t1"),))
    session.receive(3, [answer])
    session.link_broken("cut")
    [_, (reconcile_id, _)] = reopen(session)

    session.receive(3, [FinishReconciliation(request_id=reconcile_id, recovering_agent_ids=(AgentId("a9"),))])
    session.receive(3, [Heartbeat(1)])

    assert sent(session) == [a_reconciliation("t1")]


def test_what_is_unanswered_is_asked_again_over_the_next_stream() -> None:
    session = an_open_session()
    session.set_demand((DEMAND,))
    kill_id = session.kill(["t1"])
    reconcile_id = session.reconcile(["t2"])
    teardown_id = session.teardown()
    session.decline(["o9"], reason="", scope=Scope.NOTHING, ttl_ms=0)
    sent(session)
    session.link_broken("cut")

    calls = reopen(session)

    assert [type(call) for _, call in calls] == [
        FrameworkConnected,
        KillAsked,
        ReconcileAsked,
        SetDemand,
        TeardownAsked,
    ]
    assert [number for number, call in calls if not isinstance(call, FrameworkConnected | SetDemand)] == [
        kill_id,
        reconcile_id,
        teardown_id,
    ]


def test_what_was_answered_is_not_asked_again() -> None:
    session = an_open_session()
    kill_id = session.kill(["t1"])
    reconcile_id = session.reconcile()
    sent(session)
    session.receive(
        3,
        [
            AnswerCall(request_id=kill_id, code=CallCode.UNKNOWN),
            FinishReconciliation(request_id=reconcile_id),
        ],
    )
    session.link_broken("cut")

    assert [type(call) for _, call in reopen(session)] == [FrameworkConnected]


def test_offers_die_with_their_stream_and_are_declined_once() -> None:
    session = an_open_session()
    session.receive(3, [OffersReceived((OFFER,))])
    assert session.is_outstanding("o1")
    session.decline(["o1", "o1", "o2"], reason="r", scope=Scope.CLASS, ttl_ms=7)
    assert sent(session) == [
        OffersDeclined(offer_ids=(OfferId("o1"),), reason="r", scope=Scope.CLASS, ttl_ms=7)
    ]

    session.receive(3, [OffersReceived((OFFER,))])
    session.link_broken("cut")
    assert not session.is_outstanding("o1")


@pytest.mark.parametrize(
    ("epoch", "received", "reason"),
    [
        (2, [Heartbeat(1)], "epoch is 2, older than 3"),
        (3, [WELCOME], "second Welcome"),
        (3, [AnswerAccept(request_id=3, offer_id=OfferId("o1"), answers=())], "does not name its tasks"),
        (3, [EndFrameworkSession(code=ErrorCode.TOO_SLOW, detail="read!")], "too_slow: read!"),
        (3, [EndFrameworkSession(code=ErrorCode.SHUTTING_DOWN, detail="bye")], "shutting_down: bye"),
    ],
)
def test_a_broken_rule_or_a_passing_trouble_ends_the_stream_only(
    epoch: int, received: list[Heartbeat], reason: str
) -> None:
    session = an_open_session()
    assert accepted(session, "t1") == 3 - 1
    session.receive(3, [OffersReceived((OFFER,))])
    assert session.accept(OFFER, [Launch("t2", a_task())]) == 3
    sent(session)

    with pytest.raises(LinkBroken, match=reason):
        session.receive(epoch, received)


@pytest.mark.parametrize("first", [Heartbeat(1), OffersReceived(())])
def test_nothing_may_come_before_welcome(first: Heartbeat | OffersReceived) -> None:
    session = SessionState(greeting(name="n"))
    session.link_opened()

    with pytest.raises(LinkBroken, match="expected Welcome first"):
        session.receive(1, [first])


def test_a_welcome_for_another_framework_is_not_believed() -> None:
    session = SessionState(greeting(name="n", framework_id="f9"))
    session.link_opened()

    with pytest.raises(LinkBroken, match="expected framework f9, got Welcome for f1"):
        session.receive(3, [WELCOME])


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.SUPERSEDED, Superseded),
        (ErrorCode.UNKNOWN_FRAMEWORK, FrameworkExpired),
        (ErrorCode.UNAUTHORIZED, Refused),
        (ErrorCode.INVALID, Refused),
        (ErrorCode.LIMIT, Refused),
    ],
)
def test_a_final_error_ends_the_session_under_its_own_name(code: ErrorCode, kind: type[Exception]) -> None:
    session = an_open_session()

    [event] = session.receive(3, [EndFrameworkSession(code=code, detail="because")])

    assert isinstance(event, SessionOver)
    assert type(event.error) is kind
    assert "because" in str(event.error)


def test_a_resumed_session_greets_with_its_id_and_the_highest_epoch_seen() -> None:
    session = an_open_session()
    session.link_broken("cut")
    session.link_opened()

    assert sent(session) == [greeting(framework_id="f1", name="n", last_epoch=3)]
    newer = Welcome(
        framework_id="f1", epoch=4, heartbeat_interval_ms=1, failover_timeout_ms=1, role="default"
    )
    assert session.receive(4, [newer]) == [Connected(welcome=newer, resumed=True)]
    with pytest.raises(LinkBroken, match="older than 4"):
        session.receive(3, [Heartbeat(1)])
