"""Serves units one at a time in the policy's order, until nothing that is wanted fits or the cycle has done enough.

A cycle that is cut short leaves everything as it is: who sleeps, which shapes are parked and what their windows hold. As long as no
agent gains, free parts only shrink, and the next cycle goes on as if there had been no border.
"""

from collections.abc import Mapping
from enum import Enum, unique
from typing import Final

from fairlead_master.allocation.agents import Agent
from fairlead_master.allocation.api import AllocationSettings, Counters
from fairlead_master.allocation.candidates import CUT_SHORT
from fairlead_master.allocation.demands import DemandBoard
from fairlead_master.allocation.feasibility import worth_waiting_for
from fairlead_master.allocation.hierarchy import Hierarchy
from fairlead_master.allocation.reservations import Reservations
from fairlead_master.allocation.search import AgentSearch
from fairlead_master.allocation.steps import Step
from fairlead_proto.ids import AgentId

CONFIRMED_LOOKS: Final = 5
"""What it takes to find out whether a member of a group is still next when all count for the unit, and to count them again
once it is served, in looks: where frameworks share a role a unit costs some 40 µs more."""

SLEEP_EFFORT: Final = 2
"""What it takes to note under one more class that a framework sleeps over it, in looks at one column of an agent."""


@unique
class End(Enum):
    """Why no more is served."""

    COMPLETE = "COMPLETE"
    """Nothing more that is wanted fits."""
    FROZEN = "FROZEN"
    """The head does not fit, and all wait for it."""
    CUT_SHORT = "CUT_SHORT"
    """The cycle has done enough for now."""


class Bounds:
    """How far the work counters may go in the cycle that begins now: after all of the looks half of the agents may be examined."""

    def __init__(self, counters: Counters, settings: AllocationSettings) -> None:
        self.counters = counters
        self.first_look = counters.looks
        self.looks_max = counters.looks + settings.looks_per_cycle_max
        self.look_effort = settings.agents_examined_per_cycle_max / settings.looks_per_cycle_max / 2
        """What a look counts for, in agents examined."""
        self.effort_max = self.effort + settings.agents_examined_per_cycle_max
        self.freezes = settings.when_head_does_not_fit == "freeze"

    @property
    def examined_max(self) -> float:
        """How far agents examined may go, as many looks as there were by now."""
        return self.effort_max - self.look_effort * self.counters.looks

    @property
    def effort(self) -> float:
        """What has been done since the allocator was made."""
        return self.counters.agents_examined + self.look_effort * self.counters.looks


def serve_reserved(
    search: AgentSearch,
    hierarchy: Hierarchy,
    demands: DemandBoard,
    reservations: Reservations,
    steps: list[Step],
) -> None:
    """Units that were passed over too long come before all others once they fit where an agent is kept for them."""
    for role, framework, demand, agent in reservations.ready(search.fit):
        reservations.cancel(role, search)
        search.take(demand.shape, agent.index)
        demands.granted(framework, demand)
        keys = hierarchy.serve(framework, demand.shape.unit)
        steps.append((framework, demand, agent.index, *keys))


def serve(
    search: AgentSearch,
    hierarchy: Hierarchy,
    demands: DemandBoard,
    agents: Mapping[AgentId, Agent],
    steps: list[Step],
    bounds: Bounds,
) -> End:
    """Serve units, adding each to ``steps``, until the end this gives."""
    counters, freezes, must_confirm = bounds.counters, bounds.freezes, hierarchy.must_confirm
    looks_max, look_effort, effort_max = bounds.looks_max, bounds.look_effort, bounds.effort_max
    while search.live_count:
        looks = counters.looks
        # Not before the first look, so that every cycle comes further whatever it has cost to open it.
        if looks >= looks_max or (
            counters.agents_examined + look_effort * looks >= effort_max and looks > bounds.first_look
        ):
            return End.CUT_SHORT
        framework = hierarchy.first()
        assert framework is not None, "a class is wanted and might fit, but every framework sleeps"
        demand = demands.next_of(framework)
        if demand is None:
            head = worth_waiting_for(framework, agents.values()) if freezes else None
            if head is None:
                counters.looks += 1
                counters.agents_examined += SLEEP_EFFORT * (len(framework.demands) - 1)
                demands.put_to_sleep(framework)
            elif not must_confirm or hierarchy.confirm(framework, head.shape):
                return End.FROZEN
            continue
        shape = demand.shape
        # Groups are confirmed for a unit that fits: for another class of a member they may count for less.
        is_confirmed = not must_confirm or framework.role.only is not None
        index = search.place(shape, takes=is_confirmed)
        if index == CUT_SHORT:
            return End.CUT_SHORT
        if index < 0:  # The shape is parked now, and the next class of its framework is looked at.
            counters.looks += 1
            hierarchy.unpin(shape)
            continue
        if not is_confirmed:
            if not hierarchy.confirm(framework, shape):
                continue
            index = search.place(shape)
            counters.looks += CONFIRMED_LOOKS
        counters.looks += 1
        demands.granted(framework, demand)
        before, after = hierarchy.serve(framework, shape.unit)
        steps.append((framework, demand, index, before, after))
        if search.is_spent and search.live_count:
            hierarchy.first()  # As if they were tried one by one: some policies look at their keys when they are asked.
            for each in search.park_woken():
                hierarchy.unpin(each)
    return End.COMPLETE
