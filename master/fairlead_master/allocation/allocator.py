"""The allocator: told facts, it keeps the books; asked for a cycle, it answers with grants.

It decides who is served and where, from what it was told and from nothing else. It knows no offer ids, no leases and no
messages, and what it grants is charged before it says so. One rule keeps it honest: within a cycle free parts only shrink,
so what did not fit need not be looked at again until something is given back, and a cycle costs what changed.

A cycle serves one unit at a time: the first role in the policy's order, the first framework within it, its first class
in declared order that fits somewhere, on the agent placement chooses; until nothing that is wanted fits.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairlead_master.allocation.accounts import Demand, Framework
from fairlead_master.allocation.agents import Agent, Fit
from fairlead_master.allocation.api import (
    AgentBooks,
    AllocationError,
    AllocationSettings,
    Counters,
    Decision,
    Grant,
    Infeasibility,
    RoleRow,
    Weight,
)
from fairlead_master.allocation.feasibility import find_infeasibility
from fairlead_master.allocation.filters import FILTERS_MAX, FilterClock
from fairlead_master.allocation.hierarchy import Hierarchy
from fairlead_master.allocation.placement import WINDOW, Placement, Shape
from fairlead_master.allocation.policies import make_policy, slots_per_agent
from fairlead_master.allocation.report import role_rows
from fairlead_master.allocation.scores import make_rule
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector, add, scale, subtract, sum_vectors
from fairlead_proto.tasks import Constraint, DemandClass

DECISIONS_KEPT: Final = 1_000
"""Grants in the decision log: what the operator's call for it may ask for at most."""

MODES: Final = ("skip", "freeze")

Step = tuple[Framework, Demand, int, float, float]
"""One unit served: who, which class, the agent's index, the role's key before and after."""


class Allocator:
    """Facts in, grants out. Pure: no clock but ``now_ms``, no randomness, the same calls give the same grants."""

    def __init__(
        self, kinds: ResourceKinds, settings: AllocationSettings | None = None, *, window: int = WINDOW
    ) -> None:
        self.kinds = kinds
        self.settings = settings or AllocationSettings()
        self.counters = Counters()
        self.decisions: deque[Decision] = deque(maxlen=DECISIONS_KEPT)
        """The last grants, the newest last."""
        self._window = window
        self._check_settings(self.settings)
        self._agents: dict[AgentId, Agent] = {}
        self._by_index: list[Agent] = []
        """Agents that left included, until the next renumbering."""
        self._hierarchy = Hierarchy(self.settings.policy, kinds.zero)
        self._filters = FilterClock(self._hierarchy.frameworks)
        self._placement = self._make_placement()
        self._sleepers: dict[Shape, dict[FrameworkId, Framework]] = {}
        """Frameworks put to sleep because none of their shapes fitted, under each of those shapes."""
        self._wakes = 0
        """Counts what may make a framework's list of ready demands wrong."""
        self._changed = False
        self._capacity_changed = False
        self._grant_count = 0
        self._steps: list[Step] = []

    def add_agent(self, agent_id: AgentId, total: Vector, attributes: Mapping[str, str]) -> None:
        """A new agent, inactive: nothing is placed on it until ``set_agent_active``."""
        assert agent_id not in self._agents, f"agent {agent_id} was added twice"
        zero = self.kinds.zero
        agent = Agent(len(self._by_index), agent_id, total, dict(attributes), zero, floor=zero)
        self._agents[agent_id] = agent
        self._by_index.append(agent)
        self._placement.add(agent)

    def set_agent_active(self, agent_id: AgentId, active: bool) -> None:  # noqa: FBT001 - the second thing said is the fact
        """Whether units may be placed on the agent. What it holds stays charged. Repeats are harmless."""
        agent = self._agents[agent_id]
        if agent.active != active:
            agent.active = active
            self._capacity_changed = True
            self._regained(agent)

    def update_agent(self, agent_id: AgentId, total: Vector, attributes: Mapping[str, str]) -> None:
        """The agent has other resources or attributes from now on. It may hold more than it has then."""
        agent = self._agents[agent_id]
        agent.total = total
        agent.attributes = dict(attributes)
        self._excuse(agent)
        self._capacity_changed = True
        self._placement.redescribed(agent)
        self._changed = True

    def remove_agent(self, agent_id: AgentId) -> None:
        """The agent left; it holds nothing any more."""
        agent = self._agents[agent_id]
        assert agent.tasks == 0, (
            f"agent {agent_id} was removed while it held {agent.tasks} tasks or offered units"
        )
        del self._agents[agent_id]
        self._capacity_changed = True
        self._placement.remove(agent)
        if len(self._by_index) > 2 * len(self._agents) + self._window:
            self._renumber()

    def add_framework(self, framework_id: FrameworkId, role: Role) -> None:
        """A new framework in ``role``, holding and wanting nothing."""
        assert framework_id not in self._hierarchy.frameworks, f"framework {framework_id} was added twice"
        self._hierarchy.add_framework(framework_id, role)

    def remove_framework(self, framework_id: FrameworkId) -> None:
        """The framework left; it holds nothing any more, and its demand is dropped."""
        framework = self._hierarchy.frameworks[framework_id]
        assert framework.units == 0, (
            f"{framework_id} was removed while it held {framework.units} tasks or offered units"
        )
        self._replace_demands(framework, {})
        self._hierarchy.remove_framework(framework)

    def set_weight(self, role: Role, weight: Weight) -> None:
        """The role's weight from now on; the role need not exist yet.

        Raises:
            AllocationError: too many roles have weights already.
        """
        self._hierarchy.set_weight(role, weight)
        # The order changes and nothing else, which matters only where the order decides what waits.
        self._changed = self._changed or self.settings.when_head_does_not_fit == "freeze"

    def set_demand(self, framework_id: FrameworkId, classes: Sequence[DemandClass], now_ms: int) -> None:  # noqa: ARG002 - part of the contract
        """What the framework wants from now on, all of it, in its order of preference.

        ``units`` of a class are wanted beyond every accept so far, so units of it now in offers are part of them. Filters
        of the framework end.
        """
        framework = self._hierarchy.frameworks[framework_id]
        demands: dict[ClassId, Demand] = {}
        for place, wanted in enumerate(classes):
            assert wanted.class_id not in demands, f"{framework_id} names class {wanted.class_id} twice"
            shape = self._placement.acquire(wanted.unit, wanted.constraints)
            demands[wanted.class_id] = demand = Demand(wanted.class_id, place, shape, wanted.units)
            before = framework.demands.get(wanted.class_id)
            if before is not None and before.shape.key == shape.key:
                demand.unfit_since_ms = before.unfit_since_ms
        self._replace_demands(framework, demands)

    def charge(self, framework_id: FrameworkId, agent_id: AgentId, vector: Vector) -> None:
        """A task the agent runs already: it is held, whether or not there was room for it."""
        agent = self._agents[agent_id]
        self._hierarchy.charge(self._hierarchy.frameworks[framework_id], vector, 1)
        agent.charged = add(agent.charged, vector)
        agent.tasks += 1
        self._excuse(agent)
        self._placement.shrank(agent)

    def release(self, framework_id: FrameworkId, agent_id: AgentId, vector: Vector) -> None:
        """A task that held ``vector`` is over."""
        self._give_back(self._hierarchy.frameworks[framework_id], self._agents[agent_id], vector, 1)

    def settle(
        self,
        framework_id: FrameworkId,
        agent_id: AgentId,
        class_id: ClassId,
        unit: Vector,
        units: int,
        launched: Sequence[Vector],
    ) -> None:
        """An offer of ``units`` was taken: what was launched is held, the rest is free.

        Units beyond the launched ones are wanted again. What was launched fits into the offer, and under slots is no more
        tasks than units; the caller refused it otherwise.
        """
        framework = self._hierarchy.frameworks[framework_id]
        agent = self._agents[agent_id]
        plain = sum(1 for vector in launched if vector == unit)
        others = [vector for vector in launched if vector != unit]
        if len(launched) < units or others:
            self._give_back(framework, agent, unit, units - plain)
            for vector in others:
                self._hierarchy.charge(framework, vector, 1)
                agent.charged = add(agent.charged, vector)
                agent.tasks += 1
            self._placement.shrank(agent)
        assert min(map(int.__sub__, agent.free, agent.floor)) >= 0, (
            f"more was launched on {agent_id} than was offered"
        )
        self._end_offer(framework, class_id, units, min(len(launched), units))

    def take_back(
        self, framework_id: FrameworkId, agent_id: AgentId, class_id: ClassId, unit: Vector, units: int
    ) -> None:
        """An offer of ``units`` ended unused: its resources are free, and its units are wanted again."""
        framework = self._hierarchy.frameworks[framework_id]
        self._give_back(framework, self._agents[agent_id], unit, units)
        self._end_offer(framework, class_id, units, 0)

    def refuse(
        self, framework_id: FrameworkId, class_id: ClassId, agent_id: AgentId | None, until_ms: int
    ) -> None:
        """The framework takes no unit of the class on the agent, or on any agent if None, before ``until_ms``.

        A class or agent that is not known any more is nothing to refuse. A later end replaces an earlier one.
        """
        framework = self._hierarchy.frameworks[framework_id]
        demand = framework.demands.get(class_id)
        if demand is None:
            return
        if agent_id is None:
            self._refuse_everywhere(framework, demand, until_ms)
        elif agent_id in self._agents:
            self._refuse_on(framework, demand, self._agents[agent_id], until_ms)

    def configure(self, settings: AllocationSettings, now_ms: int) -> None:  # noqa: ARG002 - part of the contract
        """Decide by other settings from now on. Nothing that is held or offered changes.

        Raises:
            AllocationError: a setting is not known; nothing has changed then.
        """
        self._check_settings(settings)
        self.settings = settings
        self._hierarchy.set_policy(settings.policy)
        self._renumber()
        for agent in self._by_index:
            agent.floor = self.kinds.zero
            agent.tasks_ceiling = 0
            self._excuse(agent)

    def cycle(self, now_ms: int) -> list[Grant]:
        """Grant all that is wanted and fits, up to the bound of a cycle; each grant is charged already.

        Units of one class of one framework on one agent are one grant, at the place of the first of them.
        """
        self._end_filters(now_ms)
        self._steps = []
        if not self.needs_cycle:
            self.counters.idle_cycles += 1
            return []
        self.counters.cycles += 1
        self._changed = False
        self._sync_capacity()
        self._wake(self._placement.open_cycle())
        self._serve(now_ms)
        return self._book(now_ms)

    @property
    def needs_cycle(self) -> bool:
        """Whether something changed that could lead to a grant; deadlines are ``next_deadline_ms``'s affair."""
        return self._changed and self._placement.is_wanted

    def next_deadline_ms(self) -> int | None:
        """When time alone may lead to a grant: a filter ends, a reservation falls due. None: never."""
        return self._filters.next_ms()

    @property
    def capacity(self) -> Vector:
        """The sum over active agents."""
        return sum_vectors((agent.total for agent in self._agents.values() if agent.active), self.kinds.zero)

    def free(self, agent_id: AgentId) -> Vector:
        """What the agent has left, offers counted as taken. Negative where it holds more than it has."""
        return self._agents[agent_id].free

    def agent_books(self, agent_id: AgentId) -> AgentBooks:
        """All that is known of one agent."""
        agent = self._agents[agent_id]
        return AgentBooks(
            total=agent.total,
            charged=agent.charged,
            free=agent.free,
            tasks=agent.tasks,
            active=agent.active,
            reserved_for=agent.reserved_for[0] if agent.reserved_for is not None else None,
        )

    def pending(self, framework_id: FrameworkId) -> dict[ClassId, int]:
        """Units wanted and not offered, by class, in declared order; zeros included."""
        demands = self._hierarchy.frameworks[framework_id].demands
        return {class_id: demand.pending for class_id, demand in demands.items()}

    def role_report(self) -> list[RoleRow]:
        """Every role that has a framework, in the policy's order."""
        self._sync_capacity()
        return role_rows(self._hierarchy, self.kinds, self.capacity)

    def last_steps(self) -> list[tuple[FrameworkId, ClassId, AgentId]]:
        """The units of the last cycle in the order they were served, before they were merged into grants."""
        by_index = self._by_index
        return [(step[0].framework_id, step[1].class_id, by_index[step[2]].agent_id) for step in self._steps]

    def feasibility(self, unit: Vector, constraints: tuple[Constraint, ...]) -> Infeasibility | None:
        """Why the unit could never run on the agents registered now, active or not; None if it could, or if there are none."""
        return find_infeasibility(self._agents.values(), unit, constraints)

    def _check_settings(self, settings: AllocationSettings) -> None:
        make_policy(settings.policy)
        make_rule(settings.placement)
        if settings.when_head_does_not_fit not in MODES:
            raise AllocationError(
                f"when_head_does_not_fit: expected one of {', '.join(MODES)}, got {settings.when_head_does_not_fit!r}"
            )

    def _make_placement(self) -> Placement:
        fit = Fit(len(self.kinds.zero), slots_per_agent(self.settings.policy))
        return Placement(fit, make_rule(self.settings.placement), self.counters, window=self._window)

    def _renumber(self) -> None:
        """Make placement afresh: indexes without gaps, every shape looking at every agent again."""
        self._placement = self._make_placement()
        self._by_index = list(self._agents.values())
        for index, agent in enumerate(self._by_index):
            agent.index = index
            self._placement.add(agent)
        self._sleepers = {}
        for framework in self._hierarchy.frameworks.values():
            for demand in framework.demands.values():
                demand.shape = self._acquire(demand)
                if demand.wants:
                    self._placement.want(demand.shape)
            self._refresh(framework)
        self._steps = []

    def _acquire(self, demand: Demand) -> Shape:
        unit, constraints = demand.shape.key
        if demand.declined:
            return self._placement.acquire_private(unit, constraints, demand.declined)
        return self._placement.acquire(unit, constraints)

    def _excuse(self, agent: Agent) -> None:
        """What the agent holds now beyond what it has is no fault of a later decision."""
        agent.floor = tuple(map(min, agent.floor, agent.free))
        agent.tasks_ceiling = max(agent.tasks_ceiling, agent.tasks)

    def _regained(self, agent: Agent) -> None:
        self._placement.gained(agent)
        self._changed = True

    def _give_back(self, framework: Framework, agent: Agent, unit: Vector, units: int) -> None:
        self._hierarchy.release(framework, unit, units)
        agent.charged = subtract(agent.charged, scale(unit, units))
        agent.tasks -= units
        assert agent.tasks >= 0 <= min(agent.charged), f"agent {agent.agent_id} gave back more than it held"
        self._regained(agent)

    def _end_offer(self, framework: Framework, class_id: ClassId, units: int, launched: int) -> None:
        left = framework.offered.get(class_id, 0) - units
        assert left >= 0, f"{framework.framework_id} ended more units of {class_id} than it was offered"
        if left:
            framework.offered[class_id] = left
        else:
            framework.offered.pop(class_id, None)
        demand = framework.demands.get(class_id)
        if demand is not None:
            demand.target = max(0, demand.target - launched)
            self._set_pending(framework, demand)
            self._refresh(framework)

    def _replace_demands(self, framework: Framework, demands: dict[ClassId, Demand]) -> None:
        for demand in framework.demands.values():
            self._sleepers.get(demand.shape, {}).pop(framework.framework_id, None)
            if demand.wants:
                self._placement.unwant(demand.shape)
            self._drop(demand.shape)
        framework.demands = demands
        framework.filters.clear()
        for demand in demands.values():
            self._set_pending(framework, demand)
        self._refresh(framework)

    def _drop(self, shape: Shape) -> None:
        self._placement.drop(shape)
        if shape.references == 0:
            self._sleepers.pop(shape, None)

    def _set_pending(self, framework: Framework, demand: Demand) -> None:
        wanted = demand.wants
        demand.pending = max(0, demand.target - framework.offered.get(demand.class_id, 0))
        self._note_wants(demand, before=wanted)

    def _note_wants(self, demand: Demand, *, before: bool) -> None:
        if demand.wants and not before:
            self._placement.want(demand.shape)
        elif before and not demand.wants:
            self._placement.unwant(demand.shape)

    def _refresh(self, framework: Framework) -> None:
        """After its demands changed: whether the framework waits, and whether it takes part."""
        self._hierarchy.set_waiting(framework, waiting=any(d.target > 0 for d in framework.demands.values()))
        framework.ready_stamp = -1
        if framework.wants:
            self._hierarchy.wake(framework)
            self._changed = True
        else:
            self._hierarchy.sleep(framework)

    def _refuse_everywhere(self, framework: Framework, demand: Demand, until_ms: int) -> None:
        wanted = demand.wants
        demand.declined_everywhere_until_ms = max(until_ms, demand.declined_everywhere_until_ms or until_ms)
        self._filters.set(framework, demand, None, demand.declined_everywhere_until_ms)
        self._note_wants(demand, before=wanted)
        self._refresh(framework)

    def _refuse_on(self, framework: Framework, demand: Demand, agent: Agent, until_ms: int) -> None:
        until_ms = max(until_ms, demand.declined.get(agent.agent_id, until_ms))
        was_shared = not demand.declined
        demand.declined[agent.agent_id] = until_ms
        framework.filters.pop((demand.class_id, agent.agent_id), None)
        framework.filters[demand.class_id, agent.agent_id] = until_ms
        self._filters.set(framework, demand, agent.agent_id, until_ms)
        if was_shared:
            self._change_shape(framework, demand)
        else:
            self._placement.exclude(demand.shape, agent)
        if len(framework.filters) > FILTERS_MAX:
            class_id, agent_id = next(iter(framework.filters))
            self._lift(framework, framework.demands[class_id], agent_id)

    def _change_shape(self, framework: Framework, demand: Demand) -> None:
        """Between the shape the demand shares and one of its own, by whether it declines any agent."""
        before = demand.shape
        demand.shape = self._acquire(demand)
        if demand.wants:
            self._placement.unwant(before)
            self._placement.want(demand.shape)
        self._sleepers.get(before, {}).pop(framework.framework_id, None)
        self._drop(before)
        self._refresh(framework)

    def _lift(self, framework: Framework, demand: Demand, agent_id: AgentId) -> None:
        if demand.declined.pop(agent_id, None) is None:
            return
        del framework.filters[demand.class_id, agent_id]
        if not demand.declined:
            self._change_shape(framework, demand)
        elif agent_id in self._agents:
            self._regained(self._agents[agent_id])

    def _end_filters(self, now_ms: int) -> None:
        for framework, demand, agent_id in self._filters.ended(now_ms):
            if agent_id is not None:
                self._lift(framework, demand, agent_id)
            else:
                demand.declined_everywhere_until_ms = None
                self._note_wants(demand, before=False)
                self._refresh(framework)

    def _sync_capacity(self) -> None:
        if self._capacity_changed:
            self._capacity_changed = False
            slots = self._placement.fit.slots or 0
            active = sum(1 for agent in self._agents.values() if agent.active)
            self._hierarchy.set_capacity(self.capacity, slots * active)

    def _wake(self, shapes: Iterable[Shape]) -> None:
        for shape in shapes:
            self._wakes += 1
            for framework in self._sleepers.pop(shape, {}).values():
                self._hierarchy.wake(framework)

    def _serve(self, now_ms: int) -> None:  # noqa: ARG002
        """Serve units in the policy's order until nothing that is wanted fits, or the cycle is full."""
        placement, hierarchy, steps = self._placement, self._hierarchy, self._steps
        while placement.live_count:
            if len(steps) >= self.settings.grants_per_cycle_max:
                self._changed = True
                return
            framework = hierarchy.first()
            assert framework is not None, "a class is wanted and might fit, but every framework sleeps"
            demand = self._next_demand(framework)
            if demand is None:
                self._put_to_sleep(framework)
                continue
            shape = demand.shape
            index = placement.choose(shape)
            if index < 0:
                continue  # The shape is parked now, so the framework's next class is looked at.
            placement.take(shape, index)
            demand.pending -= 1
            if demand.pending == 0:
                placement.unwant(shape)
            before = hierarchy.key(framework.role.role)
            after = hierarchy.serve(framework, shape.unit, 1)
            steps.append((framework, demand, index, before, after))

    def _next_demand(self, framework: Framework) -> Demand | None:
        """Its first class in declared order that might fit; None if none might."""
        if framework.ready_stamp != self._wakes:
            framework.ready = [d for d in framework.demands.values() if d.wants and not d.shape.parked]
            framework.ready.reverse()
            framework.ready_stamp = self._wakes
        ready = framework.ready
        while ready:
            demand = ready[-1]
            if demand.pending and not demand.shape.parked:
                return demand
            ready.pop()
        return None

    def _put_to_sleep(self, framework: Framework) -> None:
        self._hierarchy.sleep(framework)
        for demand in framework.demands.values():
            if demand.wants:
                self._sleepers.setdefault(demand.shape, {})[framework.framework_id] = framework

    def _book(self, now_ms: int) -> list[Grant]:
        """Write the steps into the books and merge them into grants, each at the place of its first unit."""
        merged: dict[tuple[Demand, int], int] = {}
        """Where in ``rows`` the open grant for a demand on an agent is."""
        rows: list[tuple[Framework, Demand, int, int, float, float]] = []
        units_max = self.settings.units_per_grant_max
        for framework, demand, index, before, after in self._steps:
            row = merged.get((demand, index))
            if row is not None and rows[row][3] < units_max:
                _, _, _, units, first, _ = rows[row]
                rows[row] = (framework, demand, index, units + 1, first, after)
            else:
                merged[demand, index] = len(rows)
                rows.append((framework, demand, index, 1, before, after))
        grants = [self._book_grant(*row) for row in rows]
        self.counters.decisions += len(self._steps)
        for number, grant in enumerate(grants, self._grant_count + 1):
            if number > self._grant_count + len(grants) - DECISIONS_KEPT:
                self.decisions.append(
                    Decision(number=number, time_ms=now_ms, policy=self.settings.policy, grant=grant)
                )
        self._grant_count += len(grants)
        return grants

    def _book_grant(
        self, framework: Framework, demand: Demand, index: int, units: int, before: float, after: float
    ) -> Grant:
        agent = self._by_index[index]
        unit = demand.shape.unit
        self._hierarchy.book(framework, unit, units)
        agent.charged = add(agent.charged, unit if units == 1 else scale(unit, units))
        agent.tasks += units
        framework.offered[demand.class_id] = framework.offered.get(demand.class_id, 0) + units
        demand.unfit_since_ms = None
        return Grant(
            framework.framework_id,
            framework.role.role,
            agent.agent_id,
            demand.class_id,
            unit,
            units,
            before,
            after,
        )
