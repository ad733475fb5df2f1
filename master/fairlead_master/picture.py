"""What a watcher of rows is sent: the present state of whatever changed, so that it keeps a picture and never lists.

A picture is begun by a message that says so, followed by every row in parts. From then on whatever changed is due, once however
often it changed, and is sent as it is by then: a reader that is slow gets fewer and later rows, and costs no queue. Only one
that is behind all kept changes begins a picture anew.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

from fairlead_master import views
from fairlead_master.allocation.parts import Parts
from fairlead_master.core.state import Master
from fairlead_proto.ids import AgentId, FrameworkId, OfferId, TaskKey
from fairlead_proto.v1 import operator_pb2 as pb

TASKS_MAX: Final = 100
PEERS_MAX: Final = 50
"""Rows of one message, some 5 ms of the loop. An agent's row adds up what its tasks hold, so there are fewer of those."""

CHANGES_MAX: Final = 5_000
"""Looked at for one message, at some 0.3 µs each."""

SWEEP_MS: Final = 1_000
"""Figures of agents, frameworks and roles move with every task: that often they are sent. A screen shows no more."""

Key = TypeVar("Key")


class Picture:
    """The picture of one watcher. ``take`` again and again."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self._seen = 0
        self._tasks: dict[TaskKey, None] = {}
        self._frameworks: dict[FrameworkId, None] = {}
        self._agents: dict[AgentId, None] = {}
        self._touched_frameworks: dict[FrameworkId, None] = {}
        self._touched_agents: dict[AgentId, None] = {}
        """Due with the next sweep, as are agents that were heard since the last one."""
        self._offers: dict[OfferId, tuple[FrameworkId, AgentId]] = {}
        """That are out, with those whose figures an end of them changes."""
        self._sweep_ms = 0
        self._swept_ms = 0
        self._roles_ms = 0
        self._roles_version = -1
        self._has_begun = False

    @property
    def is_whole(self) -> bool:
        """Whether nothing that is known to have changed is due."""
        is_due = self._tasks or self._frameworks or self._agents or self._roles_version < 0
        return not is_due and self._seen == self._master.version

    def take(self, now_ms: int) -> Parts[pb.Changes | None]:
        """The next message; None if there is no news. In parts: what changes meanwhile is due again."""
        message = pb.Changes()
        if not self._has_begun or self._seen < self._master.version - len(self._master.changes):
            # Rows follow: to find which there are takes long enough.
            yield from self._begin(now_ms)
            message.resync = True
        else:
            self._follow()
            if now_ms >= self._sweep_ms:
                yield from self._sweep(message, now_ms)
            yield from self._fill(message)
        if not message.ListFields():
            return None
        message.version = self._seen
        message.rows_due = len(self._tasks) + len(self._frameworks) + len(self._agents)
        return message

    def _begin(self, now_ms: int) -> Parts[None]:
        master = self._master
        self._has_begun = True
        self._seen, self._roles_version = master.version, -1
        self._sweep_ms = self._swept_ms = self._roles_ms = now_ms
        self._offers = {
            offer_id: (offer.framework.framework_id, offer.agent.agent_id)
            for offer_id, offer in master.offers.items()
        }
        self._agents = dict.fromkeys(master.agents)
        self._frameworks = dict.fromkeys(master.frameworks)
        self._tasks = {}
        for framework in list(master.frameworks.values()):
            for task_id in list(framework.tasks):
                self._tasks[framework.framework_id, task_id] = None
                yield

    def _follow(self) -> None:
        """Note what the oldest changes that were not looked at make due."""
        master = self._master
        behind = master.version - self._seen
        changes: Iterator[tuple[str, Any, str]] = islice(
            reversed(master.changes), max(0, behind - CHANGES_MAX), behind
        )
        for kind, identity, _ in changes:
            if kind == "task":
                self._tasks[identity] = None
                self._touched_frameworks[identity[0]] = None
            elif kind == "offer":
                self._touch(identity)
            elif kind == "framework":
                self._frameworks[identity] = None
            elif kind == "agent" and identity != "*":  # That all are back is news of none.
                self._agents[identity] = None
        self._seen += min(behind, CHANGES_MAX)

    def _touch(self, offer_id: OfferId) -> None:
        """An offer was made or has ended. One of which both is news is known by what became of it: a task, or nothing."""
        offer = self._master.offers.get(offer_id)
        if offer is not None:
            self._offers[offer_id] = offer.framework.framework_id, offer.agent.agent_id
        owners = self._offers[offer_id] if offer is not None else self._offers.pop(offer_id, None)
        if owners is not None:
            self._touched_frameworks[owners[0]] = None
            self._touched_agents[owners[1]] = None

    def _sweep(self, message: pb.Changes, now_ms: int) -> Parts[None]:
        master = self._master
        for agent_id, heard_ms in reversed(master.agents_heard.items()):
            if heard_ms < self._swept_ms:
                break
            self._agents[agent_id] = None
        self._agents.update(self._touched_agents)
        self._frameworks.update(self._touched_frameworks)
        self._touched_agents, self._touched_frameworks = {}, {}
        self._swept_ms, self._sweep_ms = now_ms, now_ms + SWEEP_MS
        if now_ms >= self._roles_ms and self._roles_version != master.version:
            self._roles_version = master.version
            message.roles.CopyFrom(views.role_list(master))
            roles = yield from views.roles(master)
            yield from views.fill(roles, message.roles.roles)
            self._roles_ms = now_ms + len(roles) * 1_000 // views.ROLES_PER_SECOND_MAX

    def _fill(self, message: pb.Changes) -> Parts[None]:
        """Add rows, of peers before those of their tasks."""
        master = self._master
        for agent_id in _first(self._agents, PEERS_MAX):
            agent = master.agents.get(agent_id)
            _add(
                message,
                "agent",
                agent_id,
                agent,
                lambda row: message.agents.append(views.agent_info(master, row)),
            )
            yield
        for framework_id in _first(self._frameworks, PEERS_MAX):
            framework = master.frameworks.get(framework_id) or master.completed_frameworks.get(framework_id)
            _add(
                message,
                "framework",
                framework_id,
                framework,
                lambda row: message.frameworks.append(views.framework_info(master, row)),
            )
            yield
        for key in _first(self._tasks, TASKS_MAX):
            task = master.find_task(key)
            _add(
                message,
                "task",
                "/".join(key),
                task,
                lambda row: message.tasks.append(views.task_info(master, row)),
            )
            yield


def _first(due: dict[Key, None], count: int) -> list[Key]:
    """Take the first that are due."""
    taken = list(islice(due, count))
    for key in taken:
        del due[key]
    return taken


def _add(message: pb.Changes, kind: str, identity: str, found: Any, add: Callable[[Any], None]) -> None:
    if found is not None:
        add(found)
    else:
        message.changes.add(kind=kind, id=identity, what="removed")
