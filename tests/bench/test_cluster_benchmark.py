"""Each part of the benchmark runs at a small scale and gives the rows it promises. What they say is not judged here."""

from pathlib import Path

import pytest

from fairlead_bench import control_path, footprint, processes
from fairlead_bench.cluster import ClusterOptions, run_cluster
from fairlead_bench.control_path import ControlPathOptions
from fairlead_bench.footprint import FootprintOptions
from fairlead_bench.processes import ProcessOptions

pytestmark = pytest.mark.shell


@pytest.mark.parametrize("is_steady", [False, True])
def test_control_path_loses_no_task_and_stands_beside_its_floor(tmp_path: Path, is_steady: bool) -> None:
    profile = tmp_path / "profile.txt"
    options = ControlPathOptions(
        agents=3,
        frameworks=3,
        cpus_per_agent=4,
        demand=8,
        is_steady=is_steady,
        roles=2,
        warm_s=0.5,
        measure_s=0.5,
        tasks_min=50,
        measure_max_s=30,
        profile=profile,
    )

    result = control_path.measure(options)
    floor = control_path.measure_floor(options, result)
    rows = {row.name.partition(": ")[2]: row for row in control_path.rows(options, result, floor)}

    assert result.tasks >= 50
    assert rows["tasks lost"].value == 0
    assert rows["tasks"].ratio is not None
    assert rows["master CPU"].target == "< 100"
    assert "in the function itself" in profile.read_text()
    assert [row.unit for row in control_path.memory_rows(result)] == ["tasks", "MiB", "MiB"]


def test_offered_load_wants_more_although_nothing_of_it_was_served() -> None:
    options = ControlPathOptions(agents=0, frameworks=2, generators=1, demand=3, tasks_per_s=60, measure_s=1)

    result = control_path.measure(options)

    assert result.tasks == 0
    assert result.frameworks.sent >= 2 * options.frameworks, "a demand each 0.1 s"


def test_processes_are_run_and_timed() -> None:
    options = ProcessOptions(tasks=6, warm_tasks=2, single_tasks=3, floor_s=0.1)

    result = processes.measure(options, "none")

    assert len(result.latencies_ms) == 3
    assert [row.unit for row in processes.rows(result)] == ["tasks/s", "ms", "ms"]
    assert processes.rows(result)[0].ratio is not None


def test_footprint_has_a_figure_for_each_process() -> None:
    rows = footprint.measure(FootprintOptions(repeats=1, idle_s=0.1))

    by_name = {row.name: row.value for row in rows}
    for who in ("master", "agent", "executor"):
        assert by_name[f"footprint: idle {who}, PSS"] > 1
    assert by_name["footprint: fairlead up to the first finished task"] > 0


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match=r"part: expected one of control-path, .*, got 'speed'"):
        run_cluster(ClusterOptions(parts=("speed",)))
