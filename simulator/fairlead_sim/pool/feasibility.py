"""Why a bundle could never run on a cluster even if it were empty: no host is large enough, or a gang is too large for all."""

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import Infeasibility
from fairlead_master.allocation.policies.names import slots_per_agent
from fairlead_proto.resources import ResourceKinds, Vector, fits, units_that_fit
from fairlead_proto.tasks import Constraint
from fairlead_sim.node import Node
from fairlead_sim.workload import Bundle

Kind = tuple[Vector, tuple[Constraint, ...]]
"""What tasks are told apart by: demand and constraints."""


class Feasibility:
    """What the hosts of a cluster could hold; each kind of task is looked at once."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._hosts: list[tuple[Vector, dict[str, str]]] = []
        self._drained = 0
        self._why: dict[Kind, str] = {}
        self._places: dict[Kind, int] = {}

    def add(self, node: Node, *, is_drained: bool = False) -> None:
        """A host, which the allocator has been told of; if drained, one that takes nothing new."""
        if is_drained:
            self._drained += 1
        else:
            self._hosts.append((node.total, attributes_of(node)))

    def why_never(self, bundle: Bundle) -> str:
        """Why it could not run on the empty cluster, in words; empty if it could."""
        kind = (bundle.unit, bundle.constraints)
        why = self._why.get(kind)
        if why is None:
            why = self._why[kind] = self._why_none_holds(bundle)
        if why or not bundle.is_gang or bundle.tasks == 1:
            return why
        places = self._places.get(kind)
        if places is None:
            places = self._places[kind] = self._count_places(bundle)
        if bundle.tasks <= places:
            return ""
        return f"a gang of {bundle.tasks} tasks: the empty cluster has places for {places} of them"

    def _why_none_holds(self, bundle: Bundle) -> str:
        found = self._allocator.feasibility(bundle.unit, bundle.constraints)
        if found is not None:
            return _in_words(bundle, found, self._allocator.kinds)
        if not self._drained or any(
            fits(bundle.unit, total) and _meets(bundle, attributes) for total, attributes in self._hosts
        ):
            return ""
        return "no host but drained ones could hold it"

    def _count_places(self, bundle: Bundle) -> int:
        slots = slots_per_agent(self._allocator.settings.policy)
        return sum(
            units_that_fit(bundle.unit, total) if slots is None else slots
            for total, attributes in self._hosts
            if _meets(bundle, attributes)
        )


def attributes_of(node: Node) -> dict[str, str]:
    """What constraints may ask of a host: the attributes of a live agent with this name."""
    return {"hostname": node.name, "agent_id": node.name, **node.attributes}


def _meets(bundle: Bundle, attributes: dict[str, str]) -> bool:
    return all(constraint.holds(attributes) for constraint in bundle.constraints)


def _in_words(bundle: Bundle, found: Infeasibility, kinds: ResourceKinds) -> str:
    where = " and ".join(map(str, bundle.constraints))
    if found.best_agent_id is None:
        return f"no host meets {where}"
    of_them = f"no host that meets {where}" if where else "no host"
    lacks = kinds.format(found.missing)
    return f"{of_them} has {kinds.format(bundle.unit)}: the nearest, {found.best_agent_id}, lacks {lacks}"
