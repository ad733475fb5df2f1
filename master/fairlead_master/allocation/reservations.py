"""Keeps an agent for a unit that has been passed over too long, so that small units cannot starve a large one.

Under ``skip`` whoever does not fit is passed over. From time to time the first role in the policy's order that is passed
over is looked up and a clock is started for its first wanted class; a clock that runs for ``reservation_after_ms`` without
a unit of that class being granted gets an agent: eligible, large enough when empty, with the smallest relative shortfall,
ties to the agent added first. Nobody else is given anything there until the unit fits, is served elsewhere, or is
wanted no more. Not decided here: what happens on the agent once the unit fits; the cycle serves it first of all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fairlead_master.allocation.accounts import Demand, Framework, RoleAccount
from fairlead_master.allocation.agents import Agent, Fit
from fairlead_master.allocation.feasibility import shortfall
from fairlead_master.allocation.hierarchy import Hierarchy
from fairlead_master.allocation.search import AgentSearch
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role

AGENTS_PER_RESERVATION: Final = 10
"""At most one agent in ten is reserved (one at least): a reserved agent stands partly empty, and a cluster in which more
stood so would lose more to waiting than the large units are worth."""

LOOKS_PER_WAIT: Final = 8
"""How often in the time of a reservation the first passed-over role is looked up. It costs a pass over all roles; the wait
is late by at most this part of itself."""

CLASSES_LOOKED_AT: Final = 16
"""Of those no agent could hold, how many a look passes before it gives up. Demand like that is refused when it is declared,
so it is rare: its agents have left since."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """An agent kept for one class of one framework."""

    framework_id: FrameworkId
    class_id: ClassId
    agent_id: AgentId


class Reservations:
    """The clocks of who is passed over and the agents kept for them: at most one of each for a role."""

    def __init__(self, hierarchy: Hierarchy, agents: dict[AgentId, Agent]) -> None:
        self.held: dict[Role, Reservation] = {}
        """In the order in which they were made."""
        self._hierarchy = hierarchy
        self._agents = agents
        self._clocks: dict[Role, tuple[FrameworkId, ClassId]] = {}
        self._next_look_ms: int | None = None
        self._due_ms: int | None = None

    def clear(self, search: AgentSearch) -> None:
        """End all reservations and stop all clocks."""
        for role in list(self.held):
            self.cancel(role, search)
        for framework_id, class_id in self._clocks.values():
            demand = self._demand(framework_id, class_id)
            if demand is not None:
                demand.unfit_since_ms = None
        self._clocks = {}
        self._next_look_ms = self._due_ms = None

    def cancel(self, role: Role, search: AgentSearch) -> None:
        """The role's agent is for everyone again."""
        agent = self._agents.get(self.held.pop(role).agent_id)
        if agent is not None:
            agent.reserved_for = None
            search.gained(agent)

    def cancel_void(self, search: AgentSearch) -> bool:
        """End reservations whose unit is wanted no more, was served, or cannot have its agent; whether there were any."""
        void = [role for role in self.held if not self._is_valid(role)]
        for role in void:
            self.cancel(role, search)
        return bool(void)

    def ready(self, fit: Fit) -> Iterator[tuple[Role, Framework, Demand, Agent]]:
        """Reservations whose unit fits on its agent now, the oldest first. They are valid."""
        for role, reservation in list(self.held.items()):
            framework = self._hierarchy.frameworks[reservation.framework_id]
            demand = framework.demands[reservation.class_id]
            agent = self._agents[reservation.agent_id]
            if fit.fits_now(agent, demand.shape.unit):
                yield role, framework, demand, agent

    def next_ms(self) -> int | None:
        """When the next clock falls due; None if none will. It may be too early, which costs one look, never too late."""
        return self._due_ms

    def look(self, now_ms: int, after_ms: int, fit: Fit, search: AgentSearch) -> None:
        """After a cycle that served all that fits: start a clock for who is passed over, reserve for whose is due."""
        is_due = self._due_ms is not None and self._due_ms <= now_ms
        if not is_due and self._next_look_ms is not None and now_ms < self._next_look_ms:
            return
        self._next_look_ms = now_ms + max(1, after_ms // LOOKS_PER_WAIT)
        self._clocks = {
            role: clock for role, clock in self._clocks.items() if self._since_ms(*clock) is not None
        }
        self._start_clock(now_ms)
        self._due_ms = None
        for role, (framework_id, class_id) in self._clocks.items():
            since_ms = self._since_ms(framework_id, class_id)
            if role in self.held or since_ms is None:
                continue
            if since_ms + after_ms <= now_ms:
                # If no agent can be had, the next look tries again; a deadline in the past would only spin.
                self._reserve(role, self._hierarchy.frameworks[framework_id], class_id, fit, search)
            elif self._due_ms is None or since_ms + after_ms < self._due_ms:
                self._due_ms = since_ms + after_ms

    def _since_ms(self, framework_id: FrameworkId, class_id: ClassId) -> int | None:
        """Since when the class has been passed over; None if it was served or is wanted no more."""
        demand = self._demand(framework_id, class_id)
        return demand.unfit_since_ms if demand is not None and demand.wants else None

    def _demand(self, framework_id: FrameworkId, class_id: ClassId) -> Demand | None:
        framework = self._hierarchy.frameworks.get(framework_id)
        return framework.demands.get(class_id) if framework is not None else None

    def _is_valid(self, role: Role) -> bool:
        reservation = self.held[role]
        demand = self._demand(reservation.framework_id, reservation.class_id)
        agent = self._agents.get(reservation.agent_id)
        if demand is None or agent is None or not demand.wants or demand.unfit_since_ms is None:
            return False
        return _may_hold(agent, demand)

    def _start_clock(self, now_ms: int) -> None:
        """For the first class in order that some agent could hold, unless a clock of its role runs already."""
        looked_at = 0
        for role in self._hierarchy.order():
            if role.role in self.held:
                continue
            for demand in _wanted(role, self._hierarchy):
                if any(_may_hold(agent, demand) for agent in self._agents.values()):
                    if role.role not in self._clocks:
                        demand.unfit_since_ms = now_ms
                        self._clocks[role.role] = (demand.framework_id, demand.class_id)
                    return
                looked_at += 1
                if looked_at == CLASSES_LOOKED_AT:
                    return

    def _reserve(
        self, role: Role, framework: Framework, class_id: ClassId, fit: Fit, search: AgentSearch
    ) -> None:
        if len(self.held) >= max(1, len(self._agents) // AGENTS_PER_RESERVATION):
            return
        demand = framework.demands[class_id]
        need = fit.view(demand.shape.unit)
        able = [a for a in self._agents.values() if a.reserved_for is None and _may_hold(a, demand)]
        agent = min(able, key=lambda agent: shortfall(need, fit.available(agent)), default=None)
        if agent is not None:
            self.held[role] = Reservation(framework.framework_id, class_id, agent.agent_id)
            agent.reserved_for = (framework.framework_id, class_id)
            search.shrank(agent)


def _may_hold(agent: Agent, demand: Demand) -> bool:
    """Whether a unit might go to the agent if it were empty."""
    return agent.agent_id not in demand.declined and agent.could_hold(*demand.shape.key)


def _wanted(role: RoleAccount, hierarchy: Hierarchy) -> Iterator[Demand]:
    """Demands of the role that want something, in the order in which they would be served."""
    for framework in hierarchy.order_within(role):
        if framework.wanting:
            yield from (demand for demand in framework.demands.values() if demand.wants)
