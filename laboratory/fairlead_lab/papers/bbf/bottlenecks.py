"""Figures 12 to 14 of paper 004: allocations that follow the bottlenecks."""

from collections.abc import Mapping, Sequence
from typing import Final

from fairlead_lab.papers.bbf.study import Scenario, Study, program
from fairlead_lab.papers.experiment import RunOptions
from fairlead_lab.papers.statements import Statement, about, between
from fairlead_lab.timesharing.averages import Runs
from fairlead_lab.timesharing.program import Program


def _figure_12(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    many = runs[""]
    claims = [
        about(
            f"{resource} used before blue comes",
            "67 %",
            many.utilisation(resource, 1, 5),
            0.67,
            0.05,
        )
        for resource in ("CPU", "DISK", "NETWORK")
    ]
    claims += [
        about(f"{name} of the CPU after it", f"{stated:.0%}", many.share(name, "CPU", 8, 28), stated, 0.05)
        for name, stated in (("red", 0.17), ("green", 0.33), ("blue", 0.50))
    ]
    before, after = many.share("red", "DISK", 1, 5), many.share("red", "DISK", 8, 28)
    claims.append(between("red's disk after it over before", "half", after / before, low=0.45, high=0.6))
    before, after = many.share("green", "NETWORK", 1, 5), many.share("green", "NETWORK", 8, 28)
    claims.append(
        between(
            "green's network after it over before", "nothing much changes", after / before, low=0.85, high=1.1
        )
    )
    return claims


def _one_to_two(name: str, priority: float, resource: str) -> Program:
    return program(name, priority, "loop 60", "CPU_CS 0.2 0.02 NORM", f"{resource}_CS 0.4 0.04 NORM")


FIGURE_12: Final = Study(
    id="bbf-fig12",
    title="A third process makes the CPU a bottleneck, and entitlements count.",
    scenarios=(
        Scenario(
            (
                _one_to_two("red", 33, "DISK"),
                _one_to_two("green", 67, "NETWORK"),
                program("blue", 100, "loop 1", "IDLE 5 0 NORM", "CPU_CS 15 0 NORM"),
            )
        ),
    ),
    claims=_figure_12,
    notes="1 s of CPU per 2 s of disk as iterations of 0.2 and 0.4 s, standard deviations a tenth of the means.",
    is_averaged=True,
)

_ENTITLED: Final = {"first": 50.0, "second": 25.0, "third": 12.5, "fourth": 12.5}


def _shifting() -> tuple[Program, ...]:
    """The first on the CPU for 80 %; the others on CPU and disk for about 20 s, then on the network for 70 %."""
    first = program(
        "first",
        50,
        "loop 140",
        "CPU_CS 0.2 0.02 NORM",
        "DISK_CS 0.025 0.0025 NORM",
        "NETWORK_CS 0.025 0.0025 NORM",
    )
    others = [
        program(
            name,
            priority,
            f"loop {round(priority * 2)}",
            "CPU_CS 0.1 0.01 NORM",
            "DISK_CS 0.1 0.01 NORM",
            f"loop {round(priority * 4)}",
            "CPU_CS 0.0375 0.00375 NORM",
            "DISK_CS 0.0375 0.00375 NORM",
            "NETWORK_CS 0.175 0.0175 NORM",
        )
        for name, priority in _ENTITLED.items()
        if name != "first"
    ]
    return (first, *others)


def _figure_13(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    many = runs[""]
    early, late = (5, 15), (27, 42)
    claims = [
        between(
            f"{resource} a bottleneck {when}, part of the time",
            "the bottleneck" if is_bottleneck else "not the bottleneck",
            many.bottleneck(resource, *period),
            low=0.8 if is_bottleneck else 0,
            high=1 if is_bottleneck else 0.2,
        )
        for when, period, resource, is_bottleneck in (
            ("first", early, "CPU", True),
            ("first", early, "NETWORK", False),
            ("later", late, "NETWORK", True),
            ("later", late, "CPU", False),
        )
    ]
    claims += [
        about(
            f"{name} of the CPU first",
            f"{entitled:g} %",
            many.share(name, "CPU", *early),
            entitled / 100,
            0.05,
        )
        for name, entitled in _ENTITLED.items()
    ]
    change = many.share("first", "CPU", *late) - many.share("first", "CPU", *early)
    claims.append(between("first's part of the CPU grows by", "relative allocations change", change, low=0.1))
    return claims


FIGURE_13: Final = Study(
    id="bbf-fig13",
    title="The focus shifts from one bottleneck to another.",
    scenarios=(Scenario(_shifting()),),
    claims=_figure_13,
    notes="Entitlements are 50, 25, 12.5 and 12.5. Iterations take 0.25 s alone; standard deviations are a tenth of the means.",
    is_averaged=True,
)

_COMPLEMENTARY: Final = (
    program("cpu-heavy", 1, "loop 150", "CPU 0.1 0.005 NORM", "NETWORK 0.014 0.0007 NORM"),
    program("network-heavy", 1, "loop 150", "NETWORK 0.1 0.005 NORM", "CPU 0.017 0.00085 NORM"),
    program("both", 1, "loop 100", "CPU 0.1 0.005 NORM", "NETWORK 0.1 0.005 NORM"),
)


def _figure_14(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    run = runs[""].example
    end_s = min(run.finished_ms.values()) / 1000
    progress = {name: run.progress(name, 3, end_s) for name in run.processes}
    claims = [
        between(
            f"{resource} a bottleneck, part of the time",
            "until one of the processes terminates",
            run.bottleneck(resource, 3, end_s),
            low=0.9,
        )
        for resource in run.resources
    ]
    claims += [
        between(
            f"{name} of its bottleneck",
            "its entitlement, a third",
            max(run.share(name, resource, 3, end_s) for resource in run.resources),
            low=1 / 3 - 0.005,
        )
        for name in run.processes
    ]
    ahead = progress["both"] - max(progress["cpu-heavy"], progress["network-heavy"])
    claims.append(between("progress of both beyond that of the others", "tends to get ahead", ahead, low=0))
    return claims


FIGURE_14: Final = Study(
    id="bbf-fig14",
    title="Complementary requirements do not starve who wants both.",
    scenarios=(Scenario(_COMPLEMENTARY),),
    claims=_figure_14,
    notes="Uses are served whole; standard deviations are a twentieth of the means.",
)

STUDIES: Final = (FIGURE_12, FIGURE_13, FIGURE_14)
