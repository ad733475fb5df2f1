"""What a listing command does: fetch, print, and print again whenever the master's stream of changes says so, never by polling."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NoReturn

import grpc

from fairlead_cli import rows, tables
from fairlead_cli.connection import Connection, as_expected, connected
from fairlead_cli.errors import Unreachable
from fairlead_cli.pages import FRAMEWORKS, Listing
from fairlead_cli.printing import print_json, print_table
from fairlead_cli.rows import Row
from fairlead_proto.v1 import operator_pb2

REDRAW_INTERVAL_S: Final = 0.1
"""Least time between two listings: a busy cluster changes thousands of times a second, an eye sees ten of them."""

STREAM_S: Final = 60.0
"""After this long without news the stream is opened anew, in case the host at its other end is gone without a word."""

RECONNECT_S: Final = (0.1, 0.5, 1.0, 2.0, 5.0)
"""Waits between attempts while the master is away; the last one repeats."""


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
        answer = connection.call(
            connection.operator.AllocationLog, operator_pb2.AllocationLogRequest(limit=limit)
        )
    decisions = [rows.decision(decision) for decision in answer.decisions]
    if as_json:
        print_json(decisions)
    else:
        print_table(decisions, tables.DECISIONS)


def _watch(connection: Connection, listing: Listing, *, as_json: bool) -> NoReturn:
    if as_json:
        _follow(connection, listing, lambda found: print(json.dumps(found), flush=True))
    if not sys.stdout.isatty():
        _follow(connection, listing, lambda found: _print_block(found, listing))
    from rich.live import Live

    with Live(auto_refresh=False) as live:
        _follow(
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


def _follow(connection: Connection, listing: Listing, show: Callable[[list[Row]], None]) -> NoReturn:
    """Show the listing now and after every change, until interrupted.

    A master that goes away is waited for, however long; one that is not there at the beginning is an error.

    Raises:
        Unreachable: no master answers at the start.
        Refused: the master refuses the listing.
    """
    rows, version = listing.fetch(connection)
    show(rows)
    while True:
        try:
            _await_change(connection, listing.kinds, version)
            latest, version = listing.fetch(connection)
        except Unreachable as error:
            latest, version = _fetch_when_back(connection, listing, error)
        if latest != rows:
            rows = latest
            show(rows)
        time.sleep(REDRAW_INTERVAL_S)


def _await_change(connection: Connection, kinds: tuple[str, ...], version: int) -> None:
    """Return when something changed after ``version``, or when it is time to look anyway.

    Raises:
        Unreachable: the master is gone.
    """
    request = operator_pb2.WatchRequest(from_version=version, kinds=kinds)
    stream = connection.operator.Watch(request, timeout=STREAM_S)
    try:
        for changes in stream:
            if changes.resync or (changes.changes and changes.version > version):
                return
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            return
        raise as_expected(error, connection.address) from error
    finally:
        stream.cancel()


def _fetch_when_back(connection: Connection, listing: Listing, error: Unreachable) -> tuple[list[Row], int]:
    print(f"fairlead: {error.message}; trying again", file=sys.stderr)
    for wait_s in _waits():
        time.sleep(wait_s)
        try:
            return listing.fetch(connection)
        except Unreachable:
            continue
    raise AssertionError("unreachable: the waits have no end")


def _waits() -> Iterator[float]:
    yield from RECONNECT_S
    while True:
        yield RECONNECT_S[-1]
