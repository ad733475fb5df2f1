"""The seeded program that made the sample workload.

``python -m tests.laboratory.replay.sample_program`` writes both files anew; a test compares them with the committed ones.
"""

import csv
import io
from dataclasses import dataclass
from random import Random
from typing import Final

from fairlead_lab.workloads.nodes import NODE_COLUMNS
from fairlead_lab.workloads.sample import NODES, SAMPLE, SAMPLE_NODES
from fairlead_lab.workloads.traces import COLUMNS

SEED: Final = 2011
NODE_CORES: Final = 16
NODE_MEM_MB: Final = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class _Habit:
    """How one user works: ranges are (least, most), drawn evenly."""

    user: str
    jobs: int
    stages: int
    tasks: tuple[int, int]
    cpus: tuple[float, float]
    mem_gib: tuple[float, float]
    duration_s: tuple[int, int]
    begins_s: int = 0
    """Before it he hands nothing in."""


_HABITS: Final = (
    _Habit(user="ana", jobs=7, stages=1, tasks=(3, 4), cpus=(4.5, 6), mem_gib=(2, 4), duration_s=(60, 120)),
    _Habit(
        user="ben",
        jobs=5,
        stages=1,
        tasks=(3, 4),
        cpus=(0.5, 1),
        mem_gib=(18, 24),
        duration_s=(60, 120),
        begins_s=90,
    ),
    _Habit(user="cleo", jobs=9, stages=1, tasks=(3, 4), cpus=(0.5, 1), mem_gib=(1, 2), duration_s=(50, 100)),
    _Habit(user="dan", jobs=3, stages=2, tasks=(3, 4), cpus=(6.5, 8), mem_gib=(8, 12), duration_s=(75, 150)),
)
ARRIVALS_S: Final = 180


def sample_text(seed: int = SEED) -> str:
    """The sample as CSV; the same for the same seed on every machine."""
    # Only random() is used: of all methods it is the one whose sequence Python promises to keep.
    draw = Random(seed).random

    def between(least: float, most: float) -> float:
        return least + draw() * (most - least)

    rows: list[tuple[object, ...]] = []
    for habit in _HABITS:
        for number in range(habit.jobs):
            span_s = ARRIVALS_S - habit.begins_s
            submit_s = round(habit.begins_s + span_s * (number + draw()) / habit.jobs)
            job_id = f"{habit.user}-{number}"
            for stage in range(habit.stages):
                tasks = round(between(habit.tasks[0] - 0.5, habit.tasks[1] + 0.499))
                cpus = round(between(*habit.cpus) * 4) / 4
                mem_mb = round(between(*habit.mem_gib) * 4) * 256
                duration_s = round(between(*habit.duration_s))
                rows.append((submit_s, job_id, habit.user, stage, tasks, cpus, mem_mb, 0, duration_s))
    # By arrival; two jobs that arrive together keep the order of the users above.
    return _csv(COLUMNS, sorted(rows, key=lambda row: float(str(row[0]))))


def nodes_text() -> str:
    """The nodes the sample was invented for, as CSV."""
    return _csv(NODE_COLUMNS, [(f"node{number}", NODE_CORES, NODE_MEM_MB, 0) for number in range(NODES)])


def _csv(names: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return out.getvalue()


def main() -> None:
    """Write both files."""
    SAMPLE.write_text(sample_text(), encoding="utf-8")
    SAMPLE_NODES.write_text(nodes_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
