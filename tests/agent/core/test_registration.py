"""Sessions, refusals and epochs."""

import pytest

from fairlead_agent.core.actions import (
    Checkpoint,
    CloseSession,
    ConfirmSession,
    LeaveCluster,
    SendRegistration,
    SendStatuses,
)
from fairlead_agent.core.events import Ordered, SessionClosed, SessionOpened
from fairlead_agent.core.records import IdentityTaken
from fairlead_proto.codes import RefusalCode
from fairlead_proto.ids import AgentId
from fairlead_proto.orders import EndAgentSession
from fairlead_proto.reports import AgentConnected
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import RunningTask
from tests.agent.builders import (
    AGENT,
    BOOT,
    GIB,
    START_MS,
    a_key,
    a_kill,
    a_launch,
    a_registered_agent,
    a_registration,
    a_running_agent,
    a_spec,
    a_start,
    a_started_agent,
    a_status,
    an_ack,
    an_exit,
)


def test_first_registration_asks_for_an_id() -> None:
    agent = a_started_agent(attributes={"rack": "a"})

    assert agent.step(SessionOpened()) == [
        SendRegistration(
            report=AgentConnected(
                agent_id=None,
                incarnation=1,
                hostname="host-1",
                total=(4000, 8 * GIB, 0, 0),
                attributes={"rack": "a"},
                isolation="none",
            )
        )
    ]


def test_id_and_epoch_are_durable_before_anything_else_is_done() -> None:
    agent = a_started_agent()
    agent.step(SessionOpened())

    actions = agent.machine.turn([a_registration(epoch=7)], START_MS)

    identity = IdentityTaken(agent_id=AGENT, boot_id=BOOT, incarnation=1, epoch=7)
    assert actions == [
        Checkpoint(records=(identity,), is_durable=True),
        ConfirmSession(agent_id=AGENT, version="", files_token=""),
    ]


def test_registration_carries_what_runs() -> None:
    agent = a_running_agent("t1")
    agent.step(a_launch("t2"), SessionClosed())

    (registration,) = agent.step(SessionOpened())

    assert isinstance(registration, SendRegistration)
    framework_id, _ = a_key()
    assert registration.report.tasks == (
        RunningTask(framework_id=framework_id, spec=a_spec("t1"), state=TaskState.RUNNING, sequence=1),
        RunningTask(framework_id=framework_id, spec=a_spec("t2"), state=TaskState.STARTING, sequence=0),
    )
    assert registration.report.last_epoch == 1


def test_id_given_by_the_master_replaces_the_old_one() -> None:
    agent = a_registered_agent()
    agent.step(SessionClosed(), SessionOpened(), a_registration(epoch=2, agent_id=AgentId("a2-1")))

    agent.restart()

    assert agent.machine.state.agent_id == "a2-1"


@pytest.mark.parametrize(
    "event",
    [a_launch("t2"), a_kill("t1"), an_ack("t1", 2)],
    ids=lambda event: type(event).__name__,
)
def test_master_of_an_older_epoch_is_not_obeyed(event: object) -> None:
    agent = a_running_agent("t1")
    agent.step(SessionClosed(), SessionOpened(), a_registration(epoch=2))
    agent.step(an_exit())
    before = agent.machine.snapshot()

    actions = agent.step(event)  # type: ignore[arg-type]  # each of the list is an event

    assert actions == [CloseSession(reason="expected a master of epoch 2 or later, got 1")]
    assert agent.machine.snapshot() == before


def test_registration_answer_of_an_older_epoch_is_refused() -> None:
    agent = a_registered_agent()
    agent.step(SessionClosed(), SessionOpened(), a_registration(epoch=5), SessionClosed(), SessionOpened())

    actions = agent.step(a_registration(epoch=4))

    assert actions == [CloseSession(reason="expected a master of epoch 5 or later, got 4")]
    assert not agent.machine.state.is_registered


def test_newer_epoch_seen_on_any_message_is_kept() -> None:
    agent = a_running_agent("t1")

    agent.step(a_kill(epoch=3))

    agent.restart()
    assert agent.machine.state.epoch == 3


@pytest.mark.parametrize("code", [RefusalCode.OLD_EPOCH, RefusalCode.TOO_SLOW, RefusalCode.LIMIT])
def test_passing_refusal_is_tried_again_later(code: RefusalCode) -> None:
    agent = a_started_agent()
    agent.step(SessionOpened())

    actions = agent.step(Ordered(0, EndAgentSession(code=code, detail="later")))

    assert actions == [CloseSession(reason=f"{code.value}: later")]


@pytest.mark.parametrize("code", [RefusalCode.INVALID, RefusalCode.SUPERSEDED])
def test_final_refusal_ends_the_agent(code: RefusalCode) -> None:
    agent = a_registered_agent()

    actions = agent.step(Ordered(1, EndAgentSession(code=code, detail="no")))

    assert actions == [LeaveCluster(is_refused=True, message=f"the master refused ({code.value}): no")]


def test_final_refusal_of_a_replaced_master_does_not_end_the_agent() -> None:
    agent = a_registered_agent()
    agent.step(SessionClosed(), SessionOpened(), a_registration(epoch=2))

    actions = agent.step(Ordered(1, EndAgentSession(code=RefusalCode.SUPERSEDED, detail="no")))

    assert actions == [CloseSession(reason="SUPERSEDED: no")]


def test_answer_of_a_session_that_is_gone_is_not_taken() -> None:
    agent = a_started_agent()
    agent.step(SessionOpened(), SessionClosed())

    assert agent.step(a_registration()) == []
    assert not agent.machine.state.is_registered


def test_statuses_are_not_sent_before_the_registration_is_answered() -> None:
    agent = a_registered_agent()
    agent.step(a_launch(), SessionClosed(), SessionOpened())
    assert agent.step(a_start()) == []

    assert SendStatuses(statuses=(a_status(),)) in agent.step(a_registration())
