"""The roles as a table: who holds what share, who is next, who is owed what; level by level."""

from dataclasses import dataclass

from fairlead_master.allocation.accounts import RoleAccount
from fairlead_master.allocation.api import RoleRow
from fairlead_master.allocation.hierarchy import Hierarchy
from fairlead_master.allocation.parts import Parts
from fairlead_proto.resources import ResourceKinds, Vector, add


def role_rows(hierarchy: Hierarchy, kinds: ResourceKinds, capacity: Vector) -> Parts[list[RoleRow]]:
    """One row a role that has a framework in it or below it.

    Each role stands before those below it, and roles beside one another in the policy's order, ties by arrival. What a role
    holds, wants and runs includes the roles below it. Made in parts: a row may be older than those after it.
    """
    rows: list[RoleRow] = []
    yield from _add_rows(rows, hierarchy, kinds, capacity, None, 1.0)
    return rows


def _add_rows(
    rows: list[RoleRow],
    hierarchy: Hierarchy,
    kinds: ResourceKinds,
    capacity: Vector,
    parent: RoleAccount | None,
    owed: float,
) -> Parts[None]:
    """The roles below ``parent``, which is owed the share ``owed`` of everything."""
    sums: list[_Sum] = []
    for role in hierarchy.beside(parent):
        total = yield from _sum(role, kinds)
        sums.append(total)
    entitled = sum(each.role.weight.default for each in sums if each.counts)
    if parent is not None and (yield from _holds_or_wants(parent)):
        entitled += 1.0  # Its own frameworks are one account more, of weight 1.
    rank = 0
    for each in sums:
        role = each.role
        if hierarchy.roles.get(role.role) is not role:
            continue  # It has left meanwhile.
        share, resource = dominant(each.counted, capacity, kinds)
        rank += 1 if each.pending else 0
        fair_share = owed * role.weight.default / entitled if each.counts else 0.0
        rows.append(
            RoleRow(
                role=role.role,
                parent=role.parent.role if role.parent is not None else None,
                weight=role.weight,
                charged=each.charged,
                counted=each.counted,
                dominant_share=share,
                dominant_resource=resource,
                key=hierarchy.key(role.role),
                rank=rank if each.pending else 0,
                fair_share=fair_share,
                pending=each.pending,
                frameworks=each.frameworks,
            )
        )
        yield
        if role.children:
            yield from _add_rows(rows, hierarchy, kinds, capacity, role, fair_share)


@dataclass(slots=True)
class _Sum:
    """What the frameworks in a role and below it hold and want together."""

    role: RoleAccount
    charged: Vector
    counted: Vector
    pending: int = 0
    frameworks: int = 0
    counts: bool = False
    """Whether the role, or one below it, holds or wants something."""


def _sum(role: RoleAccount, kinds: ResourceKinds) -> Parts[_Sum]:
    total = _Sum(role, kinds.zero, kinds.zero)
    for framework in list(role.all_frameworks()):
        pending = framework.pending
        total.charged = add(total.charged, framework.charged)
        total.counted = add(total.counted, framework.counted_now)
        total.pending += pending
        total.frameworks += 1
        total.counts = total.counts or bool(framework.units or pending)
        yield
    return total


def _holds_or_wants(role: RoleAccount) -> Parts[bool]:
    """Whether a framework of the role's own does."""
    for framework in list(role.frameworks.values()):
        if framework.units or framework.pending:
            return True
        yield
    return False


def dominant(charged: Vector, capacity: Vector, kinds: ResourceKinds) -> tuple[float, str]:
    """The largest share of a resource and that resource's name; equal shares go to the first in vector order."""
    share, name = 0.0, ""
    for held, total, resource in zip(charged, capacity, kinds.names, strict=True):
        if total > 0 and held / total > share:
            share, name = held / total, resource
    return share, name
