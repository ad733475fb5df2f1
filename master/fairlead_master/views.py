"""What operators see of the core's state, as messages. Reads between steps, changes nothing."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from itertools import groupby, islice
from math import inf
from operator import itemgetter
from typing import Final, TypeVar

import fairlead_master
from fairlead_master.allocation.api import Prices, RoleRow
from fairlead_master.allocation.hierarchy import parent_of, with_those_above
from fairlead_master.allocation.parts import Parts
from fairlead_master.allocation.weights import Weight
from fairlead_master.core.operations import find_by_id
from fairlead_master.core.state import Agent, Framework, FrameworkState, Master, Offer, Task
from fairlead_proto.convert import fill_resources, fill_usage, write_constraint, write_resources
from fairlead_proto.ids import ClassId, FrameworkId, TaskId
from fairlead_proto.resources import ResourceKinds, Vector, add, scale, sum_vectors
from fairlead_proto.tasks import DemandClass
from fairlead_proto.v1 import operator_pb2 as pb
from fairlead_proto.v1 import types_pb2

PAGE_SIZE_DEFAULT: Final = 1_000
PAGE_SIZE_MAX: Final = 5_000
PENDING: Final = "PENDING"
AMOUNT_SHOWN_MAX: Final = 2**63 - 1
"""What a field of the schema holds. One agent has at most 2^53 of anything, so an honest cluster stays far below."""

ROLES_PER_SECOND_MAX: Final = 250
"""Of which one reader is told unasked, in the long run: at some 40 us each 1 % of a processor. With more of them, their shares
come less often than once a second."""

ROWS_SORTED_MAX: Final = 2_000
"""At once, of those found for a page: beside the page's own some 3 ms."""

Row = TypeVar("Row")
Info = TypeVar("Info")


def page(
    rows: Iterable[Row | None], key: Callable[[Row], str], size: int, token: str
) -> Parts[tuple[list[Row], str]]:
    """The rows after ``token`` in key order, and the token of the next page, empty at the end.

    In parts: ``rows`` may give None where it passes over something.
    """
    wanted = min(size or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
    first: list[tuple[str, Row]] = []
    others: list[tuple[str, Row]] = []
    for row in rows:
        if row is not None and (name := key(row)) > token:
            others.append((name, row))
            if len(others) == ROWS_SORTED_MAX:
                first = sorted([*first, *others], key=itemgetter(0))[: wanted + 1]
                others = []
        yield
    first = sorted([*first, *others], key=itemgetter(0))
    taken = first[:wanted]
    return [row for _, row in taken], taken[-1][0] if len(first) > wanted else ""


def fill(infos: Iterable[Info | None], answer: MutableSequence[Info]) -> Parts[None]:
    """Add rows to an answer, in parts. None stands for what has left since it was found."""
    for info in infos:
        if info is not None:
            answer.append(info)
        yield


def cluster(master: Master, now_ms: int) -> Parts[pb.Cluster]:
    """The whole in a few numbers. In parts: sums count each agent as it is when its turn comes."""
    kinds, settings = master.kinds, master.settings.allocation
    total, held, used, agents = kinds.zero, kinds.zero, kinds.zero, 0
    for agent_id in list(master.agents):
        agent = master.agents.get(agent_id)
        if agent is not None and agent.is_connected:
            agents += 1
            total, held = add(total, agent.total), add(held, _allocated(master, agent))
            used = add(used, agent.used) if agent.used else used
        yield
    return pb.Cluster(
        epoch=master.epoch,
        version=fairlead_master.__version__,
        policy=settings.policy,
        placement=settings.placement,
        when_head_does_not_fit=settings.when_head_does_not_fit,
        recovering=master.recovery_until_ms is not None,
        recovering_agent_ids=list(master.recovering),
        master_time_ms=now_ms,
        total=_shown(total, kinds),
        allocated=_shown(held, kinds),
        used=_shown(used, kinds),
        agents=agents,
        frameworks=sum(framework.session is not None for framework in master.frameworks.values()),
        tasks_active=sum(len(framework.tasks) for framework in master.frameworks.values()),
        tasks_finished=master.tasks_ended,
        decisions=master.allocator.counters.decisions,
        cycles=master.allocator.counters.cycles,
        cpu_time_ms=int(time.process_time() * 1000),
    )


def _shown(vector: Vector, kinds: ResourceKinds) -> types_pb2.Resources:
    """A sum as a message: sums of what peers say may lie beyond what its fields hold, and one peer must not break a listing."""
    return write_resources(tuple([min(max(0, place), AMOUNT_SHOWN_MAX) for place in vector]), kinds)


def _offered(master: Master, agent: Agent) -> Vector:
    return sum_vectors((scale(offer.unit, offer.units) for offer in agent.offers.values()), master.kinds.zero)


def _allocated(master: Master, agent: Agent) -> Vector:
    held = sum_vectors((task.resources for task in agent.tasks.values()), master.kinds.zero)
    return add(held, _offered(master, agent))


TaskRow = Task | tuple[Framework, TaskId, ClassId]
"""A task, or a waiting one as its framework names it: framework, id, class."""


def select_tasks(master: Master, states: frozenset[str], framework_id: str) -> Iterator[TaskRow | None]:
    """Live tasks, remembered finished ones, and those their frameworks say they wait for, unordered; None for others."""
    for framework in list(master.frameworks.values()):
        if framework_id not in ("", framework.framework_id):
            continue
        for task in list(framework.tasks.values()):
            yield task if not states or task.state.value in states else None
        if not states or PENDING in states:
            yield from _waiting(master, framework)
    for task in list(master.finished.values()):
        is_listed = framework_id in ("", task.framework_id) and (not states or task.state.value in states)
        yield task if is_listed else None


def task_row_key(row: TaskRow) -> str:
    """The order of the listing: by framework, then by id."""
    if isinstance(row, Task):
        return f"{row.framework_id}/{row.task_id}"
    return f"{row[0].framework_id}/{row[1]}"


def task_row_info(master: Master, row: TaskRow, states: frozenset[str] = frozenset()) -> pb.TaskInfo | None:
    """The message of a row as it is by now; None if it is no more, or in another state than those asked for."""
    key = row.key if isinstance(row, Task) else (row[0].framework_id, row[1])
    task = master.find_task(key)
    if task is not None:
        return task_info(master, task) if not states or task.state.value in states else None
    if isinstance(row, Task) or master.frameworks.get(row[0].framework_id) is not row[0]:
        return None
    framework, task_id, class_id = row
    demand = framework.demand.get(class_id)
    if demand is None or task_id not in demand.waiting_task_ids:
        return None
    return _pending(master, framework, task_id, demand.unit)


def find_tasks(master: Master, task_ids: Iterable[str], framework_id: str) -> Iterator[pb.TaskInfo | None]:
    """The tasks of these ids, and all of them that wait; None for others."""
    ids = dict.fromkeys(task_ids)
    owner = FrameworkId(framework_id) if framework_id else None
    for task_id in ids:
        yield None
        yield from [task_info(master, task) for task in find_by_id(master, TaskId(task_id), owner)]
    for framework in list(master.frameworks.values()):
        yield None
        for row in _waiting(master, framework):
            yield task_row_info(master, row) if row[1] in ids else None


def _waiting(master: Master, framework: Framework) -> Iterator[tuple[Framework, TaskId, ClassId]]:
    """The waiting tasks a framework names in its demand: at most a few of each class."""
    for demand in list(framework.demand.values()):
        for task_id in demand.waiting_task_ids:
            if task_id not in framework.tasks and (framework.framework_id, task_id) not in master.finished:
                yield framework, task_id, demand.class_id


def _pending(master: Master, framework: Framework, task_id: TaskId, unit: Vector) -> pb.TaskInfo:
    return pb.TaskInfo(
        task_id=task_id,
        name=task_id,
        framework_id=framework.framework_id,
        framework=framework.name,
        role=framework.role,
        state=PENDING,
        resources=write_resources(unit, master.kinds),
        submitted_ms=framework.demand_since_ms,
    )


def is_known_framework(master: Master, framework_id: str) -> bool:
    """Whether this master has a framework of this id, or remembers one; the empty id is of all."""
    return (
        not framework_id or framework_id in master.frameworks or framework_id in master.completed_frameworks
    )


def framework_name(master: Master, framework_id: FrameworkId) -> str:
    """Its name, if it is still remembered."""
    framework = master.frameworks.get(framework_id) or master.completed_frameworks.get(framework_id)
    return framework.name if framework is not None else ""


def task_info(master: Master, task: Task) -> pb.TaskInfo:
    """One task."""
    info = pb.TaskInfo(
        task_id=task.task_id,
        name=task.name,
        framework_id=task.framework_id,
        framework=framework_name(master, task.framework_id),
        role=task.role,
        agent_id=task.agent_id,
        state=task.state.value,
        resources=write_resources(task.resources, master.kinds) if task.resources else None,
        submitted_ms=task.submitted_ms,
        started_ms=task.started_ms,
        finished_ms=task.finished_ms,
        exit_code=task.exit_code,
        signal=task.signal,
        reason=task.reason.value,
        message=task.message,
        command=task.command,
        labels=task.labels,
    )
    if task.usage is not None:
        fill_usage(info.usage, task.usage)
    return info


def agent_info(master: Master, agent: Agent) -> pb.AgentInfo:
    """One agent."""
    kinds = master.kinds
    info = pb.AgentInfo(
        agent_id=agent.agent_id,
        hostname=agent.hostname,
        state=agent.state.value,
        attributes={
            name: value for name, value in agent.attributes.items() if name not in ("hostname", "agent_id")
        },
        total=write_resources(agent.total, kinds),
        allocated=_shown(_allocated(master, agent), kinds),
        offered=_shown(_offered(master, agent), kinds),
        tasks=len(agent.tasks),
        isolation=agent.isolation,
        clock_skew_ms=agent.clock_skew_ms,
        registered_ms=agent.registered_ms,
        version=agent.version,
    )
    if agent.used:
        fill_resources(info.used, agent.used, kinds)
    return info


def framework_info(master: Master, framework: Framework) -> pb.FrameworkInfo:
    """One framework."""
    is_over = framework.state is FrameworkState.COMPLETED
    return pb.FrameworkInfo(
        framework_id=framework.framework_id,
        name=framework.name,
        role=framework.role,
        state=framework.state.value,
        pending=0 if is_over else sum(master.allocator.pending(framework.framework_id).values()),
        running=len(framework.tasks),
        finished=framework.tasks_finished,
        offers_sent=framework.offers_sent,
        offers_accepted=framework.offers_accepted,
        offers_declined=framework.offers_declined,
        offers_expired=framework.offers_expired,
        demand_version=framework.demand_version,
        registered_ms=framework.registered_ms,
        principal=framework.principal,
        version=framework.version,
    )


def roles(master: Master) -> Parts[list[pb.RoleInfo]]:
    """Every role with a framework in it or below it, then those that only have a weight.

    What a role holds, wants and runs includes the roles below it.
    """
    running: dict[str, int] = {}
    used: dict[str, Vector] = {}
    for framework in list(master.frameworks.values()):
        for role in with_those_above(framework.role):
            running[role] = running.get(role, 0) + len(framework.tasks)
            if framework.used:
                used[role] = add(used.get(role, master.kinds.zero), framework.used)
        yield
    infos = []
    for row in (yield from master.allocator.role_report_in_parts()):
        infos.append(_role(master, row, running.get(row.role, 0), used.get(row.role)))
        yield
    for role, weight in sorted(master.allocator.weights_in_waiting().items()):
        infos.append(
            pb.RoleInfo(
                role=role,
                weight=weight.default,
                resource_weights=_by_name(master, weight),
                key=inf,
                parent=parent_of(role) or "",
            )
        )
        yield
    return infos


def _role(master: Master, row: RoleRow, running: int, used: Vector | None) -> pb.RoleInfo:
    return pb.RoleInfo(
        role=row.role,
        weight=row.weight.default,
        resource_weights=_by_name(master, row.weight),
        dominant_share=row.dominant_share,
        dominant_resource=row.dominant_resource,
        key=row.key,
        fair_share=row.fair_share,
        pending=row.pending,
        running=running,
        frameworks=row.frameworks,
        allocated=_shown(row.charged, master.kinds),
        rank=row.rank,
        counted=_shown(row.counted, master.kinds),
        used=_shown(used, master.kinds) if used is not None else None,
        parent=row.parent or "",
    )


def _by_name(master: Master, weight: Weight) -> dict[str, float]:
    names = master.kinds.names
    return {names[place]: value for place, value in (weight.by_resource or {}).items()}


def prices(master: Master, prices: Prices | None) -> dict[str, float]:
    """What the whole of each resource costs roles, by name, if the cluster has any of it; empty without prices."""
    if prices is None:
        return {}
    return {
        name: price
        for name, price, total in zip(
            master.kinds.names, prices.of_whole, master.allocator.capacity, strict=True
        )
        if total
    }


def offer_info(master: Master, offer: Offer, now_ms: int) -> pb.OfferInfo:
    """One outstanding offer."""
    return pb.OfferInfo(
        offer_id=offer.offer_id,
        framework_id=offer.framework.framework_id,
        framework=offer.framework.name,
        agent_id=offer.agent.agent_id,
        class_id=offer.class_id,
        units=offer.units,
        resources=_shown(scale(offer.unit, offer.units), master.kinds),
        expires_in_ms=max(0, offer.expires_ms - now_ms),
    )


ClassRow = tuple[Framework, DemandClass]


def class_rows(master: Master) -> Iterator[ClassRow]:
    """Every demand class of every framework, unordered."""
    for framework in list(master.frameworks.values()):
        for demand in list(framework.demand.values()):
            yield framework, demand


def class_row_key(row: ClassRow) -> str:
    """The order of the listing: by framework, then by class."""
    return f"{row[0].framework_id}/{row[1].class_id}"


def class_infos(master: Master, rows: Iterable[ClassRow]) -> Iterator[pb.ClassInfo | None]:
    """The messages of rows in which those of a framework follow one another; None for a class that is no more."""
    by_framework: Iterator[tuple[Framework, Iterator[ClassRow]]] = groupby(rows, key=itemgetter(0))
    for framework, own in by_framework:
        if master.frameworks.get(framework.framework_id) is not framework:
            continue
        pending = master.allocator.pending(framework.framework_id)
        offered: Counter[ClassId] = Counter()
        for offer in framework.offers.values():
            offered[offer.class_id] += offer.units
        for _, listed in own:
            demand = framework.demand.get(listed.class_id)
            if demand is None or demand.class_id not in pending:
                yield None
                continue
            yield pb.ClassInfo(
                framework_id=framework.framework_id,
                class_id=demand.class_id,
                unit=write_resources(demand.unit, master.kinds),
                pending=pending[demand.class_id],
                offered=offered[demand.class_id],
                constraints=map(write_constraint, demand.constraints),
            )


def role_list(master: Master, taken: Sequence[pb.RoleInfo] = ()) -> pb.ListRolesResponse:
    """What roles have in common, with some of them."""
    prices_now = master.allocator.prices()
    return pb.ListRolesResponse(
        roles=taken,
        version=master.version,
        policy=master.settings.allocation.policy,
        demand=master.settings.allocation.demand,
        prices=prices(master, prices_now),
        price_error=prices_now.error if prices_now else 0.0,
        bottlenecks=master.allocator.bottlenecks() or (),
    )


def changes_after(master: Master, version: int, kinds: frozenset[str], count_max: int) -> pb.Changes:
    """Changes after a version, oldest first; or the word to list again, if the oldest of them are forgotten."""
    oldest = master.version - len(master.changes) + 1
    if version + 1 < oldest:
        return pb.Changes(version=master.version, resync=True)
    start = version + 1 - oldest
    taken = list(islice(master.changes, start, start + count_max))
    changes = [
        pb.Change(kind=kind, id=identity if isinstance(identity, str) else "/".join(identity), what=what)
        for kind, identity, what in taken
        if not kinds or kind in kinds
    ]
    return pb.Changes(version=version + len(taken), changes=changes)


def decisions(master: Master, count: int) -> Sequence[pb.Decision]:
    """The last grants, newest first."""
    taken = list(islice(reversed(master.allocator.decisions), count))
    return [
        pb.Decision(
            number=decision.number,
            time_ms=decision.time_ms,
            framework_id=decision.grant.framework_id,
            role=decision.grant.role,
            agent_id=decision.grant.agent_id,
            class_id=decision.grant.class_id,
            units=decision.grant.units,
            key_before=decision.grant.key_before,
            key_after=decision.grant.key_after,
            policy=decision.policy,
        )
        for decision in taken
    ]
