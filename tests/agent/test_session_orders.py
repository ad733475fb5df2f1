"""What comes over the stream may be wrong in any field; the rest of its batch still counts."""

import pytest
import structlog
from hypothesis import given
from structlog.testing import capture_logs

from fairlead_agent.core import actions, events
from fairlead_agent.core.events import Ordered, SessionOpened
from fairlead_agent.session import read_batch
from fairlead_proto import convert
from fairlead_proto.agent_messages import (
    write_statuses,
)
from fairlead_proto.codes import RefusalCode
from fairlead_proto.orders import ConfirmAgent, EndAgentSession, UnreadableLaunch
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.task_state import Reason
from fairlead_proto.tasks import TaskSpec
from fairlead_proto.v1 import agent_pb2, types_pb2
from tests.agent.builders import (
    KINDS,
    Driver,
    a_key,
    a_kill,
    a_launch,
    a_registration,
    a_spec,
    an_ack,
)
from tests.builders.messages import any_message, from_a_newer_peer, spoiled

LOG = structlog.get_logger()
TASK = types_pb2.TaskSpec(
    task_id="t1", command=["true"], resources=types_pb2.Resources(cpus_milli=100, mem_bytes=2**20)
)
ORDERS = agent_pb2.MasterMessages(
    epoch=3,
    messages=[
        agent_pb2.MasterMessage(registered=agent_pb2.Registered(agent_id="a1", heartbeat_interval_ms=5_000)),
        agent_pb2.MasterMessage(
            launch=agent_pb2.Launch(tasks=[agent_pb2.LaunchTask(framework_id="f1", task=TASK)])
        ),
        agent_pb2.MasterMessage(
            acknowledge=agent_pb2.AcknowledgeStatuses(
                items=[agent_pb2.StatusAcknowledgement(framework_id="f1", task_id="t1", sequence=1)]
            )
        ),
        agent_pb2.MasterMessage(
            kill=agent_pb2.KillTasks(
                tasks=[
                    agent_pb2.KillTask(
                        framework_id="f1", task_id="t1", grace_period_ms=5, reason="REASON_MAX_RUNTIME"
                    )
                ]
            )
        ),
    ],
)
"""A task's life as a master orders it."""


def read(*messages: agent_pb2.MasterMessage, epoch: int = 3) -> list[events.Event]:
    found, _ = read_batch(agent_pb2.MasterMessages(epoch=epoch, messages=messages), KINDS, LOG, Unknowns())
    return found


def a_launch_message(*specs: TaskSpec, kinds: ResourceKinds = KINDS) -> agent_pb2.MasterMessage:
    message = agent_pb2.MasterMessage()
    for spec in specs:
        convert.fill_task(message.launch.tasks.add(framework_id="f1").task, spec, kinds)
    return message


def a_kill_message(task_id: str, **fields: int) -> agent_pb2.MasterMessage:
    kill = agent_pb2.KillTask(framework_id="f1", task_id=task_id, **fields)  # type: ignore[arg-type]  # numbers
    return agent_pb2.MasterMessage(kill=agent_pb2.KillTasks(tasks=[kill]))


def an_acknowledgement(task_id: str, sequence: int) -> agent_pb2.MasterMessage:
    item = agent_pb2.StatusAcknowledgement(framework_id="f1", task_id=task_id, sequence=sequence)
    return agent_pb2.MasterMessage(acknowledge=agent_pb2.AcknowledgeStatuses(items=[item]))


def test_orders_are_read_in_order_with_the_epoch_of_their_batch() -> None:
    acknowledge = agent_pb2.AcknowledgeStatuses(
        items=[agent_pb2.StatusAcknowledgement(framework_id="f1", task_id="t1", sequence=2)]
    )

    found = read(
        a_launch_message(a_spec("t1")),
        agent_pb2.MasterMessage(acknowledge=acknowledge),
        a_kill_message("t1", grace_period_ms=5, reason=9),
    )

    assert found == [
        a_launch("t1", epoch=3),
        an_ack("t1", 2, epoch=3),
        a_kill("t1", grace_ms=5, reason=Reason.KILLED_BY_OPERATOR, epoch=3),
    ]


def test_one_unusable_task_does_not_keep_the_others_from_running() -> None:
    found = read(a_launch_message(a_spec("t1"), a_spec("t2", resources=(-1, 0, 0, 0)), a_spec("t3")))

    assert found == [
        a_launch("t1", "t3", epoch=3),
        Ordered(
            3,
            UnreadableLaunch(
                framework_id=a_key()[0],
                task_id=a_key("t2")[1],
                detail=f"launch.task.resources.cpus: expected 0 to {2**53} (2^53), got -1",
            ),
        ),
    ]


def test_resource_this_agent_was_not_told_of_is_named() -> None:
    spec = a_spec("t1", resources=(1000, 0, 0, 0, 5))

    (event,) = read(a_launch_message(spec, kinds=ResourceKinds(("tapes",))))

    assert isinstance(event, Ordered)
    unreadable = event.order
    assert isinstance(unreadable, UnreadableLaunch)
    assert "expected a resource this cluster knows (cpus, mem, disk, gpus; others by " in unreadable.detail
    assert "got 'tapes'" in unreadable.detail


@pytest.mark.parametrize(
    ("message", "detail"),
    [
        (a_launch_message(a_spec("../etc")), "launch.task_id: expected 1 to 200 letters"),
        (a_kill_message("t1", grace_period_ms=-1), "kill.grace_period_ms: expected 0 to"),
        (a_kill_message(""), "kill.task_id: expected 1 to 200 letters"),
        (
            agent_pb2.MasterMessage(registered=agent_pb2.Registered(agent_id="a b")),
            "registered.agent_id: expected 1 to 200 letters",
        ),
        (
            agent_pb2.MasterMessage(
                registered=agent_pb2.Registered(agent_id="a1-1", heartbeat_interval_ms=2**63 - 1)
            ),
            "registered.heartbeat_interval_ms: expected 0 to",
        ),
        (an_acknowledgement("\0", 1), "acknowledge.task_id: expected 1 to 200 letters"),
        (an_acknowledgement("t1", 2**64 - 1), "acknowledge.sequence: expected 0 to"),
    ],
)
def test_unusable_message_is_logged_and_what_follows_counts(
    message: agent_pb2.MasterMessage, detail: str
) -> None:
    with capture_logs() as logs:
        found = read(message, a_launch_message(a_spec("t9")))

    assert found == [a_launch("t9", epoch=3)]
    assert [log["event"] for log in logs] == ["message.unreadable"]
    assert logs[0]["detail"].startswith(detail)


def test_an_epoch_that_no_master_can_have_is_not_obeyed() -> None:
    """It would be written down, and every later master be refused as older."""
    with capture_logs() as logs:
        assert read(a_launch_message(a_spec("t9")), epoch=2**64 - 1) == []

    assert logs[0]["detail"].startswith("epoch: expected 0 to")


@given(batch=any_message(agent_pb2.MasterMessages) | spoiled(ORDERS))
def test_whatever_a_master_sends_is_taken_or_logged(batch: agent_pb2.MasterMessages) -> None:
    agent = Driver()
    agent.start()
    agent.step(SessionOpened(), a_registration())
    unknowns = Unknowns()
    with capture_logs() as logs:
        found, file_requests = read_batch(batch, KINDS, LOG, unknowns)

    # An order about no task is none.
    orders = [
        order
        for order in batch.messages
        if (order.launch.tasks or not order.HasField("launch"))
        and (order.kill.tasks or not order.HasField("kill"))
    ]
    assert len(found) + len(file_requests) + len(logs) + unknowns.counts.total() >= len(orders)
    for event in found:
        for action in agent.step(event):
            if isinstance(action, actions.SendStatuses):
                for message in write_statuses(action.statuses):
                    message.SerializeToString()


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (1, RefusalCode.INVALID),
        (2, RefusalCode.OLD_EPOCH),
        (3, RefusalCode.SUPERSEDED),
        (5, RefusalCode.LIMIT),
        (77, RefusalCode.TOO_SLOW),
    ],
)
def test_refusal_of_an_unknown_kind_is_one_to_try_again_after(number: int, code: RefusalCode) -> None:
    refused = agent_pb2.RegistrationRefused(code=number, detail="no")  # type: ignore[arg-type]  # a number

    assert read(agent_pb2.MasterMessage(refused=refused)) == [
        Ordered(3, EndAgentSession(code=code, detail="no"))
    ]


def test_what_only_a_newer_master_knows_is_skipped_counted_and_told_once() -> None:
    told: list[str] = []
    unknowns = Unknowns(lambda what, _detail: told.append(what))
    news = from_a_newer_peer(agent_pb2.MasterMessage())
    kill = from_a_newer_peer(a_kill_message("t1", reason=99))
    refused = agent_pb2.RegistrationRefused(code=77)  # type: ignore[arg-type]  # a number
    batch = agent_pb2.MasterMessages(
        epoch=3, messages=[news, kill, news, agent_pb2.MasterMessage(refused=refused)]
    )

    found, _ = read_batch(from_a_newer_peer(batch), KINDS, LOG, unknowns)

    assert found == [
        a_kill("t1", reason=Reason.NONE, epoch=3),
        Ordered(3, EndAgentSession(code=RefusalCode.TOO_SLOW, detail="")),
    ]
    assert unknowns.counts == {"message": 2, "reason": 1, "code": 1}
    assert told == ["message", "reason", "code"]


def test_the_version_of_a_master_is_read_beside_words_that_nobody_knows() -> None:
    registered = agent_pb2.Registered(
        agent_id="a1", heartbeat_interval_ms=5, version="9.9", capabilities=["skips-unknown", "flies"]
    )

    (event,) = read(agent_pb2.MasterMessage(registered=registered))

    assert isinstance(event, Ordered)
    assert isinstance(event.order, ConfirmAgent)
    assert event.order.version == "9.9"
