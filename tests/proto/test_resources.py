"""Vectors of integers, and the texts people write for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_proto.resources import (
    QUANTITY_MAX,
    ResourceError,
    ResourceKinds,
    add,
    fits,
    format_bytes,
    format_milli,
    missing,
    parse_bytes,
    parse_milli,
    scale,
    subtract,
    sum_vectors,
    units_that_fit,
)

KINDS = ResourceKinds(custom=("licenses",))
AMOUNTS = st.integers(0, QUANTITY_MAX)
VECTORS = st.tuples(*[AMOUNTS] * 5)


@given(VECTORS)
def test_a_formatted_vector_parses_to_itself(vector: tuple[int, ...]) -> None:
    text = KINDS.format(vector)

    assert KINDS.parse("" if text == "nothing" else text) == vector


@given(AMOUNTS)
def test_formatted_thousandths_parse_to_themselves(amount: int) -> None:
    assert parse_milli("cpus", format_milli(amount)) == amount


@given(AMOUNTS)
def test_formatted_bytes_parse_to_themselves(amount: int) -> None:
    assert parse_bytes("mem", format_bytes(amount)) == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1", 1000), ("0.5", 500), (".25", 250), ("1.5", 1500), ("0", 0), ("1e3", 1_000_000), (" 2 ", 2000)],
)
def test_cores_are_read_in_thousandths(text: str, amount: int) -> None:
    assert parse_milli("cpus", text) == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1024", 1024),
        ("1KiB", 1024),
        ("1K", 1000),
        ("1kb", 1000),
        ("1.5GiB", 3 * 2**29),
        ("8G", 8 * 10**9),
        ("2 MiB", 2 * 2**20),
        ("1T", 10**12),
    ],
)
def test_bytes_are_read_with_binary_and_decimal_units(text: str, amount: int) -> None:
    assert parse_bytes("mem", text) == amount


@pytest.mark.parametrize(
    "text",
    ["", "-1", "nan", "NaN", "sNaN", "inf", "-Infinity", "one", "1.0001", "1e999999", "1e30", "9" * 30],
)
def test_a_number_of_cores_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(ResourceError, match="cpus: expected"):
        parse_milli("cpus", text)


@pytest.mark.parametrize(
    "text", ["", "-1", "nan", "inf", "1XB", "MiB", "1e999999", "9e999999", "1e999999999999999999", "9" * 30]
)
def test_a_size_that_is_none_is_refused_by_name(text: str) -> None:
    with pytest.raises(ResourceError, match="mem: expected"):
        parse_bytes("mem", text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("cpus", "expected name=amount, got 'cpus'"),
        ("cpus=1,cpus=2", "'cpus' twice"),
        ("watts=3", "resource 'watts': expected one of cpus, mem, disk, gpus, licenses"),
        ("cpus=1,mem=lots", "mem: expected bytes such as 512MiB or 8GiB, got 'lots'"),
        ("cpus=1,mem=99PiB", f"mem: expected at most {2**53} bytes (8PiB), got '99PiB'"),
        ("licenses=-2", "licenses: expected a finite number that is not negative, got '-2'"),
    ],
)
def test_bad_resources_are_refused_with_what_came(text: str, complaint: str) -> None:
    with pytest.raises(ResourceError) as refusal:
        KINDS.parse(text)

    assert complaint in str(refusal.value)


def test_absent_resources_are_zero() -> None:
    assert KINDS.parse("cpus=1.5,mem=1GiB") == (1500, 2**30, 0, 0, 0)


@pytest.mark.parametrize("amount", [-1, QUANTITY_MAX + 1])
def test_amounts_out_of_range_are_refused(amount: int) -> None:
    with pytest.raises(ResourceError, match=f"gpus: expected 0 to {QUANTITY_MAX}"):
        KINDS.vector({"gpus": amount})


@pytest.mark.parametrize("names", [("cpus",), ("ports",), ("Licenses",), ("a", "a"), ("",), ("x" * 33,)])
def test_bad_names_of_custom_resources_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ResourceError, match="custom resource name"):
        ResourceKinds(custom=names)


def test_people_see_cores_and_bytes_and_no_zeros() -> None:
    vector = KINDS.parse("cpus=1.5,mem=512MiB,licenses=2")

    assert KINDS.as_units(vector) == {"cpus": 1.5, "mem": 2**29, "licenses": 2.0}
    assert KINDS.as_dict(vector) == {"cpus": 1500, "mem": 2**29, "licenses": 2000}
    assert KINDS.format(vector) == "cpus=1.5,mem=512MiB,licenses=2"
    assert KINDS.format(KINDS.zero) == "nothing"


SMALL = st.tuples(*[st.integers(0, 50)] * 3)


@given(SMALL, SMALL)
def test_units_that_fit_is_the_largest_number_that_fits(unit: tuple[int, ...], free: tuple[int, ...]) -> None:
    if not any(unit):
        with pytest.raises(ValueError, match="zero in every place"):
            units_that_fit(unit, free)
        return

    units = units_that_fit(unit, free)

    assert fits(scale(unit, units), free)
    assert not fits(scale(unit, units + 1), free)


def test_no_unit_fits_where_less_than_nothing_is_free() -> None:
    assert units_that_fit((1, 0), (-3, 5)) == 0


@given(SMALL, SMALL)
def test_what_is_missing_is_just_enough(need: tuple[int, ...], free: tuple[int, ...]) -> None:
    lack = missing(need, free)

    assert fits(need, add(free, lack))
    assert all(
        not lacking or have + lacking == wanted
        for wanted, have, lacking in zip(need, free, lack, strict=True)
    )


@given(SMALL, SMALL)
def test_a_sum_taken_apart_is_what_it_was(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    assert subtract(add(left, right), right) == left
    assert sum_vectors([left, right], (0, 0, 0)) == add(left, right)
    assert sum_vectors([], (0, 0, 0)) == (0, 0, 0)


def test_vectors_of_different_clusters_do_not_mix() -> None:
    with pytest.raises(ValueError, match="expected two of one length"):
        add((1, 2), (1,))
