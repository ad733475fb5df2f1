"""Figures 9 to 12: DRF beside slots and beside fairness in CPUs alone, as in section 7.2.

All four have the same rows; each draws, and is judged by, what the paper's figure of that number shows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from fairlead_lab.papers.drf.closed_loop import LARGE, SMALL, Finished, Setup, mean_of_runs
from fairlead_lab.papers.experiment import Cell, Experiment, Result, RunOptions, numbers
from fairlead_lab.papers.statements import Statement, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS: Final = ("policy", "class", "jobs", "mean_response_s")

DRF: Final = "drf"
SLOTS: Final = tuple(f"slots:{number}" for number in range(3, 7))
CPU_ONLY: Final = "max-min:cpus"
POLICIES: Final = (DRF, *SLOTS, CPU_ONLY)

SLOWDOWNS: Final = (0.0, 3.0, 10.0, 30.0)
"""How steeply memory slows a host down: not at all, and with half the speed at 33, 10 and 3 % more than it has."""
PLACEMENTS: Final = ("random", "least-loaded", "heartbeat", "spread")
"""Of slots: that of the figures first. The last one deals tasks by free slots alone, which makes hosts of one kind of task each."""
TASKS_S: Final = (15.0, 30.0, 60.0)
_SEEDS: Final = 8
_SEEDS_OF_SWEEPS: Final = 3
_SIMILAR: Final = 0.2
"""Numbers of jobs this much apart look alike on a chart of bars."""
_MUCH_FEWER: Final = 0.75

Measured = Mapping[str, Mapping[str, Finished]]
"""By policy and class."""


@lru_cache
def _measure(seeds: range, setup: Setup) -> Measured:
    """Measure all policies; cached, because four figures show one experiment."""
    return {
        policy: mean_of_runs(policy, seeds, replace(setup, sees_memory=policy != CPU_ONLY))
        for policy in POLICIES
    }


def _run(figure: "_Figure", options: RunOptions) -> Result:
    first = options.seed * _SEEDS
    seeds = range(first, first + (1 if options.is_quick else _SEEDS))
    measured = _measure(seeds, Setup())
    rows: list[list[Cell]] = [
        [policy, kind, found.jobs, found.mean_response_s]
        for policy, by_class in measured.items()
        for kind, found in by_class.items()
    ]
    notes = [_MODEL, f"Means of {len(seeds)} run{'s' * (len(seeds) > 1)}."]
    if options.is_quick:
        notes.append("Other steepnesses, run times and placements are swept without --quick.")
    else:
        fewer = seeds[:_SEEDS_OF_SWEEPS]
        notes += [
            _sweep_of_slowdowns(fewer),
            _sweep_of_run_times(fewer),
            _sweep_of_placements(seeds),
            _with_memory_seen(seeds, measured),
        ]
    return Result(rows=rows, verdict=judge(figure.statements(measured)), notes=" ".join(notes))


_MODEL: Final = (
    "Modelled: tasks run 15 to 45 s, drawn evenly (the paper does not say); a host promised more memory than it has runs all of its tasks "
    "at 1 / (1 + 10 x excess / capacity), and shares its CPUs evenly where too many are promised. Slots are "
    "placed on any host with a free one, at random. Under max-min:cpus the master is not "
    "told of memory, as in the paper. A user's next job comes when the last has finished; responses are those of finished jobs, "
    "which flatters whoever finishes few."
)


def _sweep_of_slowdowns(seeds: range) -> str:
    parts = [
        f"{steepness:g}: {_beaten_by(_measure(seeds, Setup(memory_slowdown=steepness)))}"
        for steepness in SLOWDOWNS
    ]
    return f"Who finishes more jobs of a class than DRF, by steepness of the slowdown: {'; '.join(parts)}."


def _sweep_of_run_times(seeds: range) -> str:
    parts = [f"{task_s:g} s: {_beaten_by(_measure(seeds, Setup(task_s=task_s)))}" for task_s in TASKS_S]
    return f"By mean run time: {'; '.join(parts)}."


def _sweep_of_placements(seeds: range) -> str:
    parts = []
    for placement in PLACEMENTS:
        found = [mean_of_runs(policy, seeds, Setup(placement=placement)) for policy in SLOTS]
        jobs = ", ".join(f"{by_class[SMALL].jobs:.1f} and {by_class[LARGE].jobs:.1f}" for by_class in found)
        parts.append(f"{placement}: {jobs}")
    return f"Small and large jobs with 3 to 6 slots, by placement: {'; '.join(parts)}."


def _beaten_by(measured: Measured) -> str:
    """Name the policies that finish more jobs of a class than DRF, with both numbers."""
    better = [
        f"{policy} ({by_class[kind].jobs:.1f} {kind} jobs to {measured[DRF][kind].jobs:.1f})"
        for policy, by_class in measured.items()
        for kind in by_class
        if by_class[kind].jobs > measured[DRF][kind].jobs
    ]
    return ", ".join(better) or "nobody"


def _with_memory_seen(seeds: range, measured: Measured) -> str:
    seen = mean_of_runs(CPU_ONLY, seeds, Setup())
    drf = measured[DRF]
    return (
        f"A max-min:cpus that looks at memory when it places tasks, as ours does on a cluster, finishes {seen[SMALL].jobs:.1f} small and "
        f"{seen[LARGE].jobs:.1f} large jobs where DRF finishes {drf[SMALL].jobs:.1f} and {drf[LARGE].jobs:.1f}."
    )


class _Figure:
    """One of the four: jobs or responses of one class."""

    def __init__(self, kind: str, *, shows_jobs: bool) -> None:
        self.kind = kind
        self.shows_jobs = shows_jobs

    @property
    def title(self) -> str:
        """What it shows."""
        what = "jobs finished in ten minutes" if self.shows_jobs else "mean response"
        return f"{what}, {self.kind} jobs: DRF, slots, and CPU fairness"

    def statements(self, measured: Measured) -> list[Statement]:
        """Compare the measurements with what the paper says of the figure."""
        if self.shows_jobs:
            return [self._few_in_slots(measured), self._by_cpu(measured)]
        return [self._shortest(measured)]

    def _few_in_slots(self, measured: Measured) -> Statement:
        drf = measured[DRF][self.kind].jobs
        slots = [measured[policy][self.kind].jobs for policy in SLOTS]
        listed = ", ".join(f"{jobs:.3g}" for jobs in slots)
        return Statement(
            f"DRF finishes {drf:.3g} {self.kind} jobs, 3 to 6 slots {listed}",
            max(slots) < drf,
            "the paper: fewer with any number of slots",
        )

    def _by_cpu(self, measured: Measured) -> Statement:
        drf, cpu = measured[DRF][self.kind].jobs, measured[CPU_ONLY][self.kind].jobs
        found = f"CPU fairness {cpu:.3g}"
        if self.kind == LARGE:
            return Statement(
                found, cpu <= _MUCH_FEWER * drf, "the paper: far fewer, for want of memory on some nodes"
            )
        return Statement(
            found,
            abs(cpu - drf) <= _SIMILAR * drf,
            "the paper: about as many; there the tasks with much memory suffered, here all of a node that thrashes do",
        )

    def _shortest(self, measured: Measured) -> Statement:
        times = {policy: by_class[self.kind].mean_response_s for policy, by_class in measured.items()}
        listed = ", ".join(f"{policy} {_seconds(time_s)}" for policy, time_s in times.items())
        others = [time_s for policy, time_s in times.items() if policy != DRF and time_s is not None]
        drf = times[DRF]
        return Statement(
            f"mean response of {self.kind} jobs: {listed}",
            drf is not None and drf < min(others),
            "the paper: DRF's is shortest",
        )

    def draw(self, figure: "Figure", result: Result) -> None:
        """Draw a bar for each policy."""
        rows = [row for row in result.rows if row[1] == self.kind]
        axes = figure.add_subplot()
        heights = numbers(rows, 2 if self.shows_jobs else 3)
        bars = axes.bar([str(row[0]) for row in rows], heights, color="tab:blue")
        axes.bar_label(bars, [f"{height:.0f}" if height else "none" for height in heights])
        what = "finished in ten minutes" if self.shows_jobs else "mean response (s)"
        axes.set_ylabel(f"{self.kind} jobs: {what}")


def _seconds(time_s: float | None) -> str:
    return "none" if time_s is None else f"{time_s:.0f} s"


def _experiment(number: int, figure: _Figure) -> Experiment:
    return Experiment(f"drf-fig{number}", figure.title, COLUMNS, partial(_run, figure), figure.draw)


# The text names jobs before responses; that large ones come first is the order of the talk.
EXPERIMENTS: Final[Sequence[Experiment]] = (
    _experiment(9, _Figure(LARGE, shows_jobs=True)),
    _experiment(10, _Figure(SMALL, shows_jobs=True)),
    _experiment(11, _Figure(LARGE, shows_jobs=False)),
    _experiment(12, _Figure(SMALL, shows_jobs=False)),
)
