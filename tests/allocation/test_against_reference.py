"""Random histories: the allocator and the slow reference must agree on every unit, and every book must balance."""

from dataclasses import replace

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import AllocationSettings
from fairlead_master.allocation.measured import INTERVAL_MS, UseEstimate
from fairlead_master.allocation.settings import DEMANDS
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role, TaskId
from fairlead_proto.resources import ResourceKinds, Vector, add, fits, scale
from fairlead_proto.tasks import Constraint, DemandClass, Operator
from tests.allocation.reference import BALANCING, Held, Reference, ReferenceAgent

KINDS = ResourceKinds()
TOTALS: list[Vector] = [(4000, 8, 0, 0), (8000, 4, 0, 0), (8000, 16, 0, 1000), (2000, 2, 10, 0)]
UNITS: list[Vector] = [
    (1000, 1, 0, 0),
    (1000, 4, 0, 0),
    (3000, 1, 0, 0),
    (500, 0, 1, 0),
    (6000, 3, 0, 0),
    (0, 1, 0, 1000),
]
CONSTRAINTS: list[tuple[Constraint, ...]] = [
    (),
    (),
    (Constraint("rack", Operator.EQUALS, ("a",)),),
    (Constraint("rack", Operator.NOT_EQUALS, ("a",)), Constraint("ssd", Operator.EXISTS)),
]
ATTRIBUTES: list[dict[str, str]] = [{"rack": "a"}, {"rack": "b", "ssd": "1"}, {}]
WEIGHTS = [
    *(Weight(), Weight(2.0), Weight(0.5), Weight(0.3), Weight(0.2), Weight(1 / 3)),
    *(Weight(1.0, {0: 4.0}), Weight(3.0, {1: 0.5}), Weight(0.7, {1: 0.35})),
]
POLICIES = ["drf", "asset", "max-min", "max-min:mem", "slots:1", "slots:3", "fifo"]
ROLES = [Role(name) for name in ("r1", "r2", "r3", "r1/a", "r1/b", "r2/c", "r1/a/x", "r1/a/y")]
CLASS_IDS = [ClassId("x"), ClassId("y"), ClassId("z")]
PLACEMENTS = ["align", "pack", "spread", "least-loaded", "random", "random:7", "heartbeat", "heartbeat:7"]
NEVER_MS = 10**9

index = st.integers(0, 50)


class AllocatorHistory(RuleBasedStateMachine):
    """Facts in any order the master could tell them in, and cycles between them."""

    window = 32  # Half of it is more than there are agents, so that every agent that fits is compared.
    reservation_after_ms = NEVER_MS
    reference_type = Reference

    @initialize(
        policy=st.sampled_from(POLICIES),
        demand=st.sampled_from(["declared", *DEMANDS]),
        mode=st.sampled_from(["skip", "skip", "freeze"]),
    )
    def start(self, policy: str, demand: str, mode: str) -> None:
        self.settings = AllocationSettings(
            policy=policy,
            demand=demand,
            when_head_does_not_fit=mode,
            reservation_after_ms=self.reservation_after_ms,
            units_per_grant_max=3,
        )
        self.allocator = Allocator(KINDS, self.settings, window=self.window)
        self.reference = self.reference_type(KINDS.zero, self.settings)
        self.count = 0
        for _ in range(2):
            self.add_agent(self.count, 0, True)
            self.add_framework(self.count)

    def _agent(self, choice: int) -> ReferenceAgent:
        agents = list(self.reference.agents.values())
        return agents[choice % len(agents)]

    def _framework_id(self, choice: int) -> FrameworkId:
        names = list(self.reference.frameworks)
        return names[choice % len(names)]

    def _offers(self) -> list[Held]:
        return [held for held in self.reference.held if held.class_id is not None]

    def _tasks(self) -> list[Held]:
        return [held for held in self.reference.held if held.class_id is None]

    @precondition(lambda self: len(self.reference.agents) < 8)
    @rule(total=index, attributes=index, active=st.booleans())
    def add_agent(self, total: int, attributes: int, active: bool) -> None:
        self.count += 1
        agent = ReferenceAgent(
            AgentId(f"a{self.count}"), TOTALS[total % len(TOTALS)], ATTRIBUTES[attributes % len(ATTRIBUTES)]
        )
        self.reference.add_agent(agent)
        self.allocator.add_agent(agent.agent_id, agent.total, agent.attributes)
        self._activate(agent, active)

    def _activate(self, agent: ReferenceAgent, active: bool) -> None:
        agent.active = active
        self.allocator.set_agent_active(agent.agent_id, active)

    @precondition(lambda self: self.reference.agents)
    @rule(choice=index, active=st.booleans())
    def activate_or_not(self, choice: int, active: bool) -> None:
        self._activate(self._agent(choice), active)

    @precondition(lambda self: self.reference.agents)
    @rule(choice=index, total=index, attributes=index)
    def update_agent(self, choice: int, total: int, attributes: int) -> None:
        agent = self._agent(choice)
        agent.total, agent.attributes = TOTALS[total % len(TOTALS)], ATTRIBUTES[attributes % len(ATTRIBUTES)]
        self.allocator.update_agent(agent.agent_id, agent.total, agent.attributes)

    @precondition(lambda self: self.reference.agents)
    @rule(choice=index)
    def lose_agent(self, choice: int) -> None:
        agent = self._agent(choice)
        for held in [held for held in self.reference.held if held.agent_id == agent.agent_id]:
            self._end(held, [])
        del self.reference.agents[agent.agent_id]
        self.allocator.remove_agent(agent.agent_id)

    def _end(self, held: Held, launched: list[Vector]) -> None:
        if held.class_id is None:
            self.reference.held.remove(held)
            self.allocator.release(held.framework_id, held.agent_id, held.unit)
            return
        self.reference.end_offer(held, launched)
        if launched:
            self.allocator.settle(
                held.framework_id, held.agent_id, held.class_id, held.unit, held.units, launched
            )
        else:
            self.allocator.take_back(held.framework_id, held.agent_id, held.class_id, held.unit, held.units)

    @precondition(lambda self: len(self.reference.frameworks) < 6)
    @rule(role=index)
    def add_framework(self, role: int) -> None:
        self.count += 1
        framework_id = FrameworkId(f"f{self.count}")
        self.reference.add_framework(framework_id, ROLES[role % len(ROLES)])
        self.allocator.add_framework(framework_id, ROLES[role % len(ROLES)])

    @precondition(lambda self: self.reference.frameworks)
    @rule(choice=index)
    def remove_framework(self, choice: int) -> None:
        framework_id = self._framework_id(choice)
        for held in [held for held in self.reference.held if held.framework_id == framework_id]:
            self._end(held, [])
        self.reference.remove_framework(framework_id)
        self.reference.estimates.pop(framework_id, None)
        self.allocator.remove_framework(framework_id)

    @rule(role=st.sampled_from(ROLES), weight=st.sampled_from(WEIGHTS))
    def set_weight(self, role: Role, weight: Weight) -> None:
        self.reference.weights[role] = weight
        self.allocator.set_weight(role, weight)

    @precondition(lambda self: self.reference.frameworks)
    @rule(
        choice=index,
        shapes=st.lists(st.tuples(index, index, st.integers(0, 6)), max_size=3),
        lift=st.booleans(),
    )
    def set_demand(self, choice: int, shapes: list[tuple[int, int, int]], lift: bool) -> None:
        classes = [
            DemandClass(
                class_id=CLASS_IDS[place],
                unit=UNITS[unit % len(UNITS)],
                units=units,
                constraints=CONSTRAINTS[constraints % len(CONSTRAINTS)],
            )
            for place, (unit, constraints, units) in enumerate(shapes)
        ]
        framework_id = self._framework_id(choice)
        self.reference.set_demand(framework_id, classes, lift=lift)
        self.allocator.set_demand(framework_id, classes, self.reference.now_ms, lift=lift)

    @precondition(lambda self: self.reference.frameworks and self.reference.agents)
    @rule(choice=index, agent=index, unit=st.sampled_from(UNITS))
    def recover_task(self, choice: int, agent: int, unit: Vector) -> None:
        held = Held(self._framework_id(choice), self._agent(agent).agent_id, None, unit, 1)
        self.reference.held.append(held)
        self.allocator.charge(held.framework_id, held.agent_id, unit)

    @precondition(lambda self: self._offers())
    @rule(choice=index, tasks=st.lists(st.sampled_from(["same", "same", "half"]), max_size=4))
    def accept(self, choice: int, tasks: list[str]) -> None:
        offer = self._offers()[choice % len(self._offers())]
        launched: list[Vector] = []
        used = KINDS.zero
        for kind in tasks[: offer.units]:
            vector = offer.unit if kind == "same" else tuple(amount // 2 for amount in offer.unit)
            used = add(used, vector)
            if fits(used, scale(offer.unit, offer.units)):
                launched.append(vector)
        self._end(offer, launched)

    @precondition(lambda self: self._offers())
    @rule(
        choice=index,
        scope=st.sampled_from(["none", "agent", "agent", "everywhere"]),
        wait_ms=st.integers(1, 50),
    )
    def decline(self, choice: int, scope: str, wait_ms: int) -> None:
        offer = self._offers()[choice % len(self._offers())]
        assert offer.class_id is not None
        self._end(offer, [])
        if scope == "none":
            return
        agent_id = offer.agent_id if scope == "agent" else None
        until_ms = self.reference.now_ms + wait_ms
        framework = self.reference.frameworks[offer.framework_id]
        if offer.class_id in [wanted.class_id for wanted in framework.classes]:
            key = (offer.class_id, agent_id)
            framework.declined[key] = max(until_ms, framework.declined.get(key, 0))
        self.allocator.refuse(offer.framework_id, offer.class_id, agent_id, until_ms)

    @precondition(lambda self: self._tasks())
    @rule(choice=index)
    def end_task(self, choice: int) -> None:
        self._end(self._tasks()[choice % len(self._tasks())], [])

    @rule(wait_ms=st.integers(1, 40))
    def pass_time(self, wait_ms: int) -> None:
        self.reference.now_ms += wait_ms

    @precondition(lambda self: self.reference.frameworks)
    @rule(choice=index, used=st.tuples(index, index))
    def measure(self, choice: int, used: tuple[int, int]) -> None:
        """Three tasks were seen to use so many fiftieths of the CPUs and of the memory they declare."""
        framework_id = self._framework_id(choice)
        estimate = self.reference.estimates.setdefault(framework_id, UseEstimate(4))
        for number in (1, 2, 3, 3):
            sample = (TaskId(f"t{number}"), (50, 50, 50, 50), (*used, None, 50))
            self.allocator.sample(framework_id, *sample, self.reference.now_ms)
            estimate.sample(*sample)
            estimate.look(self.reference.now_ms)
            if number == 3:
                self.reference.now_ms += INTERVAL_MS

    @rule(
        policy=st.sampled_from(POLICIES),
        demand=st.sampled_from(DEMANDS),
        placement=st.sampled_from(PLACEMENTS),
        mode=st.sampled_from(["skip", "freeze"]),
    )
    def configure(self, policy: str, demand: str, placement: str, mode: str) -> None:
        self.settings = replace(
            self.settings, policy=policy, demand=demand, placement=placement, when_head_does_not_fit=mode
        )
        self.reference.configure(self.settings)
        self.allocator.configure(self.settings, self.reference.now_ms)

    @rule()
    def cycle(self) -> None:
        now_ms = self.reference.now_ms
        deadline_ms = self.allocator.next_deadline_ms()
        nothing_to_do = not self.allocator.needs_cycle and (deadline_ms is None or deadline_ms > now_ms)
        self.reference.advance(now_ms)
        grants = self.allocator.cycle(now_ms)
        steps = self.allocator.last_steps()
        assert not (nothing_to_do and grants)

        for step in steps:
            self._compare_step(step)
            self.reference.grant(step)
        self._compare_end()

        assert sum(grant.units for grant in grants) == len(steps)
        for grant in grants:
            assert 0 < grant.units <= self.settings.units_per_grant_max
            offer = self.reference.merge(grant.framework_id, grant.class_id, grant.agent_id, grant.units)
            assert offer.unit == grant.unit
        assert not self.allocator.needs_cycle

    def _compare_step(self, step: tuple[FrameworkId, ClassId, AgentId]) -> None:
        expected = self.reference.next_step()
        assert step == expected, f"served {step}, expected {expected}"

    def _compare_end(self) -> None:
        assert self.reference.next_step() is None

    @invariant()
    def books_agree(self) -> None:
        if not hasattr(self, "allocator"):
            return
        self.allocator.check()
        reference = self.reference
        assert self.allocator.capacity == reference.capacity
        for agent_id in reference.agents:
            assert self.allocator.free(agent_id) == reference.free(agent_id)
            assert self.allocator.agent_books(agent_id).tasks == reference.tasks_on(agent_id)
        for framework in reference.frameworks.values():
            pending = {wanted.class_id: reference.pending(framework, wanted) for wanted in framework.classes}
            assert self.allocator.pending(framework.framework_id) == pending
        for row in self.allocator.role_report():
            members = reference.members(row.role)
            assert row.charged == reference.declared(members)
            # What a group counts for depends on the unit it is given next; the steps compare that.
            if self.settings.policy != "fifo" and (
                len(members) == 1 or self.settings.policy not in BALANCING
            ):
                assert row.key == float(reference.key(row.role))


class NarrowWindowHistory(AllocatorHistory):
    """With a window smaller than the cluster the agent may be another one, but it must fit, and who is served may not."""

    window = 2

    def _compare_step(self, step: tuple[FrameworkId, ClassId, AgentId]) -> None:
        expected = self.reference.next_step()
        assert expected is not None
        assert step[:2] == expected[:2]
        framework = self.reference.frameworks[step[0]]
        wanted = next(wanted for wanted in framework.classes if wanted.class_id == step[1])
        assert step[2] in [agent.agent_id for agent in self.reference.candidates(framework, wanted)]


class ReservingHistory(AllocatorHistory):
    """With reservations within reach the order may differ, and agents may be kept; all else must hold."""

    reservation_after_ms = 30

    def _compare_step(self, step: tuple[FrameworkId, ClassId, AgentId]) -> None:
        framework = self.reference.frameworks[step[0]]
        wanted = next(wanted for wanted in framework.classes if wanted.class_id == step[1])
        assert self.reference.is_open(framework, wanted)
        assert step[2] in [agent.agent_id for agent in self.reference.candidates(framework, wanted)]

    def _compare_end(self) -> None:
        """What still fits fits only on agents kept for others, or waits behind a frozen head."""
        if self.settings.when_head_does_not_fit == "freeze":
            return
        for framework in self.reference.frameworks.values():
            for wanted in framework.classes:
                if self.reference.is_open(framework, wanted):
                    for agent in self.reference.candidates(framework, wanted):
                        kept_for = self.allocator.agent_books(agent.agent_id).reserved_for
                        assert kept_for is not None


HISTORY = hypothesis_settings(max_examples=60, stateful_step_count=40)

TestAllocatorHistory = AllocatorHistory.TestCase
TestAllocatorHistory.settings = HISTORY
TestNarrowWindowHistory = NarrowWindowHistory.TestCase
TestNarrowWindowHistory.settings = HISTORY
TestReservingHistory = ReservingHistory.TestCase
TestReservingHistory.settings = HISTORY
