"""Figures 7 to 11 of paper 004: entitlements where processes use several resources."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from fairlead_lab.papers.bbf.study import RUNS_QUICK, Scenario, Study, program
from fairlead_lab.papers.experiment import RunOptions
from fairlead_lab.papers.statements import Statement, about, between
from fairlead_lab.timesharing.averages import Runs, run_many
from fairlead_lab.timesharing.program import Program


def _two_resources(red: float, blue: float, green: float, width_s: float = 0) -> tuple[Program, ...]:
    """Red on the CPU, blue on the disk, green on the CPU first and then on both in turns; ``width_s`` of each use of 0.1 s."""
    single = (100, 0.1) if width_s else (1, 10)
    return (
        program("red", red, f"loop {single[0]}", f"CPU_CS {single[1]} {width_s} NORM"),
        program("blue", blue, f"loop {single[0]}", f"DISK_CS {single[1]} {width_s} NORM"),
        program(
            "green",
            green,
            "loop 1",
            "CPU_CS 2 0 NORM",
            "loop 40",
            f"DISK_CS 0.1 {width_s} NORM",
            f"CPU_CS 0.1 {width_s} NORM",
        ),
    )


def _figure_7(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    run = runs[""].example
    start_s, end_s = 7, 11
    return [
        between("blue of the disk at first", "no contention", run.share("blue", "DISK", 0, 5), low=1),
        about(
            "green of the CPU at first",
            "its relative priority, 33 %",
            run.share("green", "CPU", 0, 6),
            0.33,
            0.03,
        ),
        about("red of the CPU", "67 %", run.share("red", "CPU", start_s, end_s), 0.67, 0.03),
        about("blue of the disk", "67 %", run.share("blue", "DISK", start_s, end_s), 0.67, 0.03),
        about("green of the CPU", "33 %", run.share("green", "CPU", start_s, end_s), 0.33, 0.03),
        about("green of the disk", "33 %", run.share("green", "DISK", start_s, end_s), 0.33, 0.03),
        about("green in all", "67 %", run.progress("green", start_s, end_s), 0.67, 0.03),
    ]


FIGURE_7: Final = Study(
    id="bbf-fig7",
    title="Three processes on two resources: 67 % for one's own, 33 % of each for who uses both.",
    scenarios=(Scenario(_two_resources(40, 40, 20)),),
    claims=_figure_7,
    notes="By exact shares green would begin with the disk after 6 s.",
)


def _figure_8(runs: Mapping[str, Runs], options: RunOptions) -> Sequence[Statement]:
    claims = []
    for scenario in FIGURE_8.scenarios:
        run = runs[scenario.label].example
        green = run.progress("green", 5, 11)
        for name, resource in (("red", "CPU"), ("blue", "DISK")):
            share = run.share(name, resource, 5, 11)
            own = run.share("green", resource, 5, 11)
            claims.append(about(f"{name} of its resource, {scenario.label}", "50 %", share, 0.5, 0.03))
            claims.append(about(f"green of the same, {scenario.label}", "50 %", own, 0.5, 0.03))
            claims.append(
                between(
                    f"green's progress over {name}'s, {scenario.label}",
                    "double",
                    green / share,
                    low=1.9,
                    high=2.1,
                )
            )
        red, blue, priority = (each.priority for each in scenario.programs)
        random = run_many(_two_resources(red, blue, priority, 0.05), RUNS_QUICK, seed=options.seed)
        rates = {name: random.progress(name, 5, 11) for name in random.processes}
        claims.append(
            between(
                f"the same with random service times, {scenario.label}",
                "about the same rate",
                rates["green"] / fmean((rates["red"], rates["blue"])),
                low=0.85,
                high=1.15,
            )
        )
    return claims


FIGURE_8: Final = Study(
    id="bbf-fig8",
    title="The same for equal priorities, and for 25, 25 and 50: twice the progress, and no more.",
    scenarios=(
        Scenario(_two_resources(33, 33, 33), "33:33:33"),
        Scenario(_two_resources(25, 25, 50), "25:25:50"),
    ),
    claims=_figure_8,
    notes="Names say the priorities of red, blue and green.",
)


def _requests(purple: float, other: float, times: int) -> tuple[Program, ...]:
    """Four processes that run the same iterations."""
    lines = (f"loop {times}", "NETWORK_CS 0.5 0.05 NORM", "CPU_CS 1 0.1 NORM", "DISK_CS 2 0.2 NORM")
    return (
        program("purple", purple, *lines),
        *[program(name, other, *lines) for name in _OTHERS],
    )


_OTHERS: Final = ("red", "green", "blue")


def _figure_9(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    many = runs[""]
    ends = many.finish_s()
    others = [ends[name] for name in _OTHERS]
    alone_s = 3 * (0.5 + 1 + 2)
    quanta = 3 * 3 * 0.1
    least = min(
        fmean(run.share(name, "DISK", 0, run.finished_ms["purple"] / 1000) for run in many.histories)
        for name in _OTHERS
    )
    return [
        between(
            "purple's waiting [s]",
            "only for the end of quanta, at most 0.1 s on each of 9 uses",
            ends["purple"] - alone_s,
            high=quanta,
        ),
        between("the others' first end over purple's", "way ahead", min(others) / ends["purple"], low=1.5),
        between(
            "the others' last end over their first", "similar on average", max(others) / min(others), high=1.1
        ),
        between("least of the others of the disk while purple runs", "at least 1 %", least, low=0.01),
    ]


FIGURE_9: Final = Study(
    id="bbf-fig9",
    title="Four processes of the same iterations, one of which has 97 % of the entitlements.",
    scenarios=(Scenario(_requests(97, 1, 3)),),
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
    first, second = (runs[scenario.label].finish_s() for scenario in FIGURE_10.scenarios)
    return [
        between(
            "40:20, purple's end over the others' mean",
            "by priorities, first",
            first["purple"] / fmean(first[name] for name in _OTHERS),
            high=0.9,
        ),
        between(
            "10:30, purple's end over the others' mean",
            "by priorities, last",
            second["purple"] / fmean(second[name] for name in _OTHERS),
            low=1.1,
        ),
        between(
            "40:20 in long runs, purple's disk over the others'",
            "priorities 2 : 1",
            _lead(40, 20, options.seed),
            low=1.5,
            high=2.1,
        ),
        between(
            "10:30 in long runs, purple's disk over the others'",
            "more than 1/3 of the others",
            _lead(10, 30, options.seed),
            low=1 / 3,
            high=0.9,
        ),
    ]


FIGURE_10: Final = Study(
    id="bbf-fig10",
    title="The same with 40 % and three times 20 %, and with 10 % and three times 30 %.",
    scenarios=(
        Scenario(_requests(40, 20, 3), "40:20:20:20"),
        Scenario(_requests(10, 30, 3), "10:30:30:30"),
    ),
    claims=_figure_10,
    notes="Names say the priorities of purple, red, green and blue. Long runs are ten of 120 s.",
    is_averaged=True,
)


def _ring(width_s: float) -> tuple[Program, ...]:
    """Eight processes in four pairs; each pair uses three of four resources."""
    return tuple(
        [
            program(
                f"{which}{pair + 1}",
                12.5,
                "loop 80",
                *[f"R{(pair + step) % 4 + 1} 0.1 {width_s} NORM" for step in range(3)],
            )
            for pair in range(4)
            for which in "ab"
        ]
    )


def _figure_11(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    run = runs[""].example
    exact = run_many(_ring(0), 1).example
    shares = [exact.share(name, resource, 5, 40) for name, resource in exact.uses]
    progress = [run.progress(name, 3, 40) for name in run.processes]
    used = [run.utilisation(resource, 3, 40) for resource in run.resources]
    return [
        about("least share of a resource, exact times", "1/6", min(shares), 1 / 6, 0.01),
        about("greatest share of a resource, exact times", "1/6", max(shares), 1 / 6, 0.01),
        about(
            "least used resource, exact times",
            "100 %",
            min(exact.utilisation(resource, 5, 40) for resource in exact.resources),
            1,
            0.01,
        ),
        between(
            "fastest over slowest process, random times",
            "largely the same rate",
            max(progress) / min(progress),
            high=1.15,
        ),
        between(
            "least used resource, random times", "gaps and idle periods", min(used), low=0.85, high=0.995
        ),
    ]


FIGURE_11: Final = Study(
    id="bbf-fig11",
    title="Where several solutions are fair, the algorithm goes to the symmetric one.",
    scenarios=(Scenario(_ring(0.03)),),
    claims=_figure_11,
    notes="a1 and b1 are a pair. Uses of 0.1 s are served whole; standard deviations are 0.03 s.",
)

STUDIES: Final = (FIGURE_7, FIGURE_8, FIGURE_9, FIGURE_10, FIGURE_11)
