import json
from collections.abc import Mapping, Sequence

import pytest
from rich.console import Console

from fairlead_lab.metrics.records import ClusterSample, JobRecord, RunRecord, TaskRecord
from fairlead_lab.metrics.report import build_report
from fairlead_lab.metrics.report_table import percent, print_reports, seconds
from fairlead_lab.metrics.result import PolicyResult, UserReport
from fairlead_lab.metrics.statistics import percentile, spread
from fairlead_proto.resources import Vector
from tests.laboratory.workloads.workload_builders import GIB, a_job_record, a_run, a_task_record

AGENTS = {"a0": (4000, 8 * GIB, 0, 0)}
CPU_HALF = (2000, GIB, 0, 0)
MEM_HALF = (1000, 4 * GIB, 0, 0)


def test_percentiles_are_of_the_nearest_rank() -> None:
    numbers = list(range(1, 101))

    assert [percentile(numbers, percent) for percent in (1, 50, 95, 99, 100)] == [1, 50, 95, 99, 100]
    assert percentile([7], 50) == 7
    assert percentile([1, 2], 50) == 1
    assert percentile([1, 2, 3], 95) == 3


def test_spread_of_nothing_is_zero() -> None:
    assert spread([]).count == 0
    assert spread([3, 1, 2]).mean == 2


def measured(tasks: Sequence[TaskRecord], agents: Mapping[str, Vector] = AGENTS) -> PolicyResult:
    """What a run of these tasks came to, each a job of its own."""
    return build_report(a_run(*map(a_job_record, tasks), agents=agents)).result


def users_of(result: PolicyResult) -> dict[str, UserReport]:
    return {user.user: user for user in result.users}


def test_shares_are_integrated_over_the_time_a_user_is_present() -> None:
    # ann holds half of the CPU from 1 to 3 s and waits for one second before; her share while present is 1/3.
    result = measured([a_task_record(unit=CPU_HALF, submitted_ms=0, started_ms=1000, finished_ms=3000)])

    assert users_of(result)["ann"].mean_share == pytest.approx(1 / 3)
    assert result.resources["cpus"].held == pytest.approx(1 / 2 * 2 / 3)
    assert result.contended_ms == 0
    assert result.jain is None


def test_fairness_counts_only_while_two_users_want_more() -> None:
    # 0 to 2 s: ann holds 1/2 and wants more, bob holds 1/8 and wants more: J = (5/8)^2 / (2 (1/4 + 1/64)).
    # From 2 s on ann's second task runs, so bob alone wants more and nothing is compared.
    small = (500, GIB, 0, 0)
    tasks = [
        a_task_record("a1", unit=CPU_HALF, finished_ms=2000),
        a_task_record("a2", unit=CPU_HALF, started_ms=2000, finished_ms=4000),
        a_task_record("b1", user="bob", unit=small, finished_ms=4000),
        a_task_record("b2", user="bob", unit=small, started_ms=4000, finished_ms=5000),
    ]

    result = measured(tasks)

    assert result.contended_ms == 2000
    assert result.jain == pytest.approx((5 / 8) ** 2 / (2 * (1 / 4 + 1 / 64)))
    assert (users_of(result)["bob"].contending_ms, users_of(result)["bob"].below_fraction) == (2000, 1)
    assert users_of(result)["ann"].below_fraction == 0


@pytest.mark.parametrize(
    ("held", "index"),
    [((2, 2, 2), 1), ((6, 0, 0), 1 / 3), ((1, 2, 3), 36 / (3 * 14)), ((0, 0), 1)],
)
def test_jains_index_is_one_for_equals_and_one_nth_for_a_monopoly(
    held: tuple[int, ...], index: float
) -> None:
    tasks = [
        a_task_record(f"{user}-{number}", user=user, unit=(500, 0, 0, 0))
        for user, count in zip("abc", held, strict=False)
        for number in range(count)
    ]
    tasks += [
        a_task_record(user=user, started_ms=None, finished_ms=None, state="PENDING")
        for user, _ in zip("abc", held, strict=False)
    ]
    tasks.append(a_task_record(user="later", submitted_ms=1000, started_ms=1000, finished_ms=1000))

    assert measured(tasks).jain == pytest.approx(index)


def test_task_that_never_started_waits_to_the_end() -> None:
    tasks = [
        a_task_record("a1", finished_ms=3000),
        a_task_record("a2", started_ms=None, finished_ms=None, state="STAGING"),
        a_task_record("b1", user="bob", started_ms=None, finished_ms=None, state="PENDING", agent_id=""),
    ]

    result = measured(tasks)

    assert result.contended_ms == 3000
    assert users_of(result)["bob"].mean_share == 0


def test_job_that_was_due_after_the_end_adds_no_contention() -> None:
    """A run cut short has jobs that were never handed in; who still waited did so until the end and no longer."""
    waiting = [
        a_job_record(a_task_record(user=user, started_ms=None, finished_ms=None, state="PENDING"))
        for user in ("ann", "bob")
    ]
    ended = a_job_record(a_task_record("e", user="eve", finished_ms=3000))
    never = JobRecord(job_id="n", user="dan", planned_ms=9000, submitted_ms=9000, tasks=(), withheld=4)

    report = build_report(a_run(*waiting, ended, never))

    assert report.result.contended_ms == 3000
    assert (report.result.jobs, report.result.tasks, report.tasks_unended) == (4, 7, 6)
    assert users_of(report.result)["dan"].tasks == 4


def test_stage_handed_in_after_the_last_end_does_not_lengthen_the_run() -> None:
    staged = a_job_record(
        a_task_record("s0"),
        a_task_record("s1", stage=1, submitted_ms=1500, started_ms=None, finished_ms=None, state="PENDING"),
    )

    assert build_report(a_run(staged)).result.makespan_ms == 1000


def test_what_slots_promise_twice_is_counted_as_over() -> None:
    # Three tasks of 2 cores each on an agent of 4 for one second: 2 core-seconds too many.
    tasks = [a_task_record(f"t{number}", unit=CPU_HALF) for number in range(3)]

    result = measured(tasks)

    assert result.resources["cpus"].over == 2 / 4
    assert result.resources["mem"].over == 0
    assert result.crowded_fraction == 1


def test_only_the_time_on_a_crowded_agent_counts_as_crowded() -> None:
    # a0 holds two halves and, from 0.5 s on, a third; a1 holds one.
    agents = {"a0": (4000, 8 * GIB, 0, 0), "a1": (4000, 8 * GIB, 0, 0)}
    tasks = [
        a_task_record("t0", unit=CPU_HALF),
        a_task_record("t1", unit=CPU_HALF),
        a_task_record("t2", unit=CPU_HALF, started_ms=500, finished_ms=1000),
        a_task_record("t3", unit=CPU_HALF, agent_id="a1"),
    ]

    assert measured(tasks, agents).crowded_fraction == pytest.approx(3 * 500 / (3 * 1000 + 500))


def test_tasks_on_two_agents_are_not_over_because_their_sum_is() -> None:
    agents = {"a0": (4000, 8 * GIB, 0, 0), "a1": (4000, 8 * GIB, 0, 0)}
    tasks = [a_task_record("t0", unit=(4000, GIB, 0, 0)), a_task_record("t1", unit=CPU_HALF, agent_id="a1")]

    assert measured(tasks, agents).resources["cpus"].over == 0


def test_agent_that_joined_during_the_run_counts_in_shares_and_never_as_over() -> None:
    result = measured([a_task_record(unit=(9000, GIB, 0, 0), agent_id="later")])

    assert users_of(result)["ann"].mean_share == 9 / 4
    assert result.crowded_fraction == 0


def alone_ms(*jobs: JobRecord, slices: int) -> float | None:
    """Mean completion of ann's jobs on her slice, one of so many."""
    others = [
        a_job_record(a_task_record(user=f"other-{number}", unit=(1, 1, 0, 0))) for number in range(slices - 1)
    ]
    return users_of(build_report(a_run(*jobs, *others)).result)["ann"].alone_completion_ms


def test_slice_of_one_nth_runs_a_users_jobs_by_hand() -> None:
    # A half of 4 cores holds one 2-core task: jobs of 1 s at 0 s and 0.5 s end at 1 s and 2 s.
    jobs = [
        a_job_record(a_task_record("t0", job_id="a", unit=CPU_HALF)),
        a_job_record(
            a_task_record("t1", job_id="b", unit=CPU_HALF, submitted_ms=500, started_ms=500, finished_ms=1500)
        ),
    ]

    assert alone_ms(*jobs, slices=2) == (1000 + 1500) / 2
    assert alone_ms(*jobs, slices=1) == 1000
    assert alone_ms(*jobs, slices=3) is None


def test_slice_lets_a_small_task_pass_a_large_one_and_keeps_stages_apart() -> None:
    # A slice of 2 cores: the 2-core task runs 0 to 1 s; the 1-core stages run at 1 and 2 s, the waiting 2-core one at 3 s.
    one = (1000, GIB, 0, 0)
    staged = a_job_record(
        a_task_record("s0", job_id="s", unit=one, submitted_ms=100, duration_ms=1000),
        a_task_record("s1", job_id="s", unit=one, submitted_ms=100, stage=1, duration_ms=1000),
    )
    first = a_job_record(a_task_record("f", job_id="f", unit=CPU_HALF, duration_ms=1000))

    assert alone_ms(first, staged, slices=2) == (1000 + 2900) / 2


def test_report_of_a_small_run_has_the_numbers_done_by_hand() -> None:
    # One agent of 4 cores, 8 GiB. ann: 2 tasks of 2 cores at 0 s, run 0-1 s and 1-3 s; bob: one of 4 GiB, 0.5-2.5 s.
    ann = a_job_record(
        a_task_record("a1", unit=CPU_HALF, duration_ms=990),
        a_task_record("a2", unit=CPU_HALF, started_ms=1000, finished_ms=3000, duration_ms=1990, attempts=2),
    )
    bob = a_job_record(
        a_task_record(
            "b1", job_id="j1", user="bob", unit=MEM_HALF, submitted_ms=500, started_ms=500, finished_ms=2500
        ),
        planned_ms=480,
    )

    report = build_report(a_run(ann, bob, decisions=6))

    assert (
        report.result.jobs,
        report.result.jobs_finished,
        report.result.tasks,
        report.result.tasks_finished,
    ) == (2, 2, 3, 3)
    assert (report.tasks_failed, report.tasks_lost, report.tasks_unended, report.retries) == (0, 0, 0, 1)
    assert report.result.makespan_ms == 3000
    assert (
        report.result.completion_ms.mean,
        report.result.completion_ms.p50,
        report.result.completion_ms.p95,
    ) == (
        2500,
        2000,
        3000,
    )
    assert report.result.slowdown.mean == pytest.approx((3000 / 1990 + 1) / 2)
    assert report.result.wait_ms.most == 1000
    assert (report.launch_overhead_ms.most, report.launch_overhead_ms.p50) == (10, 10)
    assert (report.lag_ms.p50, report.lag_ms.most) == (0, 20)
    # Core-seconds: 2 x 3 + 1 x 2 of 4 x 3. GiB-seconds: 1 x 3 + 4 x 2 of 8 x 3.
    assert report.result.resources["cpus"].held == pytest.approx(8 / 12)
    assert report.result.resources["mem"].held == pytest.approx(11 / 24)
    # Until bob's arrival at 0.5 s only ann's 2 of 4 cores are held.
    assert report.result.resources["cpus"].held_until_last_arrival == pytest.approx(0.5)
    assert report.result.resources["cpus"].over == 0
    assert report.result.resources["cpus"].allocated is None
    assert set(report.result.resources) == {"cpus", "mem"}
    assert (report.result.decisions, report.decisions_per_s) == (6, 2)


def test_user_worse_off_than_on_his_slice_is_a_violation() -> None:
    # bob's 1-core second takes 2 s because ann holds everything; alone on half of the agent it would have taken one.
    ann = a_job_record(a_task_record(unit=(4000, GIB, 0, 0)))
    bob = a_job_record(
        a_task_record("b", job_id="b", user="bob", started_ms=1000, finished_ms=2000, duration_ms=1000)
    )

    report = build_report(a_run(ann, bob))

    assert report.result.violations == report.result.clear_violations == ["bob"]
    assert {user.user: user.alone_completion_ms for user in report.result.users} == {"ann": None, "bob": 1000}


def test_user_who_is_worse_off_by_a_launch_is_no_clear_violation() -> None:
    """The static slice launches for free, so a few milliseconds are not the policy's fault."""
    ann = a_job_record(a_task_record(unit=(500, GIB, 0, 0)))
    bob = a_job_record(
        a_task_record(
            "b", job_id="b", user="bob", unit=(500, GIB, 0, 0), started_ms=90, finished_ms=110, duration_ms=20
        )
    )

    report = build_report(a_run(ann, bob))

    assert report.result.violations == ["bob"]
    assert report.result.clear_violations == []


def test_what_did_not_finish_is_counted_and_kept_out_of_the_means() -> None:
    good = a_job_record(a_task_record("a"))
    failed = a_job_record(a_task_record("b", job_id="b", state="FAILED", finished_ms=90_000))
    lost = a_job_record(
        a_task_record("c", job_id="c", state="LOST", started_ms=None, finished_ms=None, attempts=4)
    )
    cut = a_job_record(
        a_task_record("d", job_id="d", state="PENDING", started_ms=None, finished_ms=None, attempts=0)
    )

    report = build_report(a_run(good, failed, lost, cut))

    assert (report.result.jobs, report.result.jobs_finished) == (4, 1)
    assert (report.result.tasks_finished, report.tasks_failed, report.tasks_lost, report.tasks_unended) == (
        1,
        2,
        1,
        1,
    )
    assert report.retries == 3
    assert report.result.completion_ms.mean == 1000


def test_waits_are_grouped_by_size_with_equal_sizes_together() -> None:
    sizes = [400, 400, 400, 800, 2000, 4000]
    tasks = [
        a_task_record(f"t{n}", unit=(size, 0, 0, 0), started_ms=size, finished_ms=size + 1)
        for n, size in enumerate(sizes)
    ]

    classes = measured(tasks).waits_by_size

    assert [(entry.largest_size, entry.wait.count, entry.wait.mean) for entry in classes] == [
        (0.1, 3, 400),
        (0.5, 2, 1400),
        (1.0, 1, 4000),
    ]


def test_masters_samples_give_allocated_and_used() -> None:
    samples = tuple(
        ClusterSample(
            at_ms=at_ms, total=AGENTS["a0"], allocated=(cpus, 0, 0, 0), used=(100, 0, 0, 0), roles={}
        )
        for at_ms, cpus in ((0, 4000), (500, 2000))
    )
    run = RunRecord(policy="drf", agents=AGENTS, jobs=(a_job_record(a_task_record()),), samples=samples)

    use = build_report(run).result.resources["cpus"]

    assert use.allocated == pytest.approx(0.75)
    assert use.used == pytest.approx(0.025)


def test_empty_run_has_a_report() -> None:
    report = build_report(RunRecord(policy="drf", agents=AGENTS, jobs=(), is_complete=False))

    assert (report.result.jobs, report.result.makespan_ms, report.result.users) == (0, 0, [])


def test_report_is_json_and_tables_show_runs_side_by_side() -> None:
    run = a_run(a_job_record(a_task_record()))
    report = build_report(run)
    console = Console(record=True, width=200, force_terminal=False)

    print_reports(console, [report, report])

    shown = console.export_text()
    assert json.loads(json.dumps(report.as_json()))["users"][0]["is_worse_than_alone"] is False
    assert "1 of 1" in shown
    assert "Jain's index" in shown
    assert shown.count("drf") >= 6


def test_numbers_are_shown_with_the_digits_that_matter() -> None:
    assert [seconds(value) for value in (20, 520, 12_340, 123_400)] == ["20 ms", "0.52 s", "12.3 s", "123 s"]
    assert [percent(value) for value in (None, 0.1234, 1.0)] == ["-", "12.3 %", "100.0 %"]
