"""What a simulation tells, as lines, and jobs small enough to be followed with a pencil."""

from fairlead_proto.tasks import Constraint
from fairlead_sim.observer import Batch
from fairlead_sim.workload import Bundle, Job
from tests.laboratory.workloads.workload_builders import GIB


class Diary:
    """Everything a watcher is told, as lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def arrived(self, job: Job, now_ms: int) -> None:
        self.lines.append(f"{now_ms} {job.job_id} arrives")

    def refused(self, job: Job, bundle: Bundle, why: str, now_ms: int) -> None:
        self.lines.append(f"{now_ms} {job.job_id} is refused")
        assert why

    def started(self, batch: Batch) -> None:
        self.lines.append(f"{batch.started_ms} {batch.job.job_id} starts {batch.units} on {batch.host}")

    def ended(self, batch: Batch, now_ms: int) -> None:
        self.lines.append(f"{now_ms} {batch.job.job_id} ends {batch.units}")

    def finished(self, job: Job, now_ms: int) -> None:
        self.lines.append(f"{now_ms} {job.job_id} is done")

    def of(self, word: str) -> list[str]:
        return [line for line in self.lines if f" {word} " in f"{line} "]


def a_job(job_id: str, *bundles: Bundle, user: str = "", submit_ms: int = 0) -> Job:
    return Job(job_id=job_id, user=user or job_id, submit_ms=submit_ms, bundles=bundles)


def some_tasks(
    tasks: int,
    cpus: float,
    mem_gib: float,
    duration_ms: int = 1000,
    *,
    stage: int = 0,
    is_gang: bool = False,
    constraints: tuple[Constraint, ...] = (),
) -> Bundle:
    return Bundle(
        job_id="",
        user="",
        stage=stage,
        tasks=tasks,
        unit=(round(cpus * 1000), round(mem_gib * GIB), 0, 0),
        submit_ms=0,
        duration_ms=duration_ms,
        is_gang=is_gang,
        constraints=constraints,
    )
