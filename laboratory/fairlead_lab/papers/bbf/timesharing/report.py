"""Reports runs of a user's programs as JSON, CSV and a plot."""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, Final

from fairlead_lab.papers.bbf.timesharing.averages import DIGITS, STEP_S, USAGE_COLUMNS, Averages, Runs
from fairlead_lab.papers.bbf.timesharing.charts import Panel, draw_panels
from fairlead_lab.papers.bbf.timesharing.program import Program
from fairlead_lab.plotting import save

TURNS_COLUMNS: Final = ("start_s", "end_s", "process", "resource")

SAMPLES_MAX: Final = 2_000
"""Twice as many as a plot has dots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Programs, how they were run, and their runs."""

    programs: tuple[Program, ...]
    policy: str
    seed: int
    runs: Runs

    def processes(self) -> list[dict[str, Any]]:
        """One object for each process: priority, mean and deviation of its end, mean use of each resource, in seconds.

        A process that is not done in every run, when time is limited, has no end.
        """
        return [self._process(program) for program in self.programs]

    def bottlenecks(self) -> dict[str, float]:
        """By resource, for what part of all runs the policy took it for a bottleneck; only those that ever were one."""
        histories = self.runs.histories
        parts = {
            resource: fmean(
                history.bottleneck(resource, 0, max(1, history.ends_ms) / 1000) for history in histories
            )
            for resource in self.runs.example.resources
        }
        return {resource: round(part, DIGITS) for resource, part in parts.items() if part > 0}

    def averages(self) -> Averages:
        """Cumulative use every half second or, in long runs, at ``SAMPLES_MAX`` times."""
        return self.runs.averages(STEP_S * max(1, ceil(self.runs.end_s / STEP_S / SAMPLES_MAX)))

    def as_json(self) -> dict[str, Any]:
        """The whole report for JSON."""
        return {
            "policy": self.policy,
            "seed": self.seed,
            "runs": len(self.runs.histories),
            "resources": list(self.runs.example.resources),
            "processes": self.processes(),
            "finish_s": self.runs.finish_s(),
            "bottlenecks": self.bottlenecks(),
            "columns": list(USAGE_COLUMNS),
            "rows": [list(row) for row in self.averages().rows()],
        }

    def _process(self, program: Program) -> dict[str, Any]:
        histories = self.runs.histories
        ends_s = [
            history.finished_ms[program.name] / 1000
            for history in histories
            if program.name in history.finished_ms
        ]
        is_done = len(ends_s) == len(histories)
        return {
            "name": program.name,
            "priority": program.priority,
            "finish_s": round(fmean(ends_s), DIGITS) if is_done else None,
            "finish_deviation_s": round(pstdev(ends_s), DIGITS) if is_done else None,
            "used_s": {
                resource: round(
                    fmean(each.used_ms(program.name, resource, each.ends_ms) for each in histories) / 1000,
                    DIGITS,
                )
                for resource in self.runs.example.resources
            },
        }


def write(folder: Path, report: Report) -> None:
    """Write ``timeshare.json``, ``usage.csv``, ``turns.csv`` (of the first run) and ``timeshare.png`` into a folder.

    Raises:
        PlotsUnavailable: all are there but the picture.
        OSError: a file cannot be written.
    """
    (folder / "timeshare.json").write_text(json.dumps(report.as_json(), indent=1) + "\n")
    averages = report.averages()
    _write_csv(folder / "usage.csv", USAGE_COLUMNS, averages.rows())
    _write_csv(folder / "turns.csv", TURNS_COLUMNS, _turn_rows(report.runs))
    is_averaged = len(report.runs.histories) > 1
    panel = Panel(report.runs.example, averages if is_averaged else None)
    save(folder / "timeshare.png", lambda figure: draw_panels(figure, [panel]))


def _write_csv(path: Path, columns: Sequence[str], rows: Iterator[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


def _turn_rows(runs: Runs) -> Iterator[Sequence[object]]:
    """Turns of the first run, by time; turns of one process without a gap between them are one."""
    history = runs.example
    turns = [
        (start_ms / 1000, end_ms / 1000, process, resource)
        for (process, resource), periods in history.uses.items()
        for start_ms, end_ms in periods.until(history.ends_ms)
    ]
    yield from sorted(turns)
