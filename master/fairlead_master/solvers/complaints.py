"""No justified complaints: whether an allocation, from wherever it comes, treats everyone by entitlement on bottlenecks.

Dolev, Feitelson, Halpern, Kupferman and Linial, "No justified complaints: on fair sharing of multiple resources"
(2012), as told by Zeldes and Feitelson, "On-line fair allocations based on bottlenecks and global priorities", section 2:
a resource that is used up is a bottleneck, and user i has a justified complaint unless

    x_i = (all it wants)   or   a_ij x_i >= e_ij on some bottleneck j that it needs,

with x_i its tasks, a_ij the fraction of resource j that one of them takes (``Problem.share``) and e_ij its entitlement.
More could be given to a user who has its entitlement on a bottleneck only at the cost of others, and a user who needs no
bottleneck could be given more at nobody's cost.

How we differ: the papers have one entitlement a user, here there may be one per resource; and a bottleneck counts only
for users who need it, which matters where an entitlement is zero. In whole tasks nothing comes out even: a resource is a
bottleneck there if too little of it is left for one more task of somebody who wants one, and a user complains only if one
task more would not bring it above its entitlement either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from operator import mul
from typing import Final

from fairlead_master.solvers.problem import Amounts, Problem, SolverError, User

TOLERANCE: Final = 1e-6
"""Relative. A thousand times what our solvers err by, and less than anyone would complain about."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a user has of a bottleneck that it needs, and what it is entitled to; fractions of the capacity."""

    resource: str
    has_share: float
    entitled_share: float


@dataclass(frozen=True, slots=True)
class Complaint:
    """A user who wants more, and has its entitlement on no bottleneck that it needs."""

    user: str
    tasks: float
    wants: float
    """Tasks in all; infinite where it takes any number."""
    standings: tuple[Standing, ...]
    """On every bottleneck that it needs; empty if nothing that it needs is used up."""

    def __str__(self) -> str:
        if not self.standings:
            tasks = f"{self.tasks:.6g}"
            tasks += " task" if tasks == "1" else " tasks"
            return f"{self.user} has {tasks} and wants more, and nothing it needs is used up"
        parts = [
            f"{standing.has_share:.4%} of {standing.resource} and is entitled to {standing.entitled_share:.4%}"
            for standing in self.standings
        ]
        return f"{self.user} wants more and has {', '.join(parts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The flaws of an allocation."""

    bottlenecks: tuple[str, ...]
    """Resources that are used up, in the problem's order."""
    overdrawn: tuple[str, ...]
    """Resources of which more is given than there is."""
    overserved: tuple[str, ...]
    """Users who were given more tasks than they want."""
    complaints: tuple[Complaint, ...]
    improvable: tuple[str, ...]
    """Users who could have more without anybody having less; empty if the allocation is Pareto efficient."""

    @property
    def is_feasible(self) -> bool:
        """Whether nothing is given twice, and nobody more than it wants."""
        return not self.overdrawn and not self.overserved

    @property
    def is_fair(self) -> bool:
        """Whether the allocation exists and nobody has a justified complaint."""
        return self.is_feasible and not self.complaints


def entitlements(problem: Problem) -> tuple[Amounts, ...]:
    """e_ij of each user on each resource: those of the problem, else w_ij over the sum of w_kj.

    Raises:
        SolverError: the entitlements to some resource add up to more than there is of it, so that not all can be met.
    """
    if problem.entitlements is None:
        sums = [sum(column) for column in zip(*(user.weights for user in problem.users), strict=True)]
        return tuple(
            [
                tuple([weight / total for weight, total in zip(user.weights, sums, strict=True)])
                for user in problem.users
            ]
        )
    for name, column in zip(problem.resources, zip(*problem.entitlements, strict=True), strict=True):
        if sum(column) > 1 + TOLERANCE:
            raise SolverError(
                f"entitlements: expected at most 1 in all of each resource, got {sum(column):.6g} of {name}"
            )
    return problem.entitlements


def verify(problem: Problem, tasks: Sequence[float], *, whole_tasks: bool = False) -> Verdict:
    """Judge an allocation of ``tasks[i]`` tasks to user i, on the capacity as one pool.

    With ``whole_tasks`` a user who is at most one task short of its entitlement does not complain.

    Raises:
        SolverError: not one finite number >= 0 per user, or entitlements that add up to more than there is.
    """
    _check(problem, tasks)
    users = problem.users
    shares = [problem.share(user) for user in users]
    used = [sum(map(mul, column, tasks)) for column in zip(*shares, strict=True)]
    hungry = [index for index, user in enumerate(users) if _wants_more(user, tasks[index], whole_tasks)]
    waiting = [shares[index] for index in hungry] if whole_tasks else []
    scarce = [
        part >= 1 - TOLERANCE or any(part + share[place] > 1 + TOLERANCE for share in waiting)
        for place, part in enumerate(used)
    ]
    entitled = entitlements(problem)
    complaints = []
    for index in hungry:
        places = [place for place, share in enumerate(shares[index]) if share and scarce[place]]
        served = tasks[index] + (1 if whole_tasks else 0)
        if not any(
            shares[index][place] * served >= entitled[index][place] * (1 - TOLERANCE) for place in places
        ):
            standings = [
                Standing(
                    problem.resources[place], shares[index][place] * tasks[index], entitled[index][place]
                )
                for place in places
            ]
            complaints.append(
                Complaint(users[index].name, tasks[index], users[index].max_tasks, tuple(standings))
            )
    return Verdict(
        bottlenecks=_named(problem, scarce),
        overdrawn=_named(problem, [part > 1 + TOLERANCE for part in used]),
        overserved=tuple(
            [
                user.name
                for user, count in zip(users, tasks, strict=True)
                if count > user.max_tasks * (1 + TOLERANCE)
            ]
        ),
        complaints=tuple(complaints),
        improvable=tuple(
            [
                users[i].name
                for i in hungry
                if not any(need and is_scarce for need, is_scarce in zip(shares[i], scarce, strict=True))
                or (whole_tasks and _fits(shares[i], used))
            ]
        ),
    )


def _wants_more(user: User, tasks: float, whole_tasks: bool) -> bool:  # noqa: FBT001 - handed on
    """Whether the user was given less than it wants, by a task at least if tasks are whole."""
    if whole_tasks:
        return user.max_tasks - tasks >= 1 - TOLERANCE
    return tasks < user.max_tasks * (1 - TOLERANCE)


def _named(problem: Problem, flags: Sequence[bool]) -> tuple[str, ...]:
    return tuple([name for name, flag in zip(problem.resources, flags, strict=True) if flag])


def _fits(share: Amounts, used: Sequence[float]) -> bool:
    """Whether one task more fits on top of ``used``."""
    return all(part + need <= 1 + TOLERANCE for need, part in zip(share, used, strict=True) if need)


def _check(problem: Problem, tasks: Sequence[float]) -> None:
    if len(tasks) != len(problem.users):
        raise SolverError(
            f"tasks: expected one number for each of {len(problem.users)} users, got {len(tasks)}"
        )
    for user, count in zip(problem.users, tasks, strict=True):
        if not (isfinite(count) and count >= 0):
            raise SolverError(f"tasks of {user.name}: expected a finite number >= 0, got {count}")
