"""A host of a simulated cluster, as a file of nodes or an operator describes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead_proto.resources import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One host."""

    name: str
    """Unique among the nodes of a cluster."""
    total: Vector
    """In the standard order: cpus, mem, disk, gpus."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """What placement constraints may ask for."""
