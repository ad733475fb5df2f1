"""What must hold of the allocator's books at any time, by computing everything again from scratch.

Costs a pass over everything, so it runs after every step under test and now and then in production. Every failure is a bug
here or in what the allocator was told, never a refusal.
"""

from collections.abc import Mapping, Sequence

from fairlead_master.allocation.agents import Agent, Fit
from fairlead_master.allocation.demands import DemandBoard
from fairlead_master.allocation.filters import FILTERS_MAX
from fairlead_master.allocation.hierarchy import WEIGHTS_MAX, Hierarchy, parent_of
from fairlead_master.allocation.search import AgentSearch
from fairlead_master.allocation.shape import Shape
from fairlead_proto.ids import AgentId
from fairlead_proto.resources import Vector, sum_vectors


def check_capacity(agents: Mapping[AgentId, Agent], capacity: Vector, zero: Vector) -> None:
    """The capacity kept is the sum over active agents."""
    expected = sum_vectors((agent.total for agent in agents.values() if agent.active), zero)
    assert capacity == expected, f"capacity {capacity} kept, {expected} recomputed"


def check_agents(agents: Mapping[AgentId, Agent], hierarchy: Hierarchy, zero: Vector, fit: Fit) -> None:
    """What agents say is held is what frameworks say they hold, and no agent holds more than decisions may give it."""
    frameworks = hierarchy.frameworks.values()
    held = sum_vectors((framework.charged for framework in frameworks), zero)
    assert held == sum_vectors((agent.charged for agent in agents.values()), zero), (
        "agents and frameworks disagree"
    )
    assert sum(f.units for f in frameworks) == sum(a.tasks for a in agents.values()), "units held disagree"
    for agent in agents.values():
        assert agent.tasks >= 0 <= min(agent.charged), f"agent {agent.agent_id} holds less than nothing"
        if agent.index < 0:
            continue  # What is no fault of a later decision is found out when it is numbered.
        if fit.slots is None:
            for free, floor in zip(agent.free, agent.floor, strict=True):
                assert free >= floor, f"agent {agent.agent_id} was given more than it has: {agent.free}"
        else:
            ceiling = max(fit.slots, agent.tasks_ceiling)
            assert agent.tasks <= ceiling, f"agent {agent.agent_id}: {agent.tasks} tasks in {ceiling} slots"


def check_demands(hierarchy: Hierarchy, search: AgentSearch) -> None:
    """Each shape is wanted by as many as say so."""
    wanting: dict[Shape, int] = {}
    references: dict[Shape, int] = {}
    for framework in hierarchy.frameworks.values():
        for demand in framework.demands.values():
            wanting[demand.shape] = wanting.get(demand.shape, 0) + demand.wants
            references[demand.shape] = references.get(demand.shape, 0) + 1
    for shape in search.shapes():
        assert shape.references == references.get(shape, 0), f"shape {shape.unit}: references miscounted"
        assert shape.wanting == wanting.get(shape, 0), f"shape {shape.unit}: wanting miscounted"
    assert len(references) == len(search.shapes()), "a demand has a shape the search does not know"


def check_frameworks(hierarchy: Hierarchy, demands: DemandBoard) -> None:
    """What a framework wants, has in offers, and whether it takes part, recomputed from its demands."""
    for framework in hierarchy.frameworks.values():
        name = framework.framework_id
        assert framework.units >= sum(framework.offered.values()), f"{name} has more in offers than it holds"
        assert all(units > 0 for units in framework.offered.values()), f"{name} keeps offers of nothing"
        for demand in framework.demands.values():
            expected = max(0, demand.target - framework.offered.get(demand.class_id, 0))
            assert demand.pending == expected, (
                f"{name}/{demand.class_id}: {demand.pending} pending, not {expected}"
            )
            assert (demand.shape.excluded is not None) == bool(demand.declined), (
                f"{name}/{demand.class_id}: wrong shape"
            )
        wanting = [demand for demand in framework.demands.values() if demand.wants]
        assert framework.wanting == len(wanting), f"{name}: wanted classes miscounted"
        assert framework.targeted == sum(d.target > 0 for d in framework.demands.values()), (
            f"{name}: targets miscounted"
        )
        assert (framework.began > 0) == (framework.targeted > 0), f"{name}: waits and wants disagree"
        if not framework.awake and not demands.is_to_wake(framework):
            assert all(demand.shape.parked for demand in wanting), f"{name} sleeps though something might fit"
        assert len(framework.filters) == sum(len(d.declined) for d in framework.demands.values()), (
            f"{name}: filters"
        )
        assert len(framework.filters) <= FILTERS_MAX, f"{name} has {len(framework.filters)} filters"


def check_wishes(hierarchy: Hierarchy) -> None:
    """What frameworks hold and want together, where the policy is told of it."""
    if hierarchy.follows_wishes:
        for framework in hierarchy.frameworks.values():
            expected = framework.wish_from_books()
            assert framework.wish == expected, (
                f"{framework.framework_id}: wish {framework.wish} kept, {expected} recomputed"
            )
            assert framework.wish_units == framework.units + framework.pending, (
                f"{framework.framework_id}: wish of {framework.wish_units} units kept, "
                f"{framework.units} held and {framework.pending} pending"
            )


def check_roles(hierarchy: Hierarchy) -> None:
    """Counts of roles, and every key a policy keeps against the key of a policy made afresh from the books."""
    assert len(hierarchy.weights) <= WEIGHTS_MAX, "too many weights"
    for role in hierarchy.roles.values():
        assert role.frameworks or role.children, f"role {role.role} is kept for nobody"
        assert (role.parent.role if role.parent else None) == parent_of(role.role), (
            f"role {role.role}: parent"
        )
        assert all(framework.role is role for framework in role.frameworks.values()), (
            f"role {role.role}: members"
        )
        is_plain = len(role.frameworks) == 1 and role.parent is None and not role.children
        assert (role.only is not None) == is_plain, f"role {role.role}: plain, or not"
    hierarchy.check_keys()


def check_search(search: AgentSearch, by_index: Sequence[Agent], agents: Mapping[AgentId, Agent]) -> None:
    """Indexes are right, and the search believes of agents and shapes what is so."""
    for agent in agents.values():
        assert by_index[agent.index] is agent, f"agent {agent.agent_id} is not at its index"
    search.check()
