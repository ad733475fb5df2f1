"""Intervals of a ratio from a single sample, against cases whose answer is known."""

from itertools import pairwise
from math import ceil
from random import Random

import pytest

from fairlead_lab.metrics.statistics import BLOCKS, _Ranked, ratio_of_means, ratio_of_percentiles


def _lengths(seed: int, count: int) -> list[float]:
    dice = Random(seed)
    return [dice.expovariate(1.0) for _ in range(count)]


def test_a_constant_factor_is_certain_however_the_jobs_differ() -> None:
    reference = _lengths(1, 1_000)

    found = ratio_of_means([1.5 * value for value in reference], reference)

    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((1.5, 1.5, 1.5))


def test_one_decisive_block_makes_a_wide_interval() -> None:
    reference = [1.0] * 1_000
    values = [1.0] * 980 + [51.0] * 20  # the last of 50 blocks doubles the mean

    found = ratio_of_means(values, reference)

    assert found is not None
    assert found.value == pytest.approx(2.0)
    # That block is drawn 0 times with probability 0.364, and more than 3 times with one under 0.025.
    assert (found.low, found.high) == pytest.approx((1.0, 4.0))


def test_intervals_of_independent_jobs_hold_the_truth_about_as_often_as_they_say() -> None:
    held = 0
    for seed in range(30):
        found = ratio_of_means(_lengths(2 * seed, 500), _lengths(2 * seed + 1, 500))
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 1.0 <= found.high

    assert 26 <= held <= 30


@pytest.mark.parametrize("percent", [1, 50, 95, 100])
def test_a_percentile_of_a_draw_is_that_of_its_values(percent: int) -> None:
    dice = Random(3)
    values = [float(dice.randrange(40)) for _ in range(1_017)]
    ends = [1_017 * number // 13 for number in range(14)]
    ranked = _Ranked(values, ends, percent)

    for _ in range(50):
        times = [dice.randrange(4) for _ in range(12)] + [1]
        drawn = sorted(
            value
            for block, (first, last) in enumerate(pairwise(ends))
            for value in values[first:last] * times[block]
        )
        assert ranked.percentile(times) == drawn[max(1, ceil(len(drawn) * percent / 100)) - 1]


def test_a_percentile_that_hangs_on_few_blocks_has_a_wide_interval() -> None:
    reference = [1.0] * 1_000
    spread_out = [9.0 if number % 10 == 0 else 1.0 for number in range(1_000)]
    in_one_place = sorted(spread_out)

    certain = ratio_of_percentiles(spread_out, reference, 95)
    uncertain = ratio_of_percentiles(in_one_place, reference, 95)

    assert certain is not None
    assert uncertain is not None
    assert (certain.value, certain.low, certain.high) == (9, 9, 9)
    # Five of 50 blocks are long; with two or fewer of them in a draw, its 95th percentile is short.
    assert (uncertain.value, uncertain.low, uncertain.high) == (9, 1, 9)


def test_the_same_sample_gives_the_same_interval() -> None:
    values, reference = _lengths(1, 300), _lengths(2, 300)

    assert ratio_of_means(values, reference) == ratio_of_means(values, reference)
    assert ratio_of_means(values, reference) != ratio_of_means(values, reference, seed=2)


def test_jobs_that_did_not_finish_under_both_are_left_out() -> None:
    found = ratio_of_means([2.0, -1.0, 4.0], [1.0, 7.0, -1.0])

    assert found is not None
    assert found.value == 2.0


def test_few_jobs_have_a_ratio_and_no_interval() -> None:
    found = ratio_of_means([3.0, 3.0], [1.0, 2.0])

    assert found is not None
    assert (found.value, found.low, found.high) == (2.0, None, None)


@pytest.mark.parametrize(("values", "reference"), [([], []), ([1.0], [0.0]), ([-1.0], [2.0])])
def test_nothing_to_compare_is_no_ratio(values: list[float], reference: list[float]) -> None:
    assert ratio_of_means(values, reference) is None


def test_lists_of_different_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        ratio_of_means([1.0] * (BLOCKS + 1), [1.0])
