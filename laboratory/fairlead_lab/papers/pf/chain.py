"""Mean service rates from the stationary distribution: jobs in progress as the Markov chain of paper 000, section 3.1.

Jobs of class k arrive at rate rho_k and end at rate n_k phi_k. The balance equations

    pi(n) (sum_k rho_k + sum_k n_k phi_k(n)) = sum_k rho_k pi(n - e_k) + sum_k (n_k + 1) phi_k(n + e_k) pi(n + e_k)

are solved by Gauss-Seidel sweeps, up and down through the number of jobs. Sweeps alone are slow to settle how many jobs there
are. But that is known given the rest: whatever the number of jobs, of all classes or of one, it goes up from m to m + 1 as
often as it comes down, so after each sweep the chances of m and of m + 1 jobs are put in that proportion (aggregation and
disaggregation, with the cuts between them as the aggregates). Ten to a hundred times fewer sweeps do.

States of more than so many jobs are left out; a job that would lead there is turned away. How many are needed is found by
trying: the chances of the last levels fall geometrically, from which follows what is missing of the mean.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, exp, inf, lgamma, log
from typing import Final

from fairlead_lab.papers.pf.rates import Rates
from fairlead_lab.papers.pf.traffic import State, loads

LEFT_OUT_MAX: Final = 1e-4
"""Of the mean number of jobs, what states that are left out may amount to: a tenth of what results are to be true to."""

_CLOSE: Final = 1e-5
"""Relative change of the means, to all appearances, that further sweeps would still make."""

_ROUGH: Final = 1e-3
"""The same, while it is not known how many jobs are needed."""

_FALLING: Final = 1e-3
"""Changes above this do not yet fall at the rate at which they will."""

_ROUNDING: Final = 1e-13

_SWEEPS_MAX: Final = 5_000
"""The slowest chain of the figures takes 300."""

_Flows = list[list[tuple[int, float]]]
"""For each state, whence it is entered, and at what rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stationary:
    """The stationary means of the chain."""

    mean_jobs: tuple[float, ...]
    """E(n_k)."""
    service_rates: tuple[float, ...]
    """gamma_k = rho_k / E(n_k), by Little's law."""
    jobs_max: int
    left_out: float
    """Of the mean number of jobs: what states of more jobs would add, were the last levels' decay to go on."""


class Chain:
    """The chain of jobs in progress under one policy, for any rates of arrival. Computes the rates of a state once."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._classes = len(rates.profiles)
        self._states: list[State] = []
        """The fewest jobs first, so that a larger chain begins as a smaller one."""
        self._place: dict[State, int] = {}
        self._ends: list[tuple[float, ...]] = []
        """n_k phi_k of each state."""
        self._jobs_max = -1

    def solve(
        self, arrivals: Sequence[float], *, jobs_max: int | None = None, close: float = _CLOSE
    ) -> Stationary:
        """The stationary means when class k arrives at rate ``arrivals[k]``, with as many jobs as needed or ``jobs_max``.

        They are what sweeps without end would give, but for the part ``close``.

        Raises:
            ValueError: some class does not arrive, or a resource has a load of 1 or more, so that there is no such mean.
        """
        load = max(loads(arrivals, self._rates.profiles))
        if min(arrivals) <= 0.0 or load >= 1.0:
            raise ValueError(
                f"arrivals: expected rates above 0 and loads below 1, got {tuple(arrivals)} and a load of {load:g}"
            )
        jobs = jobs_max or max(4, ceil(log(LEFT_OUT_MAX / 10) / log(load)))
        chances: list[float] = []
        while True:
            self._grow(jobs)
            chances = _extended(chances, self._states_upto(jobs), arrivals, load)
            self._relax(arrivals, chances, _ROUGH)
            found, decay = self._describe(arrivals, chances, jobs)
            if jobs_max is not None or found.left_out <= LEFT_OUT_MAX:
                self._relax(arrivals, chances, close)
                found, decay = self._describe(arrivals, chances, jobs)
                if jobs_max is not None or found.left_out <= LEFT_OUT_MAX:
                    return found
            # A tenth more are allowed for, since the decay is not quite the same at every level.
            more = log(LEFT_OUT_MAX / found.left_out) / log(decay) if decay < 1.0 else inf
            jobs += ceil(min(1.1 * more + 1, jobs))

    def _states_upto(self, jobs: int) -> list[State]:
        """States of at most ``jobs`` jobs."""
        return [state for state in self._states if sum(state) <= jobs]

    def _grow(self, jobs_max: int) -> None:
        for jobs in range(self._jobs_max + 1, jobs_max + 1):
            for state in _with_jobs(self._classes, jobs):
                self._place[state] = len(self._states)
                self._states.append(state)
                self._ends.append(self._rates.tasks(state))
        self._jobs_max = max(self._jobs_max, jobs_max)

    def _relax(self, arrivals: Sequence[float], chances: list[float], close: float) -> None:
        """Sweep until further sweeps would change the means by no more than the fraction ``close``."""
        inflows, outflows = self._flows(arrivals, len(chances))
        cuts = self._cuts(arrivals, len(chances))
        order = (*range(1, len(chances)), *range(len(chances) - 1, 0, -1))
        means, change = self._means(chances), inf
        for _ in range(_SWEEPS_MAX):
            for place in order:
                entered = 0.0
                for source, rate in inflows[place]:
                    entered += chances[source] * rate
                chances[place] = entered / outflows[place]
            for cut in cuts:
                cut.balance(chances)
            before, means = means, self._means(chances)
            changed, change = (
                change,
                max(abs(new - old) / new for new, old in zip(means, before, strict=True)),
            )
            # What is to come, if the changes go on to fall as they did.
            is_falling = change < changed < _FALLING
            if change < _ROUNDING or (is_falling and change * change / (changed - change) < close):
                return
        raise AssertionError(f"the chain does not settle: {change} after {_SWEEPS_MAX} sweeps")

    def _flows(self, arrivals: Sequence[float], count: int) -> tuple[_Flows, list[float]]:
        """What enters each of the first ``count`` states, and the rate at which each is left."""
        inflows: _Flows = [[] for _ in range(count)]
        outflows = [sum(ends) for ends in self._ends[:count]]
        for place, state in enumerate(self._states[:count]):
            for k, rho in enumerate(arrivals):
                above = self._place.get((*state[:k], state[k] + 1, *state[k + 1 :]), count)
                if above < count:
                    inflows[above].append((place, rho))
                    inflows[place].append((above, self._ends[above][k]))
                    outflows[place] += rho
        return inflows, outflows

    def _cuts(self, arrivals: Sequence[float], count: int) -> list["_Cut"]:
        """A cut for the jobs of each class, and at last one for all jobs."""
        states, ends = self._states[:count], self._ends[:count]
        top = sum(states[-1])
        is_open = [sum(state) < top for state in states]
        cuts = [
            _Cut([state[k] for state in states], rho, [row[k] for row in ends], is_open)
            for k, rho in enumerate(arrivals)
        ]
        return [*cuts, _Cut(list(map(sum, states)), sum(arrivals), list(map(sum, ends)), is_open)]

    def _means(self, chances: Sequence[float]) -> list[float]:
        total = sum(chances)
        return [
            sum(chance * state[k] for chance, state in zip(chances, self._states, strict=False)) / total
            for k in range(self._classes)
        ]

    def _describe(
        self, arrivals: Sequence[float], chances: Sequence[float], jobs_max: int
    ) -> tuple[Stationary, float]:
        """The result, and by how much each of the last levels is less likely than the one before."""
        levels = [0.0] * (jobs_max + 1)
        for chance, state in zip(chances, self._states, strict=False):
            levels[sum(state)] += chance
        means = self._means(chances)
        decay = levels[-1] / levels[-2]
        left_out = inf
        if decay < 1.0:
            beyond = levels[-1] / sum(levels) * decay / (1.0 - decay)
            left_out = beyond * (jobs_max + 1.0 / (1.0 - decay)) / sum(means)
        found = Stationary(
            mean_jobs=tuple(means),
            service_rates=tuple([rho / mean for rho, mean in zip(arrivals, means, strict=True)]),
            jobs_max=jobs_max,
            left_out=left_out,
        )
        return found, decay


class _Cut:
    """A number of jobs that changes by one at a time: as many transitions lead from m to m + 1 as back."""

    def __init__(self, number: list[int], up: float, down: Sequence[float], is_open: Sequence[bool]) -> None:
        self._number = number
        """Of each state."""
        self._up = [up if goes_up else 0.0 for goes_up in is_open]
        self._down = down
        self._count = max(number) + 1

    def balance(self, chances: list[float]) -> None:
        """Scale the chances so that transitions up and down balance between neighbouring numbers."""
        rising, falling = [0.0] * self._count, [0.0] * self._count
        for number, chance, up, down in zip(self._number, chances, self._up, self._down, strict=True):
            rising[number] += chance * up
            falling[number] += chance * down
        factors = [1.0]
        for number in range(1, self._count):
            # So unlikely a number that its chance is 0 in floats gets one from its neighbours in the next sweep.
            fall = falling[number]
            factors.append(factors[-1] * rising[number - 1] / fall if fall > 0.0 else 0.0)
        for place, number in enumerate(self._number):
            chances[place] *= factors[number]


def _extended(
    chances: Sequence[float], states: Sequence[State], arrivals: Sequence[float], load: float
) -> list[float]:
    """Where sweeps begin: the chances known so far, and for other states those of one resource that all share alike."""
    total = sum(arrivals)
    parts = [log(rho / total) for rho in arrivals]
    begun = list(chances)
    for state in states[len(begun) :]:
        jobs = sum(state)
        ways = lgamma(jobs + 1) - sum(lgamma(n + 1) for n in state)
        begun.append(
            exp(ways + sum(n * part for n, part in zip(state, parts, strict=True)) + jobs * log(load))
        )
    return begun


def _with_jobs(classes: int, jobs: int) -> Iterator[State]:
    """All states of exactly so many jobs."""
    if classes == 1:
        yield (jobs,)
        return
    for first in range(jobs + 1):
        for others in _with_jobs(classes - 1, jobs - first):
            yield (first, *others)
