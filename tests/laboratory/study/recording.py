"""Keeps a record of every task of a simulation: the input of the report that live replays get."""

from collections.abc import Mapping

from fairlead_lab.metrics.records import JobRecord, RunRecord, TaskRecord
from fairlead_proto.resources import Vector
from fairlead_sim.observer import Batch
from fairlead_sim.workload import Bundle, Job


class Recorder:
    """A watcher that forgets nothing."""

    def __init__(self) -> None:
        self._arrivals: list[tuple[Job, int]] = []
        self._tasks: dict[tuple[int, int], list[TaskRecord]] = {}
        """By job and bundle."""

    def arrived(self, job: Job, now_ms: int) -> None:
        self._arrivals.append((job, now_ms))

    def refused(self, job: Job, bundle: Bundle, why: str, now_ms: int) -> None:
        pass

    def started(self, batch: Batch) -> None:
        pass

    def ended(self, batch: Batch, now_ms: int) -> None:
        tasks = self._tasks.setdefault((id(batch.job), id(batch.bundle)), [])
        tasks += [
            TaskRecord(
                task_id=f"{batch.job.job_id}-{batch.bundle.stage}-{len(tasks) + number}",
                job_id=batch.job.job_id,
                user=batch.job.user,
                stage=batch.bundle.stage,
                unit=batch.bundle.unit,
                duration_ms=batch.bundle.duration_ms,
                submitted_ms=batch.ready_ms,
                started_ms=batch.started_ms,
                finished_ms=now_ms,
                agent_id=batch.host,
                attempts=1,
                state="FINISHED",
            )
            for number in range(batch.units)
        ]

    def finished(self, job: Job, now_ms: int) -> None:
        pass

    def record(self, policy: str, agents: Mapping[str, Vector], decisions: int) -> RunRecord:
        jobs = tuple(
            JobRecord(
                job_id=job.job_id,
                user=job.user,
                planned_ms=at_ms,
                submitted_ms=at_ms,
                tasks=tuple(
                    task for bundle in job.bundles for task in self._tasks.get((id(job), id(bundle)), ())
                ),
            )
            for job, at_ms in self._arrivals
        )
        return RunRecord(policy=policy, agents=agents, jobs=jobs, decisions=decisions)
