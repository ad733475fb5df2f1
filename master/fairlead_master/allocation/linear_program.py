"""Linear programs: the largest c.x with A x <= b and x >= 0, by the simplex method, in floats or in exact fractions.

Small and dense on purpose: what the solvers ask is a few hundred variables at most. The tableau holds the nonbasic
columns only (the "dictionary" of Chvatal, "Linear Programming", 1983, chapters 2 and 3), so that a pivot costs rows times
columns. Dantzig's rule chooses the column, and Bland's after a pivot that gained nothing, until one gains: within such a
stretch Bland's rule visits no basis twice, and between stretches the value grows, so that the method ends (exactly so
with fractions). Negative bounds cost a first phase, by one artificial variable.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp, isfinite, ldexp
from typing import Final, Generic, TypeVar, overload

Number = TypeVar("Number", float, Fraction)

_TOLERANCE: Final = 1e-10
"""What counts as zero in floats, once every row and column has entries of about one. Rounding leaves about 1e-15 a pivot;
a true entry this small would need data that span ten orders of magnitude within one row after scaling."""

_PIVOTS_PER_LINE: Final = 200
"""Pivots allowed for each row and column. The method takes about two or three; a hundred times that is a fault."""


class LinearProgramError(ValueError):
    """A program that is badly written, or that has no largest value; the message says which."""


class UnboundedError(LinearProgramError):
    """The objective can be made as large as one likes."""


class InfeasibleError(LinearProgramError):
    """No x >= 0 meets all rows."""


@dataclass(frozen=True, slots=True)
class LinearSolution(Generic[Number]):
    """An optimal basic solution: one corner of the feasible set."""

    x: tuple[Number, ...]
    """One value >= 0 per variable."""
    value: Number
    """c.x."""
    duals: tuple[Number, ...]
    """One per row, >= 0: by how much the value grows if the row's bound grows by one. b.duals is the value."""


@overload
def maximise(
    objective: Sequence[Fraction], rows: Sequence[Sequence[Fraction]], bounds: Sequence[Fraction]
) -> LinearSolution[Fraction]: ...


@overload
def maximise(
    objective: Sequence[float], rows: Sequence[Sequence[float]], bounds: Sequence[float]
) -> LinearSolution[float]: ...


@overload
def maximise(
    objective: Sequence[float | Fraction],
    rows: Sequence[Sequence[float | Fraction]],
    bounds: Sequence[float | Fraction],
) -> LinearSolution[float] | LinearSolution[Fraction]: ...


def maximise(
    objective: Sequence[float | Fraction],
    rows: Sequence[Sequence[float | Fraction]],
    bounds: Sequence[float | Fraction],
) -> LinearSolution[float] | LinearSolution[Fraction]:
    """The largest c.x with A x <= b and x >= 0: ``objective`` is c, ``rows`` A, ``bounds`` b.

    If any number is a Fraction all are taken as such, and the answer is exact. Otherwise they are taken as floats, and
    rows and columns are scaled by powers of two first. A bound may be below zero, which costs a first phase.

    Raises:
        UnboundedError: c.x has no largest value.
        InfeasibleError: nothing meets the rows.
        LinearProgramError: the lengths do not match, a number is not finite, or rounding kept the method from ending.
    """
    _check_lengths(len(objective), list(map(len, rows)), len(bounds))
    _check_numbers("objective", objective)
    _check_numbers("bounds", bounds)
    for place, row in enumerate(rows):
        _check_numbers(f"rows[{place}]", row)
    if any(isinstance(number, Fraction) for row in (objective, bounds, *rows) for number in row):
        return _maximise_fractions(
            [Fraction(entry) for entry in objective],
            [[Fraction(entry) for entry in row] for row in rows],
            [Fraction(bound) for bound in bounds],
        )
    return _maximise_floats(
        [float(entry) for entry in objective],
        [[float(entry) for entry in row] for row in rows],
        [float(bound) for bound in bounds],
    )


def _check_lengths(variables: int, rows: Sequence[int], bounds: int) -> None:
    if len(rows) != bounds:
        raise LinearProgramError(f"bounds: expected {len(rows)}, one per row, got {bounds}")
    for place, length in enumerate(rows):
        if length != variables:
            raise LinearProgramError(
                f"rows[{place}]: expected {variables} numbers, one per variable, got {length}"
            )


def _check_numbers(name: str, numbers: Sequence[float | Fraction]) -> None:
    for place, number in enumerate(numbers):
        if not isfinite(number):
            raise LinearProgramError(f"{name}[{place}]: expected a finite number, got {number}")


def _maximise_fractions(
    objective: list[Fraction], rows: list[list[Fraction]], bounds: list[Fraction]
) -> LinearSolution[Fraction]:
    lines = [[*row, bound] for row, bound in zip(rows, bounds, strict=True)]
    tableau = _Tableau(objective, lines, Fraction(0))
    tableau.solve()
    return LinearSolution(tableau.x(), tableau.value(), tableau.duals())


def _maximise_floats(
    objective: list[float], rows: list[list[float]], bounds: list[float]
) -> LinearSolution[float]:
    """Scale by powers of two, which loses nothing, so that one tolerance fits bytes and cores alike."""
    row_scale = [_power_of_two(row) for row in rows]
    scaled = [[entry / by for entry in row] for row, by in zip(rows, row_scale, strict=True)]
    column_scale = [_power_of_two(column) for column in zip(*scaled, strict=True)] or [1.0] * len(objective)
    scaled = [[entry / by for entry, by in zip(row, column_scale, strict=True)] for row in scaled]
    right = [bound / by for bound, by in zip(bounds, row_scale, strict=True)]
    cost = [entry / by for entry, by in zip(objective, column_scale, strict=True)]
    bound_scale, cost_scale = _power_of_two(right), _power_of_two(cost)
    lines = [[*row, bound / bound_scale] for row, bound in zip(scaled, right, strict=True)]
    tableau = _Tableau([entry / cost_scale for entry in cost], lines, _TOLERANCE)
    tableau.solve()
    x = tuple([value * bound_scale / by for value, by in zip(tableau.x(), column_scale, strict=True)])
    duals = tuple([dual * cost_scale / by for dual, by in zip(tableau.duals(), row_scale, strict=True)])
    return LinearSolution(x, sum(map(float.__mul__, objective, x)), duals)


def _power_of_two(numbers: Sequence[float]) -> float:
    """The one next above the largest of them in size; 1 if all are zero."""
    largest = max(map(abs, numbers), default=0.0)
    # A subnormal or huge power would overflow its reciprocal; nobody's resources come near it.
    return ldexp(1.0, min(max(frexp(largest)[1], -500), 500)) if largest else 1.0


class _Tableau(Generic[Number]):
    """basic[i] = lines[i][-1] - sum over j of lines[i][j] nonbasic[j], the same for the objectives, as signs go.

    Variables are numbered: those of the program from 0, then the slack of each row, then the artificial one.
    """

    def __init__(self, objective: list[Number], lines: list[list[Number]], tolerance: Number) -> None:
        """Of a program whose rows have their bounds behind them; the lists are taken over."""
        self._count: int = len(objective)
        self._tolerance: Number = tolerance
        self._zero: Number = tolerance - tolerance
        self._nonbasic: list[int] = list(range(self._count))
        self._basic: list[int] = list(range(self._count, self._count + len(lines)))
        self._lines: list[list[Number]] = lines
        self._cost: list[Number] = [-entry for entry in objective]
        self._cost.append(self._zero)
        """Its last entry is the value; an entry below zero says that its variable would raise it."""
        self._pivots_left = _PIVOTS_PER_LINE * (self._count + len(lines) + 1)

    def solve(self) -> None:
        """Pivot until the basis is optimal."""
        if any(line[-1] < 0 for line in self._lines):
            self._find_feasible()
        self._improve(self._cost)

    def x(self) -> tuple[Number, ...]:
        """The program's variables."""
        values = [self._zero] * self._count
        for variable, line in zip(self._basic, self._lines, strict=True):
            if variable < self._count:
                values[variable] = line[-1]
        return tuple(values)

    def value(self) -> Number:
        """The objective."""
        return self._cost[-1]

    def duals(self) -> tuple[Number, ...]:
        """Of a row whose slack is not in the basis, the slack's cost; zero of others."""
        values = [self._zero] * len(self._lines)
        for place, variable in enumerate(self._nonbasic):
            if variable >= self._count:
                values[variable - self._count] = max(self._cost[place], self._zero)
        return tuple(values)

    def _find_feasible(self) -> None:
        """The first phase: lower every bound's lack by one artificial variable, then drive that one to zero."""
        artificial = self._count + len(self._lines)
        one = self._zero + 1
        for line in self._lines:
            line.insert(-1, -one)
        self._cost.insert(-1, self._zero)
        self._nonbasic.append(artificial)
        lack: list[Number] = [self._zero] * (self._count + 2)
        lack[-2] = one
        worst = min(range(len(self._lines)), key=lambda place: self._lines[place][-1])
        self._pivot(worst, self._count, lack)
        self._improve(lack)
        if -lack[-1] > self._tolerance * 100:  # the sum of what rounding left in each pivot, and no more
            raise InfeasibleError("rows: nothing x >= 0 meets all of them")
        if artificial in self._basic:
            line = self._lines[self._basic.index(artificial)]
            column = max(range(len(self._nonbasic)), key=lambda place: abs(line[place]))
            self._pivot(self._basic.index(artificial), column, lack)
        column = self._nonbasic.index(artificial)
        del self._nonbasic[column]
        del self._cost[column]
        for line in self._lines:
            del line[column]

    def _improve(self, cost: list[Number]) -> None:
        by_bland = False
        while True:
            column = self._entering(cost, by_bland=by_bland)
            if column is None:
                return
            place = self._leaving(column, by_bland=by_bland)
            if place is None:
                raise UnboundedError(
                    f"objective: no largest value; nothing limits variable {self._nonbasic[column]}"
                )
            if not self._pivots_left:
                raise LinearProgramError("rows: no end after as many pivots as any sound program needs")
            before = cost[-1]
            self._pivot(place, column, cost)
            by_bland = cost[-1] <= before

    def _entering(self, cost: list[Number], *, by_bland: bool) -> int | None:
        best = None
        for place, variable in enumerate(self._nonbasic):
            if cost[place] < -self._tolerance and (
                best is None or (variable < self._nonbasic[best] if by_bland else cost[place] < cost[best])
            ):
                best = place
        return best

    def _leaving(self, column: int, *, by_bland: bool) -> int | None:
        """Of the rows that limit the entering variable most, the first variable's, or the one with the largest pivot."""
        best, smallest = None, self._zero
        for place, line in enumerate(self._lines):
            if line[column] <= self._tolerance:
                continue
            ratio = line[-1] / line[column]
            if best is not None and ratio == smallest:
                if by_bland:
                    closer = self._basic[place] < self._basic[best]
                else:
                    closer = line[column] > self._lines[best][column]
            else:
                closer = best is None or ratio < smallest
            if closer:
                best, smallest = place, ratio
        return best

    def _pivot(self, place: int, column: int, cost: list[Number]) -> None:
        """Swap a basic and a nonbasic variable, in every row, in the objective, and in ``cost`` if that is another."""
        self._pivots_left -= 1
        chosen = self._lines[place]
        pivot = chosen[column]
        reciprocal = 1 / pivot
        chosen[:] = [entry / pivot for entry in chosen]
        chosen[column] = reciprocal
        lines = [line for line in self._lines if line is not chosen]
        for line in lines:
            self._subtract(line, chosen, column, reciprocal)
            if -self._tolerance < line[-1] < 0:  # rounding must not make a feasible basis look infeasible
                line[-1] = self._zero
        self._subtract(self._cost, chosen, column, reciprocal)
        if cost is not self._cost:
            self._subtract(cost, chosen, column, reciprocal)
        self._basic[place], self._nonbasic[column] = self._nonbasic[column], self._basic[place]

    @staticmethod
    def _subtract(line: list[Number], chosen: list[Number], column: int, reciprocal: Number) -> None:
        factor = line[column]
        if factor:
            line[:] = [entry - factor * other for entry, other in zip(line, chosen, strict=True)]
            line[column] = -factor * reciprocal
