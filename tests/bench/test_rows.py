"""Figures are judged by their targets and shown beside their floors."""

import json
from math import isnan

import pytest

from fairlead_bench.rows import Row, format_number, make_header, percentile, to_json, to_markdown


def a_row(value: float, target: str, floor: float | None = None) -> Row:
    return Row(name="speed", value=value, unit="tasks/s", target=target, floor=floor)


@pytest.mark.parametrize(
    ("row", "is_met"),
    [
        (a_row(5000, ">= 5000"), True),
        (a_row(4999, ">= 5000"), False),
        (a_row(100, "< 100"), False),
        (a_row(99, "< 100"), True),
        (a_row(40, ">= 0.4 of floor", floor=100), True),
        (a_row(39, ">= 0.4 of floor", floor=100), False),
        (a_row(39, ">= 0.4 of floor"), None),
        (a_row(39, ""), None),
    ],
)
def test_a_target_is_kept_missed_or_cannot_be_judged(row: Row, is_met: bool | None) -> None:
    assert row.is_met is is_met


def test_ratio_is_to_the_floor() -> None:
    assert a_row(30, "", floor=120).ratio == 0.25
    assert a_row(30, "").ratio is None
    assert a_row(30, "", floor=0).ratio is None


def test_json_has_a_header_that_says_what_made_the_figures() -> None:
    report = json.loads(to_json(make_header(seed=7, command="bench"), [a_row(1, "< 2", floor=4)]))

    assert report["header"].keys() >= {"machine", "python", "commit", "command", "seed", "load_average"}
    assert report["header"]["seed"] == 7
    expected = {
        "name": "speed", "value": 1, "unit": "tasks/s", "target": "< 2", "floor": 4, "ratio": 0.25, "is_met": True,
    }  # fmt: skip
    assert report["rows"] == [expected]


def test_markdown_has_one_line_a_row() -> None:
    assert to_markdown([a_row(5321, ">= 5000", floor=10_000)]).splitlines()[2:] == [
        "| speed | 5,321 | tasks/s | >= 5000 | ok | 10,000 | 0.53 |"
    ]


def test_percentiles_are_values_that_were_seen() -> None:
    values = list(range(1, 101))

    assert percentile(values, 0.5) == 51
    assert percentile(values, 0.99) == 100
    assert percentile([3.0], 0.99) == 3.0
    assert isnan(percentile([], 0.5))


def test_numbers_have_three_digits_and_no_exponent() -> None:
    assert [format_number(value) for value in (0.01234, 5.678, 99.95, 1234567.8)] == [
        "0.0123", "5.68", "100", "1,234,568",
    ]  # fmt: skip
