"""The roles as a table: who holds what share, who is next, who is owed what; level by level."""

from collections.abc import Iterator

from fairlead_master.allocation.accounts import RoleAccount
from fairlead_master.allocation.api import RoleRow
from fairlead_master.allocation.hierarchy import Hierarchy
from fairlead_proto.resources import ResourceKinds, Vector, sum_vectors


def role_rows(hierarchy: Hierarchy, kinds: ResourceKinds, capacity: Vector) -> list[RoleRow]:
    """One row a role that has a framework in it or below it.

    Each role stands before those below it, and roles beside one another in the policy's order, ties by arrival. What a role
    holds, wants and runs includes the roles below it.
    """
    return list(_rows(hierarchy, kinds, capacity, None, 1.0))


def _rows(
    hierarchy: Hierarchy, kinds: ResourceKinds, capacity: Vector, parent: RoleAccount | None, owed: float
) -> Iterator[RoleRow]:
    """The roles below ``parent``, which is owed the share ``owed`` of everything."""
    beside = hierarchy.beside(parent)
    entitled = sum(role.weight.default for role in beside if _counts(role))
    if parent is not None and any(f.units or f.pending for f in parent.frameworks.values()):
        entitled += 1.0  # Its own frameworks are one account more, of weight 1.
    rank = 0
    for role in beside:
        charged = sum_vectors((framework.charged for framework in role.all_frameworks()), kinds.zero)
        counted = sum_vectors((framework.counted_now for framework in role.all_frameworks()), kinds.zero)
        share, resource = dominant(counted, capacity, kinds)
        pending = sum(framework.pending for framework in role.all_frameworks())
        rank += 1 if pending else 0
        fair_share = owed * role.weight.default / entitled if _counts(role) else 0.0
        yield RoleRow(
            role=role.role,
            parent=role.parent.role if role.parent is not None else None,
            weight=role.weight,
            charged=charged,
            counted=counted,
            dominant_share=share,
            dominant_resource=resource,
            key=hierarchy.key(role.role),
            rank=rank if pending else 0,
            fair_share=fair_share,
            pending=pending,
            frameworks=sum(1 for _ in role.all_frameworks()),
        )
        if role.children:
            yield from _rows(hierarchy, kinds, capacity, role, fair_share)


def dominant(charged: Vector, capacity: Vector, kinds: ResourceKinds) -> tuple[float, str]:
    """The largest share of a resource and that resource's name; equal shares go to the first in vector order."""
    share, name = 0.0, ""
    for held, total, resource in zip(charged, capacity, kinds.names, strict=True):
        if total > 0 and held / total > share:
            share, name = held / total, resource
    return share, name


def _counts(role: RoleAccount) -> bool:
    """Whether the role, or one below it, holds or wants something."""
    return any(framework.units or framework.pending for framework in role.all_frameworks())
