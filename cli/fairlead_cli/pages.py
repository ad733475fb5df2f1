"""The listings of the operator service, read whole: every page of each, as rows."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead_cli import rows, tables
from fairlead_cli.connection import Connection
from fairlead_proto.v1 import operator_pb2

_NUMBERS: Final = re.compile(r"([0-9]+)")

PAGE_SIZE: Final = 5000
"""The most a master sends at once: a listing of 100,000 tasks takes 20 calls."""


@dataclass(frozen=True, slots=True)
class Listing:
    """How one kind of thing is listed."""

    method: str
    """Of the operator service."""
    items: str
    """Field of the answer that holds them."""
    row: Callable[[Any], rows.Row]
    columns: Sequence[tables.Column]
    kinds: tuple[str, ...]
    """Of changes that can alter the listing."""
    request: Callable[..., Any] = operator_pb2.ListRequest
    filters: Mapping[str, Any] = field(default_factory=dict)
    of_all: Callable[[Any], rows.Row] = lambda _: {}
    """What the answer says of all rows alike: keys that each of them gets as well."""
    footer: Callable[[Sequence[rows.Row]], str] = lambda _: ""
    """A line for people below the table; empty for none."""

    def fetch(self, connection: Connection) -> tuple[list[rows.Row], int]:
        """All rows, by id, and the version of the cluster they are not older than. Roles are in the order of the tree."""
        found: list[rows.Row] = []
        version, token = None, ""
        while True:
            request = self.request(page_size=PAGE_SIZE, page_token=token, **self.filters)
            answer = connection.call(getattr(connection.operator, self.method), request)
            of_all = self.of_all(answer)
            found += [{**self.row(item), **of_all} for item in getattr(answer, self.items)]
            # The first page's version: what changed while later pages were read is then reported again, never missed.
            version = answer.version if version is None else version
            token = answer.next_page_token
            if not token:
                found.sort(key=_order)
                return found, version


def _order(row: rows.Row) -> list[str | int]:
    """By id; roles as a tree, each before those below it: eng, eng/ml, eng-2."""
    return natural_order(row["id"]) if "id" in row else [*row.get("role", "").split("/")]


def natural_order(id: str) -> list[str | int]:
    """A key that sorts numbers within ids as numbers: f1-2 before f1-10. Words and numbers alternate in it."""
    return [int(part) if index % 2 else part for index, part in enumerate(_NUMBERS.split(id))]


def tasks(*, states: Sequence[str] = (), framework_id: str = "", task_ids: Sequence[str] = ()) -> Listing:
    """Tasks, pending ones included; an empty filter lets all pass."""
    filters = {"states": list(states), "framework_id": framework_id, "task_ids": list(task_ids)}
    request = operator_pb2.ListTasksRequest
    return Listing("ListTasks", "tasks", rows.task, tables.TASKS, ("task", "framework"), request, filters)


AGENTS: Final = Listing("ListAgents", "agents", rows.agent, tables.AGENTS, ("agent", "task", "offer"))
FRAMEWORKS: Final = Listing(
    "ListFrameworks", "frameworks", rows.framework, tables.FRAMEWORKS, ("framework", "task", "offer")
)
# A share moves with tasks and offers, and with the capacity it is a share of.
_SHARE_KINDS: Final = ("role", "framework", "task", "offer", "agent", "policy")
ROLES: Final = Listing("ListRoles", "roles", rows.role, tables.ROLES, _SHARE_KINDS, of_all=rows.market)
SHARES: Final = Listing(
    "ListRoles",
    "roles",
    rows.share,
    tables.SHARES,
    _SHARE_KINDS,
    of_all=rows.market,
    footer=tables.market_line,
)
OFFERS: Final = Listing("ListOffers", "offers", rows.offer, tables.OFFERS, ("offer",))
WEIGHTS: Final = Listing("ListRoles", "roles", rows.weights, tables.WEIGHTS, _SHARE_KINDS)
