"""Policies beside one another: which is best by a measure, and each beside the first, by size of job and user by user.

Policies of one seed run the same jobs, so they are compared pair by pair, which says far more than two intervals side by
side: of several seeds by Student's interval of the differences, of one run by drawing its jobs again (``statistics``). By a
measure that has neither only those within a hundredth are taken as alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead_lab.metrics.measures import Best, Measure, listed_measures
from fairlead_lab.metrics.result import JobSizeClass, PolicyResult, UserReport
from fairlead_lab.metrics.statistics import (
    Estimate,
    Ratio,
    estimate,
    estimate_if_all,
    mean,
    plain_ratio,
    ratio_of_means,
)

CROWDED_MAX: Final = 0.01
"""Of all task time on hosts promised twice: beyond, tasks start at once and then crawl, and what counts starts means little."""
_ALIKE: Final = 0.01
"""Policies that differ by less than a hundredth are the same to an operator."""
NOTICEABLE: Final = 0.05
"""A user whose mean completion changes by less is neither better nor worse off."""


def measured(results: Mapping[str, Sequence[PolicyResult]]) -> list[tuple[Measure, list[Estimate | None]]]:
    """Each measure that tables have, with every policy's value in their order; None where it would judge jobs not done."""
    return [
        (measure, [measure.judged(runs) for runs in results.values()])
        for measure in listed_measures(run for runs in results.values() for run in runs)
    ]


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a measure says of the policies of a study."""

    best: frozenset[int]
    """Places of the best policy and of those that cannot be told from it; empty if all are alike or nobody asks."""
    has_interval: bool
    """Whether chance was looked at; if not, those within a hundredth of the best are taken as alike."""
    left_out: frozenset[int] = frozenset()
    """Places of those that are not compared by this measure, since they promise hosts twice."""
    finest: float | None = None
    """How large a difference from the best the seeds could tell: the half width of its interval, the widest of those that are
    not told from the best, or of all if each is. None of one seed, or of a single policy."""


def rank(measure: Measure, results: Mapping[str, Sequence[PolicyResult]]) -> Ranking:
    """Rank the policies of a study; those that promise hosts twice are left out where starts are counted."""
    left_out = frozenset(
        place for place, runs in enumerate(results.values()) if measure.is_of_starts and is_crowded(runs)
    )
    found = {
        place: (value.mean, runs)
        for place, runs in enumerate(results.values())
        if (value := measure.judged(runs)) is not None and place not in left_out
    }
    has_interval = bool(measure.of_jobs) or any(len(runs) > 1 for _, runs in found.values())
    if measure.best is Best.NEITHER or len(found) < 2:
        return Ranking(frozenset(), has_interval, left_out)
    choose = min if measure.best is Best.LOW else max
    top = choose(found, key=lambda place: found[place][0])
    best = frozenset(
        place for place in found if place == top or _are_alike(measure, *found[place], *found[top])
    )
    half_widths = {
        place: _difference(measure, runs, found[top][1]).half_width
        for place, (_, runs) in found.items()
        if place != top
    }
    known = {place: width for place, width in half_widths.items() if width is not None}
    finest = max((width for place, width in known.items() if place in best), default=None)
    return Ranking(
        frozenset() if len(best) == len(found) else best,
        has_interval,
        left_out,
        max(known.values(), default=None) if finest is None else finest,
    )


def is_crowded(runs: Sequence[PolicyResult]) -> bool:
    """Whether hosts were promised more than they have for more than a little of the time."""
    return max(run.crowded_fraction for run in runs) > CROWDED_MAX


def completion_ratio(runs: Sequence[PolicyResult], first: Sequence[PolicyResult]) -> Ratio | None:
    """Mean completion over that of another policy under the same seeds; None if nothing can be compared.

    Of one run the interval is from its jobs; of several, Student's, of the seeds' own ratios.
    """
    if len(runs) == 1:
        return ratio_of_means(runs[0].completions_ms, first[0].completions_ms)
    ratios = [
        plain_ratio(run.completions_ms, other.completions_ms) for run, other in zip(runs, first, strict=True)
    ]
    found = estimate_if_all(ratios)
    if found is None:
        return None
    half_width = found.half_width or 0.0
    return Ratio(found.mean, found.mean - half_width, found.mean + half_width)


def _are_alike(
    measure: Measure,
    value: float,
    runs: Sequence[PolicyResult],
    best: float,
    best_runs: Sequence[PolicyResult],
) -> bool:
    if abs(value - best) <= _ALIKE * max(abs(value), abs(best)):
        return True
    if len(runs) > 1:
        difference = _difference(measure, runs, best_runs)
        return abs(difference.mean) <= (difference.half_width or 0.0)
    ratio = measure.ratio(runs[0], best_runs[0])
    return ratio is not None and ratio.may_be_one


def _difference(measure: Measure, runs: Sequence[PolicyResult], others: Sequence[PolicyResult]) -> Estimate:
    """Seed by seed."""
    pairs = zip(runs, others, strict=True)
    return estimate([_pick(measure, run) - _pick(measure, other) for run, other in pairs])


def _pick(measure: Measure, run: PolicyResult) -> float:
    value = measure.pick(run)
    assert value is not None, "a measure that one run lacks has no mean"
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeReduction:
    """Jobs of so many tasks under a policy and under the first."""

    tasks_least: int
    tasks_most: int
    jobs: float
    """Mean over the seeds."""
    completion_ms: Estimate
    """Mean of the jobs."""
    reduction: Estimate
    """By what part of the first policy's mean completion the policy's is shorter; below zero where it is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserChange:
    """A user under a policy and under the first."""

    user: str
    jobs: float
    completion_ms: float
    """Mean of the jobs, mean over the seeds."""
    reduction: float
    """As for ``SizeReduction``."""


def reductions_by_size(runs: Sequence[PolicyResult], first: Sequence[PolicyResult]) -> list[SizeReduction]:
    """By number of tasks of a job, smallest first; runs and first are of the same seeds, and classes without jobs are left out."""
    found: dict[int, list[tuple[JobSizeClass, JobSizeClass]]] = {}
    for run, reference in zip(runs, first, strict=True):
        before = {each.tasks_least: each for each in reference.jobs_by_size}
        for each in run.jobs_by_size:
            if each.tasks_least in before:
                found.setdefault(each.tasks_least, []).append((each, before[each.tasks_least]))
    return [
        SizeReduction(
            tasks_least=least,
            tasks_most=max(mine.tasks_most for mine, _ in pairs),
            jobs=mean([mine.jobs for mine, _ in pairs]),
            completion_ms=estimate([mine.mean_completion_ms for mine, _ in pairs]),
            reduction=estimate(
                [_reduction(mine.mean_completion_ms, theirs.mean_completion_ms) for mine, theirs in pairs]
            ),
        )
        for least, pairs in sorted(found.items())
    ]


def changes_by_user(runs: Sequence[PolicyResult], first: Sequence[PolicyResult]) -> list[UserChange]:
    """Of users with a finished job in every run, those who gain most first."""
    before = users_of(first)
    changes = [
        UserChange(
            user=name,
            jobs=mean([user.finished_jobs for user in found]),
            completion_ms=mean_completion_ms(found),
            reduction=_reduction(mean_completion_ms(found), mean_completion_ms(before[name])),
        )
        for name, found in users_of(runs).items()
        if name in before
    ]
    return sorted(changes, key=lambda change: (-change.reduction, change.user))


def users_of(runs: Sequence[PolicyResult]) -> dict[str, list[UserReport]]:
    """Each user with a finished job in every run, by name: what became of him in each."""
    found: dict[str, list[UserReport]] = {}
    for run in runs:
        for user in run.users:
            if user.finished_jobs:
                found.setdefault(user.user, []).append(user)
    return {name: each for name, each in found.items() if len(each) == len(runs)}


def mean_completion_ms(found: Sequence[UserReport]) -> float:
    """Of one user, over the runs."""
    return mean([user.mean_completion_ms for user in found])


def _reduction(completion_ms: float, reference_ms: float) -> float:
    return 1 - completion_ms / reference_ms if reference_ms else 0.0
