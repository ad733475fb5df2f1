"""Public formats: what their rows become, and what is said of rows that break their rules."""

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead_lab.workloads.csv_rows import TraceError
from fairlead_lab.workloads.formats.swf import read_header
from fairlead_lab.workloads.loading import load, load_jobs
from fairlead_lab.workloads.swim_model import SwimModel
from fairlead_lab.workloads.traces import TraceOptions
from fairlead_sim.workload import Job, Selection

SAMPLES = Path(__file__).parent / "samples"
SWF = SAMPLES / "cluster.swf"
SWIM = SAMPLES / "facebook.tsv"
OPENB = SAMPLES / "pods.csv"
GOOGLE = SAMPLES / "events.csv"

MIB = 2**20
SKIPPING = TraceOptions(skip_without_duration=True)
HEADER = "submit_s,job_id,user_id,stage,n_tasks,cpus,mem_mb,gpus,duration_s"


def a_file(tmp_path: Path, *lines: str, name: str = "trace.txt") -> Path:
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def message_of(path: Path, format: str = "auto", options: TraceOptions | None = None) -> str:
    with pytest.raises(TraceError) as caught:
        load(path, format=format, options=options)
    return str(caught.value).replace(str(path), "FILE")


def shape_of(jobs: Sequence[Job]) -> list[tuple[str, str, int, int, int, int]]:
    """Job, owner, arrival, stage, tasks and run time of each bundle."""
    return [
        (job.job_id, job.user, bundle.submit_ms, bundle.stage, bundle.tasks, bundle.duration_ms)
        for job in jobs
        for bundle in job.bundles
    ]


@pytest.mark.parametrize(
    ("path", "format"), [(SWF, "swf"), (SWIM, "swim"), (OPENB, "openb"), (GOOGLE, "google")]
)
def test_format_is_told_from_the_file_and_compression_changes_nothing(
    tmp_path: Path, path: Path, format: str
) -> None:
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))

    detected = load(path, options=SKIPPING)

    assert detected.format == format
    assert load(packed, options=SKIPPING) == detected
    assert load(path, format=format, options=SKIPPING) == detected


def test_format_that_cannot_be_told_is_to_be_named(tmp_path: Path) -> None:
    path = a_file(tmp_path, "when,what", "1,2")

    assert message_of(path) == (
        "FILE:1: expected a trace whose format can be told by its first line; name the format, got 'when,what'"
    )


def test_misspelt_column_of_the_own_format_is_named(tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER.replace("cpus", "cores"), "0,a,u,0,1,1,1,0,1")

    assert message_of(path).startswith("FILE:1: expected a header with cpus, got submit_s")


def test_trace_of_2019_is_told_what_to_do(tmp_path: Path) -> None:
    path = a_file(tmp_path, "time,type,collection_id,instance_index", "1,0,2,3")

    assert "expected the normalised columns (export the tables of Google" in message_of(path)


def test_job_of_a_log_is_a_gang_of_its_processors() -> None:
    loaded = load(SWF)
    first, second, *_ = loaded.jobs

    assert shape_of(loaded.jobs) == [
        ("j1", "u3", 0, 0, 4, 60_000),
        ("j2", "u4", 10_000, 0, 2, 30_000),
        ("j5", "nobody", 12_000, 0, 1, 40_000),
        ("j7", "u3", 14_000, 0, 1, 25_000),
    ]
    assert [bundle.is_gang for job in loaded.jobs for bundle in job.bundles] == [True, True, False, False]
    assert (first.bundles[0].unit, second.bundles[0].unit) == ((1000, 2 * MIB, 0, 0), (1000, MIB, 0, 0))


def test_what_a_log_has_and_cannot_be_run_is_counted_by_reason() -> None:
    assert load(SWF).left_out == {
        "cancelled before it started": 1,
        "part of an interrupted job": 1,
        "more processors than the machine has": 1,
    }


def test_directives_of_a_log_are_read() -> None:
    header = read_header(SWF)

    assert (header["MaxProcs"], header["UnixStartTime"]) == ("16", "1370000000")
    assert load(SWF).header == header


def test_owner_of_a_log_may_be_another_number() -> None:
    jobs = load_jobs(SWF, options=TraceOptions(user_column="group"))

    assert [job.user for job in jobs] == ["g1", "g1", "g1", "g2"]
    assert message_of(SWF, options=TraceOptions(user_column="grup")).startswith(
        "FILE: expected an owner among user_id, group"
    )


LOG_ROW = "1 0 0 60 4 -1 -1 4 60 -1 1 3 1 -1 0 1 -1 -1"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (LOG_ROW.replace("1 0 0 60", "2 -1 0 60"), "column submit_s: expected a number of seconds from 0"),
        (LOG_ROW.replace("60 4", "-7 4"), "column run_s: expected a number of seconds from 0"),
        (LOG_ROW.replace("60 4", "-1 4"), "column run_s: expected a run time (or --default-duration or"),
        (LOG_ROW.replace("60 4 -1 -1 4", "60 -1 -1 -1 -1"), "column processors: expected 1 to 1000000 here or in"),
        (LOG_ROW.replace("60 4", "60 x"), "column processors: expected a whole number of processors"),
        (LOG_ROW.replace("-1 1 3", "-1 6 3"), "column status: expected a whole number of status from 0 to 5"),
        (LOG_ROW + " 7", "expected 18 fields (job, submit_s, wait_s"),
        ("1 0", "expected 18 fields (job, submit_s, wait_s"),
    ],
)  # fmt: skip
def test_bad_row_of_a_log_is_named(tmp_path: Path, row: str, expected: str) -> None:
    path = a_file(tmp_path, "; MaxProcs: 8", "", LOG_ROW, row, name="bad.swf")

    assert message_of(path).startswith(f"FILE:4: {expected}")


def test_log_out_of_order_is_refused_or_sorted(tmp_path: Path) -> None:
    later = LOG_ROW.replace("1 0 0", "2 9 0")
    path = a_file(tmp_path, later, LOG_ROW, name="bad.swf")

    assert "FILE:2: column submit_s: expected rows in order of arrival, so 9 or later" in message_of(path)
    jobs = load_jobs(path, options=TraceOptions(accepts_any_order=True))
    assert [job.job_id for job in jobs] == ["j1", "j2"]


def test_log_without_a_job_says_what_became_of_its_rows(tmp_path: Path) -> None:
    path = a_file(tmp_path, "; MaxProcs: 2", LOG_ROW, name="small.swf")

    assert message_of(path) == (
        "FILE: expected at least one job, got none (left out: 1 more processors than the machine has)"
    )


def test_directive_that_is_no_number_is_named(tmp_path: Path) -> None:
    path = a_file(tmp_path, "; MaxProcs: many", LOG_ROW, name="bad.swf")

    assert message_of(path) == (
        "FILE: expected a number from 1 to 1000000 in the directive MaxProcs, got 'many'"
    )


def test_bytes_become_maps_and_reduces() -> None:
    jobs = load_jobs(SWIM)

    assert [(job.job_id, job.submit_ms, [bundle.tasks for bundle in job.bundles]) for job in jobs] == [
        ("a", 0, [1]),
        ("b", 7000, [3, 3]),
        ("c", 9000, [3]),
    ]
    assert [bundle.stage for bundle in jobs[1].bundles] == [0, 1]


def test_run_time_follows_the_bytes_of_a_task() -> None:
    model = SwimModel(spread=0.0)

    jobs = load_jobs(SWIM, options=TraceOptions(swim=model))

    maps, reduces = jobs[1].bundles
    assert maps.duration_ms == round((5 + (400_000_000 + 2_500_000_000) / 3 / (10 * MIB)) * 10) * 100
    assert reduces.duration_ms == round((5 + (2_500_000_000 + 1000) / 3 / (10 * MIB)) * 10) * 100


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_share_of_memory_heavy_stages_is_a_parameter(share: float) -> None:
    model = SwimModel(map_heavy_share=share, reduce_heavy_share=share)

    jobs = load_jobs(SWIM, options=TraceOptions(swim=model))

    # A gibibyte for each core and a half is below what tells the two kinds apart; rounding to 128 MiB adds less.
    ratios = [bundle.unit[1] / 2**30 / (bundle.unit[0] / 1000) for job in jobs for bundle in job.bundles]
    assert all((ratio > 2) == bool(share) for ratio in ratios)


def test_another_name_of_the_model_draws_anew() -> None:
    def tasks_of(model: SwimModel) -> list[tuple[int, ...]]:
        jobs = load_jobs(SWIM, options=TraceOptions(swim=model))
        return [bundle.unit for job in jobs for bundle in job.bundles]

    assert tasks_of(SwimModel()) == tasks_of(SwimModel())
    assert tasks_of(SwimModel(name="other")) != tasks_of(SwimModel())


def test_normalised_file_with_bytes_may_be_made_anew(tmp_path: Path) -> None:
    bytes_columns = "map_input_bytes,shuffle_bytes,reduce_output_bytes"
    rows = [
        "0,a,x,0,9,9,9,0,9,100,0,50",
        "7,b,x,0,9,9,9,0,9,400000000,2500000000,1000",
        "7,b,x,1,9,9,9,0,9,400000000,2500000000,1000",
        "9,c,x,0,9,9,9,0,9,0,0,3000000000",
    ]
    path = a_file(tmp_path, f"{HEADER},{bytes_columns}", *rows)
    plain = a_file(tmp_path, HEADER, "0,a,x,0,9,9,9,0,9", name="plain.csv")

    model = TraceOptions(swim=SwimModel())

    assert load_jobs(path, options=model) == load_jobs(SWIM)
    assert {job.user for job in load_jobs(path)} == {"x"}
    assert message_of(plain, options=model).startswith("FILE:1: expected a header with map_input_bytes")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("b\t1\t0\t1\t1", "expected at least 6 fields (job, submit_s"),
        ("b\t-1\t0\t1\t1\t1", "column submit_s: expected a number of seconds from 0"),
        ("b\t1\t0\t1\t-1\t1", "column shuffle_bytes: expected a whole number of bytes from 0"),
        ("\t1\t0\t1\t1\t1", "column job: expected the id of a job, got ''"),
    ],
)
def test_bad_row_of_bytes_is_named(tmp_path: Path, row: str, expected: str) -> None:
    path = a_file(tmp_path, "a\t0\t0\t1\t1\t1", row)

    assert message_of(path).startswith(f"FILE:2: {expected}")


def test_pods_become_jobs_of_one_task_by_arrival() -> None:
    loaded = load(OPENB, options=SKIPPING)

    assert shape_of(loaded.jobs) == [
        ("pod-1", "nobody", 10_000, 0, 1, 40_000),
        ("pod-2", "nobody", 30_000, 0, 1, 60_000),
    ]
    assert [job.bundles[0].unit for job in loaded.jobs] == [
        (4000, 2048 * MIB, 0, 460),
        (8000, 1024 * MIB, 0, 2000),
    ]
    assert [str(item) for item in loaded.jobs[1].bundles[0].constraints] == ["model=V100M16|V100M32"]
    assert loaded.rows_without_duration == 1


def test_pods_may_be_owned_by_their_class() -> None:
    jobs = load_jobs(OPENB, options=replace(SKIPPING, user_column="qos"))

    assert [job.user for job in jobs] == ["BE", "LS"]


def test_pod_that_was_never_scheduled_needs_a_choice() -> None:
    assert message_of(OPENB).startswith(
        "FILE:4: column scheduled_time: expected a time (or --default-duration or"
    )
    jobs = load_jobs(OPENB, options=TraceOptions(default_duration_ms=5))
    assert next((job.job_id, job.bundles[0].duration_ms) for job in jobs) == ("pod-0", 5)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("p,0,0,0,0,,LS,R,0,9,1", "column cpu_milli: expected an amount above zero"),
        ("p,1,1,1,1001,,LS,R,0,9,1", "column gpu_milli: expected a whole number of thousandths of a GPU"),
        ("p,1,1,0,0,,LS,R,0,1,9", "column deletion_time: expected 9, when it was scheduled, or up to a year"),
        ("p,1,1,0,0,,LS,R,-5,9,1", "column creation_time: expected a number of seconds from 0"),
        (",1,1,0,0,,LS,R,0,9,1", "column name: expected the name of a pod, got ''"),
    ],
)  # fmt: skip
def test_bad_pod_is_named(tmp_path: Path, row: str, expected: str) -> None:
    header = OPENB.read_text(encoding="utf-8").splitlines()[0]

    assert message_of(a_file(tmp_path, header, row)).startswith(f"FILE:2: {expected}")


def test_events_become_tasks_that_run_from_their_last_start_to_their_end() -> None:
    loaded = load(GOOGLE, options=replace(SKIPPING, largest_machine=(10_000, 1000, 0, 0)))

    assert shape_of(loaded.jobs) == [("j1", "ann", 0, 0, 2, 10_000), ("j2", "ben", 601_000, 0, 1, 7000)]
    assert [job.bundles[0].unit for job in loaded.jobs] == [(5000, 250, 0, 0), (1250, 500, 0, 0)]
    assert loaded.left_out == {"no request of CPU or memory": 1}
    assert loaded.rows_without_duration == 1


def test_task_that_never_ends_needs_a_choice() -> None:
    assert message_of(GOOGLE).startswith("FILE:11: column event_type: expected a SCHEDULE and then a FINISH")


def test_parts_in_a_folder_are_one_trace(tmp_path: Path) -> None:
    lines = GOOGLE.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "part-0.csv").write_text("".join(lines[:6]), encoding="utf-8")
    (tmp_path / "part-1.csv.gz").write_bytes(gzip.compress("".join(lines[6:]).encode()))

    assert load_jobs(tmp_path, options=SKIPPING) == load_jobs(GOOGLE, options=SKIPPING)


def test_folder_without_parts_is_refused(tmp_path: Path) -> None:
    assert (
        message_of(tmp_path) == "FILE: expected parts that end in .csv or .csv.gz, got a folder without them"
    )


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("1,,j,0,,0,u,0,0,1,1,0", "expected 13 cells (time, missing_info, job_id, task_index, "),
        ("1,,j,0,,9,u,0,0,1,1,0,0", "column event_type: expected a whole number of event type from 0 to 8"),
        ("1,,j,0,,0,u,0,0,1.5,1,0,0", "column cpu_request: expected a number of the largest machine's CPU"),
        ("1,,j,x,,0,u,0,0,1,1,0,0", "column task_index: expected a whole number of tasks"),
        ("-1,,j,0,,0,u,0,0,1,1,0,0", "column time: expected a whole number of microseconds"),
    ],
)  # fmt: skip
def test_bad_event_is_named(tmp_path: Path, row: str, expected: str) -> None:
    path = a_file(tmp_path, "0,,j,0,,0,u,0,0,1,1,0,0", row)

    assert message_of(path, "google").startswith(f"FILE:2: {expected}")


def test_events_out_of_order_are_refused(tmp_path: Path) -> None:
    path = a_file(tmp_path, "9000,,j,0,,0,u,0,0,1,1,0,0", "1000,,j,0,,1,u,0,0,1,1,0,0")

    assert "FILE:2: column time: expected rows in order of time, so 9000 or later" in message_of(path)


@pytest.mark.parametrize("path", [SWF, SWIM, OPENB, GOOGLE])
def test_first_jobs_of_any_format_are_those_that_arrive_first(path: Path) -> None:
    everything = load_jobs(path, options=SKIPPING)

    assert load_jobs(path, selection=Selection(jobs_max=1), options=SKIPPING) == everything[:1]
    assert load_jobs(path, selection=Selection(from_ms=8000), options=SKIPPING) == [
        job for job in everything if job.submit_ms >= 8000
    ]
