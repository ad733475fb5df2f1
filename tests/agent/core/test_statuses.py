"""A status is kept until acknowledged and sent again with growing pauses."""

import pytest

from fairlead_agent.core import limits
from fairlead_agent.core.actions import SendRegistration, SendStatuses
from fairlead_agent.core.events import SessionClosed, SessionOpened, Tick
from fairlead_agent.core.records import StatusesAccepted
from fairlead_proto.task_state import TaskState
from tests.agent.builders import (
    Driver,
    a_key,
    a_kill,
    a_launch,
    a_registered_agent,
    a_registration,
    a_running_agent,
    a_start,
    a_status,
    an_ack,
    an_exit,
)

FINISHED = a_status(sequence=2, state=TaskState.FINISHED, exit_code=0)


def owed(agent: Driver, task: str = "t1") -> list[int]:
    outbox = agent.machine.state.outboxes.get(a_key(task))
    return [status.sequence for status in outbox or []]


def pauses_until_resent(agent: Driver, count: int) -> list[int]:
    """Milliseconds between the resends."""
    pauses: list[int] = []
    sent_ms = agent.now_ms
    while len(pauses) < count:
        next_ms = agent.machine.next_deadline_ms()
        assert next_ms is not None
        if agent.step(Tick(), after_ms=next_ms - agent.now_ms):
            pauses.append(agent.now_ms - sent_ms)
            sent_ms = agent.now_ms
    return pauses


def test_unacknowledged_status_is_sent_again_with_doubling_pauses_up_to_a_minute() -> None:
    agent = a_running_agent("t1")
    agent.step(an_exit())

    assert pauses_until_resent(agent, 7) == [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]


def test_resend_carries_every_unacknowledged_status_in_order() -> None:
    agent = a_registered_agent()
    agent.step(a_launch(), a_start(), an_exit())

    assert agent.step(Tick(), after_ms=limits.RESEND_FIRST_MS) == [
        SendStatuses(statuses=(a_status(), FINISHED))
    ]


def test_acknowledgement_covers_all_before_it() -> None:
    agent = a_registered_agent()
    agent.step(a_launch(), a_start(), an_exit())

    agent.step(an_ack(sequence=2))

    assert owed(agent) == []
    assert agent.machine.next_deadline_ms() is not None  # its sandbox will be removed one day
    assert agent.step(Tick(), after_ms=limits.RESEND_MAX_MS) == []


def test_acknowledgements_out_of_order_and_repeated_change_nothing() -> None:
    agent = a_registered_agent()
    agent.step(a_launch(), a_start(), an_exit())
    agent.step(an_ack(sequence=2))
    written = len(agent.journal)

    agent.step(an_ack(sequence=1), an_ack(sequence=2), an_ack("t9", 5))

    assert owed(agent) == []
    assert len(agent.journal) == written


def test_acknowledgement_of_a_part_keeps_the_rest() -> None:
    agent = a_registered_agent()
    agent.step(a_launch(), a_start(), an_exit())

    agent.step(an_ack(sequence=1))

    assert owed(agent) == [2]


def test_acknowledgement_of_the_first_keeps_the_middle_and_the_last() -> None:
    agent = a_registered_agent()
    agent.step(a_launch(), a_start(), a_kill(grace_ms=5_000), an_exit(code=None, signal=15))
    assert owed(agent) == [1, 2, 3]

    agent.step(an_ack(sequence=1))

    assert owed(agent) == [2, 3]
    (resend,) = agent.step(Tick(), after_ms=limits.RESEND_FIRST_MS)
    assert isinstance(resend, SendStatuses)
    assert [status.state for status in resend.statuses] == [TaskState.KILLING, TaskState.KILLED]
    for journal in (agent.journal, agent.machine.snapshot()):
        agent.journal = journal
        agent.restart()
        assert owed(agent) == [2, 3]


def test_acknowledgement_beyond_what_was_made_does_not_cover_what_comes() -> None:
    agent = a_registered_agent()
    agent.step(a_launch(), a_start())

    agent.step(an_ack(sequence=99), an_exit())

    assert owed(agent) == [2]
    assert StatusesAccepted(key=a_key(), sequence=1) in agent.journal


def test_status_made_without_a_session_goes_with_the_next_registration() -> None:
    agent = a_running_agent("t1")
    agent.step(SessionClosed())
    assert not [action for action in agent.step(an_exit()) if isinstance(action, SendStatuses)]

    (registration,) = agent.step(SessionOpened())

    assert isinstance(registration, SendRegistration)
    assert registration.report.unacknowledged == (FINISHED,)
    assert registration.report.tasks == ()


def test_status_made_while_the_registration_is_unanswered_follows_the_answer() -> None:
    agent = a_running_agent("t1")
    agent.step(SessionClosed(), SessionOpened())
    assert not [action for action in agent.step(an_exit()) if isinstance(action, SendStatuses)]

    actions = agent.step(a_registration())

    assert SendStatuses(statuses=(FINISHED,)) in actions


def test_no_resend_without_a_session() -> None:
    agent = a_running_agent("t1")
    agent.step(an_exit(), SessionClosed())

    assert agent.step(Tick(), after_ms=limits.RESEND_MAX_MS) == []


def test_pause_is_short_again_on_a_new_session() -> None:
    agent = a_running_agent("t1")
    agent.step(an_exit())
    pauses_until_resent(agent, 4)

    agent.step(SessionClosed(), SessionOpened(), a_registration())

    assert pauses_until_resent(agent, 2) == [2_000, 4_000]


def test_resends_of_many_tasks_share_one_message() -> None:
    agent = a_registered_agent()
    for number in range(5):
        agent.step(a_launch(f"t{number}"), a_start(f"t{number}"), after_ms=30)

    next_ms = agent.machine.next_deadline_ms()
    assert next_ms is not None
    (resend,) = agent.step(Tick(), after_ms=next_ms - agent.now_ms)
    assert isinstance(resend, SendStatuses)
    assert [status.task_id for status in resend.statuses] == ["t0", "t1", "t2", "t3", "t4"]


def test_registration_beyond_its_bound_sends_the_rest_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REGISTER_STATUSES_MAX", 3)
    agent = a_registered_agent()
    for number in range(4):
        agent.step(a_launch(f"t{number}"), a_start(f"t{number}"))
    agent.step(SessionClosed())

    (registration,) = agent.step(SessionOpened())
    actions = agent.step(a_registration())

    assert isinstance(registration, SendRegistration)
    assert [status.task_id for status in registration.report.unacknowledged] == ["t0", "t1", "t2"]
    (rest,) = [action for action in actions if isinstance(action, SendStatuses)]
    assert [status.task_id for status in rest.statuses] == ["t3"]
