"""Standard output whose failures are told from all others: a full disk behind a redirection is no bug of ours."""

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputFailed(OSError):
    """Standard output cannot be written, for another reason than that its reader has left."""


class _Output(io.FileIO):
    """The file behind standard output."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write as any file does.

        Raises:
            BrokenPipeError: nobody reads any more.
            OutputFailed: it could not be, e.g. because the disk is full.
        """
        try:
            return super().write(data)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            raise OutputFailed(error.errno, error.strerror) from error


def replace_closed() -> None:
    """Put the null device in the place of standard streams the shell has closed (``>&-``).

    Else what is opened next, such as a connection, would take their numbers.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, closefd=False))


def watch_output() -> None:
    """Make stdout raise ``OutputFailed``, and show signs that its encoding lacks escaped, instead of ending us."""
    stdout = sys.stdout
    if not isinstance(stdout, io.TextIOWrapper):
        return  # a test's
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(stdout.fileno(), "wb", closefd=False)),
        encoding=stdout.encoding,
        errors="backslashreplace",
        # Without a buffer (PYTHONUNBUFFERED) a file may take a part of what is written, and nobody would notice.
        line_buffering=stdout.line_buffering or stdout.write_through,
    )


def flush_output() -> None:
    """Write what is in the buffer while its failure can still be told.

    Raises:
        OSError: as writing does.
    """
    if sys.stdout is not None:
        sys.stdout.flush()


def drop(stream: TextIO) -> None:
    """Let what is left in a stream's buffer go nowhere: the end of the process would complain of it once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
