"""The report of a study as one page that stands alone, for somebody who has to choose a policy."""

from collections.abc import Mapping, Sequence
from typing import Final

from fairlead_lab.metrics.measures import Best, measures
from fairlead_lab.metrics.result import PolicyResult
from fairlead_lab.study import html
from fairlead_lab.study.advice import summary
from fairlead_lab.study.certainty import how_told_apart, what_seeds_change
from fairlead_lab.study.questions import Answer, answers
from fairlead_lab.study.report_words import CHARTS, TERMS, policy_terms, setting_terms, which_seeds
from fairlead_lab.study.study import Outcome
from fairlead_lab.study.tables import refusals, size_rows, summary_rows
from fairlead_lab.study.telling_apart import rank
from fairlead_lab.study.user_tables import gains, users
from fairlead_proto.resources import ResourceKinds, Vector

_BYTES: Final = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"))


def report_page(outcome: Outcome, plots: Mapping[str, bytes], *, title: str, command: str) -> str:
    """The page as HTML.

    Args:
        outcome: Of the study.
        plots: As PNG, by the name of their table; those that are missing are left out.
        title: What was simulated.
        command: With which it can be repeated.
    """
    policies = outcome.study.policies
    known = answers(outcome)
    parts = [
        html.heading(f"{title} under {', '.join(policies)}", 1),
        *_setting(outcome),
        html.heading("Which policy?"),
        html.bullets(summary(outcome, known)),
        *_chart("completion-ratio", outcome, plots),
        _questions(outcome, known),
        html.small_print(how_told_apart(outcome, known)),
        html.heading("What the policies do, and the words of this page"),
        html.terms([*policy_terms(outcome), *TERMS]),
        html.heading("All measures"),
        _measures(outcome),
        *_charts(outcome, plots),
        *users(outcome),
        html.heading("How it was run, and how to run it again"),
        html.terms(setting_terms(outcome)),
        html.paragraph(
            "The same command gives the same numbers. The CSV files beside this page have what the charts show."
        ),
        html.code(command),
    ]
    if not plots:
        parts.insert(
            1, html.paragraph("There are no charts here, since matplotlib is not installed.", is_note=True)
        )
    return html.page(f"{title}: {', '.join(policies)}", parts)


def _setting(outcome: Outcome) -> list[str]:
    study, options = outcome.study, outcome.study.options
    workload = outcome.workloads[0]
    capacity = _amounts(workload.yardstick.survey.capacity)
    who = "each job has a share of its own" if options.is_user_per_job else f"{workload.users} users"
    of_first = (
        " under the first seed" if len({(each.jobs, each.tasks) for each in outcome.workloads}) > 1 else ""
    )
    parts = [
        html.paragraph(
            "What this workload would get on these nodes, simulated with the same code that shares out and keeps account on a live "
            f"master. {workload.jobs:,} jobs of {workload.tasks:,} tasks, {who}{of_first}, on {len(study.nodes):,} nodes with "
            f"{capacity} in all. {what_seeds_change(outcome)}"
        )
    ]
    found = refusals(outcome)
    if found:
        parts.append(html.note("Not everything was run:", found))
    return parts


def _amounts(capacity: Vector) -> str:
    """Amounts for a person: memory in the largest unit of which there is one."""
    return ", ".join(
        f"{_bytes(amount)} {name}" if name in {"mem", "disk"} else f"{amount:,g} {name}"
        for name, amount in ResourceKinds().as_units(capacity).items()
    )


def _bytes(amount: float) -> str:
    size, unit = next((each for each in _BYTES if amount >= each[0]), _BYTES[-1])
    return f"{amount / size:,.4g} {unit}"


def _questions(outcome: Outcome, known: Sequence[Answer]) -> str:
    rows, best = [], []
    has_finest = any(answer.finest for answer in known)
    for answer in known:
        numbers = [number + " †" * (place in answer.left_out) for place, number in enumerate(answer.numbers)]
        degree = "" if answer.has_interval or len(answer.numbers) < 2 else " °"
        rows.append(
            (
                f"{answer.question.text}{degree}\n{answer.meaning}",
                *numbers,
                *([answer.finest or "-"] if has_finest else []),
            )
        )
        best.append(frozenset(place + 1 for place in answer.best))
    columns = ("Question", *outcome.study.policies, *(["could tell"] if has_finest else []))
    return html.table(columns, rows, best)


def _measures(outcome: Outcome) -> str:
    policies = outcome.study.policies
    rows, best = [("jobs finished", *map(_finished, outcome.results.values()))], [frozenset[int]()]
    for measure in measures([run for runs in outcome.results.values() for run in runs]):
        found = [measure.of(runs) for runs in outcome.results.values()]
        # Nothing is promised twice but under slots.
        is_shown = measure.best is not Best.NEITHER or any(each is not None and each.mean for each in found)
        if is_shown and any(each is not None for each in found):
            ranking = rank(measure, outcome.results)
            cells = measure.write_all(found)
            rows.append(
                (
                    measure.title,
                    *(cell + " †" * (place in ranking.left_out) for place, cell in enumerate(cells)),
                )
            )
            best.append(frozenset(place + 1 for place in ranking.best))
    if len(policies) > 1:
        ratios = next(row for row in summary_rows(outcome) if row["measure"].startswith("mean completion /"))
        rows.insert(2, (f"  {ratios['measure']} (95 % interval)", *(ratios[policy] for policy in policies)))
        best.insert(2, frozenset())
    return html.table(("Measure", *policies), rows, best)


def _finished(runs: Sequence[PolicyResult]) -> str:
    if all(run.jobs_finished == run.jobs for run in runs):
        return "all"
    return " ".join(dict.fromkeys(f"{run.jobs_finished:,} of {run.jobs:,}" for run in runs))


def _chart(name: str, outcome: Outcome, plots: Mapping[str, bytes]) -> list[str]:
    if name not in plots:
        return []
    title, caption = (text.replace("FIRST", outcome.study.policies[0]) for text in CHARTS[name])
    return [html.picture(plots[name], alternative=title, caption=caption + which_seeds(name, outcome))]


def _charts(outcome: Outcome, plots: Mapping[str, bytes]) -> list[str]:
    """All but the one that stands where a policy is chosen."""
    parts = []
    for name, (title, _) in CHARTS.items():
        if name == "completion-ratio":
            continue
        if name in plots:
            parts += [html.heading(title), *_chart(name, outcome, plots)]
        if name == "reduction-by-job-size" and len(outcome.study.policies) > 1:
            parts.append(_sizes(outcome))
        if name == "better-and-worse" and len(outcome.study.policies) > 1:
            parts.append(gains(outcome))
    return parts


def _sizes(outcome: Outcome) -> str:
    policies = outcome.study.policies
    rows = [(row["measure"], *(row[policy] for policy in policies)) for row in size_rows(outcome)]
    return html.table(
        ("Tasks of the job: mean completion, and in brackets as a multiple of the first policy's", *policies),
        rows,
    )
