"""The max-min family and ``fifo`` on fluid tasks: ``drf``, ``asset``, ``max-min``, ``max-min:RES``, ``slots:K``, ``fifo``.

Tasks may be split at will, over machines as well, so that machines of one kind, or in one proportion, are one pool. A
policy is known by its *rises*: by how much a user's key grows with each of its tasks.

    drf          rise_i = max over resources j of a_ij / w_ij
    asset        rise_i = sum over resources j of a_ij / w_ij
    max-min:RES  rise_i = a_i,RES / w_i,RES
    max-min      rise_i = 1 / w_i

with a_ij = D_ij / C_j, the share of resource j that one task of user i takes, and w_ij its weight: Ghodsi et al., "Dominant
Resource Fairness", section 4.1 for ``drf``, 4.3 for weights, 5.1 for ``asset``, 7.2 for one resource. w_i is the mean of the
w_ij where a key knows no resources.

Users are served in *tiers*, one tier after the other. ``drf``, ``asset`` and ``max-min`` have one. Under ``max-min:RES`` the
key of those who need none of RES is 0 whatever they hold, so that they come first, in equal numbers of tasks by weight,
and are stopped by other resources only. ``fifo`` has a tier for each user, in the order of the file.

Small problems are computed in fractions of the decimal numbers that were written, so that a rational answer is exact to
the last bit of the float it ends in; large ones in floats.
"""

from collections.abc import Callable
from typing import Final

from fairlead_master.allocation.weights import exact
from fairlead_master.solvers.machine_filling import fill_machines
from fairlead_master.solvers.problem import Problem, Solution, SolverError
from fairlead_master.solvers.water_filling import Number, Tier, fill

EXACT_USERS_MAX: Final = 64
"""Up to so many users all is computed in fractions. Their denominators grow with every sum: 64 users of unrelated sizes
take milliseconds, a thousand would take minutes."""

SLOTS_MAX: Final = 1_000
"""Of one machine, as on a live cluster."""


def solve(problem: Problem, policy: str) -> Solution:
    """The fluid allocation under ``drf``, ``asset``, ``max-min``, ``max-min:RES`` or ``fifo``.

    Raises:
        SolverError: no such policy, its resource is not of the problem, or there are too many users times kinds of nodes.
    """
    tiers = tiers_of(problem, policy)
    if problem.is_one_pool:
        return Solution(tasks=tuple(fill(shares(problem), problem.users, tiers)))
    return Solution(tasks=tuple(fill_machines(problem, tiers)))


def solve_slots(problem: Problem, policy: str) -> Solution:
    """The fluid allocation under ``slots:K``: each machine is K slots, and a task takes one whatever it needs.

    What is one pool is one machine. Slots are all that is looked at, so that more may be promised than there is.

    Raises:
        SolverError: K is no number from 1 to ``SLOTS_MAX``.
    """
    argument = policy.partition(":")[2]
    if not (argument.isascii() and argument.isdigit() and 1 <= int(argument[:9]) <= SLOTS_MAX):
        raise SolverError(f"policy: expected slots:K with K from 1 to {SLOTS_MAX}, got {policy!r}")
    machines = sum(nodes.count for nodes in problem.nodes) or 1
    number = converter(problem)
    slot = [[1 / number(machines * int(argument))] for _ in problem.users]
    return Solution(tasks=tuple(fill(slot, problem.users, tiers_of(problem, "max-min"))))


def converter(problem: Problem) -> Callable[[float], Number]:
    """What converts the problem's numbers: ``exact`` where there are few users, else ``float``."""
    return exact if len(problem.users) <= EXACT_USERS_MAX else float


def shares(problem: Problem) -> list[list[Number]]:
    """a_ij: for each user the fraction of every resource that one task takes; 0 where there is none of it."""
    number = converter(problem)
    capacity = [number(total) for total in problem.capacity]
    return [
        [
            number(need) / total if need else number(0)
            for need, total in zip(user.demand, capacity, strict=True)
        ]
        for user in problem.users
    ]


def tiers_of(problem: Problem, policy: str) -> list[Tier]:
    """The tiers of users, in the order in which a policy of this family fills them: ``drf``, ``max-min:cpus``, ...

    Raises:
        SolverError: no policy of this family, or its resource is not of the problem.
    """
    word, colon, argument = policy.partition(":")
    number = converter(problem)
    if word + colon == "max-min:":
        return _tiers_by_resource(problem, argument)
    if policy == "fifo":
        return [[(place, number(1))] for place in range(len(problem.users))]
    if policy == "max-min":
        return [[(place, 1 / number(user.weight)) for place, user in enumerate(problem.users)]]
    if policy not in ("drf", "asset"):
        raise SolverError(f"policy: expected drf, asset, max-min, max-min:RES or fifo, got {policy!r}")
    tier: Tier = []
    for place, (user, row) in enumerate(zip(problem.users, shares(problem), strict=True)):
        weighted = [part / number(weight) for part, weight in zip(row, user.weights, strict=True)]
        tier.append((place, max(weighted) if policy == "drf" else sum(weighted)))
    return [tier]


def _tiers_by_resource(problem: Problem, name: str) -> list[Tier]:
    if name not in problem.resources:
        raise SolverError(
            f"policy: expected max-min:RES with RES one of {', '.join(problem.resources)}, got 'max-min:{name}'"
        )
    resource = problem.resources.index(name)
    number = converter(problem)
    without: Tier = []
    needing: Tier = []
    for place, (user, row) in enumerate(zip(problem.users, shares(problem), strict=True)):
        if row[resource]:
            needing.append((place, row[resource] / number(user.weights[resource])))
        else:
            without.append((place, 1 / number(user.weight)))
    return [tier for tier in (without, needing) if tier]
