"""Why a bundle could never run on a cluster even if it were empty: no host is large enough, or a gang is too large for all."""

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import Infeasibility
from fairlead_master.allocation.policies.names import slots_per_agent
from fairlead_proto.resources import ResourceKinds, Vector, units_that_fit
from fairlead_proto.tasks import Constraint
from fairlead_sim.workloads.node import Node
from fairlead_sim.workloads.workload import Bundle

Kind = tuple[Vector, tuple[Constraint, ...]]
"""What tasks are told apart by: demand and constraints."""


class Feasibility:
    """What the hosts of a cluster could hold; each kind of task is looked at once."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._hosts: list[tuple[Vector, dict[str, str]]] = []
        self._why: dict[Kind, str] = {}
        self._places: dict[Kind, int] = {}

    def add(self, node: Node) -> None:
        """A host, which the allocator has been told of."""
        self._hosts.append((node.total, attributes_of(node)))

    def why_never(self, bundle: Bundle) -> str:
        """Why it could not run on the empty cluster, in words; empty if it could."""
        kind = (bundle.unit, bundle.constraints)
        why = self._why.get(kind)
        if why is None:
            found = self._allocator.feasibility(*kind)
            why = self._why[kind] = "" if found is None else _in_words(bundle, found)
        if why or not bundle.is_gang or bundle.tasks == 1:
            return why
        places = self._places.get(kind)
        if places is None:
            places = self._places[kind] = self._count_places(bundle)
        if bundle.tasks <= places:
            return ""
        return f"a gang of {bundle.tasks} tasks: the empty cluster has places for {places} of them"

    def _count_places(self, bundle: Bundle) -> int:
        slots = slots_per_agent(self._allocator.settings.policy)
        return sum(
            units_that_fit(bundle.unit, total) if slots is None else slots
            for total, attributes in self._hosts
            if all(constraint.holds(attributes) for constraint in bundle.constraints)
        )


def attributes_of(node: Node) -> dict[str, str]:
    """What constraints may ask of a host: the attributes of a live agent with this name."""
    return {"hostname": node.name, "agent_id": node.name, **node.attributes}


def _in_words(bundle: Bundle, found: Infeasibility) -> str:
    kinds = ResourceKinds()
    where = " and ".join(map(str, bundle.constraints))
    if found.best_agent_id is None:
        return f"no host meets {where}"
    of_them = f"no host that meets {where}" if where else "no host"
    lacks = kinds.format(found.missing)
    return f"{of_them} has {kinds.format(bundle.unit)}: the nearest, {found.best_agent_id}, lacks {lacks}"
