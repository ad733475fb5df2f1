"""What goes on while nothing can be written down: what adds something is refused, what leaves promises nothing."""

import pytest

from fairlead_master.allocation.weights import Weight
from fairlead_master.core import actions, events
from fairlead_master.core.durability import Released, refusal, release, subject, untold
from fairlead_master.core.machine import Remembered
from fairlead_proto.codes import CallCode, ErrorCode, RefusalCode
from fairlead_proto.framework_calls import FrameworkConnected, TeardownAsked
from fairlead_proto.framework_events import AnswerCall, EndFrameworkSession, SendOffers
from fairlead_proto.ids import AgentId, FrameworkId, Role
from fairlead_proto.orders import ConfirmAgent, EndAgentSession, KillTask
from fairlead_proto.reports import AgentConnected
from tests.builders.master import Cluster, a_class, a_running, resources

WHY = "the disk is full"
NOT_WRITTEN = f"in force, but not written down yet, which is tried again until it is: {WHY}"


def a_hello(
    framework_id: str | None = None, *, weight: float | None = None, last_epoch: int = 0
) -> FrameworkConnected:
    return FrameworkConnected(
        session=9,
        framework_id=FrameworkId(framework_id) if framework_id is not None else None,
        name="n",
        role=Role("default"),
        weight=weight,
        last_epoch=last_epoch,
    )


def a_registration(agent_id: str | None = None, *, cpus: float = 4) -> AgentConnected:
    return AgentConnected(
        session=9,
        agent_id=AgentId(agent_id) if agent_id is not None else None,
        incarnation=2,
        hostname="host",
        total=resources(cpus, 8),
        attributes={},
    )


END = EndFrameworkSession(session=9, code=ErrorCode.LIMIT, detail=WHY)
AGENT_END = EndAgentSession(session=9, code=RefusalCode.LIMIT, detail=WHY)
NO = actions.AnswerOperator(request=1, code=CallCode.LIMIT, error=WHY)
A_WEIGHT = Weight(2.0)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (a_hello(), END),
        (a_hello("f1-1"), None),
        (a_hello("f1-1", weight=2.0), END),
        (a_hello("f9-9"), None),
        (a_hello(last_epoch=99), None),
        (a_registration(), AGENT_END),
        (a_registration("a9-9"), AGENT_END),
        (a_registration("a1-1"), None),
        (a_registration("a1-1", cpus=8), None),
        (events.WeightSet(request=1, role=Role("r"), weight=A_WEIGHT), NO),
        (events.PolicySet(request=1, policy="fifo"), NO),
        (TeardownAsked(session=2, request_id=1), None),
        (events.OperatorTeardownAsked(request=1, framework_id=FrameworkId("f1-1")), None),
        (events.Ticked(), None),
    ],
)
def test_only_what_adds_something_is_refused_and_nothing_changes(
    event: events.Event, expected: actions.Action | None
) -> None:
    cluster = Cluster()
    cluster.new_agent()
    cluster.new_framework()
    version = cluster.master.version

    assert refusal(cluster.master, event, WHY) == expected
    assert cluster.master.version == version
    if expected is None:
        adding = {actions.StoreFramework, actions.StoreWeight, actions.StorePolicy}
        assert adding.isdisjoint(map(type, cluster.step(event)))


def test_an_agent_that_comes_back_after_a_restart_needs_no_write() -> None:
    known = actions.StoreAgent(
        agent_id=AgentId("a1-1"), hostname="host", total=resources(4, 8), attributes=()
    )
    cluster = Cluster(remembered=Remembered(epoch=2, agents=(known,)))

    assert cluster.agent(agent_id="a1-1") == [
        ConfirmAgent(session=1, agent_id=AgentId("a1-1"), heartbeat_interval_ms=5_000)
    ]


def test_the_newest_of_a_subject_stands_for_it() -> None:
    stored = actions.StoreFramework(
        framework_id=FrameworkId("f1-1"), name="n", role=Role("r"), principal="", failover_timeout_ms=1
    )
    known = actions.StoreAgent(agent_id=AgentId("a1-1"), hostname="h", total=(1,), attributes=())

    assert subject(stored) == subject(actions.ForgetFramework(framework_id=FrameworkId("f1-1")))
    assert subject(known) == subject(actions.ForgetAgent(agent_id=AgentId("a1-1")))
    assert len({subject(stored), subject(known), ("weight", "f1-1"), ("policy", "")}) == 4
    assert subject(actions.StoreWeight(role=Role("r"), weight=A_WEIGHT)) == ("weight", "r")
    policy = actions.StorePolicy(policy="fifo", placement="pack", when_head_does_not_fit="skip")
    assert subject(policy) == ("policy", "")


def test_who_was_to_be_told_a_new_id_is_refused_and_undone() -> None:
    cluster = Cluster()
    orders = [*cluster.framework(weight=2.0), *cluster.agent()]
    durable = [order for order in orders if isinstance(order, actions.Durable)]

    released = release(orders, untold(durable), WHY)

    assert released == Released(
        [
            EndFrameworkSession(session=1, code=ErrorCode.LIMIT, detail=WHY),
            EndAgentSession(session=2, code=RefusalCode.LIMIT, detail=WHY),
        ],
        [
            TeardownAsked(session=1, request_id=0),
            events.AgentDisconnected(session=2, reason=WHY),
        ],
    )
    for event in released.undoing:
        cluster.step(event)
    assert cluster.master.framework_by_session == {}
    assert cluster.master.frameworks == {}
    assert cluster.master.agent_by_session == {}


def test_an_agent_nobody_may_hear_of_is_left_out_of_offers() -> None:
    cluster = Cluster()
    session, _ = cluster.new_framework()
    cluster.demand(session, a_class(units=8))
    cluster.new_agent()
    stored = next(order for order in cluster.agent() if isinstance(order, actions.StoreAgent))
    cluster.now_ms += cluster.master.settings.allocation_window_ms
    (sent,) = [order for order in cluster.tick() if isinstance(order, SendOffers)]

    (left,) = release([sent], untold([stored]), WHY).orders

    assert isinstance(left, SendOffers)
    assert {terms.agent_id for terms in sent.offers} == {"a1-1", "a1-2"}
    assert {terms.agent_id for terms in left.offers} == {"a1-1"}
    assert release([left], untold([stored]), WHY).orders == [left]
    only = SendOffers(session=session, offers=tuple(t for t in sent.offers if t.agent_id == "a1-2"))
    assert release([only], untold([stored]), WHY).orders == []


def test_ends_that_are_not_written_take_effect_and_are_not_answered_as_done() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    session, framework_id = cluster.new_framework()
    cluster.launch(session, "t1")

    orders = cluster.step(events.OperatorTeardownAsked(request=7, framework_id=framework_id))
    released = release(orders, untold([]), WHY)

    assert [type(order) for order in released.orders] == [
        EndFrameworkSession,
        KillTask,
        actions.AnswerOperator,
    ]
    assert released.orders[-1] == actions.AnswerOperator(
        request=7, code=CallCode.LIMIT, error=NOT_WRITTEN, tasks_killed=1
    )
    assert released.undoing == []
    assert agent


def test_a_teardown_that_is_not_written_is_not_answered_as_done() -> None:
    cluster = Cluster()
    session, _ = cluster.new_framework()

    released = release(cluster.teardown(session), untold([]), WHY)

    assert released.orders == [
        AnswerCall(session=session, request_id=cluster.request, code=CallCode.LIMIT, detail=NOT_WRITTEN)
    ]


def test_answers_that_wait_for_nothing_leave_as_they_are() -> None:
    cluster = Cluster()
    session, _ = cluster.new_framework()
    orders = cluster.demand(session, a_class())

    assert release(orders, untold([]), WHY).orders == orders


def test_an_agent_that_was_given_up_may_come_back_meanwhile() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    session, framework_id = cluster.new_framework()
    cluster.launch(session, "t1")
    cluster.agent_leaves(agent)
    given_up = cluster.wait(cluster.master.settings.agent_timeout_ms)
    assert untold(order for order in given_up if isinstance(order, actions.Durable)) == frozenset()

    event = a_registration("a1-1")
    assert refusal(cluster.master, event, WHY) is None
    back = cluster.agent(agent_id="a1-1", incarnation=2, tasks=[a_running(framework_id)])

    assert (
        ConfirmAgent(session=cluster.session, agent_id=AgentId("a1-1"), heartbeat_interval_ms=5_000)
        in release(back, frozenset(), WHY).orders
    )
