"""`fairlead timeshare`: programs of processes that use one resource at a time, run under a live policy in virtual time."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from fairlead_cli.addresses import json_option

RUNS_MAX: Final = 1_000
"""Runs are kept to be averaged, a few kilobytes for each simulated minute."""

SECONDS_MAX: Final = 1_000_000.0


@click.command()
@click.argument(
    "programs",
    nargs=-1,
    required=True,
    metavar="PROGRAM...",
    type=click.Path(path_type=Path, readable=False),
)
@click.option(
    "--policy",
    default="bbf",
    show_default=True,
    metavar="P",
    help="bbf, bbf:SECONDS, bbf:PERCENT% or bbf:SECONDS,PERCENT% for another window or threshold, or fifo.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of all service times.")
@click.option(
    "--runs",
    type=click.IntRange(1, RUNS_MAX),
    default=1,
    show_default=True,
    help="With other service times each; what is told is the mean.",
)
@click.option(
    "--until",
    "until_s",
    type=click.FloatRange(0, SECONDS_MAX, min_open=True),
    metavar="SECONDS",
    help="End there [default: when all processes are done]",
)
@click.option(
    "--quantum",
    "quantum_s",
    type=click.FloatRange(0.001, SECONDS_MAX),
    default=0.1,
    show_default=True,
    metavar="SECONDS",
    help="The longest turn on a resource whose name ends in _CS.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for JSON, CSV and a plot: who uses what when, and how much in all.",
)
@json_option
def timeshare(
    *,
    as_json: bool,
    out: Path | None,
    policy: str,
    programs: Sequence[Path],
    quantum_s: float,
    runs: int,
    seed: int,
    until_s: float | None,
) -> None:
    """Run programs of processes by turns.

    Each PROGRAM is a file in the format of the paper on bottleneck-based fairness: a priority and loops of uses of
    resources. Its name without the ending is that of the process; one that is called by a colour is drawn in it. Time is
    virtual; the policy is the live cluster's own. docs/timesharing.md has the format and examples.
    """
    from fairlead_cli.errors import Invalid
    from fairlead_cli.printing import print_json
    from fairlead_cli.progress_bar import progress_bar
    from fairlead_lab.papers.bbf.timesharing.averages import run_many
    from fairlead_lab.papers.bbf.timesharing.program import ProgramError
    from fairlead_lab.papers.bbf.timesharing.report import Report
    from fairlead_master.allocation.api import AllocationError

    try:
        read = tuple([_read(path) for path in programs])
        with progress_bar(policy) as tell:
            found = run_many(
                read,
                runs,
                policy=policy,
                seed=seed,
                until_s=until_s,
                quantum_ms=round(quantum_s * 1000),
                progress=partial(tell, policy),
            )
    except (ProgramError, AllocationError) as error:
        raise Invalid(str(error)) from error
    report = Report(programs=read, policy=policy, seed=seed, runs=found)
    if out is not None:
        _write(out, report)
    if as_json:
        print_json(report.as_json())
    else:
        _print(report)


def _read(path: Path) -> Any:
    """The program in a file, called as the file without its ending.

    Raises:
        Invalid: the file cannot be read, or is too long or not text.
        ProgramError: it is no program.
    """
    from fairlead_cli.errors import Invalid
    from fairlead_lab.papers.bbf.timesharing.program import BYTES_MAX, parse

    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise Invalid(f"{path}: {error.strerror}") from error
    if len(content) > BYTES_MAX:
        raise Invalid(f"{path}: expected at most {BYTES_MAX} bytes, got more")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"{path}: expected text in UTF-8, got byte {content[error.start]:#04x}") from error
    return parse(text, path.stem, str(path))


def _write(out: Path, report: Any) -> None:
    from fairlead_cli.errors import told_if_unwritable
    from fairlead_lab.papers.bbf.timesharing.report import write
    from fairlead_lab.plotting import PlotsUnavailable

    try:
        with told_if_unwritable(out):
            out.mkdir(parents=True, exist_ok=True)
            write(out, report)
    except PlotsUnavailable as error:
        click.echo(str(error), err=True)


def _print(report: Any) -> None:
    from fairlead_cli.printing import print_table
    from fairlead_cli.tables import Column

    resources = report.runs.example.resources
    print_table(
        report.processes(),
        [
            Column("PROCESS", lambda row: str(row["name"])),
            Column("PRIORITY", lambda row: f"{row['priority']:g}"),
            Column("DONE [s]", _done),
            *[Column(f"{resource} [s]", _used(resource)) for resource in resources],
        ],
    )
    bottlenecks = report.bottlenecks()
    if bottlenecks:
        parts = ", ".join(f"{resource} for {part:.0%} of the time" for resource, part in bottlenecks.items())
        print(f"Bottlenecks: {parts}.")


def _done(row: Any) -> str:
    if row["finish_s"] is None:
        return "-"
    deviation_s = row["finish_deviation_s"]
    return f"{row['finish_s']:.2f}" + (f" ± {deviation_s:.2f}" if deviation_s else "")


def _used(resource: str) -> Any:
    return lambda row: f"{row['used_s'][resource]:.2f}"
