"""What each user would get from a 1/n of the cluster of his own: the yardstick of the sharing incentive.

Sharing incentive (Ghodsi et al., "Dominant Resource Fairness", section 3): nobody is worse off than with an exclusive
1/n of each resource. Here the slice is computed, not run: one pool of capacity / n (rounded down), no agents inside it,
no launch costs, the user's tasks started in order of submission, a later one before an earlier that does not fit. All of
that favours the slice: pooling spares it the fragmentation real agents have. So a user who did no worse than this has
no complaint, and one who did slightly worse may still owe it to launches and fragmentation rather than to the policy.
"""

import heapq
from collections.abc import Sequence

from fairlead_lab.metrics.records import JobRecord, TaskRecord
from fairlead_proto.resources import Vector, add, fits, subtract


def mean_completion_alone_ms(jobs: Sequence[JobRecord], capacity: Vector, users: int) -> float | None:
    """Mean completion time, in ms, of one user's jobs on his slice of the cluster.

    Args:
        jobs: All jobs of the user; each arrives at its ``submitted_ms``.
        capacity: Of the whole cluster.
        users: How many equal slices there are; 1 or more.

    Returns:
        The mean; None if a task is larger than the slice, which then could never finish the user's work.
    """
    free = tuple(amount // users for amount in capacity)
    if not jobs or any(not fits(task.unit, free) for job in jobs for task in job.tasks):
        return None
    slice_ = _Slice(free)
    for job in jobs:
        slice_.arrive(job)
    ends = slice_.run()
    return sum(end_ms - job.submitted_ms for job, end_ms in zip(jobs, ends, strict=True)) / len(jobs)


class _Slice:
    """A pool that runs tasks as soon as they fit, oldest first; times are integers and ties go by order of arrival."""

    def __init__(self, free: Vector) -> None:
        self.free = free
        self.jobs: list[list[list[TaskRecord]]] = []
        self.open: list[int] = []
        self.ends: list[int] = []
        self.waiting: list[tuple[TaskRecord, int]] = []
        # (time, arrivals after ends, number, job, task or None for an arrival)
        self.events: list[tuple[int, int, int, int, TaskRecord | None]] = []
        self.number = 0

    def arrive(self, job: JobRecord) -> None:
        stages = sorted({task.stage for task in job.tasks})
        self.jobs.append([[task for task in job.tasks if task.stage == stage] for stage in stages])
        self.open.append(0)
        self.ends.append(job.submitted_ms)
        self._push(job.submitted_ms, 1, len(self.jobs) - 1, None)

    def run(self) -> list[int]:
        """When each job ends, in the order they were given."""
        while self.events:
            now_ms = self.events[0][0]
            while self.events and self.events[0][0] == now_ms:
                _, _, _, job, task = heapq.heappop(self.events)
                if task is not None:
                    self.free = add(self.free, task.unit)
                    self.open[job] -= 1
                if not self.open[job]:
                    self._next_stage(job, now_ms)
            self._start(now_ms)
        return self.ends

    def _next_stage(self, job: int, now_ms: int) -> None:
        self.ends[job] = now_ms
        if self.jobs[job]:
            stage = self.jobs[job].pop(0)
            self.open[job] = len(stage)
            self.waiting += [(task, job) for task in stage]

    def _start(self, now_ms: int) -> None:
        left = []
        too_large: set[Vector] = set()
        for task, job in self.waiting:
            # Equal demands are common, and what did not fit a moment ago does not fit now: capacity only shrinks here.
            if task.unit in too_large or not fits(task.unit, self.free):
                too_large.add(task.unit)
                left.append((task, job))
                continue
            self.free = subtract(self.free, task.unit)
            self._push(now_ms + task.duration_ms, 0, job, task)
        self.waiting = left

    def _push(self, at_ms: int, rank: int, job: int, task: TaskRecord | None) -> None:
        self.number += 1
        heapq.heappush(self.events, (at_ms, rank, self.number, job, task))
