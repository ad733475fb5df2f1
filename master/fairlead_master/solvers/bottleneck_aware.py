"""Bottleneck-aware allocation (BAA) of one pool: ``baa``, ``baa:tasks``, ``baa:min``, ``baa:utilization``.

Liu, "Multi-Objective Bottleneck-Aware Allocation of Multiple Resources", 2015. Users are grouped by the resource of which a
task takes the largest share (section 2.1, for any number of resources); users of a group hold equal shares of it, by
weight; between groups nobody is envied; and within that the groups' levels are chosen by one objective or by several
(``bottleneck_groups``). ADR 0012 says how each ambiguous equation is read.

The paper's users want any number of tasks and need some of every resource. Ours may not, so that one program is not
enough: when it is solved, those who have all they want, and those who need a resource that is used up, are left as they
are, and the others rise further by the next program. Nobody comes to envy anybody by that: who is left needs some of a
resource of which the others need none. What it gives up is that the levels of a group stay equal.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from math import floor, inf
from typing import Final

from fairlead_master.allocation.policies.bottleneck_groups import GOALS, Goal, Group, bottleneck, levels
from fairlead_master.solvers.discrete import TASKS_MAX, solve_live, too_many_tasks
from fairlead_master.solvers.problem import Problem, Solution, SolverError

_FULL: Final = 1e-9
"""Of a capacity: what is less than this is nothing left, and a task lacks no more than this when it fits."""

_WHOLE: Final = 1e-9
"""A number of tasks within this of a whole one is that one."""


def goals_of(policy: str) -> tuple[Goal, ...]:
    """What ``baa`` or ``baa:OBJECTIVE`` maximises.

    Raises:
        SolverError: no policy of this family.
    """
    if policy not in GOALS:
        raise SolverError(f"policy: expected one of {', '.join(GOALS)}, got {policy!r}")
    return GOALS[policy]


def solve(problem: Problem, policy: str) -> Solution:
    """The fluid allocation: the paper's static one (section 2.5) before rounding.

    Raises:
        SolverError: no such policy, or machines of more than one kind.
    """
    return Solution(tasks=tuple(allocate(problem, goals_of(policy))))


def solve_discrete(problem: Problem, policy: str) -> Solution:
    """The same in whole tasks: of one pool by algorithm 1, on machines by the live policy.

    Raises:
        SolverError: as for ``solve`` or ``solve_live``.
    """
    if problem.nodes:
        return solve_live(problem, policy)
    fluid = allocate(problem, goals_of(policy))
    if sum(fluid) > TASKS_MAX:
        raise too_many_tasks()
    tasks = round_to_whole(problem, fluid)
    names = [user.name for user in problem.users]
    # Algorithm 1 serves in two passes: what is left of everybody's tasks when rounded down, then what is rounded up.
    down = [min(count, _rounded_down(part)) for count, part in zip(tasks, fluid, strict=True)]
    up = [place for place, count in enumerate(tasks) if count > down[place]]
    up.sort(key=lambda place: down[place] - fluid[place])
    steps = [name for name, count in zip(names, down, strict=True) for _ in range(count)]
    return Solution(tasks=tuple(tasks), steps=(*steps, *(names[place] for place in up)))


def allocate(problem: Problem, goals: Sequence[Goal], *, guarantee: float = 1.0) -> list[float]:
    """Tasks of each user, for any goals; ``guarantee`` is what p_d and p_s are, in fair shares w_i / sum of w.

    With a guarantee of 1 nobody holds less than in a partition of its own, unless it wants less (theorem 1); with 0 the
    constraints are those of Wang and Varman alone.

    Raises:
        SolverError: machines of more than one kind.
    """
    claims = _claims(problem)
    floor_level = guarantee / sum(claim.weight for claim in claims)
    tasks = [min(claim.cap, claim.tasks_at(floor_level)) for claim in claims]
    free = [1.0] * len(problem.resources)
    # Who wants no more than is guaranteed takes no part in choosing the levels.
    rising = [claim for claim in claims if claim.cap > tasks[claim.place]]
    _take(free, claims, tasks, but=rising)
    heights: dict[int, float] = {}
    while rising:
        groups = _grouped(rising, heights, floor_level)
        heights = dict(zip(groups, levels(list(groups.values()), free, goals), strict=True))
        for claim in rising:
            tasks[claim.place] = min(claim.cap, claim.tasks_at(heights[claim.bottleneck]))
        left = list(free)
        _take(left, rising, tasks)
        full = [j for j, amount in enumerate(left) if amount <= _FULL]
        still = [
            claim
            for claim in rising
            if claim.cap > tasks[claim.place] and not any(claim.share[j] for j in full)
        ]
        if len(still) == len(
            rising
        ):  # rounding hides which resource is full: what is left of it counts for nothing
            break
        _take(free, rising, tasks, but=still)
        rising = still
    return tasks


def round_to_whole(problem: Problem, tasks: Sequence[float]) -> list[int]:
    """Algorithm 1: whole tasks near the fluid ones, within the capacity.

    Everything is rounded down. Then, by descending fraction, each user gets the task it has a part of, if that still
    fits. The paper's lines 7 to 12 round down in both branches; its text says what is meant. Equal fractions go to the
    user that was there earlier. The sum of what rounding changes is small, though not always the least possible.

    Raises:
        SolverError: machines of more than one kind.
    """
    claims = _claims(problem)
    whole = [_rounded_down(count) for count in tasks]
    free = [1.0] * len(problem.resources)
    _take(free, claims, whole)
    fraction = {claim.place: tasks[claim.place] - whole[claim.place] for claim in claims}
    for claim in sorted(claims, key=lambda claim: -fraction[claim.place]):
        place = claim.place
        if fraction[place] > _WHOLE and whole[place] + 1 <= claim.cap and _fits(claim, free):
            whole[place] += 1
            free = [left - part for left, part in zip(free, claim.share, strict=True)]
    return whole


def solve_online(problem: Problem, goals: Sequence[Goal]) -> Iterator[list[tuple[int, int]]]:
    """Algorithm 2: users join one by one in their order, each brings its part of every resource, nobody gives back.

    After k have joined, the system has the sum of their w_i over the sum of all w of each resource: k/n for equal
    weights. The levels are those of the static program for these users and this capacity, caps aside. Then, in each
    group in ascending order of what users hold of its bottleneck, by weight, users below their group's level get one
    task at a time, if it fits. What somebody holds stays, so that levels may end up apart; that is the price of it.

    Gives:
        For each user that joins, the tasks served on that, in order: the place of who got it, and how many it has then.

    Raises:
        SolverError: machines of more than one kind.
    """
    claims = _claims(problem)
    weights = sum(claim.weight for claim in claims)
    free = [0.0] * len(problem.resources)
    brought = 0.0
    groups: dict[int, Group] = {}
    queues: dict[int, list[tuple[float, int]]] = {}
    tasks = [0] * len(claims)
    for claim in claims:
        brought += claim.weight / weights
        free = [left + claim.weight / weights for left in free]
        groups[claim.bottleneck] = _joined(groups.get(claim.bottleneck), claim, 1 / weights)
        groups = dict(sorted(groups.items()))
        heappush(queues.setdefault(claim.bottleneck, []), (0.0, claim.place))
        heights = levels(list(groups.values()), [brought] * len(free), goals)
        served: list[tuple[int, int]] = []
        for group, height in zip(groups, heights, strict=True):
            served.extend(_serve(queues[group], claims, tasks, free, height))
        yield served


def _serve(
    queue: list[tuple[float, int]],
    claims: Sequence["_Claim"],
    tasks: list[int],
    free: list[float],
    height: float,
) -> Iterator[tuple[int, int]]:
    """Give the users of one group tasks until none that fits is below the group's level."""
    passed_over = []
    while queue and queue[0][0] < height * (1 - _WHOLE):
        claim = claims[queue[0][1]]
        if tasks[claim.place] + 1 > claim.cap:
            heappop(queue)
        elif not _fits(claim, free):
            passed_over.append(heappop(queue))
        else:
            tasks[claim.place] += 1
            free[:] = [left - part for left, part in zip(free, claim.share, strict=True)]
            heapreplace(queue, (tasks[claim.place] / claim.tasks_at(1.0), claim.place))
            yield claim.place, tasks[claim.place]
    for entry in passed_over:
        heappush(queue, entry)


@dataclass(frozen=True, slots=True)
class _Claim:
    """A user, with what groups need to know of it."""

    place: int
    weight: float
    share: tuple[float, ...]
    """a_ij."""
    bottleneck: int
    cap: float

    def tasks_at(self, level: float) -> float:
        """How many tasks it has when its group is at ``level``: w_i / a_ig for each unit of it."""
        return level * self.weight / self.share[self.bottleneck]


def _claims(problem: Problem) -> list[_Claim]:
    if not problem.is_one_pool:
        raise SolverError(
            "nodes: expected one pool, or machines whose resources stand in one proportion, under baa, got "
            f"{len(problem.nodes)} kinds: a bottleneck is a resource of the whole pool; whole tasks may be on any machines"
        )
    claims = []
    for place, user in enumerate(problem.users):
        share = problem.share(user)
        claims.append(_Claim(place, user.weight, share, bottleneck(share), user.max_tasks))
    return claims


def _rounded_down(tasks: float) -> int:
    """The whole tasks in a fluid number of them."""
    return floor(tasks + _WHOLE)


def _grouped(claims: Iterable[_Claim], heights: Mapping[int, float], floor_level: float) -> dict[int, Group]:
    """The groups of these users, in the order of resources; a group with a level goes no lower than that."""
    groups: dict[int, Group] = {}
    for claim in claims:
        lowest = heights.get(claim.bottleneck, floor_level)
        groups[claim.bottleneck] = _joined(groups.get(claim.bottleneck), claim, lowest)
    return dict(sorted(groups.items()))


def _joined(group: Group | None, claim: _Claim, lowest: float) -> Group:
    """The group with one user more."""
    dominant = claim.share[claim.bottleneck]
    ratios = [part / dominant for part in claim.share]
    if group is None:
        group = Group(claim.bottleneck, (0.0,) * len(ratios), (0.0,) * len(ratios), 0.0, inf, lowest)
    return Group(
        bottleneck=claim.bottleneck,
        loads=tuple([load + claim.weight * ratio for load, ratio in zip(group.loads, ratios, strict=True)]),
        largest=tuple(map(max, group.largest, ratios)),
        tasks=group.tasks + claim.weight / dominant,
        fewest=min(group.fewest, 1 / dominant),
        floor=lowest,
    )


def _take(
    free: list[float], claims: Iterable[_Claim], tasks: Sequence[float], *, but: Iterable[_Claim] = ()
) -> None:
    """Subtract from ``free`` what the claims hold, except those in ``but``."""
    spared = {claim.place for claim in but}
    for claim in claims:
        if claim.place not in spared:
            for j, part in enumerate(claim.share):
                free[j] -= tasks[claim.place] * part


def _fits(claim: _Claim, free: Sequence[float]) -> bool:
    return all(part <= left + _FULL for part, left in zip(claim.share, free, strict=True))
