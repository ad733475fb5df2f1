"""`fairlead properties`: which policy has which of the papers' properties, by search."""

import sys
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final

import click

from fairlead_cli.addresses import json_option

TRIALS_DEFAULT: Final = 200
"""Problems of each kind. The violations that the papers know of are found within the first dozens; all policies together
take about twenty seconds on a slow machine."""


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
    from fairlead_master.solvers.problem import SolverError
    from fairlead_sim.properties.examination import one_of_each_kind
    from fairlead_sim.properties.instances import Shape
    from fairlead_sim.properties.report import as_json as verdict_as_json

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
    """All verdicts; a person at a terminal sees on stderr how far it is."""
    from fairlead_sim.properties.catalogue import PROPERTIES
    from fairlead_sim.properties.examination import examine

    verdicts = []
    total = len(policies) * len(PROPERTIES)
    for verdict in examine(policies, trials=trials, seed=seed, shape=shape):
        verdicts.append(verdict)
        if sys.stderr.isatty():
            line = f"{len(verdicts)} of {total}: {verdict.policy}, {verdict.property_name}"
            click.echo(f"\r\x1b[K{line if len(verdicts) < total else ''}", nl=False, err=True)
    return verdicts


def _print_report(verdicts: Sequence[Any], *, trials: int, seed: int) -> None:
    from fairlead_cli.printing import print_table
    from fairlead_cli.tables import Column
    from fairlead_sim.properties import report

    policies = dict.fromkeys(verdict.policy for verdict in verdicts)
    columns = [Column("PROPERTY", itemgetter("property"))]
    columns += [Column(policy, itemgetter(policy)) for policy in policies]
    print_table(report.table_rows(verdicts), columns)
    print(
        f"\n{report.LEGEND}\nSeed {seed}, {trials} random problems of each kind beside the papers' examples."
    )
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
