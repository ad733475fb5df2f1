"""The work of a MapReduce cluster of Facebook, for section 7.3: the day of 2010 of the SWIM traces, or a stand-in for it.

The paper's own week of October 2010 is not published. Of the public day, arrivals and bytes are real; tasks, run times and demands
are those of ``workloads.swim_model``, so that the share of tasks that are heavy on memory is a parameter and not a fact.
Where the file is not at hand, arrivals are Poisson at the rate of its day and bytes are drawn from rounded quantiles of it.

A smaller cluster gets a like part of the work, by ``workloads.dividing``.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final

from fairlead_lab.papers.public_traces import find_trace
from fairlead_lab.workloads.dividing import divide
from fairlead_lab.workloads.loading import load_jobs
from fairlead_lab.workloads.nodes import parse_nodes
from fairlead_lab.workloads.swim_model import JobBytes, SwimModel
from fairlead_lab.workloads.traces import TraceOptions
from fairlead_sim.node import Node
from fairlead_sim.workload import Job, Selection, group_jobs

TRACE: Final = "fb2010.csv.gz"
NODES: Final = 400
SLOTS: Final = "slots:12"
HEAVY_SHARE: Final = 0.20
"""Of map stages, in the trace's model."""

_REDUCES_TO_MAPS: Final = 2.25
"""Reduces are heavy on memory so many times as often: 0.45 to 0.20 in the trace's model."""
_DAY_S: Final = 86_400
_JOBS_A_DAY: Final = 24_442

_Quantiles = Sequence[tuple[float, float]]
"""Fraction of the jobs, and the decimal logarithm of what that many are below; straight lines between."""

_MAP_ONLY: Final = 0.34
"""Jobs without a shuffle."""
_INPUT: Final[_Quantiles] = (
    (0, 2), (0.1, 2.7), (0.2, 3.8), (0.3, 4.9), (0.4, 6), (0.5, 7), (0.6, 7.9), (0.7, 8.8), (0.8, 9.5),
    (0.9, 10.5), (0.95, 11.1), (0.98, 11.6), (0.99, 12), (1, 12.6),
)  # fmt: skip
_SHUFFLE_OF_INPUT: Final[_Quantiles] = (
    (0, -6), (0.1, -4.4), (0.2, -2.2), (0.3, -1.2), (0.4, -0.8), (0.5, -0.4), (0.7, 0), (0.9, 0.4), (1, 1),
)  # fmt: skip
_OUTPUT_OF_SHUFFLE: Final[_Quantiles] = (
    (0, -6), (0.1, -4.6), (0.2, -3.1), (0.3, -1.9), (0.4, -1.1), (0.5, -0.6), (0.7, -0.2), (0.9, 0.4), (1, 1),
)  # fmt: skip
_OUTPUT_OF_INPUT: Final[_Quantiles] = ((0, -6), (0.1, -4.3), (0.3, -1.2), (0.5, 0), (0.8, 0.2), (1, 1))
"""Of jobs without a shuffle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the day, and the size of the cluster."""

    from_s: int = 0
    until_s: int = _DAY_S
    divisor: int = 1
    """By which nodes and tasks are divided; divides 400."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return NODES // self.divisor


@dataclass(frozen=True, slots=True)
class Work:
    """Jobs for a cluster, with their size before they were divided."""

    jobs: list[Job]
    """By arrival."""
    sizes: list[int]
    """Tasks of each in the whole."""
    is_real: bool
    """Whether arrivals and bytes are those of the trace."""

    @property
    def source(self) -> str:
        """What it is, in a sentence."""
        if self.is_real:
            return "Arrivals and bytes: fb2010, a day of a Facebook cluster; tasks, run times and demands are modelled."
        return f"All is modelled: {TRACE} is not at hand (FAIRLEAD_TRACES names its folder), and a synthetic day stands in for it."


def nodes(part: Part) -> list[Node]:
    """The nodes of the cluster, of 16 cores and 32 GB each."""
    return parse_nodes(f"{part.nodes}:cpus=16,mem=32GiB")


def work(part: Part, heavy_share: float, seed: int) -> Work:
    """The jobs that arrive in a part of the day.

    Args:
        part: Which, and divided by what.
        heavy_share: Probability that a map stage is heavy on memory; of reduces 2.25 times that, at most 1.
        seed: Of the division, and of all that is drawn for the stand-in.
    """
    path = find_trace(TRACE)
    model = SwimModel(
        map_heavy_share=heavy_share, reduce_heavy_share=min(1.0, _REDUCES_TO_MAPS * heavy_share)
    )
    whole = _stand_in(model, part, seed) if path is None else _from_trace(path, model, part)
    size_of = {job.job_id: job.tasks for job in whole}
    divided = divide(whole, part.divisor, seed=seed)
    return Work(divided, [size_of[job.job_id] for job in divided], path is not None)


@lru_cache(maxsize=1)
def _from_trace(path: Path, model: SwimModel, part: Part) -> Sequence[Job]:
    selection = Selection(from_ms=part.from_s * 1000, until_ms=part.until_s * 1000)
    return load_jobs(path, selection=selection, options=TraceOptions(swim=model))


def _stand_in(model: SwimModel, part: Part, seed: int) -> list[Job]:
    random = Random(f"facebook {seed}")  # noqa: S311 - chance that can be repeated is the purpose
    return group_jobs(bundle for job in _synthetic_jobs(random, part) for bundle in model.bundles(job))


def _synthetic_jobs(random: Random, part: Part) -> Iterator[JobBytes]:
    """Jobs that arrive by a Poisson process over the part, with bytes drawn from the quantiles."""
    at_s, number = float(part.from_s), 0
    while True:
        at_s += random.expovariate(_JOBS_A_DAY / _DAY_S)
        if at_s >= part.until_s:
            return
        number += 1
        read = _drawn(random, _INPUT)
        if random.random() < _MAP_ONLY:
            shuffle, output = 0.0, read * _drawn(random, _OUTPUT_OF_INPUT)
        else:
            shuffle = max(1.0, read * _drawn(random, _SHUFFLE_OF_INPUT))
            output = shuffle * _drawn(random, _OUTPUT_OF_SHUFFLE)
        yield JobBytes(
            job_id=f"synthetic-{number}",
            submit_ms=round(at_s * 1000),
            input=round(read),
            shuffle=round(shuffle),
            output=round(output),
        )


def _drawn(random: Random, quantiles: _Quantiles) -> float:
    chance = random.random()
    for (low, first), (high, second) in pairwise(quantiles):
        if chance <= high:
            return math.pow(10.0, first + (second - first) * (chance - low) / (high - low))
    raise AssertionError("quantiles end at 1")
