from pathlib import Path

import pytest

from fairlead_lab.workloads.loading import load, load_jobs
from fairlead_lab.workloads.sample import SAMPLE
from fairlead_lab.workloads.traces import TraceOptions
from fairlead_sim.workload import Selection, WorkloadError

HEADER = "submit_s,job_id,user_id,stage,n_tasks,cpus,mem_mb,gpus,duration_s"


def a_file(tmp_path: Path, *lines: str, name: str = "trace.csv") -> Path:
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_jobs_of_a_trace_come_by_arrival() -> None:
    jobs = load_jobs(SAMPLE)

    assert [job.submit_ms for job in jobs] == sorted(job.submit_ms for job in jobs)


def test_selection_takes_a_part() -> None:
    assert load_jobs(str(SAMPLE), selection=Selection(jobs_max=2)) == load_jobs(SAMPLE)[:2]


def test_what_happened_to_rows_is_told(tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER, "0,a,u,0,2,1,1,0,5", "0,b,u,0,1,1,1,0,")

    loaded = load(path, options=TraceOptions(skip_without_duration=True))

    assert (loaded.format, loaded.tasks, loaded.rows_without_duration) == ("normalised", 2, 1)


def test_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(WorkloadError, match=r"trace format: expected auto, normalised.*got 'swff'"):
        load_jobs(SAMPLE, format="swff")


def test_rows_of_several_tasks_of_the_grid_trace_are_gangs_with_constraints(tmp_path: Path) -> None:
    path = a_file(
        tmp_path, HEADER + ",node_spec", "0,a,u,0,2,1,1,0,5,2:ppn=1:cl_zegox", "0,b,u,0,1,1,1,0,5,1:ppn=1"
    )

    first, second = (job.bundles[0] for job in load_jobs(path))
    plain = load_jobs(path, options=TraceOptions(with_gangs=False, with_constraints=False))[0].bundles[0]

    assert first.is_gang
    assert [str(constraint) for constraint in first.constraints] == ["model=zegox"]
    assert not second.is_gang
    assert (plain.is_gang, plain.constraints) == (False, ())


def test_column_may_say_which_rows_are_gangs(tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER + ",gang,gpu_spec", "0,a,u,0,2,1,1,0,5,1,T4", "0,b,u,0,2,1,1,0,5,0,")

    bundles = [job.bundles[0] for job in load_jobs(path)]

    assert [bundle.is_gang for bundle in bundles] == [True, False]
    assert [" ".join(map(str, bundle.constraints)) for bundle in bundles] == ["model=T4", ""]
