"""A study's results as rows of text, a column a policy: what the command prints and the report shows."""

from fairlead_sim.simulating.comparison import reductions_by_size
from fairlead_sim.simulating.measures import measures, span
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
        found = {policy: measure.of(runs) for policy, runs in outcome.results.items()}
        if any(each is not None and each.mean for each in found.values()) or measure.name == "violations":
            rows.append(
                {"measure": measure.title}
                | {policy: measure.write_estimate(each) for policy, each in found.items()}
            )
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
    rows: dict[int, Row] = {}
    first = outcome.results[outcome.study.policies[0]]
    for policy, runs in outcome.results.items():
        for each in reductions_by_size(runs, first):
            row = rows.setdefault(each.tasks_least, {"measure": size_name(each.tasks_least, each.tasks_most)})
            row[policy] = span(each.completion_ms.mean)
            if runs is not first:
                row[policy] += f" ({100 * each.reduction.mean:+.0f} %)"
    for row in rows.values():
        for policy in outcome.study.policies:
            row.setdefault(policy, "-")
    return [row for _, row in sorted(rows.items())]


def size_name(least: int, most: int) -> str:
    """A class of numbers of tasks."""
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"


def refusals(outcome: Outcome) -> list[str]:
    """What was not run and why, one line each; the same under every policy, so said once for each seed."""
    lines: dict[str, None] = {}
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
