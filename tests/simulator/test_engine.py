"""Virtual time: order, cancellation, and wake-ups that move."""

import gc
from random import Random

from fairlead_sim.engine import Alarm, Engine, collecting_rarely


def an_engine() -> tuple[Engine, list[str]]:
    return Engine(Random(1), now_ms=100), []


def test_things_happen_by_time_and_then_in_the_order_they_were_asked_for() -> None:
    engine, seen = an_engine()
    for at_ms, name in ((120, "late"), (110, "first"), (110, "second"), (50, "past")):
        engine.at(at_ms, lambda name=name: seen.append(f"{engine.now_ms} {name}"))  # type: ignore[misc]

    engine.run_until(115)

    assert seen == ["100 past", "110 first", "110 second"]
    assert engine.now_ms == 115
    assert engine.next_ms() == 120
    assert engine.occurred == 3


def test_what_is_asked_for_while_something_happens_comes_after_it() -> None:
    engine, seen = an_engine()

    def happen() -> None:
        seen.append("cause")
        engine.after(0, lambda: seen.append("effect"))

    engine.after(0, happen)
    engine.after(0, lambda: seen.append("neighbour"))
    engine.run_until(100)

    assert seen == ["cause", "neighbour", "effect"]


def test_a_cancelled_occurrence_does_not_happen() -> None:
    engine, seen = an_engine()
    occurrence = engine.maybe_after(5, lambda: seen.append("no"))

    occurrence.cancel()
    occurrence.cancel()

    assert occurrence.is_cancelled
    assert engine.next_ms() is None
    assert not engine.advance()
    assert seen == []


def test_an_alarm_rings_at_its_last_time_only() -> None:
    engine, seen = an_engine()
    alarm = Alarm(engine, lambda: seen.append(str(engine.now_ms)))

    alarm.move(110)
    alarm.move(130)
    alarm.move(130)
    engine.run_until(125)
    assert seen == []
    engine.run_until(200)
    assert seen == ["130"]
    alarm.move(210)
    alarm.move(None)
    engine.run_until(300)
    assert seen == ["130"]


def test_garbage_is_collected_as_before_once_a_simulation_is_over() -> None:
    before = gc.get_threshold()

    with collecting_rarely():
        assert gc.get_threshold() > before

    assert gc.get_threshold() == before
