"""The allocation that keeps the most busy: ``utilization``, a baseline under which lying pays.

    maximise sum over users i and resources j of x_i a_ij, with a_ij = D_ij / C_j

under the capacities and the users' caps, on one pool or on machines of several kinds (tasks may be split, so that the
machines of one kind are one pool). It is what the talk on dominant resource fairness calls a utilisation-optimal scheduler
(slides "Gaming Utilization-Optimal Schedulers"): who claims to need more of what is plenty is preferred. Weights do not
count, except where users are equally good.

Several allocations may be best. Users whose demands have one direction are as good as one another: they are one variable,
and share what it gets by weighted max-min on their dominant shares. Between the directions that are left to choose from,
the smallest dominant share, by the sum of its users' weights, is made as large as possible, then the next, and so on
(leximin). The dual prices say which directions those are: the others hold nothing, or all they want, in every best
allocation. With more than 32 of them the choice is left to the simplex method, which is as good and as repeatable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Final

from fairlead_master.allocation.linear_program import maximise
from fairlead_master.solvers.problem import Amounts, Problem, Solution

_CLOSE: Final = 1e-9
"""Prices and gains within this of one another are equal: all of them are of the size of one."""

_ROUNDING: Final = 1e-12
"""Of a value that later programs must keep: given up, so that rounding does not make them infeasible."""

_DIGITS: Final = 12
"""Directions equal to so many digits are one; what is left of a float's sixteen went into the divisions."""


_TIED_MAX: Final = 32
"""Directions that may be tied for the choice between them to be the fairest. Each costs a program with a row for each of
all directions, so that a hundred would take minutes; with more, the first of the best allocations found stands."""


@dataclass(slots=True)
class _Direction:
    """Users whose demands are multiples of one vector. Its *level* is the sum of their dominant shares."""

    unit: Amounts
    """Shares of all resources for a level of 1; the largest is 1."""
    users: list[int] = field(default_factory=list)
    weight: float = 0.0
    cap: float = 0.0
    """Of the level: all its users want; infinite where one of them wants any number."""


def solve(problem: Problem) -> Solution:
    """The fluid allocation with the highest sum of utilisations; the module says which of several."""
    directions = _directions(problem)
    best = _Program(problem, directions).best()
    tasks = [0.0] * len(problem.users)
    for direction, height in zip(directions, _fairest(problem, directions, best), strict=True):
        _share_out(problem, direction, height, tasks)
    return Solution(tasks=tuple(tasks))


def _fairest(problem: Problem, directions: Sequence[_Direction], best: "_Best") -> list[float]:
    """The level of each direction in the fairest of the best allocations."""
    if len(directions) - len(best.settled) > _TIED_MAX:
        return best.heights
    # Most directions get nothing in any of them: without those the programs are small.
    served = [place for place in range(len(directions)) if best.settled.get(place) != 0.0]
    program = _Program(problem, [directions[place] for place in served])
    settled = {n: best.settled[place] for n, place in enumerate(served) if place in best.settled}
    heights = [0.0] * len(directions)
    for place, height in zip(served, program.leximin(best.value, settled), strict=True):
        heights[place] = height
    return heights


def _directions(problem: Problem) -> list[_Direction]:
    """In the order of their first users."""
    found: dict[Amounts, _Direction] = {}
    for place, user in enumerate(problem.users):
        share = problem.share(user)
        dominant = max(share)
        unit = tuple([round(part / dominant, _DIGITS) for part in share])
        direction = found.setdefault(unit, _Direction(unit))
        direction.users.append(place)
        direction.weight += user.weight
        direction.cap += user.max_tasks * dominant
    return list(found.values())


def _share_out(problem: Problem, direction: _Direction, height: float, tasks: list[float]) -> None:
    """Weighted max-min on dominant shares: the users with the smallest caps, for their weight, are filled first."""
    dominant = {place: max(problem.share(problem.users[place])) for place in direction.users}

    def full_at(place: int) -> float:
        user = problem.users[place]
        return user.max_tasks * dominant[place] / user.weight

    weights = direction.weight
    for place in sorted(direction.users, key=full_at):
        user = problem.users[place]
        tasks[place] = min(user.max_tasks, height * user.weight / weights / dominant[place])
        height = max(0.0, height - tasks[place] * dominant[place])
        weights -= user.weight


@dataclass(frozen=True, slots=True)
class _Best:
    """A best allocation, and what all of them have in common."""

    value: float
    heights: list[float]
    settled: dict[int, float]
    """Levels that are the same in all of them, by place of the direction."""


class _Program:
    """The linear program: a variable for each direction and kind of machine, what of the direction's level is there."""

    def __init__(self, problem: Problem, directions: Sequence[_Direction]) -> None:
        self._directions = directions
        kinds = _kinds(problem)
        self._width = len(kinds)
        self._everyone = range(len(directions))
        self._gain = [sum(direction.unit) for direction in directions for _ in kinds]
        self._rows = [
            [
                direction.unit[j] if kind == other else 0.0
                for direction in directions
                for other in range(self._width)
            ]
            for kind in range(self._width)
            for j in range(len(problem.capacity))
        ]
        self._bounds = [amount for kind in kinds for amount in kind]
        self._capacities = len(self._rows)
        for place in self._everyone:
            if isfinite(directions[place].cap):
                self._rows.append(self._level(place))
                self._bounds.append(directions[place].cap)

    def best(self) -> _Best:
        """A best allocation, and the directions that hold nothing, or all they want, in every best one."""
        solution = maximise(self._gain, self._rows, self._bounds)
        priced = list(zip(solution.duals[: self._capacities], self._rows, strict=False))
        settled: dict[int, float] = {}
        for place in self._everyone:
            # What a unit of level brings beyond the price of what it takes, on the kind where that is most.
            profit = max(
                self._gain[column] - sum(price * row[column] for price, row in priced)
                for column in self._columns(place)
            )
            if abs(profit) > _CLOSE:
                settled[place] = self._directions[place].cap if profit > 0 else 0.0
        heights = [sum(solution.x[column] for column in self._columns(place)) for place in self._everyone]
        return _Best(solution.value, heights, settled)

    def leximin(self, value: float, settled: dict[int, float]) -> list[float]:
        """Leximin levels at a utilisation of ``value``, with the settled levels as they are.

        One program makes the smallest level, by weight, as large as it goes. The directions whose rows have a price keep
        theirs in every solution of it, so that they are settled there, and the rest go on.
        """
        while len(settled) < len(self._everyone):
            free = [place for place in self._everyone if place not in settled]
            smallest, prices = self._raise_smallest(value, settled, free)
            # The prices, times weights, add up to one, so that one of them at least is far above rounding.
            for place, price in zip(free, prices, strict=True):
                weight = self._directions[place].weight
                if price * weight >= _CLOSE:
                    height = smallest * weight
                    settled[place] = height if height > _CLOSE else 0.0  # what ``_ROUNDING`` let through
        return [settled[place] for place in self._everyone]

    def _raise_smallest(
        self, value: float, settled: Mapping[int, float], free: Sequence[int]
    ) -> tuple[float, Sequence[float]]:
        """The largest possible z with w z <= level for all who are free, and the price of each of these rows."""
        rows = [[*row, 0.0] for row in self._rows]
        bounds = list(self._bounds)
        rows.append([*(-gain for gain in self._gain), 0.0])
        bounds.append(-value * (1 - _ROUNDING))
        for place, height in settled.items():
            rows.append([*(-entry for entry in self._level(place)), 0.0])
            bounds.append(-height * (1 - _ROUNDING))
        for place in free:
            rows.append([*(-entry for entry in self._level(place)), self._directions[place].weight])
            bounds.append(0.0)
        solution = maximise([*(0.0 for _ in self._gain), 1.0], rows, bounds)
        return solution.value, solution.duals[-len(free) :]

    def _columns(self, place: int) -> range:
        """The variables of a direction, one a kind of machine."""
        return range(place * self._width, (place + 1) * self._width)

    def _level(self, place: int) -> list[float]:
        """The row that adds up to a direction's level."""
        columns = self._columns(place)
        return [1.0 if column in columns else 0.0 for column in range(len(self._gain))]


def _kinds(problem: Problem) -> list[Amounts]:
    """What the machines of each kind have together, in fractions of all there is; one kind if there are no machines."""
    if not problem.nodes:
        return [tuple([1.0 if total else 0.0 for total in problem.capacity])]
    return [
        tuple(
            [
                nodes.count * amount / total if total else 0.0
                for amount, total in zip(nodes.capacity, problem.capacity, strict=True)
            ]
        )
        for nodes in problem.nodes
    ]
