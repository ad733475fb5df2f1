"""Statuses and acknowledgements arrive as they were given, be they lists of fields or a message each."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_proto import agent_messages, columns, framework_messages, limits
from fairlead_proto.codes import Rejection
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.framework_events import AnswerAccept, ForwardStatuses, LaunchAnswer
from fairlead_proto.ids import AgentId, FrameworkId, OfferId, TaskId
from fairlead_proto.orders import AcknowledgeStatuses
from fairlead_proto.peers import COLUMNS, NONE, Unknowns
from fairlead_proto.resources import QUANTITY_MAX, ResourceKinds
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskStatus, TaskUsage
from fairlead_proto.v1 import agent_pb2, types_pb2

KINDS = ResourceKinds()
IDS = [f"t{number}" for number in range(columns.STATUSES_MIN)]
PEER = (COLUMNS,)

figures = st.integers(0, QUANTITY_MAX)
usages = st.builds(
    TaskUsage,
    cpu_time_ms=figures,
    mem_bytes=figures,
    mem_peak_bytes=figures,
    mem_limit_bytes=figures,
    sandbox_bytes=figures,
    stdout_bytes=st.none() | figures,
    stderr_bytes=st.none() | figures,
)
statuses = st.builds(
    TaskStatus,
    framework_id=st.sampled_from(["f1", "f2"]).map(FrameworkId),
    task_id=st.sampled_from(["t1", "t2", "t3"]).map(TaskId),
    agent_id=st.just(AgentId("a1")),
    sequence=st.integers(1, limits.COUNT_MAX),
    state=st.sampled_from([TaskState.RUNNING, TaskState.FINISHED, TaskState.LOST]),
    reason=st.sampled_from(Reason),
    message=st.sampled_from(["", "", "", "why"]),
    timestamp_ms=st.integers(0, limits.TIME_MS_MAX),
    exit_code=st.none() | st.integers(0, limits.EXIT_CODE_MAX),
    signal=st.sampled_from([None, None, None, 9]),
    usage=st.none() | usages,
)


def by_task(found: list[TaskStatus]) -> dict[object, list[TaskStatus]]:
    tasks: dict[object, list[TaskStatus]] = {}
    for status in found:
        tasks.setdefault(status.key, []).append(status)
    return tasks


@given(st.lists(statuses, max_size=40))
def test_reports_of_an_agent_arrive_as_they_were_given_each_task_in_order(given_: list[TaskStatus]) -> None:
    messages = agent_messages.write_statuses(given_, PEER)

    found = [
        status
        for message in messages
        for status in agent_messages.read_statuses(message.statuses, Unknowns())
    ]

    assert by_task(found) == by_task(given_)


@given(st.lists(st.lists(statuses, min_size=1)))
def test_what_a_framework_hears_arrives_as_it_was_given_each_task_in_order(
    given_: list[list[TaskStatus]],
) -> None:
    orders = [ForwardStatuses(statuses=tuple(part)) for part in given_]
    (batch,) = framework_messages.write_events(orders, KINDS, epoch=1, peer=PEER)

    found = [
        status
        for event in batch.events
        for status in columns.read_statuses("statuses", event.statuses, Unknowns())
    ]

    assert by_task(found) == by_task([status for part in given_ for status in part])


@given(st.lists(statuses, min_size=1))
def test_a_peer_that_does_not_say_so_gets_a_message_a_status_in_order(given_: list[TaskStatus]) -> None:
    (report,) = agent_messages.write_statuses(given_, NONE)
    (batch,) = framework_messages.write_events([ForwardStatuses(statuses=tuple(given_))], KINDS, epoch=1)

    for message in (report.statuses, batch.events[0].statuses):
        assert not message.columns
        assert columns.read_statuses("statuses", message, Unknowns()) == given_


def a_batch() -> types_pb2.StatusColumns:
    usage = TaskUsage(cpu_time_ms=1, stdout_bytes=0)
    pair = [
        TaskStatus(
            framework_id=FrameworkId("f1"),
            task_id=TaskId(task_id),
            agent_id=AgentId("a1"),
            sequence=1,
            state=TaskState.FINISHED,
            reason=Reason.EXITED,
            timestamp_ms=5,
            exit_code=0,
            usage=usage,
        )
        for task_id in IDS
    ]
    (message,) = agent_messages.write_statuses(pair, PEER)
    (batch,) = message.statuses.columns
    return batch


def set_to(name: str, value: object) -> Callable[[types_pb2.StatusColumns], None]:
    """The second of a list is another; None: the last one is missing."""

    def change(batch: types_pb2.StatusColumns) -> None:
        *path, last = name.split(".")
        column = getattr(getattr(batch, path[0]) if path else batch, last)
        if value is None:
            del column[-1]
        else:
            column[1] = value

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (set_to("task_ids", None), r"columns\[0\].sequences: expected 7, as many as .*.task_ids, got 8"),
        (set_to("exit_codes", None), r"columns\[0\].exit_codes: expected 8, as many as .*.task_ids, got 7"),
        (
            set_to("usage.sandbox_bytes", None),
            r"usage.sandbox_bytes: expected 8, as many as .*cpu_time_ms, got 7",
        ),
        (set_to("measured", False), r"usage.cpu_time_ms: expected 7, as many as measured says, got 8"),
        (set_to("task_ids", "\0"), r"columns\[0\].task_ids\[1\]: expected 1 to 200 letters"),
        (set_to("sequences", 2**60), r"columns\[0\].sequences\[1\]: expected 0 to"),
        (set_to("sequences", 0), r"statuses of t1.sequence: expected 1 or more"),
        (set_to("states", 0), r"columns\[0\].states: expected a task state, got 0"),
        (set_to("states", 1), r"statuses of t1.state: expected a state that an agent may report"),
        (set_to("timestamps_ms", -6), r"columns\[0\].timestamps_ms\[1\]: expected 0 to"),
        (set_to("exit_codes", 256), r"columns\[0\].exit_codes\[1\]: expected -1 to 255, got 256"),
    ],
)
def test_a_wrong_field_of_a_list_is_named(
    change: Callable[[types_pb2.StatusColumns], None], why: str
) -> None:
    batch = a_batch()
    change(batch)

    with pytest.raises(InvalidFieldError, match=why):
        agent_messages.read_statuses(agent_pb2.StatusReports(columns=[batch]), Unknowns())


def test_a_state_of_a_newer_peer_is_left_out_and_its_reason_is_none() -> None:
    batch = a_batch()
    set_to("states", 99)(batch)
    batch.reasons[2] = 99  # type: ignore[call-overload]  # A newer peer's.
    unknowns = Unknowns()

    found = agent_messages.read_statuses(agent_pb2.StatusReports(columns=[batch]), unknowns)

    assert [(status.task_id, status.reason) for status in found[:2]] == [
        ("t0", Reason.EXITED),
        ("t2", Reason.NONE),
    ]
    assert unknowns.counts == {"task state": 1, "reason": 1}


def test_a_figure_that_no_measurement_gives_becomes_the_nearest_that_one_could() -> None:
    batch = a_batch()
    set_to("usage.mem_bytes", -5)(batch)
    set_to("usage.mem_peak_bytes", 2**60)(batch)

    found = agent_messages.read_statuses(agent_pb2.StatusReports(columns=[batch]), Unknowns())

    assert found[1].usage == TaskUsage(cpu_time_ms=1, mem_peak_bytes=QUANTITY_MAX, stdout_bytes=0)


def test_acknowledgements_to_an_agent_arrive_as_they_were_given() -> None:
    f1, f2 = FrameworkId("f1"), FrameworkId("f2")
    items = (((f1, TaskId("t1")), 2), ((f1, TaskId("t2")), 1), ((f2, TaskId("t1")), 5))
    orders = [AcknowledgeStatuses(items=items[:1]), AcknowledgeStatuses(items=items[1:])]

    (batch,) = agent_messages.write_orders(orders, KINDS, epoch=1, peer=PEER)
    (message,) = batch.messages

    assert not message.acknowledge.items
    assert agent_messages.read_orders(message, KINDS, Unknowns()) == [AcknowledgeStatuses(items=items)]


def test_a_wrong_list_of_acknowledgements_is_named() -> None:
    part = types_pb2.AcknowledgementColumns(framework_id="f1", task_ids=["t1"], sequences=[1, 2])
    message = agent_pb2.MasterMessage(acknowledge=agent_pb2.AcknowledgeStatuses(columns=[part]))

    with pytest.raises(InvalidFieldError, match=r"acknowledge.columns.sequences: expected 1, as many as"):
        agent_messages.read_orders(message, KINDS, Unknowns())


@pytest.mark.parametrize("rejection", [None, Rejection.NO_FIT])
def test_an_accept_of_which_all_was_launched_is_answered_by_ids_alone(rejection: Rejection | None) -> None:
    answer = AnswerAccept(
        request_id=1,
        offer_id=OfferId("o1"),
        answers=(LaunchAnswer("t1"), LaunchAnswer("t2", rejection)),
    )

    (batch,) = framework_messages.write_events([answer], KINDS, epoch=1, peer=PEER)
    (event,) = batch.events

    assert list(event.accept_result.launched) == ([] if rejection else ["t1", "t2"])
    assert framework_messages.read_event("", "accept_result", event, Unknowns()) == answer
