"""How fast jobs are served in each state: by the solvers that answer ``fairlead allocate``, one call for each state.

All jobs of a class are alike, and a policy treats equals alike, so that n_k jobs are put to the solver as one user of weight
n_k. It gets n_k phi_k tasks: the rate at which jobs of the class come to their end.
"""

from collections.abc import Callable, Sequence
from operator import mul
from typing import Final

from fairlead_lab.papers.pf.traffic import Profiles, State
from fairlead_master.allocation.multipliers import interior_point
from fairlead_master.solvers import water_filling
from fairlead_master.solvers.problem import User

POLICIES: Final = ("drf", "pf")
"""That the paper compares."""

_CACHED_MAX: Final = 400_000
"""States whose rates are kept: about 100 MiB. Four classes at load 0.9 visit more than that, most of them once."""

_Present = Sequence[tuple[tuple[float, ...], int]]
"""The profile and the number of jobs of each class that has any; some class has."""


class Rates:
    """n_k phi_k of one policy, by state."""

    def __init__(self, policy: str, profiles: Profiles) -> None:
        """Jobs are served by these profiles: what they claim, if that is not what they need.

        Raises:
            ValueError: the policy is none of ``POLICIES``.
        """
        if policy not in POLICIES:
            raise ValueError(f"policy: expected one of {', '.join(POLICIES)}, got {policy!r}")
        self.profiles = profiles
        self._share: Callable[[_Present], list[float]] = _share_by_drf if policy == "drf" else _ByPrices()
        self._known: dict[State, tuple[float, ...]] = {}

    def tasks(self, state: State) -> tuple[float, ...]:
        """Tasks in progress of all jobs of each class together, as fractions of what fits at once."""
        found = self._known.get(state)
        if found is None:
            found = self._solve(state)
            if len(self._known) < _CACHED_MAX:
                self._known[state] = found
        return found

    def _solve(self, state: State) -> tuple[float, ...]:
        if not any(state):
            return (0.0,) * len(state)
        shared = iter(self._share([(row, n) for row, n in zip(self.profiles, state, strict=True) if n]))
        return tuple([next(shared) if n else 0.0 for n in state])


def _share_by_drf(present: _Present) -> list[float]:
    """Progressive filling: dominant shares rise in proportion to the weights."""
    users = [User(name="", demand=row, weights=(float(jobs),) * len(row)) for row, jobs in present]
    tier: water_filling.Tier = [(place, max(row) / jobs) for place, (row, jobs) in enumerate(present)]
    return water_filling.fill([row for row, _ in present], users, [tier])


class _ByPrices:
    """Proportional fairness by its multipliers: equation (3) with those of the exact solver."""

    def __init__(self) -> None:
        self._last: tuple[float, ...] | None = None
        """Of the state before: where the search begins. A state's neighbour is three times as quick as nothing."""

    def __call__(self, present: _Present) -> list[float]:
        found = interior_point.solve([(row, float(jobs)) for row, jobs in present], start=self._last)
        self._last = found.values
        return [jobs / sum(map(mul, row, found.values)) for row, jobs in present]
