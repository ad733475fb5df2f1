"""Whether a unit could ever run on the agents there are, and if not, how far the best of them is from it."""

from collections.abc import Collection
from typing import Final

from fairlead_master.allocation.accounts import Demand, Framework
from fairlead_master.allocation.agents import CONSTRAINT_EFFORT, Agent
from fairlead_master.allocation.api import Counters, Infeasibility
from fairlead_proto.resources import Vector, fits, missing
from fairlead_proto.tasks import Constraint


def shortfall(need: Vector, free: Vector) -> float:
    """The largest part of a need that is not there: 0 if all is, 1 if something needed is not there at all."""
    return max(
        (lack / want for lack, want in zip(missing(need, free), need, strict=True) if lack), default=0.0
    )


SHORTFALL_EFFORT: Final = 20
"""What it takes to find out how near an agent is to a unit, in looks at one column of it."""

ASKED_MAX: Final = 150_000
"""Looks at columns of agents to find out which of them could hold a unit: some 15 ms. Five thousand agents are asked for one
constraint and compared by how near they are; who needs more of them makes do with the first."""


class Asking:
    """Counts what it takes to ask agents whether they could hold a unit if they were empty."""

    def __init__(self) -> None:
        self.left = ASKED_MAX
        """Looks at columns of agents; nobody is asked any more once it is not above zero."""

    def may_ask(self, agent: Agent, constraints: tuple[Constraint, ...]) -> bool:
        """Whether one agent more may be asked, which is counted."""
        if self.left <= 0:
            return False
        self.left -= CONSTRAINT_EFFORT + agent.effort(constraints)
        return True


def find_infeasibility(
    agents: Collection[Agent],
    unit: Vector,
    constraints: tuple[Constraint, ...],
    counters: Counters,
    asked_max: int | None = None,
) -> Infeasibility | None:
    """Why no agent, were it empty, could hold the unit.

    None if some could, if there is no agent to ask, or if ``counters.agents_asked`` reached ``asked_max`` before that was known.
    """
    most = 2**63 if asked_max is None else asked_max
    for agent in agents:
        if counters.agents_asked >= most:
            return None
        counters.agents_asked += CONSTRAINT_EFFORT
        if fits(unit, agent.total):
            counters.agents_asked += agent.effort(constraints)
            if agent.meets(constraints):
                return None
    return _diagnose(agents, unit, constraints, counters, most)


def _diagnose(
    agents: Collection[Agent],
    unit: Vector,
    constraints: tuple[Constraint, ...],
    counters: Counters,
    most: int,
) -> Infeasibility | None:
    """No agent could hold it: which is nearest, of those that are asked."""
    matching = []
    fits_without_constraints = False
    for agent in agents:
        if counters.agents_asked >= most:
            break
        counters.agents_asked += SHORTFALL_EFFORT + agent.effort(constraints)
        if fits(unit, agent.total):
            fits_without_constraints = True  # It does not meet them, or it would have been found.
        elif agent.meets(constraints):
            matching.append(agent)
    if not agents or (not matching and counters.agents_asked >= most):
        return None
    # Ties go to the agent that was added first.
    best = min(matching, key=lambda agent: shortfall(unit, agent.total), default=None)
    return Infeasibility(
        agents=len(agents),
        agents_matching=len(matching),
        fits_without_constraints=fits_without_constraints,
        best_agent_id=best.agent_id if best is not None else None,
        best_total=best.total if best is not None else None,
        missing=missing(unit, best.total) if best is not None else unit,
    )


def worth_waiting_for(framework: Framework, agents: Collection[Agent]) -> Demand | None:
    """The class for which all others wait, where the head freezes, if its framework is first and finds no agent; or None.

    Nobody waits for what no active agent could ever hold, as far as that is found out with so many looks: it would stop the
    cluster for good. Nor for a class whose framework declines agents, which would let one framework stop all others.
    """
    asking = Asking()
    for demand in framework.demands.values():
        if (
            demand.wants
            and not demand.declined
            and any(
                asking.may_ask(agent, demand.shape.constraints) and agent.could_hold(*demand.shape.key)
                for agent in agents
            )
        ):
            return demand
    return None
