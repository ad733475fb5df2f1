"""The fluid model of paper 000, section 3.1, simulated: jobs with sizes, and not only their numbers.

Jobs arrive by a Poisson process and have exponentially distributed sizes; at any moment each job of class k progresses at
phi_k, which changes with every arrival and every end. Since all jobs of a class progress alike, the class has one clock
that runs at phi_k: a job ends when it has gone on by the job's size, and an event costs the same however many jobs there are.

The rates are those of the chain that ``chain`` solves. The rest has nothing in common with it: here are jobs, each with its
own time of completion.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from random import Random
from typing import Final

from fairlead_lab.papers.pf.intervals import BATCHES, Batches
from fairlead_lab.papers.pf.rates import Rates

_WARM_UP: Final = 0.1
"""Of the jobs that count: that many come before them, since the cluster is empty at first."""


def simulate(rates: Rates, arrivals: Sequence[float], *, jobs: int, dice: Random) -> list[Batches]:
    """Simulate ``jobs`` jobs, after a warm-up, and return the sizes and times of each class."""
    return _Run(rates, arrivals, jobs, dice).run()


class _Job:
    """A job: time of arrival, size, and the batch it counts in; -1 for none."""

    __slots__ = ("arrived", "batch", "size")

    def __init__(self, arrived: float, size: float, batch: int) -> None:
        self.arrived = arrived
        self.size = size
        self.batch = batch


class _Run:
    def __init__(self, rates: Rates, arrivals: Sequence[float], jobs: int, dice: Random) -> None:
        self._rates = rates
        self._arrivals = arrivals
        self._dice = dice
        self._jobs = jobs
        self._arrived = -int(_WARM_UP * jobs)
        """Jobs so far; below 0 while it warms up."""
        self._running: list[list[tuple[float, int, _Job]]] = [[] for _ in arrivals]
        """Of each class, by what its clock will show when the job ends."""
        self._clocks = [0.0] * len(arrivals)
        self._found = [Batches() for _ in arrivals]

    def run(self) -> list[Batches]:
        """Run until the last counted job has ended. Others arrive until then, so that it competes with as many as the rest."""
        now, total = 0.0, sum(self._arrivals)
        left = self._jobs
        next_arrival = self._dice.expovariate(total)
        while left:
            speeds = self._speeds()
            first, wait = self._next_end(speeds)
            is_arrival = now + wait >= next_arrival
            wait = next_arrival - now if is_arrival else wait
            now = next_arrival if is_arrival else now + wait
            for k, speed in enumerate(speeds):
                self._clocks[k] += speed * wait
            if is_arrival:
                self._arrive(now)
                next_arrival = now + self._dice.expovariate(total)
            else:
                _, _, job = heappop(self._running[first])
                if job.batch >= 0:
                    self._found[first].sizes[job.batch] += job.size
                    self._found[first].times[job.batch] += now - job.arrived
                    left -= 1
        return self._found

    def _speeds(self) -> list[float]:
        """phi_k of each class."""
        tasks = self._rates.tasks(tuple(map(len, self._running)))
        return [
            share / len(running) if running else 0.0
            for share, running in zip(tasks, self._running, strict=True)
        ]

    def _next_end(self, speeds: Sequence[float]) -> tuple[int, float]:
        """The class whose job ends next if nobody arrives, and in how long."""
        first, wait = -1, float("inf")
        for k, running in enumerate(self._running):
            if running and (running[0][0] - self._clocks[k]) / speeds[k] < wait:
                first, wait = k, (running[0][0] - self._clocks[k]) / speeds[k]
        return first, max(0.0, wait)

    def _arrive(self, now: float) -> None:
        """Add a job, of a class drawn in proportion to the rates of arrival."""
        (k,) = self._dice.choices(range(len(self._arrivals)), self._arrivals)
        size = self._dice.expovariate(1.0)
        batch = self._arrived * BATCHES // self._jobs if 0 <= self._arrived < self._jobs else -1
        heappush(self._running[k], (self._clocks[k] + size, self._arrived, _Job(now, size, batch)))
        self._arrived += 1
