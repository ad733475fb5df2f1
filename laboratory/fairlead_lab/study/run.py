"""Runs: one workload on one set of nodes under one policy, and a whole study, policies and seeds in parallel processes.

Each run is a function of the study, its policy and its seed, so the order in which processes end decides nothing. What
does not depend on the policy is found first, once for each seed.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.queues import SimpleQueue
from random import Random
from typing import Final, TypeVar

from fairlead_lab.metrics.result import PolicyResult
from fairlead_lab.metrics.summary import sum_up
from fairlead_lab.metrics.sums import Metrics, Subject
from fairlead_lab.metrics.yardstick import Yardstick, measure
from fairlead_lab.study.study import Case, Outcome, SimulationOptions, Source, Study, Workload, work_of
from fairlead_lab.worker_pool import FRESH, uninterrupted, worker_pool
from fairlead_master.allocation import placement
from fairlead_master.allocation.api import AllocationError, AllocationSettings
from fairlead_master.allocation.policies import names
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import Role
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.observer import Watcher
from fairlead_sim.pool.hosts import Slowdown
from fairlead_sim.pool.simulation import Pool, PoolOptions
from fairlead_sim.virtual_cluster.trace_cluster import TraceCluster
from fairlead_sim.workload import Job, Work

_Found = TypeVar("_Found")

_LOOK_S = 0.25
"""Between two looks at how far the processes are."""

Progress = Callable[[Case, int, int], None]
"""Told of a case how many tasks have finished, of how many."""

TRACKED_USERS: Final = 8
"""Whose shares over time are kept: those with the most work, as many as a plot can tell apart by colour."""
STALL_MS: Final = 30 * 24 * 3_600_000
"""Without a task that starts or ends for so long, whatever waits would wait for ever: a gang that never finds its places."""
_LEVELS: Final[Mapping[str, type[Pool | TraceCluster]]] = {"pool": Pool, "cluster": TraceCluster}
"""Of detail; see ``SimulationOptions.level``."""
_STRETCH: Final = 5_000
"""Occurrences between two looks at whether the run gets on."""


def run_study(study: Study, *, processes: int, progress: Progress = lambda *_: None) -> Outcome:
    """Run everything, in at most so many processes at a time; one process means this one.

    An interrupt, or whatever else is raised here, ends the other processes at once.

    Raises:
        AllocationError: a policy or another setting is not known.
        TraceError, WorkloadError: the work or the nodes cannot be used.
    """
    cases = [Case(policy, seed) for policy in study.policies for seed in study.seeds]
    with _crew(min(processes, len(cases)), progress) as crew:
        workloads = tuple(crew.run(_survey, [(study, seed) for seed in study.seeds]))
        by_seed = {workload.seed: workload for workload in workloads}
        found = crew.run(_run_case, [(study, case, by_seed[case.seed]) for case in cases])
    results: dict[str, list[PolicyResult]] = {policy: [] for policy in study.policies}
    for case, result in zip(cases, found, strict=True):
        results[case.policy].append(result)
    return Outcome(study=study, workloads=workloads, results=results)


def _survey(study: Study, seed: int) -> Workload:
    work = _here.work(study.source, seed)
    jobs = work.jobs
    yardstick = measure(jobs, study.nodes, user_of=study.options.user_of, weights=study.options.weights)
    return Workload(
        seed=seed,
        jobs=len(jobs),
        tasks=sum(job.tasks for job in jobs),
        users=len(yardstick.survey.users),
        remarks=work.remarks,
        yardstick=yardstick,
    )


def _run_case(study: Study, case: Case, workload: Workload) -> PolicyResult:
    tell, total = _here.progress, workload.tasks
    tell(case, 0, total)
    result = run_policy(
        _here.work(study.source, case.seed).jobs,
        study.nodes,
        case.policy,
        replace(study.options, seed=case.seed),
        yardstick=workload.yardstick,
        progress=lambda tasks: tell(case, tasks, total),
    )
    tell(case, total, total)
    return result


@dataclass(slots=True)
class _Process:
    """What a process keeps between two calls."""

    progress: Progress = lambda *_: None
    read: tuple[Source, int, Work] | None = None
    """The latest workload: several policies run on one, and reading it once is enough."""

    def work(self, source: Source, seed: int) -> Work:
        """The work of a seed."""
        if self.read is None or self.read[:2] != (source, seed):
            self.read = (source, seed, work_of(source, seed))
        return self.read[2]


_here = _Process()


class _Crew:
    """Runs calls here, or in processes of its own."""

    def __init__(
        self, pool: ProcessPoolExecutor | None, queue: "SimpleQueue[tuple[Case, int, int]] | None"
    ) -> None:
        self._pool = pool
        self._queue = queue

    def run(self, call: Callable[..., _Found], arguments: Sequence[tuple[object, ...]]) -> list[_Found]:
        """The values of all calls, in their order."""
        if self._pool is None:
            return [call(*each) for each in arguments]
        with uninterrupted():
            futures = [self._pool.submit(call, *each) for each in arguments]
        waiting: set[Future[_Found]] = set(futures)
        while waiting:
            done, waiting = wait(waiting, timeout=_LOOK_S)
            while self._queue is not None and not self._queue.empty():
                _here.progress(*self._queue.get())
            for future in done:
                future.result()  # raises at once what broke one of them
        return [future.result() for future in futures]


@contextmanager
def _crew(processes: int, progress: Progress) -> Iterator[_Crew]:
    before = _here.progress
    _here.progress = progress
    try:
        if processes <= 1:
            yield _Crew(None, None)
            return
        queue: SimpleQueue[tuple[Case, int, int]] = FRESH.SimpleQueue()
        with worker_pool(processes, _begin, queue) as pool:
            yield _Crew(pool, queue)
    finally:
        _here.progress, _here.read = before, None


def _begin(queue: "SimpleQueue[tuple[Case, int, int]]") -> None:
    """A process has begun."""
    _here.progress = lambda case, tasks, total: queue.put((case, tasks, total))


def run_policy(
    jobs: Sequence[Job],
    nodes: Sequence[Node],
    policy: str,
    options: SimulationOptions | None = None,
    *,
    yardstick: Yardstick | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> PolicyResult:
    """Simulate a workload under a policy, with the allocator of a live master.

    Args:
        jobs: In order of arrival. Time begins with the first.
        nodes: All there from the start.
        policy: As an operator writes it.
        options: The rest.
        yardstick: Of the same jobs, nodes and options; None: it is computed.
        progress: Told now and then how many tasks have finished.

    Raises:
        AllocationError: the policy or another setting is not known.
        WorkloadError: see ``yardstick.measure``.
    """
    options = options or SimulationOptions()
    yardstick = yardstick or measure(jobs, nodes, user_of=options.user_of, weights=options.weights)
    metrics = Metrics(
        Subject(
            jobs=jobs,
            hosts={node.name: node.total for node in nodes},
            user_of=options.user_of,
            size_ends=yardstick.survey.size_ends,
            tracked=yardstick.survey.users[:TRACKED_USERS],
            weights=options.weights,
        )
    )
    simulation = _simulation(nodes, metrics, policy, options)
    allocator = simulation.allocator if isinstance(simulation, Pool) else simulation.core.allocator
    for user, weight in options.weights.items():
        allocator.set_weight(Role(user), Weight(weight))
    if allocator.allows_overcommit:
        metrics.watch_crowding()
    simulation.feed(jobs, origin_ms=jobs[0].submit_ms)
    began = time.perf_counter()
    is_complete = _run(simulation.engine, metrics, options.horizon_ms, progress)
    return sum_up(
        metrics,
        policy=policy,
        seed=options.seed,
        alone_ms=yardstick.alone_ms,
        job_size_ends=yardstick.survey.job_size_ends,
        decisions=allocator.counters.decisions,
        is_complete=is_complete,
        took_s=time.perf_counter() - began,
    )


def _simulation(
    nodes: Sequence[Node], watcher: Watcher, policy: str, options: SimulationOptions
) -> Pool | TraceCluster:
    if options.level not in _LEVELS:
        raise AllocationError(f"level: expected {' or '.join(_LEVELS)}, got {options.level!r}")
    return _LEVELS[options.level](
        Engine(Random(options.seed), now_ms=0),  # noqa: S311 - chance that can be repeated is the purpose
        nodes,
        watcher,
        settings=AllocationSettings(
            policy=policy,
            placement=placement.seeded(options.placement, names.slots_per_agent(policy), options.seed),
            when_head_does_not_fit=options.when_head_does_not_fit,
        ),
        options=PoolOptions(
            role_of=options.user_of,
            forgets_idle=options.is_user_per_job,
            slowdown=Slowdown(options.memory_slowdown),
        ),
    )


def _run(engine: Engine, metrics: Metrics, horizon_ms: int | None, progress: Callable[[int], None]) -> bool:
    """Let everything happen until all jobs are done; False if some are left."""
    while metrics.jobs_left:
        for _ in range(_STRETCH):
            next_ms = engine.next_ms()
            # A whole cluster's heartbeats never end, so jobs are what says whether there is more to come.
            if next_ms is None or not metrics.jobs_left:
                break
            if horizon_ms is not None and next_ms > horizon_ms:
                return False
            engine.advance()
        progress(metrics.tasks_finished)
        if engine.next_ms() is None or metrics.is_stalled(engine.now_ms - STALL_MS):
            break
    return not metrics.jobs_left
