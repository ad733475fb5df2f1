"""What a study runs, and what came of it: values, which the report is made from and other processes are sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from fairlead_lab.metrics.result import PolicyResult
from fairlead_lab.metrics.yardstick import Yardstick
from fairlead_sim.node import Node
from fairlead_sim.pool.hosts import Slowdown
from fairlead_sim.workload import Job, Work


class Source(Protocol):
    """Where the work comes from; it is sent to other processes."""

    def jobs(self, seed: int, /) -> list[Job]:
        """The jobs of a seed, by arrival."""


@runtime_checkable
class RemarkableSource(Source, Protocol):
    """A source of which more is to be told than its jobs."""

    def work(self, seed: int, /) -> Work:
        """The jobs of a seed, by arrival, and what is to be told of them."""


def work_of(source: Source, seed: int) -> Work:
    """The work of a seed, with remarks if the source has any."""
    return source.work(seed) if isinstance(source, RemarkableSource) else Work(source.jobs(seed))


@dataclass(frozen=True, slots=True)
class FirstJobs:
    """The first so many jobs of a source."""

    source: Source
    jobs_max: int

    def jobs(self, seed: int, /) -> list[Job]:
        """The jobs of a seed, by arrival."""
        return self.work(seed).jobs

    def work(self, seed: int, /) -> Work:
        """The same, with what the source tells."""
        whole = work_of(self.source, seed)
        return Work(whole.jobs[: self.jobs_max], whole.remarks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """How a run is done."""

    seed: int = 1
    """Of all chance within the simulation; the workload's is its own."""
    placement: str = "align"
    """As an operator writes it. Rules that draw do it by the run's seed if they name none."""
    when_head_does_not_fit: str = "skip"
    """``skip`` or ``freeze``."""
    memory_slowdown: float = Slowdown().memory
    """How steeply hosts slow down whose tasks want more memory than they have: ``pool.hosts.Slowdown``."""
    is_user_per_job: bool = False
    """Whether each job counts on shares of its own, instead of on those of its user."""
    level: str = "pool"
    """``pool``: policies and placement alone, fast; ``cluster``: whole masters and agents with the messages between them."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Of users that weigh other than 1."""
    horizon_ms: int | None = None
    """The run ends so long after the first arrival; None: when all is done."""

    def user_of(self, job: Job) -> str:
        """On whose shares a job counts."""
        return job.job_id if self.is_user_per_job else job.user


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is to be run."""

    source: Source
    nodes: tuple[Node, ...]
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    options: SimulationOptions = field(default_factory=SimulationOptions)
    """The seed in it does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One seed's work, in numbers."""

    seed: int
    jobs: int
    tasks: int
    users: int
    """Of jobs that some node can hold."""
    remarks: tuple[str, ...]
    """What was left out of a trace, or assumed of it."""
    yardstick: Yardstick = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All results of a study."""

    study: Study
    workloads: tuple[Workload, ...]
    """By seed, in the study's order."""
    results: dict[str, list[PolicyResult]]
    """By policy in the study's order, and then by seed."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run of a study."""

    policy: str
    seed: int
