"""One figure of paper 004 as an experiment: programs, how often they are run, and what the text says of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fairlead_lab.papers.bbf.timesharing.averages import USAGE_COLUMNS, Runs, run_many
from fairlead_lab.papers.bbf.timesharing.charts import Panel, draw_panels
from fairlead_lab.papers.bbf.timesharing.program import Program, parse
from fairlead_lab.papers.experiment import Cell, Experiment, Result, RunOptions
from fairlead_lab.papers.statements import Statement, judge_by_count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS: Final = 100
RUNS_QUICK: Final = 20
"""Enough for mean finish times within a few tenths of a second of those of 100 runs."""


def program(name: str, priority: float, *requests: str) -> Program:
    """Parse a program from its priority and the lines of its requests."""
    return parse("\n".join(["# Priority:", f"{priority:g}", "# Requests:", *requests]), name)


def together(*programs: Program) -> dict[str, tuple[Program, ...]]:
    """The one scenario of a figure that has no other."""
    return {"": programs}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsResult(Result):
    """A result with the panels of its plot, which rows alone do not give."""

    panels: tuple[Panel, ...]


Judge = Callable[[Mapping[str, Runs], RunOptions], Sequence[Statement]]
"""Compares the runs, by scenario, with the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One figure: its programs, and how its runs are judged."""

    id: str
    title: str
    scenarios: Mapping[str, tuple[Program, ...]]
    """Programs that run together, by what is added to the names of processes where a figure has several such sets."""
    claims: Judge
    notes: str
    is_averaged: bool = False
    """Whether the paper shows the mean of many runs; else one run."""

    def experiment(self) -> Experiment:
        """Return the figure as an experiment of ``fairlead reproduce``."""
        return Experiment(self.id, self.title, USAGE_COLUMNS, self.run, draw)

    def run(self, options: RunOptions) -> RunsResult:
        """Run the programs and compare."""
        runs_by_scenario = self.simulate(options)
        found: list[Sequence[Cell]] = []
        finish_s: dict[str, float] = {}
        panels = []
        for scenario, runs in runs_by_scenario.items():
            called = {process: f"{process} {scenario}".rstrip() for process in runs.processes}
            averages = runs.averages()
            found += [
                (at_s, called[process], resource, used_s)
                for at_s, process, resource, used_s in averages.rows()
            ]
            finish_s |= {called[process]: at_s for process, at_s in runs.finish_s().items()}
            panels.append(Panel(runs.example, averages if self.is_averaged else None, scenario))
        claims = self.claims(runs_by_scenario, options)
        how = f"Mean of {self._times(options)} runs." if self.is_averaged else "One run."
        return RunsResult(
            rows=found,
            verdict=judge_by_count(claims),
            notes="\n".join([f"{how} {self.notes}", *[f"- {claim}" for claim in claims]]),
            finish_s=finish_s,
            panels=tuple(panels),
        )

    def simulate(self, options: RunOptions, policy: str = "bbf") -> dict[str, Runs]:
        """Run every scenario; tests pass another policy to see verdicts fail."""
        return {
            scenario: run_many(programs, self._times(options), policy=policy, seed=options.seed)
            for scenario, programs in self.scenarios.items()
        }

    def _times(self, options: RunOptions) -> int:
        if not self.is_averaged:
            return 1
        return RUNS_QUICK if options.is_quick else RUNS


def draw(figure: "Figure", result: Result) -> None:
    """Draw one run as lanes and lines, and below it the mean of all runs if averaged; a column for each scenario."""
    assert isinstance(result, RunsResult), "expected the result of a study"
    draw_panels(figure, result.panels)
