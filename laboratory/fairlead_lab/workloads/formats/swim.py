"""Traces of SWIM (Statistical Workload Injector for MapReduce): jobs with their bytes, separated by tabs, without a header.

Columns: job, submit in s, gap to the job before in s, bytes of map input, shuffle and reduce output; some files have paths
behind them, which are not read. The gap is not read either: it is the difference of two arrivals. Tasks, demands, run times
and owners are those of ``swim_model``; the arrival and the bytes are all that is real.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairlead_lab.workloads.csv_rows import Row, read_fields, read_rows
from fairlead_lab.workloads.formats.reading import Reading
from fairlead_lab.workloads.swim_model import JobBytes, SwimModel
from fairlead_lab.workloads.traces import TASKS_PER_ROW_MAX
from fairlead_sim.workload import Bundle

COLUMNS: Final = ("job", "submit_s", "gap_s", "map_input_bytes", "shuffle_bytes", "reduce_output_bytes")
BYTES_MAX: Final = TASKS_PER_ROW_MAX * 128 * 2**20
"""134 TB: with blocks of 128 MiB as many tasks as a bundle may have. The largest job of the public files reads 85 TB."""


def read_swim(path: Path, reading: Reading) -> Iterator[Bundle]:
    """The bundles of the jobs of a file, in its order, which is that of arrival.

    Raises:
        TraceError: at the first place that breaks a rule.
    """
    model = reading.options.swim or SwimModel()
    for row in read_fields(path, COLUMNS, separator="\t", may_have_more=True):
        yield from model.bundles(_job_bytes(row, "job", reading))


def read_remodelled(path: Path, reading: Reading) -> Iterator[Bundle]:
    """The same of a normalised file that has the columns of bytes: its rows of stage 0, whose tasks are made anew.

    Raises:
        TraceError: at the first place that breaks a rule, as a header without those columns does.
    """
    model = reading.options.swim or SwimModel()
    for row in read_rows(path, ("submit_s", "job_id", "stage", *COLUMNS[3:])):
        job = _job_bytes(row, "job_id", reading)
        if row.whole("stage", least=0, most=1, unit="stages") == 0:
            yield from model.bundles(job)


def _job_bytes(row: Row, id_column: str, reading: Reading) -> JobBytes:
    submit_ms = reading.arrival_ms(row, "submit_s")
    if not row.text(id_column):
        raise row.bad(id_column, "the id of a job")
    return JobBytes(
        job_id=row.text(id_column),
        submit_ms=submit_ms,
        input=_bytes(row, "map_input_bytes"),
        shuffle=_bytes(row, "shuffle_bytes"),
        output=_bytes(row, "reduce_output_bytes"),
    )


def _bytes(row: Row, column: str) -> int:
    return row.whole(column, least=0, most=BYTES_MAX, unit="bytes")
