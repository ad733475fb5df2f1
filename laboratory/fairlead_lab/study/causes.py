"""Where the waiting of a run comes from, as far as its numbers say."""

from collections.abc import Sequence
from typing import Final

from fairlead_lab.metrics.result import UNFINISHED, PolicyResult
from fairlead_lab.study.study import Outcome

_MOST: Final = 0.8
"""Of all waiting: a class of tasks that makes as much is where it comes from."""
_FULL: Final = 0.8
"""Of the resource held most, on average: a cluster that holds less has room, if not where a large task needs it."""


def where_waiting_comes_from(outcome: Outcome) -> list[str]:
    """One line of the first policy's waits, means over its seeds; nothing if nobody waited."""
    policy = outcome.study.policies[0]
    runs = outcome.results[policy]
    never = [part for run in runs if (part := _never_wait(run)) is not None]
    largest = [parts for run in runs if (parts := _largest(run)) is not None]
    if not never or not largest:
        return []
    waits, tasks = _mean([each[0] for each in largest]), _mean([each[1] for each in largest])
    use = {
        name: _mean([run.resources[name].held_until_last_arrival for run in runs])
        for name in runs[0].resources
        if all(name in run.resources for run in runs)
    }
    busiest = max(use, key=lambda name: use[name])
    classes = runs[0].waits_by_size
    above = f"more than {100 * classes[-2].largest_size:.3g} %" if len(classes) > 1 else "up to all"
    line = (
        f"Where waiting comes from, under {policy}: {_percent(_mean(never))} of the jobs take no longer than with nothing to wait for. "
        f"{_percent(waits)} of all waiting is that of the {_percent(tasks)} of tasks that want {above} of the largest node, "
        f"while {busiest}, of which most is held, is held to {_percent(use[busiest])} on average until the last job arrives."
    )
    if waits >= _MOST and waits > 2 * tasks and use[busiest] < _FULL:
        line += " So what waits here is mostly large tasks that need much of one node, on a cluster that is not full on average."
    gangs = outcome.workloads[0].yardstick.survey.gangs
    if gangs:
        line += f" {gangs:,} jobs are gangs, which need room for all their tasks at once."
    return [line]


def _never_wait(run: PolicyResult) -> float | None:
    """The part of the finished jobs that are done as soon as they could be."""
    finished = [factor for factor in run.slowdowns if factor != UNFINISHED]
    return sum(factor <= 1 for factor in finished) / len(finished) if finished else None


def _largest(run: PolicyResult) -> tuple[float, float] | None:
    """Of the largest class of tasks: its parts of all waiting and of all tasks."""
    waited = [each.wait.mean * each.wait.count for each in run.waits_by_size]
    tasks = sum(each.wait.count for each in run.waits_by_size)
    if not sum(waited):
        return None
    return waited[-1] / sum(waited), run.waits_by_size[-1].wait.count / tasks


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"
