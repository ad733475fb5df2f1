"""What a benchmark reports: rows of figures beside their targets and floors, under a header that says what made them."""

import json
import platform
import shutil
import subprocess  # asks git for the commit
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from os import cpu_count, getloadavg
from pathlib import Path
from time import gmtime, strftime
from typing import Final

from rich.console import Console
from rich.table import Table

_GIT_TIMEOUT_S: Final = 5.0


SCALES: Final = ("full", "quick")
"""How much is measured: the second is for a first look and for tests."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure; in the order of the printed table."""

    name: str
    value: float
    unit: str
    target: str = ""
    """The bound it should keep, such as ``>= 5000`` or ``>= 0.4 of floor``; empty if there is none."""
    floor: float | None = None
    """The least, or the most, this machine could do in the same run; None where nothing comparable was measured."""

    @property
    def ratio(self) -> float | None:
        """``value / floor``."""
        return self.value / self.floor if self.floor else None

    @property
    def is_met(self) -> bool | None:
        """Whether the target is kept; None without one."""
        comparison, _, bound = self.target.partition(" ")
        bound, of_floor, _ = bound.partition(" of floor")
        value = self.ratio if of_floor else self.value
        if not bound or value is None:
            return None
        return {"<": value < float(bound), ">=": value >= float(bound)}[comparison]

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {**asdict(self), "ratio": self.ratio, "is_met": self.is_met}


def check_scale(scale: str) -> None:
    """Refuse what is no scale.

    Raises:
        ValueError: it is none of ``SCALES``.
    """
    if scale not in SCALES:
        raise ValueError(f"scale: expected one of {', '.join(SCALES)}, got {scale!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Where the figures come from."""

    machine: str
    python: str
    commit: str
    command: str
    seed: int
    started: str
    """UTC."""
    load_average: tuple[float, float, float]
    """When the run began: much above zero means that others were at work."""

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def make_header(*, seed: int, command: str | None = None) -> Header:
    """The header of a run that begins now, of this process's own command line unless another is given."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    return Header(
        machine=f"{cpu_count()} x {_processor()}, {platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        commit=_commit(),
        command=command or " ".join(words),
        seed=seed,
        started=strftime("%Y-%m-%d %H:%M:%S", gmtime()),
        load_average=getloadavg(),
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    git = shutil.which("git")
    if git is None:
        return "unknown"
    where = Path(__file__).parent

    def ask(*words: str) -> str:
        done = subprocess.run(
            [git, *words], cwd=where, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = ask("rev-parse", "--short=10", "HEAD")
    if not commit:
        return "unknown"
    return f"{commit} with changes" if ask("status", "--porcelain", "--untracked-files=no") else commit


def to_json(header: Header, rows: Sequence[Row]) -> str:
    """One JSON object: ``header`` and ``rows``."""
    report = {"header": header.as_dict(), "rows": [row.as_dict() for row in rows]}
    return json.dumps(report, indent=2)


_COLUMNS: Final = ("figure", "measured", "unit", "target", "", "floor", "ratio")


def print_header(header: Header, console: Console | None = None) -> None:
    """Print where figures come from."""
    console = console or Console()
    for name, value in header.as_dict().items():
        shown = " ".join(f"{load:.2f}" for load in value) if isinstance(value, tuple) else value
        console.print(f"{name.replace('_', ' ')}: {shown}", highlight=False)


def print_table(header: Header, rows: Sequence[Row], console: Console | None = None) -> None:
    """Print the header and a table of the rows; as Markdown where there is no terminal."""
    console = console or Console()
    print_header(header, console)
    if not console.is_terminal:
        console.file.write("\n" + to_markdown(rows))
        return
    table = Table(*_COLUMNS)
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)


def to_markdown(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    return markdown(_COLUMNS, ("---", "--:", "---", "---", "---", "--:", "--:"), map(_cells, rows))


def markdown(titles: Iterable[str], alignments: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; an alignment is ``---`` or, to the right, ``--:``."""
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (titles, alignments, *rows))


def _cells(row: Row) -> tuple[str, ...]:
    met = {None: "", True: "ok", False: "missed"}[row.is_met]
    floor = "" if row.floor is None else format_number(row.floor)
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    return row.name, format_number(row.value), row.unit, row.target, met, floor, ratio


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """The value below which ``fraction`` of the ordered values are; NaN if there are none."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * fraction))] if ordered else float("nan")


def format_number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
