"""Defines an experiment: one figure or table of a paper, computed again and compared with what the paper prints."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | int | float | bool | None

Row = Sequence[Cell]

Draw = Callable[["Figure", "Result"], None]
"""Draws a result on an empty figure."""

PAPERS: Final[Mapping[str, str]] = {
    "pf": "000",
    "drf": "001",
    "baa": "003",
    "bbf": "004",
}
"""Number of each paper, as in ``docs/errata.md``, by the beginning of its experiments' ids."""


@unique
class Agreement(Enum):
    """How what was computed compares with what the paper prints."""

    AGREES = "agrees"
    WITHIN = "agrees within"
    """Apart by a stated difference: the error of reading a chart, or chance in a simulation."""
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison in one line."""

    agreement: Agreement
    detail: str = ""
    """The difference and its reason; where the paper is wrong, the place in ``docs/errata.md`` that proves it."""

    def __str__(self) -> str:
        joint = " " if self.agreement is Agreement.WITHIN else ": "
        return f"{self.agreement.value}{joint}{self.detail}" if self.detail else self.agreement.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an experiment found."""

    rows: Sequence[Row]
    """In the order of the experiment's columns."""
    verdict: Verdict
    notes: str = ""
    """What a reader must know: what is modelled, which parameters the paper leaves open, how wide the intervals are."""
    finish_s: Mapping[str, float] = field(default_factory=dict)
    """Mean finish time by process, for experiments in which processes finish; empty elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How thoroughly an experiment is run."""

    seed: int = 1
    """Seed of everything random; the same seed gives the same result, byte for byte."""
    is_quick: bool = False
    """A smaller run with wider intervals, seconds instead of minutes."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One figure or table of a paper."""

    id: str
    """Such as ``drf-fig5``: what follows the hyphen is the figure."""
    title: str
    """What it shows, in one line."""
    columns: tuple[str, ...]
    run: Callable[[RunOptions], Result]
    """Computes the result, which depends on the options alone."""
    draw: Draw
    """Draws the result as the paper does."""

    @property
    def paper(self) -> str:
        """The number of the paper."""
        return PAPERS[self.id.partition("-")[0]]

    @property
    def figure(self) -> str:
        """Its name within the paper: ``fig5``, ``table2``, ``light``."""
        return self.id.partition("-")[2]

    def as_json(self, result: Result, seed: int) -> dict[str, object]:
        """The result for JSON."""
        found: dict[str, object] = {
            "id": self.id,
            "paper": self.paper,
            "figure": self.figure,
            "title": self.title,
            "columns": list(self.columns),
            "rows": [list(row) for row in result.rows],
            "seed": seed,
            "notes": result.notes,
            "verdict": str(result.verdict),
        }
        if result.finish_s:
            found["finish_s"] = dict(result.finish_s)
        return found

    def records(self, result: Result) -> list[dict[str, Cell]]:
        """The rows by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in result.rows]


def numbers(rows: Iterable[Row], column: int) -> list[float]:
    """The cells of one column of rows, by its place, as numbers; an empty cell is 0."""
    return [float(row[column] or 0) for row in rows]
