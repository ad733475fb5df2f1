"""The project's own format: one small CSV, to which any cluster trace can be brought.

Columns: ``submit_s, job_id, user_id, stage, n_tasks, cpus, mem_mb, gpus, duration_s``, one row a bundle of ``n_tasks``
equal tasks; more columns may follow and one of them may be taken as the owner. Seconds, cores, MiB and GPUs, fractions
allowed. Rows are in order of arrival. Three more columns are understood: ``gang`` (1: the tasks of the row start together or
not at all), ``gpu_spec`` (models of GPU, as in the Alibaba trace of 2023) and ``node_spec`` (a PBS request, as in the
MetaCentrum trace of 2013, whose rows of several tasks are gangs). A row that breaks a rule ends the reading with its line and column; the one
choice a caller has is what to do about rows without a run time, which some public traces leave empty.
"""

from collections.abc import Iterator
from pathlib import Path

from fairlead_lab.workloads.constraints import gpu_models, node_spec
from fairlead_lab.workloads.csv_rows import Row, bad_place, read_rows
from fairlead_lab.workloads.formats.reading import Reading
from fairlead_lab.workloads.traces import (
    COLUMNS,
    DURATION_S_MAX,
    STAGE_MAX,
    TASKS_PER_ROW_MAX,
    WITHOUT_DURATION,
    read_demand,
)
from fairlead_proto.tasks import Constraint
from fairlead_sim.workload import NOBODY, Bundle


def read_normalised(path: Path, reading: Reading) -> Iterator[Bundle]:
    """The selected bundles in order of arrival, or in that of the file if the options say so.

    Of rows that are not selected only the job and the arrival are checked: a fault in what nobody asked for is no reason
    to refuse what was.

    Raises:
        TraceError: at the first place that breaks a rule; the rows before it have been given out by then.
    """
    owner = reading.options.user_column
    line = 0
    for row in read_rows(path, COLUMNS if owner in COLUMNS else (*COLUMNS, owner)):
        line = row.line
        submit_ms = reading.arrival_ms(row, "submit_s")
        job_id = row.text("job_id")
        if not job_id:
            raise row.bad("job_id", "the id of a job")
        if reading.takes(job_id, submit_ms):
            bundle = _bundle(row, job_id, submit_ms, reading)
            if bundle is not None:
                yield bundle
    if not line:
        raise bad_place(path, 0, "", "at least one row after the header", "none")


def _bundle(row: Row, job_id: str, submit_ms: int, reading: Reading) -> Bundle | None:
    options = reading.options
    stage = row.whole("stage", least=0, most=STAGE_MAX, unit="stages")
    tasks = row.whole("n_tasks", least=1, most=TASKS_PER_ROW_MAX, unit="tasks")
    unit = read_demand(row)
    duration_ms = _duration_ms(row, reading)
    if duration_ms is None:
        return None
    return Bundle(
        job_id=job_id,
        user=row.text(options.user_column) or NOBODY,
        stage=stage,
        tasks=tasks,
        unit=unit,
        submit_ms=submit_ms,
        duration_ms=duration_ms,
        constraints=_constraints(row) if options.with_constraints else (),
        is_gang=options.with_gangs and tasks > 1 and _is_gang(row),
    )


def _duration_ms(row: Row, reading: Reading) -> int | None:
    if row.text("duration_s"):
        return round(row.number("duration_s", most=DURATION_S_MAX, unit="seconds") * 1000)
    return reading.without_duration(row.bad("duration_s", f"a run time ({WITHOUT_DURATION})"))


def _constraints(row: Row) -> tuple[Constraint, ...]:
    cells = row.cells
    return gpu_models(cells.get("gpu_spec", "")) + node_spec(cells.get("node_spec", ""))


def _is_gang(row: Row) -> bool:
    if "gang" in row.cells and row.text("gang"):
        return bool(row.whole("gang", least=0, most=1, unit="gang (0 no, 1 yes)"))
    return "node_spec" in row.cells
