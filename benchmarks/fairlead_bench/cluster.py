"""The whole benchmark of a cluster: control path, real processes, footprint, and memory over many tasks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fairlead_bench import control_path, footprint, processes
from fairlead_bench.control_path import ControlPathOptions
from fairlead_bench.footprint import FootprintOptions
from fairlead_bench.processes import ProcessOptions
from fairlead_bench.rows import Row

PARTS: Final = ("control-path", "processes", "footprint", "memory")
ISOLATIONS: Final = ("none", "auto")

_MEMORY_TASKS: Final = 1_000_000
_MEMORY_TASKS_QUICK: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """What is measured, and how thoroughly."""

    parts: tuple[str, ...] = PARTS
    is_quick: bool = False
    """Smaller and shorter, to see that everything works: its figures are no result."""
    profile: Path | None = None
    """Gets a sampled profile of the master on the control path."""
    hq: str = ""
    """HyperQueue's program, to be measured beside; empty: none."""
    ray_python: str = ""
    """A Python that can import ray, to be measured beside; empty: none."""


def run_cluster(options: ClusterOptions) -> list[Row]:
    """Measure and give the rows, in the order of ``PARTS``; minutes, or half a minute if quick.

    Raises:
        ValueError: a part is not known.
        BenchFailed: a process died, a task did not finish, or something took too long.
    """
    for part in options.parts:
        if part not in PARTS:
            raise ValueError(f"part: expected one of {', '.join(PARTS)}, got {part!r}")
    measures: dict[str, Callable[[ClusterOptions], list[Row]]] = {
        "control-path": _control_path,
        "processes": _processes,
        "footprint": _footprint,
        "memory": _memory,
    }
    return [row for part in PARTS if part in options.parts for row in measures[part](options)]


def _scaled(options: ClusterOptions) -> ControlPathOptions:
    if options.is_quick:
        return ControlPathOptions(agents=20, frameworks=5, warm_s=1.0, measure_s=3.0)
    return ControlPathOptions()


def _control_path(options: ClusterOptions) -> list[Row]:
    rows = []
    for is_steady in (False, True):
        # The profile is of the last of them, the worst case.
        settings = replace(_scaled(options), is_steady=is_steady, profile=options.profile)
        result = control_path.measure(settings)
        rows += control_path.rows(settings, result, control_path.measure_floor(settings, result))
    return rows


def _processes(options: ClusterOptions) -> list[Row]:
    settings = ProcessOptions(hq=options.hq, ray_python=options.ray_python)
    if options.is_quick:
        settings = replace(
            settings, rounds=1, tasks=300, warm_tasks=50, single_tasks=30, single_commands=3, floor_s=1.0
        )
    return [row for isolation in ISOLATIONS for row in processes.measure(settings, isolation)]


def _footprint(options: ClusterOptions) -> list[Row]:
    settings = FootprintOptions(repeats=1, idle_s=2.0) if options.is_quick else FootprintOptions()
    return footprint.measure(settings)


def _memory(options: ClusterOptions) -> list[Row]:
    tasks = _MEMORY_TASKS_QUICK if options.is_quick else _MEMORY_TASKS
    return control_path.memory_rows(control_path.measure(replace(_scaled(options), tasks_min=tasks)))
