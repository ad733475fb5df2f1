"""How numbers are written and compared."""

from typing import Any

import pytest

from fairlead_lab.metrics.measures import listed_measures, measure, span, unit_of
from fairlead_lab.metrics.statistics import Estimate
from fairlead_lab.study.run import run_policy
from fairlead_sim.node import Node
from fairlead_sim.workload import Bundle, Job
from tests.laboratory.workloads.workload_builders import GIB

TIME, SLOWDOWN, VIOLATIONS = map(measure, ("completion_ms.mean", "slowdown.mean", "violations"))


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0 ms"), (999, "999 ms"), (1000, "1 s"), (59_940, "59.9 s"), (90_000, "1.5 min"), (5_400_000, "1.5 h"),
        (86_400_000, "1 d"), (86_400_000_000, "1,000 d"),
    ],
)  # fmt: skip
def test_a_duration_has_the_largest_unit_it_fills(duration_ms: float, text: str) -> None:
    assert span(duration_ms) == text


def test_times_of_a_row_share_the_unit_of_the_shortest() -> None:
    hour_ms = 3_600_000
    row = [Estimate(20 * hour_ms, None), None, Estimate(36 * hour_ms, 1.5 * hour_ms), Estimate(0, None)]

    assert TIME.write_all(row) == ["20 h", "-", "36.0 ± 1.5 h", "0 h"]
    assert unit_of([]) == 1


def test_an_interval_has_as_many_decimals_as_its_mean() -> None:
    day_ms = 86_400_000
    row = [Estimate(7 * day_ms, 4e-5 * day_ms), Estimate(250.3 * day_ms, 41.26 * day_ms)]

    assert TIME.write_all(row) == ["7.00 ± 0.00 d", "250 ± 41 d"]


def test_a_factor_has_no_more_decimals_in_its_interval_than_in_its_mean() -> None:
    row = [Estimate(649.2, 58.41), Estimate(37_597.3, 8412.6), Estimate(12.34, 1.06), Estimate(1.5, None)]

    assert SLOWDOWN.write_all(row) == ["649 ± 58", "37,597 ± 8,413", "12.3 ± 1.1", "1.50"]


def test_people_are_counted_without_an_interval() -> None:
    assert VIOLATIONS.write_all([Estimate(0.2, 0.6), Estimate(2.0, 0.0), Estimate(21.4, 1.9)]) == [
        "0.2",
        "2",
        "21.4",
    ]


def test_the_name_of_a_measure_is_the_path_to_it_in_the_json() -> None:
    units = (("ann", (3000, GIB, 0, 0)), ("bob", (1000, 3 * GIB, 0, 0)))
    jobs = [
        Job(
            job_id=f"{user}-{number}", user=user, submit_ms=1000 * number,
            bundles=(
                Bundle(
                    job_id="", user=user, stage=0, tasks=3, unit=unit, submit_ms=1000 * number, duration_ms=5000
                ),
            ),
        )
        for number in range(3)
        for user, unit in units
    ]  # fmt: skip
    run = run_policy(jobs, [Node(name="a", total=(4000, 8 * GIB, 0, 0))], "slots:3")
    document = run.as_json()

    for listed in listed_measures([run]):
        found: Any = document
        for part in listed.name.split("."):
            found = found[part]
        assert listed.pick(run) == (len(found) if isinstance(found, list) else found)
        assert listed.pick(run) is not None
    names = [listed.name for listed in listed_measures([run])]
    assert names[-6:-3] == [
        "utilization.cpus",
        "resources.cpus.held_until_last_arrival",
        "resources.cpus.over_until_last_arrival",
    ]
