import pytest

from fairlead_cli.parameters import parse_duration, parse_pair, parse_weight


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [("0", 0), ("500ms", 500), ("10s", 10_000), ("1.5s", 1_500), ("5m", 300_000), ("1h30m", 5_400_000), ("2d", 172_800_000)],
)  # fmt: skip
def test_duration_is_read(text: str, expected_ms: int) -> None:
    assert parse_duration(text) == expected_ms


@pytest.mark.parametrize("text", ["", "5", "-1s", "1w", "s", "1 s", "1e9s", "nan", "infs"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as"):
        parse_duration(text)


def test_duration_beyond_a_year_is_refused() -> None:
    with pytest.raises(ValueError, match="expected at most 366d"):
        parse_duration("367d")


def test_pair_may_have_an_empty_value_and_further_equals_signs() -> None:
    assert parse_pair("A=") == ("A", "")
    assert parse_pair("A=b=c") == ("A", "b=c")


@pytest.mark.parametrize("text", ["A", "=b", ""])
def test_what_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected NAME=VALUE"):
        parse_pair(text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e7", "x"])
def test_what_is_no_weight_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number from"):
        parse_weight(text)
