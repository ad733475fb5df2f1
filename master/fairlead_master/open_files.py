"""Open files of the master's process: as many as it may have, and some kept for what is no connection.

A connection is an open file. A process that has none left accepts nobody, not even whoever would look what is wrong, so
the number of connections is kept below the limit by the files that everything else may need.
"""

import resource
from typing import Final

FILES_KEPT: Final = 128
"""For the listening socket, the registry with its journal, the log, a recording, and grpc's own: some 40 are used."""

CONNECTIONS_MIN: Final = 64
"""Connections below which a master is of no use: with fewer open files than this and the others it is not started."""


class OpenFilesError(Exception):
    """The process may not open as many files as a master needs."""


def raise_limit() -> int:
    """Let the process open as many files as its hard limit allows; gives that number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def connections_max(files: int) -> int:
    """How many connections there may be, if there may be so many open files.

    Raises:
        OpenFilesError: too few.
    """
    least = FILES_KEPT + CONNECTIONS_MIN
    if files < least:
        raise OpenFilesError(
            f"open files: expected a hard limit of at least {least}, got {files}: raise it, as by `ulimit -Hn {4 * least}`"
        )
    return files - FILES_KEPT
