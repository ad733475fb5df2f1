"""Classes of jobs that come and go: the traffic model of paper 000, section 3.1, with mu_k = 1 as in all its examples.

A class k has a profile a_k, what one of its tasks takes of each resource as a fraction of the capacity, and arrives at rate
rho_k. A job is one task's time of work on average, so that rho_k is the class's traffic too, and a job alone that has phi_k
tasks at a time is done in 1 / phi_k.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

Profiles = tuple[tuple[float, ...], ...]
"""a_kj: by class, then by resource."""

State = tuple[int, ...]
"""How many jobs of each class are in progress."""

CPU: Final = 0
"""Resource 1 of the paper, whose load is the horizontal axis of its figures."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """The mix of arriving jobs, without their rate."""

    profiles: Profiles
    parts: tuple[int, ...]
    """Jobs of the classes arrive in this proportion."""

    def arrivals(self, load: float) -> tuple[float, ...]:
        """rho_k of each class when the load on the CPU is ``load``."""
        each = load / sum(part * row[CPU] for part, row in zip(self.parts, self.profiles, strict=True))
        return tuple([part * each for part in self.parts])


def loads(arrivals: Sequence[float], profiles: Profiles) -> tuple[float, ...]:
    """The load on each resource; (10) says that the jobs in progress remain few while all are below 1."""
    return tuple(
        [
            sum(rho * need for rho, need in zip(arrivals, column, strict=True))
            for column in zip(*profiles, strict=True)
        ]
    )


SYMMETRIC: Final[Profiles] = ((1.0, 0.1), (0.1, 1.0))
"""Figures 1, 5 and 6."""

FIGURE_2: Final[Profiles] = ((1.0, 0.1), (0.5, 1.0))

FIGURE_3: Final[Profiles] = ((1.0, 0.1), (1.0, 0.5), (0.5, 1.0), (0.1, 1.0))
