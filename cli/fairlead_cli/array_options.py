"""How a sweep is said at the shell: indices such as ``0-99:2%20``, or a line of a file for each task."""

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from fairlead_cli.errors import Invalid
from fairlead_proto.limits import ARRAY_INDEX_MAX

MEMBERS_MAX: Final = 1_000_000
"""Tasks of one run: what becomes of each is kept until the end, which takes half a gigabyte then."""

_PART: Final = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?", re.ASCII)
_FORMS: Final = "indices such as 7, 0-99, 0-99:2 or 1,3,7-9, with %20 behind them for at most 20 at once"


def parse_array(text: str) -> tuple[Sequence[int], int | None]:
    """The indices of ``0-99:2%20``, in order, and how many at once; None if that is not said.

    Raises:
        ValueError: not of that form, or too many; the text says what was expected and what came.
    """
    listed, percent, at_once = text.partition("%")
    matches = [_PART.fullmatch(part) for part in listed.split(",")]
    if percent and not (at_once.isascii() and at_once.isdecimal() and int(at_once)):
        raise ValueError(f"expected a number above 0 behind %, got {text!r}")
    ranges: list[range] = []
    for match in matches:
        if match is None:
            raise ValueError(f"expected {_FORMS}, got {text!r}")
        first, last, stride = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if not stride:
            raise ValueError(f"expected a stride above 0, got {match[0]!r}")
        if not first <= last <= ARRAY_INDEX_MAX:
            raise ValueError(f"expected a range that goes up, to at most {ARRAY_INDEX_MAX}, got {match[0]!r}")
        ranges.append(range(first, last + 1, stride))
    count = sum(map(len, ranges))
    if count > MEMBERS_MAX:
        raise ValueError(f"expected at most {MEMBERS_MAX} tasks, got {count} by {text!r}")
    indices = ranges[0] if len(ranges) == 1 else [index for part in ranges for index in part]
    if len(ranges) > 1 and len(set(indices)) < count:
        raise ValueError(f"expected each index once, got one of them twice in {text!r}")
    return indices, int(at_once) if percent else None


def check_array(text: str) -> str:
    """The text unchanged, if it is indices; raises as ``parse_array``."""
    parse_array(text)
    return text


def read_each(source: str, words: Sequence[str]) -> list[str]:
    """The lines of a file, or of standard input for ``-``, without their ends, LF or CRLF; empty ones are left out.

    Args:
        source: the file.
        words: of the command, with places for a line.

    Raises:
        Invalid: it cannot be read, is a terminal, or has a line that this command cannot have.
    """
    option = f"--each {source}"
    try:
        if source != "-":
            with Path(source).open("rb") as file:
                return _read_lines(option, file, words)
        if sys.stdin.isatty():
            raise Invalid(f"{option}: expected lines from a pipe or a file, got a terminal")
        return _read_lines(option, sys.stdin.buffer, words)
    except OSError as error:
        raise Invalid(f"{option}: {error.strerror or error}") from error


def _read_lines(option: str, lines: Iterable[bytes], words: Sequence[str]) -> list[str]:
    from fairlead_sdk.arrays import check_argument

    found: list[str] = []
    for number, line in enumerate(lines, 1):
        try:
            text = line.removesuffix(b"\n").removesuffix(b"\r").decode()
        except UnicodeDecodeError:
            raise Invalid(f"{option}: expected UTF-8, got another thing in line {number}") from None
        if "\0" in text:
            raise Invalid(f"{option}: expected text without NUL, got one in line {number}")
        if text:
            try:
                check_argument(f"command with line {number}", words, len(found), text)
            except ValueError as error:
                raise Invalid(f"{option}: {error}") from None
            found.append(text)
        if len(found) > MEMBERS_MAX:
            raise Invalid(f"{option}: expected at most {MEMBERS_MAX} lines, got more")
    return found
