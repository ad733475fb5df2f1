"""Random histories of a master against a reference that keeps no books: it adds up what was launched and what ended."""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, precondition, rule

from fairlead_master.core import actions, events
from fairlead_proto.codes import DeclineScope
from fairlead_proto.framework_events import ForwardStatuses, OfferTerms, RescindOffers, SendOffers
from fairlead_proto.ids import AgentId, FrameworkId, OfferId, TaskId
from fairlead_proto.orders import LaunchTasks
from fairlead_proto.resources import Vector, fits, scale, subtract, sum_vectors
from fairlead_proto.task_state import TaskState
from tests.builders.master import KINDS, Cluster, a_class, a_running, a_spec, a_status, resources

UNITS = [resources(cpus=1, gib=1), resources(cpus=2, gib=1), resources(cpus=0.5, gib=3)]


@dataclass(slots=True)
class Reference:
    """Who holds what, the slow and obvious way: lists of facts, added up whenever asked."""

    launched: dict[tuple[FrameworkId, TaskId], tuple[AgentId, Vector]] = field(default_factory=dict)
    offered: dict[OfferId, tuple[FrameworkId, OfferTerms]] = field(default_factory=dict)

    def held(self, agent_id: AgentId) -> Vector:
        """Everything launched on the agent that has not ended."""
        return sum_vectors((unit for agent, unit in self.launched.values() if agent == agent_id), KINDS.zero)

    def promised(self, agent_id: AgentId) -> Vector:
        """Everything offered on the agent that was not answered."""
        return sum_vectors(
            (
                scale(terms.unit, terms.units)
                for _, terms in self.offered.values()
                if terms.agent_id == agent_id
            ),
            KINDS.zero,
        )


class Books(RuleBasedStateMachine):
    """Two agents, two frameworks, and whatever they may do to one another, in any order."""

    tasks = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.reference = Reference()
        self.totals = {AgentId("a1-1"): resources(4, 8), AgentId("a1-2"): resources(8, 4)}
        self.sessions = {
            agent_id: self.cluster.new_agent(cpus=total[0] / 1000, gib=total[1] / 2**30)
            for agent_id, total in self.totals.items()
        }
        self.frameworks = [self.cluster.new_framework(role=role) for role in ("x", "y")]
        self.made = 0

    def follow(self, found: list[actions.Action]) -> None:
        """Take note of offers that were made or ended, and of launches the master gave up."""
        for action in found:
            if isinstance(action, SendOffers):
                owner = next(identity for session, identity in self.frameworks if session == action.session)
                for terms in action.offers:
                    self.reference.offered[terms.offer_id] = (owner, terms)
            elif isinstance(action, RescindOffers):
                for offer_id in action.offer_ids:
                    del self.reference.offered[offer_id]
            elif isinstance(action, ForwardStatuses):
                for status in action.statuses:
                    assert status.state is TaskState.DROPPED, "no agent said anything"
                    del self.reference.launched[status.key]

    @rule(which=st.integers(0, 1), unit=st.sampled_from(UNITS), units=st.integers(0, 6))
    def demand(self, which: int, unit: Vector, units: int) -> None:
        """A framework wants something else from now on."""
        self.cluster.demand(self.frameworks[which][0], a_class(unit=unit, units=units))

    @rule(milliseconds=st.sampled_from([1, 4, 1_000, 6_000]))
    def wait(self, milliseconds: int) -> None:
        """Time passes: cycles, leases, filters."""
        for agent_id, session in self.sessions.items():
            if self.cluster.master.agents[agent_id].session is not None:
                self.cluster.step(events.AgentBeat(session=session, used=()))
        self.follow(self.cluster.wait(milliseconds))

    @precondition(lambda self: self.reference.offered)
    @rule(target=tasks, data=st.data())
    def accept(self, data: st.DataObject) -> object:
        """A framework takes an offer with some tasks, too many or too large ones among them."""
        offer_id = data.draw(st.sampled_from(sorted(self.reference.offered)))
        owner, terms = self.reference.offered.pop(offer_id)
        session = next(session for session, identity in self.frameworks if identity == owner)
        specs = []
        for _ in range(data.draw(st.integers(0, terms.units + 1))):
            self.made += 1
            unit = data.draw(st.sampled_from([terms.unit, terms.unit, *UNITS]))
            specs.append(a_spec(f"t{self.made}", unit=unit))
        room, taken = scale(terms.unit, terms.units), 0
        expected = []
        for spec in specs:
            if taken < terms.units and fits(spec.resources, room):
                room, taken = subtract(room, spec.resources), taken + 1
                expected.append(spec)

        found = self.cluster.accept(session, offer_id, *specs)

        launched = [spec for action in found if isinstance(action, LaunchTasks) for spec in action.tasks]
        assert launched == expected
        for spec in launched:
            self.reference.launched[owner, spec.task_id] = (terms.agent_id, spec.resources)
        return multiple(*((owner, spec.task_id) for spec in launched))

    @precondition(lambda self: self.reference.offered)
    @rule(data=st.data(), scope=st.sampled_from(DeclineScope))
    def decline(self, data: st.DataObject, scope: DeclineScope) -> None:
        """A framework gives an offer back."""
        offer_id = data.draw(st.sampled_from(sorted(self.reference.offered)))
        owner, _ = self.reference.offered.pop(offer_id)
        session = next(session for session, identity in self.frameworks if identity == owner)
        self.cluster.decline(session, offer_id, scope=scope, ttl_ms=500)

    @rule(key=tasks, state=st.sampled_from([TaskState.RUNNING, TaskState.FINISHED, TaskState.FAILED]))
    def report(self, key: tuple[FrameworkId, TaskId], state: TaskState) -> None:
        """An agent reports on a task, perhaps on one that is over."""
        if key not in self.reference.launched:
            return
        agent_id, _ = self.reference.launched[key]
        if self.cluster.master.agents[agent_id].session is None:
            return
        task = self.cluster.master.frameworks[key[0]].tasks[key[1]]
        self.cluster.report(
            self.sessions[agent_id], a_status(*key, state, task.sequence + 1, agent_id=agent_id)
        )
        if state is not TaskState.RUNNING:
            del self.reference.launched[key]

    @rule(agent_id=st.sampled_from([AgentId("a1-1"), AgentId("a1-2")]), keeps=st.booleans())
    def reconnect(self, agent_id: AgentId, keeps: bool) -> None:
        """An agent loses its session and comes back, with its tasks or without them."""
        if self.cluster.master.agents[agent_id].session is not None:
            self.follow(self.cluster.agent_leaves(self.sessions[agent_id]))
        held = {key: unit for key, (agent, unit) in self.reference.launched.items() if agent == agent_id}
        total = self.totals[agent_id]
        self.cluster.agent(
            agent_id=agent_id,
            cpus=total[0] / 1000,
            gib=total[1] / 2**30,
            tasks=[a_running(*key, sequence=1, unit=unit) for key, unit in held.items()] if keeps else [],
        )
        self.sessions[agent_id] = self.cluster.session
        if not keeps:
            for key in held:
                del self.reference.launched[key]

    @rule(which=st.integers(0, 1))
    def restart_framework(self, which: int) -> None:
        """A framework loses its session, and with it its offers, and comes back."""
        session, identity = self.frameworks[which]
        self.cluster.framework_leaves(session)
        self.reference.offered = {
            offer_id: entry for offer_id, entry in self.reference.offered.items() if entry[0] != identity
        }
        self.cluster.framework(framework_id=identity, role=("x", "y")[which])
        self.frameworks[which] = (self.cluster.session, identity)

    @invariant()
    def books_agree(self) -> None:
        """The allocator's increments come to what the lists add up to, on each agent and for each framework."""
        allocator = self.cluster.master.allocator
        for agent_id, total in self.totals.items():
            held, promised = self.reference.held(agent_id), self.reference.promised(agent_id)
            assert allocator.free(agent_id) == subtract(subtract(total, held), promised)
            assert min(allocator.free(agent_id)) >= 0
        assert set(self.reference.offered) == set(self.cluster.master.offers)
        live = {task.key for agent in self.cluster.master.agents.values() for task in agent.tasks.values()}
        assert live == set(self.reference.launched)


Books.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestBooks = Books.TestCase
