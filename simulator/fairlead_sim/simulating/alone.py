"""When each job would end on an own static slice of the cluster, user by user: the yardstick of the sharing incentive.

The model is that of ``reporting.static_split``: one pool of a user's part of the capacity, no hosts inside it, tasks
started in order of submission, a later one before an earlier that does not fit. There it is computed from a record of each task; here
from bundles, so that millions of equal tasks cost what their starts cost. A gang starts when all of its tasks fit.

It says nothing of any policy, so it is computed once for all of them.
"""

import heapq
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead_proto.resources import Vector, add, fits, scale, subtract
from fairlead_sim.workloads.workload import Bundle, Job

NEVER: Final = -1
"""In place of the completion time of jobs of a user whose slice is too small for one of his tasks."""


def completions_alone_ms(
    jobs: Sequence[Job],
    places: Iterable[int],
    capacity: Vector,
    *,
    user_of: Callable[[Job], str],
    weights: Mapping[str, float] | None = None,
) -> "array[int]":
    """Completion time in ms of each job, in the order given; ``NEVER`` for all jobs of a user whose slice is too small.

    Args:
        jobs: In order of arrival.
        places: Of the jobs that run; ``NEVER`` for the others too.
        capacity: Of the whole cluster.
        user_of: Who has one slice; a slice is 1/n of the cluster for n users, or by weight.
        weights: Of users that weigh other than 1.
    """
    found = array("q", [NEVER]) * len(jobs)
    by_user: dict[str, list[int]] = {}
    for place in places:
        by_user.setdefault(user_of(jobs[place]), []).append(place)
    weigh = weights or {}
    whole = sum(weigh.get(user, 1.0) for user in by_user)
    for user, own in by_user.items():
        free = _part(capacity, weigh.get(user, 1.0), whole)
        if all(_could_run(bundle, free) for place in own for bundle in jobs[place].bundles):
            ends = _Slice(free).run([jobs[place] for place in own])
            for place, end_ms in zip(own, ends, strict=True):
                found[place] = end_ms - jobs[place].submit_ms
    return found


def _part(capacity: Vector, weight: float, whole: float) -> Vector:
    if weight == 1.0 and whole.is_integer():
        return tuple(amount // int(whole) for amount in capacity)
    return tuple(int(amount * weight / whole) for amount in capacity)


def _could_run(bundle: Bundle, free: Vector) -> bool:
    return fits(scale(bundle.unit, bundle.tasks) if bundle.is_gang else bundle.unit, free)


@dataclass(slots=True, eq=False)
class _Waiting:
    """Tasks of one bundle that have not started, or one gang, whose need is that of all its tasks."""

    number: int
    job: int
    need: Vector
    pieces: int
    duration_ms: int


class _Slice:
    """A pool that runs what fits, oldest first; times are whole and ties go by order of arrival."""

    def __init__(self, free: Vector) -> None:
        self._places = [place for place, amount in enumerate(free) if amount]
        self._free: Vector = tuple(free[place] for place in self._places)
        self._stages: list[deque[tuple[Bundle, ...]]] = []
        self._left: list[int] = []
        self._queues: dict[Vector, deque[_Waiting]] = {}
        """By need: of those that need the same, the first is always the next."""
        self._least: Vector = ()
        """In each place the least that any waiting need has, or less: while that does not fit, nothing does."""
        self._numbers = 0
        # (time, arrivals after ends, number, job, need, pieces); an arrival has no pieces.
        self._events: list[tuple[int, int, int, int, Vector, int]] = []

    def run(self, jobs: Sequence[Job]) -> list[int]:
        """When each job ends, in the order given."""
        ends = [0] * len(jobs)
        for job, asked in enumerate(jobs):
            self._stages.append(deque(asked.stages()))
            self._left.append(0)
            self._push(asked.submit_ms, 1, job, (), 0)
        while self._events:
            now_ms = self._events[0][0]
            while self._events and self._events[0][0] == now_ms:
                _, _, _, job, need, pieces = heapq.heappop(self._events)
                if pieces:
                    self._free = add(self._free, scale(need, pieces))
                    self._left[job] -= pieces
                if not self._left[job]:
                    ends[job] = now_ms
                    self._open_next_stage(job)
            self._start(now_ms)
        return ends

    def _open_next_stage(self, job: int) -> None:
        if self._stages[job]:
            for bundle in self._stages[job].popleft():
                need = self._need(bundle)
                pieces = 1 if bundle.is_gang else bundle.tasks
                self._left[job] += pieces
                self._numbers += 1
                waiting = _Waiting(self._numbers, job, need, pieces, bundle.duration_ms)
                self._queues.setdefault(need, deque()).append(waiting)
                self._least = tuple(map(min, self._least, need)) if self._least else need

    def _need(self, bundle: Bundle) -> Vector:
        """Of one piece, in the places that there are; looking at others would cost half of the time."""
        need = scale(bundle.unit, bundle.tasks) if bundle.is_gang else bundle.unit
        return tuple([need[place] for place in self._places])

    def _start(self, now_ms: int) -> None:
        if not fits(self._least, self._free):
            return
        queues, free = self._queues, self._free
        heads = [(queue[0].number, need) for need, queue in queues.items() if fits(need, free)]
        # Exact again, now that all were looked at: what was the least may have left since.
        self._least = tuple(min(places) for places in zip(*queues, strict=True)) if queues else ()
        heapq.heapify(heads)
        while heads and fits(self._least, free):
            _, need = heapq.heappop(heads)
            if not fits(need, free):
                continue
            queue = queues[need]
            first = queue[0]
            pieces = min(first.pieces, _times(need, free))
            free = subtract(free, scale(need, pieces))
            self._push(now_ms + first.duration_ms, 0, first.job, need, pieces)
            first.pieces -= pieces
            if first.pieces:
                continue
            queue.popleft()
            if queue:
                heapq.heappush(heads, (queue[0].number, need))
            else:
                del queues[need]
        self._free = free

    def _push(self, at_ms: int, rank: int, job: int, need: Vector, pieces: int) -> None:
        self._numbers += 1
        heapq.heappush(self._events, (at_ms, rank, self._numbers, job, need, pieces))


def _times(need: Vector, free: Vector) -> int:
    """How often a need fits."""
    return min((have // want for want, have in zip(need, free, strict=True) if want), default=0)
