"""`fairlead kill`: ends tasks, or a framework with everything it runs."""

import sys
from collections.abc import Sequence
from typing import Final

import click

from fairlead_cli.addresses import json_option, master_option
from fairlead_cli.errors import EXIT_REFUSED
from fairlead_cli.parameters import DURATION

REFUSALS: Final = ("unknown", "ambiguous", "pending")
"""Outcomes of a kill that killed nothing, though something may run or come to run."""


@click.command()
@click.argument("task_ids", metavar="TASK...", nargs=-1)
@click.option(
    "--framework",
    "framework_id",
    default="",
    help="With tasks: whose they are, if an id is not unique. Alone: end this framework and kill all its tasks.",
)
@click.option(
    "--grace",
    "grace_ms",
    type=DURATION,
    default=None,
    help="From SIGTERM to SIGKILL [default: the task's own]",
)
@master_option
@json_option
def kill(
    master: str, task_ids: Sequence[str], *, as_json: bool, framework_id: str, grace_ms: int | None
) -> int:
    """Kill tasks, or a framework with all its tasks.

    Exits with 4 if a task is unknown, its id is not unique, or it only waits in its framework's queue; the others
    are killed nevertheless.
    """
    if not task_ids and not framework_id:
        raise click.UsageError("expected a task or --framework")
    if not task_ids:
        if grace_ms is not None:
            raise click.UsageError("--grace goes with tasks; a framework's tasks have their own")
        return _end_framework(master, framework_id, as_json=as_json)
    from fairlead_cli.connection import connected
    from fairlead_cli.printing import print_json
    from fairlead_proto.v1.operator_pb2 import KillTasksRequest

    request = KillTasksRequest(
        task_ids=task_ids, framework_id=framework_id, grace_period_ms=_grace_period(grace_ms)
    )
    with connected(master) as connection:
        items = connection.call(connection.operator.KillTasks, request).items
    if as_json:
        names = ("task_id", "framework_id", "outcome", "detail")
        print_json([{name: getattr(item, name) for name in names} for item in items])
    for item in items:
        is_refused = item.outcome in REFUSALS
        if is_refused or not as_json:
            text = f"{item.task_id}: {item.outcome}" + (f": {item.detail}" if item.detail else "")
            print(text, file=sys.stderr if is_refused else sys.stdout)
    return EXIT_REFUSED if any(item.outcome in REFUSALS for item in items) else 0


def _end_framework(master: str, framework_id: str, *, as_json: bool) -> int:
    from fairlead_cli.connection import connected
    from fairlead_cli.printing import print_json
    from fairlead_proto.v1.operator_pb2 import TeardownFrameworkRequest

    with connected(master) as connection:
        request = TeardownFrameworkRequest(framework_id=framework_id)
        answer = connection.call(connection.operator.TeardownFramework, request)
    if as_json:
        print_json({"framework_id": framework_id, "tasks_killed": answer.tasks_killed})
    else:
        killed = answer.tasks_killed
        print(f"{framework_id}: ended, {killed} task{'s' * (killed != 1)} killed")
    return 0


def _grace_period(grace_ms: int | None) -> int:
    """Milliseconds as the schema has them: there 0 means the task's own, so "at once" is one."""
    return 0 if grace_ms is None else max(1, grace_ms)
