"""A listing that is shown again whenever it changes, by the master's stream of changes and never by polling."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Final, NoReturn

import grpc

from fairlead_cli.connection import Connection, as_expected
from fairlead_cli.errors import Unreachable
from fairlead_cli.pages import Listing
from fairlead_cli.rows import Row
from fairlead_proto.v1 import operator_pb2

REDRAW_INTERVAL_S: Final = 0.1
"""Least time between two listings: a busy cluster changes thousands of times a second, an eye sees ten of them."""

STREAM_S: Final = 60.0
"""After this long without news the stream is opened anew, in case the host at its other end is gone without a word."""

RECONNECT_S: Final = (0.1, 0.5, 1.0, 2.0, 5.0)
"""Waits between attempts while the master is away; the last one repeats."""


def watch(connection: Connection, listing: Listing, show: Callable[[list[Row]], None]) -> NoReturn:
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
