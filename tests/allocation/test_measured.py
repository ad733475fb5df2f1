"""The estimate of how much of what it declares a framework uses."""

import pytest

from fairlead_master.allocation.measured import (
    INTERVAL_MS,
    RATIO_MAX,
    RATIO_MIN,
    SAMPLES_KEPT,
    UseEstimate,
)
from fairlead_proto.ids import TaskId
from fairlead_proto.resources import Vector

DECLARED: Vector = (1_000, 4_000)


def an_estimate(*used: tuple[int | None, int | None]) -> UseEstimate:
    estimate = UseEstimate(2)
    for number, amounts in enumerate(used):
        estimate.sample(TaskId(f"t{number}"), DECLARED, amounts)
    estimate.look(0)
    return estimate


def test_a_framework_is_taken_at_its_word_until_three_of_its_tasks_were_measured() -> None:
    assert an_estimate((100, 1_000), (100, 1_000)).ratios == (1.0, 1.0)
    assert an_estimate((100, 1_000), (100, 1_000), (100, 1_000)).ratios == pytest.approx((0.1, 0.25))


def test_one_task_that_runs_away_or_hangs_moves_nothing() -> None:
    steady = [(500, 2_000)] * 8

    assert an_estimate(*steady, (0, 400_000), (400_000, 0)).ratios == pytest.approx((0.5, 0.5))


def test_the_middle_is_a_mean_so_that_sums_are_right() -> None:
    assert an_estimate((0, 0), (200, 0), (400, 4_000), (900, 4_000)).ratios == pytest.approx((0.3, 0.5))


def test_what_nobody_measures_is_taken_at_its_word() -> None:
    assert an_estimate(*[(100, None)] * 5).ratios == pytest.approx((0.1, 1.0))


def test_what_was_not_declared_has_no_ratio() -> None:
    estimate = UseEstimate(2)
    for number in range(5):
        estimate.sample(TaskId(f"t{number}"), (1_000, 0), (100, 7))
    estimate.look(0)

    assert estimate.ratios == pytest.approx((0.1, 1.0))


@pytest.mark.parametrize(("used", "ratio"), [(0, RATIO_MIN), (9_000, RATIO_MAX)])
def test_nobody_holds_a_cluster_for_nothing_or_pays_without_bound(used: int, ratio: float) -> None:
    assert an_estimate(*[(used, 4_000)] * 5).ratios == (ratio, 1.0)


def test_a_later_sample_of_a_task_replaces_the_earlier() -> None:
    estimate = an_estimate(*[(100, 4_000)] * 3)
    for number in range(3):
        estimate.sample(TaskId(f"t{number}"), DECLARED, (500, 4_000))

    assert estimate.look(INTERVAL_MS)
    assert estimate.ratios == pytest.approx((0.5, 1.0))


def test_only_the_last_tasks_count() -> None:
    estimate = an_estimate(*[(100, 4_000)] * SAMPLES_KEPT)
    for number in range(SAMPLES_KEPT):
        estimate.sample(TaskId(f"new{number}"), DECLARED, (800, 4_000))

    assert estimate.look(INTERVAL_MS)
    assert estimate.ratios == pytest.approx((0.8, 1.0))


def test_it_is_looked_at_again_at_intervals_only() -> None:
    estimate = an_estimate(*[(100, 4_000)] * 3)
    for number in range(3):
        estimate.sample(TaskId(f"t{number}"), DECLARED, (500, 4_000))

    assert not estimate.look(INTERVAL_MS - 1)
    assert estimate.ratios == pytest.approx((0.1, 1.0))


def test_small_changes_are_not_followed() -> None:
    estimate = an_estimate(*[(500, 4_000)] * 3)
    for number in range(3):
        estimate.sample(TaskId(f"t{number}"), DECLARED, (520, 4_000))

    assert not estimate.look(INTERVAL_MS)
    assert estimate.ratios == pytest.approx((0.5, 1.0))
