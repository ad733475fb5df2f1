"""Which format a file is in, by its name and its first lines."""

from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final

from fairlead_lab.workloads.csv_rows import bad_place, read_lines
from fairlead_lab.workloads.formats import google, swf, swim
from fairlead_lab.workloads.traces import COLUMNS

_COLUMNS_OF_2019: Final = {"collection_id", "instance_index"}
_LINES_LOOKED_AT: Final = 50
"""Blank lines may stand at the head of a file, but not that many."""


def detect_format(path: Path) -> str:
    """The name of the format, one of ``loading.FORMATS``.

    Raises:
        TraceError: the file cannot be read, or is in none of them.
    """
    if path.is_dir():
        return "google"
    if path.name.lower().endswith((".swf", ".swf.gz")):
        return "swf"
    with closing(read_lines(path)) as lines:
        first = next((line for line in islice(lines, _LINES_LOOKED_AT) if line.strip()), "").strip("\r\n")
    found = _by_line(first)
    if found is None:
        expected = "a trace whose format can be told by its first line; name the format"
        if set(_cells(first)) >= _COLUMNS_OF_2019:
            expected = "the normalised columns (export the tables of Google's trace of 2019 to them)"
        raise bad_place(path, 1, "", expected, repr(first))
    return found


def _by_line(line: str) -> str | None:
    cells = _cells(line)
    # A misspelt column or two should give the normalised format's message, which names them.
    if len(set(cells) & set(COLUMNS)) > len(COLUMNS) // 2:
        return "normalised"
    if {"cpu_milli", "gpu_spec"} <= set(cells):
        return "openb"
    if line.lstrip().startswith(";"):
        return "swf"
    if len(cells) == len(google.COLUMNS) and cells[0].isdigit() and cells[5].isdigit():
        return "google"
    if len(fields := line.split("\t")) >= len(swim.COLUMNS) and all(_is_number(f) for f in fields[1:6]):
        return "swim"
    if len(fields := line.split()) == len(swf.COLUMNS) and all(_is_number(field) for field in fields):
        return "swf"
    return None


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.lstrip("\ufeff").split(",")]


def _is_number(text: str) -> bool:
    return text.strip().removeprefix("-").replace(".", "", 1).isdigit()
