"""What it costs to follow the prices of proportional fairness, and to decide by them, beside what comes without prices.

A population of four resources and 100 demand vectors, weights of a half, one or two, everybody wanting more than there is.
All times are CPU time of this process, the best of several.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from operator import mul
from typing import Final

from fairlead_bench.allocation import cpu_seconds
from fairlead_bench.rows import Row, check_scale
from fairlead_master.allocation.api import Policy
from fairlead_master.allocation.policies.alpha import QUIET_MS, AlphaFairness
from fairlead_master.allocation.policies.drf import DominantResourceFairness
from fairlead_master.allocation.policies.pf import proportional_fairness
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector, scale

_MIB: Final = 2**20
_CLASSES: Final = 100
_WANTED: Final = 1_000_000
"""Units each account wants in all: more than there are."""

_DECISIONS: Final = 30_000
_EVENTS: Final = 2_000
"""Measured at once."""

_SCALES: Final = {"full": (1_000, 10_000, 100_000), "quick": (1_000,)}
"""Numbers of accounts."""


def measure(seed: int, scale: str) -> list[Row]:
    """All rows; ``scale`` is ``full`` or ``quick`` (for a first look and for tests).

    Raises:
        ValueError: the scale is neither.
    """
    check_scale(scale)
    rows: list[Row] = []
    for accounts in _SCALES[scale]:
        population = _a_population(seed, accounts)
        policy = proportional_fairness()
        population.tell(policy)
        rows += [_decision_row(population, policy), *_event_rows(population, policy, seed)]
    return rows


@dataclass(frozen=True, slots=True)
class _Population:
    """Who there is and what a task of each takes."""

    capacity: Vector
    kinds: list[Vector]
    units: dict[str, Vector]
    weights: dict[str, Weight]

    def tell(self, policy: Policy) -> None:
        """Tell a policy of everyone, each holding one task."""
        policy.set_capacity(self.capacity, 0)
        for name, unit in self.units.items():
            _arrive(policy, name, unit, self.weights[name])
            policy.charge(name, unit, 1)
        policy.first()


def _a_population(seed: int, accounts: int) -> _Population:
    rng = random.Random(seed)
    kinds: list[Vector] = [
        (
            rng.randrange(250, 8_000, 250),
            rng.randrange(64, 8_192) * _MIB,
            rng.randrange(1, 64) * 1_024 * _MIB,
            rng.choice((0, 0, 1_000, 2_000)),
        )
        for _ in range(_CLASSES)
    ]
    return _Population(
        capacity=(accounts * 16_000, accounts * 65_536 * _MIB, accounts * 262_144 * _MIB, accounts * 4_000),
        kinds=kinds,
        units={str(number): kinds[number % _CLASSES] for number in range(accounts)},
        weights={str(number): Weight(rng.choice((0.5, 1.0, 2.0))) for number in range(accounts)},
    )


def _arrive(policy: Policy, name: str, unit: Vector, weight: Weight) -> None:
    policy.add(name, weight, scale(unit, 0), 0)
    policy.set_wish_units(name, _WANTED)
    policy.set_wish(name, scale(unit, _WANTED))
    policy.activate(name)


def _decision_row(population: _Population, policy: AlphaFairness) -> Row:
    """One decision: the first account, charged a unit. The floor is that of a policy without prices, in the same run."""
    without_prices = DominantResourceFairness()
    population.tell(without_prices)
    return Row(
        f"pf decision, {len(population.units)} accounts (floor: drf)",
        _decision_us(policy, population.units),
        "us",
        "< 10",
        floor=_decision_us(without_prices, population.units),
    )


def _decision_us(policy: Policy, units: dict[str, Vector]) -> float:
    def decide() -> None:
        for _ in range(_DECISIONS):
            name = policy.first()
            if name is not None:
                policy.charge(name, units[name], 1)

    return min(cpu_seconds(decide) for _ in range(5)) * 1e6 / _DECISIONS


def _event_rows(population: _Population, policy: AlphaFairness, seed: int) -> list[Row]:
    """Arrivals and departures in turn, a decision after each, and how exact prices are in between and afterwards."""
    count = len(population.units)
    churn = [_churn(population, policy, seed, number) for number in range(5)]
    value = min(cpu_seconds(events) for events in churn) * 1e6 / _EVENTS
    together = cpu_seconds(_all_at_once(population, policy, seed)) * 1e6 / _EVENTS
    worst = _largest_error(population, policy, seed)
    policy.advance(QUIET_MS)
    shape = f"{count} accounts, {_CLASSES} classes x {len(population.capacity)} resources"
    floor = _bare_pass_us(population)
    return [
        Row(f"pf arrival or departure, {shape} (floor: a cost each)", value, "us", "< 150", floor=floor),
        Row(f"the same, {_EVENTS} of them between decisions", together, "us", "< 150"),
        Row("pf prices off by, at most, under such churn", worst, "of 1", "< 0.001"),
        Row("pf prices off by, a quiet second later", policy.prices().error, "of 1", "< 1e-09"),
    ]


def _churn(population: _Population, policy: AlphaFairness, seed: int, round_: int) -> Callable[[], None]:
    rng = random.Random(seed)
    kinds = rng.choices(population.kinds, k=_EVENTS // 2)

    def events() -> None:
        for number, unit in enumerate(kinds):
            _arrive(policy, f"new {round_} {number}", unit, Weight())
            policy.first()
            if number % 2:  # As many leave, but not always who came last.
                for gone in (number - 1, number):
                    policy.remove(f"new {round_} {gone}")
                    policy.first()

    return events


def _all_at_once(population: _Population, policy: AlphaFairness, seed: int) -> Callable[[], None]:
    rng = random.Random(seed + 1)
    kinds = rng.choices(population.kinds, k=_EVENTS // 2)

    def events() -> None:
        for number, unit in enumerate(kinds):
            _arrive(policy, f"late {number}", unit, Weight())
        for number in range(0, len(kinds), 2):
            policy.remove(f"late {number}")
        policy.first()

    return events


def _largest_error(population: _Population, policy: AlphaFairness, seed: int) -> float:
    """Of the prices in force, looked at after every hundredth of a thousand arrivals, a third of which leave again."""
    rng = random.Random(seed + 2)
    worst = 0.0
    for number in range(1_000):
        _arrive(policy, f"last {number}", rng.choice(population.kinds), Weight())
        policy.first()
        if number % 3 == 2:
            policy.remove(f"last {number - rng.randrange(3)}")
        if number % 100 == 99:
            worst = max(worst, policy.prices().error)
    return worst


def _bare_pass_us(population: _Population) -> float:
    """The floor: what a unit of each class costs at some prices, and nothing else."""
    rows = [
        [amount / total for amount, total in zip(kind, population.capacity, strict=True)]
        for kind in population.kinds
    ]
    prices = [1.0] * len(population.capacity)

    def passes() -> None:
        for _ in range(_EVENTS):
            for row in rows:
                sum(map(mul, row, prices))

    return min(cpu_seconds(passes) for _ in range(5)) * 1e6 / _EVENTS
