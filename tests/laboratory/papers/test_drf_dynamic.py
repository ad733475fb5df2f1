"""Figure 8 of paper 001."""

from typing import Final

import pytest

from fairlead_lab.papers import catalogue
from fairlead_lab.papers.experiment import Agreement, Result, RunOptions

FIGURE: Final = catalogue.find("drf-fig8")


@pytest.fixture(scope="module")
def result() -> Result:
    return FIGURE.run(RunOptions(is_quick=True))


def test_columns_are_those_that_others_rely_on(result: Result) -> None:
    assert FIGURE.columns == ("time_s", "job", "cpu_share", "mem_share", "dominant_share")
    assert [(row[0], row[1]) for row in result.rows] == [
        (time_s, job) for time_s in range(361) for job in ("job 1", "job 2")
    ]


def test_no_more_is_held_than_there_is_and_the_larger_share_dominates(result: Result) -> None:
    for first, second in zip(result.rows[::2], result.rows[1::2], strict=True):
        for column in (2, 3):
            assert 0 < float(first[column] or 0) + float(second[column] or 0) <= 1
    for row in result.rows:
        assert row[4] == max(float(row[2] or 0), float(row[3] or 0))


def test_a_fresh_cluster_has_what_fits_beside_one_large_task_a_node(result: Result) -> None:
    """A task of 10 GB takes a CPU of 4 and leaves 4 GB of 14: in a whole cluster of such nodes, 1/4 and 3/4 of CPU."""
    assert sum(float(row[2] or 0) for row in result.rows[:2]) == pytest.approx(1.0)


def test_verdict_agrees_for_every_chance() -> None:
    for seed in (1, 2, 3):
        verdict = FIGURE.run(RunOptions(seed=seed)).verdict
        assert verdict.agreement is Agreement.WITHIN, verdict
        assert float(verdict.detail.split()[0]) < 5.0


def test_a_master_that_decides_at_every_end_needs_reservations_for_the_larger_task(result: Result) -> None:
    """Without them job 1 had 41 % of CPU against 59 %; two minutes are not enough for the rest."""
    assert "job 1 has 47% of CPU by then, against 53%" in result.notes


def test_one_seed_is_one_result(result: Result) -> None:
    assert FIGURE.run(RunOptions(is_quick=True)) == result
