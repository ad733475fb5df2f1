"""The machine's one verb."""

from typing import get_args

from fairlead_agent.core import events, machine


def test_every_kind_of_event_is_taken() -> None:
    orders = set(get_args(events.MasterOrder))

    assert set(machine._OBEYERS) == orders
    assert set(machine._TAKERS) == set(get_args(events.Event)) - orders
