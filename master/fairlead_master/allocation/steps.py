"""From the units a cycle served, one at a time, to grants and books."""

from collections.abc import Iterable
from operator import add

from fairlead_master.allocation.accounts import Demand, Framework
from fairlead_master.allocation.agents import Agent
from fairlead_master.allocation.api import Grant
from fairlead_proto.resources import scale

Step = tuple[Framework, Demand, int, float, float]
"""One unit served: who, which class, the agent's index, the role's key before and after."""


class GrantRow:
    """A grant in the making."""

    __slots__ = ("after", "before", "demand", "framework", "index", "units")

    def __init__(self, framework: Framework, demand: Demand, index: int, before: float) -> None:
        self.framework = framework
        self.demand = demand
        self.index = index
        self.units = 0
        self.before = before
        self.after = before


def merge(steps: Iterable[Step], units_max: int) -> list[GrantRow]:
    """Units of one class on one agent together, up to ``units_max``, each row at the place of its first unit."""
    open_rows: dict[tuple[Demand, int], GrantRow] = {}
    rows: list[GrantRow] = []
    for framework, demand, index, before, after in steps:
        row = open_rows.get((demand, index))
        if row is None or row.units >= units_max:
            open_rows[demand, index] = row = GrantRow(framework, demand, index, before)
            rows.append(row)
        row.units += 1
        row.after = after
    return rows


def book(row: GrantRow, agent: Agent) -> Grant:
    """Write the row into the books of its framework and agent; the policies and the search know it already."""
    framework, demand, units = row.framework, row.demand, row.units
    unit, class_id = demand.shape.unit, demand.class_id
    charge = unit if units == 1 else scale(unit, units)
    framework.charged = tuple(map(add, framework.charged, charge))
    framework.units += units
    framework.offered[class_id] = framework.offered.get(class_id, 0) + units
    agent.charged = tuple(map(add, agent.charged, charge))
    agent.tasks += units
    role = framework.role.role
    return Grant(framework.framework_id, role, agent.agent_id, class_id, unit, units, row.before, row.after)
