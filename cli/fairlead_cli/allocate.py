"""`fairlead allocate`: who gets what under a policy, exactly and without a cluster."""

import sys
from pathlib import Path
from typing import Any, Final

import click

from fairlead_cli.addresses import json_option

_POLICY_DEFAULT: Final = "drf"
"""As on a cluster that was told nothing else."""

_EXIT_UNFAIR: Final = 1
"""Of --verify where somebody complains, as `diff` has it: the question was understood and the answer is no."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True, readable=False))
@click.option(
    "--policy",
    metavar="P",
    help=f"drf, pf, alpha:2, max-min:cpus, slots:4, bbf, … [default: {_POLICY_DEFAULT}]",
)
@click.option("--discrete", is_flag=True, help="Whole tasks, one at a time [default: tasks may be split]")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw who holds what of each resource: a .png, .svg or .pdf file.",
)
@click.option(
    "--verify",
    "allocation",
    type=click.Path(path_type=Path, allow_dash=True, readable=False),
    metavar="ALLOCATION",
    help='Solve nothing: say who has a justified complaint about this allocation, {"tasks": {NAME: COUNT, …}}.',
)
@json_option
def allocate(
    *,
    allocation: Path | None,
    as_json: bool,
    discrete: bool,
    file: Path,
    plot: Path | None,
    policy: str | None,
) -> int:
    """Say who gets what under a policy, without a cluster.

    FILE, or - for standard input, is a problem as JSON: capacity or nodes, and users with their demands.
    docs/allocate.md has the format and examples. With --verify an allocation from anywhere is judged by
    entitlements on bottlenecks; the exit code is 1 if somebody has a justified complaint.
    """
    from fairlead_cli.errors import Invalid
    from fairlead_master.solvers.problem import SolverError
    from fairlead_master.solvers.problem_json import read_problem, read_tasks

    if allocation is not None:
        if policy is not None:
            raise click.UsageError("--policy and --verify do not go together")
        if str(file) == str(allocation) == "-":
            raise click.UsageError("expected one of the two on standard input, got both")
    if plot is not None:
        from fairlead_cli.allocation_plot import check

        check(plot)
    problem = _read(file, read_problem)
    try:
        if allocation is not None:
            tasks, is_whole = _read(
                allocation, lambda document: read_tasks(document, problem, whole_tasks=discrete)
            )
            return _judge(problem, tasks, is_whole=is_whole, as_json=as_json, plot=plot)
        policy = _POLICY_DEFAULT if policy is None else policy
        _solve(problem, policy, is_discrete=discrete, as_json=as_json, plot=plot)
    except SolverError as error:
        raise Invalid(str(error)) from error
    return 0


def _read(file: Path, read: Any) -> Any:
    """What a function makes of a file's bytes; no more of them are read than a document may have.

    Raises:
        Invalid: the file cannot be read, or is no such document.
    """
    from fairlead_cli.errors import Invalid
    from fairlead_master.solvers.problem import SolverError
    from fairlead_master.solvers.problem_json import BYTES_MAX

    name = "standard input" if str(file) == "-" else str(file)
    try:
        if str(file) == "-":
            if sys.stdin is None:
                raise Invalid(f"{name}: expected a document, got nothing: it is closed")
            document = sys.stdin.buffer.read(BYTES_MAX + 1)
        else:
            with file.open("rb") as stream:
                document = stream.read(BYTES_MAX + 1)
    except OSError as error:
        raise Invalid(f"{name}: {error.strerror}") from error
    if len(document) > BYTES_MAX:
        raise Invalid(f"{name}: expected at most {BYTES_MAX} bytes, got more")
    try:
        return read(document)
    except SolverError as error:
        raise Invalid(f"{name}: {error}") from error


def _solve(problem: Any, policy: str, *, is_discrete: bool, as_json: bool, plot: Path | None) -> None:
    """Solve and print; the plot is written first, so that nothing is printed if that fails."""
    from fairlead_cli.allocation_tables import print_remarks, print_report
    from fairlead_cli.printing import print_json
    from fairlead_master.solvers.registry import solve
    from fairlead_master.solvers.report import report

    found = report(problem, policy, solve(problem, policy, discrete=is_discrete))
    _draw(found, plot)
    if as_json:
        print_json(found.as_json())
    else:
        print_report(found)
        print_remarks(found)


def _judge(problem: Any, tasks: Any, *, is_whole: bool, as_json: bool, plot: Path | None) -> int:
    """Print what can be said against an allocation; the exit code says whether anything can."""
    from fairlead_cli.allocation_tables import AS_GIVEN, print_report, print_verdict
    from fairlead_cli.printing import print_json
    from fairlead_master.solvers.complaints import verify
    from fairlead_master.solvers.problem import Solution
    from fairlead_master.solvers.report import report, verdict_json

    verdict = verify(problem, tasks, whole_tasks=is_whole)
    found = report(problem, AS_GIVEN, Solution(tasks=tasks, steps=() if is_whole else None))
    _draw(found, plot)
    if as_json:
        print_json(verdict_json(verdict, is_discrete=is_whole))
    else:
        print_report(found)
        print_verdict(verdict, problem)
    return 0 if verdict.is_fair else _EXIT_UNFAIR


def _draw(found: Any, plot: Path | None) -> None:
    if plot is not None:
        from fairlead_cli.allocation_plot import draw

        draw(found, plot)
