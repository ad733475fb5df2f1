"""Figure 14: by how much DRF reduces completion times on Facebook's work, beside 12 slots a node, by size of the job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fairlead_lab.papers.drf import facebook
from fairlead_lab.papers.drf.facebook import HEAVY_SHARE, Part, Work
from fairlead_lab.papers.experiment import Cell, Experiment, Result, RunOptions, numbers
from fairlead_lab.papers.statements import Statement, judge
from fairlead_lab.study.run import run_policy
from fairlead_lab.study.study import SimulationOptions
from fairlead_sim.pool.hosts import Slowdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS: Final = (
    "memory_heavy_share", "memory_slowdown", "job_size", "jobs", "drf_mean_s", "slots_mean_s",
    "mean_reduction", "reduction_of_mean",
)  # fmt: skip
"""``mean_reduction`` is the mean over the jobs of 1 - completion under DRF / completion in slots."""

HEAVY_SHARES: Final = (0.1, HEAVY_SHARE, 0.4)
"""Shares of map stages that are heavy on memory; the middle one is that of the trace's model."""
STEEPNESS: Final = Slowdown().memory
SIZE_ENDS: Final = (500, 1000, 1500, 2000, 2500, 3000)
"""Largest number of tasks of each class of jobs but the last, which has no limit."""

_QUICK: Final = Part(from_s=12 * 3600, until_s=16 * 3600, divisor=80)
_WHOLE: Final = Part(divisor=40)
_PRINTED: Final = (-0.03, 0.66)
"""Mean reductions that the paper gives for the smallest and for the largest jobs."""
_NO_BETTER: Final = 0.1
"""A reduction below it is as good as none."""
_CLOSE: Final = 0.2
"""Tolerance for the paper's number for large jobs, since the trace is another one and demands are modelled."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One run of the same jobs under each of both policies."""

    work: Work
    heavy_share: float
    memory_slowdown: float
    drf_ms: Sequence[int]
    """Completion of each job."""
    slots_ms: Sequence[int]

    def rows(self) -> list[list[Cell]]:
        """Return a row for each class of sizes that has jobs."""
        found = []
        for low, high in zip((0, *SIZE_ENDS), (*SIZE_ENDS, None), strict=True):
            places = [
                place
                for place, size in enumerate(self.work.sizes)
                if low < size and (high is None or size <= high)
            ]
            if places:
                found.append(self._row(f"{low + 1}-{high or ''}", places))
        return found

    def _row(self, size: str, places: Sequence[int]) -> list[Cell]:
        drf = [self.drf_ms[place] / 1000 for place in places]
        slots = [self.slots_ms[place] / 1000 for place in places]
        reductions = [1 - less / more for less, more in zip(drf, slots, strict=True)]
        count = len(places)
        return [
            self.heavy_share,
            self.memory_slowdown,
            size,
            count,
            sum(drf) / count,
            sum(slots) / count,
            sum(reductions) / count,
            1 - sum(drf) / sum(slots),
        ]


def _completions_ms(work: Work, part: Part, policy: str, memory_slowdown: float, seed: int) -> Sequence[int]:
    options = SimulationOptions(seed=seed, is_user_per_job=True, memory_slowdown=memory_slowdown)
    result = run_policy(work.jobs, facebook.nodes(part), policy, options)
    assert result.jobs_finished == len(work.jobs), "every task fits on a node, and nothing waits for ever"
    return result.completions_ms


def _pairs(part: Part, seed: int, *, with_slowdowns: bool) -> list[Pair]:
    found = []
    for heavy_share in HEAVY_SHARES:
        work = facebook.work(part, heavy_share, seed)
        # DRF promises nothing twice, so that how much that would slow tasks down means nothing to it.
        drf_ms = _completions_ms(work, part, "drf", STEEPNESS, seed)
        swept = (STEEPNESS, 0.0) if with_slowdowns and heavy_share == HEAVY_SHARE else (STEEPNESS,)
        for slowdown in swept:
            slots_ms = _completions_ms(work, part, facebook.SLOTS, slowdown, seed)
            found.append(Pair(work, heavy_share, slowdown, drf_ms, slots_ms))
    return found


def _run(options: RunOptions) -> Result:
    part = _QUICK if options.is_quick else _WHOLE
    pairs = _pairs(part, options.seed, with_slowdowns=not options.is_quick)
    rows = [row for pair in pairs for row in pair.rows()]
    by_share = {pair.heavy_share: pair.rows() for pair in pairs if pair.memory_slowdown == STEEPNESS}
    statements, within = compare(by_share)
    notes = (
        f"{pairs[0].work.source} {part.nodes} nodes and a like part of the tasks of the paper's 400 nodes; hours {part.from_s // 3600} to "
        f"{part.until_s // 3600}. memory_heavy_share is that of map stages (reduces: 2.25 times it) and swept, since it is assumed; "
        "memory_slowdown is how steeply a node slows down that slots promised more memory than it has. job_size: tasks before the division. "
        f"Each job has shares of its own. The verdict is about a share of {HEAVY_SHARE:g}."
    )
    return Result(rows=rows, verdict=judge(statements, within=within), notes=notes)


def compare(by_share: Mapping[float, Sequence[Sequence[Cell]]]) -> tuple[list[Statement], str]:
    """Compare rows, by share of memory-heavy work, with the text; return statements and the distance of its two numbers."""
    rows = by_share[HEAVY_SHARE]
    small, *_, large = reductions = numbers(rows, 6)
    furthest = max(abs(small - _PRINTED[0]), abs(large - _PRINTED[1]))
    largest = ", ".join(
        f"{float(others[-1][6] or 0):.0%} where {share:.0%} of map stages are"
        for share, others in by_share.items()
    )
    statements = [
        Statement(
            f"jobs of {rows[0][2]} tasks take {small:.0%} less under DRF",
            abs(small) < _NO_BETTER,
            "printed: -3 %, no better",
        ),
        Statement(
            "all larger ones gain more", small < min(reductions[1:]), "the paper: large jobs gain most"
        ),
        Statement(
            f"those of {rows[-1][2]} tasks {large:.0%} less",
            abs(large - _PRINTED[1]) <= _CLOSE,
            "printed: 66 %, on a trace that is not published; how much depends on how much of the work is heavy on memory: "
            f"{largest}",
        ),
    ]
    return (
        statements,
        f"{100 * furthest:.0f} percentage points of -3 % and 66 %, on other work than the paper's",
    )


def _draw(figure: "Figure", result: Result) -> None:
    """Draw bars by size of the job, side by side for each share of memory-heavy work."""
    axes = figure.add_subplot()
    sizes = list(dict.fromkeys(str(row[2]) for row in result.rows))
    width = 0.8 / len(HEAVY_SHARES)
    for number, share in enumerate(HEAVY_SHARES):
        own = {str(row[2]): float(row[6] or 0) for row in result.rows if row[:2] == [share, STEEPNESS]}
        places = [place + (number - 1) * width for place in range(len(sizes))]
        axes.bar(places, [own.get(size, 0.0) for size in sizes], width, label=f"{share:.0%} heavy on memory")
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(sizes)), sizes)
    axes.set_xlabel("tasks of the job")
    axes.set_ylabel("mean reduction of completion time")
    axes.legend()


EXPERIMENTS: Final = (
    Experiment(
        "drf-fig14",
        "reduction of completion times on Facebook's work, by size of the job",
        COLUMNS,
        _run,
        _draw,
    ),
)
