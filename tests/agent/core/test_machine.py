"""The machine's one verb, for one event and for all of a turn."""

from collections.abc import Sequence
from typing import get_args

from fairlead_agent.core import actions, events, machine
from fairlead_agent.core.records import Record
from fairlead_proto.tasks import TaskStatus
from tests.agent.builders import a_launch, a_registered_agent, a_start, an_ack, an_exit


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
    orders = set(get_args(events.MasterOrder))

    assert set(machine._OBEYERS) == orders
    assert set(machine._TAKERS) == set(get_args(events.Event)) - orders
    assert set(get_args(events.Event)) >= set(machine._OF_TASKS)


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

    by_steps = [action for event in happened for action in one.step(event, now_ms)]
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
