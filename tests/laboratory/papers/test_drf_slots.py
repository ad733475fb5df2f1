"""Figures 9 to 12 of paper 001."""

from dataclasses import replace
from fractions import Fraction

import pytest

from fairlead_lab.papers import catalogue
from fairlead_lab.papers.drf import closed_loop
from fairlead_lab.papers.drf.closed_loop import LARGE, SMALL, Finished, Setup
from fairlead_lab.papers.drf.slots import CPU_ONLY, DRF, POLICIES, SLOTS
from fairlead_lab.papers.experiment import Agreement, Result, RunOptions

TINY = Setup(nodes=6, job_tasks=10)
FIGURES = ("drf-fig9", "drf-fig10", "drf-fig11", "drf-fig12")


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {name: catalogue.find(name).run(RunOptions(is_quick=True)) for name in FIGURES}


def test_columns_and_rows_are_those_that_others_rely_on(results: dict[str, Result]) -> None:
    for name, result in results.items():
        assert catalogue.find(name).columns == ("policy", "class", "jobs", "mean_response_s")
        assert [(row[0], row[1]) for row in result.rows] == [
            (policy, kind) for policy in POLICIES for kind in ("small", "large")
        ]
        assert result.rows == results["drf-fig9"].rows, "one experiment, four figures"


def test_verdicts_follow_the_words_of_the_text(results: dict[str, Result]) -> None:
    agreements = {name: result.verdict.agreement for name, result in results.items()}

    assert agreements == {
        "drf-fig9": Agreement.AGREES,
        "drf-fig10": Agreement.DIFFERS,
        "drf-fig11": Agreement.AGREES,
        "drf-fig12": Agreement.AGREES,
    }
    assert "the paper: about as many" in results["drf-fig10"].verdict.detail


def test_little_is_finished_by_a_host_that_thrashes_and_more_in_slots_if_none_does() -> None:
    """Six slots a node hold 36 large tasks for each user, where memory in fact has room for 20: the model decides."""

    def large(policy: str, memory_slowdown: float) -> Finished:
        return closed_loop.run(policy, 1, Setup(memory_slowdown=memory_slowdown))[LARGE]

    assert large("slots:6", 10.0).jobs < large(DRF, 10.0).jobs / 2
    assert large("slots:6", 0.0).jobs > large(DRF, 0.0).jobs
    assert large(DRF, 10.0) == large(DRF, 0.0), "DRF promises nothing twice"


def test_where_slots_put_a_task_is_the_seeds_and_the_placements_affair() -> None:
    """The baseline deals tasks out at random by seed. By free slots alone, users of like tasks meet on the same hosts."""

    def jobs(placement: str) -> float:
        found = closed_loop.run("slots:5", 3, Setup(placement=placement))
        return found[SMALL].jobs + found[LARGE].jobs

    assert jobs("align") == jobs("random:3") != jobs("random:4")
    assert jobs("spread") < min(jobs("align"), jobs("least-loaded"))


def test_three_slots_never_thrash() -> None:
    """Three tasks of at most 2 GB are at most the 6 GB of a node."""
    assert closed_loop.run("slots:3", 1, replace(TINY, memory_slowdown=1e6)) == closed_loop.run(
        "slots:3", 1, replace(TINY, memory_slowdown=0.0)
    )


def test_a_policy_that_does_not_see_memory_promises_it_twice() -> None:
    seen = closed_loop.run(CPU_ONLY, 1, Setup())
    unseen = closed_loop.run(CPU_ONLY, 1, Setup(sees_memory=False))

    assert unseen[LARGE].jobs < seen[LARGE].jobs
    assert unseen[SMALL].jobs < seen[SMALL].jobs


def test_throughput_and_response_go_with_what_each_user_may_hold() -> None:
    """Three slots on each of 48 nodes are 18 a user: a job of 80 tasks needs more than 80/18 mean run times."""
    found = closed_loop.run(SLOTS[0], 1, Setup(task_s=10.0))

    least_s = float(Fraction(80, 18) * 10)
    for kind in (SMALL, LARGE):
        assert found[kind].mean_response_s == pytest.approx(least_s, rel=0.2)
        assert found[kind].jobs == pytest.approx(4 * 600 / least_s, rel=0.2)


def test_a_mean_over_runs_weighs_responses_by_jobs() -> None:
    one = closed_loop.run(DRF, 2, TINY)
    two = closed_loop.run(DRF, 3, TINY)

    both = closed_loop.mean_of_runs(DRF, range(2, 4), TINY)

    assert one[SMALL].jobs != two[SMALL].jobs
    assert both[SMALL].jobs == (one[SMALL].jobs + two[SMALL].jobs) / 2
    low, high = sorted(each[SMALL].mean_response_s or 0.0 for each in (one, two))
    assert low <= (both[SMALL].mean_response_s or 0.0) <= high


def test_one_seed_is_one_result() -> None:
    blind = replace(TINY, sees_memory=False)

    assert closed_loop.run(CPU_ONLY, 3, blind) == closed_loop.run(CPU_ONLY, 3, blind)
