import pytest

from fairlead_sim.workload import JobChooser, Selection, WorkloadError, group_jobs
from tests.laboratory.workloads.workload_builders import a_bundle


def ids(selection: Selection, *rows: tuple[str, int]) -> list[str]:
    chooser = JobChooser(selection)
    return [job for job, at_ms in rows if chooser.takes(job, at_ms)]


def test_limit_takes_the_first_jobs_with_all_their_rows() -> None:
    rows = [("a", 0), ("b", 1), ("c", 2), ("a", 3), ("c", 4)]

    assert ids(Selection(jobs_max=2), *rows) == ["a", "b", "a"]


def test_window_takes_jobs_by_their_first_row() -> None:
    rows = [("a", 0), ("b", 10), ("a", 11), ("b", 25), ("c", 20)]

    assert ids(Selection(from_ms=10, until_ms=20), *rows) == ["b", "b"]


def test_limit_counts_jobs_inside_the_window() -> None:
    rows = [("a", 0), ("b", 10), ("c", 11), ("d", 12)]

    assert ids(Selection(from_ms=10, jobs_max=2), *rows) == ["b", "c"]


def test_no_selection_takes_everything() -> None:
    assert ids(Selection(), ("a", 0), ("b", 0), ("a", 5)) == ["a", "b", "a"]


def test_job_collects_its_rows_by_stage() -> None:
    jobs = group_jobs([
        a_bundle("a", stage=1, submit_ms=5),
        a_bundle("b", submit_ms=6),
        a_bundle("a", stage=0, submit_ms=7, tasks=3),
    ])  # fmt: skip

    assert [(job.job_id, job.submit_ms, job.tasks) for job in jobs] == [("a", 5, 4), ("b", 6, 1)]
    assert [[bundle.stage for bundle in stage] for stage in jobs[0].stages()] == [[0], [1]]


def test_job_with_two_owners_is_refused() -> None:
    with pytest.raises(WorkloadError, match="job a: expected one owner, got 'ann' and 'bob'"):
        group_jobs([a_bundle("a", user="ann"), a_bundle("a", user="bob")])


def test_empty_workload_is_refused() -> None:
    with pytest.raises(WorkloadError, match="expected at least one job, got none"):
        group_jobs([])
