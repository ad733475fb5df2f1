"""Runs the same programs many times with other service times, and takes means."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf
from statistics import fmean, pstdev
from typing import Final

from fairlead_lab.papers.bbf.timesharing.history import History
from fairlead_lab.papers.bbf.timesharing.program import Program, ProgramError
from fairlead_lab.papers.bbf.timesharing.simulation import QUANTUM_MS, Timesharing

USAGE_COLUMNS: Final = ("time_s", "process", "resource", "used_s")

DIGITS: Final = 6
"""Digits of seconds in outputs: means of whole milliseconds, rounded well above the error of floats."""

STEP_S: Final = 0.5
"""Time between two samples of the use."""

TURNS_MAX: Final = 20_000_000
"""Limit for all runs together: about a quarter of an hour, and up to more than a gigabyte of memory."""


@dataclass(frozen=True, slots=True)
class Averages:
    """Cumulative use at some times since the start, averaged over runs."""

    times_s: tuple[float, ...]
    used_s: dict[tuple[str, str], tuple[float, ...]]
    """By process and resource that it ever used, the mean at each time."""
    progress_s: dict[str, tuple[float, ...]]
    """By process, the mean of what it used of all resources together."""
    deviation_s: dict[str, tuple[float, ...]]
    """By process, the standard deviation of that from run to run."""

    def rows(self) -> Iterator[tuple[float, str, str, float]]:
        """The means as rows of ``USAGE_COLUMNS``, by time."""
        for place, time_s in enumerate(self.times_s):
            for (process, resource), used in self.used_s.items():
                yield time_s, process, resource, round(used[place], DIGITS)


@dataclass(frozen=True, slots=True)
class Runs:
    """One or more runs of the same programs."""

    histories: tuple[History, ...]

    @property
    def example(self) -> History:
        """The first run, which charts show by itself."""
        return self.histories[0]

    @property
    def processes(self) -> tuple[str, ...]:
        """In the order of the programs."""
        return self.example.processes

    @property
    def end_s(self) -> float:
        """The end of the longest run."""
        return max(history.ends_ms for history in self.histories) / 1000

    def mean(self, measure: Callable[[History], float]) -> float:
        """The mean of a measure over the runs."""
        return fmean(map(measure, self.histories))

    def share(self, process: str, resource: str, from_s: float, to_s: float) -> float:
        """For what part of the time between two times the process used the resource, on average."""
        return self.mean(lambda run: run.share(process, resource, from_s, to_s))

    def utilisation(self, resource: str, from_s: float, to_s: float) -> float:
        """For what part of the time between two times anybody used the resource, on average."""
        return self.mean(lambda run: run.utilisation(resource, from_s, to_s))

    def progress(self, process: str, from_s: float, to_s: float) -> float:
        """For what part of the time between two times the process used anything, on average."""
        return self.mean(lambda run: run.progress(process, from_s, to_s))

    def bottleneck(self, resource: str, from_s: float, to_s: float) -> float:
        """For what part of the time between two times the resource was a bottleneck, on average."""
        return self.mean(lambda run: run.bottleneck(resource, from_s, to_s))

    def finish_s(self) -> dict[str, float]:
        """Mean finish time by process; processes that did not finish in every run are left out."""
        return {
            process: round(fmean(history.finished_ms[process] for history in self.histories) / 1000, DIGITS)
            for process in self.processes
            if all(process in history.finished_ms for history in self.histories)
        }

    def averages(self, step_s: float = STEP_S) -> Averages:
        """Samples from the start to the end of the longest run."""
        times_s = tuple([number * step_s for number in range(ceil(self.end_s / step_s) + 1)])
        pairs = [
            (process, resource)
            for process in self.processes
            for resource in self.example.resources
            if any((process, resource) in history.uses for history in self.histories)
        ]
        samples = {pair: [self._used_s(*pair, time_s) for time_s in times_s] for pair in pairs}
        nothing = [[0.0] * len(self.histories)] * len(times_s)
        progress: dict[str, tuple[float, ...]] = {}
        deviation: dict[str, tuple[float, ...]] = {}
        for process in self.processes:
            own = [samples[pair] for pair in pairs if pair[0] == process] or [nothing]
            # By time, then by run: the sum over resources.
            totals = [
                [sum(by_resource) for by_resource in zip(*at, strict=True)] for at in zip(*own, strict=True)
            ]
            progress[process] = tuple([fmean(at) for at in totals])
            deviation[process] = tuple([pstdev(at) for at in totals])
        used = {pair: tuple([fmean(at) for at in samples[pair]]) for pair in pairs}
        return Averages(times_s, used, progress, deviation)

    def _used_s(self, process: str, resource: str, time_s: float) -> list[float]:
        at_ms = round(time_s * 1000)
        return [history.used_ms(process, resource, at_ms) / 1000 for history in self.histories]


def run_many(
    programs: Sequence[Program],
    runs: int,
    *,
    policy: str = "bbf",
    seed: int = 1,
    until_s: float | None = None,
    quantum_ms: int = QUANTUM_MS,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Runs:
    """Run the programs so many times; run number n of a seed is the same however many there are.

    Args:
        programs: one for each process.
        runs: how many.
        policy: as ``Timesharing`` has it.
        seed: of all service times.
        until_s: since the start of each run; None: when all processes are done.
        quantum_ms: the longest turn on a resource that can be switched.
        progress: called now and then with the turns taken in all runs and, roughly, the turns there will be.

    Raises:
        ProgramError: as ``Timesharing``, and if that would take more turns than ``TURNS_MAX``.
        AllocationError: as ``Timesharing``.
    """
    turns = runs * sum(
        program.expected_turns(quantum_ms / 1000) * min(1, (until_s or inf) / program.expected_s())
        for program in programs
    )
    if turns > TURNS_MAX:
        raise ProgramError(
            f"programs: expected at most {TURNS_MAX:,} turns in all runs, got about {turns:,.0f}: "
            "fewer runs or an earlier end would do"
        )
    simulations = [
        Timesharing(programs, policy=policy, seed=f"{seed}/{run}", quantum_ms=quantum_ms)
        for run in range(runs)
    ]
    histories: list[History] = []
    taken = 0
    for simulation in simulations:
        before = taken

        def tell(own: int, before: int = before) -> None:
            progress(before + own, ceil(turns))

        histories.append(simulation.run(until_s, on_turns=tell))
        taken += simulation.turns
    return Runs(tuple(histories))
