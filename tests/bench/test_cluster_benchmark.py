"""Each part of the benchmark runs at a small scale and gives the rows it promises. What they say is not judged here."""

from pathlib import Path

import pytest

from fairlead_bench import control_path, footprint, peers, processes
from fairlead_bench.children import BenchFailed
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


SERVED_BY_A_SHELL = """#!/bin/sh
# hq --server-dir DIR [--output-mode json] server|worker|submit ...
shift 2; [ "$1" = --output-mode ] && shift 2
case "$1 $2" in
    "server start" | "worker start") exec sleep 60 ;;
    "worker list") echo "[1, 2]" ;;
esac
"""


def test_commands_and_tasks_are_timed_beside_their_floor_and_other_programs(tmp_path: Path) -> None:
    hq = tmp_path / "hq"
    hq.write_text(SERVED_BY_A_SHELL)
    hq.chmod(0o700)
    ray = tmp_path / "python"
    ray.write_text("#!/bin/sh\necho '[2.0, [1.0, 3.0]]'\n")
    ray.chmod(0o700)
    options = ProcessOptions(
        rounds=1,
        tasks=6,
        warm_tasks=2,
        single_tasks=3,
        single_commands=1,
        floor_s=0.1,
        hq=str(hq),
        ray_python=str(ray),
    )

    rows = {row.name.partition(": ")[2]: row for row in processes.measure(options, "none")}

    per_s = ["SDK", "shell, run -n", "xargs -P", "HyperQueue, array", "Ray"]
    took = ["SDK, one at a time, p99", "Ray, one at a time, p50", "shell, run, one at a time, p50"]
    for name in (*per_s, *took):
        assert rows[name].value > 0
        assert rows[name].ratio is not None, name
    assert rows["Ray, one at a time, p50"].value == 2
    for who in ("master", "agent", "executor", "all processes", "HyperQueue, all processes"):
        assert rows[f"{who}, PSS idle"].value > 0
        assert rows[f"{who}, PSS after"].value > 0


def test_what_is_not_there_is_left_out() -> None:
    options = ProcessOptions(rounds=1, tasks=2, warm_tasks=1, single_tasks=1, single_commands=1, floor_s=0.1)

    names = " ".join(row.name for row in processes.measure(options, "auto"))

    assert "HyperQueue" not in names
    assert "Ray" not in names
    assert "isolation auto (" in names


def test_a_program_that_fails_ends_the_measurement_with_its_words() -> None:
    with pytest.raises(BenchFailed, match=r"sh -c echo no room >&2; exit 3 ended with code 3: no room"):
        peers.timed_s(["sh", "-c", "echo no room >&2; exit 3"])


def test_footprint_has_a_figure_for_the_start_and_for_idleness() -> None:
    rows = footprint.measure(FootprintOptions(repeats=1, idle_s=0.1))

    by_name = {row.name: row for row in rows}
    first = by_name["footprint: fairlead up to the first finished task"]
    assert first.floor is not None
    assert first.value > first.floor
    assert "footprint: idle master, CPU" in by_name


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match=r"part: expected one of control-path, .*, got 'speed'"):
        run_cluster(ClusterOptions(parts=("speed",)))
