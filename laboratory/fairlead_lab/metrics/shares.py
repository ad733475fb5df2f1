"""Who held what share while wanting more, added up as a run goes.

A user *holds* a task's demand while it runs, is *present* while a task of his is handed in and not over, and *contends*
while one is handed in and not started: only then does he want more than he has, and only among such users is an unequal
share a question of fairness. Fairness at an instant is asked where at least two contend. In a live run the few
milliseconds of a launch count as waiting too, so a report says how long contention was in all.

Weights, where a workload has them, divide: an entitlement is a user's weight over the weights of those present, and Jain's
index is of dominant shares over weights.

A change costs O(1), but for users who come and go: then the entitlement of each who contends changes.
"""

from collections.abc import Mapping
from typing import Final

from fairlead_lab.metrics.integrals import Holding
from fairlead_proto.resources import Vector

SHARE_TOLERANCE: Final = 1e-9
"""Below an entitlement by less than this is rounding of the division, not a smaller share."""
_ONE_SHARE: Final = 1 << 60
"""Shares are added up as whole numbers of 2^-60, so that what was added and taken away again leaves exactly nothing."""


class Standing:
    """One user so far."""

    __slots__ = (
        "_contended_before_ms", "below_ms", "contending_ms", "counted", "holding", "present_from_ms", "present_ms",
        "running", "waiting", "weight",
    )  # fmt: skip

    def __init__(self, weight: float, capacity: Vector) -> None:
        self.weight = weight
        self.holding = Holding(capacity)
        self.waiting = 0
        """Tasks."""
        self.running = 0
        self.counted = 0
        """The dominant share over the weight, in 2^-60."""
        self.present_ms = 0
        """Up to ``present_from_ms``."""
        self.present_from_ms = 0
        self.contending_ms = 0
        """Of the time present, wanting more while at least one other does."""
        self.below_ms = 0
        """Of that, with less than the entitlement."""
        self._contended_before_ms = 0

    @property
    def is_present(self) -> bool:
        """Whether something of the user waits or runs."""
        return bool(self.waiting or self.running)

    def hold(self, unit: Vector, tasks: int, now_ms: int) -> None:
        """Hold so many tasks more; fewer, if below zero."""
        self.holding.hold(unit, tasks, now_ms)
        self.counted = round(self.holding.share / self.weight * _ONE_SHARE)

    def begin_contending(self, contended_ms: int) -> None:
        """The user wants more from now on, when the run's contended time is this."""
        self._contended_before_ms = contended_ms

    def settle_contention(self, contended_ms: int, present_weight: float) -> None:
        """Add the contended time since this was last told; the user wanted more all the while, and nothing changed."""
        passed_ms = contended_ms - self._contended_before_ms
        if passed_ms:
            self._contended_before_ms = contended_ms
            self.contending_ms += passed_ms
            if self.holding.share < self.weight / present_weight - SHARE_TOLERANCE:
                self.below_ms += passed_ms


class SharesSoFar:
    """All users so far."""

    def __init__(self, capacity: Vector, weights: Mapping[str, float]) -> None:
        """Args: of the whole cluster; of users that weigh other than 1."""
        self.users: dict[str, Standing] = {}
        self.contended_ms = 0
        """How long at least two users contended, up to the latest change."""
        self.jain_ms = 0.0
        """Integral of Jain's index over that time."""
        self._capacity = capacity
        self._weights = weights
        self._now_ms = 0
        self._present_weight = 0.0
        self._contending: dict[str, Standing] = {}
        self._sum = 0
        """Of ``counted`` over the contending."""
        self._sum_of_squares = 0

    def wait(self, user: str, tasks: int, now_ms: int) -> None:
        """So many more tasks of a user are ready to start."""
        self.advance(now_ms)
        standing = self.users.get(user)
        if standing is None:
            standing = self.users[user] = Standing(self._weights.get(user, 1.0), self._capacity)
        if not standing.is_present:
            self._settle_contenders()
            self._present_weight += standing.weight
            standing.present_from_ms = now_ms
        if not standing.waiting:
            standing.begin_contending(self.contended_ms)
            self._contending[user] = standing
            self._count(standing.counted, 1)
        standing.waiting += tasks

    def change(self, user: str, unit: Vector, now_ms: int, *, waiting: int = 0, running: int = 0) -> None:
        """So many more of a user's tasks wait and run, fewer below zero.

        A task that starts is one less that waits and one more that runs; one that will never start is one less that waits.
        """
        self.advance(now_ms)
        standing = self.users[user]
        was_contending = standing.waiting > 0
        if was_contending:
            standing.settle_contention(self.contended_ms, self._present_weight)
            self._count(standing.counted, -1)
        if running:
            standing.hold(unit, running, now_ms)
            standing.running += running
        standing.waiting += waiting
        if standing.waiting:
            self._count(standing.counted, 1)
        elif was_contending:
            del self._contending[user]
        if not (standing.waiting or standing.running):
            self._settle_contenders()
            self._present_weight -= standing.weight
            standing.present_ms += now_ms - standing.present_from_ms

    def advance(self, now_ms: int) -> None:
        """Let time pass in which nothing changed."""
        passed_ms = now_ms - self._now_ms
        if passed_ms:
            self._now_ms = now_ms
            if len(self._contending) > 1:
                self.contended_ms += passed_ms
                self.jain_ms += self._jain() * passed_ms

    def settle(self, now_ms: int) -> None:
        """Bring every user's integrals up to now."""
        self.advance(now_ms)
        self._settle_contenders()
        for standing in self.users.values():
            if standing.is_present:
                standing.present_ms += now_ms - standing.present_from_ms
                standing.present_from_ms = now_ms

    def _jain(self) -> float:
        """Jain's index of the contending users' dominant shares; where all are zero they are equal, so 1.

        J = (sum s_i)^2 / (n sum s_i^2): 1 if all are equal, 1/n if one has all. R. Jain, D. Chiu, W. Hawe, "A
        Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared Computer Systems", 1984.
        """
        if not self._sum_of_squares:
            return 1.0
        return self._sum * self._sum / (len(self._contending) * self._sum_of_squares)

    def _count(self, counted: int, sign: int) -> None:
        self._sum += sign * counted
        self._sum_of_squares += sign * counted * counted

    def _settle_contenders(self) -> None:
        for standing in self._contending.values():
            standing.settle_contention(self.contended_ms, self._present_weight)
