"""What an allocation decision and an allocation cycle cost, beside what the bare machine would need for it.

All figures are CPU time of this process, the best of several, so that a busy machine disturbs them least. Work that must
not be done at all is counted and not timed. Shapes of cycles are those the project compares itself with: agents of 24
cores, 4 GiB of memory and 4 GiB of disk, two thirds of the cores used, each with room for one more task.
"""

import gc
import random
import time
from collections.abc import Callable
from heapq import heapify, heapreplace
from typing import Final

from fairlead_bench.rows import Row, check_scale
from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import AllocationSettings, Grant
from fairlead_master.allocation.placement import NAMES
from fairlead_master.allocation.policies.bbf import BottleneckFairness
from fairlead_master.allocation.policies.drf import DominantResourceFairness
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.tasks import DemandClass

Task = tuple[FrameworkId, AgentId, Vector]

_Make = Callable[[Vector, list[Vector], list[Weight]], Callable[[], None]]
"""Makes, of capacity, units and weights of accounts, what takes a number of decisions."""

_MIB: Final = 2**20
_GIB: Final = 2**30
_KINDS: Final = ResourceKinds()
_TASKS: Final = ClassId("tasks")

_CYCLE_TARGET_MS: Final = 100.0
"""For 10,000 agents, 1,000 frameworks and 10,000 grants; smaller cycles have their part of it."""

_DECISIONS: Final = 30_000
"""Measured at once."""

_DECISIONS_PER_MS: Final = 50
"""Of a policy to which time means something: as fast as its target asks for."""

_SHAPES: Final = ((1_000, 50), (1_000, 200), (5_000, 200), (10_000, 200), (10_000, 1_000))
"""Agents and frameworks of the measured cycles."""

_SCALES: Final = {"full": ((100, 1_000, 10_000, 100_000), 1.0), "quick": ((100, 1_000), 0.05)}
"""Numbers of accounts, and the part of each cycle's size that is measured."""


def measure(seed: int, scale: str) -> list[Row]:
    """All rows; ``scale`` is ``full`` or ``quick`` (smaller shapes, for a first look and for tests).

    Raises:
        ValueError: the scale is neither.
    """
    check_scale(scale)
    accounts, part = _SCALES[scale]
    rows = [_decision_row("decision", seed, count, _policy_decisions, "< 6") for count in accounts]
    count = min(1_000, accounts[-1])
    rows.append(_decision_row("decision by bbf", seed, count, _bottleneck_decisions, "< 20"))
    rows += [
        _cycle_row(seed, round(agents * part), round(frameworks * part)) for agents, frameworks in _SHAPES
    ]
    rows.append(_churn_row(seed, round(10_000 * part), round(1_000 * part)))
    rows.append(_idle_row(seed, round(10_000 * part)))
    rows += [_packing_row(seed, placement, round(1_000 * part)) for placement in NAMES]
    return rows


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of this process that a call takes, without collections of garbage in between."""
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.enable()


def _decision_row(name: str, seed: int, accounts: int, make: _Make, target: str) -> Row:
    """One decision: the first account, charged a unit, so that its key is computed and its place found again."""
    return Row(
        f"{name}, {accounts} accounts",
        _decision_us(seed, accounts, make),
        "us",
        target,
        floor=_decision_us(seed, accounts, _bare_decisions),
    )


def _decision_us(seed: int, accounts: int, make: _Make) -> float:
    population = _accounts(seed, accounts)
    return min(cpu_seconds(make(*population)) for _ in range(5)) * 1e6 / _DECISIONS


def _accounts(seed: int, accounts: int) -> tuple[Vector, list[Vector], list[Weight]]:
    rng = random.Random(seed)
    capacity = (accounts * 64_000, accounts * 256 * _GIB, 0, 0)
    units: list[Vector] = [
        (rng.randrange(250, 8_000), rng.randrange(64, 8_192) * _MIB, 0, 0) for _ in range(accounts)
    ]
    return capacity, units, [Weight(rng.choice((0.5, 1.0, 2.0))) for _ in range(accounts)]


def _policy_decisions(capacity: Vector, units: list[Vector], weights: list[Weight]) -> Callable[[], None]:
    policy = DominantResourceFairness()
    policy.set_capacity(capacity, 0)
    names = [str(number) for number in range(len(units))]
    unit_of = dict(zip(names, units, strict=True))
    for name, weight in zip(names, weights, strict=True):
        policy.add(name, weight, _KINDS.zero, 0)
        policy.charge(name, unit_of[name], 1)
        policy.activate(name)

    def decide() -> None:
        for _ in range(_DECISIONS):
            name = policy.first()
            if name is not None:
                policy.charge(name, unit_of[name], 1)

    return decide


def _bare_decisions(capacity: Vector, units: list[Vector], weights: list[Weight]) -> Callable[[], None]:
    """The floor: one ``heapreplace`` of a tuple, and the share of two resources written out in place."""
    cpus, mem = capacity[0], capacity[1]
    by = [(cpus * weight.default, mem * weight.default) for weight in weights]
    used = [[unit[0], unit[1]] for unit in units]
    heap = [(max(u[0] / c, u[1] / m), i) for i, (u, (c, m)) in enumerate(zip(units, by, strict=True))]
    heapify(heap)

    def decide() -> None:
        for _ in range(_DECISIONS):
            _, index = heap[0]
            held = used[index]
            unit = units[index]
            held[0] += unit[0]
            held[1] += unit[1]
            per_cpus, per_mem = by[index]
            by_cpus = held[0] / per_cpus
            by_mem = held[1] / per_mem
            heapreplace(heap, (by_cpus if by_cpus > by_mem else by_mem, index))  # noqa: FURB136 - a call would be half of the floor

    return decide


def _bottleneck_decisions(capacity: Vector, units: list[Vector], weights: list[Weight]) -> Callable[[], None]:
    """For bottleneck-based fairness, while time passes, both resources fill up and an interval ends."""
    policy = BottleneckFairness()
    began_ms = policy.interval_ms // 2
    policy.set_capacity(capacity, 0)
    names = [str(number) for number in range(len(units))]
    unit_of = dict(zip(names, units, strict=True))
    for name, weight in zip(names, weights, strict=True):
        policy.add(name, weight, _KINDS.zero, 0)
        policy.set_wish(name, unit_of[name])
        policy.activate(name)

    def decide() -> None:
        for number in range(_DECISIONS):
            if number % _DECISIONS_PER_MS == 0:
                policy.advance(began_ms + number // _DECISIONS_PER_MS)
            name = policy.first()
            if name is not None:
                policy.charge(name, unit_of[name], 1)

    return decide


def _cycle_target(units: int) -> str:
    return f"< {_CYCLE_TARGET_MS * units / 10_000:g}"


def _cycle_row(seed: int, agents: int, frameworks: int) -> Row:
    """A cycle in which every agent has room for one task and every framework wants its part of them."""
    grants = 0
    best = float("inf")
    for _ in range(3):
        allocator = _steady_cluster(seed, agents, frameworks)
        allocator.role_report()  # The agents came long ago: their sum is known before the cycle begins.
        before = allocator.counters.decisions
        best = min(best, cpu_seconds(lambda: _cycle_to_the_end(allocator)))  # noqa: B023 - called at once
        grants = allocator.counters.decisions - before
    name = f"cycle, {agents} agents x {frameworks} frameworks, {grants} units"
    floor_ms = _decision_us(seed, frameworks, _bare_decisions) * grants / 1e3
    return Row(name, best * 1e3, "ms", _cycle_target(grants), floor=floor_ms)


def _cycle_to_the_end(allocator: Allocator, now_ms: int = 0) -> list[Grant]:
    """All grants of a cycle, however often it is cut short."""
    grants = allocator.cycle(now_ms)
    while allocator.is_cut_short:
        grants += allocator.cycle(now_ms)
    return grants


def _steady_cluster(seed: int, agents: int, frameworks: int, kinds_of_task: int = 100) -> Allocator:
    rng = random.Random(seed)
    allocator = Allocator(_KINDS, AllocationSettings())
    holder = FrameworkId("holder")
    allocator.add_framework(holder, Role("holder"))
    for number in range(agents):
        agent_id = AgentId(f"a{number}")
        allocator.add_agent(agent_id, (24_000, 4 * _GIB, 4 * _GIB, 0), {})
        allocator.set_agent_active(agent_id, True)
        allocator.charge(holder, agent_id, (16_000, 2_014 * _MIB, 1_024 * _MIB, 0))
    units = [
        (rng.randrange(4_001, 8_000, 250), rng.randrange(256, 2_048) * _MIB, 0, 0)
        for _ in range(kinds_of_task)
    ]
    for number in range(frameworks):
        _add_framework(allocator, number, units[number % kinds_of_task], agents // frameworks)
    return allocator


def _add_framework(allocator: Allocator, number: int, unit: Vector, units: int) -> None:
    framework_id = FrameworkId(f"f{number}")
    allocator.add_framework(framework_id, Role(f"r{number}"))
    allocator.set_demand(framework_id, [DemandClass(class_id=_TASKS, unit=unit, units=units)], 0)


def _churn_row(seed: int, agents: int, frameworks: int) -> Row:
    """A cycle on a full mixed cluster of which so many tasks ended that about as many units as agents are granted."""
    rng = random.Random(seed)
    allocator = _mixed_cluster(seed, "align", agents, frameworks)
    tasks = _fill(allocator)
    best = float("inf")
    units = 0
    for now_ms in range(1, 4):
        rng.shuffle(tasks)
        for framework_id, agent_id, unit in tasks[:agents]:
            allocator.release(framework_id, agent_id, unit)
        del tasks[:agents]
        before = allocator.counters.decisions
        grants: list[Grant] = []
        best_of_this = cpu_seconds(lambda: grants.extend(_cycle_to_the_end(allocator, now_ms)))  # noqa: B023 - called at once
        granted = allocator.counters.decisions - before
        if granted and best_of_this / granted < best:
            best, units = best_of_this / granted, granted
        tasks += _launch(allocator, grants)
    name = f"cycle on a full cluster, {agents} agents x {frameworks} frameworks, {units} units"
    floor_ms = _decision_us(seed, frameworks, _bare_decisions) * units / 1e3
    return Row(name, best * units * 1e3, "ms", _cycle_target(units), floor=floor_ms)


def _idle_row(seed: int, agents: int) -> Row:
    """Agents examined and accounts looked at by a cycle before which nothing happened: none."""
    allocator = _mixed_cluster(seed, "align", agents, 100)
    allocator.cycle(0)
    while allocator.needs_cycle:
        allocator.cycle(0)
    before = (allocator.counters.agents_examined, allocator.counters.decisions, allocator.counters.cycles)
    allocator.cycle(1)
    after = (allocator.counters.agents_examined, allocator.counters.decisions, allocator.counters.cycles)
    work = sum(after) - sum(before)
    return Row(f"idle cycle, {agents} agents, work counted", work, "steps", "< 1")


def _packing_row(seed: int, placement: str, agents: int) -> Row:
    """How much of the scarcest resource is in use once nothing that is wanted fits any more."""
    allocator = _mixed_cluster(seed, placement, agents, agents)
    _fill(allocator)
    capacity = allocator.capacity
    charged = [sum(column) for column in zip(*(row.charged for row in allocator.role_report()), strict=True)]
    used = max(held / total for held, total in zip(charged, capacity, strict=True) if total)
    target = ">= 0.93" if placement == "align" else ""
    return Row(f"scarcest resource used, {placement}, {agents} agents", used, "share", target)


def _mixed_cluster(
    seed: int, placement: str, agents: int, frameworks: int, kinds_of_task: int = 100
) -> Allocator:
    """Four types of machine, a hundred kinds of task from a quarter core to eight with log-normal memory and disk."""
    rng = random.Random(seed)
    machines = (
        (16_000, 64 * _GIB, 500 * _GIB, 0),
        (32_000, 128 * _GIB, 1_000 * _GIB, 0),
        (48_000, 384 * _GIB, 1_000 * _GIB, 0),
        (64_000, 256 * _GIB, 2_000 * _GIB, 0),
    )
    allocator = Allocator(_KINDS, AllocationSettings(placement=placement))
    for number in range(agents):
        allocator.add_agent(AgentId(f"a{number}"), rng.choice(machines), {})
        allocator.set_agent_active(AgentId(f"a{number}"), True)
    units = []
    for _ in range(kinds_of_task):
        cpus = rng.choice((250, 500, 1_000, 2_000, 4_000, 8_000))
        mem = round(cpus / 1_000 * 4.5 * _GIB * rng.lognormvariate(0, 0.8))
        disk = round(cpus / 1_000 * 20 * _GIB * rng.lognormvariate(0, 0.8))
        units.append((cpus, min(mem, 60 * _GIB), min(disk, 450 * _GIB), 0))
    for number in range(frameworks):
        allocator.set_weight(Role(f"r{number}"), Weight(rng.choice((0.5, 1.0, 2.0))))
        _add_framework(allocator, number, units[number % kinds_of_task], 1_000_000)
    return allocator


def _fill(allocator: Allocator) -> list[Task]:
    """Launch until nothing fits; gives the tasks."""
    tasks: list[Task] = []
    while allocator.needs_cycle:
        tasks += _launch(allocator, allocator.cycle(0))
    return tasks


def _launch(allocator: Allocator, grants: list[Grant]) -> list[Task]:
    """Take every offer with tasks of its unit."""
    for grant in grants:
        launched = [grant.unit] * grant.units
        allocator.settle(
            grant.framework_id, grant.agent_id, grant.class_id, grant.unit, grant.units, launched
        )
    return [(grant.framework_id, grant.agent_id, grant.unit) for grant in grants for _ in range(grant.units)]
