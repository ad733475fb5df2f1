"""`fairlead reproduce`: the papers' figures and tables, computed again."""

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from os import cpu_count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from fairlead_cli.addresses import json_option

if TYPE_CHECKING:
    from fairlead_lab.papers.runner import Outcome

ROWS_SHOWN: Final = 60
"""Of a table for people."""

_WHAT_NEXT: Final = "`fairlead reproduce ID` computes one of these, `fairlead reproduce all` all of them in about an hour, with --quick in minutes"


@click.command()
@click.argument("ids", nargs=-1, metavar="[list|all|ID]...")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for JSON, CSV and a plot of each, and a table of all verdicts in it.",
)
@click.option("--quick", is_flag=True, help="Smaller runs with wider intervals: minutes instead of an hour.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of everything random.")
@click.option(
    "--processes", type=click.IntRange(1, 256), help="Experiments at a time [default: one for each CPU]"
)
@json_option
def reproduce(
    *, as_json: bool, ids: Sequence[str], out: Path | None, processes: int | None, quick: bool, seed: int
) -> int:
    """Compute the papers' figures and tables again.

    `list` names them and `all` computes all, which takes an hour; --quick or --out without ids means all, and the bare
    command lists. Each prints its rows and how they compare with what the paper prints. Exits with 1 if one of them broke.
    """
    from fairlead_cli.errors import Invalid, told_if_a_process_is_lost, told_if_unwritable
    from fairlead_cli.printing import print_json
    from fairlead_lab.papers import catalogue, runner
    from fairlead_lab.papers.experiment import RunOptions
    from fairlead_local.end_signals import ended_as_by_ctrl_c

    words = [word.lower() for word in ids]
    is_bare = not (ids or quick or out)
    if is_bare or words == ["list"]:
        _print_list(as_json=as_json)
        if is_bare:
            click.echo(_WHAT_NEXT, err=True)
        return 0
    try:
        chosen = [catalogue.find(word).id for word in dict.fromkeys(ids if words != ["all"] else ())]
    except catalogue.UnknownExperiment as error:
        raise Invalid(str(error)) from error
    chosen = chosen or [experiment.id for experiment in catalogue.all_experiments()]
    options = RunOptions(seed=seed, is_quick=quick)
    outcomes: list[Outcome] = []
    if out is not None:
        with told_if_unwritable(out):
            out.mkdir(parents=True, exist_ok=True)
    running = runner.run_all(chosen, options, processes=processes or cpu_count() or 1)
    with ended_as_by_ctrl_c(), told_if_a_process_is_lost(), closing(running):
        for outcome in running:
            outcomes.append(outcome)
            _tell(outcome, len(outcomes), len(chosen), seed=seed, out=out, is_quiet=as_json)
    if out is not None:
        with told_if_unwritable(out):
            runner.write_verdicts(out, outcomes)
    if as_json:
        outcomes.sort(key=lambda outcome: chosen.index(outcome.id))
        found = [outcome.as_json(seed) for outcome in outcomes]
        print_json(found[0] if len(found) == 1 else found)
    return 1 if any(outcome.result is None for outcome in outcomes) else 0


def _print_list(*, as_json: bool) -> None:
    from fairlead_cli.printing import print_json
    from fairlead_lab.papers import catalogue

    experiments = catalogue.all_experiments()
    if as_json:
        print_json(
            [
                {
                    "id": e.id,
                    "paper": e.paper,
                    "figure": e.figure,
                    "title": e.title,
                    "columns": list(e.columns),
                }
                for e in experiments
            ]
        )
        return
    for experiment in experiments:
        print(f"{experiment.id:16} {experiment.title}")


def _tell(
    outcome: "Outcome", number: int, total: int, *, seed: int, out: Path | None, is_quiet: bool
) -> None:
    """Print one outcome, and write its files."""
    from fairlead_cli.errors import told_if_unwritable
    from fairlead_cli.printing import print_table
    from fairlead_cli.tables import Column
    from fairlead_lab.papers import catalogue, runner
    from fairlead_lab.plotting import PlotsUnavailable

    if outcome.result is None:
        click.echo(f"[{number}/{total}] {outcome.id}: {outcome.error}", err=True)
        return
    experiment = catalogue.find(outcome.id)
    if not is_quiet:
        print(f"\n[{number}/{total}] {experiment.id}: {experiment.title}  ({outcome.took_s:.1f} s)")
        rows = experiment.records(outcome.result)
        columns = [Column(name.upper(), _cell_of(name)) for name in experiment.columns]
        print_table(rows[:ROWS_SHOWN], columns)
        if len(rows) > ROWS_SHOWN:
            print(f"… and {len(rows) - ROWS_SHOWN} more rows: --json or --out has them")
        if outcome.result.notes:
            print(outcome.result.notes)
        print(f"{experiment.id}: {outcome.result.verdict}")
    elif sys.stderr.isatty():
        click.echo(f"[{number}/{total}] {outcome.id}", err=True)
    if out is None:
        return
    try:
        with told_if_unwritable(out):
            runner.write(out, experiment, outcome.result, seed)
    except PlotsUnavailable as error:
        click.echo(f"{outcome.id}: {error}", err=True)


def _cell_of(column: str) -> Callable[[Any], str]:
    """How the cell of a column is shown to people: numbers with four significant digits."""

    def show(row: Any) -> str:
        value = row[column]
        if isinstance(value, float):
            return f"{value:.4g}"
        return "" if value is None else str(value)

    return show
