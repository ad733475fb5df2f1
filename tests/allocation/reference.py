"""The slow, obvious allocator: it keeps facts only, and computes everything else again whenever it is asked.

It does not choose by itself but says what a unit's choice must be, given what happened before; a test walks through the
steps of the real allocator and compares each. It knows no reservations: tests that compare keep them out of reach.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from fairlead_master.allocation.api import AllocationSettings, Weight
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import Vector, fits, scale, subtract, sum_vectors
from fairlead_proto.tasks import DemandClass

Step = tuple[FrameworkId, ClassId, AgentId]


@dataclass
class ReferenceAgent:
    agent_id: AgentId
    total: Vector
    attributes: dict[str, str]
    active: bool = False


@dataclass
class ReferenceFramework:
    framework_id: FrameworkId
    role: Role
    classes: list[DemandClass] = field(default_factory=list)
    accepted: dict[ClassId, int] = field(default_factory=dict)
    declined: dict[tuple[ClassId, AgentId | None], int] = field(default_factory=dict)
    began: int = 0


@dataclass
class Held:
    """An offer, or a task if ``class_id`` is None."""

    framework_id: FrameworkId
    agent_id: AgentId
    class_id: ClassId | None
    unit: Vector
    units: int


class Reference:
    def __init__(self, zero: Vector, settings: AllocationSettings) -> None:
        self.zero = zero
        self.settings = settings
        self.now_ms = 0
        self.agents: dict[AgentId, ReferenceAgent] = {}
        self.frameworks: dict[FrameworkId, ReferenceFramework] = {}
        self.role_order: list[Role] = []
        self.role_began: dict[Role, int] = {}
        self.weights: dict[Role, Weight] = {}
        self.held: list[Held] = []
        self.begun = 0

    # What is, computed from the facts.

    @property
    def slots(self) -> int | None:
        return int(self.settings.policy.split(":")[1]) if self.settings.policy.startswith("slots:") else None

    @property
    def capacity(self) -> Vector:
        return sum_vectors((a.total for a in self.agents.values() if a.active), self.zero)

    def free(self, agent_id: AgentId) -> Vector:
        held = (scale(h.unit, h.units) for h in self.held if h.agent_id == agent_id)
        return subtract(self.agents[agent_id].total, sum_vectors(held, self.zero))

    def tasks_on(self, agent_id: AgentId) -> int:
        return sum(h.units for h in self.held if h.agent_id == agent_id)

    def charged(self, members: list[FrameworkId]) -> Vector:
        return sum_vectors(
            (scale(h.unit, h.units) for h in self.held if h.framework_id in members), self.zero
        )

    def units(self, members: list[FrameworkId]) -> int:
        return sum(h.units for h in self.held if h.framework_id in members)

    def members(self, role: Role) -> list[FrameworkId]:
        return [f.framework_id for f in self.frameworks.values() if f.role == role]

    def target(self, framework: ReferenceFramework, wanted: DemandClass) -> int:
        return max(0, wanted.units - framework.accepted.get(wanted.class_id, 0))

    def pending(self, framework: ReferenceFramework, wanted: DemandClass) -> int:
        offered = sum(
            h.units
            for h in self.held
            if h.framework_id == framework.framework_id and h.class_id == wanted.class_id
        )
        return max(0, self.target(framework, wanted) - offered)

    def key(self, members: list[FrameworkId], weight: Weight, began: int) -> float:
        if self.settings.policy == "fifo":
            return float(began)
        if self.slots is not None or self.settings.policy == "max-min":
            return self.units(members) / weight.default
        charged = self.charged(members)
        if self.settings.policy == "asset":
            return float(sum(self.exact_shares(charged, weight)))
        if self.settings.policy == "max-min:mem":
            used, total = charged[1], self.capacity[1]
            if used and total:
                return used / (total * weight.of(1))
            return -1 / (1 + self.units(members) / weight.default)
        shares = [
            used / (total * weight.of(place))
            for place, (used, total) in enumerate(zip(charged, self.capacity, strict=True))
            if total > 0
        ]
        return max(shares, default=0.0)

    def exact_shares(self, charged: Vector, weight: Weight) -> Iterator[Fraction]:
        for place, (used, total) in enumerate(zip(charged, self.capacity, strict=True)):
            if total > 0:
                yield Fraction(used, total) / Fraction(weight.of(place))

    def order(self) -> Iterator[ReferenceFramework]:
        """Frameworks that want something, in the order in which they are served."""
        roles = [r for r in self.role_order if any(self.wants(self.frameworks[f]) for f in self.members(r))]
        roles.sort(
            key=lambda r: self.key(self.members(r), self.weights.get(r, Weight()), self.role_began.get(r, 0))
        )
        for role in roles:
            members = [self.frameworks[f] for f in self.members(role)]
            members.sort(key=lambda f: self.key([f.framework_id], Weight(), f.began))
            yield from (f for f in members if self.wants(f))

    def is_open(self, framework: ReferenceFramework, wanted: DemandClass) -> bool:
        until = framework.declined.get((wanted.class_id, None))
        return self.pending(framework, wanted) > 0 and until is None

    def wants(self, framework: ReferenceFramework) -> bool:
        return any(self.is_open(framework, wanted) for wanted in framework.classes)

    def eligible(self, wanted: DemandClass) -> list[ReferenceAgent]:
        return [
            agent
            for agent in self.agents.values()
            if agent.active
            and fits(wanted.unit, agent.total)
            and all(constraint.holds(agent.attributes) for constraint in wanted.constraints)
        ]

    def has_room(self, agent: ReferenceAgent, unit: Vector) -> bool:
        if self.slots is not None:
            return self.tasks_on(agent.agent_id) < self.slots
        free = self.free(agent.agent_id)
        return all(want <= have for want, have in zip(unit, free, strict=True) if want)

    def candidates(self, framework: ReferenceFramework, wanted: DemandClass) -> list[ReferenceAgent]:
        return [
            agent
            for agent in self.eligible(wanted)
            if self.has_room(agent, wanted.unit)
            and (wanted.class_id, agent.agent_id) not in framework.declined
        ]

    def best(self, unit: Vector, candidates: list[ReferenceAgent]) -> AgentId:
        if self.slots is None:
            need = unit
            sizes = [agent.total for agent in self.agents.values()]
            free = {agent.agent_id: self.free(agent.agent_id) for agent in candidates}
        else:
            need, sizes = (1,), [(self.slots,)]
            free = {a.agent_id: (self.slots - self.tasks_on(a.agent_id),) for a in candidates}
        largest = [max(column) for column in zip(*sizes, strict=True)]

        def score(agent: ReferenceAgent) -> float:
            total = 0.0
            for want, size, have in zip(need, largest, free[agent.agent_id], strict=True):
                if size > 0 and self.settings.placement == "align" and want:
                    total += want / size / size * have
                elif size > 0 and self.settings.placement != "align":
                    total += 1 / size * have
            return -total if self.settings.placement == "pack" else total

        return max(candidates, key=score).agent_id

    def next_step(self) -> Step | None:
        """Who is served next and where; None if nothing more is to be granted now."""
        for framework in self.order():
            for wanted in framework.classes:
                if not self.is_open(framework, wanted):
                    continue
                candidates = self.candidates(framework, wanted)
                if candidates:
                    return framework.framework_id, wanted.class_id, self.best(wanted.unit, candidates)
            if self.settings.when_head_does_not_fit == "freeze" and self.freezes(framework):
                return None
        return None

    def freezes(self, framework: ReferenceFramework) -> bool:
        """Asked when nothing it wants fits: whether some class is waited for, and not because agents were declined."""
        declined = {class_id for class_id, agent_id in framework.declined if agent_id is not None}
        return any(
            self.is_open(framework, wanted) and wanted.class_id not in declined and self.eligible(wanted)
            for wanted in framework.classes
        )

    # What happens.

    def note_waiting(self) -> None:
        """After any fact: who began to wait, in the order of frameworks; a test changes one framework at a time."""
        for framework in self.frameworks.values():
            waits = any(self.target(framework, wanted) > 0 for wanted in framework.classes)
            if waits and not framework.began:
                self.begun += 1
                framework.began = self.begun
                others = [f for f in self.members(framework.role) if f != framework.framework_id]
                if not any(self.frameworks[other].began for other in others):
                    self.role_began[framework.role] = self.begun
            elif not waits:
                framework.began = 0

    def advance(self, now_ms: int) -> None:
        self.now_ms = now_ms
        for framework in self.frameworks.values():
            framework.declined = {key: until for key, until in framework.declined.items() if until > now_ms}

    def add_framework(self, framework_id: FrameworkId, role: Role) -> None:
        if not self.members(role):
            self.role_order.append(role)
        self.frameworks[framework_id] = ReferenceFramework(framework_id, role)

    def remove_framework(self, framework_id: FrameworkId) -> None:
        role = self.frameworks.pop(framework_id).role
        if not self.members(role):
            self.role_order.remove(role)
            self.role_began.pop(role, None)

    def set_demand(self, framework_id: FrameworkId, classes: list[DemandClass]) -> None:
        framework = self.frameworks[framework_id]
        framework.classes = classes
        framework.accepted = {}
        framework.declined = {}
        self.note_waiting()

    def grant(self, step: Step) -> None:
        framework_id, class_id, agent_id = step
        wanted = next(w for w in self.frameworks[framework_id].classes if w.class_id == class_id)
        self.held.append(Held(framework_id, agent_id, class_id, wanted.unit, 1))

    def merge(self, framework_id: FrameworkId, class_id: ClassId, agent_id: AgentId, units: int) -> Held:
        """Turn single granted units into the offer the allocator's grant says they are."""
        parts = [
            h
            for h in self.held
            if (h.framework_id, h.class_id, h.agent_id, h.units) == (framework_id, class_id, agent_id, 1)
            and getattr(h, "is_new", True)
        ]
        chosen = parts[-units:]
        for part in chosen:
            self.held.remove(part)
        offer = Held(framework_id, agent_id, class_id, chosen[0].unit, units)
        self.held.append(offer)
        return offer

    def end_offer(self, offer: Held, launched: list[Vector]) -> None:
        self.held.remove(offer)
        for vector in launched:
            self.held.append(Held(offer.framework_id, offer.agent_id, None, vector, 1))
        framework = self.frameworks[offer.framework_id]
        assert offer.class_id is not None
        for wanted in framework.classes:
            if wanted.class_id == offer.class_id:
                accepted = framework.accepted.get(offer.class_id, 0) + min(len(launched), offer.units)
                framework.accepted[offer.class_id] = min(accepted, wanted.units)
        self.note_waiting()
