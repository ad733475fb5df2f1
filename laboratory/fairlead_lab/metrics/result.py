"""What one simulated run came to, as plain values; the names are those of the report of a live replay."""

from array import array
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from fairlead_lab.metrics.statistics import Spread

UNFINISHED: Final = -1
"""In place of the completion time of a job that did not finish."""
SHORT_MS: Final = 10_000
"""Jobs that take less count as if they took that long in the bounded slowdown: D. Feitelson et al., "Theory and Practice in
Parallel Job Scheduling", 1997. With less, a job of a second that waits for an hour outweighs thousands of others."""
INCENTIVE_TOLERANCE: Final = 0.1
INCENTIVE_ALLOWANCE_MS: Final = 100
"""The slice a user is compared with launches for free and never fragments. A launch takes 3 to 20 ms on a small host, and a
job has a few one after another; below a tenth more, one cannot tell the policy from the yardstick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUse:
    """One resource over the run, as fractions of the cluster's capacity."""

    held: float
    """Time-weighted mean of what running tasks asked for, from the first submission to the last end."""
    held_until_last_arrival: float
    """The same up to the last job's submission: without the tail in which work runs out."""
    over: float
    """The part of ``held`` that exceeds what its agents have: promised twice, which only slots do."""
    over_until_last_arrival: float
    """The part of ``held_until_last_arrival`` that does."""
    allocated: float | None
    """Mean over the master's samples of offered or held; None without samples."""
    used: float | None
    """Mean over the master's samples of what the hosts measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserReport:
    """One user in the run."""

    user: str
    jobs: int
    tasks: int
    finished_jobs: int
    mean_completion_ms: float
    """Of his finished jobs."""
    mean_slowdown: float
    mean_wait_ms: float
    """Of his finished tasks, from submission to the start of the process."""
    mean_share: float
    """Mean dominant share while he had work submitted and not over."""
    contending_ms: int
    """How long he wanted more while somebody else did too."""
    below_fraction: float
    """Fraction of that time with a dominant share under 1/n of the n users then present."""
    alone_completion_ms: float | None
    """Mean completion on an own static 1/n of the cluster, n all users; None if a task is larger than that."""

    @property
    def is_worse_than_alone(self) -> bool:
        """Whether the mean completion was above that of the static slice: a violation of the sharing incentive."""
        return self.alone_completion_ms is not None and self.mean_completion_ms > self.alone_completion_ms

    @property
    def is_clearly_worse_than_alone(self) -> bool:
        """The same by more than ``INCENTIVE_TOLERANCE`` and ``INCENTIVE_ALLOWANCE_MS``, which launches explain."""
        return (
            self.alone_completion_ms is not None
            and self.mean_completion_ms
            > self.alone_completion_ms * (1 + INCENTIVE_TOLERANCE) + INCENTIVE_ALLOWANCE_MS
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeClass:
    """Waits of the tasks of one quartile of demand size."""

    largest_size: float
    """Upper end of the quartile: a task's largest share of the largest agent, of any resource."""
    wait: Spread
    """In ms."""


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
    """One run under one policy. Times in ms, shares and utilisation as fractions."""

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
    def largest_wait_ms(self) -> float | None:
        """Mean wait of the tasks of the largest class of demand size; None if there are none."""
        return self.waits_by_size[-1].wait.mean if self.waits_by_size else None

    @property
    def used_until_last_arrival(self) -> float | None:
        """Of the resource that is held most until the last arrival, without what is promised twice; None of no resource."""
        uses = self.resources.values()
        return max((use.held_until_last_arrival - use.over_until_last_arrival for use in uses), default=None)

    @property
    def events_per_s(self) -> float:
        """Events per second of real time."""
        return self.events / self.took_s if self.took_s else 0.0

    def as_json(self) -> dict[str, Any]:
        """Everything but the series and the jobs, as plain data that is the same for every run of one seed."""
        left_out = ("series", "completions_ms", "slowdowns", "bounded_slowdowns", "took_s")
        data = {name: value for name, value in asdict(self).items() if name not in left_out}
        for user, entry in zip(self.users, data["users"], strict=True):
            entry["is_worse_than_alone"] = user.is_worse_than_alone
        data["utilization"] = self.utilization
        return data
