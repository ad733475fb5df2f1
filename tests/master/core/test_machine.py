"""The machine's one verb."""

from typing import get_args

from fairlead_master.core import events, machine


def test_every_kind_of_event_is_taken() -> None:
    assert set(machine._HANDLERS) == set(get_args(events.Event))
