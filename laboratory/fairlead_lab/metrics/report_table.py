"""The report of a replay as tables, one column a run, so that policies can be read side by side."""

from collections.abc import Iterable, Sequence
from string import Formatter
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from fairlead_lab.metrics.report import ReplayReport
from fairlead_lab.metrics.result import PolicyResult, UserReport
from fairlead_lab.metrics.statistics import Spread

USERS_SHOWN_MAX: Final = 30
"""A screen; the JSON has them all."""

_OF_REPORTS: Final = (
    ("jobs finished", "{0.result.jobs_finished} of {0.result.jobs}"),
    ("tasks finished", "{0.result.tasks_finished} of {0.result.tasks}"),
    (
        "failed / lost / not ended / retries",
        "{0.tasks_failed} / {0.tasks_lost} / {0.tasks_unended} / {0.retries}",
    ),
    ("makespan", "{0.result.makespan_ms:time}"),
    ("job completion, mean / p50 / p95 / p99", "{0.result.completion_ms:time}"),
    ("job slowdown, mean / p50 / p95 / p99", "{0.result.slowdown:.2f}"),
    ("task wait, mean / p50 / p95 / p99", "{0.result.wait_ms:time}"),
    ("process beyond its sleep, mean / p50 / p95 / p99", "{0.launch_overhead_ms:time}"),
    ("arrival lag of the replay, mean / p50 / p95 / p99", "{0.lag_ms:time}"),
    ("two or more users wanted more for", "{0.result.contended_ms:time}"),
    ("Jain's index of their dominant shares", "{0.result.jain:.3f}"),
    ("their time below 1/n of those present", "{0.result.below_fraction:percent}"),
    (
        "users worse off than on a static 1/n (clearly)",
        "{0.result.violations} ({0.result.clear_violations}) of {0.result.users}",
    ),
    ("task time on agents promised twice", "{0.result.crowded_fraction:percent}"),
    ("decisions", "{0.result.decisions} ({0.decisions_per_s:.1f}/s)"),
    ("CPU time of the master", "{0.master_cpu_ms:time}"),
)
"""Title and cell of each row; see ``_Cells``."""

_OF_RESOURCES: Final = (
    ("held by tasks", "{0.held:percent}"),
    ("held until the last arrival", "{0.held_until_last_arrival:percent}"),
    ("promised beyond its agent", "{0.over:percent}"),
    ("allocated (master's samples)", "{0.allocated:percent}"),
    ("used (measured, samples)", "{0.used:percent}"),
)

_SHORT: Final = (
    ("jobs finished", "{0.jobs_finished} of {0.jobs}"),
    ("mean job completion", "{0.completion_ms.mean:time}"),
    ("95 % of jobs within", "{0.completion_ms.p95:time}"),
    ("all done after", "{0.makespan_ms:time}"),
)
_SHORT_OF_ALL: Final = 2
"""So many of the last speak of all jobs, and say nothing of a run that was cut short."""


def print_reports(console: Console, reports: Sequence[ReplayReport]) -> None:
    """Print all tables of the reports, which are of one workload under several policies.

    Where there is no terminal they are Markdown, to be kept in a document.
    """
    results = [report.result for report in reports]
    for table in (_summary_table(reports), _user_table(results), _size_table(results)):
        if not console.is_terminal:
            table.box = box.MARKDOWN
        console.print(table)
        console.print()


def _summary_table(reports: Sequence[ReplayReport]) -> Table:
    """The run as a whole: what finished, when, how full the cluster was, how fair."""
    results = [report.result for report in reports]
    table = _table("The run", ["measure"], _titles(results))
    for title, text in _OF_REPORTS:
        table.add_row(title, *_cells(reports, text))
    for resource in _resources(results):
        for title, text in _OF_RESOURCES:
            table.add_row(f"{resource}: {title}", *_use(results, resource, text))
    return table


def short_table(results: Sequence[PolicyResult]) -> Table:
    """What a person compares first: done, how soon, how full, and who had what share."""
    table = _table(None, [""], _titles(results))
    for title, text in _SHORT[:-_SHORT_OF_ALL]:
        table.add_row(title, *_cells(results, text))
    done = [result if result.is_complete else None for result in results]
    for title, text in _SHORT[-_SHORT_OF_ALL:]:
        table.add_row(title, *_cells(done, text))
    for resource in _resources(results):
        table.add_row(f"{resource}: held by tasks", *_use(results, resource, "{0.held:percent}"))
    table.add_row("task time on agents promised twice", *_cells(results, "{0.crowded_fraction:percent}"))
    for name, found in _by_user(results).items():
        table.add_row(f"mean dominant share of {name}", *_cells(found, "{0.mean_share:percent}"))
    return table


def _titles(results: Sequence[PolicyResult]) -> list[str]:
    return [run.policy if run.is_complete else f"{run.policy} (cut short)" for run in results]


def _user_table(results: Sequence[PolicyResult]) -> Table:
    """Each user: jobs, mean completion, mean dominant share, by run."""
    runs = [title for result in results for title in (f"{result.policy}: completion", "share")]
    title = "Users: mean completion, mean dominant share while present"
    table = _table(title, ["user"], ["jobs", "alone on 1/n", *runs])
    users = _by_user(results)
    for name, found in list(users.items())[:USERS_SHOWN_MAX]:
        known = next(user for user in found if user is not None)
        alone = "never" if known.alone_completion_ms is None else seconds(known.alone_completion_ms)
        cells = [
            cell
            for user in found
            for cell in _cells(
                [user], f"{{0.mean_completion_ms:time}}{_mark(user)}", "{0.mean_share:percent}"
            )
        ]
        table.add_row(name, str(known.jobs), alone, *cells)
    if len(users) > USERS_SHOWN_MAX:
        table.caption = f"and {len(users) - USERS_SHOWN_MAX} more users (see --json)"
    else:
        table.caption = "! worse than on an own static 1/n of the cluster, !! by more than launches explain; never: a task exceeds it"
    return table


def _by_user(results: Sequence[PolicyResult]) -> dict[str, list[UserReport | None]]:
    """By name, in its order: the user in each run; None where he had no job."""
    columns = [{user.user: user for user in result.users} for result in results]
    names = sorted({name for column in columns for name in column})
    return {name: [column.get(name) for column in columns] for name in names}


def _mark(user: UserReport | None) -> str:
    if user is None or not user.is_worse_than_alone:
        return ""
    return " !!" if user.is_clearly_worse_than_alone else " !"


def _size_table(results: Sequence[PolicyResult]) -> Table:
    """Mean and p95 wait of tasks by quartile of their size."""
    runs = [title for result in results for title in (f"{result.policy}: mean", "p95")]
    table = _table("Wait by size of demand (largest share of an agent)", [], ["size up to", "tasks", *runs])
    columns = [{entry.largest_size: entry for entry in result.waits_by_size} for result in results]
    for size in sorted({size for column in columns for size in column}):
        found = [column.get(size) for column in columns]
        count = next(str(entry.wait.count) for entry in found if entry is not None)
        table.add_row(percent(size), count, *_cells(found, "{0.wait.mean:time}", "{0.wait.p95:time}"))
    return table


def seconds(value_ms: float) -> str:
    """Milliseconds for a reader: three digits that matter, in ms or s."""
    value = value_ms / 1000
    if abs(value) < 0.1:
        return f"{value_ms:.0f} ms"
    return f"{value:.0f} s" if value >= 100 else f"{value:.1f} s" if value >= 10 else f"{value:.2f} s"


def percent(fraction: float | None) -> str:
    """A fraction as per cent, a dash for None."""
    return "-" if fraction is None else f"{100 * fraction:.1f} %"


class _Cells(Formatter):
    """Fills in the texts of cells: also times and fractions, four numbers of a spread, the length of a list, a dash for None."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return "-"
        if isinstance(value, list):
            return str(len(value))
        if isinstance(value, Spread):
            numbers = (value.mean, value.p50, value.p95, value.p99)
            return " / ".join(self.format_field(number, format_spec) for number in numbers)
        write = {"time": seconds, "percent": percent}.get(format_spec)
        return write(value) if write else format(value, format_spec)


def _cells(sources: Iterable[object], *texts: str) -> list[str]:
    """The texts filled in with each source in turn; dashes for None."""
    return ["-" if source is None else _Cells().format(text, source) for source in sources for text in texts]


def _use(results: Sequence[PolicyResult], resource: str, text: str) -> list[str]:
    return _cells([result.resources.get(resource) for result in results], text)


def _table(title: str | None, left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    return table


def _resources(results: Sequence[PolicyResult]) -> list[str]:
    """Those that were held, used or allocated in some run."""
    names: dict[str, None] = {}
    for result in results:
        names |= {
            name: None for name, use in result.resources.items() if use.held or use.used or use.allocated
        }
    return list(names)
