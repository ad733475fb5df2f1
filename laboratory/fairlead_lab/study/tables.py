"""A study's results as rows of text, a column a policy: what the command prints and the page shows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from fairlead_lab.metrics.measures import span, unit_of
from fairlead_lab.metrics.result import PolicyResult, UserReport
from fairlead_lab.metrics.statistics import Ratio, estimate, estimate_if_all, mean
from fairlead_lab.study.comparison import (
    NOTICEABLE,
    SizeReduction,
    changes_by_user,
    completion_ratio,
    mean_completion_ms,
    measured,
    reductions_by_size,
    users_of,
)
from fairlead_lab.study.study import Outcome

Row = dict[str, str]
"""``measure`` and a cell for each policy."""


def summary_rows(outcome: Outcome) -> list[Row]:
    """How far each policy got, and all measures."""
    rows: list[Row] = [
        {"measure": "jobs finished"}
        | {policy: finished_jobs(runs) for policy, runs in outcome.results.items()}
    ]
    for measure, found in measured(outcome.results):
        if any(each is not None and each.mean for each in found) or measure.name == "violations":
            cells = dict(zip(outcome.results, measure.write_all(found), strict=True))
            rows.append({"measure": measure.title} | cells)
    if len(outcome.study.policies) > 1:
        rows.append(ratio_row(outcome))
    return rows


def finished_jobs(runs: Sequence[PolicyResult]) -> str:
    """How many jobs finished, of how many: of each run where that is the same, else of all together."""
    counts = {(run.jobs_finished, run.jobs) for run in runs}
    if len(counts) == 1:
        return "{} of {}".format(*counts.pop())
    return f"{sum(run.jobs_finished for run in runs)} of {sum(run.jobs for run in runs)} in {len(runs)} runs"


def ratio_row(outcome: Outcome) -> Row:
    """Mean completions as parts of the first policy's, with 95 % intervals."""
    reference, *others = outcome.study.policies
    first = outcome.results[reference]
    return {"measure": f"mean completion / {reference}'s", reference: "1"} | {
        policy: write_ratio(completion_ratio(outcome.results[policy], first)) for policy in others
    }


def write_ratio(ratio: Ratio | None) -> str:
    """A ratio and, in brackets, its interval."""
    if ratio is None:
        return "-"
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.2f}"
    return f"{ratio.value:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"


def size_rows(outcome: Outcome) -> list[Row]:
    """Mean completion by number of tasks of a job, and as a multiple of that under the first policy."""
    first = outcome.results[outcome.study.policies[0]]
    classes: dict[int, dict[str, SizeReduction]] = {}
    for policy, runs in outcome.results.items():
        for each in reductions_by_size(runs, first):
            classes.setdefault(each.tasks_least, {})[policy] = each
    return [_size_row(outcome.study.policies, found) for _, found in sorted(classes.items())]


def _size_row(policies: Sequence[str], found: Mapping[str, SizeReduction]) -> Row:
    unit_ms = unit_of([each.completion_ms.mean for each in found.values()])
    least = next(iter(found.values())).tasks_least
    jobs = max(each.jobs for each in found.values())
    size = size_name(least, max(each.tasks_most for each in found.values()))
    row = {"measure": f"{size} ({jobs:,.0f} {'job' if jobs == 1 else 'jobs'})"}
    for policy in policies:
        each = found.get(policy)
        row[policy] = "-" if each is None else span(each.completion_ms.mean, unit_ms)
        if each is not None and policy != policies[0]:
            half_width = each.reduction.half_width or 0.0
            interval = f" ± {half_width:.2f}" if half_width >= 0.005 else ""
            row[policy] += f" ({1 - each.reduction.mean:.2f}{interval} ×)"
    return row


def size_name(least: int, most: int) -> str:
    """A class of numbers of tasks."""
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"


def refusals(outcome: Outcome) -> list[str]:
    """What was not run and why, one line each; what is the same under every seed, or under several policies, is said once."""
    remarks = [remark for workload in outcome.workloads for remark in workload.remarks]
    return [*dict.fromkeys(remarks), *_refused(outcome), *_cut_short(outcome)]


def _refused(outcome: Outcome) -> list[str]:
    seeds: dict[str, list[int]] = {}
    for run in (run for runs in outcome.results.values() for run in runs):
        for each in run.refused:
            jobs = "1 job," if each.jobs == 1 else f"{each.jobs} jobs, the first of them"
            seeds.setdefault(f"{jobs} {each.example}: {each.reason}", []).append(run.seed)
    return [f"refused{_of_seeds(told, outcome)}: {what}" for what, told in seeds.items()]


def _cut_short(outcome: Outcome) -> list[str]:
    found: dict[str, dict[str, list[int]]] = {}
    for policy, runs in outcome.results.items():
        for workload, run in zip(outcome.workloads, runs, strict=True):
            if not run.is_complete:
                left = f"{run.jobs - run.jobs_finished} of {run.jobs} jobs were not done at the end"
                if later := workload.jobs - run.jobs - run.jobs_refused:
                    left += f", and {later} come later"
                found.setdefault(left, {}).setdefault(policy, []).append(run.seed)
    lines = [
        f"cut short: under {', '.join(policy + _of_seeds(told, outcome) for policy, told in seeds.items())} {left}"
        for left, seeds in found.items()
    ]
    return (
        [*lines, "means above are of jobs that were done, and look too good where some were not"]
        if lines
        else []
    )


def _of_seeds(told: Sequence[int], outcome: Outcome) -> str:
    """Of which seeds something is so; empty if it is of all."""
    of_seeds = dict.fromkeys(map(str, told))
    return "" if len(of_seeds) == len(outcome.study.seeds) else f" (seed {', '.join(of_seeds)})"


USERS_SHOWN_MAX: Final = 40
"""Those with the most work, beside those who are clearly worse off than alone; the CSV has them all."""
NOTICEABLE_OF_USER: Final = 0.01
"""A difference of less is none to a person, however sure."""

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Columns and rows."""


def gains(outcome: Outcome) -> Table:
    """How many users are done sooner and later than under the first policy, and who most of all."""
    policies = outcome.study.policies
    first = outcome.results[policies[0]]
    rows = []
    for policy in policies[1:]:
        changes = changes_by_user(outcome.results[policy], first)
        better = [change for change in changes if change.reduction > NOTICEABLE]
        worse = [change for change in changes if change.reduction < -NOTICEABLE]
        rows.append(
            (
                policy, str(len(better)), _named([change.user for change in better]),
                str(len(worse)), _named([change.user for change in reversed(worse)]),
            )
        )  # fmt: skip
    columns = (f"Beside {policies[0]}", "users done sooner", "most of all", "users done later", "most of all")
    return columns, rows


def _named(users: Sequence[str]) -> str:
    return ", ".join(users[:3]) if users else "-"


def users(outcome: Outcome) -> Table:
    """Each user's mean completion under each policy, means over the seeds; what seeds tell from the first policy is marked."""
    results = outcome.results.values()
    known = [users_of(runs) for runs in results]
    worse = [
        Counter(user.user for run in runs for user in run.users if user.is_clearly_worse_than_alone)
        for runs in results
    ]
    order = outcome.workloads[0].yardstick.survey.users
    shown = [
        name
        for place, name in enumerate(order)
        if place < USERS_SHOWN_MAX or any(name in times for times in worse)
    ]
    rows = [
        _row(name, [found.get(name, []) for found in known], [times[name] for times in worse])
        for name in shown
        if any(name in found for found in known)
    ]
    return ("User", "Jobs", "Tasks", "Alone", *outcome.study.policies), rows


def _row(name: str, known: Sequence[Sequence[UserReport]], worse: Sequence[int]) -> tuple[str, ...]:
    """One user, who finished jobs under all seeds of some policy: what became of him, and in how many runs he was worse off."""
    first = next(found for found in known if found)
    unit_ms = unit_of([mean_completion_ms(found) for found in known if found])
    alone = estimate_if_all([user.alone_completion_ms for user in first])
    cells = [
        span(mean_completion_ms(found), unit_ms) + _flag(times, len(found)) + _beside(found, known[0])
        if found
        else "-"
        for found, times in zip(known, worse, strict=True)
    ]
    jobs, tasks = mean([user.jobs for user in first]), mean([user.tasks for user in first])
    return name, f"{jobs:,.0f}", f"{tasks:,.0f}", "never" if alone is None else span(alone.mean), *cells


def _flag(times_worse: int, runs: int) -> str:
    if not times_worse:
        return ""
    return " !" if times_worse == runs else f" ! {times_worse}/{runs}"


def _beside(found: Sequence[UserReport], first: Sequence[UserReport]) -> str:
    """An arrow down where the user is done sooner than under the first policy, up where later, if seeds tell."""
    if len(found) < 2 or len(first) != len(found):
        return ""
    difference = estimate(
        [mine.mean_completion_ms - other.mean_completion_ms for mine, other in zip(found, first, strict=True)]
    )
    least_ms = NOTICEABLE_OF_USER * mean_completion_ms(first)
    if abs(difference.mean) <= max(difference.half_width or 0.0, least_ms):
        return ""
    return " ↓" if difference.mean < 0 else " ↑"
