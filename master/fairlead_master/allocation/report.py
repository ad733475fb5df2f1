"""The roles as a table: who holds what share, who is next, who is owed what."""

from fairlead_master.allocation.accounts import RoleAccount
from fairlead_master.allocation.api import RoleRow
from fairlead_master.allocation.hierarchy import Hierarchy
from fairlead_proto.resources import ResourceKinds, Vector


def role_rows(hierarchy: Hierarchy, kinds: ResourceKinds, capacity: Vector) -> list[RoleRow]:
    """One row a role that has a framework, in the policy's order, ties by arrival."""
    order = hierarchy.order()
    entitled = sum(role.weight.default for role in order if role.units or role.pending)
    rows = []
    rank = 0
    for role in order:
        charged = role.charged(kinds.zero)
        share, resource = dominant(charged, capacity, kinds)
        pending = role.pending
        rank += 1 if pending else 0
        rows.append(
            RoleRow(
                role=role.role,
                weight=role.weight,
                charged=charged,
                dominant_share=share,
                dominant_resource=resource,
                key=hierarchy.key(role.role),
                rank=rank if pending else 0,
                fair_share=fair_share(role, entitled),
                pending=pending,
                frameworks=len(role.frameworks),
            )
        )
    return rows


def dominant(charged: Vector, capacity: Vector, kinds: ResourceKinds) -> tuple[float, str]:
    """The largest share of a resource and that resource's name; equal shares go to the first in vector order."""
    share, name = 0.0, ""
    for held, total, resource in zip(charged, capacity, kinds.names, strict=True):
        if total > 0 and held / total > share:
            share, name = held / total, resource
    return share, name


def fair_share(role: RoleAccount, entitled: float) -> float:
    """The role's weight over ``entitled``, the weights of all roles that hold or want something."""
    if role.units or role.pending:
        return role.weight.default / entitled
    return 0.0
