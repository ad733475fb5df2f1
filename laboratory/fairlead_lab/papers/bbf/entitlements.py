"""Figures 7 to 11 of paper 004: entitlements where processes use several resources."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from fairlead_lab.papers.bbf.study import RUNS_QUICK, Study, program, together
from fairlead_lab.papers.bbf.timesharing.averages import Runs, run_many
from fairlead_lab.papers.bbf.timesharing.program import Program
from fairlead_lab.papers.experiment import RunOptions
from fairlead_lab.papers.statements import Statement, about, between


def _two_resources(red: float, blue: float, green: float, width_s: float = 0) -> tuple[Program, ...]:
    """Red on the CPU, blue on the disk, green on the CPU first and then on both in turns; ``width_s`` of each use of 0.1 s."""
    times, use_s = (100, 0.1) if width_s else (1, 10)
    in_turns = (f"DISK_CS 0.1 {width_s} NORM", f"CPU_CS 0.1 {width_s} NORM")
    return (
        program("red", red, f"loop {times}", f"CPU_CS {use_s} {width_s} NORM"),
        program("blue", blue, f"loop {times}", f"DISK_CS {use_s} {width_s} NORM"),
        program("green", green, "loop 1", "CPU_CS 2 0 NORM", "loop 40", *in_turns),
    )


def _figure_7(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    run = runs[""].example
    first = run.share("green", "CPU", 0, 6)
    return [
        between("blue of the disk at first", "no contention", run.share("blue", "DISK", 0, 5), low=1),
        about("green of the CPU at first", first, 0.33, 0.03, text="its relative priority, 33 %"),
        about("red of the CPU", run.share("red", "CPU", 7, 11), 0.67, 0.03),
        about("blue of the disk", run.share("blue", "DISK", 7, 11), 0.67, 0.03),
        about("green of the CPU", run.share("green", "CPU", 7, 11), 0.33, 0.03),
        about("green of the disk", run.share("green", "DISK", 7, 11), 0.33, 0.03),
        about("green in all", run.progress("green", 7, 11), 0.67, 0.03),
    ]


FIGURE_7: Final = Study(
    id="bbf-fig7",
    title="Three processes on two resources: 67 % for one's own, 33 % of each for who uses both.",
    scenarios=together(*_two_resources(40, 40, 20)),
    claims=_figure_7,
    notes="By exact shares green would begin with the disk after 6 s.",
)


def _figure_8(runs: Mapping[str, Runs], options: RunOptions) -> Sequence[Statement]:
    claims = []
    for scenario, programs in FIGURE_8.scenarios.items():
        run = runs[scenario].example
        green = run.progress("green", 5, 11)
        for name, resource in (("red", "CPU"), ("blue", "DISK")):
            share = run.share(name, resource, 5, 11)
            own = run.share("green", resource, 5, 11)
            what = f"green's progress over {name}'s, {scenario}"
            claims += [
                about(f"{name} of its resource, {scenario}", share, 0.5, 0.03),
                about(f"green of the same, {scenario}", own, 0.5, 0.03),
                between(what, "double", green / share, low=1.9, high=2.1),
            ]
        red, blue, priority = (each.priority for each in programs)
        random = run_many(_two_resources(red, blue, priority, 0.05), RUNS_QUICK, seed=options.seed)
        rates = {name: random.progress(name, 5, 11) for name in random.processes}
        what = f"the same with random service times, {scenario}"
        rate = rates["green"] / fmean((rates["red"], rates["blue"]))
        claims.append(between(what, "about the same rate", rate, low=0.85, high=1.15))
    return claims


FIGURE_8: Final = Study(
    id="bbf-fig8",
    title="The same for equal priorities, and for 25, 25 and 50: twice the progress, and no more.",
    scenarios={"33:33:33": _two_resources(33, 33, 33), "25:25:50": _two_resources(25, 25, 50)},
    claims=_figure_8,
    notes="Names say the priorities of red, blue and green.",
)

_OTHERS: Final = ("red", "green", "blue")


def _requests(purple: float, other: float, times: int) -> tuple[Program, ...]:
    """Four processes that run the same iterations."""
    lines = (f"loop {times}", "NETWORK_CS 0.5 0.05 NORM", "CPU_CS 1 0.1 NORM", "DISK_CS 2 0.2 NORM")
    return (program("purple", purple, *lines), *[program(name, other, *lines) for name in _OTHERS])


def _figure_9(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    many = runs[""]
    ends = many.finish_s()
    others = [ends[name] for name in _OTHERS]
    alone_s = 3 * (0.5 + 1 + 2)
    quanta = "only for the end of quanta, at most 0.1 s on each of 9 uses"
    least = min(
        fmean(run.share(name, "DISK", 0, run.finished_ms["purple"] / 1000) for run in many.histories)
        for name in _OTHERS
    )
    ahead, apart = min(others) / ends["purple"], max(others) / min(others)
    return [
        between("purple's waiting [s]", quanta, ends["purple"] - alone_s, high=3 * 3 * 0.1),
        between("the others' first end over purple's", "way ahead", ahead, low=1.5),
        between("the others' last end over their first", "similar on average", apart, high=1.1),
        between("least of the others of the disk while purple runs", "at least 1 %", least, low=0.01),
    ]


FIGURE_9: Final = Study(
    id="bbf-fig9",
    title="Four processes of the same iterations, one of which has 97 % of the entitlements.",
    scenarios=together(*_requests(97, 1, 3)),
    claims=_figure_9,
    notes="Standard deviations are a tenth of the means.",
    is_averaged=True,
)

_LONG_S: Final = 120
_LONG_RUNS: Final = 10


def _lead(purple: float, other: float, seed: int) -> float:
    """Purple's share of the disk over the mean share of the others, in long runs."""
    runs = run_many(_requests(purple, other, 100), _LONG_RUNS, seed=seed, until_s=_LONG_S)
    disk = {name: runs.share(name, "DISK", 20, _LONG_S) for name in runs.processes}
    return disk["purple"] / fmean(disk[name] for name in _OTHERS)


def _figure_10(runs: Mapping[str, Runs], options: RunOptions) -> Sequence[Statement]:
    finish_s = [runs[scenario].finish_s() for scenario in FIGURE_10.scenarios]
    first, second = (ends["purple"] / fmean(ends[name] for name in _OTHERS) for ends in finish_s)
    end, disk = "purple's end over the others' mean", "in long runs, purple's disk over the others'"
    lead, lag = _lead(40, 20, options.seed), _lead(10, 30, options.seed)
    return [
        between(f"40:20, {end}", "by priorities, first", first, high=0.9),
        between(f"10:30, {end}", "by priorities, last", second, low=1.1),
        between(f"40:20 {disk}", "priorities 2 : 1", lead, low=1.5, high=2.1),
        between(f"10:30 {disk}", "more than 1/3 of the others", lag, low=1 / 3, high=0.9),
    ]


FIGURE_10: Final = Study(
    id="bbf-fig10",
    title="The same with 40 % and three times 20 %, and with 10 % and three times 30 %.",
    scenarios={"40:20:20:20": _requests(40, 20, 3), "10:30:30:30": _requests(10, 30, 3)},
    claims=_figure_10,
    notes="Names say the priorities of purple, red, green and blue. Long runs are ten of 120 s.",
    is_averaged=True,
)


def _ring(width_s: float) -> tuple[Program, ...]:
    """Eight processes in four pairs; each pair uses three of four resources."""
    programs = []
    for pair in range(4):
        uses = [f"R{(pair + step) % 4 + 1} 0.1 {width_s} NORM" for step in range(3)]
        programs += [program(f"{which}{pair + 1}", 12.5, "loop 80", *uses) for which in "ab"]
    return tuple(programs)


def _figure_11(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    run = runs[""].example
    exact = run_many(_ring(0), 1).example
    shares = [exact.share(name, resource, 5, 40) for name, resource in exact.uses]
    exact_use = min(exact.utilisation(resource, 5, 40) for resource in exact.resources)
    progress = [run.progress(name, 3, 40) for name in run.processes]
    apart = max(progress) / min(progress)
    use = min(run.utilisation(resource, 3, 40) for resource in run.resources)
    return [
        about("least share of a resource, exact times", min(shares), 1 / 6, 0.01, text="1/6"),
        about("greatest share of a resource, exact times", max(shares), 1 / 6, 0.01, text="1/6"),
        about("least used resource, exact times", exact_use, 1, 0.01),
        between("fastest over slowest process, random times", "largely the same rate", apart, high=1.15),
        between("least used resource, random times", "gaps and idle periods", use, low=0.85, high=0.995),
    ]


FIGURE_11: Final = Study(
    id="bbf-fig11",
    title="Where several solutions are fair, the algorithm goes to the symmetric one.",
    scenarios=together(*_ring(0.03)),
    claims=_figure_11,
    notes="a1 and b1 are a pair. Uses of 0.1 s are served whole; standard deviations are 0.03 s.",
)

STUDIES: Final = (FIGURE_7, FIGURE_8, FIGURE_9, FIGURE_10, FIGURE_11)
