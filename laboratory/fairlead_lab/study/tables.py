"""A study's results as rows of text, a column a policy: what the command prints and the report shows."""

from collections.abc import Mapping, Sequence

from fairlead_lab.metrics.measures import measures, span, unit_of
from fairlead_lab.metrics.resampling import Ratio
from fairlead_lab.metrics.result import PolicyResult
from fairlead_lab.study.comparison import SizeReduction, reductions_by_size
from fairlead_lab.study.study import Outcome
from fairlead_lab.study.telling_apart import completion_ratio

Row = dict[str, str]
"""``measure`` and a cell for each policy."""


def summary_rows(outcome: Outcome) -> list[Row]:
    """How far each policy got, and all measures."""
    rows: list[Row] = [
        {"measure": "jobs finished"}
        | {policy: finished_jobs(runs) for policy, runs in outcome.results.items()}
    ]
    for measure in measures([run for runs in outcome.results.values() for run in runs]):
        found = [measure.of(runs) for runs in outcome.results.values()]
        if any(each is not None and each.mean for each in found) or measure.name == "violations":
            cells = dict(zip(outcome.results, measure.write_all(found), strict=True))
            rows.append({"measure": measure.title} | cells)
    if len(outcome.study.policies) > 1:
        rows.append(_ratio_row(outcome))
    return rows


def finished_jobs(runs: Sequence[PolicyResult]) -> str:
    """How many jobs finished, of how many: of each run where that is the same, else of all together."""
    counts = {(run.jobs_finished, run.jobs) for run in runs}
    if len(counts) == 1:
        return "{} of {}".format(*counts.pop())
    return f"{sum(run.jobs_finished for run in runs)} of {sum(run.jobs for run in runs)} in {len(runs)} runs"


def _ratio_row(outcome: Outcome) -> Row:
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
        for run in runs:
            if not run.is_complete:
                left = f"{run.jobs - run.jobs_finished} of {run.jobs} jobs"
                found.setdefault(left, {}).setdefault(policy, []).append(run.seed)
    return [
        f"cut short: under {', '.join(policy + _of_seeds(told, outcome) for policy, told in seeds.items())} {left} were not done "
        "at the end"
        for left, seeds in found.items()
    ]


def _of_seeds(told: Sequence[int], outcome: Outcome) -> str:
    """Of which seeds something is so; empty if it is of all."""
    of_seeds = dict.fromkeys(map(str, told))
    return "" if len(of_seeds) == len(outcome.study.seeds) else f" (seed {', '.join(of_seeds)})"
