"""The report of a replay: its records fed to the sums that simulations keep too, and what only a live run has.

Completion, slowdown and waits are of what finished; what did not is counted and never mixed in. All numbers come from
the records of tasks but for what only the master sees (offered amounts, measured usage, decisions), which come from
its samples and are marked so.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, Final

from fairlead_lab.metrics.records import JobRecord, RunRecord, TaskRecord
from fairlead_lab.metrics.result import PolicyResult, ResourceUse
from fairlead_lab.metrics.static_slice import completions_alone_ms
from fairlead_lab.metrics.statistics import Spread, mean, spread
from fairlead_lab.metrics.summary import sum_up
from fairlead_lab.metrics.sums import Metrics, Subject
from fairlead_lab.metrics.yardstick import job_size_ends, quartiles
from fairlead_lab.workloads.scaling import largest_amounts
from fairlead_proto.resources import STANDARD_NAMES, Vector
from fairlead_sim.workload import Bundle, Job

_LOST: Final = frozenset({"LOST", "GONE", "DROPPED", "UNREACHABLE"})
_FAILED: Final = frozenset({"FAILED", "KILLED", "ERROR"}) | _LOST


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """A live run: the measures that a simulation has too, and those of real processes."""

    result: PolicyResult
    """Its jobs and tasks include what was never handed in, since the run was cut short or an earlier stage failed."""
    tasks_failed: int
    """Ended otherwise than FINISHED: failed, killed, refused."""
    tasks_lost: int
    """Of them, LOST, GONE, DROPPED or UNREACHABLE after the last attempt."""
    tasks_unended: int
    """Not seen to end, or never handed in."""
    retries: int
    """Attempts beyond the first, over all tasks."""
    launch_overhead_ms: Spread
    """Of finished tasks: how much longer the process lived than it was told to sleep."""
    lag_ms: Spread
    """Of jobs: how much later than the compressed trace says the replay handed them in."""
    decisions_per_s: float
    master_cpu_ms: int

    def as_json(self) -> dict[str, Any]:
        """The report as plain data for JSON."""
        data = asdict(self) | self.result.as_json()
        return {name: data[name] for name in _JSON_NAMES}


_JSON_NAMES: Final = (
    "policy", "is_complete", "jobs", "jobs_finished", "tasks", "tasks_finished", "tasks_failed", "tasks_lost",
    "tasks_unended", "retries", "makespan_ms", "completion_ms", "slowdown", "wait_ms", "launch_overhead_ms", "lag_ms",
    "resources", "crowded_fraction", "users", "jain", "contended_ms", "violations", "clear_violations",
    "below_fraction", "waits_by_size", "decisions", "decisions_per_s", "master_cpu_ms",
)  # fmt: skip


def build_report(run: RunRecord) -> ReplayReport:
    """The report of a run; an interrupted run has one too, and says so."""
    tasks = run.tasks
    ended = [task for task in tasks if task.is_finished]
    result = _result(run, ended)
    return ReplayReport(
        result=result,
        tasks_failed=sum(task.state in _FAILED for task in tasks),
        tasks_lost=sum(task.state in _LOST for task in tasks),
        tasks_unended=sum(job.withheld for job in run.jobs)
        + sum(task.state not in _FAILED and not task.is_finished for task in tasks),
        retries=sum(max(0, task.attempts - 1) for task in tasks),
        launch_overhead_ms=spread([_lifetime_ms(task) - task.duration_ms for task in ended]),
        lag_ms=spread([job.submitted_ms - job.planned_ms for job in run.jobs]),
        decisions_per_s=run.decisions * 1000 / result.makespan_ms if result.makespan_ms else 0.0,
        master_cpu_ms=run.master_cpu_ms,
    )


def _lifetime_ms(task: TaskRecord) -> int:
    assert task.started_ms is not None, f"task {task.task_id} has not started"
    assert task.finished_ms is not None, f"task {task.task_id} is not over"
    return task.finished_ms - task.started_ms


def _result(run: RunRecord, ended: Sequence[TaskRecord]) -> PolicyResult:
    jobs = [_as_job(record) for record in run.jobs]
    sizes: dict[Vector, int] = {}
    for task in ended:
        sizes[task.unit] = sizes.get(task.unit, 0) + 1
    metrics = Metrics(
        Subject(
            jobs=jobs,
            hosts=run.agents,
            user_of=_user_of,
            size_ends=quartiles(sizes, largest_amounts(run.agents.values())),
            # A replay keeps a record of each task anyway, so its percentiles are exact.
            waits_apart_max=len(ended) + 1,
        )
    )
    metrics.watch_crowding()
    for at_ms, _, tell in sorted(_facts(run, jobs, metrics), key=itemgetter(0, 1)):
        tell(at_ms)
    # A run that was cut short may have handed in a stage after that; it ends with the last end all the same.
    metrics.last_change_ms = max((record.finished_ms for record in run.jobs), default=0)
    done = [place for place, record in enumerate(run.jobs) if record.is_finished]
    for place in done:
        metrics.add_finished_job(place, run.jobs[place].finished_ms - run.jobs[place].submitted_ms)
    for task in ended:
        assert task.started_ms is not None, f"task {task.task_id} has not started"
        metrics.add_finished_tasks(task.user, task.unit, 1, task.started_ms - task.submitted_ms)
    result = sum_up(
        metrics,
        policy=run.policy,
        seed=0,
        alone_ms=completions_alone_ms(
            jobs, done, metrics.capacity, user_of=_user_of, users=[job.user for job in jobs]
        ),
        job_size_ends=job_size_ends(max((job.tasks for job in jobs), default=1)),
        decisions=run.decisions,
        is_complete=run.is_complete,
        took_s=0.0,
    )
    return replace(result, resources=_with_samples(result.resources, run))


def _user_of(job: Job) -> str:
    return job.user


def _as_job(record: JobRecord) -> Job:
    """The job with a bundle for each task that was handed in, and one for those that were not."""
    bundles = [_as_bundle(record, task.stage, 1, task.unit, task.duration_ms) for task in record.tasks]
    if record.withheld:
        # Of these only the number is known; a job that has them is unfinished, and nothing else is asked of it.
        after_all = max((bundle.stage for bundle in bundles), default=0) + 1
        bundles.append(_as_bundle(record, after_all, record.withheld, (), 0))
    return Job(job_id=record.job_id, user=record.user, submit_ms=record.submitted_ms, bundles=tuple(bundles))


def _as_bundle(record: JobRecord, stage: int, tasks: int, unit: Vector, duration_ms: int) -> Bundle:
    return Bundle(
        job_id=record.job_id,
        user=record.user,
        stage=stage,
        tasks=tasks,
        unit=unit,
        submit_ms=record.submitted_ms,
        duration_ms=duration_ms,
    )


_ARRIVES, _HANDED_IN, _STARTS, _ENDS, _GIVEN_UP = range(5)
"""What happens in the same millisecond happens in this order, so that a task of no length starts before it ends."""


def _facts(
    run: RunRecord, jobs: Sequence[Job], metrics: Metrics
) -> Iterator[tuple[int, int, Callable[[int], object]]]:
    """When what happened, its rank within that millisecond, and what to tell the sums at that time.

    A task without both times is held by nobody: it waits until the last of the run's tasks is over.
    """
    for job, record in zip(jobs, run.jobs, strict=True):
        yield record.submitted_ms, _ARRIVES, partial(metrics.add_job, job)
    last_ms = max((max(task.submitted_ms, task.finished_ms or 0) for task in run.tasks), default=0)
    for task in run.tasks:
        yield task.submitted_ms, _HANDED_IN, partial(metrics.hand_in, task.user, 1)
        if task.started_ms is None or task.finished_ms is None:
            yield last_ms, _GIVEN_UP, partial(metrics.give_up, task.user, 1)
        else:
            held = (task.user, task.unit, 1, task.agent_id)
            yield task.started_ms, _STARTS, partial(metrics.start, *held)
            yield task.finished_ms, _ENDS, partial(metrics.end, *held)


def _with_samples(resources: dict[str, ResourceUse], run: RunRecord) -> dict[str, ResourceUse]:
    """The same with what the master said was allocated and the hosts measured, means over its samples, if there are any."""
    if not run.samples:
        return resources
    return {
        name: replace(
            use,
            allocated=mean([sample.allocated[place] / run.capacity[place] for sample in run.samples]),
            used=mean([sample.used[place] / run.capacity[place] for sample in run.samples]),
        )
        for place, name in enumerate(STANDARD_NAMES)
        if (use := resources.get(name)) is not None
    }
