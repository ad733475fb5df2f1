"""Rows of a file of named columns, plain or gzip, read one at a time, every fault named by its place.

What is wrong with a file is said once and completely: file, line, column, what was expected, what came. Nothing is
repaired or skipped here, because a number guessed from a broken row would end up in a result. Memory is bounded by one
row whatever the file is: lines have a largest length, and nothing is kept.
"""

import contextlib
import csv
import gzip
import io
import re
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LINE_BYTES_MAX: Final = 64 * 1024
"""Rows of public traces have some hundred bytes. A longer line is another kind of file, and must not fill the memory."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
# Python's own float() also takes "1_000", "infinity" and blanks.
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class TraceError(ValueError):
    """A file that cannot be used; the message names file, line, column, what was expected and what came."""


def bad_place(path: Path, line: int, column: str, expected: str, got: str) -> TraceError:
    """The error for one place of a file. ``line`` counts from 1; 0 stands for the file as a whole."""
    place = f"{path}:{line}" if line else str(path)
    where = f"column {column}: " if column else ""
    # A header may have anything in it, and an error is one line.
    got = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in got[:81])
    shown = got if len(got) <= 80 else got[:77] + "..."
    return TraceError(f"{place}: {where}expected {expected}, got {shown}")


@dataclass(slots=True)
class Row:
    """One line of the file, with the names of its columns. Not to be changed; that nothing stops it halves what a row costs."""

    path: Path
    line: int
    cells: dict[str, str]

    def bad(self, column: str, expected: str, got: str | None = None) -> TraceError:
        """The error for a cell of this row; without ``got`` the cell itself is quoted."""
        return bad_place(
            self.path, self.line, column, expected, repr(self.cells[column]) if got is None else got
        )

    def text(self, column: str) -> str:
        """The cell without surrounding blanks; may be empty."""
        return self.cells[column].strip()

    def number(self, column: str, *, most: float, unit: str) -> float:
        """The cell as a finite number from 0 to ``most``, both included.

        Raises:
            TraceError: empty, not a number, NaN or infinite, negative, or above ``most``.
        """
        text = self.cells[column].strip()
        if _NUMBER.fullmatch(text) is None or not 0 <= (value := float(text)) <= most:
            raise self.bad(column, f"a number of {unit} from 0 to {most:g}")
        return value

    def whole(self, column: str, *, least: int, most: int, unit: str) -> int:
        """The cell as a whole number from ``least`` to ``most``, both included; ``3.0`` is 3.

        Raises:
            TraceError: as ``number``, or with a fraction.
        """
        with contextlib.suppress(TraceError):
            value = self.number(column, most=most, unit=unit)
            if value >= least and value == int(value):
                return int(value)
        raise self.bad(column, f"a whole number of {unit} from {least} to {most}")


def read_rows(
    path: Path, required: Sequence[str], *, names: Sequence[str] | None = None, delimiter: str = ","
) -> Iterator[Row]:
    """The rows after the header, in the order of the file. Blank lines are passed over.

    Args:
        path: A CSV file in UTF-8; gzip if its name ends in .gz or it begins as gzip does.
        required: Columns the header must have; more are kept.
        names: The columns of a file that has no header line.
        delimiter: What stands between two cells.

    Raises:
        TraceError: unreadable, empty, not gzip though named so, cut off, not UTF-8, a header without a required column,
            a row with too few or too many cells, a line beyond ``LINE_BYTES_MAX``.
    """
    with contextlib.closing(read_lines(path)) as lines:
        yield from _rows(path, lines, required, names, delimiter)


def read_lines(path: Path) -> Generator[str, None, None]:
    """The lines of a text file, with their ends; gzip and errors as for ``read_rows``."""
    try:
        with _open(path) as lines:
            yield from _bounded(path, lines)
    except OSError as error:
        raise bad_place(path, 0, "", "a file that can be read", error.strerror or str(error)) from None


def read_fields(
    path: Path,
    names: Sequence[str],
    *,
    separator: str | None,
    comment: str | None = None,
    may_have_more: bool = False,
) -> Iterator[Row]:
    """The rows of a file without header or quotes. Blank lines and comments are passed over.

    Args:
        path: As for ``read_rows``.
        names: The columns, in their order.
        separator: Between two fields; None is any blanks.
        comment: Lines that begin with it are comments; None: there are none.
        may_have_more: Whether fields beyond the names are passed over rather than refused.

    Raises:
        TraceError: as for ``read_rows``.
    """
    with contextlib.closing(read_lines(path)) as lines:
        for number, line in enumerate(lines, 1):
            text = line.strip() if separator is None else line.rstrip("\r\n")
            if not text.strip() or (comment is not None and text.startswith(comment)):
                continue
            fields = text.split(separator)
            if len(fields) < len(names) or (len(fields) > len(names) and not may_have_more):
                least = "at least " if may_have_more else ""
                raise bad_place(
                    path, number, "", f"{least}{len(names)} fields ({', '.join(names)})", f"{len(fields)}"
                )
            yield Row(path, number, dict(zip(names, fields, strict=False)))


def _rows(
    path: Path, lines: Iterator[str], required: Sequence[str], names: Sequence[str] | None, delimiter: str
) -> Iterator[Row]:
    reader = csv.reader(lines, strict=True, delimiter=delimiter)
    try:
        columns = list(names) if names is not None else _header(path, next(reader, None), required)
        for cells in reader:
            if cells:
                if len(cells) != len(columns):
                    where = "as in the header" if names is None else f"({', '.join(columns)})"
                    expected = f"{len(columns)} cells {where}"
                    raise bad_place(path, reader.line_num, "", expected, f"{len(cells)}")
                yield Row(path, reader.line_num, dict(zip(columns, cells, strict=True)))
    except csv.Error as error:
        raise bad_place(
            path, reader.line_num, "", "comma-separated values", f"a line that is not: {error}"
        ) from None


@contextlib.contextmanager
def _open(path: Path) -> Iterator[io.BufferedIOBase]:
    with path.open("rb") as raw:
        magic = raw.read(2)
        raw.seek(0)
        if not magic:
            raise bad_place(path, 0, "", "a header and rows", "an empty file")
        if magic != _GZIP_MAGIC:
            if path.suffix == ".gz":
                raise bad_place(
                    path, 0, "", "gzip, as the name says", "a file that does not begin as gzip does"
                )
            yield raw
            return
        with gzip.GzipFile(fileobj=raw, mode="rb") as plain:
            yield plain


def _bounded(path: Path, lines: io.BufferedIOBase) -> Iterator[str]:
    number = 1
    try:
        while data := lines.readline(LINE_BYTES_MAX + 1):
            if len(data) > LINE_BYTES_MAX:
                raise bad_place(path, number, "", f"a line of at most {LINE_BYTES_MAX} bytes", "a longer one")
            # Some spreadsheets put a byte order mark before the first name.
            yield data.decode("utf-8-sig" if number == 1 else "utf-8")
            number += 1
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        got = f"one that breaks off or is damaged here ({error})"
        raise bad_place(path, number, "", "a whole gzip file", got) from None
    except UnicodeDecodeError as error:
        raise bad_place(path, number, "", "text in UTF-8", f"byte {error.object[error.start]:#04x}") from None


def _header(path: Path, names: list[str] | None, required: Sequence[str]) -> list[str]:
    names = [name.strip() for name in names or []]
    if not any(names):
        raise bad_place(path, 1, "", "a header and rows", "no header")
    missing = [name for name in required if name not in names]
    if missing:
        raise bad_place(path, 1, "", f"a header with {', '.join(missing)}", ",".join(names))
    if len(set(names)) != len(names):
        raise bad_place(path, 1, "", "each column once", ",".join(names))
    return names
