"""``pf``, ``ceei``, ``alpha:A`` and ``alpha-tasks:A``: fluid tasks that maximise a sum of utilities, limits included.

Alpha-fairness (equation (6) of T. Bonald and J. Roberts, Enhanced Cluster Computing Performance through Proportional
Fairness, 2014, with U the power function) maximises

    sum_i w_i^alpha y_i^(1 - alpha) / (1 - alpha)      sum_i w_i log y_i where alpha is 1

``alpha-tasks:A`` is the paper's: y_i is the number of tasks. It depends on what is called a task, and is locally fair only
where alpha is 1 (proposition 7). In ``alpha:A`` y_i is the dominant share instead, which mends both: 1 is proportional
fairness, and the larger alpha is, the nearer to dominant resource fairness. Weights have the exponent alpha so that a user
of weight 2 is two users of weight 1 under every alpha; the paper knows no weights.

A user's weight is ``User.weight``: one number, since it multiplies a utility. Weights per resource have no meaning here.
"""

from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Final

from fairlead_master.allocation.multipliers.satiation import Wish, satiate
from fairlead_master.solvers import many_classes, max_min
from fairlead_master.solvers.discrete import solve_live
from fairlead_master.solvers.machine_market import share_machines
from fairlead_master.solvers.problem import Amounts, Problem, Solution, SolverError

ALPHA_MIN: Final = 0.1
ALPHA_MAX: Final = 8.0
"""Beyond, prices of users may differ by more than floats can hold, and shares differ by little from those at the end of
the range; ``inf`` is the limit itself."""

RELATIVE_ERROR: Final = 1e-9
"""Of the tasks of each user below its limit, certified: see ``allocation.multipliers.certificate`` for one pool, and
``machine_market`` for machines of different kinds."""

WORK_MAX: Final = 20_000
"""Users times kinds of machines times four more than these: what takes five seconds in decimals, or fifteen where alpha is no
multiple of a quarter. One pool counts only where floats do not reach."""


def solve_proportional(problem: Problem, policy: str = "pf") -> Solution:
    """The fluid allocation under ``pf`` or ``ceei``, to a certified relative error of 1e-9, with its multipliers.

    Maximises sum_i w_i log x_i over the tasks x_i: equations (2) to (5) of the paper above. Competitive equilibrium from
    equal incomes (A. Ghodsi et al., Dominant Resource Fairness, 2011, section 5.2) is the Nash bargaining solution, the
    largest product of dominant shares. A dominant share is a constant times the tasks, so that this is the same
    allocation; the equilibrium's incomes are the weights and its prices the multipliers.

    Raises:
        SolverError: the answer cannot be certified: weights or demands are further apart than floats can hold.
    """
    return maximise(problem, policy, 1.0, by_tasks=False)


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
    """Whole tasks by the live policy; for ``inf`` by the max-min policy that is the limit.

    Raises:
        SolverError: as ``discrete.solve_live`` does.
    """
    limit = {"alpha:inf": "drf", "alpha-tasks:inf": "max-min"}.get(policy)
    return solve_live(problem, limit or policy)


def maximise(problem: Problem, policy: str, alpha: float, *, by_tasks: bool) -> Solution:
    """The allocation that maximises the utilities above, of tasks or of dominant shares.

    Its ``multipliers`` are those of capacities normalised to 1, for the utilities as written above: a task of user i costs
    a_i . nu, and one below its limit has U'(tasks) = that. Where alpha is 1 they sum to what all pay: users below their
    limits their weight, the others no more. Without limits that is the sum of the weights. On machines of different kinds
    each has prices of its own, and no multipliers are given; a user that fits none of them gets nothing.

    Raises:
        SolverError: there are too many users times kinds of nodes, or the answer cannot be certified.
    """
    kinds = _kinds(problem)
    rows = [problem.share(user) for user in problem.users]
    # In units of y: one task, or as many as make up the whole of the dominant resource.
    sizes = [1.0 if by_tasks else max(row) for row in rows]
    fits = [
        user.max_tasks > 0
        and any(all(total for need, total in zip(user.demand, kind, strict=True) if need) for kind in kinds)
        for user in problem.users
    ]
    wishes = [
        Wish(tuple([need / size for need in row]), user.weight, user.max_tasks * size)
        for row, size, user, is_in in zip(rows, sizes, problem.users, fits, strict=True)
        if is_in
    ]
    no_prices = None if len(kinds) > 1 else (0.0,) * len(problem.capacity)
    if not wishes:
        return Solution(tasks=(0.0,) * len(rows), multipliers=no_prices)
    found = (
        _on_pool(wishes, policy, alpha)
        if len(kinds) == 1
        else _on_machines(problem, wishes, kinds, policy, alpha)
    )
    units = iter(found.units)
    tasks = [next(units) / size if is_in else 0.0 for size, is_in in zip(sizes, fits, strict=True)]
    return Solution(tasks=tuple(tasks), multipliers=found.multipliers, relative_error=found.relative_error)


@dataclass(frozen=True, slots=True)
class _Certified:
    units: Amounts
    multipliers: Amounts | None
    relative_error: float


def _kinds(problem: Problem) -> list[list[float]]:
    """Total capacity by kind of machine; a single kind if the machines are equivalent to one pool."""
    if problem.is_one_pool:
        return [list(problem.capacity)]
    counts: dict[Amounts, int] = {}
    for nodes in problem.nodes:
        counts[nodes.capacity] = counts.get(nodes.capacity, 0) + nodes.count
    return [[count * amount for amount in capacity] for capacity, count in counts.items()]


def _on_pool(wishes: list[Wish], policy: str, alpha: float) -> _Certified:
    """Solve in floats, which is fast; where their range does not suffice, in decimals, as one kind of machines."""
    error = inf
    with suppress(OverflowError, ZeroDivisionError):
        found = satiate(wishes, alpha, many_classes.solve)
        if found.relative_error <= RELATIVE_ERROR:
            return _Certified(found.units, found.values, found.relative_error)
        error = found.relative_error
    if len(wishes) > _users_max(1):
        raise _uncertain(policy, error)
    return _in_decimals(wishes, [[1.0] * len(wishes[0].row)], policy, alpha)


def _users_max(kinds: int) -> int:
    return WORK_MAX // (kinds * (kinds + 4))


def _on_machines(
    problem: Problem, wishes: list[Wish], kinds: list[list[float]], policy: str, alpha: float
) -> _Certified:
    if len(wishes) > _users_max(len(kinds)):
        raise SolverError(
            f"nodes: expected at most {_users_max(len(kinds))} users on {len(kinds)} kinds of nodes under {policy}, got "
            f"{len(wishes)}; whole tasks have no such limit"
        )
    parts = [
        [amount / total if total else 0.0 for amount, total in zip(kind, problem.capacity, strict=True)]
        for kind in kinds
    ]
    return _in_decimals(wishes, parts, policy, alpha)


def _in_decimals(wishes: list[Wish], kinds: list[list[float]], policy: str, alpha: float) -> _Certified:
    found = share_machines(wishes, kinds, alpha)
    if found.relative_error > RELATIVE_ERROR:
        raise _uncertain(policy, found.relative_error)
    return _Certified(found.units, found.prices[0] if len(kinds) == 1 else None, found.relative_error)


def _uncertain(policy: str, error: float) -> SolverError:
    return SolverError(
        f"policy: expected a problem that {policy} can solve to {RELATIVE_ERROR:g}, got one with an error of up to "
        f"{error:.1g}: demands or weights are too far apart"
    )
