"""One workload under one policy: what a run says of itself."""

import pytest

from fairlead_lab.metrics.result import UNFINISHED
from fairlead_lab.metrics.static_slice import NEVER, completions_alone_ms
from fairlead_lab.metrics.sums import Metrics, Subject
from fairlead_lab.study.run import run_policy
from fairlead_lab.study.study import SimulationOptions
from fairlead_master.allocation.api import AllocationError
from fairlead_sim.node import Node
from fairlead_sim.workload import Bundle, Job, WorkloadError
from tests.laboratory.workloads.workload_builders import GIB

NODES = [Node(name=name, total=(4000, 8 * GIB, 0, 0)) for name in ("a", "b")]


def a_job(
    job_id: str, tasks: int, cpus: int, duration_ms: int = 1000, *, user: str = "ann", is_gang: bool = False, submit_ms: int = 0
) -> Job:  # fmt: skip
    bundle = Bundle(
        job_id=job_id,
        user=user,
        stage=0,
        tasks=tasks,
        unit=(cpus * 1000, GIB, 0, 0),
        submit_ms=submit_ms,
        duration_ms=duration_ms,
        is_gang=is_gang,
    )
    return Job(job_id=job_id, user=user, submit_ms=submit_ms, bundles=(bundle,))


def test_completions_are_in_the_order_of_the_jobs() -> None:
    jobs = [a_job("long", 1, 1, 5000), a_job("huge", 1, 16), a_job("short", 1, 1, 300)]

    result = run_policy(jobs, NODES, "drf")

    assert list(result.completions_ms) == [5000, UNFINISHED, 300]
    assert list(result.slowdowns) == [1.0, UNFINISHED, 1.0]
    assert result.jobs == 2
    assert [(each.jobs, each.tasks, each.example) for each in result.refused] == [(1, 1, "huge")]


def test_time_begins_with_the_first_job() -> None:
    early = run_policy([a_job("j", 3, 4)], NODES, "drf")
    late = run_policy([a_job("j", 3, 4, submit_ms=10**9)], NODES, "drf")

    assert late.makespan_ms == early.makespan_ms == 2000
    assert late.series == early.series


def test_a_gang_too_large_for_the_cluster_is_refused() -> None:
    result = run_policy([a_job("gang", 3, 4, is_gang=True), a_job("j", 1, 4)], NODES, "drf")

    assert result.is_complete
    assert (result.jobs, result.jobs_refused) == (1, 1)
    assert result.refused[0].reason.startswith("a gang of 3 tasks")


def test_a_gang_that_fits_under_slots_alone_is_measured_there() -> None:
    """It is larger than everything that was classed by what the nodes have."""
    jobs = [a_job("small", 1, 1), a_job("gang", 4, 3, is_gang=True)]

    assert run_policy(jobs, NODES, "drf").jobs_refused == 1
    result = run_policy(jobs, NODES, "slots:2")

    assert (result.jobs_finished, result.jobs_refused) == (2, 0)
    assert sum(each.wait.count for each in result.waits_by_size) == 5
    assert sum(each.jobs for each in result.jobs_by_size) == 2


def test_a_run_in_which_nothing_gets_on_is_noticed() -> None:
    job = a_job("j", 1, 1)
    metrics = Metrics(
        Subject(
            jobs=[job],
            hosts={node.name: node.total for node in NODES},
            user_of=lambda job: job.user,
            size_ends=(1.0,),
        )
    )

    assert not metrics.is_stalled(10**9)
    metrics.arrived(job, 5)

    assert metrics.is_stalled(6)
    assert not metrics.is_stalled(5)


def test_a_horizon_ends_the_run() -> None:
    result = run_policy([a_job("j", 4, 4, 1000)], NODES, "drf", SimulationOptions(horizon_ms=1500))

    assert not result.is_complete
    assert (result.tasks_finished, result.jobs_finished) == (2, 0)


def test_each_job_may_have_a_share_of_its_own() -> None:
    """Under drf by user the later user is served first; by job, the three jobs are equals."""
    jobs = [a_job("a", 8, 1), a_job("b", 8, 1), a_job("c", 8, 1, user="bob")]

    by_user = run_policy(jobs, NODES, "drf")
    by_job = run_policy(jobs, NODES, "drf", SimulationOptions(is_user_per_job=True))

    assert [user.user for user in by_user.users] == ["ann", "bob"]
    assert [user.user for user in by_job.users] == ["a", "b", "c"]
    assert list(by_user.completions_ms) == [2000, 3000, 2000]
    assert list(by_job.completions_ms) == [3000, 3000, 3000]


def test_weights_are_told_to_the_policy_and_entitle() -> None:
    jobs = [a_job("a", 40, 1), a_job("b", 40, 1, user="bob")]

    equal = run_policy(jobs, NODES, "drf")
    weighted = run_policy(jobs, NODES, "drf", SimulationOptions(weights={"bob": 3.0}))

    assert equal.completions_ms[1] > weighted.completions_ms[1]
    assert weighted.jain == pytest.approx(1.0)
    shares = {user.user: user.alone_completion_ms for user in weighted.users}
    assert shares == {"ann": 20_000, "bob": 7_000}


def test_what_cannot_be_run_is_refused_before_it_runs() -> None:
    job = a_job("j", 1, 1)

    with pytest.raises(WorkloadError, match="at least one job"):
        run_policy([], NODES, "drf")
    with pytest.raises(WorkloadError, match="nodes: expected at least one"):
        run_policy([job], [], "drf")
    with pytest.raises(WorkloadError, match=r"got none among 1: huge: .*lacks cpus"):
        run_policy([a_job("huge", 1, 64)], NODES, "drf")
    with pytest.raises(AllocationError, match="polka"):
        run_policy([job], NODES, "polka")
    with pytest.raises(WorkloadError, match="each name once, got 'a' twice"):
        run_policy([job], [NODES[0], NODES[0]], "drf")


def test_a_gang_starts_whole_on_an_own_slice() -> None:
    gang = a_job("gang", 4, 1, 1000, is_gang=True)
    jobs = [a_job("first", 1, 1, 700), gang, a_job("later", 1, 1, 100)]

    found = completions_alone_ms(jobs, range(3), (4000, 64 * GIB, 0, 0), user_of=lambda job: job.user)

    assert list(found) == [700, 1700, 100]


def test_a_slice_too_small_for_a_task_is_no_yardstick() -> None:
    jobs = [a_job("a", 1, 3), a_job("b", 1, 1, user="bob")]

    found = completions_alone_ms(jobs, range(2), (4000, 64 * GIB, 0, 0), user_of=lambda job: job.user)

    assert list(found) == [NEVER, 1000]


def test_both_levels_come_to_the_same_but_for_the_delays_of_messages() -> None:
    jobs = [
        a_job(f"{user}{number}", 6, cpus, 20_000, user=user, submit_ms=number * 15_000)
        for number in range(5)
        for user, cpus in (("ann", 1), ("bob", 2))
    ]

    pool = run_policy(jobs, NODES, "drf")
    whole = run_policy(jobs, NODES, "drf", SimulationOptions(level="cluster"))

    assert whole.is_complete
    assert whole.jobs_finished == pool.jobs_finished == 10
    assert whole.decisions == pool.decisions
    assert list(whole.completions_ms) == pytest.approx(list(pool.completions_ms), abs=1000)
    assert whole.utilization["cpus"] == pytest.approx(pool.utilization["cpus"], rel=0.02)


def test_a_seed_is_a_run() -> None:
    """Only gangs that give up draw, so the workload is of them."""
    jobs = [a_job(f"g{number}", 2, 4, 90_000, is_gang=True, user=f"u{number}") for number in range(4)]

    def found(seed: int) -> list[int]:
        return list(run_policy(jobs, NODES, "drf", SimulationOptions(seed=seed)).completions_ms)

    assert found(3) == found(3)
    assert len({tuple(found(seed)) for seed in range(6)}) > 1


def test_progress_is_told_in_tasks() -> None:
    told: list[int] = []
    jobs = [a_job(f"j{number}", 1, 1, submit_ms=number * 2000) for number in range(4000)]

    run_policy(jobs, NODES, "drf", progress=told.append)

    assert told == sorted(told)
    assert 0 < told[-1] <= 4000


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("placement", SimulationOptions(placement="nowhere")),
        ("when_head_does_not_fit", SimulationOptions(when_head_does_not_fit="nowhere")),
        ("level", SimulationOptions(level="nowhere")),
    ],
)
def test_an_unknown_option_is_named(name: str, options: SimulationOptions) -> None:
    with pytest.raises(AllocationError, match=f"{name}: .*nowhere"):
        run_policy([a_job("j", 1, 1)], NODES, "drf", options)
