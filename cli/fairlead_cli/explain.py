"""`fairlead explain`: the master's own account of why work waits."""

import click

from fairlead_cli.addresses import json_option, master_option


@click.command()
@click.argument("id")
@master_option
@json_option
def explain(master: str, id: str, *, as_json: bool) -> None:
    """Say why a task or framework waits.

    ID is a task, a framework, or one demand class of a framework as FRAMEWORK/CLASS. The answer names one reason,
    the numbers behind it, and what would help.
    """
    from fairlead_cli import rows
    from fairlead_cli.connection import connected
    from fairlead_cli.printing import print_json
    from fairlead_proto.v1.operator_pb2 import ExplainRequest

    with connected(master) as connection:
        row = rows.explanation(connection.call(connection.operator.Explain, ExplainRequest(id=id)))
    if as_json:
        print_json(row)
        return
    print(f"{row['kind']} {row['id']}: {row['reason']}")
    print(f"  {row['sentence']}")
    width = max(map(len, row["evidence"]), default=0)
    for name, number in row["evidence"].items():
        print(f"  {name.ljust(width)}  {number}")
    for step in row["next_steps"]:
        print(f"  -> {step}")
