"""How traces are read whatever their format: the options, the bounds of amounts, and the columns of the project's own format."""

from dataclasses import dataclass
from typing import Final

from fairlead_lab.workloads.csv_rows import Row
from fairlead_lab.workloads.swim_model import SwimModel
from fairlead_proto.resources import QUANTITY_MAX, ResourceKinds, Vector

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
_KINDS: Final = ResourceKinds()
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


def read_demand(row: Row) -> Vector:
    """The amounts in cpus, mem_mb and gpus of a row; one above zero never becomes zero by rounding, since zero means "needs none"."""
    cpus = row.number("cpus", most=CORES_MAX, unit="cores")
    mem_mb = row.number("mem_mb", most=MEM_MB_MAX, unit="MiB")
    gpus = row.number("gpus", most=GPUS_MAX, unit="GPUs") if row.text("gpus") else 0.0
    if not (cpus or mem_mb or gpus):
        raise row.bad("cpus", "an amount above zero in cpus, mem_mb or gpus", "zero in all three")
    amounts = {"cpus": cpus * 1000, "mem": mem_mb * 2**20, "gpus": gpus * 1000}
    return _KINDS.vector(
        {name: max(1, round(amount)) if amount > 0 else 0 for name, amount in amounts.items()}
    )
