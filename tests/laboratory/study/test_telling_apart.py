"""Who is best, and who cannot be told from it."""

from array import array
from dataclasses import replace
from random import Random

import pytest

from fairlead_lab.metrics.measures import Best, Kind, Measure, measure
from fairlead_lab.metrics.result import PolicyResult
from fairlead_lab.study.comparison import completion_ratio, measured, rank
from fairlead_lab.study.run import run_policy
from fairlead_sim.node import Node
from fairlead_sim.workload import Bundle, Job
from tests.laboratory.workloads.workload_builders import GIB

COMPLETION, VIOLATIONS, JAIN, MAKESPAN, SLOWDOWN = (
    measure(name) for name in ("completion_ms.mean", "violations", "jain", "makespan_ms", "slowdown.mean")
)


def _a_run() -> PolicyResult:
    bundle = Bundle(
        job_id="j", user="ann", stage=0, tasks=1, unit=(1000, GIB, 0, 0), submit_ms=0, duration_ms=9
    )
    job = Job(job_id="j", user="ann", submit_ms=0, bundles=(bundle,))
    return run_policy([job], [Node(name="a", total=(4000, 8 * GIB, 0, 0))], "drf")


RUN = _a_run()


def of_jobs(*completions_ms: int) -> PolicyResult:
    mean = sum(completions_ms) / len(completions_ms)
    spread = replace(RUN.completion_ms, count=len(completions_ms), mean=mean)
    return replace(RUN, completion_ms=spread, completions_ms=array("q", completions_ms))


def that_take(makespan_ms: int) -> PolicyResult:
    return replace(RUN, makespan_ms=makespan_ms)


def slowed_down(mean: float) -> PolicyResult:
    return replace(RUN, slowdown=replace(RUN.slowdown, mean=mean))


def test_without_an_interval_those_within_a_hundredth_of_the_best_are_alike() -> None:
    found = rank(MAKESPAN, {"a": [that_take(1000)], "b": [that_take(1009)], "c": [that_take(1020)]})

    assert found.best == {0, 1}
    assert not found.has_interval
    jain = {name: [replace(RUN, jain=value)] for name, value in (("a", 0.5), ("b", None), ("c", 0.9))}
    assert rank(JAIN, jain).best == {2}


def test_what_speaks_of_all_jobs_says_nothing_of_a_run_that_left_some_undone() -> None:
    undone = replace(that_take(10), is_complete=False)
    results = {"a": [that_take(1000)], "b": [undone], "c": [that_take(2000)]}

    assert rank(MAKESPAN, results).best == {0}
    told = dict(measured(results))
    assert [each and each.mean for each in told[MAKESPAN]] == [1000, None, 2000]


def test_nothing_is_best_where_all_are_alike_or_nobody_asks() -> None:
    neither = Measure("events", "events", Kind.COUNT, Best.NEITHER)

    assert rank(MAKESPAN, {"a": [that_take(1000)], "b": [that_take(1005)]}).best == frozenset()
    assert rank(VIOLATIONS, {"a": [RUN], "b": [RUN]}).best == frozenset()
    assert rank(MAKESPAN, {"a": [that_take(1000)]}).best == frozenset()
    assert rank(neither, {"a": [RUN], "b": [replace(RUN, events=50)]}).best == frozenset()


def test_who_promises_hosts_twice_is_left_out_where_starts_are_counted() -> None:
    runs = {"a": [replace(RUN, jain=0.5)], "b": [replace(RUN, jain=0.6)],
            "slots": [replace(RUN, jain=0.9, crowded_fraction=0.5)]}  # fmt: skip

    ranking = rank(JAIN, runs)

    assert ranking.best == {1}
    assert ranking.left_out == {2}
    assert rank(MAKESPAN, runs).left_out == frozenset()


def test_seeds_are_compared_pair_by_pair() -> None:
    # Seeds differ far more than policies; one policy is always a bit faster, the other now faster and now slower.
    first = [slowed_down(factor) for factor in (2.0, 2.3, 2.7, 3.0)]
    faster = [slowed_down(0.99 * factor - 0.01) for factor in (2.0, 2.3, 2.7, 3.0)]
    mixed = [slowed_down(factor) for factor in (2.3, 2.0, 2.71, 2.9)]

    certain = rank(SLOWDOWN, {"a": first, "faster": faster})
    unknown = rank(SLOWDOWN, {"a": first, "mixed": mixed})

    assert certain.best == {1}
    assert certain.has_interval
    assert unknown.best == frozenset()


def test_it_is_known_how_large_a_difference_seeds_could_tell() -> None:
    best = [that_take(length) for length in (1000, 2000, 3000)]
    close = [that_take(length) for length in (1400, 1800, 3000)]  # later by 400, -200 and 0
    far = [that_take(length + 9000) for length in (1000, 2000, 3000)]

    found = rank(MAKESPAN, {"best": best, "close": close, "far": far})

    assert found.best == {0, 1}
    assert found.finest == pytest.approx(4.302653 * 305.505 / 3**0.5, rel=1e-5)  # t(2) s / sqrt(3)
    assert rank(MAKESPAN, {"best": best, "far": far}).finest == 0
    assert rank(MAKESPAN, {"a": best[:1], "b": close[:1]}).finest is None


def test_one_run_is_judged_by_its_jobs() -> None:
    dice = Random(1)
    jobs = [round(dice.expovariate(0.001)) + 100 for _ in range(600)]
    one_job = [*jobs[:-1], jobs[-1] + 60_000]

    sure = rank(COMPLETION, {"a": [of_jobs(*jobs)], "b": [of_jobs(*(2 * length for length in jobs))]})
    one = rank(COMPLETION, {"a": [of_jobs(*jobs)], "b": [of_jobs(*one_job)]})

    assert sure.best == {0}
    assert sure.has_interval
    assert sum(one_job) / sum(jobs) > 1.05
    assert one.best == frozenset()


def test_a_ratio_over_seeds_is_of_each_seed_by_itself() -> None:
    first = [of_jobs(100, 300), of_jobs(1000, 3000), of_jobs(7, 1)]
    ratio = completion_ratio([of_jobs(200, 600), of_jobs(2000, 6000), of_jobs(14, 2)], first)

    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((2, 2, 2))
    assert completion_ratio([of_jobs(-1, -1), *first[1:]], first) is None
