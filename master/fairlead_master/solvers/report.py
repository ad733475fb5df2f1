"""Derives from a solution who holds how much, dominant shares, utilisation and saturated resources."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import fsum, isfinite
from typing import Any, Final

from fairlead_master.solvers.complaints import Verdict
from fairlead_master.solvers.problem import Amounts, Problem, Solution

_FULL: Final = 1e-9
"""A resource is saturated if no more than this fraction of it is left: what the solvers promise, not what they reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A solution with what follows from it. Per user in the problem's order, per resource likewise."""

    problem: Problem
    policy: str
    solution: Solution
    allocated: tuple[Amounts, ...]
    """Of each user, how much of each resource."""
    dominant_shares: tuple[float, ...]
    """The largest share of any capacity that the user holds, before weights."""
    dominant_resources: tuple[str, ...]
    """Which resource that is, by the user's demand, so that it is known for one that got nothing."""
    utilization: tuple[float, ...]
    """Of each resource the fraction that is held; 0 where there is none of it, and above 1 where slots promise too much."""
    saturated: tuple[str, ...]
    """Resources of which nothing is left."""

    @property
    def held_back_by(self) -> tuple[tuple[str, ...], ...]:
        """Of each user the resources that it needs and of which too little is left for more; empty if nothing is short.

        Too little is nothing where tasks may be split, and less than a task where they are whole. Nothing is short for a
        user who has all it wants, and maybe for one whom machines, slots or the policy itself hold back.
        """
        left = [1 - part for part in self.utilization]
        return tuple(
            [
                tuple(
                    [
                        name
                        for name, part, rest in zip(
                            self.problem.resources, self.problem.share(user), left, strict=True
                        )
                        if part and rest < (part * (1 - _FULL) if self.is_discrete else _FULL)
                    ]
                )
                for user in self.problem.users
            ]
        )

    @property
    def is_discrete(self) -> bool:
        """Whether tasks are whole."""
        return self.solution.steps is not None

    def as_json(self) -> dict[str, Any]:
        """The object that ``fairlead allocate --json`` prints."""
        users, resources = self.problem.users, self.problem.resources
        names = [user.name for user in users]
        document: dict[str, Any] = {
            "policy": self.policy,
            "mode": "discrete" if self.is_discrete else "fluid",
            "tasks": _by(names, self.solution.tasks),
            "allocated": _by(names, [_by(resources, amounts) for amounts in self.allocated]),
            "dominant_share": _by(names, self.dominant_shares),
            "dominant_resource": _by(names, self.dominant_resources),
            "utilization": _by(resources, self.utilization),
            "saturated": list(self.saturated),
        }
        if self.solution.multipliers is not None:
            document["multipliers"] = _by(resources, self.solution.multipliers)
        if self.solution.relative_error is not None:
            document["relative_error"] = self.solution.relative_error
        if self.solution.steps is not None:
            document["steps"] = list(self.solution.steps)
        return document


def report(problem: Problem, policy: str, solution: Solution) -> Report:
    """Derive everything from the numbers of tasks."""
    allocated = tuple(
        [
            tuple([tasks * need for need in user.demand])
            for tasks, user in zip(solution.tasks, problem.users, strict=True)
        ]
    )
    shares = [problem.share(user) for user in problem.users]
    largest = [max(row) for row in shares]
    utilization = tuple(
        [
            fsum(column) / total if total else 0.0
            for column, total in zip(zip(*allocated, strict=True), problem.capacity, strict=True)
        ]
    )
    return Report(
        problem=problem,
        policy=policy,
        solution=solution,
        allocated=allocated,
        dominant_shares=tuple([tasks * top for tasks, top in zip(solution.tasks, largest, strict=True)]),
        dominant_resources=tuple(
            [problem.resources[row.index(top)] for row, top in zip(shares, largest, strict=True)]
        ),
        utilization=utilization,
        saturated=tuple(
            [name for name, part in zip(problem.resources, utilization, strict=True) if part >= 1 - _FULL]
        ),
    )


def verdict_json(verdict: Verdict, *, is_discrete: bool) -> dict[str, Any]:
    """The object that ``fairlead allocate --verify --json`` prints."""
    return {
        "mode": "discrete" if is_discrete else "fluid",
        "fair": verdict.is_fair,
        "feasible": verdict.is_feasible,
        "efficient": not verdict.improvable,
        "bottlenecks": list(verdict.bottlenecks),
        "overdrawn": list(verdict.overdrawn),
        "overserved": list(verdict.overserved),
        "improvable": list(verdict.improvable),
        "complaints": [
            {
                "user": complaint.user,
                "tasks": complaint.tasks,
                "wants": complaint.wants if isfinite(complaint.wants) else None,
                "standings": [asdict(standing) for standing in complaint.standings],
            }
            for complaint in verdict.complaints
        ],
    }


def _by(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names, values, strict=True))
