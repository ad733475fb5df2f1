import pytest

from fairlead_cli.parameters import parse_duration, parse_pair, parse_task_bytes, parse_weight


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


@pytest.mark.parametrize("text", ["0", "512B", "512MiB", "1.5G", "1048576", "1073741824"])
def test_amount_that_can_be_meant_passes_unchanged(text: str) -> None:
    assert parse_task_bytes("mem")(text) == text


def test_bare_small_number_is_refused_with_both_things_it_may_mean() -> None:
    with pytest.raises(ValueError, match="mem: expected bytes") as refused:
        parse_task_bytes("mem")("512")

    assert str(refused.value) == (
        "mem: expected bytes such as 512MiB, got '512': that is 512 bytes; write 512MiB or 512B"
    )


@pytest.mark.parametrize("text", ["", "-1", "nan", "MiB", "512 bananas"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="disk: expected bytes such as"):
        parse_task_bytes("disk")(text)
