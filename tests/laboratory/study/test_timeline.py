"""Sums over time, in bounded memory."""

from itertools import pairwise

import pytest

from fairlead_lab.metrics.integrals import MOMENTS_MAX, Integral, Timeline


def test_rates_are_exact_however_long_the_run() -> None:
    level = Integral()
    timeline = Timeline(lambda now_ms: [level.until(now_ms)])
    hour_ms = 3_600_000
    for hour in range(24 * 365):
        timeline.catch_up(hour * hour_ms)
        level.change(1 if hour % 2 == 0 else -1, hour * hour_ms)
    end_ms = 24 * 365 * hour_ms
    timeline.catch_up(end_ms)

    rates = timeline.rates(0, end_ms, [level.until(end_ms)])
    times_ms = timeline.times_ms(end_ms)

    assert MOMENTS_MAX // 2 <= len(rates) <= MOMENTS_MAX
    lengths = [after - before for before, after in pairwise(times_ms)]
    total = sum(rate * length for rate, length in zip(rates, lengths, strict=True))
    assert total == pytest.approx(level.until(end_ms), rel=1e-12)


def test_what_changes_at_a_moment_counts_from_then_on() -> None:
    level = Integral()
    timeline = Timeline(lambda now_ms: [level.until(now_ms)])
    for at_ms, amount in ((0, 2), (1000, 3), (2500, -5)):
        timeline.catch_up(at_ms)
        level.change(amount, at_ms)

    timeline.catch_up(4000)

    assert timeline.rates(0, 4000, [level.until(4000)]) == [2.0, 5.0, 2.5, 0.0]
