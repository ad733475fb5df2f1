"""The report of a study: a folder with the results as JSON, the numbers behind each plot as CSV, the plots, and a page.

The page is the template `report.html.jinja`; its numbers and sentences come from here. The template engine is an extra,
looked for only when a page is to be written.
"""

import csv
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairlead_lab.metrics.measures import Best
from fairlead_lab.metrics.result import SHORT_MS, PolicyResult
from fairlead_lab.study.advice import placed_by_chance, summary
from fairlead_lab.study.charts import draw_all
from fairlead_lab.study.comparison import NOTICEABLE, is_crowded, measured, rank
from fairlead_lab.study.document import as_document
from fairlead_lab.study.plot_data import Data, all_data, are_waits_of_all_seeds
from fairlead_lab.study.questions import Answer, answers
from fairlead_lab.study.study import Outcome
from fairlead_lab.study.tables import finished_jobs, gains, ratio_row, refusals, size_rows, users
from fairlead_master.allocation import placement
from fairlead_proto.resources import ResourceKinds, Vector

if TYPE_CHECKING:
    from jinja2 import Template

_BYTES: Final = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"))

Table = tuple[Sequence[str], Sequence[Sequence[str]], Sequence[frozenset[int]]]
"""Columns, rows, and for each row the places of the cells to mark; no rows of marks, no marks."""


class PageUnavailable(RuntimeError):
    """The template engine is not installed; the message says how to install it."""


def write_report(folder: Path, outcome: Outcome, *, title: str, command: str) -> None:
    """Write ``report.html``, ``results.json``, and a CSV and a PNG of each chart into an existing folder.

    The same study writes the same bytes. Without the library that draws, the page has tables only and says so; without the
    template engine there is no page, and a former one is removed.

    Args:
        folder: May hold a former report, which is overwritten.
        outcome: Of the study.
        title: What was simulated.
        command: With which it can be repeated.

    Raises:
        PlotsUnavailable: everything but the plots is there.
        PageUnavailable: everything but the page is there.
        OSError: a file cannot be written.
    """
    data = all_data(outcome)
    document = as_document(outcome, with_speed=False)
    (folder / "results.json").write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
    for table in data.values():
        _write_csv(folder / f"{table.name}.csv", table)
    plots: dict[str, bytes] = {}
    try:
        plots = draw_all(data, outcome.study.policies)
    finally:
        for name, png in plots.items():
            (folder / f"{name}.png").write_bytes(png)
        (folder / "report.html").unlink(missing_ok=True)
        page = report_page(outcome, plots, title=title, command=command)
        (folder / "report.html").write_text(page, encoding="utf-8")


def report_page(outcome: Outcome, plots: Mapping[str, bytes], *, title: str, command: str) -> str:
    """The page as HTML.

    Args:
        outcome: Of the study.
        plots: As PNG, by the name of their table; those that are missing are left out.
        title: What was simulated.
        command: With which it can be repeated.

    Raises:
        PageUnavailable: see there.
    """
    template = _template()
    study, workloads = outcome.study, outcome.workloads
    known = answers(outcome)
    return template.render(
        title=title,
        command=command,
        policies=study.policies,
        seeds=study.seeds,
        options=study.options,
        placement=placement.parse(study.options.placement).name,
        nodes=len(study.nodes),
        capacity=_amounts(workloads[0].yardstick.survey.capacity),
        workload=workloads[0],
        differs_by_seed=len({(each.jobs, each.tasks) for each in workloads}) > 1,
        work_differs=any(each.yardstick != workloads[0].yardstick for each in workloads),
        gangs=workloads[0].yardstick.survey.gangs,
        drawn=placed_by_chance(outcome),
        refusals=refusals(outcome),
        summary=summary(outcome, known),
        questions=_questions(outcome, known),
        answers=known,
        comparisons=sum(max(0, len(study.policies) - len(answer.left_out) - 1) for answer in known),
        short_s=SHORT_MS // 1000,
        noticeable=f"{100 * NOTICEABLE:.0f}",
        crowded=[policy for policy, runs in outcome.results.items() if is_crowded(runs)],
        measures=_measures(outcome),
        sizes=_sizes(outcome),
        gains=gains(outcome),
        users=users(outcome),
        user_count=len(workloads[0].yardstick.survey.users),
        plots={name: b64encode(png).decode("ascii") for name, png in plots.items()},
        same_sizes=are_waits_of_all_seeds(outcome),
    )


def _template() -> "Template":
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise PageUnavailable(
            "report.html: expected jinja2, which is not installed: pip install 'fairlead[report]'"
        ) from None

    def escaped(value: object) -> Markup:
        return value if isinstance(value, Markup) else Markup(escape(str(value)))  # noqa: S704 - it is escaped

    def words(text: str) -> Markup:
        """Words on one line, however the template breaks them."""
        return escaped(" ".join(Markup(text).unescape().split()))  # noqa: S704 - it is escaped again

    environment = Environment(
        loader=PackageLoader("fairlead_lab.study", ""),
        autoescape=True,
        finalize=escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["words"] = words
    return environment.get_template("report.html.jinja")


def _amounts(capacity: Vector) -> str:
    """Amounts for a person: memory in the largest unit of which there is one."""
    return ", ".join(
        f"{_bytes(amount)} {name}" if name in {"mem", "disk"} else f"{amount:,g} {name}"
        for name, amount in ResourceKinds().as_units(capacity).items()
    )


def _bytes(amount: float) -> str:
    size, unit = next((each for each in _BYTES if amount >= each[0]), _BYTES[-1])
    return f"{amount / size:,.4g} {unit}"


def _questions(outcome: Outcome, known: Sequence[Answer]) -> Table:
    rows, best = [], []
    has_finest = any(answer.finest for answer in known)
    for answer in known:
        degree = "" if answer.has_interval or len(answer.numbers) < 2 else " °"
        rows.append(
            (
                f"{answer.question.text}{degree}\n{answer.meaning}",
                *_with_daggers(answer.numbers, answer.left_out),
                *([answer.finest or "-"] if has_finest else []),
            )
        )
        best.append(_after_first(answer.best))
    return ("Question", *outcome.study.policies, *(["could tell"] if has_finest else [])), rows, best


def _measures(outcome: Outcome) -> Table:
    policies = outcome.study.policies
    rows, best = [("jobs finished", *map(_finished, outcome.results.values()))], [frozenset[int]()]
    for measure, found in measured(outcome.results):
        # Nothing is promised twice but under slots.
        is_shown = measure.best is not Best.NEITHER or any(each is not None and each.mean for each in found)
        if is_shown and any(each is not None for each in found):
            ranking = rank(measure, outcome.results)
            rows.append((measure.title, *_with_daggers(measure.write_all(found), ranking.left_out)))
            best.append(_after_first(ranking.best))
    if len(policies) > 1:
        title, *ratios = ratio_row(outcome).values()
        rows.insert(2, (f"  {title} (95 % interval)", *ratios))
        best.insert(2, frozenset())
    return ("Measure", *policies), rows, best


def _with_daggers(cells: Sequence[str], left_out: frozenset[int]) -> list[str]:
    return [cell + " †" * (place in left_out) for place, cell in enumerate(cells)]


def _after_first(places: frozenset[int]) -> frozenset[int]:
    """The places of policies in a row that begins with something else."""
    return frozenset(place + 1 for place in places)


def _finished(runs: Sequence[PolicyResult]) -> str:
    if all(run.jobs_finished == run.jobs for run in runs):
        return "all"
    return finished_jobs(runs)


def _sizes(outcome: Outcome) -> Table:
    policies = outcome.study.policies
    rows = [(row["measure"], *(row[policy] for policy in policies)) for row in size_rows(outcome)]
    first = "Tasks of the job: mean completion, and in brackets as a multiple of the first policy's"
    return (first, *policies), rows, ()


def _write_csv(path: Path, table: Data) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows(table.rows)
