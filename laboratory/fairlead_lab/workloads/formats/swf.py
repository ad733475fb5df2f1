"""The Standard Workload Format (version 2.2) of the Parallel Workloads Archive: 18 numbers a job, -1 for "not known".

A job is a gang of as many tasks as it had processors, each of one core, that run as long as the job did. Where what was
asked for and what was used disagree:

- processors: allocated (field 5), else requested (8): what was held is what others could not have;
- memory, for each processor, in KB of 1024 bytes: requested (10), else used (7), else none is known and 0 is taken: a request
  is what a manager must set aside;
- run time: as it was (4), never the requested time (9), which is a limit.

Left out and counted: jobs cancelled before they started (status 5 without run time or processors), rows of parts of a job
that was interrupted (status 2, 3 and 4: the job's own row has it all), jobs for more processors than the header's
``MaxProcs`` or, without it, ``MaxNodes``. A job of unknown run time is a row without a run time as in any trace. Not
modelled: that a job follows another (17, 18), partitions, queues' rules. Owners are ``u`` with the user's number; another
column of ``OWNERS`` may be taken. Arrivals count from the start of the log, which the header's ``UnixStartTime`` dates.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairlead_lab.workloads.csv_rows import Row, bad_place, read_fields, read_lines
from fairlead_lab.workloads.formats.reading import Reading
from fairlead_lab.workloads.traces import DURATION_S_MAX, MEM_MB_MAX, TASKS_PER_ROW_MAX, WITHOUT_DURATION
from fairlead_sim.workload import NOBODY, Bundle

COLUMNS: Final = (
    "job", "submit_s", "wait_s", "run_s", "processors", "cpu_s", "used_kb", "requested_processors", "requested_s",
    "requested_kb", "status", "user", "group", "executable", "queue", "partition", "preceding_job", "think_s",
)  # fmt: skip
OWNERS: Final = ("user_id", "group", "executable", "queue", "partition", "job_id")

CANCELLED: Final = "cancelled before it started"
PART: Final = "part of an interrupted job"
TOO_LARGE: Final = "more processors than the machine has"

_COMMENT: Final = ";"
_STATUS_PARTS: Final = (2, 3, 4)
_STATUS_CANCELLED: Final = 5


def read_swf(path: Path, reading: Reading) -> Iterator[Bundle]:
    """The bundles of the jobs of a log, one each, in its order, which is that of arrival.

    Raises:
        TraceError: at the first place that breaks a rule, or an owner that the format does not have.
    """
    owner = reading.options.user_column
    if owner not in OWNERS:
        raise bad_place(path, 0, "", f"an owner among {', '.join(OWNERS)}", repr(owner))
    reading.header = read_header(path)
    processors_max = _processors_max(path, reading.header)
    for row in read_fields(path, COLUMNS, separator=None, comment=_COMMENT):
        submit_ms = reading.arrival_ms(row, "submit_s")
        bundle = _bundle(row, submit_ms, processors_max, reading)
        if bundle is not None:
            yield bundle


def read_header(path: Path) -> dict[str, str]:
    """The directives at the head of a log, such as ``; MaxProcs: 128``, by name; of one given twice the first."""
    header: dict[str, str] = {}
    for line in read_lines(path):
        text = line.strip()
        if text and not text.startswith(_COMMENT):
            break
        name, colon, value = text.lstrip(_COMMENT).partition(":")
        if colon and value.strip() and " " not in name.strip():
            header.setdefault(name.strip(), value.strip())
    return header


def _processors_max(path: Path, header: dict[str, str]) -> int:
    for name in ("MaxProcs", "MaxNodes"):
        if name in header:
            # Sizes of partitions may follow in parentheses.
            number = header[name].split("(")[0].strip()
            if not number.isascii() or not number.isdigit() or not 1 <= int(number) <= TASKS_PER_ROW_MAX:
                expected = f"a number from 1 to {TASKS_PER_ROW_MAX} in the directive {name}"
                raise bad_place(path, 0, "", expected, repr(header[name]))
            return int(number)
    return TASKS_PER_ROW_MAX


def _bundle(row: Row, submit_ms: int, processors_max: int, reading: Reading) -> Bundle | None:
    status = _status(row)
    if status in _STATUS_PARTS:
        reading.left_out[PART] += 1
        return None
    processors = _processors(row)
    run_ms = None if _is_unknown(row, "run_s") else _run_ms(row)
    if status == _STATUS_CANCELLED and (not processors or not run_ms):
        reading.left_out[CANCELLED] += 1
        return None
    if processors == 0:
        raise row.bad("processors", f"1 to {TASKS_PER_ROW_MAX} here or in requested_processors")
    if processors > processors_max:
        reading.left_out[TOO_LARGE] += 1
        return None
    if run_ms is None:
        expected = f"a run time ({WITHOUT_DURATION})"
        run_ms = reading.without_duration(row.bad("run_s", expected))
        if run_ms is None:
            return None
    options = reading.options
    return Bundle(
        job_id=_name(row, "job"),
        user=_name(row, {"user_id": "user", "job_id": "job"}.get(options.user_column, options.user_column)),
        stage=0,
        tasks=processors,
        unit=(1000, _memory_bytes(row), 0, 0),
        submit_ms=submit_ms,
        duration_ms=run_ms,
        is_gang=options.with_gangs and processors > 1,
    )


def _is_unknown(row: Row, column: str) -> bool:
    return row.text(column) == "-1"


def _status(row: Row) -> int:
    return -1 if _is_unknown(row, "status") else row.whole("status", least=0, most=5, unit="status")


def _run_ms(row: Row) -> int:
    return round(row.number("run_s", most=DURATION_S_MAX, unit="seconds") * 1000)


def _processors(row: Row) -> int:
    """0 if neither number is known or above zero."""
    for column in ("processors", "requested_processors"):
        if not _is_unknown(row, column):
            processors = row.whole(column, least=0, most=TASKS_PER_ROW_MAX, unit="processors")
            if processors:
                return processors
    return 0


def _memory_bytes(row: Row) -> int:
    for column in ("requested_kb", "used_kb"):
        if not _is_unknown(row, column):
            kib = row.number(column, most=MEM_MB_MAX * 1024, unit="KB")
            if kib:
                return max(1, round(kib * 1024))
    return 0


def _name(row: Row, column: str) -> str:
    """Such as ``u62``: the number alone would not say of what."""
    return NOBODY if _is_unknown(row, column) else f"{column[0]}{row.text(column)}"
