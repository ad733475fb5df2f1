"""The numbers behind each plot, as tables with a header: what the CSV files hold and what the charts draw."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead_lab.metrics.measures import listed_measures
from fairlead_lab.metrics.result import UNFINISHED, PolicyResult, Series
from fairlead_lab.metrics.statistics import mean
from fairlead_lab.study.comparison import changes_by_user, completion_ratio, reductions_by_size
from fairlead_lab.study.study import Outcome

Cell = str | int | float | None
Rows = Iterator[tuple[Cell, ...]]

INTERVALS_MAX: Final = 240
"""Of a curve over time: what a plot of this width can show."""
STEPS: Final = 200
"""Of a distribution function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """One table."""

    name: str
    """Of the CSV file, and of the plot if there is one."""
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]

    def of(self, policy: str) -> list[tuple[Cell, ...]]:
        """The rows of a policy, which is their first cell, without it."""
        return [row[1:] for row in self.rows if row[0] == policy]


def all_data(outcome: Outcome) -> dict[str, Data]:
    """Every table by name. Curves over time are of the first seed; distributions are of the jobs of all seeds; the rest are means."""
    return {
        name: Data(name=name, columns=("policy", *columns.split()), rows=list(rows(outcome)))
        for name, (columns, rows) in _TABLES.items()
    }


def _summary(outcome: Outcome) -> Rows:
    for policy, runs in outcome.results.items():
        for measure in listed_measures(runs):
            found = measure.of(runs)
            if found is not None:
                yield policy, measure.name, found.mean, found.half_width


def _utilization(outcome: Outcome) -> Rows:
    for policy, (run, *_) in outcome.results.items():
        for resource, values in run.series.utilization.items():
            yield from ((policy, resource, *point) for point in _coarse(run.series, values))


def _shares(outcome: Outcome) -> Rows:
    for policy, (run, *_) in outcome.results.items():
        users = run.series.dominant_share | {"all others": run.series.others}
        for user, values in users.items():
            yield from ((policy, user, *point) for point in _coarse(run.series, values))


def _queue(outcome: Outcome) -> Rows:
    for policy, (run, *_) in outcome.results.items():
        waiting = _coarse(run.series, run.series.waiting)
        running = _coarse(run.series, run.series.running)
        for (time_s, tasks), (_, others) in zip(waiting, running, strict=True):
            yield policy, time_s, tasks, others


def _coarse(series: Series, values: Sequence[float]) -> list[tuple[float, float]]:
    """Ends of at most ``INTERVALS_MAX`` intervals in s, and the mean within each."""
    step = -(-len(values) // INTERVALS_MAX)
    starts_ms = [0, *series.times_ms]
    points = []
    for first in range(0, len(values), step):
        last = min(first + step, len(values))
        weights = [starts_ms[place + 1] - starts_ms[place] for place in range(first, last)]
        total = sum(value * weight for value, weight in zip(values[first:last], weights, strict=True))
        points.append((starts_ms[last] / 1000, total / sum(weights) if sum(weights) else 0.0))
    return points


def _distribution(
    pick: Callable[[PolicyResult], Sequence[float]], unit: int = 1
) -> Callable[[Outcome], Rows]:
    """The fraction of jobs at or below a value, of the jobs that finished."""

    def rows(outcome: Outcome) -> Rows:
        for policy, runs in outcome.results.items():
            values = sorted(value / unit for run in runs for value in pick(run) if value != UNFINISHED)
            shown = dict.fromkeys(values[rank - 1] for rank in _ranks(len(values)))
            yield from ((policy, value, bisect_right(values, value) / len(values)) for value in shown)

    return rows


def _ranks(count: int) -> list[int]:
    """Evenly apart from 1 to the count, and as many again in the last hundredth, in which the unlucky are."""
    ranks = {round(count * step / STEPS) for step in range(STEPS + 1)}
    ranks |= {count - round(count * step / STEPS / 100) for step in range(STEPS)}
    return sorted(max(1, rank) for rank in ranks) if count else []


def _sizes(outcome: Outcome) -> Rows:
    for policy, runs in outcome.results.items():
        for each in reductions_by_size(runs, _first(outcome)):
            yield (
                policy, each.tasks_least, each.tasks_most, each.jobs, each.completion_ms.mean / 1000,
                each.reduction.mean, each.reduction.half_width,
            )  # fmt: skip


def _waits(outcome: Outcome) -> Rows:
    for policy, runs in outcome.results.items():
        shown = runs if are_waits_of_all_seeds(outcome) else runs[:1]
        for classes in zip(*(run.waits_by_size for run in shown), strict=True):
            waits = [each.wait for each in classes]
            tasks = round(mean([wait.count for wait in waits]))
            yield (
                policy, classes[0].largest_size, tasks,
                *(mean([getattr(wait, name) for wait in waits]) / 1000 for name in ("mean", "p50", "p95", "p99")),
            )  # fmt: skip


def are_waits_of_all_seeds(outcome: Outcome) -> bool:
    """Whether all seeds have the same classes of demand size, so that there are means; if not, waits by size are of the first."""
    return all(
        len({tuple(each.largest_size for each in run.waits_by_size) for run in runs}) == 1
        for runs in outcome.results.values()
    )


def _first(outcome: Outcome) -> Sequence[PolicyResult]:
    """The runs of the policy that others are compared with."""
    return outcome.results[outcome.study.policies[0]]


def _users(outcome: Outcome) -> Rows:
    for policy, runs in outcome.results.items():
        for run in runs:
            for user in run.users:
                alone_ms = user.alone_completion_ms
                yield (
                    policy, run.seed, user.user, user.jobs, user.tasks, user.finished_jobs,
                    user.mean_completion_ms / 1000, user.mean_slowdown, user.mean_wait_ms / 1000, user.mean_share,
                    user.below_fraction, None if alone_ms is None else alone_ms / 1000,
                )  # fmt: skip


def _changes(outcome: Outcome) -> Rows:
    for policy in outcome.study.policies[1:]:
        for each in changes_by_user(outcome.results[policy], _first(outcome)):
            yield policy, each.user, each.jobs, each.completion_ms / 1000, each.reduction


def _ratios(outcome: Outcome) -> Rows:
    for policy in outcome.study.policies[1:]:
        ratio = completion_ratio(outcome.results[policy], _first(outcome))
        if ratio is not None:
            yield policy, ratio.value, ratio.low, ratio.high


_TABLES: Final[Mapping[str, tuple[str, Callable[[Outcome], Rows]]]] = {
    "summary": ("measure mean half_width", _summary),
    "utilization": ("resource time_s utilization", _utilization),
    "dominant-shares": ("user time_s dominant_share", _shares),
    "queue": ("time_s waiting running", _queue),
    "completion": ("completion_s fraction_of_jobs", _distribution(lambda run: run.completions_ms, 1000)),
    "slowdown": ("slowdown fraction_of_jobs", _distribution(lambda run: run.slowdowns)),
    "bounded-slowdown": (
        "bounded_slowdown fraction_of_jobs",
        _distribution(lambda run: run.bounded_slowdowns),
    ),
    "reduction-by-job-size": ("tasks_least tasks_most jobs mean_completion_s reduction half_width", _sizes),
    "wait-by-demand-size": ("largest_size tasks mean_wait_s p50_wait_s p95_wait_s p99_wait_s", _waits),
    "users": (
        (
            "seed user jobs tasks finished_jobs mean_completion_s mean_slowdown mean_wait_s mean_dominant_share "
            "below_fraction alone_completion_s"
        ),
        _users,
    ),
    "better-and-worse": ("user jobs mean_completion_s reduction", _changes),
    "completion-ratio": ("ratio low high", _ratios),
}
"""By name: the columns after that of the policy, and what makes the rows."""
