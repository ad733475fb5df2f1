"""The benchmark of both levels of simulation gives what it promises; what it times is nobody's claim here."""

from pathlib import Path

import pytest

from fairlead_bench.levels import POLICIES, measure, own_demands, shared_demands


def test_the_quick_benchmark_measures_both_levels_and_a_trace(tmp_path: Path) -> None:
    trace = tmp_path / "small.csv"
    trace.write_text(
        "submit_s,job_id,user_id,stage,n_tasks,cpus,mem_mb,gpus,duration_s\n0,j,u,0,3,1,512,0,10\n"
    )

    rows = measure(1, "quick", trace)

    names = [row.name for row in rows]
    assert [name for name in names if name.startswith("pool")][: len(POLICIES)] == [
        f"pool, {policy}: tasks started or ended" for policy in POLICIES
    ]
    assert "cluster, drf: tasks started or ended" in names
    assert any("small on 400 nodes" in name for name in names)
    assert all(row.value > 0 for row in rows)


def test_its_workloads_are_what_the_seed_says() -> None:
    assert shared_demands(3, 20) == shared_demands(3, 20) != shared_demands(4, 20)
    singles = own_demands(3, 50)
    assert len({bundle.unit for job in singles for bundle in job.bundles}) == 50
    assert all(job.tasks == 1 for job in singles)


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="full, quick"):
        measure(1, "huge")
