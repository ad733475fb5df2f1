"""What one simulated run came to, as plain values; the names are those of the report of a live replay."""

from array import array
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from fairlead_lab.metrics.report import ResourceUse, SizeClass, Spread, UserReport

UNFINISHED: Final = -1
"""In place of the completion time of a job that did not finish."""
SHORT_MS: Final = 10_000
"""Jobs that take less count as if they took that long in the bounded slowdown: D. Feitelson et al., "Theory and Practice in
Parallel Job Scheduling", 1997. With less, a job of a second that waits for an hour outweighs thousands of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Jobs that were refused for one reason."""

    reason: str
    jobs: int
    tasks: int
    example: str
    """Id of the first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSizeClass:
    """The finished jobs of so many tasks."""

    tasks_least: int
    tasks_most: int
    jobs: int
    mean_completion_ms: float
    mean_slowdown: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The run over time: means over intervals that follow one another."""

    times_ms: list[int]
    """The ends of the intervals; the first begins at 0."""
    utilization: dict[str, list[float]]
    """By resource: what running tasks hold, as a fraction of the capacity."""
    waiting: list[float]
    """Tasks that could start."""
    running: list[float]
    dominant_share: dict[str, list[float]]
    """By user, of the users with the most work."""
    others: list[float]
    """Dominant share of what all other users hold together."""
    jain: list[float | None]
    """Of the dominant shares of users who wanted more; None where fewer than two did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """One run under one policy. Times in ms, shares and utilisation as fractions; definitions in ``reporting.report``."""

    policy: str
    seed: int
    is_complete: bool
    """False if something waited that would have waited for ever, or until the end that was set."""
    jobs: int
    """Handed in, refused ones left out."""
    jobs_finished: int
    jobs_refused: int
    refused: list[Refused]
    tasks: int
    tasks_finished: int
    makespan_ms: int
    """From the first submission to the last end."""
    completion_ms: Spread
    """Of finished jobs, from submission to the end of the last task."""
    slowdown: Spread
    """Of finished jobs: completion over the completion with nothing to wait for; 1 is the best there is."""
    bounded_slowdown: Spread
    """The same where both count as ``SHORT_MS`` at least, so that the shortest jobs do not decide it."""
    wait_ms: Spread
    """Of finished tasks, from when they could have started to their start."""
    resources: dict[str, ResourceUse]
    crowded_fraction: float
    """Of all tasks' run time, the part on hosts that were promised more of some resource than they have."""
    users: list[UserReport]
    jain: float | None
    """Mean over the contended time of Jain's index of the dominant shares of those who wanted more."""
    contended_ms: int
    """How long at least two users wanted more."""
    violations: list[str]
    """Users with a longer mean completion than on an own static 1/n of the cluster."""
    clear_violations: list[str]
    """Of them, those by more than a tenth."""
    below_fraction: float | None
    """Of the contending users' time, the part with a dominant share under 1/n of the n users then present."""
    waits_by_size: list[SizeClass]
    jobs_by_size: list[JobSizeClass]
    """By number of tasks, smallest first; classes without jobs are left out."""
    decisions: int
    """Units granted."""
    events: int
    """Tasks started plus tasks ended."""
    took_s: float
    """Of real time, for the simulation alone. The one field that two runs of one seed need not share."""
    series: Series
    completions_ms: "array[int]" = field(repr=False)
    """Of each job, in the order they were given; ``UNFINISHED`` where it did not finish or was refused."""
    slowdowns: "array[float]" = field(repr=False)
    """The same; below zero where it did not finish."""
    bounded_slowdowns: "array[float]" = field(repr=False)
    """The same."""

    @property
    def utilization(self) -> dict[str, float]:
        """By resource: mean over the run of what running tasks hold, as a fraction of the capacity."""
        return {name: use.held for name, use in self.resources.items()}

    @property
    def events_per_s(self) -> float:
        """Events per second of real time."""
        return self.events / self.took_s if self.took_s else 0.0

    def as_json(self) -> dict[str, Any]:
        """Everything but the series and the jobs, as plain data that is the same for every run of one seed."""
        left_out = ("series", "completions_ms", "slowdowns", "bounded_slowdowns", "took_s")
        data = {name: value for name, value in _plain(self).items() if name not in left_out}
        data["utilization"] = self.utilization
        return data


def _plain(result: PolicyResult) -> dict[str, Any]:
    data = asdict(result)
    for user, entry in zip(result.users, data["users"], strict=True):
        entry["is_worse_than_alone"] = user.is_worse_than_alone
    return data
