"""Figures 12 to 14 of paper 004: allocations that follow the bottlenecks."""

from collections.abc import Mapping, Sequence
from typing import Final

from fairlead_lab.papers.bbf.study import Study, program, together
from fairlead_lab.papers.bbf.timesharing.averages import Runs
from fairlead_lab.papers.bbf.timesharing.program import Program
from fairlead_lab.papers.experiment import RunOptions
from fairlead_lab.papers.statements import Statement, about, between


def _figure_12(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    many = runs[""]
    before, after = (1, 5), (8, 28)
    disk, network = (
        many.share(name, resource, *after) / many.share(name, resource, *before)
        for name, resource in (("red", "DISK"), ("green", "NETWORK"))
    )
    return [
        *[
            about(f"{resource} used before blue comes", many.utilisation(resource, *before), 0.67, 0.05)
            for resource in ("CPU", "DISK", "NETWORK")
        ],
        *[
            about(
                f"{name} of the CPU after it", many.share(name, "CPU", *after), part, 0.05, text=f"{part:.0%}"
            )
            for name, part in (("red", 0.17), ("green", 0.33), ("blue", 0.50))
        ],
        between("red's disk after it over before", "half", disk, low=0.45, high=0.6),
        between("green's network after it over before", "nothing much changes", network, low=0.85, high=1.1),
    ]


def _one_to_two(name: str, priority: float, resource: str) -> Program:
    return program(name, priority, "loop 60", "CPU_CS 0.2 0.02 NORM", f"{resource}_CS 0.4 0.04 NORM")


FIGURE_12: Final = Study(
    id="bbf-fig12",
    title="A third process makes the CPU a bottleneck, and entitlements count.",
    scenarios=together(
        _one_to_two("red", 33, "DISK"),
        _one_to_two("green", 67, "NETWORK"),
        program("blue", 100, "loop 1", "IDLE 5 0 NORM", "CPU_CS 15 0 NORM"),
    ),
    claims=_figure_12,
    notes="1 s of CPU per 2 s of disk as iterations of 0.2 and 0.4 s, standard deviations a tenth of the means.",
    is_averaged=True,
)

_ENTITLED: Final = {"first": 50.0, "second": 25.0, "third": 12.5, "fourth": 12.5}

_CPU_MOSTLY: Final = ("CPU_CS 0.2 0.02 NORM", "DISK_CS 0.025 0.0025 NORM", "NETWORK_CS 0.025 0.0025 NORM")
_CPU_AND_DISK: Final = ("CPU_CS 0.1 0.01 NORM", "DISK_CS 0.1 0.01 NORM")
_NETWORK_MOSTLY: Final = (
    "CPU_CS 0.0375 0.00375 NORM",
    "DISK_CS 0.0375 0.00375 NORM",
    "NETWORK_CS 0.175 0.0175 NORM",
)


def _shifting(name: str, priority: float) -> Program:
    """The first on the CPU for 80 %; the others on CPU and disk for about 20 s, then on the network for 70 %."""
    if name == "first":
        return program(name, priority, "loop 140", *_CPU_MOSTLY)
    early, late = f"loop {round(priority * 2)}", f"loop {round(priority * 4)}"
    return program(name, priority, early, *_CPU_AND_DISK, late, *_NETWORK_MOSTLY)


def _figure_13(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    many = runs[""]
    early, late = (5, 15), (27, 42)
    claims = []
    for when, period, resource in (
        ("first", early, "CPU"),
        ("first", early, "NETWORK"),
        ("later", late, "NETWORK"),
        ("later", late, "CPU"),
    ):
        what = f"{resource} a bottleneck {when}, part of the time"
        part = many.bottleneck(resource, *period)
        if (when == "first") == (resource == "CPU"):
            claims.append(between(what, "the bottleneck", part, low=0.8, high=1))
        else:
            claims.append(between(what, "not the bottleneck", part, low=0, high=0.2))
    for name, percent in _ENTITLED.items():
        share = many.share(name, "CPU", *early)
        claims.append(about(f"{name} of the CPU first", share, percent / 100, 0.05, text=f"{percent:g} %"))
    change = many.share("first", "CPU", *late) - many.share("first", "CPU", *early)
    claims.append(between("first's part of the CPU grows by", "relative allocations change", change, low=0.1))
    return claims


FIGURE_13: Final = Study(
    id="bbf-fig13",
    title="The focus shifts from one bottleneck to another.",
    scenarios=together(*[_shifting(name, priority) for name, priority in _ENTITLED.items()]),
    claims=_figure_13,
    notes="Entitlements are 50, 25, 12.5 and 12.5. Iterations take 0.25 s alone; standard deviations are a tenth of the means.",
    is_averaged=True,
)


def _figure_14(runs: Mapping[str, Runs], _: RunOptions) -> Sequence[Statement]:
    run = runs[""].example
    end_s = min(run.finished_ms.values()) / 1000
    claims = []
    for resource in run.resources:
        part = run.bottleneck(resource, 3, end_s)
        what = f"{resource} a bottleneck, part of the time"
        claims.append(between(what, "until one of the processes terminates", part, low=0.9))
    for name in run.processes:
        share = max(run.share(name, resource, 3, end_s) for resource in run.resources)
        claims.append(
            between(f"{name} of its bottleneck", "its entitlement, a third", share, low=1 / 3 - 0.005)
        )
    progress = {name: run.progress(name, 3, end_s) for name in run.processes}
    ahead = progress["both"] - max(progress["cpu-heavy"], progress["network-heavy"])
    claims.append(between("progress of both beyond that of the others", "tends to get ahead", ahead, low=0))
    return claims


FIGURE_14: Final = Study(
    id="bbf-fig14",
    title="Complementary requirements do not starve who wants both.",
    scenarios=together(
        program("cpu-heavy", 1, "loop 150", "CPU 0.1 0.005 NORM", "NETWORK 0.014 0.0007 NORM"),
        program("network-heavy", 1, "loop 150", "NETWORK 0.1 0.005 NORM", "CPU 0.017 0.00085 NORM"),
        program("both", 1, "loop 100", "CPU 0.1 0.005 NORM", "NETWORK 0.1 0.005 NORM"),
    ),
    claims=_figure_14,
    notes="Uses are served whole; standard deviations are a twentieth of the means.",
)

STUDIES: Final = (FIGURE_12, FIGURE_13, FIGURE_14)
