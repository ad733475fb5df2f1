"""From a trace's jobs to the tasks a replay will launch: ids, roles, amounts, times. Pure; nothing runs here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead_lab.workloads.scaling import ScalingCounts, ScalingRule, scale_bundle
from fairlead_proto.limits import ID_LENGTH_MAX
from fairlead_proto.resources import Vector
from fairlead_sim.workload import Bundle, Job, WorkloadError, group_jobs

TASKS_MAX: Final = 1_000_000
"""Each task of a replay is kept until its end, about 1 KiB. More is a trace to simulate, or to take a part of."""

_NOT_IN_ROLE: Final = re.compile(r"[^a-z0-9_.-]+")
_NOT_IN_ID: Final = re.compile(r"[^A-Za-z0-9._:@+=-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTask:
    """One real task: a process that sleeps."""

    task_id: str
    """Unique in the replay."""
    job_id: str
    user: str
    stage: int
    unit: Vector
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """One job of a user, to be handed in at a time of the replay."""

    job_id: str
    user: str
    arrival_ms: int
    """From the start of the replay."""
    stages: tuple[tuple[PlannedTask, ...], ...]
    """Each begins when the one before is over; none is empty."""

    @property
    def tasks(self) -> int:
        """How many tasks it has in all."""
        return sum(len(stage) for stage in self.stages)

    @property
    def ideal_ms(self) -> int:
        """How long it takes when nothing waits: the longest task of each stage, summed."""
        return sum(max(task.duration_ms for task in stage) for stage in self.stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """Everything a replay will do, in order of arrival; the first job arrives at 0."""

    jobs: tuple[PlannedJob, ...]
    roles: dict[str, str]
    """User to the role its shares are counted on, by first arrival."""
    counts: ScalingCounts

    @property
    def tasks(self) -> int:
        """How many tasks there are in all."""
        return sum(job.tasks for job in self.jobs)

    @property
    def last_arrival_ms(self) -> int:
        """When the last job arrives."""
        return self.jobs[-1].arrival_ms

    @property
    def work(self) -> list[tuple[Vector, int]]:
        """Demand and run time in ms of every task."""
        return [(task.unit, task.duration_ms) for job in self.jobs for stage in job.stages for task in stage]


def plan_replay(jobs: Sequence[Job], rule: ScalingRule, *, source: str = "replay") -> ReplayPlan:
    """Scale the jobs to the cluster and name their tasks; errors begin with where the jobs come from.

    Raises:
        WorkloadError: no task fits on any agent, or there are more than ``TASKS_MAX``.
    """
    counts = ScalingCounts()
    kept: list[Bundle] = []
    for job in jobs:
        bundles = (scale_bundle(bundle, rule, counts) for bundle in job.bundles)
        kept += [bundle for bundle in bundles if bundle is not None]
        if counts.tasks > TASKS_MAX:
            raise WorkloadError(
                f"{source}: expected at most {TASKS_MAX:,} tasks, got more: take fewer jobs by --limit"
            )
    if not kept:
        raise WorkloadError(
            f"{source}: expected a task that fits on an agent, got none of {counts.left_out}: "
            "do the agents have every resource the trace asks for?"
        )
    scaled = group_jobs(kept)
    origin_ms = scaled[0].submit_ms
    return ReplayPlan(
        jobs=tuple(_plan_job(number, job, origin_ms) for number, job in enumerate(scaled)),
        roles=name_roles([job.user for job in scaled]),
        counts=counts,
    )


def name_roles(users: Sequence[str]) -> dict[str, str]:
    """A role for each user, by first mention: the user's name as a role may be written, numbered where two would meet."""
    roles: dict[str, str] = {}
    taken: set[str] = set()
    for user in users:
        if user in roles:
            continue
        stem = _NOT_IN_ROLE.sub("-", user.lower()).strip("-._")[: ID_LENGTH_MAX // 2] or "user"
        role, number = stem, 1
        while role in taken:
            number += 1
            role = f"{stem}-{number}"
        taken.add(role)
        roles[user] = role
    return roles


def _plan_job(number: int, job: Job, origin_ms: int) -> PlannedJob:
    # The number keeps ids apart where two jobs' names differ only in letters an id may not have.
    stem = f"j{number}-{_NOT_IN_ID.sub('-', job.job_id)[: ID_LENGTH_MAX // 2]}"
    stages = []
    for bundles in job.stages():
        tasks = [bundle for bundle in bundles for _ in range(bundle.tasks)]
        stages.append(
            tuple(
                PlannedTask(
                    task_id=f"{stem}-{bundle.stage}-{index}",
                    job_id=job.job_id,
                    user=job.user,
                    stage=bundle.stage,
                    unit=bundle.unit,
                    duration_ms=bundle.duration_ms,
                )
                for index, bundle in enumerate(tasks)
            )
        )
    return PlannedJob(
        job_id=job.job_id, user=job.user, arrival_ms=job.submit_ms - origin_ms, stages=tuple(stages)
    )


def slots_on_average(work: Sequence[tuple[Vector, int]], agent: Vector) -> int:
    """How many slots an agent needs so that tasks of the mean size fill it: some tasks waste, others exceed theirs.

    The reciprocal of the mean dominant demand of a task, as a share of ``agent``, weighted by run time, rounded to the
    nearest and at least 1. What an operator who knows the average would configure: an agent is then full on average,
    and again and again promised more than it has.

    Args:
        work: Demand and run time in ms of each task; not empty.
        agent: The capacity of an agent.
    """
    weight = sum(duration_ms for _, duration_ms in work)
    if not weight:
        return slots_on_average([(unit, 1) for unit, _ in work], agent)
    mean = sum(dominant_fraction(unit, agent) * duration_ms for unit, duration_ms in work) / weight
    return max(1, round(1 / mean)) if mean else 1


def slots_for_largest(work: Sequence[tuple[Vector, int]], agent: Vector) -> int:
    """How many slots an agent may have so that no set of tasks in them exceeds it: what all smaller tasks waste is lost.

    Args and sense as ``slots_on_average``; the largest task takes the place of the mean.
    """
    largest = max(dominant_fraction(unit, agent) for unit, _ in work)
    return max(1, int(1 / largest + 1e-9)) if largest else 1


def dominant_fraction(unit: Vector, capacity: Vector) -> float:
    """The largest share of a capacity that a demand takes of any resource; places without capacity are skipped."""
    return max((d / c for d, c in zip(unit, capacity, strict=True) if c), default=0.0)
