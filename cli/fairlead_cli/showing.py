"""What a listing command does: fetch, print, and print again while watched."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import NoReturn

from fairlead_cli import rows, tables, watching
from fairlead_cli.connection import Connection, connected
from fairlead_cli.pages import FRAMEWORKS, Listing
from fairlead_cli.printing import print_json, print_table
from fairlead_proto.v1.operator_pb2 import AllocationLogRequest


def show(master: str, listing: Listing, *, as_json: bool, is_watched: bool) -> None:
    """Print a listing of the master at an address, once or after every change."""
    with connected(master) as connection:
        if is_watched:
            _watch(connection, listing, as_json=as_json)
        found, _ = listing.fetch(connection)
    if as_json:
        print_json(found)
    else:
        print_table(found, listing.columns, listing.footer(found))


def show_tasks(master: str, listing: Listing, framework_id: str) -> None:
    """Print a table of tasks, and on stderr how many more wait than it names.

    Args:
        master: its address.
        listing: of tasks, waiting ones included.
        framework_id: whose they are; empty for all.
    """
    with connected(master) as connection:
        found, _ = listing.fetch(connection)
        frameworks, _ = FRAMEWORKS.fetch(connection)
    print_table(found, listing.columns)
    unnamed = unnamed_waiting(found, [row for row in frameworks if framework_id in ("", row["id"])])
    if unnamed:
        number = sum(unnamed.values())
        whose = next(iter(unnamed)) if len(unnamed) == 1 else "FRAMEWORK"
        print(
            f"fairlead: {number} more {'tasks wait' if number > 1 else 'task waits'}; "
            f"`fairlead explain {whose}` says why",
            file=sys.stderr,
        )


def unnamed_waiting(tasks: Sequence[rows.Row], frameworks: Sequence[rows.Row]) -> dict[str, int]:
    """How many tasks of a framework wait without being among ``tasks``, by its id; none has 0."""
    named = Counter(task["framework_id"] for task in tasks if task["state"] == "PENDING")
    more = {row["id"]: row["pending"] - named[row["id"]] for row in frameworks}
    return {framework_id: number for framework_id, number in more.items() if number > 0}


def show_log(master: str, limit: int, *, as_json: bool) -> None:
    """Print the allocator's last decisions, newest first."""
    with connected(master) as connection:
        answer = connection.call(connection.operator.AllocationLog, AllocationLogRequest(limit=limit))
    decisions = [rows.decision(decision) for decision in answer.decisions]
    if as_json:
        print_json(decisions)
    else:
        print_table(decisions, tables.DECISIONS)


def _watch(connection: Connection, listing: Listing, *, as_json: bool) -> NoReturn:
    if as_json:
        watching.watch(connection, listing, lambda found: print(json.dumps(found), flush=True))
    if not sys.stdout.isatty():
        watching.watch(connection, listing, lambda found: _print_block(found, listing))
    from rich.live import Live

    with Live(auto_refresh=False) as live:
        watching.watch(
            connection,
            listing,
            lambda found: live.update(
                tables.drawn_table(
                    found, listing.columns, width=live.console.width, footer=listing.footer(found)
                ),
                refresh=True,
            ),
        )


def _print_block(found: list[rows.Row], listing: Listing) -> None:
    print(tables.plain_table(found, listing.columns, listing.footer(found)), end="\n\n", flush=True)
