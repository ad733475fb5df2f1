"""Builders of workload values; each defaults everything a test is not about."""

from collections.abc import Mapping

from fairlead_lab.metrics.records import JobRecord, RunRecord, TaskRecord
from fairlead_proto.resources import Vector
from fairlead_sim.workload import Bundle

GIB = 2**30


def a_bundle(
    job_id: str = "j0",
    *,
    user: str = "ann",
    stage: int = 0,
    tasks: int = 1,
    unit: Vector = (1000, GIB, 0, 0),
    submit_ms: int = 0,
    duration_ms: int = 1000,
) -> Bundle:
    return Bundle(
        job_id=job_id,
        user=user,
        stage=stage,
        tasks=tasks,
        unit=unit,
        submit_ms=submit_ms,
        duration_ms=duration_ms,
    )


def a_task_record(
    task_id: str = "t0",
    *,
    job_id: str = "j0",
    user: str = "ann",
    stage: int = 0,
    unit: Vector = (1000, GIB, 0, 0),
    duration_ms: int | None = None,
    submitted_ms: int = 0,
    started_ms: int | None = 0,
    finished_ms: int | None = 1000,
    agent_id: str = "a0",
    attempts: int = 1,
    state: str = "FINISHED",
) -> TaskRecord:
    if duration_ms is None:
        duration_ms = finished_ms - started_ms if finished_ms is not None and started_ms is not None else 1000
    return TaskRecord(
        task_id=task_id,
        job_id=job_id,
        user=user,
        stage=stage,
        unit=unit,
        duration_ms=duration_ms,
        submitted_ms=submitted_ms,
        started_ms=started_ms,
        finished_ms=finished_ms,
        agent_id=agent_id,
        attempts=attempts,
        state=state,
    )


def a_job_record(*tasks: TaskRecord, planned_ms: int | None = None) -> JobRecord:
    submitted_ms = min(task.submitted_ms for task in tasks)
    return JobRecord(
        job_id=tasks[0].job_id,
        user=tasks[0].user,
        planned_ms=submitted_ms if planned_ms is None else planned_ms,
        submitted_ms=submitted_ms,
        tasks=tasks,
    )


def a_run(*jobs: JobRecord, agents: Mapping[str, Vector] | None = None, decisions: int = 0) -> RunRecord:
    return RunRecord(
        policy="drf", agents=agents or {"a0": (4000, 8 * GIB, 0, 0)}, jobs=jobs, decisions=decisions
    )
