"""The simplex method against corners found one by one, in floats and in fractions."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.allocation.linear_program import (
    InfeasibleError,
    LinearProgramError,
    LinearSolution,
    UnboundedError,
    maximise,
)

Program = tuple[list[Fraction], list[list[Fraction]], list[Fraction]]


def dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction())


def solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """The one solution of a square system by Gauss and Jordan; None if there is none or more than one."""
    lines = [[*row, bound] for row, bound in zip(matrix, right, strict=True)]
    for column in range(len(lines)):
        place = next((p for p in range(column, len(lines)) if lines[p][column]), None)
        if place is None:
            return None
        lines[column], lines[place] = lines[place], lines[column]
        lines[column] = [entry / lines[column][column] for entry in lines[column]]
        for other in range(len(lines)):
            if other != column:
                factor = lines[other][column]
                lines[other] = [a - factor * b for a, b in zip(lines[other], lines[column], strict=True)]
    return [line[-1] for line in lines]


def best_corner(program: Program) -> Fraction | None:
    """The largest objective over all corners of the feasible set; None if it is empty."""
    objective, rows, bounds = program
    count = len(objective)
    signs = [[Fraction(-(i == j)) for j in range(count)] for i in range(count)]
    planes = list(zip([*rows, *signs], [*bounds, *[Fraction()] * count], strict=True))
    best = None
    for chosen in combinations(planes, count):
        corner = solved([row for row, _ in chosen], [bound for _, bound in chosen])
        if corner is not None and all(dot(row, corner) <= bound for row, bound in planes):
            value = dot(objective, corner)
            best = value if best is None else max(best, value)
    return best


def assert_optimal(program: Program, solution: LinearSolution[Fraction]) -> None:
    """Both sides feasible and of one value: nothing can be better (weak duality)."""
    objective, rows, bounds = program
    assert min(solution.x) >= 0
    assert min(solution.duals) >= 0
    for row, bound in zip(rows, bounds, strict=True):
        assert dot(row, solution.x) <= bound
    for column, gain in zip(zip(*rows, strict=True), objective, strict=True):
        assert dot(column, solution.duals) >= gain
    assert dot(objective, solution.x) == solution.value == dot(bounds, solution.duals)


small = st.integers(-5, 9).map(Fraction)
positive = st.fractions(0, 9, max_denominator=4)


@st.composite
def programs(draw: st.DrawFn, *, bound: st.SearchStrategy[Fraction] = positive) -> Program:
    """Of up to three variables; the last row keeps them all below a limit."""
    count = draw(st.integers(1, 3))
    line = st.lists(small, min_size=count, max_size=count)
    rows = draw(st.lists(line, max_size=4))
    bounds = [draw(bound) for _ in rows]
    return draw(line), [*rows, [Fraction(1)] * count], [*bounds, Fraction(10)]


@given(programs())
def test_no_corner_is_better(program: Program) -> None:
    solution = maximise(*program)

    assert solution.value == best_corner(program)
    assert_optimal(program, solution)


@given(programs(bound=small))
def test_negative_bounds_are_met_or_refused(program: Program) -> None:
    expected = best_corner(program)

    if expected is None:
        with pytest.raises(InfeasibleError):
            maximise(*program)
    else:
        solution = maximise(*program)
        assert solution.value == expected
        assert_optimal(program, solution)


@given(programs(bound=st.sampled_from([Fraction(0), Fraction(0), Fraction(1)])))
def test_degenerate_programs_end(program: Program) -> None:
    solution = maximise(*program)

    assert solution.value == best_corner(program)


@given(programs(), st.lists(st.integers(-30, 30), min_size=5, max_size=5))
def test_floats_agree_with_fractions_whatever_the_units(program: Program, shifts: list[int]) -> None:
    """Rows in units 2^60 apart: the scaling undoes it, so that the value is the same to rounding."""
    objective, rows, bounds = program
    units = [2.0**shift for shift in shifts[: len(rows)]]
    exact = maximise(*program)

    solution = maximise(
        [float(entry) for entry in objective],
        [[float(entry) * unit for entry in row] for row, unit in zip(rows, units, strict=True)],
        [float(bound) * unit for bound, unit in zip(bounds, units, strict=True)],
    )

    assert solution.value == pytest.approx(float(exact.value), rel=1e-9, abs=1e-9)
    worth = sum(d * float(b) * u for d, b, u in zip(solution.duals, bounds, units, strict=True))
    assert worth == pytest.approx(solution.value, rel=1e-9, abs=1e-9)


def test_beale_does_not_cycle() -> None:
    """Beale, "Cycling in the dual simplex algorithm", 1955: Dantzig's rule alone comes back to where it began."""
    quarter, half = Fraction(1, 4), Fraction(1, 2)
    program: Program = (
        [3 * quarter, Fraction(-150), Fraction(1, 50), Fraction(-6)],
        [
            [quarter, Fraction(-60), Fraction(-1, 25), Fraction(9)],
            [half, Fraction(-90), Fraction(-1, 50), Fraction(3)],
            [Fraction(0), Fraction(0), Fraction(1), Fraction(0)],
        ],
        [Fraction(0), Fraction(0), Fraction(1)],
    )

    solution = maximise(*program)

    assert solution.value == Fraction(1, 20)
    assert_optimal(program, solution)


def test_the_exponential_cube_of_klee_and_minty_ends() -> None:
    """Dantzig's rule may visit all 2^n corners; the bound on pivots leaves room for n = 7."""
    n = 7
    rows = [[Fraction(2 * 10 ** (i - j)) if j < i else Fraction(i == j) for j in range(n)] for i in range(n)]
    bounds = [Fraction(100**i) for i in range(n)]

    solution = maximise([Fraction(10 ** (n - 1 - j)) for j in range(n)], rows, bounds)

    assert solution.value == 100 ** (n - 1)


def test_a_dual_is_what_one_more_of_a_bound_is_worth() -> None:
    """max 3x + 5y, x <= 4, 2y <= 12, 3x + 2y <= 18: the example of many textbooks, value 36 at (2, 6)."""
    solution = maximise([3.0, 5.0], [[1.0, 0.0], [0.0, 2.0], [3.0, 2.0]], [4.0, 12.0, 18.0])

    assert solution.x == pytest.approx((2, 6))
    assert solution.value == pytest.approx(36)
    assert solution.duals == pytest.approx((0, 1.5, 1))


def test_whole_numbers_are_taken_as_floats() -> None:
    assert maximise([1], [[3]], [1]).x == (1 / 3,)


def test_without_gain_everything_stays_at_zero() -> None:
    assert maximise([-1.0, 0.0], [], []).x == (0.0, 0.0)
    assert maximise([0.0], [[0.0]], [0.0]).value == 0.0


def test_what_nothing_limits_is_refused() -> None:
    with pytest.raises(UnboundedError, match="nothing limits variable 1"):
        maximise([1.0, 1.0], [[1.0, -1.0]], [1.0])


@pytest.mark.parametrize(
    ("rows", "bounds", "message"),
    [
        ([[1.0]], [1.0], r"rows\[0\]: expected 2 numbers, one per variable, got 1"),
        ([[1.0, 2.0]], [], "bounds: expected 1, one per row, got 0"),
        ([[1.0, float("nan")]], [1.0], r"rows\[0\]\[1\]: expected a finite number, got nan"),
        ([[1.0, 2.0]], [float("inf")], r"bounds\[0\]: expected a finite number, got inf"),
    ],
)
def test_bad_programs_are_refused(rows: list[list[float]], bounds: list[float], message: str) -> None:
    with pytest.raises(LinearProgramError, match=message):
        maximise([1.0, 1.0], rows, bounds)
