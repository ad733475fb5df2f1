"""The pod lists of the Alibaba GPU trace of 2023 ("openb"): one pod a row, times in seconds from the start of the trace.

A pod is a job of one task. Cores are ``cpu_milli`` / 1000, GPUs ``gpu_milli`` / 1000 for a pod of one GPU (a share of it)
and ``num_gpu`` otherwise; the GPUs of a node are one amount here, so that a share may be cut out of two of them. A
``gpu_spec`` such as ``V100M16|V100M32`` is a constraint on the attribute ``model`` of nodes. The run time is deletion minus
scheduling; for pods that still run at the end it is a lower bound, as the trace ends with them. Pods that were never
scheduled have none. Nobody is named as owner: ``qos``, ``pod_phase`` or ``job_id`` may be taken.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairlead_lab.workloads.constraints import gpu_models
from fairlead_lab.workloads.csv_rows import Row, read_rows
from fairlead_lab.workloads.formats.reading import Reading
from fairlead_lab.workloads.traces import (
    CORES_MAX,
    DURATION_S_MAX,
    MEM_MB_MAX,
    SUBMIT_S_MAX,
    WITHOUT_DURATION,
)
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_sim.workload import NOBODY, Bundle

COLUMNS: Final = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time",
    "scheduled_time",
)  # fmt: skip
GPUS_MAX: Final = 1024
"""Of one pod; the largest nodes have 8."""


def read_openb(path: Path, reading: Reading) -> Iterator[Bundle]:
    """The pods by arrival, and by name where they arrive together; all are read before the first is given out.

    Raises:
        TraceError: at the first place that breaks a rule.
    """
    owner = reading.options.user_column
    required = COLUMNS if owner in ("user_id", "job_id") else (*COLUMNS, owner)
    bundles = [_bundle(row, reading) for row in read_rows(path, required)]
    yield from sorted(filter(None, bundles), key=lambda bundle: (bundle.submit_ms, bundle.job_id))


def _bundle(row: Row, reading: Reading) -> Bundle | None:
    options = reading.options
    submit_ms = round(row.number("creation_time", most=SUBMIT_S_MAX, unit="seconds") * 1000)
    job_id = row.text("name")
    if not job_id:
        raise row.bad("name", "the name of a pod")
    unit = _demand(row)
    duration_ms = _duration_ms(row, reading)
    if duration_ms is None:
        return None
    user = {"user_id": "", "job_id": job_id}.get(options.user_column)
    return Bundle(
        job_id=job_id,
        user=(row.text(options.user_column) if user is None else user) or NOBODY,
        stage=0,
        tasks=1,
        unit=unit,
        submit_ms=submit_ms,
        duration_ms=duration_ms,
        constraints=gpu_models(row.text("gpu_spec")) if options.with_constraints else (),
    )


def _demand(row: Row) -> Vector:
    gpus = row.whole("num_gpu", least=0, most=GPUS_MAX, unit="GPUs")
    milli = row.whole("gpu_milli", least=0, most=1000, unit="thousandths of a GPU")
    amounts = {
        "cpus": row.whole("cpu_milli", least=0, most=CORES_MAX * 1000, unit="thousandths of a core"),
        "mem": round(row.number("memory_mib", most=MEM_MB_MAX, unit="MiB") * 2**20),
        "gpus": milli if gpus == 1 else gpus * 1000,
    }
    if not any(amounts.values()):
        raise row.bad(
            "cpu_milli", "an amount above zero in cpu_milli, memory_mib or gpu_milli", "zero in all"
        )
    return ResourceKinds().vector(amounts)


def _duration_ms(row: Row, reading: Reading) -> int | None:
    if not row.text("scheduled_time") or not row.text("deletion_time"):
        column = "deletion_time" if row.text("scheduled_time") else "scheduled_time"
        expected = f"a time ({WITHOUT_DURATION})"
        return reading.without_duration(row.bad(column, expected))
    start_s = row.number("scheduled_time", most=SUBMIT_S_MAX, unit="seconds")
    end_s = row.number("deletion_time", most=SUBMIT_S_MAX, unit="seconds")
    if not start_s <= end_s <= start_s + DURATION_S_MAX:
        raise row.bad("deletion_time", f"{start_s:g}, when it was scheduled, or up to a year later")
    return round((end_s - start_s) * 1000)
