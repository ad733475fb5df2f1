"""`fairlead policy` and `fairlead weight`: how the master shares out resources, read and changed while it runs."""

import re
from collections.abc import Sequence
from typing import Final

import click

from fairlead_cli.addresses import json_option, master_option
from fairlead_cli.parameters import DEMAND, DEMAND_HELP, PLACEMENT_HELP, RESOURCE_WEIGHT, WEIGHT

_NEGATIVE: Final = re.compile(r"-(?:[\d.].*|inf|nan)")
"""What a person means as a number below zero, though it may be none."""


@click.group()
def policy() -> None:
    """Show or change the allocation policy."""


@policy.command("get")
@master_option
@json_option
def policy_get(master: str, *, as_json: bool) -> None:
    """Show the policy in force, and those there are."""
    from fairlead_cli.connection import connected
    from fairlead_proto.v1.operator_pb2 import GetPolicyRequest

    with connected(master) as connection:
        _print_policy(connection.call(connection.operator.GetPolicy, GetPolicyRequest()), as_json=as_json)


@policy.command("set")
@click.argument("name", default="")
@click.option("--placement", default="", help=PLACEMENT_HELP)
@click.option(
    "--when-head-does-not-fit",
    type=click.Choice(["skip", "freeze"]),
    default=None,
    help="Serve the next one that fits, or nobody until the head does.",
)
@click.option("--demand", type=DEMAND, help=DEMAND_HELP)
@master_option
@json_option
def policy_set(
    master: str,
    *,
    as_json: bool,
    name: str,
    placement: str,
    when_head_does_not_fit: str | None,
    demand: str | None,
) -> None:
    """Change the policy, or how it is applied.

    NAME is such as drf, pf or slots:4; `fairlead policy get` lists all. What is not given stays.
    """
    if not (name or placement or when_head_does_not_fit or demand):
        raise click.UsageError("expected a policy, --placement, --when-head-does-not-fit or --demand")
    from fairlead_cli.connection import connected
    from fairlead_proto.v1.operator_pb2 import SetPolicyRequest

    request = SetPolicyRequest(
        policy=name,
        placement=placement,
        when_head_does_not_fit=when_head_does_not_fit or "",
        demand=demand or "",
    )
    with connected(master) as connection:
        _print_policy(connection.call(connection.operator.SetPolicy, request), as_json=as_json)


def _print_policy(info: object, *, as_json: bool) -> None:
    from fairlead_cli.printing import print_json
    from fairlead_proto.v1.operator_pb2 import PolicyInfo

    assert isinstance(info, PolicyInfo)
    if as_json:
        print_json(
            {
                "policy": info.policy,
                "placement": info.placement,
                "when_head_does_not_fit": info.when_head_does_not_fit,
                "demand": info.demand,
                "known_policies": list(info.known_policies),
                "known_placements": list(info.known_placements),
            }
        )
        return
    print(f"policy                  {info.policy}  (of {', '.join(info.known_policies)})")
    print(f"placement               {info.placement}  (of {', '.join(info.known_placements)})")
    print(f"when head does not fit  {info.when_head_does_not_fit}")
    print(f"demand                  {info.demand}")


@click.group()
def weight() -> None:
    """Show or change the weights of roles."""


@weight.command("get")
@master_option
@json_option
def weight_get(master: str, *, as_json: bool) -> None:
    """List the weights of roles.

    Of those that have one of their own, or frameworks.
    """
    from fairlead_cli import pages, showing

    showing.show(master, pages.WEIGHTS, as_json=as_json, is_watched=False)


class _WeightCommand(click.Command):
    """A command to which a number below zero is a bad weight; to click it looks like an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command line; where one is no option, and is a number, refuse it as a weight."""
        words = tuple(args)  # click takes from the list as it reads
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption:
            value = next(param for param in self.params if param.name == "value")
            for word in words:
                if _NEGATIVE.fullmatch(word):
                    WEIGHT.convert(word, value, ctx)
            raise


@weight.command("set", cls=_WeightCommand)
@click.argument("role")
@click.argument("value", metavar="WEIGHT", type=WEIGHT)
@click.option(
    "--resource",
    "resource_weights",
    type=RESOURCE_WEIGHT,
    multiple=True,
    help="Another weight for one resource, such as cpus=2; repeatable.",
)
@master_option
def weight_set(
    master: str, *, role: str, value: float, resource_weights: Sequence[tuple[str, float]]
) -> None:
    """Give ROLE a weight.

    With twice the weight of another beside it, it is due twice the share. Beside a role such as eng/ml are the roles below eng; ROLE need not have frameworks of its own, or any yet.
    """
    from fairlead_cli import pages
    from fairlead_cli.connection import connected
    from fairlead_proto.v1.operator_pb2 import SetWeightRequest

    request = SetWeightRequest(role=role, weight=value, resource_weights=dict(resource_weights))
    with connected(master) as connection:
        connection.call(connection.operator.SetWeight, request)
        print(f"{role}: weight {value:g}", *(f"{name}={number:g}" for name, number in resource_weights))
        listed, _ = pages.WEIGHTS.fetch(connection)
    # A misspelt role is such a one as well.
    if not any(row["frameworks"] and f"{row['role']}/".startswith(f"{role}/") for row in listed):
        click.echo(f"fairlead: the weight is kept, but nobody is in role {role} yet", err=True)
