"""Fairness reports as tables, one column a run, so that policies can be read side by side."""

from collections.abc import Callable, Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from fairlead_lab.metrics.report import ReplayReport
from fairlead_lab.metrics.result import PolicyResult, ResourceUse, UserReport
from fairlead_lab.metrics.statistics import Spread

USERS_SHOWN_MAX: Final = 30
"""A screen; the JSON has them all."""


def print_reports(console: Console, reports: Sequence[ReplayReport]) -> None:
    """Print all tables of the reports, which are of one workload under several policies.

    Where there is no terminal they are Markdown, to be kept in a document.
    """
    results = [report.result for report in reports]
    for table in (summary_table(reports), user_table(results), size_table(results)):
        if not console.is_terminal:
            table.box = box.MARKDOWN
        console.print(table)
        console.print()


def summary_table(reports: Sequence[ReplayReport]) -> Table:
    """The run as a whole: what finished, when, how full the cluster was, how fair."""
    table = Table(title="The run", title_justify="left")
    table.add_column("measure")
    results = [report.result for report in reports]
    for result in results:
        table.add_column(
            result.policy if result.is_complete else f"{result.policy} (cut short)", justify="right"
        )
    for name, cell in _SUMMARY:
        table.add_row(name, *(cell(report) for report in reports))
    for resource in _resources(results):
        for name, pick in _USE:
            table.add_row(f"{resource}: {name}", *(_use(result, resource, pick) for result in results))
    return table


def short_table(results: Sequence[PolicyResult]) -> Table:
    """What a person compares first: done, how soon, how full, and who had what share."""
    table = Table(title_justify="left")
    table.add_column("")
    for result in results:
        table.add_column(result.policy, justify="right")
    table.add_row("jobs finished", *(f"{result.jobs_finished} of {result.jobs}" for result in results))
    table.add_row("mean job completion", *(seconds(result.completion_ms.mean) for result in results))
    table.add_row("95 % of jobs within", *(seconds(result.completion_ms.p95) for result in results))
    table.add_row("all done after", *(seconds(result.makespan_ms) for result in results))
    for resource in _resources(results):
        table.add_row(
            f"{resource}: held by tasks",
            *(_use(result, resource, lambda use: use.held) for result in results),
        )
    table.add_row(
        "task time on agents promised twice", *(percent(result.crowded_fraction) for result in results)
    )
    columns = [{user.user: user for user in result.users} for result in results]
    for name in sorted({name for column in columns for name in column}):
        shares = (column[name].mean_share if name in column else None for column in columns)
        table.add_row(f"mean dominant share of {name}", *(percent(share) for share in shares))
    return table


def user_table(results: Sequence[PolicyResult]) -> Table:
    """Each user: jobs, mean completion, mean dominant share, by run."""
    table = Table(title="Users: mean completion, mean dominant share while present", title_justify="left")
    table.add_column("user")
    table.add_column("jobs", justify="right")
    table.add_column("alone on 1/n", justify="right")
    for result in results:
        table.add_column(f"{result.policy}: completion", justify="right")
        table.add_column("share", justify="right")
    columns = [{user.user: user for user in result.users} for result in results]
    names = sorted({name for column in columns for name in column})
    for name in names[:USERS_SHOWN_MAX]:
        found = [column.get(name) for column in columns]
        known = next(user for user in found if user is not None)
        cells = [
            text
            for user in found
            for text in (
                (
                    seconds(user.mean_completion_ms) + _mark(user),
                    percent(user.mean_share),
                )
                if user is not None
                else ("-", "-")
            )
        ]
        alone = "never" if known.alone_completion_ms is None else seconds(known.alone_completion_ms)
        table.add_row(name, str(known.jobs), alone, *cells)
    if len(names) > USERS_SHOWN_MAX:
        table.caption = f"and {len(names) - USERS_SHOWN_MAX} more users (see --json)"
    else:
        table.caption = "! worse than on an own static 1/n of the cluster, !! by more than launches explain; never: a task exceeds it"
    return table


def _mark(user: UserReport) -> str:
    return " !!" if user.is_clearly_worse_than_alone else " !" if user.is_worse_than_alone else ""


def size_table(results: Sequence[PolicyResult]) -> Table:
    """Mean and p95 wait of tasks by quartile of their size."""
    table = Table(title="Wait by size of demand (largest share of an agent)", title_justify="left")
    table.add_column("size up to", justify="right")
    table.add_column("tasks", justify="right")
    for result in results:
        table.add_column(f"{result.policy}: mean", justify="right")
        table.add_column("p95", justify="right")
    columns = [{entry.largest_size: entry for entry in result.waits_by_size} for result in results]
    for size in sorted({size for column in columns for size in column}):
        found = [column.get(size) for column in columns]
        count = next(str(entry.wait.count) for entry in found if entry is not None)
        cells = [
            text
            for entry in found
            for text in ((seconds(entry.wait.mean), seconds(entry.wait.p95)) if entry else ("-", "-"))
        ]
        table.add_row(percent(size), count, *cells)
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


def _times(found: Spread) -> str:
    return " / ".join(seconds(number) for number in (found.mean, found.p50, found.p95, found.p99))


def _factors(found: Spread) -> str:
    return " / ".join(f"{number:.2f}" for number in (found.mean, found.p50, found.p95, found.p99))


_SUMMARY: Final[tuple[tuple[str, Callable[[ReplayReport], str]], ...]] = (
    ("jobs finished", lambda report: f"{report.result.jobs_finished} of {report.result.jobs}"),
    ("tasks finished", lambda report: f"{report.result.tasks_finished} of {report.result.tasks}"),
    (
        "failed / lost / not ended / retries",
        lambda report: (
            f"{report.tasks_failed} / {report.tasks_lost} / {report.tasks_unended} / {report.retries}"
        ),
    ),
    ("makespan", lambda report: seconds(report.result.makespan_ms)),
    ("job completion, mean / p50 / p95 / p99", lambda report: _times(report.result.completion_ms)),
    ("job slowdown, mean / p50 / p95 / p99", lambda report: _factors(report.result.slowdown)),
    ("task wait, mean / p50 / p95 / p99", lambda report: _times(report.result.wait_ms)),
    (
        "process beyond its sleep, mean / p50 / p95 / p99",
        lambda report: _times(report.launch_overhead_ms),
    ),
    ("arrival lag of the replay, mean / p50 / p95 / p99", lambda report: _times(report.lag_ms)),
    ("two or more users wanted more for", lambda report: seconds(report.result.contended_ms)),
    (
        "Jain's index of their dominant shares",
        lambda report: "-" if report.result.jain is None else f"{report.result.jain:.3f}",
    ),
    ("their time below 1/n of those present", lambda report: percent(report.result.below_fraction)),
    (
        "users worse off than on a static 1/n (clearly)",
        lambda report: (
            f"{len(report.result.violations)} ({len(report.result.clear_violations)}) of {len(report.result.users)}"
        ),
    ),
    ("task time on agents promised twice", lambda report: percent(report.result.crowded_fraction)),
    ("decisions", lambda report: f"{report.result.decisions} ({report.decisions_per_s:.1f}/s)"),
    ("CPU time of the master", lambda report: seconds(report.master_cpu_ms)),
)

_USE: Final[tuple[tuple[str, Callable[[ResourceUse], float | None]], ...]] = (
    ("held by tasks", lambda use: use.held),
    ("held until the last arrival", lambda use: use.held_until_last_arrival),
    ("promised beyond its agent", lambda use: use.over),
    ("allocated (master's samples)", lambda use: use.allocated),
    ("used (measured, samples)", lambda use: use.used),
)


def _use(result: PolicyResult, resource: str, pick: Callable[[ResourceUse], float | None]) -> str:
    use = result.resources.get(resource)
    return "-" if use is None else percent(pick(use))


def _resources(results: Sequence[PolicyResult]) -> list[str]:
    names: dict[str, None] = {}
    for result in results:
        names |= {
            name: None for name, use in result.resources.items() if use.held or use.used or use.allocated
        }
    return list(names)
