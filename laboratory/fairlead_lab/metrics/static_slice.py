"""When each job would end on an own static slice of the cluster, user by user: the yardstick of the sharing incentive.

Sharing incentive (Ghodsi et al., "Dominant Resource Fairness", section 3): nobody is worse off than with an exclusive
1/n of each resource. Here the slice is computed, not run: one pool of a user's part of the capacity (rounded down), no
hosts inside it, no launch costs, tasks started in order of submission, a later one before an earlier that does not fit.
All of that favours the slice: pooling spares it the fragmentation that real hosts have. So a user who did no worse than
this has no complaint, and one who did slightly worse may owe it to launches and fragmentation rather than to the policy.

It works on bundles, so that millions of equal tasks cost what their starts cost. A gang starts when all of its tasks fit.
No policy changes these times, so they are computed once for all policies.
"""

import heapq
from array import array
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from fairlead_proto.resources import Vector, add, fits, scale, subtract
from fairlead_sim.workload import Bundle, Job

NEVER: Final = -1
"""In place of the completion time of jobs of a user whose slice is too small for one of his tasks."""


def completions_alone_ms(
    jobs: Sequence[Job],
    places: Iterable[int],
    capacity: Vector,
    *,
    user_of: Callable[[Job], str],
    weights: Mapping[str, float] | None = None,
    users: Collection[str] = (),
) -> "array[int]":
    """Completion time in ms of each job, in the order given; ``NEVER`` for all jobs of a user whose slice is too small.

    Args:
        jobs: In order of arrival.
        places: Of the jobs that run; ``NEVER`` for the others too.
        capacity: Of the whole cluster.
        user_of: Who has one slice; a slice is 1/n of the cluster for n users, or by weight.
        weights: Of users that weigh other than 1.
        users: Who has a slice too, though none of these jobs.
    """
    found = array("q", [NEVER]) * len(jobs)
    by_user: dict[str, list[int]] = {}
    for place in places:
        by_user.setdefault(user_of(jobs[place]), []).append(place)
    weigh = weights or {}
    whole = sum(weigh.get(user, 1.0) for user in dict.fromkeys([*by_user, *users]))
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


_FEW: Final = 8
"""Needs that are looked at one and all, rather than from the oldest on until one fits."""


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
        self._by_age: list[tuple[int, Vector]] = []
        """The needs that wait, by the number of the first that has them."""
        self._by_amount: list[list[tuple[int, Vector]]] = [[] for _ in self._places]
        """The same by what they want in each place: what wants too much there need not be looked at."""
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
                queue = self._queues.setdefault(need, deque())
                if not queue:
                    self._add(waiting)
                queue.append(waiting)

    def _add(self, first: _Waiting) -> None:
        self._by_age.append((first.number, first.need))  # the newest of all
        for place, needs in enumerate(self._by_amount):
            insort(needs, (first.need[place], first.need))

    def _need(self, bundle: Bundle) -> Vector:
        """Of one piece, in the places that there are; looking at others would cost half of the time."""
        need = scale(bundle.unit, bundle.tasks) if bundle.is_gang else bundle.unit
        return tuple([need[place] for place in self._places])

    def _start(self, now_ms: int) -> None:
        while (need := self._oldest_that_fits()) is not None:
            first = self._queues[need][0]
            pieces = min(first.pieces, _times(need, self._free))
            self._free = subtract(self._free, scale(need, pieces))
            self._push(now_ms + first.duration_ms, 0, first.job, need, pieces)
            first.pieces -= pieces
            if not first.pieces:
                self._drop_first(need)

    def _oldest_that_fits(self) -> Vector | None:
        """Of the needs that wait, the one that does so for the longest among those that fit; None if none does."""
        free = self._free
        place, end = min(
            ((place, bisect_left(needs, (free[place] + 1,))) for place, needs in enumerate(self._by_amount)),
            key=itemgetter(1),
        )
        if end > _FEW:
            # Much is free, so of those that wait longest one fits soon.
            return next((need for _, need in self._by_age if fits(need, free)), None)
        small = self._by_amount[place][:end]
        return min(
            (need for _, need in small if fits(need, free)),
            key=lambda need: self._queues[need][0].number,
            default=None,
        )

    def _drop_first(self, need: Vector) -> None:
        """All of the bundle that waits longest with this need has started."""
        queue = self._queues[need]
        del self._by_age[bisect_left(self._by_age, (queue.popleft().number, need))]
        if queue:
            insort(self._by_age, (queue[0].number, need))
            return
        del self._queues[need]
        for place, needs in enumerate(self._by_amount):
            del needs[bisect_left(needs, (need[place], need))]

    def _push(self, at_ms: int, rank: int, job: int, need: Vector, pieces: int) -> None:
        self._numbers += 1
        heapq.heappush(self._events, (at_ms, rank, self._numbers, job, need, pieces))


def _times(need: Vector, free: Vector) -> int:
    """How often a need fits."""
    return min((have // want for want, have in zip(need, free, strict=True) if want), default=0)
