"""The task events of Google's cluster trace of 2011 (clusterdata-2011-2): CSV without a header, one event a row, in µs.

A file, or a folder of the parts ``part-*.csv.gz`` as published, read in the order of their names. A task arrives with its
first SUBMIT and runs as long as between its last SCHEDULE and its end: FINISH, FAIL or KILL, since the resources were held
in each case. EVICT and LOST end an attempt, not the task, which is submitted again. A task that has not ended when the trace
does, or whose end is not preceded by a SCHEDULE, has no run time. The request is the last one seen before the end. Amounts
are fractions of the largest machine and become those of ``TraceOptions.largest_machine``, which is nominal; disk is not
counted. Left out and counted: tasks without a request. Not modelled: that tasks of a job want different machines (column
13), priorities, and the constraints, which are in a table of their own.

Tasks are kept until the end of the reading, some 500 bytes each: take some parts, not all 25 million tasks. The trace of 2019
is published as tables of a database; export its ``instance_events`` to the normalised columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from fairlead_lab.workloads.csv_rows import Row, bad_place, read_rows
from fairlead_lab.workloads.formats.reading import Reading
from fairlead_lab.workloads.traces import DURATION_S_MAX, SUBMIT_S_MAX
from fairlead_proto.resources import Vector
from fairlead_sim.workload import NOBODY, Bundle

COLUMNS: Final = (
    "time", "missing_info", "job_id", "task_index", "machine_id", "event_type", "user", "scheduling_class", "priority",
    "cpu_request", "memory_request", "disk_request", "different_machines",
)  # fmt: skip
OWNERS: Final = ("user_id", "job_id", "scheduling_class", "priority")

NO_REQUEST: Final = "no request of CPU or memory"

_AFTER_THE_TRACE: Final = 2**63 - 1
_INDEX_MAX: Final = 10**6
_SUBMIT, _SCHEDULE = 0, 1
_END_OF_ATTEMPT: Final = (2, 6)
"""EVICT and LOST."""
_ENDS: Final = (3, 4, 5)
"""FAIL, FINISH and KILL."""
_TYPE_MAX: Final = 8


@dataclass(slots=True, eq=False)
class _Task:
    """A task as far as its events have told."""

    first: Row
    """Its first event: where errors point to."""
    user: str
    submit_ms: int
    unit: Vector | None = None
    started_ms: int | None = None
    duration_ms: int | None = None


def read_google(path: Path, reading: Reading) -> Iterator[Bundle]:
    """The tasks by arrival, then job and index; equal tasks of a job that arrive together are one bundle.

    Raises:
        TraceError: at the first place that breaks a rule, or an owner that the format does not have.
    """
    if reading.options.user_column not in OWNERS:
        raise bad_place(path, 0, "", f"an owner among {', '.join(OWNERS)}", repr(reading.options.user_column))
    tasks: dict[tuple[str, int], _Task] = {}
    for row in chain.from_iterable(read_rows(part, (), names=COLUMNS) for part in _parts(path)):
        _take(row, tasks, reading)
    yield from _bundles(tasks, reading)


def _parts(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    parts = sorted(part for part in path.iterdir() if part.name.endswith((".csv", ".csv.gz")))
    if not parts:
        raise bad_place(path, 0, "", "parts that end in .csv or .csv.gz", "a folder without them")
    return parts


def _take(row: Row, tasks: dict[tuple[str, int], _Task], reading: Reading) -> None:
    now_ms = _time_ms(row, reading)
    job_id = row.text("job_id")
    if not job_id:
        raise row.bad("job_id", "the id of a job")
    index = row.whole("task_index", least=0, most=_INDEX_MAX, unit="tasks")
    kind = row.whole("event_type", least=0, most=_TYPE_MAX, unit="event type")
    task = tasks.get((job_id, index))
    if task is None:
        task = tasks[job_id, index] = _Task(row, _owner(row, reading), now_ms)
    unit = _demand(row, reading)
    if unit is not None and task.duration_ms is None:
        task.unit = unit
    if kind == _SCHEDULE:
        task.started_ms = now_ms
    elif kind in _END_OF_ATTEMPT or kind == _SUBMIT:
        task.started_ms = None
    elif kind in _ENDS and task.started_ms is not None:
        task.duration_ms = now_ms - task.started_ms
        task.started_ms = None


def _time_ms(row: Row, reading: Reading) -> int:
    """0 stands for "before the trace"; what is after it is as late as the latest event."""
    if row.text("time") == str(_AFTER_THE_TRACE):
        return reading.before_ms
    now_ms = row.whole("time", least=0, most=SUBMIT_S_MAX * 10**6, unit="microseconds") // 1000
    if now_ms < reading.before_ms:
        raise row.bad("time", f"rows in order of time, so {reading.before_ms * 1000} or later")
    reading.before_ms = now_ms
    return now_ms


def _owner(row: Row, reading: Reading) -> str:
    column = reading.options.user_column
    return row.text("user" if column == "user_id" else column) or NOBODY


def _demand(row: Row, reading: Reading) -> Vector | None:
    if not row.text("cpu_request") or not row.text("memory_request"):
        return None
    cpus = row.number("cpu_request", most=1, unit="the largest machine's CPU")
    memory = row.number("memory_request", most=1, unit="the largest machine's memory")
    whole = reading.options.largest_machine
    unit = (round(cpus * whole[0]), round(memory * whole[1]), 0, 0)
    # What is wanted at all is not rounded to nothing.
    unit = (max(unit[0], int(cpus > 0)), max(unit[1], int(memory > 0)), 0, 0)
    return unit if any(unit) else None


def _bundles(tasks: dict[tuple[str, int], _Task], reading: Reading) -> Iterator[Bundle]:
    counts: dict[tuple[int, str, str, Vector, int], int] = {}
    for (job_id, _), task in tasks.items():
        if task.unit is None:
            reading.left_out[NO_REQUEST] += 1
            continue
        duration_ms = task.duration_ms
        if duration_ms is None:
            expected = "a SCHEDULE and then a FINISH, FAIL or KILL of the task (or a default run time, or to leave it out)"
            duration_ms = reading.without_duration(task.first.bad("event_type", expected, "none"))
        elif duration_ms > DURATION_S_MAX * 1000:
            raise task.first.bad("time", "an end within a year of the start", f"{duration_ms} ms")
        if duration_ms is not None:
            kind = (task.submit_ms, job_id, task.user, task.unit, duration_ms)
            counts[kind] = counts.get(kind, 0) + 1
    for (submit_ms, job_id, user, unit, duration_ms), count in sorted(counts.items()):
        yield Bundle(
            job_id=job_id,
            user=user,
            stage=0,
            tasks=count,
            unit=unit,
            submit_ms=submit_ms,
            duration_ms=duration_ms,
        )
