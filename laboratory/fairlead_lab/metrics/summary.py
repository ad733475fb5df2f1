"""From the sums of a run to its result."""

from array import array
from bisect import bisect_left
from collections.abc import Sequence

from fairlead_lab.metrics.result import (
    SHORT_MS,
    UNFINISHED,
    JobSizeClass,
    PolicyResult,
    ResourceUse,
    Series,
    SizeClass,
    UserReport,
)
from fairlead_lab.metrics.shares import Standing
from fairlead_lab.metrics.statistics import Spread, mean, spread
from fairlead_lab.metrics.sums import Metrics
from fairlead_proto.resources import STANDARD_NAMES
from fairlead_sim.workload import Job


def sum_up(
    metrics: Metrics,
    *,
    policy: str,
    seed: int,
    alone_ms: Sequence[int],
    job_size_ends: Sequence[int],
    decisions: int,
    is_complete: bool,
    took_s: float,
) -> PolicyResult:
    """The result of a run that is over.

    Args:
        metrics: Of the whole run.
        policy: Under which it ran.
        seed: Of its chances.
        alone_ms: Completion of each job on an own static slice, see ``static_slice``.
        job_size_ends: Upper ends, in tasks, of the classes of job size.
        decisions: Units granted.
        is_complete: Whether it ran to its own end.
        took_s: Of real time.
    """
    end_ms = metrics.last_change_ms
    metrics.shares.settle(end_ms)
    slowdowns, bounded = _slowdowns(metrics), _slowdowns(metrics, SHORT_MS)
    users = _users(metrics, slowdowns, alone_ms)
    return PolicyResult(
        policy=policy,
        seed=seed,
        is_complete=is_complete,
        jobs=len(metrics.arrived_places),
        jobs_finished=metrics.jobs_finished,
        jobs_refused=sum(refusal.jobs for refusal in metrics.refusals.values()),
        refused=list(metrics.refusals.values()),
        tasks=metrics.tasks_arrived,
        tasks_finished=metrics.tasks_finished,
        makespan_ms=end_ms - metrics.first_arrival_ms,
        completion_ms=_of_finished(metrics.completion_ms),
        slowdown=_of_finished(slowdowns),
        bounded_slowdown=_of_finished(bounded),
        wait_ms=metrics.wait_ms.spread(),
        resources=_resources(metrics),
        crowded_fraction=_part(metrics.crowded_ms, metrics.running.until(end_ms)) or 0.0,
        users=users,
        jain=_part(metrics.shares.jain_ms, metrics.shares.contended_ms),
        contended_ms=metrics.shares.contended_ms,
        violations=[user.user for user in users if user.is_worse_than_alone],
        clear_violations=[user.user for user in users if user.is_clearly_worse_than_alone],
        below_fraction=_below_fraction(metrics),
        waits_by_size=_waits_by_size(metrics),
        jobs_by_size=_jobs_by_size(metrics, slowdowns, job_size_ends),
        decisions=decisions,
        events=metrics.tasks_started + metrics.tasks_finished,
        took_s=took_s,
        series=_series(metrics, end_ms),
        completions_ms=metrics.completion_ms,
        slowdowns=slowdowns,
        bounded_slowdowns=bounded,
    )


def ideal_ms(job: Job) -> int:
    """How long a job takes when nothing waits: the longest task of each stage, summed."""
    return sum(max(bundle.duration_ms for bundle in stage) for stage in job.stages())


def _slowdowns(metrics: Metrics, least_ms: int = 0) -> "array[float]":
    """Of each job its completion over the ideal, both no less than ``least_ms``; an ideal of zero counts as one millisecond."""
    return array(
        "d",
        [
            UNFINISHED if took_ms == UNFINISHED else max(least_ms, took_ms) / max(1, least_ms, ideal_ms(job))
            for job, took_ms in zip(metrics.subject.jobs, metrics.completion_ms, strict=True)
        ],
    )


def _of_finished(values: Sequence[float]) -> Spread:
    return spread([value for value in values if value != UNFINISHED])


def _below_fraction(metrics: Metrics) -> float | None:
    standings = metrics.shares.users.values()
    return _part(
        sum(standing.below_ms for standing in standings),
        sum(standing.contending_ms for standing in standings),
    )


def _waits_by_size(metrics: Metrics) -> list[SizeClass]:
    return [
        SizeClass(largest_size=end, wait=waits.spread())
        for end, waits in zip(metrics.subject.size_ends, metrics.waits_by_size, strict=True)
        if waits.count
    ]


def _jobs_by_size(metrics: Metrics, slowdowns: Sequence[float], ends: Sequence[int]) -> list[JobSizeClass]:
    classes: list[list[int]] = [[] for _ in ends]
    for place, (job, took_ms) in enumerate(zip(metrics.subject.jobs, metrics.completion_ms, strict=True)):
        if took_ms != UNFINISHED:
            classes[min(bisect_left(ends, job.tasks), len(ends) - 1)].append(place)
    return [
        JobSizeClass(
            tasks_least=before + 1,
            tasks_most=end,
            jobs=len(places),
            mean_completion_ms=mean([metrics.completion_ms[place] for place in places]),
            mean_slowdown=mean([slowdowns[place] for place in places]),
        )
        for before, end, places in zip((0, *ends), ends, classes, strict=False)
        if places
    ]


def _resources(metrics: Metrics) -> dict[str, ResourceUse]:
    end_ms = metrics.last_change_ms
    first_ms, last_ms = metrics.first_arrival_ms, metrics.last_arrival_ms
    found = {}
    for place in metrics.places:
        total = metrics.capacity[place]
        whole = max(1, end_ms - first_ms) * total
        until_last = max(1, last_ms - first_ms) * total
        found[STANDARD_NAMES[place]] = ResourceUse(
            held=metrics.held[place].until(end_ms) / whole,
            held_until_last_arrival=metrics.held_at_last_arrival[place] / until_last,
            over=metrics.over[place].until(end_ms) / whole,
            over_until_last_arrival=metrics.over_at_last_arrival[place] / until_last,
            allocated=None,
            used=None,
        )
    return found


def _users(metrics: Metrics, slowdowns: Sequence[float], alone_ms: Sequence[int]) -> list[UserReport]:
    subject = metrics.subject
    by_user: dict[str, list[int]] = {user: [] for user in sorted(metrics.users)}
    for place in metrics.arrived_places:
        by_user[subject.user_of(subject.jobs[place])].append(place)
    return [_user(metrics, user, places, slowdowns, alone_ms) for user, places in by_user.items()]


def _user(
    metrics: Metrics, user: str, places: list[int], slowdowns: Sequence[float], alone_ms: Sequence[int]
) -> UserReport:
    jobs = metrics.subject.jobs
    done = [place for place in places if metrics.completion_ms[place] != UNFINISHED]
    alone = [alone_ms[place] for place in done]
    # Of a live run cut short, a user may have handed in nothing.
    standing = metrics.shares.users.get(user) or Standing(1.0, metrics.capacity)
    sums = metrics.users[user]
    return UserReport(
        user=user,
        jobs=len(places),
        tasks=sum(jobs[place].tasks for place in places),
        finished_jobs=len(done),
        mean_completion_ms=mean([metrics.completion_ms[place] for place in done]),
        mean_slowdown=mean([slowdowns[place] for place in done]),
        mean_wait_ms=sums.wait_ms / sums.tasks_finished if sums.tasks_finished else 0.0,
        mean_share=(
            standing.holding.until(metrics.last_change_ms) / standing.present_ms
            if standing.present_ms
            else 0.0
        ),
        contending_ms=standing.contending_ms,
        below_fraction=standing.below_ms / standing.contending_ms if standing.contending_ms else 0.0,
        alone_completion_ms=mean(alone) if alone and min(alone) >= 0 else None,
    )


def _series(metrics: Metrics, end_ms: int) -> Series:
    timeline = metrics.timeline
    timeline.catch_up(end_ms)
    last = metrics.sums_at(end_ms)
    rates = [timeline.rates(place, end_ms, last) for place in range(len(last))]
    resources = len(metrics.places)
    waiting, running, contended, jain, *shares = rates[resources:]
    return Series(
        times_ms=timeline.times_ms(end_ms)[1:],
        utilization={
            STANDARD_NAMES[place]: [rate / metrics.capacity[place] for rate in rates[number]]
            for number, place in enumerate(metrics.places)
        },
        waiting=waiting,
        running=running,
        dominant_share=dict(zip(metrics.subject.tracked, shares[:-1], strict=True)),
        others=shares[-1],
        jain=[index / time if time else None for index, time in zip(jain, contended, strict=True)],
    )


def _part(part: float, whole: float) -> float | None:
    """None of nothing."""
    return part / whole if whole else None
