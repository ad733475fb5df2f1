"""A simulation's sums are those of a record of each of its tasks, fed as a replay's records are."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_lab.metrics.report import build_report
from fairlead_lab.metrics.result import PolicyResult
from fairlead_lab.study.run import run_policy
from fairlead_lab.study.study import SimulationOptions
from fairlead_master.allocation import placement
from fairlead_master.allocation.api import AllocationSettings
from fairlead_master.allocation.policies import names
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.pool.simulation import Pool
from fairlead_sim.workload import Bundle, Job
from tests.laboratory.study.recording import Recorder
from tests.laboratory.workloads.workload_builders import GIB

NODES = [
    Node(name="small", total=(2000, 4 * GIB, 0, 0)),
    Node(name="large", total=(4000, 16 * GIB, 0, 2000)),
]
POLICIES = ("drf", "slots:2", "slots:5", "fifo", "max-min:cpus", "pf")

bundles = st.builds(
    Bundle,
    job_id=st.just("j"),
    user=st.just("u"),
    stage=st.integers(0, 2),
    tasks=st.integers(1, 6),
    unit=st.tuples(
        st.sampled_from((0, 500, 1000, 3000)),
        st.sampled_from((GIB // 2, GIB, 3 * GIB, 9 * GIB, 20 * GIB)),
        st.just(0),
        st.sampled_from((0, 0, 0, 1000)),
    ),
    submit_ms=st.just(0),
    duration_ms=st.sampled_from((0, 1, 700, 1000, 2500, 60_000)),
)


@st.composite
def workloads(draw: st.DrawFn) -> list[Job]:
    jobs = []
    at_ms = 0
    for number in range(draw(st.integers(1, 8))):
        at_ms += draw(st.sampled_from((0, 0, 1, 400, 5000)))
        stages = sorted(draw(st.lists(bundles, min_size=1, max_size=3)), key=lambda bundle: bundle.stage)
        jobs.append(
            Job(
                job_id=f"j{number}",
                user=draw(st.sampled_from(("ann", "bob", "eve"))),
                submit_ms=at_ms,
                bundles=tuple(stages),
            )
        )
    # One that fits, so that there is something to report.
    small = Bundle(job_id="j", user="u", stage=0, tasks=1, unit=(500, GIB, 0, 0), submit_ms=0, duration_ms=10)
    return [*jobs, Job(job_id="last", user="ann", submit_ms=at_ms, bundles=(small,))]


def recorded(jobs: Sequence[Job], policy: str) -> PolicyResult:
    recorder = Recorder()
    rule = placement.seeded("align", names.slots_per_agent(policy), 1)
    pool = Pool(
        Engine(Random(1), now_ms=0),
        NODES,
        recorder,
        settings=AllocationSettings(policy=policy, placement=rule),
    )
    pool.feed(jobs, origin_ms=jobs[0].submit_ms)
    pool.run()
    decisions = pool.allocator.counters.decisions
    return build_report(recorder.record(policy, {node.name: node.total for node in NODES}, decisions)).result


def close(value: float | None) -> object:
    return None if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)


def assert_same(result: PolicyResult, report: PolicyResult) -> None:
    assert (result.jobs, result.jobs_finished) == (report.jobs, report.jobs_finished)
    assert (result.tasks, result.tasks_finished) == (report.tasks, report.tasks_finished)
    assert result.makespan_ms == report.makespan_ms
    assert result.completion_ms == report.completion_ms
    assert result.slowdown == report.slowdown
    assert result.wait_ms == report.wait_ms
    assert result.waits_by_size == report.waits_by_size
    assert result.contended_ms == report.contended_ms
    assert result.decisions == report.decisions
    assert result.violations == report.violations
    assert result.clear_violations == report.clear_violations
    assert result.jain == close(report.jain)
    assert result.below_fraction == close(report.below_fraction)
    assert result.crowded_fraction == close(report.crowded_fraction)
    assert list(result.resources) == list(report.resources)
    for name, use in report.resources.items():
        assert result.resources[name].held == close(use.held)
        assert result.resources[name].held_until_last_arrival == close(use.held_until_last_arrival)
        assert result.resources[name].over == close(use.over)
        assert result.resources[name].over_until_last_arrival == close(use.over_until_last_arrival)
    for user, expected in zip(result.users, report.users, strict=True):
        assert (user.user, user.jobs, user.tasks) == (expected.user, expected.jobs, expected.tasks)
        assert user.contending_ms == expected.contending_ms
        assert user.alone_completion_ms == expected.alone_completion_ms
        assert user.mean_completion_ms == close(expected.mean_completion_ms)
        assert user.mean_slowdown == close(expected.mean_slowdown)
        assert user.mean_wait_ms == close(expected.mean_wait_ms)
        assert user.mean_share == close(expected.mean_share)
        assert user.below_fraction == close(expected.below_fraction)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=40)
@given(jobs=workloads())
def test_streaming_numbers_are_those_of_the_records(policy: str, jobs: list[Job]) -> None:
    result = run_policy(jobs, NODES, policy, SimulationOptions(seed=1))

    assert result.is_complete
    assert_same(result, recorded(jobs, policy))
