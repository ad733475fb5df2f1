"""A study's results as rows of text, a column a policy: what the command prints and the report shows."""

from collections.abc import Mapping, Sequence

from fairlead_sim.simulating.comparison import SizeReduction, reductions_by_size
from fairlead_sim.simulating.measures import measures, span, unit_of
from fairlead_sim.simulating.resampling import ratio_of_means
from fairlead_sim.simulating.result import PolicyResult
from fairlead_sim.simulating.study import Outcome

Row = dict[str, str]
"""``measure`` and a cell for each policy."""


def summary_rows(outcome: Outcome) -> list[Row]:
    """How far each policy got, and all measures."""
    rows: list[Row] = [
        {"measure": "jobs finished"}
        | {
            policy: " ".join(dict.fromkeys(f"{run.jobs_finished} of {run.jobs}" for run in runs))
            for policy, runs in outcome.results.items()
        }
    ]
    for measure in measures([run for runs in outcome.results.values() for run in runs]):
        found = [measure.of(runs) for runs in outcome.results.values()]
        if any(each is not None and each.mean for each in found) or measure.name == "violations":
            cells = dict(zip(outcome.results, measure.write_all(found), strict=True))
            rows.append({"measure": measure.title} | cells)
    if len(outcome.study.seeds) == 1 and len(outcome.study.policies) > 1:
        rows.append(_ratio_row(outcome))
    return rows


def _ratio_row(outcome: Outcome) -> Row:
    """Mean completions as parts of the first policy's; of one run, whose jobs are drawn again for an interval."""
    reference, *others = outcome.study.policies
    first = outcome.results[reference][0]
    return {"measure": f"mean completion / {reference}'s", reference: "1"} | {
        policy: _ratio(outcome.results[policy][0], first) for policy in others
    }


def _ratio(run: PolicyResult, first: PolicyResult) -> str:
    ratio = ratio_of_means(run.completions_ms, first.completions_ms)
    if ratio is None:
        return "-"
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.2f}"
    return f"{ratio.value:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"


def size_rows(outcome: Outcome) -> list[Row]:
    """Mean completion by number of tasks of a job, and how much shorter it is than under the first policy."""
    first = outcome.results[outcome.study.policies[0]]
    classes: dict[int, dict[str, SizeReduction]] = {}
    for policy, runs in outcome.results.items():
        for each in reductions_by_size(runs, first):
            classes.setdefault(each.tasks_least, {})[policy] = each
    return [_size_row(outcome.study.policies, found) for _, found in sorted(classes.items())]


def _size_row(policies: Sequence[str], found: Mapping[str, SizeReduction]) -> Row:
    unit_ms = unit_of([each.completion_ms.mean for each in found.values()])
    least = next(iter(found.values())).tasks_least
    row = {"measure": size_name(least, max(each.tasks_most for each in found.values()))}
    for policy in policies:
        each = found.get(policy)
        row[policy] = "-" if each is None else span(each.completion_ms.mean, unit_ms)
        if each is not None and policy != policies[0]:
            row[policy] += f" ({100 * each.reduction.mean:+.0f} %)"
    return row


def size_name(least: int, most: int) -> str:
    """A class of numbers of tasks."""
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"


def refusals(outcome: Outcome) -> list[str]:
    """What was not run and why, one line each; the same under every policy, so said once for each seed."""
    lines = dict.fromkeys(remark for workload in outcome.workloads for remark in workload.remarks)
    for runs in outcome.results.values():
        for run in runs:
            seed = f" (seed {run.seed})" if len(runs) > 1 else ""
            for each in run.refused:
                jobs = "1 job" if each.jobs == 1 else f"{each.jobs} jobs, the first of them"
                lines[f"refused{seed}: {jobs} {each.example}: {each.reason}"] = None
            if not run.is_complete:
                left = run.jobs - run.jobs_finished
                lines[
                    f"cut short{seed}: under {run.policy} {left} of {run.jobs} jobs were not done at the end"
                ] = None
    return list(lines)
