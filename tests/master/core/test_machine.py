"""The machine's one verb."""

from typing import get_args

from fairlead_master.core import events, machine
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_proto.ids import Role
from fairlead_proto.resources import ResourceKinds


def test_every_kind_of_event_is_taken() -> None:
    assert set(machine._HANDLERS) == set(get_args(events.Event))


def test_a_turn_is_one_step_after_the_other() -> None:
    one, other = (Machine(ResourceKinds(), CoreSettings(), Remembered(epoch=1), 0) for _ in range(2))
    happened: list[events.Event] = [
        events.FrameworkConnected(session=1, framework_id=None, name="a", role=Role("a")),
        events.FrameworkConnected(session=2, framework_id=None, name="b", role=Role("b")),
        events.TeardownAsked(session=1, request_id=1),
    ]

    by_steps = [action for event in happened for action in one.step(event, 5)]

    assert len(by_steps) >= len(happened)
    assert other.turn(happened, 5) == by_steps
    assert other.turn([], 6) == []
