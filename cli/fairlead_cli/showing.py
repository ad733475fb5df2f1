"""What a listing command does: fetch, print, and print again while watched."""

import json
import sys
from typing import NoReturn

from fairlead_cli import rows, tables, watching
from fairlead_cli.connection import Connection, connected
from fairlead_cli.pages import Listing
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
        print_table(found, listing.columns)


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
            lambda found: live.update(tables.drawn_table(found, listing.columns), refresh=True),
        )


def _print_block(found: list[rows.Row], listing: Listing) -> None:
    print(tables.plain_table(found, listing.columns), end="\n\n", flush=True)
