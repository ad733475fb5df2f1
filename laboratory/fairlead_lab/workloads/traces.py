"""Cluster traces in one small CSV format, read as a stream of bundles.

Columns: ``submit_s, job_id, user_id, stage, n_tasks, cpus, mem_mb, gpus, duration_s``, one row a bundle of ``n_tasks``
equal tasks; more columns may follow and one of them may be taken as the owner. Seconds, cores, MiB and GPUs, fractions
allowed. Rows are in order of arrival. Three more columns are understood: ``gang`` (1: the tasks of the row start together or
not at all), ``gpu_spec`` (models of GPU, as in the Alibaba trace of 2023) and ``node_spec`` (a PBS request, as in the
MetaCentrum trace of 2013, whose rows of several tasks are gangs). A row that breaks a rule ends the reading with its line and column; the one
choice a caller has is what to do about rows without a run time, which some public traces leave empty.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead_lab.workloads.constraints import gpu_models, node_spec
from fairlead_lab.workloads.csv_rows import Row, bad_place, read_rows
from fairlead_lab.workloads.swim_model import SwimModel
from fairlead_proto.limits import QUANTITY_MAX
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.tasks import Constraint
from fairlead_sim.workload import NOBODY, Bundle, JobChooser, Selection

COLUMNS: Final = (
    "submit_s", "job_id", "user_id", "stage", "n_tasks", "cpus", "mem_mb", "gpus", "duration_s",
)  # fmt: skip

TASKS_PER_ROW_MAX: Final = 1_000_000
"""The largest job of the public traces has under 100,000 tasks; more is a column swapped with another."""
STAGE_MAX: Final = 1_000
SUBMIT_S_MAX: Final = 10 * 366 * 24 * 3600
"""Ten years: an absolute date (seconds since 1970) in place of an offset is told apart."""
DURATION_S_MAX: Final = 366 * 24 * 3600
"""A year, the bound the master sets to run times."""
CORES_MAX: Final = 1_000_000
GPUS_MAX: Final = 1_000_000
MEM_MB_MAX: Final = QUANTITY_MAX // 2**20
WITHOUT_DURATION: Final = "or --default-duration or --skip-without-duration for rows without"
"""What can be done about a row without a run time; a scenario has the same names, with ``_``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """How to read what a trace leaves open."""

    user_column: str = "user_id"
    """The column that names the owner; ``job_id`` makes each job its own user."""
    default_duration_ms: int | None = None
    """For rows without a run time. None: see the next."""
    skip_without_duration: bool = False
    """Whether to leave out and count rows without a run time; otherwise they are an error."""
    with_gangs: bool = True
    """Whether tasks that had to start together still have to; otherwise each starts when it can."""
    with_constraints: bool = True
    """Whether the trace's wishes for certain nodes are kept."""
    accepts_any_order: bool = False
    """Whether rows of a format that is in order of arrival may be in another: whoever groups them by job sorts them. The
    first jobs of a selection are then the first of the file."""
    swim: SwimModel | None = None
    """What bytes of MapReduce jobs mean. None: the defaults for a SWIM file; a normalised file is taken as it is. Given, the
    tasks of a normalised file that has the columns of bytes are made anew."""
    largest_machine: Vector = (64_000, 256 * 2**30, 0, 0)
    """What 1.0 stands for in the Google traces, whose amounts are fractions of the largest machine: nominal, not known."""


class Trace:
    """A trace file as an iterable of bundles; each iteration reads it anew and in bounded memory.

    Of rows that are not selected only the job and the arrival are checked: a fault in what nobody asked for is no reason
    to refuse what was.
    """

    def __init__(
        self, path: Path, options: TraceOptions | None = None, selection: Selection | None = None
    ) -> None:
        """Nothing is opened yet."""
        self.path = path
        self.options = options or TraceOptions()
        self.selection = selection or Selection()
        self.rows = 0
        """Selected rows read by the latest iteration so far."""
        self.rows_without_duration = 0
        """Those of them whose run time was empty: left out or given the default."""

    def __iter__(self) -> Iterator[Bundle]:
        """The bundles in order of arrival, or in that of the file if the options say so.

        Raises:
            TraceError: at the first place that breaks a rule; the rows before it have been given out by then.
        """
        self.rows = self.rows_without_duration = 0
        required: tuple[str, ...] = COLUMNS
        if self.options.user_column not in COLUMNS:
            required += (self.options.user_column,)
        chooser = JobChooser(self.selection)
        before_ms = 0
        line = 0
        for row in read_rows(self.path, required):
            line = row.line
            submit_ms = round(row.number("submit_s", most=SUBMIT_S_MAX, unit="seconds") * 1000)
            if submit_ms < before_ms and not self.options.accepts_any_order:
                raise row.bad("submit_s", f"rows in order of arrival, so {before_ms / 1000:g} or later")
            before_ms = submit_ms
            job_id = row.text("job_id")
            if not job_id:
                raise row.bad("job_id", "the id of a job")
            if not chooser.takes(job_id, submit_ms):
                continue
            self.rows += 1
            bundle = self._bundle(row, job_id, submit_ms)
            if bundle is not None:
                yield bundle
        if not line:
            raise bad_place(self.path, 0, "", "at least one row after the header", "none")

    def _bundle(self, row: Row, job_id: str, submit_ms: int) -> Bundle | None:
        stage = row.whole("stage", least=0, most=STAGE_MAX, unit="stages")
        tasks = row.whole("n_tasks", least=1, most=TASKS_PER_ROW_MAX, unit="tasks")
        unit = read_demand(row)
        duration_ms = self._duration_ms(row)
        if duration_ms is None:
            return None
        return Bundle(
            job_id=job_id,
            user=row.text(self.options.user_column) or NOBODY,
            stage=stage,
            tasks=tasks,
            unit=unit,
            submit_ms=submit_ms,
            duration_ms=duration_ms,
            constraints=_constraints(row) if self.options.with_constraints else (),
            is_gang=self.options.with_gangs and tasks > 1 and _is_gang(row),
        )

    def _duration_ms(self, row: Row) -> int | None:
        if row.text("duration_s"):
            return round(row.number("duration_s", most=DURATION_S_MAX, unit="seconds") * 1000)
        self.rows_without_duration += 1
        if self.options.default_duration_ms is None and not self.options.skip_without_duration:
            raise row.bad("duration_s", f"a run time ({WITHOUT_DURATION})")
        return self.options.default_duration_ms


def read_demand(row: Row) -> Vector:
    """The amounts in cpus, mem_mb and gpus of a row; one above zero never becomes zero by rounding, since zero means "needs none"."""
    cpus = row.number("cpus", most=CORES_MAX, unit="cores")
    mem_mb = row.number("mem_mb", most=MEM_MB_MAX, unit="MiB")
    gpus = row.number("gpus", most=GPUS_MAX, unit="GPUs") if row.text("gpus") else 0.0
    if not (cpus or mem_mb or gpus):
        raise row.bad("cpus", "an amount above zero in cpus, mem_mb or gpus", "zero in all three")
    amounts = {"cpus": cpus * 1000, "mem": mem_mb * 2**20, "gpus": gpus * 1000}
    return ResourceKinds().vector(
        {name: max(1, round(amount)) if amount > 0 else 0 for name, amount in amounts.items()}
    )


def _constraints(row: Row) -> tuple[Constraint, ...]:
    cells = row.cells
    return gpu_models(cells.get("gpu_spec", "")) + node_spec(cells.get("node_spec", ""))


def _is_gang(row: Row) -> bool:
    if "gang" in row.cells and row.text("gang"):
        return bool(row.whole("gang", least=0, most=1, unit="gang (0 no, 1 yes)"))
    return "node_spec" in row.cells
