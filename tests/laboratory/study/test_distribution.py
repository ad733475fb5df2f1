"""Counts by value, in bounded memory."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead_lab.metrics.statistics import VALUES_MAX, Distribution, percentile


def of(values: list[int]) -> Distribution:
    found = Distribution()
    for value in values:
        found.add(value)
    return found


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200), st.integers(1, 100))
def test_few_values_are_exact(values: list[int], percent: int) -> None:
    assert of(values).percentile(percent) == percentile(sorted(values), percent)


def test_many_values_are_kept_within_one_part_in_2048() -> None:
    values = [number * 7919 for number in range(5 * VALUES_MAX)]
    found = of(values)

    for percent in (1, 50, 95, 99, 100):
        exact = percentile(values, percent)
        assert exact * (1 - 1 / 2048) < found.percentile(percent) <= exact
    assert found.mean == sum(values) / len(values)
    assert found.most == values[-1]
    assert len(found._counts) < 20 * VALUES_MAX


def test_no_values_are_all_zero() -> None:
    assert Distribution().spread().count == 0
    assert Distribution().spread().p99 == 0
