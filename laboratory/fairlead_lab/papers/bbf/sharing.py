"""Figures 2 to 6 of paper 004: one resource, resources of one's own, and the grace period."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Final

from fairlead_lab.papers.bbf.study import Study, program, together
from fairlead_lab.papers.bbf.timesharing.averages import Runs
from fairlead_lab.papers.bbf.timesharing.history import History
from fairlead_lab.papers.bbf.timesharing.program import Program
from fairlead_lab.papers.experiment import RunOptions
from fairlead_lab.papers.statements import Statement, about, between


def _figure_2(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    run = runs[""].example
    blue, red = (run.share(name, "CPU", 5, 11) for name in ("blue", "red"))
    first_second = run.share("blue", "CPU", 5, 6)
    return [
        between("red of the CPU before blue starts", "full use", run.share("red", "CPU", 0, 5), low=1),
        about("blue of the CPU, then", blue, 0.67, 0.02),
        about("red of the CPU, then", red, 0.33, 0.02),
        between("quanta of blue for one of red", "two", blue / red, low=1.8, high=2.2),
        between("blue of the CPU in its first second", "immediately", first_second, low=0.55, high=0.75),
        between("blue's end before red's [s]", "terminates first", _gap_s(run, "blue", "red"), low=0.1),
    ]


def _gap_s(run: History, first: str, second: str) -> float:
    return (run.finished_ms[second] - run.finished_ms[first]) / 1000


FIGURE_2: Final = Study(
    id="bbf-fig2",
    title="Two processes, 33 % and 67 %, contend for the CPU; the second comes 5 s later.",
    scenarios=together(
        program("red", 33, "loop 1", "CPU_CS 10 0 NORM"),
        program("blue", 67, "loop 1", "IDLE 5 0 NORM", "CPU_CS 5 0 NORM"),
    ),
    claims=_figure_2,
    notes="By exact shares blue would end after 12.5 s and red after 15.",
)


_FOUR: Final = {"40%": 40, "30%": 30, "20%": 20, "10%": 10}


def _figure_3(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    run = runs[""].example
    claims = [
        about(
            f"{name} of the CPU while all run", run.share(name, "CPU", 0, 24), percent / 100, 0.02, text=name
        )
        for name, percent in _FOUR.items()
    ]
    left = dict(_FOUR)
    for ended, after in pairwise(_FOUR):
        gap_s = _gap_s(run, ended, after)
        claims.append(between(f"{after}'s end after {ended}'s [s]", "in decreasing order", gap_s, low=0.1))
        del left[ended]
        entitled = left[after] / sum(left.values())
        share = run.share(after, "CPU", run.finished_ms[ended] / 1000, run.finished_ms[after] / 1000)
        what = f"{after} of the CPU after {ended} ended"
        claims.append(about(what, share, entitled, 0.05, text=f"{entitled:.2f}"))
    return claims


FIGURE_3: Final = Study(
    id="bbf-fig3",
    title="Four processes, 10, 20, 30 and 40 %, contend for the CPU.",
    scenarios=together(
        *[program(name, _FOUR[name], "loop 1", "CPU_CS 10 0 NORM") for name in reversed(_FOUR)]
    ),
    claims=_figure_3,
    notes="By exact shares they would end after 40, 35, 30 and 25 s.",
)


def _figure_4(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    many = runs[""]
    total_s = fmean(run.total_s(name, run.ends_ms / 1000) for run in many.histories for name in run.processes)
    early, late = (
        max(pstdev(run.total_s(name, until_s) for run in many.histories) for name in many.processes)
        for until_s in (30, 90)
    )
    outcome = "50 s, the average comes out right"
    return [
        between("blue of the network", "nearly 100 %", many.share("blue", "NETWORK", 5, 40), low=0.97),
        about("green of the disk", many.share("green", "DISK", 5, 40), 0.67, 0.02),
        about("red of the disk", many.share("red", "DISK", 5, 40), 0.33, 0.02),
        between("mean use by a process [s]", outcome, total_s, low=49.5, high=51.5),
        between("deviation while all are active [s]", "no such variations", early, high=0.5),
        between("deviation in the end beyond that [s]", "error bars", late - early, low=0.5),
    ]


def _of_cpu_and(resource: str, name: str, priority: float) -> Program:
    return program(name, priority, "loop 5", "CPU_CS 0.1 0.01 NORM", f"{resource}_CS 10 1 NORM")


FIGURE_4: Final = Study(
    id="bbf-fig4",
    title="Who uses another resource than the others gets more than its entitlement.",
    scenarios=together(
        _of_cpu_and("DISK", "red", 10), _of_cpu_and("DISK", "green", 20), _of_cpu_and("NETWORK", "blue", 70)
    ),
    claims=_figure_4,
    notes="Standard deviations, which the paper does not give, are a tenth of the means.",
    is_averaged=True,
)


_ABSENCE_MS: Final = 300
"""Longer than a turn of blue, shorter than any stay of red elsewhere."""


def _bursts(run: History) -> list[tuple[float, float]]:
    """For each visit of red to the CPU after the first: seconds of unbroken use at its start, and red's share of the visit."""
    together_ms = min(run.finished_ms.values())
    visits: list[list[tuple[int, int]]] = []
    for start_ms, end_ms in run.uses["red", "CPU"].until(together_ms):
        if visits and start_ms - visits[-1][-1][1] <= _ABSENCE_MS:
            visits[-1].append((start_ms, end_ms))
        else:
            visits.append([(start_ms, end_ms)])
    # The last one may have been cut off.
    return [
        (
            (visit[0][1] - visit[0][0]) / 1000,
            sum(end_ms - start_ms for start_ms, end_ms in visit) / (visit[-1][1] - visit[0][0]),
        )
        for visit in visits[1:-1]
    ]


def _unbroken_s(run: History) -> float:
    return fmean(unbroken_s for unbroken_s, _ in _bursts(run))


def _part_of_visits(run: History) -> float:
    return fmean(part for _, part in _bursts(run))


def _figure_5(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    many = runs[""]
    unbroken_s, part = many.mean(_unbroken_s), many.mean(_part_of_visits)
    access = "exclusive access for a short while"
    return [
        between("red on the CPU at a stretch after it returns [s]", access, unbroken_s, low=0.9, high=1.4),
        between("red of the CPU while it wants it", "makes up for the deficit", part, low=0.8, high=0.9),
        about("red of the CPU in all", many.share("red", "CPU", 3, 24), 0.7, 0.03),
    ]


FIGURE_5: Final = Study(
    id="bbf-fig5",
    title="An absence of half a second, within the grace period, costs no entitlement.",
    scenarios=together(
        program("red", 70, "loop 10", "CPU_CS 2 0.2 NORM", "DISK_CS 0.5 0.05 NORM"),
        program("blue", 30, "loop 1", "CPU_CS 15 1.5 NORM"),
    ),
    claims=_figure_5,
    notes="Ten iterations of red and 15 s of blue; standard deviations are a tenth of the means. In half a second red is due "
    "0.35 s, and gains 0.3 s on that in each second in which it has the CPU: for 1.17 s, and so 85 % of its visit.",
    is_averaged=True,
)


def _figure_6(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    part = _part_of_visits(runs[""].example)
    return [about("red of the CPU while it wants it", part, 0.7, 0.08, text="it has to share, 70 to 30")]


FIGURE_6: Final = Study(
    id="bbf-fig6",
    title="A suspension of 4 s, longer than the grace period, does.",
    scenarios=together(
        program("red", 70, "loop 6", "CPU_CS 2 0.2 NORM", "IDLE 4 0.4 NORM"),
        program("blue", 30, "loop 1", "CPU_CS 30 0 NORM"),
    ),
    claims=_figure_6,
    notes="Six iterations of red and 30 s of blue; standard deviations are a tenth of the means.",
)

STUDIES: Final = (FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_6)
