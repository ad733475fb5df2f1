"""What one run of a workload under one policy left behind, as plain values and as CSV: the input of every report.

A live replay writes them, and so may a simulation; nothing here knows which. Times are milliseconds from the start of
the run, amounts are vectors in the standard order (cpus, mem, disk, gpus).
"""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlead_proto.resources import STANDARD_NAMES, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One task from its planning to its end."""

    task_id: str
    job_id: str
    user: str
    stage: int
    unit: Vector
    duration_ms: int
    """As planned: what its process was told to sleep."""
    submitted_ms: int
    """Handed to the framework: its job arrived and its job's earlier stages were over."""
    started_ms: int | None
    """Its process ran, last attempt; None if it never did."""
    finished_ms: int | None
    """Its process ended, last attempt; None if it was not seen to end."""
    agent_id: str
    """Of the last attempt; empty if it never was launched."""
    attempts: int
    state: str
    """Last state by name: FINISHED is the good end."""
    reason: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether it ran to its good end, with both times known."""
        return self.state == "FINISHED" and self.started_ms is not None and self.finished_ms is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job: when it was due, when it was handed in, and its tasks."""

    job_id: str
    user: str
    planned_ms: int
    """When the compressed trace says it arrives."""
    submitted_ms: int
    """When the replay handed in its first stage; the difference is the replay's own lag."""
    tasks: tuple[TaskRecord, ...]
    """Those that were handed in."""
    withheld: int = 0
    """Tasks never handed in: one of an earlier stage did not finish, or the run was cut short before."""

    @property
    def is_finished(self) -> bool:
        """Whether all its tasks were handed in and finished."""
        return not self.withheld and all(task.is_finished for task in self.tasks)

    @property
    def finished_ms(self) -> int:
        """The end of its last task, whatever its state; the job's submission if none ended."""
        return max((task.finished_ms or 0 for task in self.tasks), default=0) or self.submitted_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSample:
    """One role at one moment, as the master sees it."""

    dominant_share: float
    dominant_resource: str
    """By name; empty while the share is 0."""
    allocated: Vector
    """Offered or held."""
    pending: int
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSample:
    """The cluster at one moment, as the master sees it."""

    at_ms: int
    total: Vector
    allocated: Vector
    """Offered or held."""
    used: Vector
    """Measured on the hosts; zero where nothing is measured."""
    roles: dict[str, RoleSample]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run of a workload under one policy."""

    policy: str
    agents: Mapping[str, Vector]
    """Total capacity by agent id, at the start."""
    jobs: tuple[JobRecord, ...]
    samples: tuple[ClusterSample, ...] = ()
    decisions: int = 0
    """Units the allocator granted during the run."""
    master_cpu_ms: int = 0
    """CPU time of the master process during the run."""
    is_complete: bool = True
    """False if it was interrupted or a deadline ended it."""

    @property
    def capacity(self) -> Vector:
        """The sum over the agents."""
        return tuple(sum(places) for places in zip(*self.agents.values(), strict=True))

    @property
    def tasks(self) -> list[TaskRecord]:
        """All tasks that were handed in, by job."""
        return [task for job in self.jobs for task in job.tasks]


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
