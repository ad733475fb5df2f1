"""What a turn has for one peer becomes few messages, in order, and none that is too large."""

import asyncio
import threading
import tracemalloc

import pytest

from fairlead_master import framework_wire
from fairlead_master.agent_service import beat_events, status_events
from fairlead_master.core import events
from fairlead_master.sessions import READ_BYTES_MAX, RECORDS_PER_EVENT_MAX, Reading, host_of
from fairlead_proto import batches as batches_module
from fairlead_proto import framework_messages
from fairlead_proto.agent_messages import read_heartbeat, read_statuses, write_orders
from fairlead_proto.codes import Rejection
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.framework_calls import KillAsked
from fairlead_proto.framework_events import AnswerAccept, ForwardStatuses, LaunchAnswer, ToFramework
from fairlead_proto.ids import AgentId, FrameworkId, OfferId, TaskId
from fairlead_proto.limits import RECORDS_PER_ACTION_MAX
from fairlead_proto.orders import AcknowledgeStatuses, LaunchTasks, ToAgent
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import TaskSpec, TaskStatus
from fairlead_proto.v1 import agent_pb2, framework_pb2, types_pb2

KINDS = ResourceKinds()
SESSION = 1


def a_forward(first: int, count: int = 1, message: str = "") -> ForwardStatuses:
    statuses = tuple(
        TaskStatus(
            framework_id=FrameworkId("f1"),
            task_id=TaskId(f"t{number}"),
            agent_id=AgentId("a1"),
            sequence=1,
            state=TaskState.RUNNING,
            message=message,
        )
        for number in range(first, first + count)
    )
    return ForwardStatuses(session=SESSION, statuses=statuses)


def an_answer(request_id: int) -> AnswerAccept:
    return AnswerAccept(
        session=SESSION,
        request_id=request_id,
        offer_id=OfferId("o1"),
        answers=(
            LaunchAnswer("t1"),
            LaunchAnswer("t2", Rejection.NO_FIT, "too large"),
        ),
    )


def an_acknowledgement(task_id: str) -> AcknowledgeStatuses:
    return AcknowledgeStatuses(session=SESSION, items=(((FrameworkId("f1"), TaskId(task_id)), 2),))


def a_launch(task_id: str, environment_bytes: int = 0) -> LaunchTasks:
    spec = TaskSpec(
        task_id=TaskId(task_id),
        resources=(1000, 0, 0, 0),
        command=("true",),
        environment={"X": "x" * environment_bytes},
    )
    return LaunchTasks(session=SESSION, framework_id=FrameworkId("f1"), tasks=(spec,))


def to_framework(*orders: ToFramework) -> list[framework_pb2.FrameworkEvents]:
    return framework_messages.write_events(orders, KINDS, epoch=7)


def to_agent(*orders: ToAgent) -> list[agent_pb2.MasterMessages]:
    return write_orders(orders, KINDS, epoch=7)


def test_statuses_that_follow_one_another_share_an_event_and_never_overtake() -> None:
    [batch] = to_framework(a_forward(1), a_forward(2, 2), an_answer(5), a_forward(4), an_answer(6))

    assert batch.epoch == 7
    assert [event.WhichOneof("event") for event in batch.events] == [
        "statuses", "accept_result", "statuses", "accept_result",
    ]  # fmt: skip
    assert [status.task_id for status in batch.events[0].statuses.statuses] == ["t1", "t2", "t3"]
    assert [status.task_id for status in batch.events[2].statuses.statuses] == ["t4"]


def test_an_event_holds_no_more_statuses_than_an_action_may() -> None:
    most = RECORDS_PER_ACTION_MAX
    [batch] = to_framework(a_forward(0, most - 1), a_forward(most, 1), a_forward(most + 1, 2))

    assert [len(event.statuses.statuses) for event in batch.events] == [most, 2]


def test_a_rejected_task_is_told_beside_those_that_were_launched() -> None:
    [batch] = to_framework(an_answer(5))

    launched, rejected = batch.events[0].accept_result.items
    assert (launched.task_id, launched.launched, launched.rejection) == ("t1", True, 0)
    assert (rejected.task_id, rejected.launched) == ("t2", False)
    assert rejected.rejection == framework_pb2.REJECTION_NO_FIT
    assert rejected.detail == "too large"


def test_acknowledgements_that_follow_one_another_share_a_message() -> None:
    [batch] = to_agent(
        an_acknowledgement("t1"), an_acknowledgement("t2"), a_launch("t3"), an_acknowledgement("t3")
    )

    kinds = [message.WhichOneof("message") for message in batch.messages]
    assert kinds == ["acknowledge", "launch", "acknowledge"]
    assert [item.task_id for item in batch.messages[0].acknowledge.items] == ["t1", "t2"]


def test_a_turn_too_large_for_one_batch_becomes_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches_module, "BATCH_BYTES_MAX", 1000)

    batches = to_agent(*(a_launch(f"t{number}", environment_bytes=600) for number in range(5)))
    events = to_framework(
        *(a_forward(number, message="x" * 600) for number in range(2)), an_answer(1), an_answer(2)
    )

    assert [[m.launch.tasks[0].task.task_id for m in batch.messages] for batch in batches] == [
        ["t0", "t1"], ["t2", "t3"], ["t4"],
    ]  # fmt: skip
    assert [len(batch.events) for batch in events] == [1, 2], (
        "what filled the first is followed by the second"
    )
    assert [batch.epoch for batch in batches] == [7, 7, 7]
    assert [batch.epoch for batch in events] == [7, 7]


def a_demand(classes: int, values: int) -> framework_pb2.FrameworkCall:
    """Classes each with 20 constraints of so many values of seven letters."""
    demand = framework_pb2.SetDemand(version=1)
    for number in range(classes):
        wanted = demand.classes.add(class_id=f"c{number}", units=1)
        wanted.unit.cpus_milli = 1000
        for place in range(20):
            named = wanted.constraints.add(
                attribute=f"a{place}", operator=types_pb2.Constraint.OPERATOR_EQUALS
            )
            named.values.extend(f"{number:03d}{place:02d}{value:02d}" for value in range(values))
    return framework_pb2.FrameworkCall(request_id=1, set_demand=demand)


def test_what_a_demand_takes_in_memory_is_estimated_from_its_message_and_not_too_low() -> None:
    call = a_demand(classes=50, values=90)
    tracemalloc.start()
    (event,) = framework_wire.read_call(SESSION, call, KINDS)
    found, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert isinstance(event, events.DemandSet)
    assert call.ByteSize() < found <= event.cost_bytes < 2 * found


def test_a_demand_that_takes_too_much_memory_is_refused_by_name_and_bound() -> None:
    call = a_demand(classes=500, values=90)

    with pytest.raises(InvalidFieldError) as refusal:
        framework_wire.read_call(SESSION, call, KINDS)

    assert str(refusal.value).startswith("set_demand: expected at most 33554432 bytes in memory, got ")


@pytest.mark.parametrize(("said", "expected"), [(None, True), (True, True), (False, False)])
def test_a_demand_that_does_not_say_lifts_what_was_declined(said: bool | None, expected: bool) -> None:
    """Frameworks older than the field rely on it: they say their demand again to be offered everything again."""
    demand = framework_pb2.SetDemand(version=1)
    if said is not None:
        demand.lift_declines = said
    call = framework_pb2.FrameworkCall(set_demand=demand)

    (event,) = framework_wire.read_call(SESSION, call, KINDS)

    assert isinstance(event, events.DemandSet)
    assert event.lift_declines is expected


@pytest.mark.parametrize(
    ("count", "environment_bytes", "why"),
    [
        (1_001, 1, "accept.tasks: expected at most 1000"),
        (900, 10_000, "accept: expected at most 8388608 bytes"),
    ],
)
def test_an_array_is_bounded_as_its_tasks_would_be(count: int, environment_bytes: int, why: str) -> None:
    array = an_array(range(count), environment_bytes)

    with pytest.raises(InvalidFieldError, match=why) as refusal:
        framework_wire.read_call(SESSION, array, KINDS)

    answer = framework_wire.write_invalid(array, refusal.value).accept_result
    assert [item.task_id for item in answer.items[:2]] == ["s:0", "s:1"]


def test_each_task_of_a_wrong_array_is_refused_and_others_are_not() -> None:
    call = an_array(range(2))
    call.accept.arrays.add(template=call.accept.arrays[0].template, indices=[5, 6], count=-1, attempt=2)

    (event,) = framework_wire.read_call(SESSION, call, KINDS)

    assert isinstance(event, events.OfferAccepted)
    assert [task.task_id for task in event.tasks] == ["s:0", "s:1", "s:5.2", "s:6.2"]
    assert [isinstance(task, events.InvalidTask) for task in event.tasks] == [False, False, True, True]


def an_array(indices: range, environment_bytes: int = 0) -> framework_pb2.FrameworkCall:
    template = types_pb2.TaskSpec(task_id="s", command=["true"], resources=types_pb2.Resources(cpus_milli=1))
    template.environment["A"] = "x" * environment_bytes
    array = types_pb2.TaskArray(template=template, indices=indices, count=9, attempt=1)
    return framework_pb2.FrameworkCall(accept=framework_pb2.Accept(offer_id="o1", arrays=[array]))


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:192.0.2.1:40210", "192.0.2.1"),
        ("ipv6:%5B2001:db8::1%5D:40210", "2001:db8::1"),
        ("unix:/run/master", "unix:/run/master"),
        ("", ""),
    ],
)
def test_a_host_is_a_peers_address_without_its_port(peer: str, host: str) -> None:
    assert host_of(peer) == host


def test_a_long_list_of_tasks_becomes_several_events_of_which_the_last_is_answered() -> None:
    count = 2 * RECORDS_PER_EVENT_MAX + 1
    kill = framework_pb2.Kill(task_ids=[f"t{number}" for number in range(count)])

    parts = framework_wire.read_call(SESSION, framework_pb2.FrameworkCall(request_id=7, kill=kill), KINDS)

    assert all(isinstance(part, KillAsked) for part in parts)
    kills = [part for part in parts if isinstance(part, KillAsked)]
    assert [len(part.task_ids) for part in kills] == [RECORDS_PER_EVENT_MAX, RECORDS_PER_EVENT_MAX, 1]
    assert [part.is_last for part in kills] == [False, False, True]
    assert {part.request_id for part in kills} == {7}


def test_many_reports_become_several_events_in_their_order() -> None:
    count = RECORDS_PER_EVENT_MAX + 1
    reports = agent_pb2.StatusReports()
    for number in range(count):
        reports.statuses.add(
            framework_id="f1", task_id=f"t{number}", sequence=1, state=types_pb2.TASK_STATE_RUNNING
        )

    first, last = status_events(SESSION, read_statuses(reports, Unknowns()))

    assert len(first.statuses) == RECORDS_PER_EVENT_MAX
    assert [status.task_id for status in last.statuses] == [f"t{count - 1}"]


def test_a_heartbeat_with_many_measurements_is_read_in_parts() -> None:
    reports = [agent_pb2.TaskUsageReport(framework_id="f", task_id=f"t{number}") for number in range(501)]

    first, last = beat_events(SESSION, *read_heartbeat(agent_pb2.AgentHeartbeat(tasks=reports), KINDS))

    assert (len(first.tasks), first.is_last) == (500, False)
    assert (len(last.tasks), last.is_last) == (1, True)


async def test_large_messages_are_read_in_a_thread_and_small_ones_let_others_in_now_and_then() -> None:
    large, small = a_demand(classes=50, values=90), a_demand(classes=1, values=1)
    reading, here = Reading(), threading.get_ident()
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    where_large = await reading.read(large, threading.get_ident)
    turns = 0
    for _ in range(3 * READ_BYTES_MAX // small.ByteSize()):
        where_small = await reading.read(small, threading.get_ident)
        assert where_small == here
    counting.cancel()

    assert large.ByteSize() > READ_BYTES_MAX
    assert where_large != here
    assert turns >= 2
