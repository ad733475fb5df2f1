"""A like part of some work, for a cluster with a like part of the nodes.

Tasks are divided by the factor by which there are fewer nodes. What does not divide is rounded up or down at random, with the
probability that keeps the expected number of tasks, by one draw a job. So most jobs of fewer tasks than the factor are left
out; of the rest each stage keeps a task at least. Waits for a few large tasks and the share of jobs with a single task are
not those of the whole.
"""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from math import floor

from fairlead_sim.workload import Job


def divide(jobs: Iterable[Job], divisor: int, *, seed: int = 1) -> list[Job]:
    """The jobs that remain, in their order, with fewer tasks; a divisor of 1 leaves all as they are.

    Draws are hashes of the seed and the job's id, so a job's part does not depend on which others there are.
    """
    if divisor == 1:
        return list(jobs)
    return [part for job in jobs if (part := _part(job, divisor, seed)) is not None]


def _part(job: Job, divisor: int, seed: int) -> Job | None:
    digest = sha256(f"{seed}|{job.job_id}".encode()).digest()
    chance = int.from_bytes(digest[:8], "big") / 2.0**64
    counts = [floor(bundle.tasks / divisor + chance) for bundle in job.bundles]
    if not any(counts):
        return None
    bundles = tuple(
        replace(bundle, tasks=max(1, tasks)) for bundle, tasks in zip(job.bundles, counts, strict=True)
    )
    return replace(job, bundles=bundles)
