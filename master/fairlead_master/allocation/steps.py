"""From the units a cycle served, one at a time, to grants and books."""

from collections.abc import Sequence
from operator import add

from fairlead_master.allocation.accounts import Demand, Framework
from fairlead_master.allocation.agents import Agent
from fairlead_master.allocation.api import Grant
from fairlead_proto.resources import scale

Step = tuple[Framework, Demand, int, float, float]
"""One unit served: who, which class, the agent's index, the role's key before and after."""

Row = tuple[Framework, Demand, int, int, float, float]
"""The same for several units: their number stands after the agent's index."""


def merge(steps: Sequence[Step], units_max: int) -> list[Row]:
    """Units of one class on one agent together, up to ``units_max``, each row at the place of its first unit."""
    open_rows: dict[tuple[Demand, int], int] = {}
    rows: list[Row] = []
    for framework, demand, index, before, after in steps:
        place = open_rows.setdefault((demand, index), len(rows))
        if place == len(rows):
            rows.append((framework, demand, index, 1, before, after))
            continue
        _, _, _, units, first, _ = rows[place]
        if units < units_max:
            rows[place] = (framework, demand, index, units + 1, first, after)
        else:
            open_rows[demand, index] = len(rows)
            rows.append((framework, demand, index, 1, before, after))
    return rows


def book(rows: Sequence[Row], by_index: Sequence[Agent]) -> list[Grant]:
    """Write the rows into the books of their frameworks and agents; the policies and the search know them already."""
    grants = []
    units_of: dict[Demand, int] = {}
    for framework, demand, index, units, before, after in rows:
        agent = by_index[index]
        unit = demand.shape.unit
        agent.charged = tuple(map(add, agent.charged, unit if units == 1 else scale(unit, units)))
        agent.tasks += units
        units_of[demand] = units_of.get(demand, 0) + units
        role = framework.role.role
        grants.append(
            Grant(framework.framework_id, role, agent.agent_id, demand.class_id, unit, units, before, after)
        )
    _book_frameworks({row[1]: row[0] for row in rows}, units_of)
    return grants


def _book_frameworks(framework_of: dict[Demand, Framework], units_of: dict[Demand, int]) -> None:
    """Once for each demand and not for each grant, since a framework that got much got much of the same."""
    for demand, units in units_of.items():
        framework = framework_of[demand]
        framework.charged = tuple(map(add, framework.charged, scale(demand.shape.unit, units)))
        framework.units += units
        framework.offered[demand.class_id] = framework.offered.get(demand.class_id, 0) + units
