"""Every policy beside the first: by size of job, as the DRF paper's figure 14 does, and user by user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead_lab.metrics.intervals import Estimate, estimate
from fairlead_lab.metrics.result import PolicyResult

NOTICEABLE: Final = 0.05
"""A user whose mean completion changes by less is neither better nor worse off."""


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
    found: dict[int, list[tuple[int, int, float, float]]] = {}
    for run, reference in zip(runs, first, strict=True):
        before = {each.tasks_least: each for each in reference.jobs_by_size}
        for each in run.jobs_by_size:
            if each.tasks_least in before:
                completion_ms = before[each.tasks_least].mean_completion_ms
                found.setdefault(each.tasks_least, []).append(
                    (
                        each.tasks_most,
                        each.jobs,
                        each.mean_completion_ms,
                        _reduction(each.mean_completion_ms, completion_ms),
                    )
                )
    return [
        SizeReduction(
            tasks_least=least,
            tasks_most=max(row[0] for row in rows),
            jobs=sum(row[1] for row in rows) / len(rows),
            completion_ms=estimate([row[2] for row in rows]),
            reduction=estimate([row[3] for row in rows]),
        )
        for least, rows in sorted(found.items())
    ]


def changes_by_user(runs: Sequence[PolicyResult], first: Sequence[PolicyResult]) -> list[UserChange]:
    """Of users with a finished job in every run, those who gain most first."""
    mine, theirs = _completions(runs), _completions(first)
    changes = [
        UserChange(
            user=user,
            jobs=sum(jobs for jobs, _ in rows) / len(rows),
            completion_ms=_mean(rows),
            reduction=_reduction(_mean(rows), _mean(theirs[user])),
        )
        for user, rows in mine.items()
        if len(rows) == len(runs) and len(theirs.get(user, ())) == len(first)
    ]
    return sorted(changes, key=lambda change: (-change.reduction, change.user))


def _completions(runs: Sequence[PolicyResult]) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for run in runs:
        for user in run.users:
            if user.finished_jobs:
                found.setdefault(user.user, []).append((user.finished_jobs, user.mean_completion_ms))
    return found


def _mean(rows: Sequence[tuple[int, float]]) -> float:
    return sum(completion_ms for _, completion_ms in rows) / len(rows)


def _reduction(completion_ms: float, reference_ms: float) -> float:
    return 1 - completion_ms / reference_ms if reference_ms else 0.0
