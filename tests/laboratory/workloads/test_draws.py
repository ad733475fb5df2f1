"""What is drawn has the distribution it is said to have; with fixed seeds, so that nothing here is a matter of luck."""

import math
from itertools import pairwise
from random import Random
from statistics import fmean, median, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_lab.workloads.synthetic.arrivals import Arrivals, Process, read_arrivals
from fairlead_lab.workloads.synthetic.draws import draw, read_draw
from fairlead_lab.workloads.synthetic.table import Table

DRAWS = 20_000


def plain(value: Any, _path: str) -> float:
    return float(value)


def drawn(description: Any, count: int = DRAWS, seed: int = 1) -> list[float]:
    even = Random(seed).random
    what = read_draw(description, "x", plain)
    return [draw(what, even) for _ in range(count)]


def test_plain_value_is_always_itself() -> None:
    assert drawn(3, count=4) == [3.0] * 4


def test_uniform_is_even_between_its_ends() -> None:
    values = drawn({"distribution": "uniform", "least": 2, "most": 6})

    assert 2 <= min(values) < 2.01
    assert 5.99 < max(values) <= 6
    assert fmean(values) == pytest.approx(4, rel=0.01)


def test_exponential_has_its_mean_and_as_much_deviation() -> None:
    values = drawn({"distribution": "exponential", "mean": 30})

    assert fmean(values) == pytest.approx(30, rel=0.03)
    assert stdev(values) == pytest.approx(30, rel=0.03)


def test_lognormal_has_its_median_or_its_mean() -> None:
    by_median = drawn({"distribution": "lognormal", "median": 10, "spread": 0.8})
    by_mean = drawn({"distribution": "lognormal", "mean": 10, "spread": 0.8})

    assert median(by_median) == pytest.approx(10, rel=0.03)
    assert stdev(map(math.log, by_median)) == pytest.approx(0.8, rel=0.03)
    assert fmean(by_mean) == pytest.approx(10, rel=0.03)


def test_choice_goes_by_its_weights() -> None:
    values = drawn({"distribution": "choice", "values": [1, 2, 3], "weights": [3, 0, 1]})

    assert set(values) == {1, 3}
    assert values.count(1) / DRAWS == pytest.approx(0.75, rel=0.03)


@given(
    st.sampled_from([
        {"distribution": "exponential", "mean": 5},
        {"distribution": "lognormal", "median": 5, "spread": 3},
    ]),
    st.floats(0, 10),
    st.floats(0, 10),
    st.integers(0, 1000),
)  # fmt: skip
def test_bounds_hold(description: dict[str, Any], one: float, other: float, seed: int) -> None:
    least, most = sorted((one, other))

    values = drawn({**description, "least": least, "most": most}, count=20, seed=seed)

    assert all(least <= value <= most for value in values)


def times(process: Process, **rest: Any) -> list[int]:
    arrivals = read_arrivals(Table({"process": process, **rest}, ""))
    return list(arrivals.times_ms(Random(5).random))


@pytest.mark.parametrize("process", ["poisson", "lognormal", "regular"])
def test_gaps_have_their_mean(process: Process) -> None:
    found = times(process, gap="2s", jobs=DRAWS)

    assert len(found) == DRAWS
    assert found == sorted(found)
    assert found[-1] / DRAWS == pytest.approx(2000, rel=0.03)


def test_poisson_gaps_are_exponential_and_regular_ones_equal() -> None:
    found = times("poisson", gap="2s", jobs=DRAWS)
    gaps = [later - earlier for earlier, later in pairwise(found)]

    assert stdev(gaps) == pytest.approx(2000, rel=0.03)
    assert times("regular", gap="2s", jobs=3, start=1) == [3000, 5000, 7000]


def test_arrivals_end_in_time() -> None:
    assert max(times("poisson", gap=1, until="1m")) < 60_000
    assert len(times("poisson", gap=1, until="1m", jobs=5)) == 5
    assert times("at-once", jobs=3, start="1s") == [1000] * 3


def test_uniform_arrivals_are_in_order_and_within_their_time() -> None:
    found = times("uniform", jobs=1000, start=10, until=20)

    assert found == sorted(found)
    assert 10_000 <= found[0] < 10_100
    assert 19_900 < found[-1] < 20_000


def test_arrivals_are_made_one_by_one() -> None:
    endless = Arrivals(process="poisson", gap_ms=1000.0)

    assert next(endless.times_ms(Random(5).random)) >= 0
