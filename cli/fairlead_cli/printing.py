"""Results on stdout: JSON for programs, tables for people."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from fairlead_cli.rows import Row
from fairlead_cli.tables import Column, drawn_table, plain_table


def print_table(rows: Sequence[Row], columns: Sequence[Column], footer: str = "") -> None:
    """Print rows to stdout: a drawn table on a terminal, else plain aligned columns with a header; a footer below."""
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False)
        console.print(drawn_table(rows, columns, width=console.width, footer=footer))
    else:
        print(plain_table(rows, columns, footer), flush=True)


def print_json(value: Any) -> None:
    """Print one JSON document: on one line for programs, indented for a person at a terminal."""
    print(json.dumps(value, allow_nan=False, indent=2 if sys.stdout.isatty() else None), flush=True)
