"""Multipliers by numpy: the same answers as without it, and that it is asked only where it is there."""

import random
import sys
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_master.allocation.multipliers import interior_point
from fairlead_master.allocation.multipliers.certificate import Multipliers
from fairlead_master.solvers import many_classes
from fairlead_master.solvers.registry import solve
from tests.solvers.builders import a_problem
from tests.solvers.conditions import optimality_error

Classes = list[tuple[list[float], float]]

ALPHAS = st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0])


@pytest.fixture(scope="module")
def numpy() -> Any:
    return pytest.importorskip("numpy", reason="the extra `solve` is not installed; make setup does that")


def by_arrays(classes: Classes, alpha: float = 1.0) -> Multipliers:
    from fairlead_master.solvers.array_dual import ArrayDual

    return interior_point.minimise(ArrayDual(classes, alpha))


@st.composite
def some_classes(draw: st.DrawFn) -> Classes:
    width = draw(st.integers(1, 5))
    entry = st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-2, 1.0))
    row = st.lists(entry, min_size=width, max_size=width).filter(any)
    return draw(st.lists(st.tuples(row, st.floats(0.5, 2.0)), min_size=1, max_size=12))


@given(classes=some_classes(), alpha=ALPHAS)
@settings(max_examples=100)
def test_arrays_and_lists_give_the_same_prices(numpy: Any, classes: Classes, alpha: float) -> None:
    lists, arrays = interior_point.solve(classes, alpha=alpha), by_arrays(classes, alpha)

    assert arrays.certificate.relative_error < 1e-9
    for row, _ in classes:
        price = sum(need * value for need, value in zip(row, lists.values, strict=True))
        assert sum(need * value for need, value in zip(row, arrays.values, strict=True)) == pytest.approx(
            price, rel=1e-9
        )


def many(count: int) -> Classes:
    rng = random.Random(2)
    return [
        ([rng.choice([0.0, rng.random()]), rng.random(), rng.random()], rng.choice([1e-6, 1.0, 1e6]))
        for _ in range(count)
    ]


def test_many_classes_are_optimal_to_nine_digits(numpy: Any) -> None:
    classes = many(5_000)

    found = many_classes.solve(classes)

    rows, weights = [row for row, _ in classes], [weight for _, weight in classes]
    units = [
        weight / sum(need * value for need, value in zip(row, found.values, strict=True))
        for row, weight in classes
    ]
    assert optimality_error(rows, weights, [inf] * len(rows), units, found.values) < 1e-9
    assert found.certificate.relative_error < 1e-9
    assert "numpy" in sys.modules


def test_passes_do_not_grow_with_the_classes(numpy: Any) -> None:
    passes = []
    for count in (50, 500, 5_000, 50_000):
        rng = random.Random(1)
        passes.append(by_arrays([([rng.random() for _ in range(4)], 1.0) for _ in range(count)]).iterations)

    assert max(passes) <= 16


def test_without_numpy_the_same_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    classes = many(300)
    monkeypatch.setattr(many_classes, "CLASSES_MIN", 0)
    monkeypatch.delitem(sys.modules, "fairlead_master.solvers.array_dual", raising=False)
    monkeypatch.setitem(sys.modules, "numpy", None)  # what an import that fails leaves

    assert many_classes.solve(classes) == interior_point.solve(classes)


def test_few_classes_do_not_ask_for_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fairlead_master.solvers.array_dual", None)

    assert many_classes.solve(many(300)) == interior_point.solve(many(300))


def test_the_exact_solver_uses_it_for_many_users(numpy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(4)
    users = {f"u{place}": [rng.random(), rng.random()] for place in range(300)}
    caps = dict.fromkeys(list(users)[::3], 0.01)
    problem = a_problem((1.0, 1.0), users, caps=caps)
    by_lists = solve(problem, "pf")

    monkeypatch.setattr(many_classes, "CLASSES_MIN", 10)

    assert solve(problem, "pf").tasks == pytest.approx(by_lists.tasks, rel=1e-9)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([], "classes: expected at least one"),
        ([([1.0], 1.0), ([1.0, 2.0], 1.0)], r"classes\[1\]: expected 1 resources"),
        ([([1.0, 1.0], 1.0), ([0.0, 0.0], 1.0)], r"classes\[1\]: expected finite demand"),
        ([([-1.0, 1.0], 1.0)], r"classes\[0\]: expected finite demand"),
        ([([1.0, inf], 1.0)], r"classes\[0\]: expected finite demand"),
        ([([1.0], 0.0)], r"classes\[0\]: expected a finite weight"),
        ([([1.0], inf)], r"classes\[0\]: expected a finite weight"),
    ],
)
def test_what_is_no_class_is_refused_in_the_same_words(numpy: Any, classes: Classes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        by_arrays(classes)


@pytest.mark.parametrize("alpha", [0.0, -1.0, inf])
def test_what_is_no_alpha_is_refused(numpy: Any, alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha: expected"):
        by_arrays([([1.0], 1.0)], alpha)


def test_a_class_that_costs_nothing_is_no_division_by_zero(numpy: Any) -> None:
    from fairlead_master.solvers.array_dual import ArrayDual

    dual = ArrayDual([([1.0, 0.0], 1.0), ([0.0, 1.0], 1.0)])

    assert not dual.is_charged([1.0, 0.0])
    with pytest.raises(ZeroDivisionError):
        dual.at([1.0, 0.0])
    with pytest.raises(ZeroDivisionError):
        dual.beside([1.0, 0.0])
