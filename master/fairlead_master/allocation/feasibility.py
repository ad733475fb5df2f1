"""Whether a unit could ever run on the agents there are, and if not, how far the best of them is from it."""

from collections.abc import Collection, Iterable
from typing import Final

from fairlead_master.allocation.accounts import Demand, Framework
from fairlead_master.allocation.agents import Agent
from fairlead_master.allocation.api import Counters, Infeasibility
from fairlead_proto.resources import Vector, fits, missing
from fairlead_proto.tasks import Constraint


def shortfall(need: Vector, free: Vector) -> float:
    """The largest part of a need that is not there: 0 if all is, 1 if something needed is not there at all."""
    return max(
        (lack / want for lack, want in zip(missing(need, free), need, strict=True) if lack), default=0.0
    )


DIAGNOSIS_LOOKS: Final = 10
"""What it takes to find out how near an agent is to a unit, in looks at whether it could hold it."""


def find_infeasibility(
    agents: Iterable[Agent], unit: Vector, constraints: tuple[Constraint, ...], counters: Counters
) -> Infeasibility | None:
    """None if some agent, were it empty, could hold the unit, or if there is no agent to ask; else why none can."""
    all_agents = list(agents)
    for number, agent in enumerate(all_agents, start=1):
        if fits(unit, agent.total) and agent.meets(constraints):
            counters.agents_asked += number * (1 + len(constraints))
            return None
    counters.agents_asked += len(all_agents) * (1 + len(constraints) + DIAGNOSIS_LOOKS)
    return _diagnose(all_agents, unit, constraints)


def _diagnose(
    all_agents: list[Agent], unit: Vector, constraints: tuple[Constraint, ...]
) -> Infeasibility | None:
    matching = []
    fits_without_constraints = False
    for agent in all_agents:
        if fits(unit, agent.total):
            fits_without_constraints = True  # It does not meet them, or it would have been found.
        elif agent.meets(constraints):
            matching.append(agent)
    if not all_agents:
        return None
    # Ties go to the agent that was added first.
    best = min(matching, key=lambda agent: shortfall(unit, agent.total), default=None)
    return Infeasibility(
        agents=len(all_agents),
        agents_matching=len(matching),
        fits_without_constraints=fits_without_constraints,
        best_agent_id=best.agent_id if best is not None else None,
        best_total=best.total if best is not None else None,
        missing=missing(unit, best.total) if best is not None else unit,
    )


def worth_waiting_for(framework: Framework, agents: Collection[Agent]) -> Demand | None:
    """The class for which all others wait, where the head freezes, if its framework is first and finds no agent; or None.

    Nobody waits for what no active agent could ever hold, which would stop the cluster for good, nor for a class
    whose framework declines agents, which would let one framework stop all others.
    """
    for demand in framework.demands.values():
        if (
            demand.wants
            and not demand.declined
            and any(agent.could_hold(*demand.shape.key) for agent in agents)
        ):
            return demand
    return None
