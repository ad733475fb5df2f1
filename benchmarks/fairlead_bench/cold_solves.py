"""What it costs to find prices and exact shares from nothing, beside the sums that no method of Newton can do without.

The floor of a solve is its sums alone, of loads and second derivatives over all classes, as often as it passed over them,
made the same way: in plain lists, or by numpy. Times are CPU time of this process, the best of several.
"""

import random
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from math import inf
from operator import mul
from typing import Final

from fairlead_bench.allocation import cpu_seconds
from fairlead_bench.rows import Row, check_scale
from fairlead_master.allocation.multipliers import interior_point
from fairlead_master.allocation.multipliers.certificate import Multipliers
from fairlead_master.allocation.multipliers.dual import DemandClass
from fairlead_master.allocation.multipliers.satiation import Wish
from fairlead_master.solvers import many_classes, registry
from fairlead_master.solvers.machine_market import share_machines
from fairlead_master.solvers.problem import Problem, User

_IN_LISTS: Final = ((20, 4, ""), (100, 8, "< 30"), (1_000, 8, ""), (10_000, 4, ""))
"""Classes, resources and the target in milliseconds."""

_BY_ARRAYS: Final = ((10_000, 4, ""), (100_000, 4, "< 1000"))

_MACHINES: Final = ((20, 3), (100, 4))
"""Users and kinds of machines."""

_QUICK: Final = 1_000
"""Larger shapes are left out of the quick benchmark."""


def measure(seed: int, scale: str) -> list[Row]:
    """All rows; ``scale`` is ``full`` or ``quick``. Those of numpy are missing where it is not installed.

    Raises:
        ValueError: the scale is neither.
    """
    check_scale(scale)
    largest = _QUICK if scale == "quick" else inf
    rows: list[Row] = []
    for count, width, target in _IN_LISTS:
        if count <= largest:
            rows += _rows(seed, count, width, target)
    if scale == "full" and find_spec("numpy") is not None:
        for count, width, target in _BY_ARRAYS:
            rows += _array_rows(seed, count, width, target)
        rows.append(_users_row(seed, _BY_ARRAYS[-1][0]))
    return rows + [
        _machines_row(seed, users, kinds) for users, kinds in _MACHINES if scale == "full" or users < 50
    ]


def _classes(seed: int, count: int, width: int) -> list[DemandClass]:
    rng = random.Random(seed)
    return [([rng.random() for _ in range(width)], 1.0 + rng.random()) for _ in range(count)]


def _rows(seed: int, count: int, width: int, target: str) -> list[Row]:
    classes = _classes(seed, count, width)
    columns = [[row[place] for row, _ in classes] for place in range(width)]

    def sums() -> None:
        for column in columns:
            sum(map(mul, column, column))
        for place, column in enumerate(columns):
            for other in columns[: place + 1]:
                sum(map(mul, column, other))

    return _solved(
        f"{count} classes x {width} resources", target, lambda: interior_point.solve(classes), sums
    )


def _array_rows(seed: int, count: int, width: int, target: str) -> list[Row]:
    import numpy as np

    classes = _classes(seed, count, width)
    columns = np.array([row for row, _ in classes]).T.copy()

    def sums() -> None:
        columns @ columns[0]
        columns @ columns.T

    name = f"{count} classes x {width} resources, numpy"
    return _solved(name, target, lambda: many_classes.solve(classes), sums)


def _solved(name: str, target: str, solve: Callable[[], Multipliers], sums: Callable[[], None]) -> list[Row]:
    found = solve()
    floor = min(cpu_seconds(sums) for _ in range(5)) * found.iterations
    return [
        Row(
            f"pf prices from nothing, {name} (floor: the sums alone)",
            min(cpu_seconds(solve) for _ in range(5)) * 1e3,
            "ms",
            target,
            floor=floor * 1e3,
        ),
        Row("passes over the classes", found.iterations, "passes", "< 25"),
        Row("shares off by, at most, certified", found.certificate.relative_error, "of 1", "< 1e-09"),
    ]


def _users_row(seed: int, count: int) -> Row:
    """The whole way of ``fairlead allocate``, but for reading the file."""
    users = [
        User(str(place), tuple(row), (weight,) * len(row))
        for place, (row, weight) in enumerate(_classes(seed, count, 4))
    ]
    problem = Problem(("cpus", "mem", "disk", "gpus"), (1.0, 1.0, 1.0, 1.0), tuple(users))
    return Row(
        f"pf exactly, {count} users of 4 resources, from demands to shares, numpy",
        min(cpu_seconds(lambda: registry.solve(problem, "pf")) for _ in range(3)) * 1e3,
        "ms",
    )


def _machines_row(seed: int, users: int, kinds: int) -> Row:
    rng = random.Random(seed)
    wishes = [Wish([rng.random() for _ in range(3)], 1.0 + rng.random()) for _ in range(users)]
    capacities: Sequence[Sequence[float]] = [[rng.uniform(1, 100) for _ in range(3)] for _ in range(kinds)]
    return Row(
        f"pf exactly, {users} users on {kinds} kinds of machines of 3 resources, in decimals",
        min(cpu_seconds(lambda: share_machines(wishes, capacities)) for _ in range(3)) * 1e3,
        "ms",
    )
