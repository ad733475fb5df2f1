import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_lab.workloads.csv_rows import LINE_BYTES_MAX, TraceError
from fairlead_lab.workloads.formats.normalised import read_normalised
from fairlead_lab.workloads.formats.reading import Reading
from fairlead_lab.workloads.traces import TraceOptions
from fairlead_sim.workload import Bundle, JobChooser, Selection

HEADER = "submit_s,job_id,user_id,stage,n_tasks,cpus,mem_mb,gpus,duration_s"
GOOD = "1.5,j1,ann,0,3,0.5,512,0.25,60"


def a_file(tmp_path: Path, *lines: str, name: str = "trace.csv") -> Path:
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def bundles_of(path: Path, options: TraceOptions | None = None) -> Iterator[Bundle]:
    return read_normalised(path, Reading(options or TraceOptions()))


def message_of(path: Path, options: TraceOptions | None = None) -> str:
    with pytest.raises(TraceError) as caught:
        list(bundles_of(path, options))
    return str(caught.value).replace(str(path), "FILE")


def test_row_becomes_a_bundle_in_whole_units(tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER, GOOD)

    bundles = list(bundles_of(path))

    assert bundles == [
        Bundle(
            job_id="j1",
            user="ann",
            stage=0,
            tasks=3,
            unit=(500, 512 * 2**20, 0, 250),
            submit_ms=1500,
            duration_ms=60_000,
        )
    ]


def test_compressed_trace_reads_as_the_plain_one(tmp_path: Path) -> None:
    plain = a_file(tmp_path, HEADER, GOOD)
    packed = tmp_path / "trace.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))

    assert list(bundles_of(packed)) == list(bundles_of(plain))


def test_columns_may_come_in_any_order_and_more_are_ignored(tmp_path: Path) -> None:
    names, cells = HEADER.split(","), GOOD.split(",")
    path = a_file(tmp_path, ",".join(["extra", *reversed(names)]), ",".join(["whatever", *reversed(cells)]))

    assert list(bundles_of(path)) == list(bundles_of(a_file(tmp_path, HEADER, GOOD, name="usual.csv")))


def test_byte_order_mark_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    path = a_file(tmp_path, "\ufeff" + HEADER, GOOD, "", "")

    assert len(list(bundles_of(path))) == 1


def test_amount_too_small_for_its_unit_is_not_rounded_to_nothing(tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER, "0,j,u,0,1,0.0001,0,0,1")

    assert [bundle.unit for bundle in bundles_of(path)] == [(1, 0, 0, 0)]


def test_row_without_owner_belongs_to_nobody(tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER, "0,j,,0,1,1,1,0,1")

    assert [bundle.user for bundle in bundles_of(path)] == ["nobody"]


def test_another_column_may_name_the_owner(tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER + ",qos", GOOD + ",gold")

    assert [bundle.user for bundle in bundles_of(path, TraceOptions(user_column="qos"))] == ["gold"]
    assert [bundle.user for bundle in bundles_of(path, TraceOptions(user_column="job_id"))] == ["j1"]


def test_owner_column_must_be_there(tmp_path: Path) -> None:
    message = message_of(a_file(tmp_path, HEADER, GOOD), TraceOptions(user_column="qos"))

    assert message.startswith("FILE:1: expected a header with qos, got submit_s,job_id")


def test_row_without_run_time_is_an_error_unless_told_otherwise(tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER, GOOD, "2,j2,u,0,1,1,1,0,")
    skipping = Reading(TraceOptions(skip_without_duration=True))
    defaulting = Reading(TraceOptions(default_duration_ms=7))

    assert message_of(path).startswith(
        "FILE:3: column duration_s: expected a run time (or --default-duration or --skip-without-duration"
    )
    assert [bundle.job_id for bundle in read_normalised(path, skipping)] == ["j1"]
    assert skipping.rows_without_duration == 1
    assert [bundle.duration_ms for bundle in read_normalised(path, defaulting)] == [60_000, 7]
    assert defaulting.rows_without_duration == 1


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("-1,j,u,0,1,1,1,0,1", "column submit_s: expected a number of seconds from 0 to"),
        ("nan,j,u,0,1,1,1,0,1", "column submit_s: expected a number of seconds from 0 to"),
        ("1753000000,j,u,0,1,1,1,0,1", "column submit_s: expected a number of seconds from 0 to"),
        ("0,,u,0,1,1,1,0,1", "column job_id: expected the id of a job, got ''"),
        ("0,j,u,x,1,1,1,0,1", "column stage: expected a whole number of stages from 0 to 1000, got 'x'"),
        ("0,j,u,0,0,1,1,0,1", "column n_tasks: expected a whole number of tasks from 1 to 1000000, got '0'"),
        ("0,j,u,0,1.5,1,1,0,1", "column n_tasks: expected a whole number of tasks from 1 to 1000000, got '1.5'"),
        ("0,j,u,0,9999999,1,1,0,1", "column n_tasks: expected a whole number of tasks from 1 to 1000000"),
        ("0,j,u,0,1,-2,1,0,1", "column cpus: expected a number of cores from 0 to 1e+06, got '-2'"),
        ("0,j,u,0,1,1_0,1,0,1", "column cpus: expected a number of cores from 0 to 1e+06, got '1_0'"),
        ("0,j,u,0,1,,1,0,1", "column cpus: expected a number of cores from 0 to 1e+06, got ''"),
        ("0,j,u,0,1,1,inf,0,1", "column mem_mb: expected a number of MiB from 0 to"),
        ("0,j,u,0,1,1,1e99,0,1", "column mem_mb: expected a number of MiB from 0 to"),
        ("0,j,u,0,1,1,1e999,0,1", "column mem_mb: expected a number of MiB from 0 to"),
        ("0,j,u,0,1,1,1,two,1", "column gpus: expected a number of GPUs from 0 to 1e+06, got 'two'"),
        ("0,j,u,0,1,0,0,0,1", "column cpus: expected an amount above zero in cpus, mem_mb or gpus"),
        ("0,j,u,0,1,1,1,0,-5", "column duration_s: expected a number of seconds from 0 to"),
        ("0,j,u,0,1,1,1,0,99999999", "column duration_s: expected a number of seconds from 0 to"),
        ("0,j,u,0,1,1,1,0", "expected 9 cells as in the header, got 8"),
        ("0,j,u,0,1,1,1,0,1,more", "expected 9 cells as in the header, got 10"),
        ('0,"j,u,0,1,1,1,0,1', "expected comma-separated values, got a line that is not"),
        ("0," + "j" * LINE_BYTES_MAX, f"expected a line of at most {LINE_BYTES_MAX} bytes, got a longer one"),
    ],
)  # fmt: skip
def test_bad_row_is_named_by_line_and_column(tmp_path: Path, row: str, expected: str) -> None:
    message = message_of(a_file(tmp_path, HEADER, "0,j0,u,0,1,1,1,0,1", row))

    assert message.startswith(f"FILE:3: {expected}")
    assert "\n" not in message


def test_rows_out_of_order_are_refused(tmp_path: Path) -> None:
    message = message_of(a_file(tmp_path, HEADER, "5,a,u,0,1,1,1,0,1", "4.5,b,u,0,1,1,1,0,1"))

    assert message == ("FILE:3: column submit_s: expected rows in order of arrival, so 5 or later, got '4.5'")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "FILE: expected a header and rows, got an empty file"),
        (b"\n", "FILE:1: expected a header and rows, got no header"),
        (HEADER.encode() + b"\n", "FILE: expected at least one row after the header, got none"),
        (b"a,b\n1,2\n", "FILE:1: expected a header with submit_s, job_id"),
        (HEADER.encode() + b",cpus\n", "FILE:1: expected each column once"),
        (HEADER.replace("cpus", "cores").encode() + b"\n", "FILE:1: expected a header with cpus, got"),
        (HEADER.encode() + b"\n0,\xff,u,0,1,1,1,0,1\n", "FILE:2: expected text in UTF-8, got byte 0xff"),
    ],
)
def test_file_that_is_no_trace_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(content)

    assert message_of(path).startswith(expected)


def test_file_named_gz_must_be_gzip(tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER, GOOD, name="trace.csv.gz")

    assert message_of(path) == (
        "FILE: expected gzip, as the name says, got a file that does not begin as gzip does"
    )


def test_gzip_that_breaks_off_gives_the_rows_before_and_then_says_where(tmp_path: Path) -> None:
    rows = [f"{number},j{number},u,0,1,1,1,0,{number * 7919 % 1000}" for number in range(5000)]
    whole = gzip.compress("\n".join([HEADER, *rows]).encode())
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])

    read: list[Bundle] = []
    with pytest.raises(TraceError, match=r"expected a whole gzip file, got one that breaks off") as caught:
        read.extend(bundles_of(path))

    assert 0 < len(read) < 5000
    assert f":{len(read) + 2}: " in str(caught.value)


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(f"{HEADER}\n{GOOD}".encode()))
    whole[20:30] = b"\xff" * 10
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(bytes(whole))

    assert "expected a whole gzip file, got one that breaks off or is damaged here" in message_of(path)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    assert message_of(tmp_path / "none.csv") == (
        "FILE: expected a file that can be read, got No such file or directory"
    )


def test_folder_is_refused(tmp_path: Path) -> None:
    assert message_of(tmp_path) == "FILE: expected a file that can be read, got Is a directory"


def test_endless_line_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress(b"x" * 50_000_000))

    assert message_of(path) == f"FILE:1: expected a line of at most {LINE_BYTES_MAX} bytes, got a longer one"


def test_rows_are_given_out_before_later_ones_are_read(tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER, GOOD, "broken")

    first = next(iter(bundles_of(path)))

    assert first.job_id == "j1"


def test_fault_in_what_was_not_selected_is_no_reason_to_refuse(tmp_path: Path) -> None:
    path = a_file(tmp_path, HEADER, GOOD, "2,j2,u,0,1,1,1,0,", "3,j1,ann,1,1,1,1,0,5")

    reading = Reading(TraceOptions(), chooser=JobChooser(Selection(jobs_max=1)))
    bundles = list(read_normalised(path, reading))

    assert [(bundle.job_id, bundle.stage) for bundle in bundles] == [("j1", 0), ("j1", 1)]
