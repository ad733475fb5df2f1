"""How numbers are written and compared."""

import pytest

from fairlead_lab.metrics.measures import FIXED, span, unit_of
from fairlead_lab.metrics.statistics import Estimate

TIME = FIXED[0]
SLOWDOWN, VIOLATIONS = (
    next(measure for measure in FIXED if measure.name == name) for name in ("slowdown.mean", "violations")
)


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

    assert TIME.write_all(row) == ["20 h", "-", "36.0 ± 1.5 h", "0 h"]
    assert unit_of([]) == 1


def test_an_interval_has_as_many_decimals_as_its_mean() -> None:
    day_ms = 86_400_000
    row = [Estimate(7 * day_ms, 4e-5 * day_ms), Estimate(250.3 * day_ms, 41.26 * day_ms)]

    assert TIME.write_all(row) == ["7.00 ± 0.00 d", "250 ± 41 d"]


def test_a_factor_has_no_more_decimals_in_its_interval_than_in_its_mean() -> None:
    row = [Estimate(649.2, 58.41), Estimate(37_597.3, 8412.6), Estimate(12.34, 1.06), Estimate(1.5, None)]

    assert SLOWDOWN.write_all(row) == ["649 ± 58", "37,597 ± 8,413", "12.3 ± 1.1", "1.50"]


def test_people_are_counted_without_an_interval() -> None:
    assert VIOLATIONS.write_all([Estimate(0.2, 0.6), Estimate(2.0, 0.0), Estimate(21.4, 1.9)]) == [
        "0.2",
        "2",
        "21.4",
    ]
