"""Section 7.2's experiment on virtual time: users who hand in their next job when the last has finished, for ten minutes.

48 nodes of 8 CPUs and 6 GB; four users whose tasks need 1 CPU and 0.5 GB, four with 2 CPUs and 2 GB; a job has 80 tasks. The
paper says nothing of run times: here they are drawn evenly between half and one and a half times a mean. The allocator is that of
a live master.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Final

from fairlead_master.allocation.api import AllocationSettings
from fairlead_master.allocation.placement import seeded
from fairlead_master.allocation.policies.names import slots_per_agent
from fairlead_proto.resources import Vector
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.observer import IdleWatcher
from fairlead_sim.pool.hosts import Slowdown
from fairlead_sim.pool.simulation import Pool, PoolOptions
from fairlead_sim.workload import Bundle, Job

NODES: Final = 48
USERS_PER_CLASS: Final = 4
TASKS_PER_JOB: Final = 80
MINUTES: Final = 10

SMALL: Final = "small"
LARGE: Final = "large"
UNITS: Final[Mapping[str, Vector]] = {SMALL: (1000, 2**29, 0, 0), LARGE: (2000, 2 * 2**30, 0, 0)}
"""What a task needs, by class of users."""

_NODE: Final[Vector] = (8000, 6 * 2**30, 0, 0)
_BLIND_NODE: Final[Vector] = (8000, 2**40, 0, 0)
"""What a node is said to have to a policy that shall not look at memory: more than any tasks there can ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What the paper leaves open, and how large the experiment is: the paper's size, unless a smaller one is asked for."""

    nodes: int = NODES
    job_tasks: int = TASKS_PER_JOB
    seconds: float = MINUTES * 60.0
    """After which finished jobs are counted."""
    task_s: float = 30.0
    """Mean run time."""
    memory_slowdown: float = Slowdown().memory
    """How steeply a host slows down whose tasks want more memory than it has: ``pool.hosts.Slowdown``."""
    sees_memory: bool = True
    """Whether the master knows what tasks need of memory. If not it places them by their CPUs alone."""
    placement: str = "align"
    """As an operator writes it. Rules that draw, as that of slots, do it by the seed of the run."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The jobs of one class that finished within the ten minutes."""

    jobs: float
    """A mean where it is taken over several runs."""
    mean_response_s: float | None
    """None if there are none."""


class _Users(IdleWatcher):
    """Hands in a user's next job when the user's last one has finished."""

    def __init__(self, seed: int, setup: Setup) -> None:
        # A sequence for each user: every policy is given the same jobs in the same order.
        self._randoms = {
            f"{kind} {number}": Random(f"{seed} {kind} {number}")  # noqa: S311 - chance that can be repeated is the purpose
            for number in range(USERS_PER_CLASS)
            for kind in UNITS
        }
        self._task_ms = setup.task_s * 1000
        self._job_tasks = setup.job_tasks
        self._numbers = count()
        self._handed_in_ms: dict[str, int] = {}
        self._pool: Pool | None = None
        self.responses_ms: dict[str, list[int]] = {kind: [] for kind in UNITS}

    def begin(self, pool: Pool) -> None:
        """Everybody hands in a first job."""
        self._pool = pool
        pool.feed([self._next_job(user) for user in self._randoms])

    def _next_job(self, user: str) -> Job:
        name, random = f"job {next(self._numbers)}", self._randoms[user]
        bundles = tuple(
            Bundle(
                job_id=name,
                user=user,
                stage=0,
                tasks=1,
                unit=UNITS[_class_of(user)],
                submit_ms=0,
                duration_ms=round(self._task_ms * (0.5 + random.random())),
            )
            for _ in range(self._job_tasks)
        )
        return Job(job_id=name, user=user, submit_ms=0, bundles=bundles)

    def arrived(self, job: Job, now_ms: int) -> None:
        """See ``Watcher``."""
        self._handed_in_ms[job.job_id] = now_ms

    def refused(self, job: Job, bundle: Bundle, why: str, now_ms: int) -> None:  # noqa: ARG002 - told to all watchers
        """See ``Watcher``."""
        raise AssertionError(f"every task fits on a node, and {job.job_id} was refused: {why}")

    def finished(self, job: Job, now_ms: int) -> None:
        """See ``Watcher``."""
        self.responses_ms[_class_of(job.user)].append(now_ms - self._handed_in_ms.pop(job.job_id))
        assert self._pool is not None, "a job finished before any was handed in"
        self._pool.feed([self._next_job(job.user)])


def _class_of(user: str) -> str:
    return user.partition(" ")[0]


def run(policy: str, seed: int, setup: Setup) -> dict[str, Finished]:
    """What has finished after ten minutes, or ``setup.seconds``, under a policy, by class."""
    users = _Users(seed, setup)
    engine = Engine(Random(seed), now_ms=0)  # noqa: S311 - see above
    told = _NODE if setup.sees_memory else _BLIND_NODE
    pool = Pool(
        engine,
        [Node(name=f"node{number:02d}", total=told) for number in range(setup.nodes)],
        users,
        settings=AllocationSettings(
            policy=policy, placement=seeded(setup.placement, slots_per_agent(policy), seed)
        ),
        options=PoolOptions(
            slowdown=Slowdown(setup.memory_slowdown),
            real_total=None if setup.sees_memory else lambda _: _NODE,
        ),
    )
    users.begin(pool)
    engine.run_until(round(setup.seconds * 1000))
    return {kind: _summed(responses) for kind, responses in users.responses_ms.items()}


def _summed(responses_ms: list[int]) -> Finished:
    mean_s = sum(responses_ms) / len(responses_ms) / 1000 if responses_ms else None
    return Finished(len(responses_ms), mean_s)


def mean_of_runs(policy: str, seeds: range, setup: Setup) -> dict[str, Finished]:
    """Mean number of jobs over runs of several seeds, and mean response over all of their jobs, by class."""
    runs = [run(policy, seed, setup) for seed in seeds]
    return {kind: _mean([each[kind] for each in runs]) for kind in UNITS}


def _mean(runs: list[Finished]) -> Finished:
    jobs = sum(each.jobs for each in runs)
    waited_s = sum(each.jobs * each.mean_response_s for each in runs if each.mean_response_s is not None)
    return Finished(jobs / len(runs), waited_s / jobs if jobs else None)
