"""How numbers are written and compared."""

import pytest

from fairlead_sim.simulating.intervals import Estimate
from fairlead_sim.simulating.measures import FIXED, Best, Kind, Measure, best_of, span, unit_of

TIME = FIXED[0]
COUNT = next(measure for measure in FIXED if measure.name == "violations")
JAIN = next(measure for measure in FIXED if measure.name == "jain")


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0 ms"), (999, "999 ms"), (1000, "1 s"), (59_940, "59.9 s"), (90_000, "1.5 min"), (5_400_000, "1.5 h"),
        (86_400_000, "1 d"), (86_400_000_000, "1,000 d"),
    ],
)  # fmt: skip
def test_a_duration_has_the_largest_unit_it_fills(duration_ms: float, text: str) -> None:
    assert span(duration_ms) == text


def test_times_of_a_row_share_the_unit_of_the_shortest() -> None:
    hour_ms = 3_600_000
    row = [Estimate(20 * hour_ms, None), None, Estimate(36 * hour_ms, 1.5 * hour_ms), Estimate(0, None)]

    assert TIME.write_all(row) == ["20 h", "-", "36 h ± 1.5 h", "0 h"]
    assert unit_of([]) == 1


def test_best_are_those_within_a_hundredth_of_the_best() -> None:
    lower = [Estimate(value, None) for value in (100.0, 100.9, 102.0)]

    assert best_of(TIME, lower) == {0, 1}
    assert best_of(JAIN, [Estimate(0.5, None), None, Estimate(0.9, None)]) == {2}


def test_nothing_is_best_where_all_are_alike_or_nobody_asks() -> None:
    alike = [Estimate(100.0, None), Estimate(100.5, None)]
    neither = Measure("events", "events", Kind.COUNT, Best.NEITHER, lambda run: run.events)

    assert best_of(TIME, alike) == frozenset()
    assert best_of(COUNT, [Estimate(0, None), Estimate(0, None)]) == frozenset()
    assert best_of(TIME, [Estimate(5.0, None), None]) == frozenset()
    assert best_of(neither, [Estimate(5, None), Estimate(50, None)]) == frozenset()
