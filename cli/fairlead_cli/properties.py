"""`fairlead properties`: which policy has which of the papers' properties, by search."""

import shutil
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

import click

from fairlead_cli.addresses import json_option

TRIALS_DEFAULT: Final = 200
"""Problems of each kind. The violations that the papers know of are found within the first dozens; all policies together
take about thirty seconds on a slow machine."""

REDRAWN_S: Final = 0.1
"""Between two states of the line of progress: often enough to be seen to move."""

_ERASE: Final = "\r\x1b[K"

_CELL_WIDTH: Final = len("(✓) =")

_GAP: Final = 2
"""Blanks between columns."""


@click.command()
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="P",
    help="drf, asset, max-min:cpus, …; repeatable [default: one of each kind]",
)
@click.option(
    "--trials",
    type=click.IntRange(1, 1_000_000),
    default=TRIALS_DEFAULT,
    show_default=True,
    help="Random problems per policy and property: so many with positive demands, then so many with zeros.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of everything random.")
@click.option("--positive", is_flag=True, help="Only problems in which everybody needs every resource.")
@click.option("--weighted", is_flag=True, help="Users have weights [default: all 1, as in the papers]")
@click.option("--capped", is_flag=True, help="Some users want a few tasks only [default: no end of them]")
@json_option
def properties(
    *,
    as_json: bool,
    capped: bool,
    policies: Sequence[str],
    positive: bool,
    seed: int,
    trials: int,
    weighted: bool,
) -> None:
    """Search for cases in which a policy is unfair.

    Each property of the papers (sharing incentive, strategy-proofness, …) is tried on the papers' examples and on small
    random problems, which the policy's exact solver answers. Prints the papers' table, where it differs from them, and
    the smallest counterexample found to each violated property. A violation is proven by its counterexample; a check
    mark says only that none was found.
    """
    from fairlead_cli.errors import Invalid
    from fairlead_cli.printing import print_json
    from fairlead_lab.properties.instances import Shape
    from fairlead_lab.properties.report import as_json as verdict_as_json
    from fairlead_lab.properties.search import one_of_each_kind
    from fairlead_master.solvers.problem import SolverError

    shape = Shape(is_positive=positive, is_weighted=weighted, is_capped=capped)
    chosen = list(dict.fromkeys(policies)) or one_of_each_kind()
    try:
        verdicts = _searched(chosen, trials=trials, seed=seed, shape=shape)
    except SolverError as error:
        raise Invalid(str(error)) from error
    if as_json:
        print_json([verdict_as_json(verdict) for verdict in verdicts])
    else:
        _print_report(verdicts, trials=trials, seed=seed)


def _searched(policies: Sequence[str], *, trials: int, seed: int, shape: Any) -> list[Any]:
    """All verdicts; a person at a terminal sees on stderr how far it is, and no trace of that afterwards."""
    from fairlead_lab.properties.definitions import PROPERTIES
    from fairlead_lab.properties.search import examine

    progress = _Progress(searches=len(policies) * len(PROPERTIES))
    try:
        found = examine(policies, trials=trials, seed=seed, shape=shape, on_trial=progress.trial)
        return [progress.searched(verdict) for verdict in found]
    finally:
        progress.erase()


class _Progress:
    """How far a search is, as a line that is drawn over; nothing where stderr is no terminal."""

    def __init__(self, *, searches: int) -> None:
        """Args: how many verdicts there will be."""
        self._searches = searches
        self._done = 0
        self._is_terminal = sys.stderr.isatty()
        self._drawn_s = float("-inf")

    def trial(self, policy: str, property_name: str, number: int) -> None:
        """A search is about to look at its problem of that number."""
        if self._is_terminal and time.monotonic() - self._drawn_s >= REDRAWN_S:
            self._drawn_s = time.monotonic()
            where = f"{self._done + 1} of {self._searches}: {policy}, {property_name}"
            click.echo(f"{_ERASE}{where}, problem {number:,}", nl=False, err=True)

    def searched(self, verdict: Any) -> Any:
        """A search is over; gives its verdict back."""
        self._done += 1
        return verdict

    def erase(self) -> None:
        """Leave the line empty."""
        if self._is_terminal:
            click.echo(_ERASE, nl=False, err=True)


def blocks(policies: Sequence[str], room: int) -> list[list[str]]:
    """The policies in groups whose columns, headed by their names, fit into a width; each has at least one."""
    found: list[list[str]] = []
    left = 0
    for policy in policies:
        width = max(len(policy), _CELL_WIDTH) + _GAP
        if width > left or not found:
            found.append([])
            left = room
        found[-1].append(policy)
        left -= width
    return found


def _print_report(verdicts: Sequence[Any], *, trials: int, seed: int) -> None:
    from fairlead_cli.printing import print_table
    from fairlead_cli.tables import Column
    from fairlead_lab.properties import report

    rows = report.table_rows(verdicts)
    policies = list(dict.fromkeys(verdict.policy for verdict in verdicts))
    names = Column("PROPERTY", "property")
    room = shutil.get_terminal_size().columns - max(len(row["property"]) for row in rows)
    for block in blocks(policies, room) if sys.stdout.isatty() else [policies]:
        print_table(rows, [names, *(Column(policy, policy) for policy in block)])
        print()
    print(f"{report.LEGEND}\nSeed {seed}, {trials} random problems of each kind beside the papers' examples.")
    differing = report.notes(verdicts)
    if differing:
        print("\nWhere this differs from the papers:")
    for line in differing:
        print(f"  {line}")
    violated = [verdict for verdict in verdicts if not verdict.holds]
    if violated:
        print("\nThe smallest counterexamples found:")
    for verdict in violated:
        print("\n" + "\n".join(report.counterexample(verdict)))
