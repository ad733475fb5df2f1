"""Keeps an agent for a unit that has been passed over too long, so that small units cannot starve a large one.

Under ``skip`` a role whose unit does not fit is passed over. From time to time a timer, the *clock*, is started for the
first role in the policy's order that is passed over, for its first wanted class. When the timer has run long enough an
agent is reserved for the unit: eligible, large enough when empty, with the smallest relative shortfall, ties to the agent
added first. No other unit is placed there until the reserved one fits or is wanted no more, or the timer is stopped.

A timer runs only for a unit that somebody may be served before: a later class of its framework, a framework beside its own
or a role beside it or above, whose key is larger. Who holds no less than anybody waits because the cluster is full.

Long enough is ``reservation_after_ms``, or as long as reservations have stood of late if that is longer. An agent that is
emptied for a unit stands idle as long as the tasks on it take to end. Where they take hours, a reservation after ten
seconds costs more than it mends (docs/adr/0018-reservations-follow-who-is-behind.md has figures).

A grant to the class does not by itself stop its timer. A framework of large tasks gets its own places back whenever one of
its tasks ends, and is passed over everywhere else: if such a grant ended the wait, the framework would stay behind for ever.
A look stops the timer if, since the last look, no role behind its own in the policy's order got a unit, and the class did
or nobody is behind it.

Not decided here: what happens on the agent once the unit fits; the cycle serves that unit before all others.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from fairlead_master.allocation.accounts import Demand, Framework, RoleAccount
from fairlead_master.allocation.agents import Agent, Fit
from fairlead_master.allocation.feasibility import SHORTFALL_EFFORT, Asking, shortfall
from fairlead_master.allocation.hierarchy import Hierarchy
from fairlead_master.allocation.search import AgentSearch
from fairlead_master.allocation.steps import Step
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role

AGENTS_PER_RESERVATION: Final = 10
"""At most one agent in ten is reserved (one at least): a reserved agent stands partly empty, and a cluster in which more
stood so would lose more to waiting than the large units are worth."""

LOOKS_PER_WAIT: Final = 8
"""How often in the time of a reservation the first passed-over role is looked up. It costs a pass over all roles; the wait
is late by at most this part of itself."""

MEMORY: Final = 4
"""One part in so many of what is remembered of how long reservations stand is the last one. A single long one does not
decide, and few are needed to learn that tasks have become shorter."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """An agent kept for one class of one framework."""

    framework_id: FrameworkId
    class_id: ClassId
    agent_id: AgentId
    made_ms: int


@dataclass(slots=True)
class _Clock:
    """Since when a class has been behind."""

    framework_id: FrameworkId
    class_id: ClassId
    since_ms: int
    was_passed_over: bool = False
    """Since the last look, by a unit granted to a role behind this one."""


class Reservations:
    """The timers of roles that were skipped and the agents reserved for them: at most one of each for a role."""

    def __init__(self, hierarchy: Hierarchy, agents: dict[AgentId, Agent]) -> None:
        self.held: dict[Role, Reservation] = {}
        """In the order in which they were made."""
        self.now_ms = 0
        """When the last cycle was."""
        self._usual_ms = 0
        """How long reservations have stood of late, served or not."""
        self._hierarchy = hierarchy
        self._agents = agents
        self._clocks: dict[Role, _Clock] = {}
        self._next_look_ms: int | None = None
        self._due_ms: int | None = None

    def clear(self, search: AgentSearch) -> None:
        """End all reservations and stop all clocks."""
        for role in list(self.held):
            self.cancel(role, search)
        self._clocks = {}
        self._usual_ms = 0
        self._next_look_ms = self._due_ms = None

    def cancel(self, role: Role, search: AgentSearch) -> None:
        """The role's agent is for everyone again."""
        reservation = self.held.pop(role)
        stood_ms = self.now_ms - reservation.made_ms
        self._usual_ms += (stood_ms - self._usual_ms) // MEMORY
        agent = self._agents.get(reservation.agent_id)
        if agent is not None:
            agent.reserved_for = None
            search.gained(agent)

    def cancel_void(self, search: AgentSearch) -> bool:
        """End reservations whose unit is wanted no more or cannot have its agent; whether there were any."""
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

    def note(self, steps: Sequence[Step]) -> None:
        """After a cycle: mark the timers of roles that its grants passed over."""
        clocks = {role: clock for role, clock in self._clocks.items() if not clock.was_passed_over}
        if not clocks or not steps:
            return
        furthest = self._furthest_served(steps)
        for role, clock in clocks.items():
            account: RoleAccount | None = self._hierarchy.roles.get(role)
            while account is not None and not clock.was_passed_over:
                # Who is served only moves back within a cycle, so whoever is before this grant now was so when it was made.
                key = furthest.get(account.parent)
                clock.was_passed_over = key is not None and self._hierarchy.key(account.role) < key
                account = account.parent

    def look(self, after_ms: int, fit: Fit, search: AgentSearch) -> bool:
        """After a cycle that served all that fits: time the first role skipped, reserve an agent for each expired timer.

        Gives whether a reservation ended, so that more may fit.
        """
        now_ms = self.now_ms
        is_due = self._due_ms is not None and self._due_ms <= now_ms
        if not is_due and self._next_look_ms is not None and now_ms < self._next_look_ms:
            return False
        wait_ms = max(after_ms, self._usual_ms)
        self._next_look_ms = now_ms + max(1, wait_ms // LOOKS_PER_WAIT)
        is_behind = self._behind()
        self._clocks = {
            role: clock for role, clock in self._clocks.items() if self._goes_on(clock, is_behind)
        }
        is_any_free = self.cancel_void(search)
        # Classes no agent could hold are refused when they are declared, so they are rare: their agents have left since, or
        # somebody wants a thousand of them. One look asks no more agents for them than for others.
        asking = Asking()
        self._start_clock(now_ms, asking, is_behind)
        self._due_ms = None
        for role, clock in self._clocks.items():
            if role in self.held:
                continue
            if clock.since_ms + wait_ms <= now_ms:
                # If no agent can be had, the next look tries again; a deadline in the past would only spin.
                self._reserve(role, clock, fit, search, asking)
            elif self._due_ms is None or clock.since_ms + wait_ms < self._due_ms:
                self._due_ms = clock.since_ms + wait_ms
        return is_any_free

    def check(self) -> None:
        """Reservations and reserved agents are the same thing seen from two sides."""
        kept = {r.agent_id: (r.framework_id, r.class_id) for r in self.held.values()}
        marked = {
            agent.agent_id: agent.reserved_for
            for agent in self._agents.values()
            if agent.reserved_for is not None
        }
        assert kept == marked, f"reservations {kept}, agents {marked}"

    def _behind(self) -> Callable[[Demand], bool]:
        """Tells of demands whether others may be served first that do not come first in the policy's order."""
        is_framework_behind = self._hierarchy.behind()

        def is_behind(demand: Demand) -> bool:
            framework = self._hierarchy.frameworks[demand.framework_id]
            wanted = [other for other in framework.demands.values() if other.wants]
            return demand is not wanted[-1] or is_framework_behind(framework)

        return is_behind

    def _goes_on(self, clock: _Clock, is_behind: Callable[[Demand], bool]) -> bool:
        """Whether the clock still runs at this look; makes it ready for the next one."""
        demand = self._demand(clock.framework_id, clock.class_id)
        if demand is None or not demand.wants:
            return False
        if not clock.was_passed_over and not (demand.is_untouched and is_behind(demand)):
            return False
        demand.is_untouched, clock.was_passed_over = True, False
        return True

    def _furthest_served(self, steps: Sequence[Step]) -> dict[RoleAccount | None, float]:
        """Among the roles below each role, and at the top (None), the largest key at which one was given a unit."""
        furthest: dict[RoleAccount | None, float] = {}
        above: set[RoleAccount] = set()
        for framework, _, _, before, _ in steps:
            parent = framework.role.parent
            if before > furthest.get(parent, -inf):
                furthest[parent] = before
            if parent is not None:
                above.add(parent)
        for account in above:
            # Only the key after the cycle is known of who is above, which is more than it was by a task or two.
            upper: RoleAccount | None = account
            while upper is not None:
                key = self._hierarchy.key(upper.role)
                furthest[upper.parent] = max(key, furthest.get(upper.parent, -inf))
                upper = upper.parent
        return furthest

    def _demand(self, framework_id: FrameworkId, class_id: ClassId) -> Demand | None:
        framework = self._hierarchy.frameworks.get(framework_id)
        return framework.demands.get(class_id) if framework is not None else None

    def _is_valid(self, role: Role) -> bool:
        reservation = self.held[role]
        demand = self._demand(reservation.framework_id, reservation.class_id)
        agent = self._agents.get(reservation.agent_id)
        if demand is None or agent is None or not demand.wants or role not in self._clocks:
            return False
        return _may_hold(agent, demand)

    def _start_clock(self, now_ms: int, asking: Asking, is_behind: Callable[[Demand], bool]) -> None:
        """For the first class in order that some agent could hold, unless a clock of its role runs already."""
        for role in self._hierarchy.order():
            if role.role in self.held:
                continue
            for demand in _wanted(role, self._hierarchy):
                if role.role not in self._clocks and not is_behind(demand):
                    continue
                if any(_may_be_asked_to_hold(agent, demand, asking) for agent in self._agents.values()):
                    if role.role not in self._clocks:
                        demand.is_untouched = True
                        self._clocks[role.role] = _Clock(demand.framework_id, demand.class_id, now_ms)
                    return
                if asking.left <= 0:
                    return

    def _reserve(self, role: Role, clock: _Clock, fit: Fit, search: AgentSearch, asking: Asking) -> None:
        if len(self.held) >= max(1, len(self._agents) // AGENTS_PER_RESERVATION):
            return
        demand = self._hierarchy.frameworks[clock.framework_id].demands[clock.class_id]
        need = fit.view(demand.shape.unit)
        agents = [agent for agent in self._agents.values() if agent.reserved_for is None]
        able = [agent for agent in agents if _may_be_asked_to_hold(agent, demand, asking)]
        asking.left -= len(able) * SHORTFALL_EFFORT
        agent = min(able, key=lambda agent: shortfall(need, fit.available(agent)), default=None)
        if agent is not None:
            self.held[role] = Reservation(clock.framework_id, clock.class_id, agent.agent_id, self.now_ms)
            agent.reserved_for = (clock.framework_id, clock.class_id)
            search.shrank(agent)


def _may_hold(agent: Agent, demand: Demand) -> bool:
    """Whether a unit might go to the agent if it were empty."""
    return agent.agent_id not in demand.declined and agent.could_hold(*demand.shape.key)


def _may_be_asked_to_hold(agent: Agent, demand: Demand, asking: Asking) -> bool:
    """The same, as long as agents may be asked."""
    return asking.may_ask(agent, demand.shape.constraints) and _may_hold(agent, demand)


def _wanted(role: RoleAccount, hierarchy: Hierarchy) -> Iterator[Demand]:
    """Demands of the role that want something, in the order in which they would be served."""
    for framework in hierarchy.order_within(role):
        if framework.wanting:
            yield from (demand for demand in framework.demands.values() if demand.wants)
