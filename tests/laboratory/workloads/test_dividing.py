"""A part of some work for a part of the nodes."""

from dataclasses import replace
from pathlib import Path

from fairlead_lab.workloads.dividing import divide
from fairlead_lab.workloads.scenario import TraceSource
from fairlead_lab.workloads.traces import COLUMNS, TraceOptions
from fairlead_sim.workload import Bundle, Job, Selection


def _job(name: str, *stages: int) -> Job:
    bundles = tuple(
        Bundle(
            job_id=name, user="u", stage=stage, tasks=tasks, unit=(1000, 0, 0, 0), submit_ms=0, duration_ms=1
        )
        for stage, tasks in enumerate(stages)
    )
    return Job(job_id=name, user="u", submit_ms=0, bundles=bundles)


def _jobs(count: int, *stages: int) -> list[Job]:
    return [_job(f"job-{number}", *stages) for number in range(count)]


def test_a_divisor_of_one_changes_nothing() -> None:
    jobs = _jobs(3, 7, 1)

    assert divide(jobs, 1) == jobs


def test_what_divides_is_divided() -> None:
    assert [[bundle.tasks for bundle in job.bundles] for job in divide(_jobs(4, 30, 10), 10)] == [[3, 1]] * 4


def test_the_expected_number_of_tasks_is_kept() -> None:
    """A tenth of 3,000 jobs of one task, and 2,000 jobs of 15 tasks: binomial, so four deviations are 66 and 90."""
    small, large = divide(_jobs(3_000, 1), 10), divide(_jobs(2_000, 15), 10)

    assert abs(len(small) - 300) < 66
    assert len(large) == 2_000
    assert abs(sum(job.tasks for job in large) - 3_000) < 90


def test_a_job_that_remains_keeps_a_task_of_each_stage() -> None:
    assert [[bundle.tasks for bundle in job.bundles] for job in divide(_jobs(1, 40, 1), 10)] == [[4, 1]]


def test_the_part_of_a_job_is_the_same_whatever_else_there_is() -> None:
    jobs = _jobs(50, 3, 4)

    assert divide(jobs, 10)[-1:] == [part for job in jobs for part in divide([job], 10)][-1:]
    assert divide(jobs, 10) == divide(jobs, 10)
    assert divide(jobs, 10) != divide(jobs, 10, seed=2)


def test_times_and_demands_stay_as_they_were() -> None:
    (job,) = _jobs(1, 20)

    assert divide([job], 20) == [replace(job, bundles=(replace(job.bundles[0], tasks=1),))]


def test_jobs_that_are_lost_are_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    rows = [f"0,j{number},ann,0,1,1,100,0,5" for number in range(200)]
    path.write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")
    source = TraceSource(path=path, format="auto", options=TraceOptions(), selection=Selection(), divisor=10)

    work = source.work(1)

    assert 0 < len(work.jobs) < 60
    assert work.remarks == (
        f"{200 - len(work.jobs)} of 200 jobs left out: none of their tasks is left when divided by 10",
    )
    assert replace(source, divisor=1).work(1).remarks == ()
