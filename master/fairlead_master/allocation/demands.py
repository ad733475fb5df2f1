"""Who wants what: demand classes with their shapes, what is out in offers, filters, and who takes part in the ranking.

Keeps three things in step whenever a demand changes: the count of those who want a shape, by which the search knows what
is alive; who is awake in the hierarchy; and for each sleeper the shapes that may wake it. A framework sleeps when
nothing it wants might fit, and is only put to sleep when its turn comes, so that a cluster full of waiting frameworks
does not put them all to sleep and wake them all again at every release.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fairlead_master.allocation.accounts import Demand, Framework
from fairlead_master.allocation.agents import Agent
from fairlead_master.allocation.api import Counters
from fairlead_master.allocation.filters import FILTERS_MAX, FilterClock
from fairlead_master.allocation.hierarchy import Hierarchy
from fairlead_master.allocation.search import AgentSearch
from fairlead_master.allocation.shape import Shape
from fairlead_proto.ids import AgentId, ClassId, FrameworkId
from fairlead_proto.tasks import DemandClass

SLEEPER_EFFORT: Final = 30
"""What it takes to let a framework that slept take part again, some 3 to 20 µs, in looks at one column of an agent."""

RENEW_EFFORT: Final = 20
SHAPE_EFFORT: Final = 25
"""What it takes to let a framework take part anew, and on top of that for each of its classes, in looks at one column of an agent."""


class DemandBoard:
    """All demands of all frameworks."""

    def __init__(self, hierarchy: Hierarchy, agents: dict[AgentId, Agent], search: AgentSearch) -> None:
        self.filters = FilterClock(hierarchy.frameworks)
        self._hierarchy = hierarchy
        self._agents = agents
        self._search = search
        self._sleepers: dict[Shape, dict[FrameworkId, Framework]] = {}
        """Frameworks put to sleep because none of their shapes fitted, under each of those shapes."""
        self._to_wake: dict[Shape, None] = {}
        """Those of these shapes that might fit again, in the order in which their sleepers are to be woken."""
        self._stamp = 0
        """Changes when shapes wake, which makes every framework's list of ready demands out of date."""

    def begin_anew(self, search: AgentSearch) -> None:
        """Everything starts over on a fresh search; demands have no shape there until ``search_anew`` has come to its end."""
        self._search = search
        self._sleepers, self._to_wake = {}, {}
        self._stamp += 1

    def search_anew(self) -> Iterator[int]:
        """Let every shape look at every agent again and everybody take part; gives for each framework what it took."""
        search = self._search
        for framework in list(self._hierarchy.frameworks.values()):
            if self._hierarchy.frameworks.get(framework.framework_id) is not framework:
                continue
            for demand in framework.demands.values():
                if not self._knows(demand.shape):
                    demand.shape = self._acquire(demand)
                    if demand.wants:
                        search.want(demand.shape)
            self._refresh(framework)
            yield RENEW_EFFORT + SHAPE_EFFORT * len(framework.demands)

    def replace(self, framework: Framework, classes: Sequence[DemandClass], *, lift: bool = True) -> None:
        """The framework wants ``classes`` from now on, in this order of preference.

        Its filters end; without ``lift`` those of a class with the same id, unit and constraints stay.
        """
        demands: dict[ClassId, Demand] = {}
        for wanted in classes:
            assert wanted.class_id not in demands, f"{framework.framework_id} names {wanted.class_id} twice"
            before = framework.demands.get(wanted.class_id)
            is_same = before is not None and before.shape.key == (wanted.unit, wanted.constraints)
            if before is not None and is_same and not lift:
                # All of it stays, its shape too, which may be its own and would have to look at every agent again.
                demands[wanted.class_id] = before
                continue
            # New shapes are taken before old ones are dropped, so that a shape that stays keeps what it knows.
            shape = self._search.acquire(wanted.unit, wanted.constraints)
            demands[wanted.class_id] = demand = Demand(framework.framework_id, wanted.class_id, shape)
            if before is not None and is_same:
                demand.is_untouched = before.is_untouched
        gone = [
            demand for class_id, demand in framework.demands.items() if demands.get(class_id) is not demand
        ]
        for demand in gone:
            self._retire(framework, demand)
            for agent_id in demand.declined:
                del framework.filters[demand.class_id, agent_id]
        framework.demands = demands
        for wanted in classes:
            self._set_target(framework, demands[wanted.class_id], wanted.units)
        self._refresh(framework)

    def end_offer(self, framework: Framework, class_id: ClassId, units: int, launched: int) -> None:
        """``units`` of the class are in no offer any more; ``launched`` of them are wanted no more."""
        left = framework.offered.get(class_id, 0) - units
        assert left >= 0, f"{framework.framework_id} ended more units of {class_id} than it was offered"
        if left:
            framework.offered[class_id] = left
        else:
            framework.offered.pop(class_id, None)
        demand = framework.demands.get(class_id)
        if demand is not None:
            self._set_target(framework, demand, max(0, demand.target - launched))
            self._refresh(framework)

    def refuse_everywhere(self, framework: Framework, demand: Demand, until_ms: int) -> None:
        """The class takes nothing anywhere before ``until_ms``; a later end replaces an earlier one."""
        wanted = demand.wants
        until_ms = max(until_ms, demand.declined_everywhere_until_ms or until_ms)
        demand.declined_everywhere_until_ms = until_ms
        self.filters.set(framework, demand, None, until_ms)
        self._note_wants(framework, demand, before=wanted)
        self._refresh(framework)

    def refuse_on(self, framework: Framework, demand: Demand, agent: Agent, until_ms: int) -> None:
        """The class takes nothing on the agent before ``until_ms``; a later end replaces an earlier one."""
        until_ms = max(until_ms, demand.declined.get(agent.agent_id, until_ms))
        was_shared = not demand.declined
        demand.declined[agent.agent_id] = until_ms
        framework.filters.pop((demand.class_id, agent.agent_id), None)
        framework.filters[demand.class_id, agent.agent_id] = until_ms
        self.filters.set(framework, demand, agent.agent_id, until_ms)
        if was_shared:
            self._change_shape(framework, demand)
        elif self._knows(demand.shape):
            self._search.exclude(demand.shape, agent)
        if len(framework.filters) > FILTERS_MAX:
            class_id, agent_id = next(iter(framework.filters))
            self._lift(framework, framework.demands[class_id], agent_id)

    def end_filters(self, now_ms: int) -> None:
        """Lift the filters that have ended."""
        for framework, demand, agent_id in self.filters.ended(now_ms):
            if agent_id is not None:
                self._lift(framework, demand, agent_id)
            elif demand.declined_everywhere_until_ms is not None:
                demand.declined_everywhere_until_ms = None
                self._note_wants(framework, demand, before=False)
                self._refresh(framework)

    def wake(self, shapes: Iterable[Shape]) -> None:
        """These shapes might fit again: so might all who sleep over one of them, who are woken by ``wake_some``."""
        self._stamp += 1
        for shape in shapes:
            if shape in self._sleepers:
                self._to_wake[shape] = None

    def wake_all(self) -> None:
        """Everyone who sleeps over a shape is to take part again."""
        self.wake(list(self._sleepers))

    def wake_some(self, counters: Counters, examined_max: float) -> bool:
        """Let frameworks that are to be woken take part, until so many agents have been examined; whether that was all."""
        for shape in list(self._to_wake):
            # Whoever left, or wants something else by now, sleeps over it no more.
            sleepers = self._sleepers.get(shape, {})
            for framework in list(sleepers.values()):
                if counters.agents_examined >= examined_max:
                    return False
                counters.agents_examined += 1 if framework.awake else SLEEPER_EFFORT
                del sleepers[framework.framework_id]
                self._hierarchy.wake(framework)
            self._sleepers.pop(shape, None)
            del self._to_wake[shape]
        return True

    def is_to_wake(self, framework: Framework) -> bool:
        """Whether the framework sleeps only until ``wake_some`` comes to it."""
        return any(
            framework.framework_id in self._sleepers.get(demand.shape, {})
            for demand in framework.demands.values()
            if demand.shape in self._to_wake
        )

    def put_to_sleep(self, framework: Framework) -> None:
        """Nothing the framework wants might fit: it sleeps until something might."""
        self._hierarchy.sleep(framework)
        for demand in framework.demands.values():
            if demand.wants:
                self._sleepers.setdefault(demand.shape, {})[framework.framework_id] = framework

    def next_of(self, framework: Framework) -> Demand | None:
        """The framework's first class in declared order that might fit; None if none might."""
        if framework.ready_stamp != self._stamp:
            framework.ready = [d for d in framework.demands.values() if d.wants and not d.shape.parked]
            framework.ready.reverse()
            framework.ready_stamp = self._stamp
        ready = framework.ready
        while ready:
            demand = ready[-1]
            if demand.pending and not demand.shape.parked:
                return demand
            ready.pop()
        return None

    def granted(self, framework: Framework, demand: Demand) -> None:
        """A unit of the demand is in an offer now."""
        demand.pending -= 1
        demand.is_untouched = False
        if demand.pending == 0:
            self._change_wanting(framework, demand, -1)

    def _knows(self, shape: Shape) -> bool:
        """Not if it is of an earlier search: nobody looks at it any more, and the demand is to have another."""
        return shape.home is self._search

    def _acquire(self, demand: Demand) -> Shape:
        unit, constraints = demand.shape.key
        if demand.declined:
            return self._search.acquire_private(unit, constraints, demand.declined)
        return self._search.acquire(unit, constraints)

    def _retire(self, framework: Framework, demand: Demand) -> None:
        wanted = demand.wants
        self._hierarchy.change_wish(framework, demand.shape.unit, -demand.pending)
        demand.pending = 0
        self._note_wants(framework, demand, before=wanted)
        if demand.target:
            framework.targeted -= 1
        self._leave(framework, demand.shape)

    def _leave(self, framework: Framework, shape: Shape) -> None:
        sleepers = self._sleepers.get(shape)
        if sleepers is not None:
            sleepers.pop(framework.framework_id, None)
            if not sleepers:
                del self._sleepers[shape]
        if self._knows(shape):
            self._search.drop(shape)

    def _set_target(self, framework: Framework, demand: Demand, target: int) -> None:
        framework.targeted += (target > 0) - (demand.target > 0)
        demand.target = target
        wanted, pending = demand.wants, demand.pending
        demand.pending = max(0, target - framework.offered.get(demand.class_id, 0))
        self._note_wants(framework, demand, before=wanted)
        self._hierarchy.change_wish(framework, demand.shape.unit, demand.pending - pending)
        if demand.pending > pending:
            self._search.changed = True

    def _note_wants(self, framework: Framework, demand: Demand, *, before: bool) -> None:
        if demand.wants != before:
            self._change_wanting(framework, demand, -1 if before else 1)

    def _change_wanting(self, framework: Framework, demand: Demand, by: int) -> None:
        """A cycle may grant units of one class more, or fewer."""
        framework.wanting += by
        self._hierarchy.change_wanting(framework, demand.shape.unit, by)
        if not self._knows(demand.shape):
            return
        if by > 0:
            self._search.want(demand.shape)
        else:
            self._search.unwant(demand.shape)

    def _refresh(self, framework: Framework) -> None:
        """After its demands changed: whether the framework waits, and whether it takes part."""
        self._hierarchy.set_waiting(framework, waiting=framework.targeted > 0)
        framework.ready_stamp = -1
        if framework.wanting:
            self._hierarchy.wake(framework)
        else:
            self._hierarchy.sleep(framework)

    def _change_shape(self, framework: Framework, demand: Demand) -> None:
        """Between the shape the demand shares and one of its own, by whether it declines any agent."""
        before = demand.shape
        demand.shape = self._acquire(demand)
        if demand.wants:
            if self._knows(before):
                self._search.unwant(before)
            self._search.want(demand.shape)
        self._leave(framework, before)
        self._refresh(framework)

    def _lift(self, framework: Framework, demand: Demand, agent_id: AgentId) -> None:
        if demand.declined.pop(agent_id, None) is None:
            return
        del framework.filters[demand.class_id, agent_id]
        if not demand.declined:
            self._change_shape(framework, demand)
        elif agent_id in self._agents:
            self._search.gained(self._agents[agent_id])
