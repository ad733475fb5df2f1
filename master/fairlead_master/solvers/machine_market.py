"""Proportional and alpha-fairness of fluid tasks on machines of different kinds.

A task runs on one machine, so that what is free of one resource on one kind and of another on another kind helps
nobody. With x_im the tasks of user i on machines of kind m, X_i = sum_m x_im, and a_imj the part of resource j of all
machines of the kind that one task takes, the problem is

    maximise  sum_i w_i^alpha X_i^(1 - alpha) / (1 - alpha)      (sum_i w_i log X_i where alpha is 1)
    under     sum_i x_im a_imj <= 1,   X_i <= b_i,   x_im >= 0

The X_i are unique, the x_im need not be. Solved by a primal-dual interior point on all of these variables; those of
a user are eliminated one user at a time (a diagonal and one dense direction: Sherman and Morrison's formula), which leaves
a system of as many equations as there are pairs of kind and resource. The answer is certified by duality.

In decimals of many digits: duality bounds the square of an error, so that to certify nine digits takes more than floats
have, and where many allocations are optimal the system is as good as singular long before that.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from math import inf
from operator import mul
from typing import Final

from fairlead_master.allocation.multipliers.satiation import Wish

ITERATIONS_MAX: Final = 150
"""Random instances take 30 to 60; this bound only says that a loop ends. Where it is met, the certificate tells."""

_DIGITS: Final = 80
"""The path's end takes about 30, and twice the range of what users pay is lost where an allocation is not unique."""

_DIGITS_PER_ALPHA: Final = 20
"""That range is one of weights and demands to the power of alpha."""

_GAP: Final = Decimal("1e-26")
"""Complementarity where the path ends, of what the user who pays least pays: its root is what is certified."""

_ERROR: Final = 1e-12
"""Certified where the path ends."""

_STEP: Final = Decimal("0.99")
"""Of the way to the boundary: variables stay above zero."""

_CENTRING: Final = Decimal("0.1")
"""Complementarity aimed at, of that reached. Less takes fewer passes on easy instances and fails on hard ones."""

_ZERO: Final = Decimal(0)
_ONE: Final = Decimal(1)


@dataclass(frozen=True, slots=True)
class OnMachines:
    """The optimum on machines."""

    units: tuple[float, ...]
    """Per wish, on all machines together."""
    prices: tuple[tuple[float, ...], ...]
    """Per kind and resource, of all of it: the multipliers for capacities of 1; 0 for what nobody may take. Of many choices one."""
    relative_error: float
    """No units are further from the right ones than this, relatively, up to the rounding to floats; infinite where nothing is
    known."""
    iterations: int
    """Passes over the users."""


def share_machines(
    wishes: Sequence[Wish], capacities: Sequence[Sequence[float]], alpha: float = 1.0
) -> OnMachines:
    """The optimum for rows in the unit of ``capacities``: of all machines of each kind, per resource.

    Every wish must fit some kind: there must be some capacity there of each resource that it needs.
    """
    with localcontext() as context:
        context.prec = _DIGITS + int(_DIGITS_PER_ALPHA * alpha)
        market = _Market(wishes, capacities, Decimal(alpha))
        iterations = 0
        while iterations < ITERATIONS_MAX:
            gap, end = market.complementarity(), _GAP * market.least_paid()
            # Products may be small long before prices are what users would pay: only the certificate knows both.
            if gap < end and market.relative_error() < _ERROR:
                break
            market.step(max(_CENTRING * gap, end / 10) / market.count)
            iterations += 1
        return OnMachines(market.units(), market.prices_of(capacities), market.relative_error(), iterations)


@dataclass(slots=True)
class _User:
    """One user, in a unit that makes its equal part of the machines about 1."""

    kinds: list[list[tuple[int, Decimal]]]
    """Per kind of machine that it fits: constraints by number, with what one unit takes."""
    unit: Decimal
    """Tasks in one unit."""
    weight: Decimal
    limit: Decimal | None
    held: list[Decimal]
    """x_im, per kind as above."""
    dear: list[Decimal] = field(default_factory=list)
    """Per kind, the multiplier of x_im >= 0: by how much it is dearer there than the user would pay."""
    left: Decimal = _ONE
    """What the limit leaves."""
    sated: Decimal = _ZERO
    """The multiplier of the limit; zero where there is none."""
    total: Decimal = _ZERO
    """X_i."""
    worth: Decimal = _ZERO
    """U'(X) = (w / X)^alpha: what the user would pay for the next unit."""

    def weigh(self, alpha: Decimal) -> None:
        """Update the total and the worth, which are kept because powers are expensive."""
        self.total = _sum(self.held)
        self.worth = _power(self.weight / self.total, alpha)


@dataclass(frozen=True, slots=True)
class _Part:
    """One user's part in a Newton step: with c the change of its costs, its tasks change by -``combined(rest + c)``."""

    theta: list[Decimal]
    rest: list[Decimal]
    factor: Decimal
    """Of the dense direction: the second derivative over one plus that times the sum of theta."""
    limit_gap: Decimal
    """What limit, tasks and what is left do not add up to: rounding."""

    def combined(self, costs: Sequence[Decimal]) -> list[Decimal]:
        """(diag(theta)^-1 + curvature 1 1^T)^-1 costs."""
        common = self.factor * _sum(map(mul, self.theta, costs))
        return [theta * (cost - common) for theta, cost in zip(self.theta, costs, strict=True)]

    def entry(self, row: int, column: int) -> Decimal:
        """One entry of that inverse."""
        dense = self.factor * self.theta[row] * self.theta[column]
        return self.theta[row] - dense if row == column else -dense


@dataclass(frozen=True, slots=True)
class _Move:
    """One user's step."""

    held: list[Decimal]
    dear: list[Decimal]
    left: Decimal
    sated: Decimal


class _Market:
    """All variables of the interior point, all of them above zero."""

    def __init__(self, wishes: Sequence[Wish], capacities: Sequence[Sequence[float]], alpha: Decimal) -> None:
        self.alpha = alpha
        self.users = [_user(wish, capacities, len(wishes), alpha) for wish in wishes]
        self.mean_weight = _sum(user.weight for user in self.users) / len(self.users)
        for user in self.users:
            user.weight /= self.mean_weight
            user.weigh(alpha)
        loads = self._loads()
        self.slack = {place: _ONE - load for place, load in sorted(loads.items())}
        """Per constraint that anybody may meet, a kind and a resource; what is left of it."""
        self.prices = dict.fromkeys(self.slack, self.money() / len(self.slack))
        part = self.money() / (10 * len(self.users))
        for user in self.users:
            user.dear = [part / held for held in user.held]
            if user.limit is not None:
                user.left = user.limit - user.total
                user.sated = part / user.left
        limits = sum(user.limit is not None for user in self.users)
        self.count = len(self.slack) + sum(len(user.held) for user in self.users) + limits
        """Pairs of a variable and its multiplier."""

    def units(self) -> tuple[float, ...]:
        """In tasks, within all limits."""
        fullest = max(_ONE, *self._loads().values())
        return tuple([float(_within(user, fullest) * user.unit) for user in self.users])

    def prices_of(self, capacities: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
        """Per kind and resource, for the weights as they came."""
        scale = _power(self.mean_weight, self.alpha)
        width = len(capacities[0])
        return tuple(
            [
                tuple([float(self.prices.get(kind * width + place, _ZERO) * scale) for place in range(width)])
                for kind in range(len(capacities))
            ]
        )

    def money(self) -> Decimal:
        """What all users would pay for what they have at the price they would pay for more."""
        return _sum(user.total * user.worth for user in self.users)

    def least_paid(self) -> Decimal:
        """The least that any user would pay for what it has, likewise."""
        return min(user.total * user.worth for user in self.users)

    def complementarity(self) -> Decimal:
        """Sum of all products of a variable and its multiplier: zero at the optimum."""
        return _sum(slack * self.prices[place] for place, slack in self.slack.items()) + _sum(
            _sum(map(mul, user.held, user.dear)) + user.left * user.sated for user in self.users
        )

    def relative_error(self) -> float:
        """By duality: the objective is short by at most what is computed here, and it is strictly concave.

        Whatever the prices nu, a unit of user i costs p_i = min_m a_im . nu_m, for which y_i = min(b_i, w_i p_i^(-1/alpha))
        would be best. Shrunk until it fits, the allocation is short by at most sum_mj nu_mj (1 - load_mj) + sum_im x_im
        (a_im . nu_m - p_i) + sum_i (U'(X_i) - p_i)(y_i - X_i). An error e of one X_i costs at least
        alpha / 2 U'(X_i) X_i e^2, up to a factor that 2 covers where e is small.
        """
        loads = self._loads()
        fullest = max(_ONE, *loads.values())
        short = _sum(self.prices[place] * (_ONE - load / fullest) for place, load in loads.items())
        least = None
        for user in self.users:
            costs = self._costs(user)
            cheapest, total = min(costs), _within(user, fullest)
            worth = _power(user.weight / total, self.alpha)
            best = user.weight * _power(cheapest, -1 / self.alpha)
            if user.limit is not None:
                best = min(best, user.limit)
            short += _sum(held * (cost - cheapest) for held, cost in zip(user.held, costs, strict=True))
            short += abs((worth - cheapest) * (best - total))
            least = total * worth if least is None else min(least, total * worth)
        assert least is not None, "expected users"
        error = float(2 * (max(short, _ZERO) / (self.alpha * least)).sqrt())
        return error if error * (1.0 + float(self.alpha)) < 0.3 else inf

    def step(self, target: Decimal) -> None:
        """One Newton step towards products that all equal ``target``, damped to stay above zero."""
        places = list(self.slack)
        index = {place: number for number, place in enumerate(places)}
        loads = self._loads()
        system = [[_ZERO] * (number + 1) for number in range(len(places))]
        right = []
        for number, place in enumerate(places):
            system[number][number] = self.slack[place] / self.prices[place]
            right.append(target / self.prices[place] - (_ONE - loads[place]))
        parts = [self._part(user, target) for user in self.users]
        for user, part in zip(self.users, parts, strict=True):
            _add(user, part, index, system, right)
        self._move(target, dict(zip(places, _solve(system, right), strict=True)), parts)

    def _part(self, user: _User, target: Decimal) -> _Part:
        """Eliminate the user's variables."""
        worth, total = user.worth, user.total
        curvature, limit_gap, pull = self.alpha * worth / total, _ZERO, _ZERO
        if user.limit is not None:
            limit_gap = user.limit - total - user.left
            curvature += user.sated / user.left
            pull = (target - user.sated * limit_gap) / user.left
        rest = [
            cost - worth + pull - target / held
            for cost, held in zip(self._costs(user), user.held, strict=True)
        ]
        theta = [held / dear for held, dear in zip(user.held, user.dear, strict=True)]
        return _Part(theta, rest, curvature / (1 + curvature * _sum(theta)), limit_gap)

    def _move(self, target: Decimal, moves: dict[int, Decimal], parts: Sequence[_Part]) -> None:
        slack_moves = {
            place: (target - self.slack[place] * move) / self.prices[place] - self.slack[place]
            for place, move in moves.items()
        }
        steps = [
            self._user_move(user, part, moves, target) for user, part in zip(self.users, parts, strict=True)
        ]
        length = _ONE
        for value, move in self._pairs(moves, slack_moves, steps):
            if value + length * move < (_ONE - _STEP) * value:
                length = -_STEP * value / move
        for place, move in moves.items():
            self.prices[place] += length * move
            self.slack[place] += length * slack_moves[place]
        for user, step in zip(self.users, steps, strict=True):
            user.held = [have + length * move for have, move in zip(user.held, step.held, strict=True)]
            user.dear = [have + length * move for have, move in zip(user.dear, step.dear, strict=True)]
            user.weigh(self.alpha)
            user.left += length * step.left
            user.sated += length * step.sated

    def _user_move(self, user: _User, part: _Part, moves: dict[int, Decimal], target: Decimal) -> _Move:
        changes = [_sum(need * moves[place] for place, need in kind) for kind in user.kinds]
        costs = [rest + change for rest, change in zip(part.rest, changes, strict=True)]
        held = [-move for move in part.combined(costs)]
        dear = [
            (target - price * move) / have - price
            for price, move, have in zip(user.dear, held, user.held, strict=True)
        ]
        if user.limit is None:
            return _Move(held, dear, _ZERO, _ZERO)
        left = part.limit_gap - _sum(held)
        return _Move(held, dear, left, (target - user.sated * left) / user.left - user.sated)

    def _pairs(
        self, moves: dict[int, Decimal], slack_moves: dict[int, Decimal], steps: Sequence[_Move]
    ) -> Iterator[tuple[Decimal, Decimal]]:
        """Pairs of a variable and its move."""
        for place, move in moves.items():
            yield self.prices[place], move
            yield self.slack[place], slack_moves[place]
        for user, step in zip(self.users, steps, strict=True):
            yield from zip(user.held, step.held, strict=True)
            yield from zip(user.dear, step.dear, strict=True)
            yield user.left, step.left
            yield user.sated, step.sated

    def _costs(self, user: _User) -> list[Decimal]:
        """Cost of one unit on each kind."""
        return [_sum(need * self.prices[place] for place, need in kind) for kind in user.kinds]

    def _loads(self) -> dict[int, Decimal]:
        """Per constraint that anybody may meet, the part that is taken."""
        loads: dict[int, Decimal] = {}
        for user in self.users:
            for kind, held in zip(user.kinds, user.held, strict=True):
                for place, need in kind:
                    loads[place] = loads.get(place, _ZERO) + need * held
        return loads


def _user(wish: Wish, capacities: Sequence[Sequence[float]], users: int, alpha: Decimal) -> _User:
    row = [Decimal(need) for need in wish.row]
    kinds = []
    for number, capacity in enumerate(capacities):
        if all(total > 0 for need, total in zip(row, capacity, strict=True) if need > 0):
            kinds.append(
                [
                    (number * len(row) + place, need / Decimal(total))
                    for place, (need, total) in enumerate(zip(row, capacity, strict=True))
                    if need > 0
                ]
            )
    assert kinds, f"expected a demand that fits some machines, got {wish.row}"
    unit = _sum(1 / max(need for _, need in kind) for kind in kinds) / users
    kinds = [[(place, need * unit) for place, need in kind] for kind in kinds]
    # Half of an equal part of each kind, or of the limit: inside all constraints.
    held = [1 / (2 * users * max(need for _, need in kind)) for kind in kinds]
    limit = None
    if wish.limit < inf:
        limit = Decimal(wish.limit) / unit
        held = [min(have, limit / (2 * len(kinds))) for have in held]
    return _User(kinds, unit, Decimal(wish.weight) * _power(unit, 1 / alpha - 1), limit, held)


def _within(user: _User, fullest: Decimal) -> Decimal:
    """The user's tasks, shrunk until all fits."""
    shrunk = user.total / fullest
    return shrunk if user.limit is None else min(shrunk, user.limit)


def _add(
    user: _User, part: _Part, index: dict[int, int], system: list[list[Decimal]], right: list[Decimal]
) -> None:
    """Put an eliminated user into the system's lower triangle; constraints are numbered kind by kind."""
    pulls = part.combined(part.rest)
    for row, kind in enumerate(user.kinds):
        for place, need in kind:
            number = index[place]
            right[number] -= need * pulls[row]
            entries = system[number]
            for column in range(row + 1):
                factor = need * part.entry(row, column)
                for other, needed in user.kinds[column]:
                    if other <= place:
                        entries[index[other]] += factor * needed


def _solve(lower: list[list[Decimal]], right: list[Decimal]) -> list[Decimal]:
    """The solution of a positive definite system, by Cholesky's factors without roots; ``lower`` is used up."""
    size = len(right)
    for row in range(size):
        entries = lower[row]
        scaled = entries[:row]
        for column in range(row):
            scaled[column] -= _sum(map(mul, lower[column][:column], scaled))
        factors = [entry / lower[column][column] for column, entry in enumerate(scaled)]
        entries[row] -= _sum(map(mul, scaled, factors))
        entries[:row] = factors
    answer: list[Decimal] = []
    for row in range(size):
        answer.append(right[row] - _sum(map(mul, lower[row][:row], answer)))
    answer = [value / lower[row][row] for row, value in enumerate(answer)]
    for row in reversed(range(size)):
        for column in range(row):
            answer[column] -= lower[row][column] * answer[row]
    return answer


def _power(base: Decimal, exponent: Decimal) -> Decimal:
    """``base ** exponent``; by multiplications and roots where they will do, which are a hundred times as fast."""
    if exponent == exponent.to_integral_value():
        return base ** int(exponent)
    if 4 * exponent == (4 * exponent).to_integral_value():
        return (base ** int(4 * exponent)).sqrt().sqrt()
    return base**exponent


def _sum(terms: Iterable[Decimal]) -> Decimal:
    return sum(terms, _ZERO)
