"""Why a demand class waits: one dominant reason from a closed list, the numbers behind it, and what would help.

The reasons are asked in order of how final they are, and the first that holds is the answer. It is computed from the books at
the moment of the question; nothing is recorded for it, so it can never disagree with what the next cycle sees.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, unique

from fairlead_master.allocation.accounts import Demand, Framework
from fairlead_master.allocation.agents import Agent, Fit
from fairlead_master.allocation.api import Counters, Infeasibility, RoleRow
from fairlead_master.allocation.feasibility import find_infeasibility, shortfall
from fairlead_master.allocation.hierarchy import with_those_above
from fairlead_master.allocation.parts import Parts
from fairlead_proto.ids import AgentId, ClassId
from fairlead_proto.resources import ResourceKinds, add, fits, missing


@unique
class WaitReason(Enum):
    """Why work waits. The names are those of the schema; the last three kinds the master adds by itself."""

    INFEASIBLE = "INFEASIBLE"
    CONSTRAINT = "CONSTRAINT"
    NO_AGENTS = "NO_AGENTS"
    OFFERED = "OFFERED"
    DECLINED = "DECLINED"
    FROZEN = "FROZEN"
    RESERVED = "RESERVED"
    SHARE = "SHARE"
    FRAGMENTED = "FRAGMENTED"
    FULL = "FULL"
    NOT_WAITING = "NOT_WAITING"
    RECOVERING = "RECOVERING"
    FRAMEWORK_AWAY = "FRAMEWORK_AWAY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The reason, in a word and in a sentence, with its numbers."""

    reason: WaitReason
    sentence: str
    evidence: Mapping[str, str] = field(default_factory=dict)
    """Number by name, both for people; amounts as ``ResourceKinds.format`` writes them."""
    next_steps: tuple[str, ...] = ()
    """What would help, the most likely first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a diagnosis looks at."""

    kinds: ResourceKinds
    fit: Fit
    agents: Mapping[AgentId, Agent]
    rows: list[RoleRow]
    """In the policy's order; empty until ``report`` was needed."""
    report: Callable[[], Parts[list[RoleRow]]]
    policy: str
    freezes: bool


def diagnose(scene: Scene, framework: Framework, class_id: ClassId) -> Parts[Diagnosis]:
    """Why the class of the framework waits; NOT_WAITING if it wants nothing or is not known."""
    found = _without_rows(scene, framework, class_id)
    if found is None and not scene.rows:
        yield
        scene.rows[:] = yield from scene.report()
        yield
        # That gave others turns: whatever was found before may have changed.
        found = _without_rows(scene, framework, class_id)
    if found is not None:
        return found
    demand = framework.demands[class_id]
    found = _fits_somewhere(scene, demand)
    if found is None:
        yield
        found = yield from _fits_nowhere(scene, framework, demand)
    # None if all agents that could hold it have left meanwhile.
    return found if found is not None else (yield from diagnose(scene, framework, class_id))


def _without_rows(scene: Scene, framework: Framework, class_id: ClassId) -> Diagnosis | None:
    """The reason, if other roles have nothing to do with it."""
    demand = framework.demands.get(class_id)
    if demand is None or demand.target == 0:
        return Diagnosis(reason=WaitReason.NOT_WAITING, sentence=f"class {class_id} wants nothing")
    return _never_fits(scene, demand) or _is_offered(framework, demand) or _is_declined_everywhere(demand)


def _unit(scene: Scene, demand: Demand) -> str:
    return scene.kinds.format(demand.shape.unit)


def _never_fits(scene: Scene, demand: Demand) -> Diagnosis | None:
    if not scene.agents:
        return Diagnosis(
            reason=WaitReason.NO_AGENTS,
            sentence="no agent is registered",
            evidence={"agents": "0"},
            next_steps=("start an agent: fairlead agent --master HOST:PORT",),
        )
    verdict = find_infeasibility(scene.agents.values(), *demand.shape.key, Counters())
    if verdict is not None:
        return _infeasible(scene, demand, verdict)
    able = [agent for agent in scene.agents.values() if agent.could_hold_if_active(*demand.shape.key)]
    if any(agent.active for agent in able):
        return None
    return _all_away(scene, demand, able)


def _all_away(scene: Scene, demand: Demand, able: list[Agent]) -> Diagnosis:
    """All agents that could hold a unit, and there are some, are inactive."""
    evidence = {
        "agents": str(len(scene.agents)),
        "agents_active": str(sum(agent.active for agent in scene.agents.values())),
        "inactive": ", ".join(agent.agent_id for agent in able[:10]),
    }
    condition = ""
    if demand.shape.constraints:
        evidence["constraints"] = _conditions(demand)
        condition = f" that meets {_conditions(demand)}"
    return Diagnosis(
        reason=WaitReason.NO_AGENTS,
        sentence=f"no active agent{condition} can hold {_unit(scene, demand)}; "
        f"{len(able)} that could {'is' if len(able) == 1 else 'are'} registered but not active",
        evidence=evidence,
        next_steps=("bring an inactive agent back", "start another agent"),
    )


def _conditions(demand: Demand) -> str:
    return " and ".join(map(str, demand.shape.constraints))


def _infeasible(scene: Scene, demand: Demand, verdict: Infeasibility) -> Diagnosis:
    unit = _unit(scene, demand)
    evidence = {
        "unit": unit,
        "agents": str(verdict.agents),
        "agents_matching": str(verdict.agents_matching),
        "missing": scene.kinds.format(verdict.missing),
    }
    if verdict.best_agent_id is not None and verdict.best_total is not None:
        evidence |= {
            "best_agent": verdict.best_agent_id,
            "best_total": scene.kinds.format(verdict.best_total),
        }
    if not verdict.fits_without_constraints:
        nearest = (
            f"; the nearest, {verdict.best_agent_id}, lacks {evidence['missing']}"
            if verdict.best_agent_id
            else ""
        )
        return Diagnosis(
            reason=WaitReason.INFEASIBLE,
            sentence=f"no registered agent is large enough for {unit}{nearest}",
            evidence=evidence,
            next_steps=("ask for less per task", "add a larger agent"),
        )
    conditions = _conditions(demand)
    return Diagnosis(
        reason=WaitReason.CONSTRAINT,
        sentence=f"none of the agents that meet {conditions} ({verdict.agents_matching}) is large enough for {unit}",
        evidence=evidence | {"constraints": conditions},
        next_steps=(
            "loosen the constraints",
            "give an agent the attributes asked for: fairlead agent --attribute K=V",
        ),
    )


def _is_offered(framework: Framework, demand: Demand) -> Diagnosis | None:
    if demand.pending:
        return None
    offered = framework.offered.get(demand.class_id, 0)
    return Diagnosis(
        reason=WaitReason.OFFERED,
        sentence=f"its framework has not answered offers of {_counted(offered, 'unit')} yet",
        evidence={"units_offered": str(offered), "units_wanted": str(demand.target)},
        next_steps=("the framework answers its offers, or their lease ends",),
    )


def _is_declined_everywhere(demand: Demand) -> Diagnosis | None:
    if demand.declined_everywhere_until_ms is None:
        return None
    return Diagnosis(
        reason=WaitReason.DECLINED,
        sentence="its framework declined offers for it on every agent for a time",
        evidence={"declined_until_ms": str(demand.declined_everywhere_until_ms)},
        next_steps=(
            "the framework sends its demand again and lifts what it declined",
            "wait for the filter to end",
        ),
    )


def _fits_somewhere(scene: Scene, demand: Demand) -> Diagnosis | None:
    """There is room now; what keeps the class from it."""
    able = [agent for agent in scene.agents.values() if agent.could_hold(*demand.shape.key)]
    with_room = [agent for agent in able if scene.fit.fits_now(agent, demand.shape.unit)]
    if not with_room:
        return None
    acceptable = [agent for agent in with_room if agent.agent_id not in demand.declined]
    mine = (demand.framework_id, demand.class_id)
    if any(agent.reserved_for in {None, mine} for agent in acceptable):
        return _has_its_turn_to_come(scene, demand)
    names = ", ".join(agent.agent_id for agent in (acceptable or with_room)[:10])
    if acceptable:
        return Diagnosis(
            reason=WaitReason.RESERVED,
            sentence=f"it fits on {_counted(len(acceptable), 'agent')} kept for work that has waited too long",
            evidence={"agents_reserved": names},
            next_steps=("wait until the reserved work has been served",),
        )
    return Diagnosis(
        reason=WaitReason.DECLINED,
        sentence=f"it fits on {_counted(len(with_room), 'agent')}, where its framework declined it for a time",
        evidence={"agents_declined": names, "filters": str(len(demand.declined))},
        next_steps=(
            "the framework sends its demand again and lifts what it declined",
            "wait for the filters to end",
        ),
    )


def _has_its_turn_to_come(scene: Scene, demand: Demand) -> Diagnosis:
    if scene.freezes:
        head = _head(scene.rows)
        return Diagnosis(
            reason=WaitReason.FROZEN,
            sentence=f"it fits, but role {head} is first and does not, and nobody is served before it",
            evidence={"head_role": head, "unit": _unit(scene, demand)},
            next_steps=(
                "wait until the head of the queue fits",
                "fairlead policy set --when-head-does-not-fit skip",
            ),
        )
    return Diagnosis(
        reason=WaitReason.SHARE,
        sentence="it fits and is served in its turn, in one of the next allocation cycles",
        evidence={"unit": _unit(scene, demand)},
        next_steps=("wait a moment",),
    )


def _fits_nowhere(scene: Scene, framework: Framework, demand: Demand) -> Parts[Diagnosis | None]:
    """There is no room now: what is free, and where the least is missing; None if no agent is left that could hold it."""
    unit = demand.shape.unit
    free, able = scene.kinds.zero, 0
    nearest: Agent | None = None
    least = 0.0
    for agent in list(scene.agents.values()):
        yield
        if not agent.active or not agent.meets(demand.shape.constraints):
            continue
        free = add(free, tuple([max(0, amount) for amount in agent.free]))
        if fits(unit, agent.total):
            able += 1
            lack = shortfall(scene.fit.view(unit), scene.fit.available(agent))
            if nearest is None or lack < least:
                nearest, least = agent, lack
    if nearest is None or nearest.agent_id not in scene.agents:
        return None
    row = next(row for row in scene.rows if row.role == framework.role.role)
    evidence = {
        "unit": _unit(scene, demand),
        "free_total": scene.kinds.format(free),
        "agents_eligible": str(able),
        "nearest_agent": nearest.agent_id,
        "nearest_lacks": _lack(scene, demand, nearest),
        "role": row.role,
        "rank": str(row.rank),
        "key": f"{row.key:.6g}",
        "dominant_share": f"{row.dominant_share:.4f}",
        "fair_share": f"{row.fair_share:.4f}",
    }
    if nearest.reserved_for == (demand.framework_id, demand.class_id):
        evidence["reserved_agent"] = nearest.agent_id
    if scene.fit.slots is None and fits(unit, free):
        return Diagnosis(
            reason=WaitReason.FRAGMENTED,
            sentence=f"{evidence['free_total']} is free in total, but no single agent has {evidence['unit']}; "
            f"{nearest.agent_id} lacks {evidence['nearest_lacks']}",
            evidence=evidence,
            next_steps=("wait: an agent is reserved for it if it waits long", "ask for less per task"),
        )
    return _share_or_full(scene, row, evidence)


def _lack(scene: Scene, demand: Demand, agent: Agent) -> str:
    if scene.fit.slots is not None:
        return f"a slot ({agent.tasks} of {scene.fit.slots} taken)"
    return scene.kinds.format(missing(demand.shape.unit, agent.free))


def _share_or_full(scene: Scene, row: RoleRow, evidence: dict[str, str]) -> Diagnosis:
    own = with_those_above(row.role)
    over = [r for r in scene.rows if r.role not in own and r.dominant_share > r.fair_share]
    # The highest level at which others come first: below it nothing else decides.
    held = next((r for r in scene.rows if r.role in own and r.rank > 1), row)
    if over:
        evidence["over_fair_share"] = ", ".join(
            f"{other.role} {other.dominant_share:.4f}" for other in over[:10]
        )
    if held.rank > 1:
        first = next(r for r in scene.rows if r.parent == held.parent and r.rank == 1)
        part = "" if held is row else f", of which {row.role} is a part"
        return Diagnosis(
            reason=WaitReason.SHARE,
            sentence=f"nothing it fits into is free, and under {scene.policy} role {first.role} is served before "
            f"role {held.role} (number {held.rank} in the queue){part}",
            evidence=evidence
            | {"held_back_at": held.role, "next_role": first.role, "next_key": f"{first.key:.6g}"},
            next_steps=(
                "wait for tasks to end",
                f"raise its weight: fairlead weight set {held.role} W",
                "add agents",
            ),
        )
    if over and row.dominant_share < row.fair_share:
        return Diagnosis(
            reason=WaitReason.SHARE,
            sentence=f"role {row.role} is next, below its fair share; others hold more than theirs until their tasks end",
            evidence=evidence,
            next_steps=("wait for tasks of those roles to end", "add agents"),
        )
    return Diagnosis(
        reason=WaitReason.FULL,
        sentence=f"only {evidence['free_total']} is free in total, {evidence['unit']} is needed",
        evidence=evidence,
        next_steps=("wait for tasks to end", "add agents"),
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _head(rows: list[RoleRow]) -> str:
    """The role that is first, as far down the tree as its rows tell: not below one with frameworks of its own."""
    head: RoleRow | None = None
    while True:
        below = [row for row in rows if row.parent == (head.role if head is not None else None)]
        first = next((row for row in below if row.rank == 1), None)
        if first is None or (head is not None and head.frameworks > sum(row.frameworks for row in below)):
            return head.role if head is not None else ""
        head = first
