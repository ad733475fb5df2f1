"""The machine's one verb, for one event and for all of a turn, and what of a turn waits for the journal."""

from collections.abc import Sequence
from typing import get_args

import pytest

from fairlead_agent.core import actions, events, machine
from fairlead_agent.core.records import Record, StatusMade, TaskLaunched
from fairlead_agent.core.turn import Turn
from fairlead_proto.orders import EndAgentSession, Order, PingAgent
from fairlead_proto.tasks import TaskStatus
from tests.agent.builders import a_launch, a_registered_agent, a_registration, a_start, an_ack, an_exit


def a_registered_machine() -> tuple[machine.AgentMachine, int]:
    driver = a_registered_agent()
    return driver.machine, driver.now_ms


def parted(decided: Sequence[actions.Action]) -> tuple[list[Record], list[actions.Action], list[TaskStatus]]:
    """What is written down, what is done, what is reported."""
    records: list[Record] = []
    done: list[actions.Action] = []
    statuses: list[TaskStatus] = []
    for action in decided:
        if isinstance(action, actions.Checkpoint):
            records += action.records
        elif isinstance(action, actions.SendStatuses):
            statuses += action.statuses
        else:
            done.append(action)
    return records, done, statuses


def test_every_kind_of_event_is_taken() -> None:
    orders = set(get_args(Order))

    assert set(machine._OBEYERS) == orders - {EndAgentSession}
    assert set(machine._TAKERS) == set(get_args(events.Event))
    assert set(get_args(events.Event)) | orders >= machine._OF_TASKS


def test_a_turn_puts_together_what_is_said_of_tasks() -> None:
    one, now_ms = a_registered_machine()
    other, _ = a_registered_machine()
    happened: list[events.Event] = [
        a_launch("t1", "t2"),
        a_start("t1"),
        a_start("t2"),
        an_exit("t1"),
        an_ack("t1", 2),
    ]

    by_steps = [action for event in happened for action in one.turn([event], now_ms)]
    by_turn = other.turn(happened, now_ms)

    assert parted(by_turn) == parted(by_steps)
    assert isinstance(by_turn[0], actions.Checkpoint), "nothing is done before it is written down"
    assert isinstance(by_turn[-1], actions.SendStatuses)
    assert len(by_turn) == 2 + len(parted(by_turn)[1])
    assert other.snapshot() == one.snapshot()


def test_a_turn_carries_no_status_past_the_end_of_its_session() -> None:
    agent, now_ms = a_registered_machine()

    decided = agent.turn(
        [a_launch("t1"), a_start("t1"), events.SessionClosed(), events.SessionOpened()], now_ms
    )

    kinds = [type(action) for action in decided]
    assert kinds.index(actions.SendStatuses) < kinds.index(actions.SendRegistration)


def test_an_order_of_an_older_master_closes_the_session_after_what_was_said_in_it() -> None:
    agent, now_ms = a_registered_machine()

    decided = agent.turn([a_launch("t1"), a_start("t1"), an_ack("t1", epoch=0)], now_ms)

    assert [type(action) for action in decided[-2:]] == [actions.SendStatuses, actions.CloseSession]


def test_nothing_is_released_twice_and_no_turn_begins_before_the_last_one_is_released() -> None:
    machine, now_ms = a_registered_machine()
    turn = Turn(machine)
    turn.events.extend([a_launch("t1"), a_start("t1")])

    turn.run(now_ms)
    with pytest.raises(AssertionError, match="not released before the next turn"):
        turn.run(now_ms)

    assert [type(record) for record in turn.records] == [TaskLaunched, StatusMade]
    assert [type(action) for action in turn.release()] == [actions.StartProcess]
    turn.begin_sync()
    turn.end_sync()
    assert [type(action) for action in turn.release()] == [actions.SendStatuses]
    assert turn.release() == []


def test_what_goes_to_the_master_waits_for_the_disk_in_order_and_nothing_else_does() -> None:
    machine, now_ms = a_registered_machine()
    turn = Turn(machine)

    def after(*happened: events.Event) -> list[str]:
        turn.events.extend(happened)
        turn.run(now_ms)
        return [type(action).__name__ for action in turn.release()]

    def wants_sync() -> bool:
        return turn.wants_sync

    assert after(a_launch("t1"), a_start("t1")) == ["StartProcess"]
    assert wants_sync() is True
    turn.begin_sync()
    assert wants_sync() is False
    assert after(events.Ordered(1, PingAgent()), a_launch("t2")) == ["SendHeartbeat", "StartProcess"]
    assert after(an_exit("t1")) == ["ForgetProcess"]
    assert wants_sync() is False, "before the first one is done"
    turn.end_sync()
    assert after() == ["SendStatuses"]
    assert wants_sync() is True
    turn.begin_sync()
    turn.end_sync()
    assert after() == ["SendStatuses"]
    assert wants_sync() is False


def test_a_registration_is_the_first_of_its_session_whatever_was_held_for_the_one_before() -> None:
    machine, now_ms = a_registered_machine()
    turn = Turn(machine)
    turn.events.extend([a_launch("t1"), a_start("t1")])
    turn.run(now_ms)
    turn.release()
    turn.begin_sync()

    turn.events.extend([events.SessionClosed(), events.SessionOpened()])
    turn.run(now_ms)
    turn.release()
    turn.end_sync()

    turn.run(now_ms)
    (hello,) = turn.release()
    assert isinstance(hello, actions.SendRegistration)
    assert [status.task_id for status in hello.report.unacknowledged] == ["t1"]


def test_what_is_said_before_leaving_is_not_for_a_session_that_began_meanwhile() -> None:
    machine, now_ms = a_registered_machine()
    turn = Turn(machine)
    leave = events.LeaveRequested(is_stopping_tasks=False, reason="bye")

    turn.events.extend([a_launch("t1"), a_start("t1"), leave, events.SessionClosed(), events.SessionOpened()])
    turn.run(now_ms)

    assert [type(action).__name__ for action in turn.release()] == ["StartProcess", "LeaveCluster"]


def test_an_agent_that_leaves_waits_for_the_disk_and_says_all_before() -> None:
    machine, now_ms = a_registered_machine()
    turn = Turn(machine)
    turn.events.extend([a_launch("t1"), a_start("t1")])
    turn.run(now_ms)
    turn.release()

    turn.events.append(events.LeaveRequested(is_stopping_tasks=False, reason="bye"))
    turn.run(now_ms)

    assert turn.must_sync
    assert [type(action).__name__ for action in turn.release()] == [
        "SendStatuses",
        "SendGoodbye",
        "LeaveCluster",
    ]
    assert not turn.wants_sync


def test_a_turn_takes_no_more_than_it_may_and_a_tick_that_is_due_after_it() -> None:
    driver = a_registered_agent()
    driver.step(events.SessionClosed(), events.SessionOpened(), a_registration(heartbeat_ms=100))
    turn = Turn(driver.machine)
    turn.events.extend([a_launch("t1"), a_launch("t2")])
    due_ms = driver.machine.next_deadline_ms()
    assert due_ms is not None

    turn.run(due_ms, events_max=1)

    assert (turn.stepped_count, list(turn.events)) == (1, [a_launch("t2")])
    assert actions.MeasureUsage() in turn.release()
