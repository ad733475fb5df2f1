"""The slow, obvious allocator: it keeps facts only, and computes everything else again whenever it is asked.

It does not choose by itself but says what a unit's choice must be, given what happened before; a test walks through the
steps of the real allocator and compares each. It knows no reservations: tests that compare keep them out of reach.

Keys are fractions, of weights as fractions (``Weight.ratio``), so that equal ones are equal.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from fairlead_master.allocation import turns
from fairlead_master.allocation.api import AllocationSettings
from fairlead_master.allocation.measured import FINENESS, UseEstimate
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import Vector, fits, scale, subtract, sum_vectors
from fairlead_proto.tasks import DemandClass

Step = tuple[FrameworkId, ClassId, AgentId]

BALANCING = ("drf", "asset", "max-min")
"""Policies under which a group counts for its level."""


def ancestors(role: Role) -> list[str]:
    """The role and those above it, upwards: ``a/b``, ``a``."""
    words = role.split("/")
    return ["/".join(words[:count]) for count in range(len(words), 0, -1)]


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
        self.beside: dict[str, list[str]] = {}
        """Names of what is ranked below a role, or at the top (""), by arrival. ``eng/.`` are eng's own frameworks."""
        self.began: dict[str, int] = {}
        """The same names to their number in the queue."""
        self.weights: dict[Role, Weight] = {}
        self.held: list[Held] = []
        self.estimates: dict[FrameworkId, UseEstimate] = {}
        self.places: list[AgentId] = []
        """Agents in the order in which they were added, or were there when the settings changed; those that left included."""
        self.decisions = 0
        """Since the settings changed."""
        self.last: AgentId | None = None
        """Who got a unit last, of these."""
        self.begun = 0

    # What is, computed from the facts.

    @property
    def slots(self) -> int | None:
        return int(self.settings.policy.split(":")[1]) if self.settings.policy.startswith("slots:") else None

    @property
    def capacity(self) -> Vector:
        return sum_vectors((a.total for a in self.agents.values() if a.active), self.zero)

    @property
    def counted_capacity(self) -> Vector:
        return scale(self.capacity, FINENESS) if self.settings.demand == "measured" else self.capacity

    def as_counted(self, framework_id: FrameworkId, vector: Vector) -> Vector:
        if self.settings.demand == "declared":
            return vector
        estimate = self.estimates.get(framework_id, UseEstimate(len(vector)))
        return tuple(amount * factor for amount, factor in zip(vector, estimate.factors, strict=True))

    def free(self, agent_id: AgentId) -> Vector:
        held = (scale(h.unit, h.units) for h in self.held if h.agent_id == agent_id)
        return subtract(self.agents[agent_id].total, sum_vectors(held, self.zero))

    def tasks_on(self, agent_id: AgentId) -> int:
        return sum(h.units for h in self.held if h.agent_id == agent_id)

    def declared(self, members: list[FrameworkId]) -> Vector:
        return sum_vectors(
            (scale(h.unit, h.units) for h in self.held if h.framework_id in members), self.zero
        )

    def charged(self, members: list[FrameworkId]) -> Vector:
        """As policies count it."""
        return sum_vectors((self.as_counted(f, self.declared([f])) for f in members), self.zero)

    def units(self, members: list[FrameworkId]) -> int:
        return sum(h.units for h in self.held if h.framework_id in members)

    def members(self, name: str) -> list[FrameworkId]:
        """Frameworks of a role and of those below it, or of ``eng/.`` alone, or of a framework itself."""
        if name.endswith("/."):
            return [f.framework_id for f in self.frameworks.values() if f.role == name[:-2]]
        return [
            f.framework_id
            for f in self.frameworks.values()
            if name in {f.framework_id, f.role} or f.role.startswith(f"{name}/")
        ]

    def target(self, framework: ReferenceFramework, wanted: DemandClass) -> int:
        return max(0, wanted.units - framework.accepted.get(wanted.class_id, 0))

    def pending(self, framework: ReferenceFramework, wanted: DemandClass) -> int:
        offered = sum(
            h.units
            for h in self.held
            if h.framework_id == framework.framework_id and h.class_id == wanted.class_id
        )
        return max(0, self.target(framework, wanted) - offered)

    def key(self, name: str) -> Fraction:
        """Of a framework, a role, or ``eng/.``, among those it is ranked with."""
        members, weight = self.members(name), self.weight(name)
        if self.settings.policy == "fifo":
            return Fraction(self.frameworks[members[0]].began if name in members else self.began.get(name, 0))
        if self.slots is not None:
            return self.units(members) / Fraction(*weight.ratio_of_all)
        if self.settings.policy == "max-min:mem":
            used, total = self.charged(members)[1], self.counted_capacity[1]
            if used and total:
                return used / (total * Fraction(*weight.ratio(1)))
            return -1 / (1 + self.units(members) / Fraction(*weight.ratio_of_all))
        return self.key_of(self.counted(name), weight)

    def key_of(self, counted: Vector, weight: Weight) -> Fraction:
        """Of an account that counts for so much, in amounts and at last units, under policies that look at nothing else."""
        if self.settings.policy == "asset":
            return sum(self.shares_of(counted[:-1], weight), Fraction(0))
        return self.level(counted, weight)

    def level(self, tally: Vector, weight: Weight) -> Fraction:
        """At which an account stands that holds so much."""
        if self.settings.policy == "max-min":
            return tally[-1] / Fraction(*weight.ratio_of_all)
        return max(self.shares_of(tally[:-1], weight), default=Fraction(0))

    def shares_of(self, counted: Vector, weight: Weight) -> list[Fraction]:
        """For its weight, of each resource there is."""
        return [
            used / (total * Fraction(*weight.ratio(place)))
            for place, (used, total) in enumerate(zip(counted, self.counted_capacity, strict=True))
            if total > 0
        ]

    # The tree: every level computed from nothing whenever it is asked.

    def below(self, name: str) -> list[str]:
        """What is ranked directly below a role, or at the top."""
        return self.beside.get(name, []) or [*self.members(f"{name}/.")]

    def weight(self, name: str) -> Weight:
        return self.weights.get(Role(name), Weight()) if name not in self.frameworks else Weight()

    def level_of(self, name: str) -> list[str]:
        """Names ranked below ``name``: none of a framework."""
        if name in self.frameworks:
            return []
        return [*self.members(name)] if name.endswith("/.") else self.below(name)

    def rivals(self, name: str) -> list[str]:
        """Names of what it is ranked with, itself included."""
        if name in self.frameworks:
            return self.level_of(f"{self.frameworks[FrameworkId(name)].role}/.")
        return self.below(name[:-2] if name.endswith("/.") else name.rpartition("/")[0])

    def next_unit(self, name: str) -> tuple[ReferenceFramework, DemandClass] | None:
        """What would be served next of a framework, a role, or all: to whom, and of which class."""
        if name in self.frameworks:
            framework = self.frameworks[FrameworkId(name)]
            wanted = self.wanted_next(framework)
            return None if wanted is None else (framework, wanted)
        first = self.first_of(name)
        return self.next_unit(first) if first else None

    def first_of(self, name: str) -> str:
        """The member of a group, or role at the top, that comes first; empty if nothing can be served."""
        able = [member for member in self.level_of(name) if self.next_unit(member)]
        return min(able, key=self.key, default="")

    def wanted_next(self, framework: ReferenceFramework) -> DemandClass | None:
        """The first class that fits somewhere; else, where the head freezes, the one it would freeze for."""
        wanted = [w for w in framework.classes if self.is_open(framework, w)]
        fitting = [w for w in wanted if self.candidates(framework, w)]
        if not fitting and self.settings.when_head_does_not_fit == "freeze":
            fitting = [w for w in wanted if self.freezes(framework, w)]
        return fitting[0] if fitting else None

    def dominant(self, unit: Vector) -> list[int]:
        total = self.counted_capacity
        shares = [want / size if size else 0.0 for want, size in zip(unit, total, strict=True)]
        return [place for place, share in enumerate(shares) if share == max(shares) > 0]

    def held_by(self, name: str) -> Vector:
        members = self.members(name)
        return (*self.charged(members), self.units(members))

    def counted(self, name: str) -> Vector:
        """What a group with something to be served counts for: amounts, and at last units."""
        held = self.held_by(name)
        if len(self.members(name)) == 1:
            return held
        following = self.first_of(name)
        unit = self.next_unit(following)
        assert unit is not None
        counted = self.counted(following)
        if len(self.level_of(name)) == 1:
            return counted
        least = self.level(counted, self.weight(following))
        parts = self.parts(name)
        claimed = self.dominant(self.as_counted(unit[0].framework_id, unit[1].unit))
        reached = min(Fraction(held[place], parts[place] or 1) for place in claimed)
        if reached < least / 2**20:
            nearest = [int(least * part / 2**20 + Fraction(1, 2)) for part in parts]
            return tuple(map(min, held, nearest))
        return tuple(min(have, int(reached * part)) for have, part in zip(held, parts, strict=True))

    def parts(self, name: str) -> Vector:
        return sum_vectors((self.part(member) for member in self.level_of(name)), (*self.zero, 0))

    def part(self, name: str) -> Vector:
        """What it would hold at level 1, in millionths (2^-20) of a unit."""
        held = self.held_by(name)
        if name not in self.frameworks and len(self.members(name)) > 1:
            held = self.parts(name)
        key = self.level(held, self.weight(name))
        return tuple(int(amount * 2**20 / key) if key else 0 for amount in held)

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
        name, _, seed = self.settings.placement.partition(":")
        if name == "random" or (name == "align" and self.slots is not None):
            return self.drawn(int(seed or 0), [agent.agent_id for agent in candidates])
        if name == "heartbeat":
            return self.next_in_turn(int(seed or 0), [agent.agent_id for agent in candidates])
        if name == "least-loaded":
            return min(candidates, key=self.load).agent_id
        return self.best_by_score(unit, candidates)

    def drawn(self, seed: int, candidates: list[AgentId]) -> AgentId:
        for number in range(turns.TRIES):
            tried = self.places[turns.mix(seed, self.decisions, -2 - number) % len(self.places)]
            if tried in candidates:
                return tried
        return min(candidates, key=lambda each: turns.mix(seed, self.decisions, self.places.index(each)))

    def next_in_turn(self, seed: int, candidates: list[AgentId]) -> AgentId:
        ring = sorted(self.places, key=lambda each: turns.mix(seed, 0, self.places.index(each)))
        start = ring.index(self.last) + 1 if self.last in ring else 0
        return next(each for each in ring[start:] + ring[:start] if each in candidates)

    def load(self, agent: ReferenceAgent) -> int:
        parts = zip(self.free(agent.agent_id), agent.total, strict=True)
        return max([(total - free) * 10**9 // total for free, total in parts if total], default=0)

    def best_by_score(self, unit: Vector, candidates: list[ReferenceAgent]) -> AgentId:
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
        found = self.next_unit("")
        if found is None:
            return None
        framework, wanted = found
        candidates = self.candidates(framework, wanted)
        if not candidates:
            return None  # The head freezes all others.
        return framework.framework_id, wanted.class_id, self.best(wanted.unit, candidates)

    def freezes(self, framework: ReferenceFramework, wanted: DemandClass) -> bool:
        """Whether an open class that fits nowhere stops all others: not if agents were declined for it."""
        declined = {class_id for class_id, agent_id in framework.declined if agent_id is not None}
        return wanted.class_id not in declined and bool(self.eligible(wanted))

    # What happens.

    def note_waiting(self) -> None:
        """After any fact: who began to wait, in the order of frameworks; a test changes one framework at a time."""
        for framework in self.frameworks.values():
            waits = any(self.target(framework, wanted) > 0 for wanted in framework.classes)
            if waits and not framework.began:
                self.begun += 1
                framework.began = self.begun
                for name in (f"{framework.role}/.", *ancestors(framework.role)):
                    others = [f for f in self.members(name) if f != framework.framework_id]
                    if not any(self.frameworks[other].began for other in others):
                        self.began[name] = self.begun
            elif not waits:
                framework.began = 0

    def advance(self, now_ms: int) -> None:
        self.now_ms = now_ms
        for framework in self.frameworks.values():
            framework.declined = {key: until for key, until in framework.declined.items() if until > now_ms}

    def add_agent(self, agent: ReferenceAgent) -> None:
        self.agents[agent.agent_id] = agent
        self.places.append(agent.agent_id)

    def configure(self, settings: AllocationSettings) -> None:
        self.settings = settings
        self.places, self.decisions, self.last = list(self.agents), 0, None

    def add_framework(self, framework_id: FrameworkId, role: Role) -> None:
        for name in reversed(ancestors(role)):
            above = name.rpartition("/")[0]
            level = self.beside.setdefault(above, [])
            if name not in level:
                if above and not level and self.members(f"{above}/."):
                    level.append(f"{above}/.")
                level.append(name)
        if self.beside.get(role) and not self.members(f"{role}/."):
            self.beside[role].append(f"{role}/.")
        self.frameworks[framework_id] = ReferenceFramework(framework_id, role)

    def remove_framework(self, framework_id: FrameworkId) -> None:
        role = self.frameworks.pop(framework_id).role
        if not self.members(f"{role}/.") and f"{role}/." in self.beside.get(role, []):
            self.beside[role].remove(f"{role}/.")
        for name in ancestors(role):
            if not self.members(name):
                above = name.rpartition("/")[0]
                self.beside[above].remove(name)
                self.began.pop(name, None)
                if above and self.beside[above] == [f"{above}/."]:
                    self.beside[above] = []

    def set_demand(self, framework_id: FrameworkId, classes: list[DemandClass], *, lift: bool = True) -> None:
        framework = self.frameworks[framework_id]
        same = {
            wanted.class_id
            for wanted in classes
            for before in framework.classes
            if (before.class_id, before.unit, before.constraints)
            == (wanted.class_id, wanted.unit, wanted.constraints)
        }
        framework.classes = classes
        framework.accepted = {}
        framework.declined = {
            key: until for key, until in framework.declined.items() if key[0] in same and not lift
        }
        self.note_waiting()

    def grant(self, step: Step) -> None:
        framework_id, class_id, agent_id = step
        wanted = next(w for w in self.frameworks[framework_id].classes if w.class_id == class_id)
        self.held.append(Held(framework_id, agent_id, class_id, wanted.unit, 1))
        self.decisions += 1
        self.last = agent_id

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
