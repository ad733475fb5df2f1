"""An allocator with its facts in few words."""

from collections.abc import Mapping, Sequence

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import AllocationSettings, Grant
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.tasks import Constraint, DemandClass

KINDS = ResourceKinds()
TASKS = ClassId("tasks")


def cpus_and_mem(cpus: float, gib: float) -> Vector:
    return (round(cpus * 1000), round(gib * 2**30), 0, 0)


def an_allocator(
    *,
    policy: str = "drf",
    placement: str = "align",
    head: str = "skip",
    reservation_after_ms: int = 10_000,
    looks_per_cycle_max: int = 1_000,
    units_per_grant_max: int = 1_000,
) -> Allocator:
    settings = AllocationSettings(
        policy=policy,
        placement=placement,
        when_head_does_not_fit=head,
        reservation_after_ms=reservation_after_ms,
        looks_per_cycle_max=looks_per_cycle_max,
        units_per_grant_max=units_per_grant_max,
    )
    return Allocator(KINDS, settings)


def add_agent(
    allocator: Allocator,
    name: str,
    total: Vector,
    attributes: Mapping[str, str] | None = None,
    *,
    active: bool = True,
) -> AgentId:
    allocator.add_agent(AgentId(name), total, attributes or {})
    allocator.set_agent_active(AgentId(name), active)
    return AgentId(name)


def add_framework(
    allocator: Allocator,
    name: str,
    unit: Vector | None = None,
    units: int = 1_000,
    *,
    role: str | None = None,
    constraints: tuple[Constraint, ...] = (),
) -> FrameworkId:
    """A framework in a role of its own name that wants ``units`` of one class, or nothing."""
    framework_id = FrameworkId(name)
    allocator.add_framework(framework_id, Role(role or name))
    if unit is not None:
        want(allocator, framework_id, unit, units, constraints=constraints)
    return framework_id


def want(
    allocator: Allocator,
    framework_id: FrameworkId,
    unit: Vector,
    units: int,
    *,
    constraints: tuple[Constraint, ...] = (),
    now_ms: int = 0,
) -> None:
    demand = DemandClass(class_id=TASKS, unit=unit, units=units, constraints=constraints)
    allocator.set_demand(framework_id, [demand], now_ms)


def served(allocator: Allocator) -> list[str]:
    """Who got the units of the last cycle, in order."""
    return [framework_id for framework_id, _, _ in allocator.last_steps()]


def units_of(grants: Sequence[Grant]) -> dict[str, int]:
    units: dict[str, int] = {}
    for grant in grants:
        units[grant.framework_id] = units.get(grant.framework_id, 0) + grant.units
    return units


def launch(allocator: Allocator, grant: Grant) -> None:
    """The framework takes the whole offer with tasks of exactly its unit."""
    tasks = [grant.unit] * grant.units
    allocator.settle(grant.framework_id, grant.agent_id, grant.class_id, grant.unit, grant.units, tasks)


def take_back(allocator: Allocator, grant: Grant) -> None:
    allocator.take_back(grant.framework_id, grant.agent_id, grant.class_id, grant.unit, grant.units)
