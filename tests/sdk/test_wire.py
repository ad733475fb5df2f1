"""What a master says is taken or refused by name; a session goes on with what it could read."""

from dataclasses import replace

import pytest
from hypothesis import given

from fairlead_master.framework_wire import read_call
from fairlead_proto.codes import CallCode, ErrorCode, Rejection
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.framework_calls import StatusesAcknowledged
from fairlead_proto.framework_events import AnswerAccept, AnswerCall, EndFrameworkSession
from fairlead_proto.ids import AgentId, TaskId
from fairlead_proto.peers import ARRAYS, COLUMNS, Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.task_state import Reason
from fairlead_proto.tasks import ArrayMember
from fairlead_proto.v1 import framework_pb2, types_pb2
from fairlead_sdk.calls import Accept, Launch
from fairlead_sdk.events import StatusReceived
from fairlead_sdk.task import Task
from fairlead_sdk.wire import read_events, write_batches
from tests.builders.messages import any_message, from_a_newer_peer, spoiled

AMOUNT = types_pb2.Resources(cpus_milli=100, mem_bytes=2**20)
WELCOME = framework_pb2.Welcome(
    framework_id="f1", epoch=1, heartbeat_interval_ms=5_000, failover_timeout_ms=5, role="default"
)
OFFER = framework_pb2.Offer(
    offer_id="o1", agent_id="a1", hostname="h", attributes={"rack": "a"}, class_id="c",
    demand_version=1, units=2, unit=AMOUNT, lease_ms=5_000,
)  # fmt: skip
STATUS = types_pb2.TaskStatus(
    framework_id="f1", task_id="t1", agent_id="a1", sequence=1, state="TASK_STATE_FAILED", exit_code=1
)
RESULT = framework_pb2.CallResult(
    request_id=1,
    code="CALL_CODE_INFEASIBLE",
    infeasible=[framework_pb2.Infeasible(class_id="c", best_agent_id="a1", missing=AMOUNT)],
)
ACCEPTED = framework_pb2.AcceptResult(
    request_id=2, offer_id="o1", items=[framework_pb2.AcceptResult.Item(task_id="t", launched=True)]
)
EVENTS = framework_pb2.FrameworkEvents(
    epoch=1,
    events=[
        framework_pb2.FrameworkEvent(welcome=WELCOME),
        framework_pb2.FrameworkEvent(result=RESULT),
        framework_pb2.FrameworkEvent(accept_result=ACCEPTED),
        framework_pb2.FrameworkEvent(offers=framework_pb2.Offers(offers=[OFFER])),
        framework_pb2.FrameworkEvent(rescind=framework_pb2.Rescind(offer_ids=["o1"], reason="r")),
        framework_pb2.FrameworkEvent(statuses=framework_pb2.TaskStatuses(statuses=[STATUS])),
        framework_pb2.FrameworkEvent(reconcile_done=framework_pb2.ReconcileDone(recovering_agent_ids=["a"])),
        framework_pb2.FrameworkEvent(agent_gone=framework_pb2.AgentGone(agent_id="a1", reason="r")),
        framework_pb2.FrameworkEvent(error=framework_pb2.Error(code="ERROR_CODE_LIMIT", detail="d")),
        framework_pb2.FrameworkEvent(heartbeat=framework_pb2.Heartbeat(master_time_ms=5)),
    ],
)
"""One of each kind."""


def test_acknowledgements_are_lists_for_a_master_that_reads_those() -> None:
    seen = (("t1", 2, "a1"), ("t2", 1, "a2"), ("t3", 1, "a1"))
    items = tuple((TaskId(task_id), sequence, AgentId(agent_id)) for task_id, sequence, agent_id in seen)

    (older,) = write_batches([(1, StatusesAcknowledged(items=items))])
    (newer,) = write_batches([(1, StatusesAcknowledged(items=items))], (COLUMNS,))

    assert [item.task_id for item in older.calls[0].acknowledge.items] == ["t1", "t2", "t3"]
    assert not older.calls[0].acknowledge.columns
    assert newer.calls[0].acknowledge == framework_pb2.Acknowledge(
        columns=[
            types_pb2.AcknowledgementColumns(agent_id="a1", task_ids=["t1", "t3"], sequences=[2, 1]),
            types_pb2.AcknowledgementColumns(agent_id="a2", task_ids=["t2"], sequences=[1]),
        ]
    )


def test_members_of_arrays_reach_a_master_the_same_as_arrays_or_each_for_itself() -> None:
    sweep, other = Task(command=["echo", "{}"], env={"A": "b"}), Task(command=["true"], name="n")
    first, second, third = (
        ArrayMember(array_id=TaskId("s"), index=index, count=9, argument=f"x{index}") for index in (1, 4, 2)
    )
    launches = (
        Launch("s:1", sweep, first),
        Launch("s:4", sweep, second),
        Launch("s:2.3", sweep, third),
        Launch("o:7", other, ArrayMember(array_id=TaskId("o"), index=7, count=8)),
    )
    accept = Accept(offer_id="o1", agent_id="a1", launches=launches)

    (older,) = write_batches([(1, accept)])
    (newer,) = write_batches([(1, accept)], (ARRAYS,))
    (mixed,) = write_batches([(1, replace(accept, launches=(*launches, Launch("t", other))))], (ARRAYS,))

    assert not older.calls[0].accept.arrays
    assert [list(array.indices) for array in newer.calls[0].accept.arrays] == [[1, 4], [2], [7]]
    assert not newer.calls[0].accept.tasks
    (sent,), (as_arrays,) = (read_call(1, batch.calls[0], ResourceKinds()) for batch in (older, newer))
    assert sent == as_arrays
    assert len(mixed.calls[0].accept.tasks) == 5, "the answer names the tasks in the order of the call"


@given(message=any_message(framework_pb2.FrameworkEvents) | spoiled(EVENTS))
def test_whatever_a_master_sends_is_taken_or_refused(message: framework_pb2.FrameworkEvents) -> None:
    try:
        events = read_events(message, Unknowns())
    except InvalidFieldError:
        return
    others = [event for event in message.events if event.WhichOneof("event") not in ("statuses", None)]
    assert len(events) >= len(others)


def test_what_only_a_newer_master_knows_is_skipped_or_taken_as_a_no() -> None:
    unknowns = Unknowns()
    news = framework_pb2.FrameworkEvent()
    statuses = [
        types_pb2.TaskStatus(framework_id="f1", task_id="t1", state=99),  # type: ignore[arg-type]  # a number
        types_pb2.TaskStatus(framework_id="f1", task_id="t2", state="TASK_STATE_FAILED", reason=99),  # type: ignore[arg-type]  # a number
    ]
    result = framework_pb2.CallResult(request_id=1, code=99)  # type: ignore[arg-type]  # a number
    item = framework_pb2.AcceptResult.Item(task_id="t3", rejection=99)  # type: ignore[arg-type]  # a number
    ended = framework_pb2.Error(code=99, detail="d")  # type: ignore[arg-type]  # a number
    message = framework_pb2.FrameworkEvents(
        events=[
            from_a_newer_peer(news),
            from_a_newer_peer(framework_pb2.FrameworkEvent(statuses=framework_pb2.TaskStatuses(statuses=statuses))),
            framework_pb2.FrameworkEvent(result=result),
            framework_pb2.FrameworkEvent(accept_result=framework_pb2.AcceptResult(offer_id="o1", items=[item])),
            framework_pb2.FrameworkEvent(error=ended),
        ]
    )  # fmt: skip

    status, answer, accepted, error = read_events(message, unknowns)

    assert isinstance(status, StatusReceived)
    assert (status.status.task_id, status.status.reason) == ("t2", Reason.NONE)
    assert isinstance(answer, AnswerCall)
    assert answer.code is CallCode.INVALID
    assert isinstance(accepted, AnswerAccept)
    assert accepted.answers[0].rejection is Rejection.EXPIRED
    assert error == EndFrameworkSession(code=ErrorCode.SHUTTING_DOWN, detail="d")
    assert unknowns.counts == {"event": 1, "task state": 1, "reason": 1, "code": 3}


def test_a_code_that_nobody_set_is_no_news_but_a_fault() -> None:
    message = framework_pb2.FrameworkEvents(
        events=[framework_pb2.FrameworkEvent(result=framework_pb2.CallResult())]
    )

    with pytest.raises(InvalidFieldError, match=r"result.code: expected 1 to 6, got 0"):
        read_events(message, Unknowns())


def a_welcome(**changes: object) -> framework_pb2.FrameworkEvent:
    welcome = framework_pb2.Welcome()
    welcome.CopyFrom(WELCOME)
    welcome.MergeFrom(framework_pb2.Welcome(**changes))  # type: ignore[arg-type]  # the test names the field
    return framework_pb2.FrameworkEvent(welcome=welcome)


def an_offer(**changes: object) -> framework_pb2.FrameworkEvent:
    offer = framework_pb2.Offer()
    offer.CopyFrom(OFFER)
    offer.MergeFrom(framework_pb2.Offer(**changes))  # type: ignore[arg-type]  # the test names the field
    return framework_pb2.FrameworkEvent(offers=framework_pb2.Offers(offers=[offer]))


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        (a_welcome(epoch=2**63), "events[0].welcome.epoch: expected 0 to"),
        (a_welcome(heartbeat_interval_ms=2**63 - 1), "events[0].welcome.heartbeat_interval_ms: expected 0 to"),
        (a_welcome(failover_timeout_ms=-1), "events[0].welcome.failover_timeout_ms: expected 0 to"),
        (a_welcome(role="\0"), "events[0].welcome.role: expected lower-case words"),
        (an_offer(units=2**63 - 1), "events[0].offers: expected units of 1 to 10000000"),
        (an_offer(lease_ms=2**63 - 1), "events[0].offers: expected units of 1 to"),
        (an_offer(hostname="\x1b[2J"), "events[0].offers.hostname: expected at most 256 printable"),
        (an_offer(unit=types_pb2.Resources(gpus_milli=-1)), "events[0].offers.unit.gpus: expected 0 to"),
        (an_offer(demand_version=2**64 - 1), "events[0].offers.demand_version: expected 0 to"),
        (framework_pb2.FrameworkEvent(agent_gone=framework_pb2.AgentGone()), "events[0].agent_gone.agent_id: expected 1 to"),
    ],
)  # fmt: skip
def test_an_event_with_a_bad_field_is_refused_by_name(
    event: framework_pb2.FrameworkEvent, complaint: str
) -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        read_events(framework_pb2.FrameworkEvents(events=[event]), Unknowns())

    assert str(refusal.value).startswith(complaint)
