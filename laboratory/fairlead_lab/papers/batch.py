"""Many experiments at once, each in a process of its own kind, in the order in which they end."""

import time
from collections.abc import Generator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass

from fairlead_lab.papers import catalogue
from fairlead_lab.papers.experiment import Result, RunOptions
from fairlead_lab.worker_pool import uninterrupted, worker_pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One experiment's end."""

    id: str
    result: Result | None
    """None if it broke."""
    error: str = ""
    """What broke it, in one line."""
    took_s: float = 0.0


def run_one(experiment_id: str, options: RunOptions) -> Outcome:
    """Run one experiment here; what breaks it is told and not raised, so that one does not take the others with it."""
    began = time.perf_counter()
    try:
        result = catalogue.find(experiment_id).run(options)
    except Exception as error:
        return Outcome(id=experiment_id, result=None, error=f"{type(error).__name__}: {error}")
    return Outcome(id=experiment_id, result=result, took_s=time.perf_counter() - began)


def run_all(experiment_ids: Sequence[str], options: RunOptions, *, processes: int) -> Generator[Outcome]:
    """Run experiments in so many processes; outcomes come as they end. One process means this one.

    Close what this gives to end the processes before they are done.
    """
    if processes == 1 or len(experiment_ids) == 1:
        for experiment_id in experiment_ids:
            yield run_one(experiment_id, options)
        return
    with worker_pool(min(processes, len(experiment_ids))) as pool:
        with uninterrupted():
            futures = [pool.submit(run_one, experiment_id, options) for experiment_id in experiment_ids]
        for future in as_completed(futures):
            yield future.result()
