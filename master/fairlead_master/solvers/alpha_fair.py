"""``alpha:A``, ``alpha-tasks:A`` and what both rest on: fluid tasks that maximise a sum of utilities, limits included.

Alpha-fairness (equation (6) of T. Bonald and J. Roberts, Enhanced Cluster Computing Performance through Proportional
Fairness, 2014, with U the power function) maximises

    sum_i w_i^alpha y_i^(1 - alpha) / (1 - alpha)      sum_i w_i log y_i where alpha is 1

``alpha-tasks:A`` is the paper's: y_i is the number of tasks. It depends on what is called a task, and is locally fair only
where alpha is 1 (proposition 7). In ``alpha:A`` y_i is the dominant share instead, which mends both: 1 is proportional
fairness, and the larger alpha is, the nearer to dominant resource fairness. Weights have the exponent alpha so that a user
of weight 2 is two users of weight 1 under every alpha; the paper knows no weights.

A user's weight is ``User.weight``: one number, since it multiplies a utility. Weights per resource have no meaning here.
"""

from math import inf
from typing import Final

from fairlead_master.allocation.multipliers.satiation import Satiation, Wish, satiate
from fairlead_master.solvers import max_min
from fairlead_master.solvers.discrete import solve_live
from fairlead_master.solvers.problem import Problem, Solution, SolverError

ALPHA_MIN: Final = 0.1
ALPHA_MAX: Final = 8.0
"""Beyond, prices of users may differ by more than floats can hold, and shares differ by little from those at the end of
the range; ``inf`` is the limit itself."""

RELATIVE_ERROR: Final = 1e-9
"""Of the tasks of each user below its limit, certified; see ``allocation.multipliers.certificate``."""


def solve(problem: Problem, policy: str) -> Solution:
    """The fluid allocation under ``alpha:A`` or ``alpha-tasks:A``, A from 0.1 to 8, or ``inf``.

    Raises:
        SolverError: A is neither, or the problem cannot be solved to ``RELATIVE_ERROR``.
    """
    kind, _, argument = policy.partition(":")
    if argument == "inf":
        return max_min.solve(problem, "drf" if kind == "alpha" else "max-min")
    try:
        alpha = float(argument)
    except ValueError:
        alpha = inf
    if not ALPHA_MIN <= alpha <= ALPHA_MAX:
        raise SolverError(
            f"policy: expected {kind}:A with A from {ALPHA_MIN} to {ALPHA_MAX:g}, or inf, got {policy!r}"
        )
    return maximise(problem, policy, alpha, by_tasks=kind == "alpha-tasks")


def solve_discrete(problem: Problem, policy: str) -> Solution:
    """Whole tasks by the live policy; in the limit ``inf`` by that of the max-min policy that it is.

    Raises:
        SolverError: as ``discrete.solve_live`` does.
    """
    limit = {"alpha:inf": "drf", "alpha-tasks:inf": "max-min"}.get(policy)
    return solve_live(problem, limit or policy)


def maximise(problem: Problem, policy: str, alpha: float, *, by_tasks: bool) -> Solution:
    """The allocation that maximises the utilities above, of tasks or of dominant shares, on one pool.

    Its ``multipliers`` are those of capacities normalised to 1, for the utilities as written above: a task of user i costs
    a_i . nu, and one below its limit has U'(tasks) = that. Where alpha is 1 they sum to what all pay: users below their
    limits their weight, the others no more. Without limits that is the sum of the weights.

    Raises:
        SolverError: the machines are of different kinds, or the answer cannot be certified.
    """
    if not problem.is_one_pool:
        raise SolverError(
            f"nodes: expected one pool, or machines whose resources stand in one proportion, under {policy}, got "
            f"{len(problem.nodes)} kinds; whole tasks may be on any machines"
        )
    rows = [problem.share(user) for user in problem.users]
    # In units of y: one task, or as many as make up the whole of the dominant resource.
    sizes = [1.0 if by_tasks else max(row) for row in rows]
    wishes = [
        Wish(tuple([need / size for need in row]), user.weight, user.max_tasks * size)
        for row, size, user in zip(rows, sizes, problem.users, strict=True)
        if user.max_tasks > 0
    ]
    if not wishes:
        return Solution(tasks=(0.0,) * len(rows), multipliers=(0.0,) * len(problem.capacity))
    found = _certified(wishes, policy, alpha)
    units = iter(found.units)
    tasks = [
        next(units) / size if user.max_tasks > 0 else 0.0
        for size, user in zip(sizes, problem.users, strict=True)
    ]
    return Solution(tasks=tuple(tasks), multipliers=found.values, relative_error=found.relative_error)


def _certified(wishes: list[Wish], policy: str, alpha: float) -> Satiation:
    try:
        found = satiate(wishes, alpha)
    except (OverflowError, ZeroDivisionError):
        error = inf
    else:
        error = found.relative_error
        if error <= RELATIVE_ERROR:
            return found
    raise SolverError(
        f"policy: expected a problem that {policy} can solve to {RELATIVE_ERROR:g}, got one with an error of up to "
        f"{error:.1g}: demands or weights are too far apart"
    )
