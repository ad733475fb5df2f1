"""The allocator: told facts, it keeps the books; asked for a cycle, it answers with grants.

It decides who is served and where, from what it was told and from nothing else. It knows no offer ids, no leases and no
messages, and what it grants is charged before it says so. One rule keeps it honest: within a cycle free parts only shrink,
so what did not fit need not be looked at again until something is given back, and a cycle costs what changed.

A cycle serves one unit at a time: the first role in the policy's order, the first framework within it, its first class
in declared order that fits somewhere, on the agent placement chooses; until nothing that is wanted fits.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final

from fairlead_master.allocation import invariants, placement
from fairlead_master.allocation.accounts import Framework
from fairlead_master.allocation.agents import Agent, Fit
from fairlead_master.allocation.api import (
    AgentBooks,
    AllocationSettings,
    Counters,
    Grant,
    Infeasibility,
    Policy,
    Prices,
    RoleRow,
)
from fairlead_master.allocation.decision_log import DecisionLog
from fairlead_master.allocation.demands import DemandBoard
from fairlead_master.allocation.explain import Diagnosis, Scene, diagnose
from fairlead_master.allocation.feasibility import find_infeasibility
from fairlead_master.allocation.hierarchy import Hierarchy
from fairlead_master.allocation.measured import UseEstimate
from fairlead_master.allocation.parts import Parts, at_once
from fairlead_master.allocation.policies import names
from fairlead_master.allocation.renewal import Renewal
from fairlead_master.allocation.report import role_rows
from fairlead_master.allocation.reservations import Reservations
from fairlead_master.allocation.search import AgentSearch
from fairlead_master.allocation.serving import Bounds, End, serve, serve_reserved
from fairlead_master.allocation.settings import check_settings
from fairlead_master.allocation.steps import Step, book, merge
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role, TaskId
from fairlead_proto.resources import ResourceKinds, Vector, add, fits, scale, subtract, sum_vectors
from fairlead_proto.tasks import Constraint, DemandClass

_GAPS_MAX: Final = 64
"""Indexes of agents that left, beyond as many as there are agents, before all are numbered anew."""


class Allocator:
    """Facts in, grants out. Pure: no clock but ``now_ms``, no randomness, the same calls give the same grants."""

    def __init__(
        self, kinds: ResourceKinds, settings: AllocationSettings | None = None, *, window: int | None = None
    ) -> None:
        self.kinds = kinds
        self.settings = settings or AllocationSettings()
        self.counters = Counters()
        self.decisions = DecisionLog()
        self._window = window
        check_settings(self.settings, kinds)
        self._agents: dict[AgentId, Agent] = {}
        self._hierarchy = Hierarchy(self._new_policy, self.settings.demand, kinds)
        self._search = self._make_search()
        self._demands = DemandBoard(self._hierarchy, self._agents, self._search)
        self._renewal = Renewal(self._hierarchy, self._demands, self._agents, self._search)
        self._reservations = Reservations(self._hierarchy, self._agents)
        self._capacity = kinds.zero
        self._active_count = 0
        self._capacity_changed = False
        self._recount: Iterator[int] | None = None
        """What is still to be counted on the capacity as it was when this began."""
        self._steps: list[Step] = []
        self._bounds = Bounds(self.counters, self.settings)

    def add_agent(self, agent_id: AgentId, total: Vector, attributes: Mapping[str, str]) -> None:
        """A new agent, inactive: nothing is placed on it until ``set_agent_active``."""
        assert agent_id not in self._agents, f"agent {agent_id} was added twice"
        zero = self.kinds.zero
        agent = Agent(-1, agent_id, total, dict(attributes), zero, floor=zero)
        self._agents[agent_id] = agent
        self._renewal.add(agent)

    def set_agent_active(self, agent_id: AgentId, active: bool) -> None:  # noqa: FBT001 - the second thing said is the fact
        """Whether units may be placed on the agent. What it holds stays charged. Repeats are harmless."""
        agent = self._agents[agent_id]
        if agent.active != active:
            agent.active = active
            self._active_count += 1 if active else -1
            self._capacity = (add if active else subtract)(self._capacity, agent.total)
            self._capacity_changed = True
            self._search.gained(agent)
            self._facts_changed()

    def update_agent(self, agent_id: AgentId, total: Vector, attributes: Mapping[str, str]) -> None:
        """The agent has other resources or attributes from now on. It may hold more than it has then."""
        agent = self._agents[agent_id]
        if agent.active:
            self._capacity = add(subtract(self._capacity, agent.total), total)
            self._capacity_changed = True
        agent.total = total
        agent.attributes = dict(attributes)
        agent.excuse()
        if agent.index >= 0:
            self._search.redescribed(agent)
        self._facts_changed()

    def remove_agent(self, agent_id: AgentId) -> None:
        """The agent left; it holds nothing any more."""
        agent = self._agents[agent_id]
        assert agent.tasks == 0, f"agent {agent_id} was removed while it held {agent.tasks} tasks or units"
        self.set_agent_active(agent_id, active=False)
        del self._agents[agent_id]
        self._search.remove(agent)
        self._facts_changed()
        if len(self._renewal.by_index) > 2 * len(self._agents) + _GAPS_MAX:
            self._begin_anew()

    def add_framework(self, framework_id: FrameworkId, role: Role) -> None:
        """A new framework in ``role``, holding and wanting nothing."""
        assert framework_id not in self._hierarchy.frameworks, f"framework {framework_id} was added twice"
        self._hierarchy.add_framework(framework_id, role)

    def remove_framework(self, framework_id: FrameworkId) -> None:
        """The framework left; it holds nothing any more, and its demand is dropped."""
        framework = self._hierarchy.frameworks[framework_id]
        assert framework.units == 0, (
            f"{framework_id} was removed while it held {framework.units} tasks or units"
        )
        self._demands.replace(framework, ())
        self._hierarchy.remove_framework(framework)
        self._facts_changed()

    def set_weight(self, role: Role, weight: Weight) -> None:
        """The role's weight from now on; the role need not exist yet.

        Raises:
            AllocationError: too many roles have weights already.
        """
        self._hierarchy.set_weight(role, weight)
        self._facts_changed()

    def set_demand(
        self,
        framework_id: FrameworkId,
        classes: Sequence[DemandClass],
        now_ms: int,  # noqa: ARG002 - part of the contract
        *,
        lift: bool = True,
    ) -> None:
        """What the framework wants from now on, all of it, in its order of preference.

        ``units`` of a class are wanted beyond every accept so far, so units of it now in offers are part of them. Filters
        of the framework end; without ``lift`` only those of classes that are not as they were.
        """
        framework = self._hierarchy.frameworks[framework_id]
        self._demands.replace(framework, classes, lift=lift)
        if classes:
            self._hierarchy.set_declared(framework, is_declared=all(each.is_declared for each in classes))
        self._facts_changed()

    def charge(self, framework_id: FrameworkId, agent_id: AgentId, vector: Vector) -> None:
        """A task the agent runs already: it is held, whether or not there was room for it."""
        agent = self._agents[agent_id]
        self._hierarchy.charge(self._hierarchy.frameworks[framework_id], vector)
        agent.charged = add(agent.charged, vector)
        agent.tasks += 1
        agent.excuse()
        self._search.shrank(agent)
        self._facts_changed()

    def release(self, framework_id: FrameworkId, agent_id: AgentId, vector: Vector, tasks: int = 1) -> None:
        """Tasks that held ``vector`` each are over."""
        self._give_back(self._hierarchy.frameworks[framework_id], self._agents[agent_id], vector, tasks)

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
        others = [vector for vector in launched if vector != unit]
        if len(launched) < units or others:
            used = sum_vectors(launched, self.kinds.zero)
            assert fits(used, scale(unit, units)), f"more was launched on {agent_id} than was offered: {used}"
            self._give_back(framework, agent, unit, units - (len(launched) - len(others)))
            for vector in others:
                self._hierarchy.charge(framework, vector)
                agent.charged = add(agent.charged, vector)
                agent.tasks += 1
            self._search.shrank(agent)
        else:
            assert len(launched) == units, f"{len(launched)} tasks were launched in an offer of {units} units"
        self._demands.end_offer(framework, class_id, units, min(len(launched), units))

    def take_back(
        self, framework_id: FrameworkId, agent_id: AgentId, class_id: ClassId, unit: Vector, units: int
    ) -> None:
        """An offer of ``units`` ended unused: its resources are free, and its units are wanted again."""
        framework = self._hierarchy.frameworks[framework_id]
        self._give_back(framework, self._agents[agent_id], unit, units)
        self._demands.end_offer(framework, class_id, units, 0)

    def refuse(
        self, framework_id: FrameworkId, class_id: ClassId, agent_id: AgentId | None, until_ms: int
    ) -> None:
        """The framework takes no unit of the class on the agent, or on any agent if None, before ``until_ms``.

        A class or agent that is not known any more is nothing to refuse. A later end replaces an earlier one.
        """
        framework = self._hierarchy.frameworks[framework_id]
        if (demand := framework.demands.get(class_id)) is None:
            return
        if agent_id is None:
            self._demands.refuse_everywhere(framework, demand, until_ms)
        elif agent_id in self._agents:
            self._demands.refuse_on(framework, demand, self._agents[agent_id], until_ms)
        self._facts_changed()

    def advance(self, now_ms: int) -> None:
        """It is ``now_ms``: to be told before facts and cycles where ``watches_time`` is true. Never goes back."""
        self._hierarchy.advance(now_ms)

    @property
    def watches_time(self) -> bool:
        """Whether the order of accounts changes as time passes."""
        return self._hierarchy.interval_ms is not None

    def observe(self, framework_id: FrameworkId, used: Vector, held: Vector) -> None:
        """Those of the framework's tasks that were measured use ``used`` together, as rates, and hold ``held``."""
        self._hierarchy.observe(self._hierarchy.frameworks[framework_id], used, held)

    def sample(
        self,
        framework_id: FrameworkId,
        task_id: TaskId,
        declared: Vector,
        used: tuple[int | None, ...],
        now_ms: int,
    ) -> None:
        """A task of the framework has in its life so far used ``used`` of ``declared``; None where nobody measures."""
        framework = self._hierarchy.frameworks[framework_id]
        if framework.estimate is None:
            framework.estimate = UseEstimate(len(declared))
        framework.estimate.sample(task_id, declared, used)
        if framework.estimate.look(now_ms):
            self._hierarchy.recount(framework)

    def prices(self) -> Prices | None:
        """What resources cost roles under the policy; None if it has no prices."""
        self._count_shares(inf)
        return self._hierarchy.prices()

    def bottlenecks(self) -> tuple[str, ...] | None:
        """The resources that are contended now, by name; None if the policy does not look for such."""
        self._count_shares(inf)
        places = self._hierarchy.find_bottlenecks()
        return None if places is None else tuple([self.kinds.names[place] for place in places])

    def _new_policy(self) -> Policy:
        return names.parse(self.settings.policy, self.kinds.names)

    def configure(self, settings: AllocationSettings, now_ms: int) -> None:  # noqa: ARG002 - part of the contract
        """Decide by other settings from now on. Nothing that is held or offered changes.

        What is computed of everybody is computed anew in parts, of which the first is done here and the others by the next
        cycles; nothing is granted before all of it is. Facts may come meanwhile, as at any time.

        Raises:
            AllocationError: a setting is not known; nothing has changed then.
        """
        check_settings(settings, self.kinds)
        self._reservations.clear(self._search)
        self.settings = settings
        self._recount = None
        self._hierarchy.set_policy(self._new_policy, settings.demand)
        self._begin_anew()

    def cycle(self, now_ms: int) -> list[Grant]:
        """Grant all that is wanted and fits, up to the bounds of a cycle; each grant is charged already.

        Units of one class of one framework on one agent are one grant, at the place of the first of them. A cycle that is cut
        short by a bound is carried on by the next: unless an agent gained meanwhile, the two serve what one would have.
        """
        self._demands.end_filters(now_ms)
        self._steps = []
        due_ms = self._reservations.next_ms()
        if not self.needs_cycle and (due_ms is None or due_ms > now_ms):
            self.counters.idle_cycles += 1
            return []
        self.counters.cycles += 1
        self._bounds = Bounds(self.counters, self.settings)
        self._search.work_until(self._bounds.effort_max, self._bounds.look_effort)
        is_ranked = self._renewal.go_on(self.counters, self._bounds.examined_max)
        if not is_ranked or not self._count_shares(self._bounds.effort_max):
            return []
        if self._search.is_open:
            self._hierarchy.pin_again()
        self._reservations.now_ms = now_ms
        self._serve_and_look()
        self._hierarchy.set_pins_aside()
        return self._book(now_ms)

    @property
    def needs_cycle(self) -> bool:
        """Whether something changed that could lead to a grant; deadlines are ``next_deadline_ms``'s affair."""
        changed = self._search.changed or self._recount is not None
        return self._renewal.is_under_way or (changed and self._search.is_wanted)

    def next_deadline_ms(self) -> int | None:
        """When time alone may lead to a grant: a filter ends, a reservation falls due. None: never."""
        both = (self._demands.filters.next_ms(), self._reservations.next_ms())
        return min((time_ms for time_ms in both if time_ms is not None), default=None)

    @property
    def is_cut_short(self) -> bool:
        """Whether the last cycle ended at a bound, so that another may grant more at once."""
        return self._renewal.is_under_way or self._recount is not None or self._search.is_open

    @property
    def allows_overcommit(self) -> bool:
        """Whether agents may hold more than they have: under slots, whose tasks are not asked what they need."""
        return self._search.fit.slots is not None

    @property
    def capacity(self) -> Vector:
        """The sum over active agents."""
        return self._capacity

    def free(self, agent_id: AgentId) -> Vector:
        """What the agent has left, offers counted as taken. Negative where it holds more than it has."""
        return self._agents[agent_id].free

    def agent_books(self, agent_id: AgentId) -> AgentBooks:
        """All that is known of one agent."""
        return self._agents[agent_id].books()

    def pending(self, framework_id: FrameworkId) -> dict[ClassId, int]:
        """Units wanted and not offered, by class, in declared order; zeros included."""
        demands = self._hierarchy.frameworks[framework_id].demands
        return {class_id: demand.pending for class_id, demand in demands.items()}

    def weights_in_waiting(self) -> dict[Role, Weight]:
        """Weights of roles that have no framework, in them or below them."""
        known = self._hierarchy.roles
        return {role: weight for role, weight in self._hierarchy.weights.items() if role not in known}

    def role_report(self) -> list[RoleRow]:
        """Every role that has a framework, in the policy's order."""
        return at_once(self.role_report_in_parts())

    def role_report_in_parts(self) -> Parts[list[RoleRow]]:
        """The same with turns for others between."""
        while not self._count_shares(0):
            yield
        return (yield from role_rows(self._hierarchy, self.kinds, self.capacity))

    def last_steps(self) -> list[tuple[FrameworkId, ClassId, AgentId]]:
        """The units of the last cycle in the order they were served, before they were merged into grants."""
        by_index = self._renewal.by_index
        return [(step[0].framework_id, step[1].class_id, by_index[step[2]].agent_id) for step in self._steps]

    def feasibility(
        self, unit: Vector, constraints: tuple[Constraint, ...], asked_max: int | None = None
    ) -> Infeasibility | None:
        """Why the unit could never run on the agents registered now, active or not; None if it could, or if there are none.

        None as well if ``counters.agents_asked`` came to ``asked_max`` before that was known.
        """
        return find_infeasibility(self._agents.values(), unit, constraints, self.counters, asked_max)

    def diagnose(self, framework_id: FrameworkId, class_id: ClassId, rows: list[RoleRow]) -> Parts[Diagnosis]:
        """Why the class waits, and what would help. ``rows`` is the role report: empty, it is filled if it is needed."""
        scene = Scene(
            kinds=self.kinds,
            fit=self._search.fit,
            agents=self._agents,
            rows=rows,
            report=self.role_report_in_parts,
            policy=self.settings.policy,
            freezes=self.settings.when_head_does_not_fit == "freeze",
        )
        return diagnose(scene, self._hierarchy.frameworks[framework_id], class_id)

    def check(self) -> None:
        """Raise AssertionError unless all books balance and all indexes agree with a full recomputation."""
        invariants.check_capacity(self._agents, self._capacity, self.kinds.zero)
        invariants.check_agents(self._agents, self._hierarchy, self.kinds.zero, self._search.fit)
        if self._renewal.is_under_way:
            return
        invariants.check_frameworks(self._hierarchy, self._demands)
        if self._recount is None:
            self._count_shares(inf)
            invariants.check_wishes(self._hierarchy)
            invariants.check_roles(self._hierarchy)
        invariants.check_demands(self._hierarchy, self._search)
        invariants.check_search(self._search, self._renewal.by_index, self._agents)
        self._reservations.check()

    def _make_search(self) -> AgentSearch:
        fit = Fit(len(self.kinds.zero), names.slots_per_agent(self.settings.policy))
        rule = placement.in_force(self.settings.placement, fit.slots)
        return AgentSearch(fit, rule, self.counters, window=self._window)

    def _begin_anew(self) -> None:
        """Search afresh, with indexes without gaps, and rank whoever is not ranked."""
        self._search = self._make_search()
        self._renewal.begin(self._search)
        self._steps = []
        self._bounds = Bounds(self.counters, self.settings)
        self._renewal.go_on(self.counters, self._bounds.examined_max)

    def _facts_changed(self) -> None:
        """After a fact that may make a reservation void, or make another role the head of the queue."""
        self._reservations.cancel_void(self._search)
        # Under skip the order alone never leads to a grant; under freeze a new head may let all others go on.
        if self.settings.when_head_does_not_fit == "freeze":
            self._search.note_change()

    def _give_back(self, framework: Framework, agent: Agent, unit: Vector, units: int) -> None:
        self._hierarchy.release(framework, unit, units)
        agent.charged = subtract(agent.charged, unit if units == 1 else scale(unit, units))
        agent.tasks -= units
        assert agent.tasks >= 0 <= min(agent.charged), f"agent {agent.agent_id} gave back more than it held"
        self._search.gained(agent)

    def _count_shares(self, effort_max: float) -> bool:
        """Count shares on the capacity there is, as far as that goes; whether it is done. A later change waits for some to be served."""
        if self._renewal.is_under_way:
            return True
        if self._capacity_changed and self._recount is None and not self._search.is_open:
            self._capacity_changed = False
            slots = (self._search.fit.slots or 0) * self._active_count
            self._recount = self._hierarchy.set_capacity(self._capacity, slots)
        for effort in self._recount or ():
            self.counters.agents_examined += effort
            if self._bounds.effort >= effort_max:
                return False
        self._recount = None
        return True

    def _serve_and_look(self) -> None:
        """Serve everyone and look after those who were passed over, again if that set agents free."""
        while True:
            is_complete = self._serve_all()
            if self.settings.when_head_does_not_fit == "freeze":
                return
            self._reservations.note(self._steps)
            after_ms = self.settings.reservation_after_ms
            if not is_complete or not self._reservations.look(after_ms, self._search.fit, self._search):
                return

    def _serve_all(self) -> bool:
        """Serve what is reserved and then everyone, again if that set agents free; whether nothing more would fit."""
        while True:
            if not self._wake():
                self._search.changed = True
                return False
            self._search.begin_serving()
            end = serve(self._search, self._hierarchy, self._demands, self._agents, self._steps, self._bounds)
            if end is End.CUT_SHORT:
                self._search.changed = True
                return False
            self._search.close_cycle()
            if end is End.FROZEN or not self._reservations.cancel_void(self._search):
                return end is End.COMPLETE

    def _wake(self) -> bool:
        """Let all take part who might fit, unless they do already; False if the cycle has done enough before or with that."""
        search = self._search
        if not search.is_open:
            serve_reserved(self._search, self._hierarchy, self._demands, self._reservations, self._steps)
            search.open_cycle()
            self._demands.wake(())
            if self.settings.when_head_does_not_fit == "freeze":
                # Who was passed over because no agent could ever hold its unit may be a head that freezes by now.
                self._demands.wake_all()
        while self._demands.wake_some(self.counters, self._bounds.examined_max):
            if not search.is_waking or self._bounds.effort >= self._bounds.effort_max:
                return not search.is_waking
            self._demands.wake(search.wake_some())
        return False

    def _book(self, now_ms: int) -> list[Grant]:
        self.counters.decisions += len(self._steps)
        grants = book(merge(self._steps, self.settings.units_per_grant_max), self._renewal.by_index)
        self.decisions.add(grants, now_ms, self.settings.policy)
        return grants
