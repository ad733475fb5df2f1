"""Bottleneck-based fairness for a static problem: an allocation without justified complaints (see ``complaints``).

Dolev, Feitelson, Halpern, Kupferman and Linial (2012) proved that there is one for any entitlements; Gutman and Nisan,
"Fair allocation without trade" (2012), that a market finds one. Ours is the equilibrium of that market, where user i
brings its entitlements e_ij and buys tasks for what they are worth. It is Pareto efficient, and where everyone has one
entitlement for all resources it is weighted proportional fairness. With prices p_j >= 0, zero for what is not used up,

    x_i = min(b_i, (p . e_i) / (m p . a_i))        for some m with 0 < m <= 1

where b_i is what i wants and a_ij the part of resource j that a task takes. *Nobody complains*: who gets less than it wants
spends sum_j p_j a_ij x_i = (p . e_i) / m >= sum_j p_j e_ij, so for some j with p_j > 0 it has a_ij x_i >= e_ij; p_j > 0 says
that j is a bottleneck. *m is at most 1*: all that is sold is worth sum_j p_j, all that users bring sum_j p_j sum_i e_ij,
which is the same once the entitlements to each resource add up to 1, as they are made to (that gives nobody less); so if
those who want only so much do not spend all they have, the others spend more than theirs, each by the same factor.

For given budgets w_i = p . e_i the allocation, with its prices nu, is weighted proportional fairness under limits
(``multipliers.satiation``). The equilibrium is a p for which nu is a multiple of p. With one entitlement a user budgets are
the same whatever p is, and the first nu is the answer. Otherwise p moves towards nu step by step, half as far when it turned
back. Nothing is known to find such an equilibrium quickly in all cases, so an answer is given only if the verifier agrees.

*On machines of different kinds* a resource of one kind is a resource of its own: a task that runs there cannot use what is
left elsewhere. Where everyone has one entitlement for all resources the argument above holds as it stands, j now being a
resource of a kind: with the prices of proportional fairness on machines, who gets less than it wants has at least its
entitlement of some resource of some kind that is used up. Entitlements that differ by resource are for one pool only.
"""

from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heapreplace
from operator import mul, sub
from typing import Final

from fairlead_master.allocation.multipliers.satiation import Satiation, Wish, satiate
from fairlead_master.solvers.alpha_fair import solve_proportional
from fairlead_master.solvers.complaints import entitlements, verify
from fairlead_master.solvers.discrete import TASKS_MAX, solve_live, too_many_tasks
from fairlead_master.solvers.problem import Amounts, Problem, Solution, SolverError

_ATTEMPTS: Final = ((1.0, 200), (0.2, 400), (0.03, 2_000))
"""The longest step and how many of them. Of random problems the first attempt solves all but one in a few hundred, in ten
steps for most; markets in which each user owns what another one needs take the others."""

_CONVERGED: Final = 1e-10
"""Distance of p and nu, as a part of all money: prices and allocations are right to about as many digits."""

_BUDGET_MIN: Final = 1e-12
"""Of all money: who is entitled to nothing that is scarce still has a price to pay for what is not, and pays nearly nothing."""

_ROUNDING: Final = 1e-9
"""A task fits if it lacks less than this part of a capacity: sums of rounded demands are never exact."""

_TASKS_MIN: Final = 1e-9
"""Of the most tasks of anybody: in whole tasks, who gets none of a fluid resource comes last, and not never."""


def solve(problem: Problem) -> Solution:
    """Tasks per user, split at will; ``multipliers`` are what each resource costs if all users together own 1.

    Raises:
        SolverError: entitlements to some resource add up to more than there is; no equilibrium was found, which is
            possible only with entitlements that differ by resource; or these on machines of several kinds.
    """
    if not problem.is_one_pool:
        return _solve_on_machines(problem)
    hungry = [place for place, user in enumerate(problem.users) if user.max_tasks > 0]
    owned = _completed(entitlements(problem))
    goods = [
        (Wish(problem.share(problem.users[place]), 1.0, problem.users[place].max_tasks), owned[place])
        for place in hungry
    ]
    for longest, steps in _ATTEMPTS if goods else ():
        found = _settle(goods, longest, steps)
        units = dict(zip(hungry, found.units, strict=True))
        tasks = tuple([units.get(place, 0.0) for place in range(len(problem.users))])
        verdict = verify(problem, tasks)
        if verdict.is_fair and not verdict.improvable:
            return Solution(tasks=tasks, multipliers=found.values)
    if not goods:
        return Solution(tasks=(0.0,) * len(problem.users))
    raise SolverError(
        "entitlements: expected some for which prices settle, which they did not; "
        "with one entitlement a user for all resources they always do"
    )


def _solve_on_machines(problem: Problem) -> Solution:
    owned = entitlements(problem)
    if any(len(set(row)) > 1 for row in owned):
        raise SolverError(
            "nodes: expected one pool, or machines whose resources stand in one proportion, where entitlements differ by "
            f"resource under bbf, got {len(problem.nodes)} kinds; whole tasks may be on any machines"
        )
    users = [
        replace(user, weights=(max(row[0], _BUDGET_MIN),) * len(row))
        for user, row in zip(problem.users, owned, strict=True)
    ]
    return solve_proportional(replace(problem, users=tuple(users), entitlements=None), "bbf")


def solve_discrete(problem: Problem) -> Solution:
    """Whole tasks, one at a time, each to the user who then has the smallest part of its fluid tasks, if it fits.

    That is Jefferson's method of apportionment, and gives everyone at least its fluid tasks rounded down in a pool. On
    machines it is who *has* the smallest part, placed as on a live cluster. The live policy of the same name learns
    what the bottlenecks are when they are full; where the problem is known it need not.

    Raises:
        SolverError: as ``solve`` and ``discrete.solve_live`` do, or there are more than ``TASKS_MAX`` tasks.
    """
    fluid = solve(replace(problem, nodes=())).tasks
    least = _TASKS_MIN * max(fluid) or 1.0
    targets = [max(tasks, least) for tasks in fluid]
    if problem.nodes:
        users = [
            replace(user, weights=(target,) * len(user.weights))
            for user, target in zip(problem.users, targets, strict=True)
        ]
        return solve_live(replace(problem, users=tuple(users), entitlements=None), "max-min")
    room = [capacity * (1 + _ROUNDING) for capacity in problem.capacity]
    tasks = [0] * len(targets)
    steps: list[str] = []
    heap = [(1 / target, place) for place, target in enumerate(targets)]
    heapify(heap)
    while heap:
        place = heap[0][1]
        user = problem.users[place]
        left = list(map(sub, room, user.demand))
        if min(left) < 0 or tasks[place] + 1 > user.max_tasks:
            heappop(heap)
            continue
        if len(steps) == TASKS_MAX:
            raise too_many_tasks()
        room = left
        tasks[place] += 1
        steps.append(user.name)
        heapreplace(heap, ((tasks[place] + 1) / targets[place], place))
    return Solution(tasks=tuple(tasks), steps=tuple(steps))


def _settle(goods: Sequence[tuple[Wish, Amounts]], longest: float, steps: int) -> Satiation:
    """Move prices towards those that their budgets lead to, until both agree or ``steps`` are taken.

    Args:
        goods: Per user what a task takes and how many are wanted, and what the user owns of each resource.
        longest: Part of the way that is gone at a time at most.
        steps: At most.
    """
    wishes = [wish for wish, _ in goods]
    owned = [shares for _, shares in goods]
    prices = [1.0 / len(owned[0])] * len(owned[0])
    part, before = longest, [0.0] * len(prices)
    while True:
        budgets = _worth(owned, prices)
        answer = satiate([replace(wish, weight=budget) for wish, budget in zip(wishes, budgets, strict=True)])
        money = sum(answer.values)
        steps -= 1
        if not money or not steps:  # Without money everyone has all it wants.
            return answer
        market = [value / money for value in answer.values]
        if sum(map(abs, map(sub, _worth(owned, market), budgets))) <= _CONVERGED:
            return answer
        way = list(map(sub, market, prices))
        turned_back = sum(map(mul, way, before)) < 0
        part = part / 2 if turned_back else min(longest, 1.25 * part)
        prices = [price + part * go for price, go in zip(prices, way, strict=True)]
        before = way


def _worth(owned: Sequence[Amounts], prices: Sequence[float]) -> list[float]:
    """The budget of each user at these prices."""
    return [max(_BUDGET_MIN, sum(map(mul, shares, prices))) for shares in owned]


def _completed(shares: Sequence[Amounts]) -> list[Amounts]:
    """Scale the entitlements to each resource to a sum of 1; equal parts of a resource that nobody is entitled to."""
    columns = []
    for column in zip(*shares, strict=True):
        total = sum(column)
        columns.append([part / total if total else 1.0 / len(column) for part in column])
    return list(zip(*columns, strict=True))
