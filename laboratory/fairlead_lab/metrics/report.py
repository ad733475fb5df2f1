"""The fairness report of one run: pure functions from records to numbers, each defined where it is computed.

Completion, slowdown and waits are of what finished; what did not is counted and never mixed in. All numbers come from
the records of tasks but for what only the master sees (offered amounts, measured usage, decisions), which come from
its samples and are marked so.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from fairlead_lab.metrics.distribution import percentile, spread
from fairlead_lab.metrics.records import JobRecord, RunRecord, TaskRecord
from fairlead_lab.metrics.result import ResourceUse, SizeClass, Spread, UserReport
from fairlead_lab.metrics.shares import ShareSummary, UserShares, sweep_shares
from fairlead_lab.metrics.static_split import mean_completion_alone_ms
from fairlead_lab.metrics.survey import QUARTILES
from fairlead_lab.workloads.plan import dominant_fraction
from fairlead_lab.workloads.scaling import largest_amounts
from fairlead_proto.resources import STANDARD_NAMES, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessReport:
    """What one run came to. Times in ms, shares and utilisation as fractions."""

    policy: str
    is_complete: bool
    jobs: int
    jobs_finished: int
    tasks: int
    tasks_finished: int
    tasks_failed: int
    """Ended otherwise than FINISHED: failed, killed, refused."""
    tasks_lost: int
    """Of them, LOST, GONE, DROPPED or UNREACHABLE after the last attempt."""
    tasks_unended: int
    """Not seen to end, or never handed in: the run was cut short, or an earlier stage of the job did not finish."""
    retries: int
    """Attempts beyond the first, over all tasks."""
    makespan_ms: int
    """From the first submission to the last end."""
    completion_ms: Spread
    """Of finished jobs, from submission to the end of the last task."""
    slowdown: Spread
    """Of finished jobs: completion over the ideal completion, see ``JobRecord.ideal_ms``; 1 is the best there is."""
    wait_ms: Spread
    """Of finished tasks, from submission to the start of the process."""
    launch_overhead_ms: Spread
    """Of finished tasks: how much longer the process lived than it was told to sleep."""
    lag_ms: Spread
    """Of jobs: how much later than the compressed trace says the replay handed them in."""
    resources: dict[str, ResourceUse]
    crowded_fraction: float
    """Of all tasks' run time, the part on agents that were promised more of some resource than they have: real work
    would have been slowed down or killed then, a sleep is not."""
    users: list[UserReport]
    jain: float | None
    """See ``ShareSummary.jain``."""
    contended_ms: int
    """How long at least two users wanted more."""
    violations: list[str]
    """Users worse off than on an own static 1/n, see ``UserReport.is_worse_than_alone``."""
    clear_violations: list[str]
    """Of them, those by more than launches explain, see ``UserReport.is_clearly_worse_than_alone``."""
    below_fraction: float | None
    """Of the contending users' time, the part with a dominant share under 1/n of the n users then present."""
    waits_by_size: list[SizeClass]
    decisions: int
    decisions_per_s: float
    master_cpu_ms: int

    def as_json(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        data = asdict(self)
        for user, entry in zip(self.users, data["users"], strict=True):
            entry["is_worse_than_alone"] = user.is_worse_than_alone
        return data


def build_report(run: RunRecord) -> FairnessReport:
    """The report of a run; an interrupted run has one too, and says so."""
    tasks = run.tasks
    jobs = [job for job in run.jobs if job.is_finished]
    ended = [task for task in tasks if task.is_finished]
    withheld = sum(job.withheld for job in run.jobs)
    summary = sweep_shares(tasks, run.agents)
    start_ms, end_ms = _bounds(run)
    users = _user_reports(run, summary)
    contending_ms = sum(user.contending_ms for user in users)
    return FairnessReport(
        policy=run.policy,
        is_complete=run.is_complete,
        jobs=len(run.jobs),
        jobs_finished=len(jobs),
        tasks=len(tasks) + withheld,
        tasks_finished=len(ended),
        tasks_failed=sum(task.state in _FAILED for task in tasks),
        tasks_lost=sum(task.state in _LOST for task in tasks),
        tasks_unended=withheld + sum(task.state not in _FAILED and not task.is_finished for task in tasks),
        retries=sum(max(0, task.attempts - 1) for task in tasks),
        makespan_ms=end_ms - start_ms,
        completion_ms=spread([completion_ms(job) for job in jobs]),
        slowdown=spread([slowdown(job) for job in jobs]),
        wait_ms=spread([wait_ms(task) for task in ended]),
        launch_overhead_ms=spread([_lifetime_ms(task) - task.duration_ms for task in ended]),
        lag_ms=spread([job.submitted_ms - job.planned_ms for job in run.jobs]),
        resources=_resource_use(run, summary, start_ms, end_ms),
        crowded_fraction=summary.crowded_ms / summary.run_ms if summary.run_ms else 0.0,
        users=users,
        jain=summary.jain,
        contended_ms=summary.contended_ms,
        violations=[user.user for user in users if user.is_worse_than_alone],
        clear_violations=[user.user for user in users if user.is_clearly_worse_than_alone],
        below_fraction=_below_ms(summary) / contending_ms if contending_ms else None,
        waits_by_size=waits_by_size(ended, largest_amounts(run.agents.values())),
        decisions=run.decisions,
        decisions_per_s=run.decisions * 1000 / (end_ms - start_ms) if end_ms > start_ms else 0.0,
        master_cpu_ms=run.master_cpu_ms,
    )


_LOST = frozenset({"LOST", "GONE", "DROPPED", "UNREACHABLE"})
_FAILED = frozenset({"FAILED", "KILLED", "ERROR"}) | _LOST


def _below_ms(summary: ShareSummary) -> int:
    return sum(user.below_ms for user in summary.users.values())


def completion_ms(job: JobRecord) -> int:
    """From a job's submission to the end of its last task, in ms."""
    return job.finished_ms - job.submitted_ms


def slowdown(job: JobRecord) -> float:
    """A job's completion over its ideal completion; an ideal of zero counts as one millisecond."""
    return completion_ms(job) / max(1, job.ideal_ms)


def wait_ms(task: TaskRecord) -> int:
    """From a task's submission to the start of its process, in ms; the task has started."""
    assert task.started_ms is not None, f"task {task.task_id} has not started"
    return task.started_ms - task.submitted_ms


def _lifetime_ms(task: TaskRecord) -> int:
    assert task.started_ms is not None, f"task {task.task_id} has not started"
    assert task.finished_ms is not None, f"task {task.task_id} is not over"
    return task.finished_ms - task.started_ms


def waits_by_size(tasks: Sequence[TaskRecord], agent: Vector) -> list[SizeClass]:
    """Waits by quartile of demand size, smallest first; a quartile that equal sizes leave empty is left out.

    The size of a task is its largest share of ``agent`` of any resource. Quartiles are cut at values, so that equal
    sizes stay together and the classes may differ in number.
    """
    if not tasks:
        return []
    sizes = sorted(dominant_fraction(task.unit, agent) for task in tasks)
    ends = sorted({percentile(sizes, part * 100 // QUARTILES) for part in range(1, QUARTILES + 1)})
    waits: dict[float, list[float]] = {end: [] for end in ends}
    for task in tasks:
        size = dominant_fraction(task.unit, agent)
        waits[next(end for end in ends if size <= end)].append(wait_ms(task))
    return [SizeClass(largest_size=end, wait=spread(waits[end])) for end in ends]


def _bounds(run: RunRecord) -> tuple[int, int]:
    """First submission and last end (or submission), in ms of the run; both 0 if there is nothing."""
    if not run.jobs:
        return 0, 0
    return min(job.submitted_ms for job in run.jobs), max(job.finished_ms for job in run.jobs)


def _resource_use(
    run: RunRecord, summary: ShareSummary, start_ms: int, end_ms: int
) -> dict[str, ResourceUse]:
    last_ms = max((job.submitted_ms for job in run.jobs), default=0)
    over_before = _over_until(run, last_ms) if any(summary.over) else summary.over
    use = {}
    for place, (name, total) in enumerate(zip(STANDARD_NAMES, run.capacity, strict=False)):
        if not total:
            continue
        whole = max(1, end_ms - start_ms) * total
        until_last = max(1, last_ms - start_ms) * total
        use[name] = ResourceUse(
            held=summary.held[place] / whole,
            held_until_last_arrival=_held_between(run, place, start_ms, last_ms) / until_last,
            over=summary.over[place] / whole,
            over_until_last_arrival=over_before[place] / until_last,
            allocated=_mean([sample.allocated[place] / total for sample in run.samples]),
            used=_mean([sample.used[place] / total for sample in run.samples]),
        )
    return use


def _held_between(run: RunRecord, place: int, from_ms: int, until_ms: int) -> int:
    """Amount-milliseconds of a resource that tasks held between two times."""
    return sum(
        task.unit[place] * max(0, min(task.finished_ms, until_ms) - max(task.started_ms, from_ms))
        for task in run.tasks
        if task.started_ms is not None and task.finished_ms is not None
    )


def _over_until(run: RunRecord, until_ms: int) -> list[float]:
    """Amount-milliseconds beyond what agents have up to a time, by resource."""
    before = [
        replace(task, finished_ms=min(task.finished_ms, until_ms))
        for task in run.tasks
        if task.started_ms is not None and task.finished_ms is not None and task.started_ms < until_ms
    ]
    return sweep_shares(before, run.agents).over


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _user_reports(run: RunRecord, summary: ShareSummary) -> list[UserReport]:
    by_user: dict[str, list[JobRecord]] = {}
    for job in run.jobs:
        by_user.setdefault(job.user, []).append(job)
    return [
        _user_report(user, by_user[user], run.capacity, len(by_user), summary.users.get(user, UserShares()))
        for user in sorted(by_user)
    ]


def _user_report(
    user: str, jobs: list[JobRecord], capacity: Vector, users: int, shares: UserShares
) -> UserReport:
    finished = [job for job in jobs if job.is_finished]
    tasks = [task for job in jobs for task in job.tasks]
    return UserReport(
        user=user,
        jobs=len(jobs),
        tasks=len(tasks) + sum(job.withheld for job in jobs),
        finished_jobs=len(finished),
        mean_completion_ms=_mean([completion_ms(job) for job in finished]) or 0.0,
        mean_slowdown=_mean([slowdown(job) for job in finished]) or 0.0,
        mean_wait_ms=_mean([wait_ms(task) for task in tasks if task.is_finished]) or 0.0,
        mean_share=shares.mean_share,
        contending_ms=shares.contending_ms,
        below_fraction=shares.below_ms / shares.contending_ms if shares.contending_ms else 0.0,
        alone_completion_ms=mean_completion_alone_ms(finished, capacity, users),
    )
