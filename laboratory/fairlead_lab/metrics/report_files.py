"""Writes the records of a run as CSV, for whoever wants to compute something else from them."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path

from fairlead_lab.metrics.records import RunRecord
from fairlead_proto.resources import STANDARD_NAMES


def write_run(folder: Path, run: RunRecord) -> None:
    """Write ``tasks-POLICY.csv``, ``samples-POLICY.csv`` and ``shares-POLICY.csv``; the folder is made if need be.

    Times are ms from the start of the run, amounts whole (thousandths of a core, bytes).

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    policy = re.sub(r"[^A-Za-z0-9.-]+", "-", run.policy)
    _write(
        folder / f"tasks-{policy}.csv",
        ("task_id", "job_id", "user", "stage", *STANDARD_NAMES, "duration_ms", "submitted_ms", "started_ms",
         "finished_ms", "agent_id", "attempts", "state", "reason"),
        (
            (task.task_id, task.job_id, task.user, task.stage, *task.unit, task.duration_ms, task.submitted_ms,
             task.started_ms, task.finished_ms, task.agent_id, task.attempts, task.state, task.reason)
            for task in run.tasks
        ),
    )  # fmt: skip
    _write(
        folder / f"samples-{policy}.csv",
        ("at_ms", *(f"{kind}_{name}" for kind in ("total", "allocated", "used") for name in STANDARD_NAMES)),
        ((sample.at_ms, *sample.total, *sample.allocated, *sample.used) for sample in run.samples),
    )
    _write(
        folder / f"shares-{policy}.csv",
        ("at_ms", "role", "dominant_share", "pending", "running"),
        (
            (sample.at_ms, name, f"{role.dominant_share:.6f}", role.pending, role.running)
            for sample in run.samples
            for name, role in sample.roles.items()
        ),
    )


def _write(path: Path, names: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
