"""The numbers behind each plot, as tables with a header: what the CSV files hold and what the charts draw."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead_lab.metrics.measures import measures
from fairlead_lab.metrics.result import UNFINISHED, PolicyResult, Series
from fairlead_lab.study.comparison import changes_by_user, reductions_by_size
from fairlead_lab.study.study import Outcome
from fairlead_lab.study.telling_apart import completion_ratio

Cell = str | int | float | None

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
    tables = (
        _summary(outcome), _utilization(outcome), _shares(outcome), _queue(outcome),
        _distribution("completion", "completion_s", outcome, _completions_s),
        _distribution("slowdown", "slowdown", outcome, _slowdowns),
        _distribution("bounded-slowdown", "bounded_slowdown", outcome, _bounded_slowdowns),
        _sizes(outcome), _waits(outcome), _users(outcome), _changes(outcome), _ratios(outcome),
    )  # fmt: skip
    return {table.name: table for table in tables}


def _summary(outcome: Outcome) -> Data:
    rows: list[tuple[Cell, ...]] = []
    for policy, runs in outcome.results.items():
        for measure in measures(runs):
            found = measure.of(runs)
            if found is not None:
                rows.append((policy, measure.name, found.mean, found.half_width))
    return Data(name="summary", columns=("policy", "measure", "mean", "half_width"), rows=rows)


def _firsts(outcome: Outcome) -> Iterator[tuple[str, PolicyResult]]:
    for policy, runs in outcome.results.items():
        yield policy, runs[0]


def _utilization(outcome: Outcome) -> Data:
    rows: list[tuple[Cell, ...]] = []
    for policy, run in _firsts(outcome):
        for resource, values in run.series.utilization.items():
            rows += [(policy, resource, *point) for point in _coarse(run.series, values)]
    return Data(name="utilization", columns=("policy", "resource", "time_s", "utilization"), rows=rows)


def _shares(outcome: Outcome) -> Data:
    rows: list[tuple[Cell, ...]] = []
    for policy, run in _firsts(outcome):
        users = run.series.dominant_share | {"all others": run.series.others}
        for user, values in users.items():
            rows += [(policy, user, *point) for point in _coarse(run.series, values)]
    return Data(name="dominant-shares", columns=("policy", "user", "time_s", "dominant_share"), rows=rows)


def _queue(outcome: Outcome) -> Data:
    rows: list[tuple[Cell, ...]] = []
    for policy, run in _firsts(outcome):
        waiting = _coarse(run.series, run.series.waiting)
        running = _coarse(run.series, run.series.running)
        rows += [
            (policy, time_s, tasks, others)
            for (time_s, tasks), (_, others) in zip(waiting, running, strict=True)
        ]
    return Data(name="queue", columns=("policy", "time_s", "waiting", "running"), rows=rows)


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


def _completions_s(run: PolicyResult) -> list[float]:
    return [value / 1000 for value in run.completions_ms if value != UNFINISHED]


def _slowdowns(run: PolicyResult) -> list[float]:
    return [value for value in run.slowdowns if value != UNFINISHED]


def _bounded_slowdowns(run: PolicyResult) -> list[float]:
    return [value for value in run.bounded_slowdowns if value != UNFINISHED]


def _distribution(
    name: str, column: str, outcome: Outcome, pick: Callable[[PolicyResult], list[float]]
) -> Data:
    """The fraction of jobs at or below a value."""
    rows: list[tuple[Cell, ...]] = []
    for policy, runs in outcome.results.items():
        values = sorted(value for run in runs for value in pick(run))
        shown = dict.fromkeys(values[rank - 1] for rank in _ranks(len(values)))
        rows += [(policy, value, bisect_right(values, value) / len(values)) for value in shown]
    return Data(name=name, columns=("policy", column, "fraction_of_jobs"), rows=rows)


def _ranks(count: int) -> list[int]:
    """Evenly apart from 1 to the count, and as many again in the last hundredth, in which the unlucky are."""
    ranks = {round(count * step / STEPS) for step in range(STEPS + 1)}
    ranks |= {count - round(count * step / STEPS / 100) for step in range(STEPS)}
    return sorted(max(1, rank) for rank in ranks) if count else []


def _sizes(outcome: Outcome) -> Data:
    first = outcome.results[outcome.study.policies[0]]
    rows: list[tuple[Cell, ...]] = [
        (
            policy, each.tasks_least, each.tasks_most, each.jobs, each.completion_ms.mean / 1000,
            each.reduction.mean, each.reduction.half_width,
        )
        for policy, runs in outcome.results.items()
        for each in reductions_by_size(runs, first)
    ]  # fmt: skip
    return Data(
        name="reduction-by-job-size",
        columns=(
            "policy", "tasks_least", "tasks_most", "jobs", "mean_completion_s", "reduction", "half_width",
        ),
        rows=rows,
    )  # fmt: skip


def _waits(outcome: Outcome) -> Data:
    rows: list[tuple[Cell, ...]] = []
    for policy, runs in outcome.results.items():
        shown = runs if are_waits_of_all_seeds(outcome) else runs[:1]
        for classes in zip(*(run.waits_by_size for run in shown), strict=True):
            waits = [each.wait for each in classes]
            rows.append(
                (
                    policy, classes[0].largest_size, round(_mean([wait.count for wait in waits])),
                    *(
                        _mean([getattr(wait, name) for wait in waits]) / 1000
                        for name in ("mean", "p50", "p95", "p99")
                    ),
                )
            )  # fmt: skip
    return Data(
        name="wait-by-demand-size",
        columns=(
            "policy", "largest_size", "tasks", "mean_wait_s", "p50_wait_s", "p95_wait_s", "p99_wait_s",
        ),
        rows=rows,
    )  # fmt: skip


def are_waits_of_all_seeds(outcome: Outcome) -> bool:
    """Whether all seeds have the same classes of demand size, so that there are means; if not, waits by size are of the first."""
    return all(
        len({tuple(each.largest_size for each in run.waits_by_size) for run in runs}) == 1
        for runs in outcome.results.values()
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _users(outcome: Outcome) -> Data:
    rows: list[tuple[Cell, ...]] = [
        (
            policy, run.seed, user.user, user.jobs, user.tasks, user.finished_jobs,
            user.mean_completion_ms / 1000, user.mean_slowdown, user.mean_wait_ms / 1000, user.mean_share,
            user.below_fraction,
            None if user.alone_completion_ms is None else user.alone_completion_ms / 1000,
        )
        for policy, runs in outcome.results.items()
        for run in runs
        for user in run.users
    ]  # fmt: skip
    return Data(
        name="users",
        columns=(
            "policy", "seed", "user", "jobs", "tasks", "finished_jobs", "mean_completion_s", "mean_slowdown",
            "mean_wait_s", "mean_dominant_share", "below_fraction", "alone_completion_s",
        ),
        rows=rows,
    )  # fmt: skip


def _changes(outcome: Outcome) -> Data:
    first = outcome.results[outcome.study.policies[0]]
    rows: list[tuple[Cell, ...]] = [
        (policy, each.user, each.jobs, each.completion_ms / 1000, each.reduction)
        for policy, runs in outcome.results.items()
        if runs is not first
        for each in changes_by_user(runs, first)
    ]
    return Data(
        name="better-and-worse",
        columns=("policy", "user", "jobs", "mean_completion_s", "reduction"),
        rows=rows,
    )


def _ratios(outcome: Outcome) -> Data:
    first = outcome.results[outcome.study.policies[0]]
    rows: list[tuple[Cell, ...]] = []
    for policy, runs in outcome.results.items():
        ratio = None if runs is first else completion_ratio(runs, first)
        if ratio is not None:
            rows.append((policy, ratio.value, ratio.low, ratio.high))
    return Data(name="completion-ratio", columns=("policy", "ratio", "low", "high"), rows=rows)
