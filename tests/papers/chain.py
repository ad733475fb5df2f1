"""The Markov chain of paper 000, section 3.1, for any number of classes and two resources, in floats.

Class k arrives at rate rho_k and one of its jobs ends at rate phi_k (mu_k = 1). States of more than ``jobs_max`` jobs are left
out: at loads below one that is an error of the order of load^jobs_max.
"""

from collections.abc import Callable, Iterator, Sequence

Profiles = Sequence[tuple[float, float]]
State = tuple[int, ...]
Rate = Callable[[State, Profiles], list[float]]
"""From the number of jobs of each class and what one task takes, as fractions of the two resources, to phi of each class."""


def drf(state: State, profiles: Profiles) -> list[float]:
    """phi_k max_j a_kj is the same for all classes, since all need both resources, and the heavier load sets it."""
    top = [max(row) for row in profiles]
    loads = [
        sum(n * row[place] / most for n, row, most in zip(state, profiles, top, strict=True))
        for place in (0, 1)
    ]
    return [1 / max(loads) / most for most in top]


def pf(state: State, profiles: Profiles) -> list[float]:
    """By (3) with nu = (u, n - u), by (5); u minimises - sum n_k log(a_k . nu), whose derivative rises."""
    jobs = sum(state)
    low, high = 0.0, float(jobs)
    u = jobs / 2
    for _ in range(60):
        slope = -sum(
            n * (one - two) / (one * u + two * (jobs - u))
            for n, (one, two) in zip(state, profiles, strict=True)
        )
        low, high = (u, high) if slope < 0 else (low, u)
        u = (low + high) / 2
    return [1 / (one * u + two * (jobs - u)) for one, two in profiles]


def service_rates(
    rate: Rate, rho: Sequence[float], true: Profiles, *, claimed: Profiles | None = None, jobs_max: int
) -> list[float]:
    """gamma_k = rho_k / E(n_k), and E(n_k) from the stationary distribution by Gauss-Seidel.

    Resources are shared by what is ``claimed``; jobs run the tasks that were claimed, whatever these would really take.
    """
    states = list(_states(len(true), jobs_max))
    at = {state: place for place, state in enumerate(states)}
    ends = [[0.0] * len(true)]
    for state in states[1:]:
        phi = rate(state, claimed or true)
        ends.append([n * each for n, each in zip(state, phi, strict=True)])
    into: list[list[tuple[int, float]]] = [[] for _ in states]
    out = [sum(row) for row in ends]
    for place, state in enumerate(states):
        for k, n in enumerate(state):
            above = at.get((*state[:k], n + 1, *state[k + 1 :]))
            if above is not None:
                out[place] += rho[k]
                into[above].append((place, rho[k]))
                into[place].append((above, ends[above][k]))
    chance = [1.0] + [0.0] * (len(states) - 1)
    change = 1.0
    while change > 1e-10:
        change = 0.0
        for place in (*range(1, len(states)), *range(len(states) - 1, 0, -1)):
            after = sum(chance[source] * flow for source, flow in into[place]) / out[place]
            change = max(change, abs(after - chance[place]))
            chance[place] = after
    total = sum(chance)
    means = [
        sum(part * state[k] for part, state in zip(chance, states, strict=True)) / total
        for k in range(len(true))
    ]
    return [arrivals / mean for arrivals, mean in zip(rho, means, strict=True)]


def _states(classes: int, jobs_max: int) -> Iterator[State]:
    """All of at most so many jobs, the fewest first."""
    for jobs in range(jobs_max + 1):
        yield from _of(classes, jobs)


def _of(classes: int, jobs: int) -> Iterator[State]:
    if classes == 1:
        yield (jobs,)
        return
    for first in range(jobs + 1):
        for rest in _of(classes - 1, jobs - first):
            yield (first, *rest)
