"""How numbers are written and compared."""

import pytest

from fairlead_sim.simulating.intervals import Estimate
from fairlead_sim.simulating.measures import FIXED, span, unit_of

TIME = FIXED[0]


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

    assert TIME.write_all(row) == ["20 h", "-", "36 ± 1.5 h", "0 h"]
    assert unit_of([]) == 1
