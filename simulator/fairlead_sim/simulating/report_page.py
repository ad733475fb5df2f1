"""The report of a study as one page that stands alone, for somebody who has to choose a policy."""

from collections.abc import Mapping, Sequence
from typing import Final

from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_sim.simulating import html
from fairlead_sim.simulating.advice import Answer, answers, summary
from fairlead_sim.simulating.comparison import NOTICEABLE, changes_by_user
from fairlead_sim.simulating.measures import measures, span, unit_of
from fairlead_sim.simulating.result import PolicyResult
from fairlead_sim.simulating.study import Outcome
from fairlead_sim.simulating.tables import refusals, size_rows, summary_rows
from fairlead_sim.simulating.telling_apart import rank

_BYTES: Final = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"))
USERS_SHOWN_MAX: Final = 40
"""Those with the most work; the CSV has them all."""


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
        html.paragraph(_marks(outcome, known)),
        html.heading("All measures"),
        _measures(outcome, known),
        html.heading("How to read this"),
        html.terms(_TERMS),
        *_charts(outcome, plots),
        *_users(outcome),
        html.heading("Again"),
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
    seeds = ""
    if len(study.seeds) > 1:
        seeds = (
            f" Each policy was run with {len(study.seeds)} seeds; numbers are means over them, with the half width of the 95 % "
            "confidence interval where it is not zero. The work of the first seed:"
        )
    parts = [
        html.paragraph(
            f"What this workload would get on these nodes, on virtual time, with the policies, placement and books of a live "
            f"master.{seeds} {workload.jobs:,} jobs of {workload.tasks:,} tasks, {who}, on {len(study.nodes):,} nodes with "
            f"{capacity} in all. Placement {options.placement}; when the next does not fit: {options.when_head_does_not_fit}."
        )
    ]
    found = refusals(outcome)
    if found:
        parts += [html.paragraph("Not everything was run:", is_note=True), html.bullets(found)]
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
    rows = [
        (
            f"{answer.question.text}{'' if answer.has_interval else ' °'}\n{answer.question.meaning}",
            *answer.numbers,
        )
        for answer in known
    ]
    best = [frozenset(place + 1 for place in answer.best) for answer in known]
    return html.table(("Question", *outcome.study.policies), rows, best)


def _marks(outcome: Outcome, known: Sequence[Answer]) -> str:
    """What is marked, and how much chance there is in it."""
    if len(outcome.study.policies) < 2:
        return ""
    marked = "Marked are the best number of a row and those that cannot be told from it; nothing is, where all are alike."
    if len(outcome.study.seeds) > 1:
        return f"{marked} Policies are compared seed by seed: what a 95 % interval of their differences leaves open is not told apart."
    marked += (
        " There is one run of each policy, so chance is judged by drawing its jobs again in 50 blocks: what a 95 % interval of "
        "the ratio of two policies leaves open is not told apart. It says how much a few stretches of this work decide the "
        "result, and not what other work would give."
    )
    if any(not answer.has_interval for answer in known):
        marked += " Questions with ° have no interval: there those within a hundredth are alike, and a tenth may be chance."
    return marked


def _measures(outcome: Outcome, known: Sequence[Answer]) -> str:
    policies = outcome.study.policies
    ranked = {answer.question.measure.name: answer.best for answer in known}
    rows, best = [("jobs finished", *map(_finished, outcome.results.values()))], [frozenset[int]()]
    for measure in measures([run for runs in outcome.results.values() for run in runs]):
        found = [measure.of(runs) for runs in outcome.results.values()]
        if any(each is not None for each in found):
            rows.append((measure.title.strip(), *measure.write_all(found)))
            places = ranked[measure.name] if measure.name in ranked else rank(measure, outcome.results).best
            best.append(frozenset(place + 1 for place in places))
    if len(policies) > 1:
        ratios = next(row for row in summary_rows(outcome) if row["measure"].startswith("mean completion /"))
        rows.insert(2, (f"{ratios['measure']} (95 % interval)", *(ratios[policy] for policy in policies)))
        best.insert(2, frozenset())
    return html.table(("Measure", *policies), rows, best)


def _finished(runs: Sequence[PolicyResult]) -> str:
    if all(run.jobs_finished == run.jobs for run in runs):
        return "all"
    return " ".join(dict.fromkeys(f"{run.jobs_finished:,} of {run.jobs:,}" for run in runs))


def _chart(name: str, outcome: Outcome, plots: Mapping[str, bytes]) -> list[str]:
    title, caption = _CHARTS[name]
    text = caption.replace("FIRST", outcome.study.policies[0])
    return (
        [
            html.picture(
                plots[name], alternative=title.replace("FIRST", outcome.study.policies[0]), caption=text
            )
        ]
        if name in plots
        else []
    )


def _charts(outcome: Outcome, plots: Mapping[str, bytes]) -> list[str]:
    """All but the one that stands where a policy is chosen."""
    parts = []
    for name, (title, _) in _CHARTS.items():
        if name == "completion-ratio":
            continue
        if name in plots:
            parts += [html.heading(title), *_chart(name, outcome, plots)]
        if name == "reduction-by-job-size" and len(outcome.study.policies) > 1:
            parts.append(_sizes(outcome))
        if name == "better-and-worse" and len(outcome.study.policies) > 1:
            parts.append(_gains(outcome))
    return parts


def _sizes(outcome: Outcome) -> str:
    policies = outcome.study.policies
    rows = [(row["measure"], *(row[policy] for policy in policies)) for row in size_rows(outcome)]
    return html.table(("Tasks of the job: mean completion", *policies), rows)


def _gains(outcome: Outcome) -> str:
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
    columns = (f"Beside {policies[0]}", "better off", "most of all", "worse off", "most of all")
    return html.table(columns, rows)


def _named(users: Sequence[str]) -> str:
    return ", ".join(users[:3]) if users else "-"


def _users(outcome: Outcome) -> list[str]:
    policies = outcome.study.policies
    columns = [{user.user: user for user in runs[0].users} for runs in outcome.results.values()]
    order = [name for name in outcome.workloads[0].yardstick.survey.users if name in columns[0]]
    rows, best = [], []
    for name in order[:USERS_SHOWN_MAX]:
        found = [column.get(name) for column in columns]
        known = next(user for user in found if user is not None)
        unit_ms = unit_of([user.mean_completion_ms for user in found if user is not None])
        alone = "never" if known.alone_completion_ms is None else span(known.alone_completion_ms, unit_ms)
        cells = [
            "-" if user is None else span(user.mean_completion_ms, unit_ms) + " !" * user.is_worse_than_alone
            for user in found
        ]
        rows.append((name, f"{known.jobs:,}", f"{known.tasks:,}", alone, *cells))
        best.append(_least([user.mean_completion_ms if user is not None else None for user in found]))
    seed = f" Of the first of {len(outcome.study.seeds)} seeds." if len(outcome.study.seeds) > 1 else ""
    more = ""
    if len(order) > USERS_SHOWN_MAX:
        more = f" The {USERS_SHOWN_MAX} with the most work of {len(order)}; users.csv has them all."
    return [
        html.heading("User by user"),
        html.paragraph(
            "Mean completion of a user's jobs. “Alone” is what the jobs would have taken on an own static 1/n of the cluster, and "
            f"“!” marks who is worse off than that; “never” means that a task is larger than such a slice.{more}{seed}"
        ),
        html.table(("User", "Jobs", "Tasks", "Alone", *policies), rows, best),
    ]


def _least(values: Sequence[float | None]) -> frozenset[int]:
    """Places in the table of those within a hundredth of the least; none if all are."""
    known = [value for value in values if value is not None]
    least = min(known)
    if max(known) <= least * 1.01:
        return frozenset()
    return frozenset(
        place + 4 for place, value in enumerate(values) if value is not None and value <= least * 1.01
    )


_CHARTS: Final[dict[str, tuple[str, str]]] = {
    "completion-ratio": (
        "Mean completion beside FIRST",
        "Left of the line jobs are done sooner on average than under FIRST. A bar across the line may be chance.",
    ),
    "utilization": (
        "The cluster over time",
        (
            "What running tasks hold of each resource, as a part of all there is. More is better while tasks wait. Above 100 % "
            "means promised twice, which only slots do. A policy under which the end comes later has its tail further right."
        ),
    ),
    "queue": (
        "Tasks that wait",
        (
            "Tasks that could start if there were room, on a logarithmic scale. Where all lines lie at zero the cluster was short "
            "of nothing and no policy can do better than another."
        ),
    ),
    "dominant-shares": (
        "Dominant shares over time",
        (
            "Of the users with the most work, the largest part that each held of any one resource; “all others” is what the "
            "remaining users held together. A fair policy keeps those who want more close to one another."
        ),
    ),
    "completion": (
        "How long jobs take",
        "The part of all jobs that was done within a time, from submission to the end of the last task. Further left is better.",
    ),
    "slowdown": (
        "How much jobs are slowed down",
        (
            "Completion over what the job would take with nothing to wait for: 1 is the best there is. Long jobs weigh as much as short "
            "ones here, so this shows best who has to wait long for little. The part of all jobs that is slowed down more than so much: lower is better."
        ),
    ),
    "reduction-by-job-size": (
        "Large jobs and small ones",
        (
            "By how much the mean completion of jobs of so many tasks is shorter than under FIRST, as in figure 14 of the paper on "
            "dominant resource fairness; below zero it is longer."
        ),
    ),
    "wait-by-demand-size": (
        "Waits of large tasks and of small ones",
        (
            "Tasks in four classes of about as many each, by the largest part of the largest node that they want of any resource. "
            "Large tasks need luck to find room: a policy that serves whatever fits can let them wait for very long."
        ),
    ),
    "better-and-worse": (
        "Who is better off, who is worse",
        (
            "Each user's mean completion as a multiple of that under FIRST, users sorted: below 1 is better off. Counted below as better "
            f"or worse off is who gains or loses more than {100 * NOTICEABLE:.0f} %."
        ),
    ),
}

_TERMS: Final = (
    (
        "job, task",
        "A job is what somebody hands in at once; it has one or more tasks, perhaps in stages. A job completes when its last task is over.",
    ),
    (
        "wait",
        "From when a task could have started, its job handed in and earlier stages over, to when it started.",
    ),
    (
        "slowdown",
        "A job's completion time over the one with nothing to wait for, which is the longest task of each stage, summed.",
    ),
    ("dominant share", "The largest part that somebody holds of any one resource of the cluster."),
    (
        "Jain's index",
        (
            "How equal the dominant shares are of those who want more, at moments at which at least two do: 1 is equal, 1/n is one who "
            "has everything. The mean over such time. Policies that equalise something else, as proportional fairness does, have a lower one without being "
            "unfair by their own lights."
        ),
    ),
    (
        "worse off than on an own 1/n",
        (
            "Whose mean completion is longer than it would be on an own static 1/n of the cluster, n being all users: the sharing "
            "incentive. The slice is a generous yardstick: one pool without hosts in it."
        ),
    ),
    (
        "contending time below 1/n",
        "Of the time in which users wanted more while others did too, the part in which they had a dominant share under 1/n of those present.",
    ),
    (
        "promised twice",
        (
            "Under slots a task takes a slot, whatever it needs, so hosts may be promised more than they have. Tasks there run slower: "
            "by the CPU's overload, and by a modelled thrashing where memory is overfull."
        ),
    ),
)
