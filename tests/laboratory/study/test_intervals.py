"""Confidence intervals against the printed tables of Student's distribution."""

import pytest

from fairlead_lab.metrics.statistics import estimate, student_t


@pytest.mark.parametrize(
    ("degrees", "t"),
    [(1, 12.706205), (2, 4.302653), (3, 3.182446), (4, 2.776445), (9, 2.262157), (10, 2.228139), (30, 2.042272), (1000, 1.962339)],
)  # fmt: skip
def test_quantiles_are_those_of_the_tables(degrees: int, t: float) -> None:
    assert student_t(degrees) == pytest.approx(t, rel=1e-6)


def test_an_interval_is_t_times_the_standard_error() -> None:
    found = estimate([1.0, 2.0, 3.0])

    assert found.mean == 2.0
    assert found.half_width == pytest.approx(4.302653 / 3**0.5, rel=1e-6)


def test_one_run_says_nothing_of_how_far_off_it_is() -> None:
    assert estimate([7.0]).half_width is None
