"""One workload under several policies and seeds, in parallel processes.

Each run is a function of the study, its policy and its seed, so the order in which processes end decides nothing. What
does not depend on the policy is found first, once for each seed.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.queues import SimpleQueue
from typing import TypeVar

from fairlead_lab.metrics.result import PolicyResult
from fairlead_lab.metrics.yardstick import measure
from fairlead_lab.study.run import run_policy
from fairlead_lab.study.study import Case, Outcome, Source, Study, Workload, work_of
from fairlead_lab.worker_pool import FRESH, uninterrupted, worker_pool
from fairlead_sim.workload import Work

_Found = TypeVar("_Found")

_LOOK_S = 0.25
"""Between two looks at how far the processes are."""

Progress = Callable[[Case, int, int], None]
"""Told of a case how many tasks have finished, of how many."""


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
