"""What must be true of a master between any two steps, as one check that raises.

The check reads everything and costs O(everything), so it runs after each step under test and on a sample in production.
It compares records that are kept apart on purpose: the master's tables of offers and tasks with each other, and their
sums with the allocator's books, which are kept by increments and never recomputed. A message names the ids and the
numbers that disagree.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from fairlead_master.core import settings as bounds
from fairlead_master.core.state import Agent, AgentState, Framework, FrameworkState, Master
from fairlead_proto.ids import FrameworkId
from fairlead_proto.resources import add, scale, subtract, sum_vectors
from fairlead_proto.task_state import TaskState, is_terminal

_Id = TypeVar("_Id", bound=str)

_AWAY = (AgentState.RECOVERING, AgentState.DISCONNECTED, AgentState.UNREACHABLE)


def check(master: Master) -> None:
    """Raise unless every book balances.

    Raises:
        AssertionError: some record contradicts another; the message names both.
    """
    assert not master.out, f"{len(master.out)} actions are left over from a step"
    _check_framework_sessions(master)
    _check_peers(master)
    _check_agent_sessions(master)
    _check_offers(master)
    _check_tasks(master)
    _check_deadlines(master)
    for agent in master.agents.values():
        _check_agent_books(master, agent)
    for framework in master.frameworks.values():
        _check_wanted(master, framework)
    _check_bounds(master)
    master.allocator.check()


def _check_framework_sessions(master: Master) -> None:
    for session, framework in master.framework_by_session.items():
        assert framework.session == session, (
            f"session {session} leads to framework {framework.framework_id}, which has {framework.session}"
        )
    for key, framework in master.frameworks.items():
        identity = framework.framework_id
        assert key == identity, f"framework {identity} is listed as {key}"
        assert identity not in master.completed_frameworks, (
            f"framework {identity} is listed as over and as not"
        )
        is_connected = framework.session is not None
        assert is_connected == (framework.state is FrameworkState.CONNECTED), (
            f"framework {identity} is {framework.state.value} with session {framework.session}"
        )
        if framework.session is not None:
            assert master.framework_by_session.get(framework.session) is framework, (
                f"session {framework.session} of framework {identity} leads to another or to none"
            )
        is_away = framework.state is FrameworkState.DISCONNECTED
        assert is_away == (identity in master.frameworks_away), f"framework {identity}: away or not?"
        assert (
            is_away == (framework.away_until_ms is not None) or framework.state is FrameworkState.COMPLETED
        ), f"framework {identity} is {framework.state.value} with failover deadline {framework.away_until_ms}"
        is_held = framework.tasks or framework.offers
        assert is_held or framework.state is not FrameworkState.COMPLETED, (
            f"framework {identity} is over, without tasks and offers, and its account is still open"
        )
    _check_listed("away", master.frameworks_away, master.frameworks)
    first = min((f.away_until_ms or 0 for f in master.frameworks_away.values()), default=None)
    found = master.failover_deadlines.first()
    assert (found and found[0]) == first, f"the first failover deadline is {first}, kept is {found}"
    assert len(master.failover_deadlines) == len(master.frameworks_away), "a failover deadline is nobody's"
    for identity, framework in master.completed_frameworks.items():
        assert not framework.tasks, f"framework {identity} is over and has live tasks"
        assert not framework.offers, f"framework {identity} is over and has offers"


def _check_peers(master: Master) -> None:
    expected: dict[str, tuple[int, int, list[FrameworkId]]] = {}
    for framework_id, framework in sorted(master.frameworks.items()):
        if framework.state is not FrameworkState.COMPLETED:
            count, demand_bytes, away = expected.get(framework.peer, (0, 0, []))
            away = [*away, framework_id] if framework_id in master.frameworks_away else away
            expected[framework.peer] = (count + 1, demand_bytes + framework.demand_bytes, away)
    found = master.peers.counts()
    assert found == expected, f"hosts are counted as {found}, their frameworks make {expected}"
    demand_bytes = sum(framework.demand_bytes for framework in master.frameworks.values())
    assert master.peers.demand_bytes == demand_bytes, (
        f"{master.peers.demand_bytes} bytes of demands are counted, frameworks have {demand_bytes}"
    )


def _check_listed(what: str, part: Mapping[_Id, object], whole: Mapping[_Id, object]) -> None:
    for key, record in part.items():
        assert whole.get(key) is record, f"{key} is listed as {what} and is not known, or is another"


def _check_agent_sessions(master: Master) -> None:
    for session, agent in master.agent_by_session.items():
        assert agent.session == session, (
            f"session {session} leads to agent {agent.agent_id}, which has {agent.session}"
        )
    for key, agent in master.agents.items():
        identity = agent.agent_id
        assert key == identity, f"agent {identity} is listed as {key}"
        is_away = agent.state in _AWAY
        assert is_away == (agent.session is None), (
            f"agent {identity} is {agent.state.value} with session {agent.session}"
        )
        if agent.session is not None:
            assert master.agent_by_session.get(agent.session) is agent, (
                f"session {agent.session} of agent {identity} leads to another or to none"
            )
        assert is_away == (identity in master.agents_away), f"agent {identity}: away or not?"
        assert is_away == (agent.deadline_ms is not None), (
            f"agent {identity} has deadline {agent.deadline_ms}"
        )
        assert is_away != (identity in master.agents_heard), f"agent {identity}: listened to or not?"
        is_waited_for = identity in master.recovering
        is_registering = agent.registration is not None
        assert is_registering == (identity in master.registering), (
            f"agent {identity}: is all it brought settled or not?"
        )
        assert not is_registering or agent.session is not None, (
            f"agent {identity} is away, and what it brought is not settled"
        )
        assert is_waited_for == (agent.state is AgentState.RECOVERING) or is_registering, (
            f"agent {identity} is {agent.state.value}, waited for: {is_waited_for}"
        )
    _check_listed("away", master.agents_away, master.agents)
    for identity in (*master.agents_heard, *master.recovering):
        assert identity in master.agents, f"agent {identity} is listened to or waited for, and is not known"


def _check_offers(master: Master) -> None:
    for key, offer in master.offers.items():
        assert key == offer.offer_id, f"offer {offer.offer_id} is listed as {key}"
        assert key not in master.ended_offers, f"offer {key} is out, and it ended: {master.ended_offers[key]}"
        assert offer.units > 0, f"offer {key} is of {offer.units} units"
        for where, offers in (("framework", offer.framework.offers), ("agent", offer.agent.offers)):
            assert offers.get(key) is offer, f"offer {key} is not in the table of its {where}"
        assert master.frameworks.get(offer.framework.framework_id) is offer.framework, (
            f"offer {key}: no framework"
        )
        assert master.agents.get(offer.agent.agent_id) is offer.agent, f"offer {key}: no agent"
        is_over = False
        for holder in (offer.framework, offer.agent):
            if offer.number <= holder.offers_over:
                is_over = True
                assert holder in master.leaving, f"offer {key} is over, and nobody ends it"
        assert is_over or offer.framework.session is not None, (
            f"offer {key} is out to a framework that is away"
        )
        assert is_over or offer.agent.session is not None, f"offer {key} is of an agent that is away"
    for what, count in (
        ("frameworks", sum(len(framework.offers) for framework in master.frameworks.values())),
        ("agents", sum(len(agent.offers) for agent in master.agents.values())),
    ):
        assert count == len(master.offers), f"{what} list {count} offers, the master {len(master.offers)}"
    _check_ordered("offers", (offer.expires_ms for offer in master.offers.values()))
    for offers in [f.offers for f in master.frameworks.values()] + [a.offers for a in master.agents.values()]:
        _check_ordered("offers of one holder", (offer.number for offer in offers.values()))


def _check_ordered(what: str, deadlines: Iterable[int]) -> None:
    last = None
    for deadline in deadlines:
        assert last is None or last <= deadline, f"{what}: deadline {deadline} stands after {last}"
        last = deadline


def _check_tasks(master: Master) -> None:
    for framework in master.frameworks.values():
        for task_id, task in framework.tasks.items():
            assert (task.framework_id, task.task_id) == (framework.framework_id, task_id), (
                f"task {task.key} is listed as {task_id} of framework {framework.framework_id}"
            )
            assert not is_terminal(task.state), f"task {task.key} is {task.state.value} and listed as live"
            assert 0 <= task.acknowledged <= task.sequence, (
                f"task {task.key}: acknowledged {task.acknowledged} of {task.sequence} statuses"
            )
            agent = master.agents.get(task.agent_id)
            assert agent is not None, f"task {task.key} is on agent {task.agent_id}, which is not known"
            assert agent.tasks.get(task.key) is task, (
                f"task {task.key} is not in the table of {task.agent_id}"
            )
            is_settled = agent.session is not None and agent.registration is None
            assert task.state is not TaskState.UNREACHABLE or not is_settled, (
                f"task {task.key} is unreachable on agent {agent.agent_id}, which is {agent.state.value}"
            )
    owned = sum(len(framework.tasks) for framework in master.frameworks.values())
    hosted = sum(len(agent.tasks) for agent in master.agents.values())
    assert owned == hosted, f"frameworks list {owned} live tasks, agents {hosted}"
    for key, task in master.finished.items():
        assert key == task.key, f"finished task {task.key} is listed as {key}"
        assert is_terminal(task.state), f"task {key} is {task.state.value} and listed as finished"


def _check_deadlines(master: Master) -> None:
    for what, deadlines in (("staging", master.staging), ("killing", master.killing)):
        _check_ordered(what, deadlines.values())
        for framework_id, task_id in deadlines:
            framework = master.frameworks.get(framework_id)
            task = framework.tasks.get(task_id) if framework is not None else None
            assert task is not None, f"{what}: task {framework_id}/{task_id} is not live"
            assert what != "staging" or task.state is TaskState.STAGING, (
                f"staging: task {framework_id}/{task_id} is {task.state.value}"
            )
            assert what != "killing" or task.kill_reason is not None, (
                f"killing: nobody asked for the end of task {framework_id}/{task_id}"
            )
    for framework in master.frameworks.values():
        for task in framework.tasks.values():
            assert task.kill_reason is None or task.key in master.killing, (
                f"the kill of {task.key} is not repeated"
            )
    for framework_id in master.ending:
        framework = master.frameworks.get(framework_id)
        assert framework is None or framework.state is FrameworkState.COMPLETED, (
            f"tasks of framework {framework_id} are ended, and it is not over"
        )
    for framework_id in master.reconciling:
        framework = master.frameworks.get(framework_id)
        assert framework is not None, f"framework {framework_id} is not known, and told of its tasks"
        assert framework.session is not None, f"framework {framework_id} is away, and told of its tasks"
    _check_ordered("heard", master.agents_heard.values())


def _check_agent_books(master: Master, agent: Agent) -> None:
    zero = master.kinds.zero
    books = master.allocator.agent_books(agent.agent_id)
    counting = [task.resources for task in agent.tasks.values() if task.state is not TaskState.UNREACHABLE]
    held = sum_vectors(counting, zero)
    offered = sum_vectors((scale(offer.unit, offer.units) for offer in agent.offers.values()), zero)
    units = sum(offer.units for offer in agent.offers.values())
    assert books.total == agent.total, f"agent {agent.agent_id}: total {agent.total}, allocator {books.total}"
    assert add(held, offered) == books.charged, (
        f"agent {agent.agent_id}: held {held} + offered {offered}, allocator charges {books.charged}"
    )
    assert books.free == subtract(agent.total, books.charged), (
        f"agent {agent.agent_id}: total {agent.total} - charged {books.charged} is not free {books.free}"
    )
    assert books.tasks == len(counting) + units, (
        f"agent {agent.agent_id}: {len(counting)} tasks + {units} units offered, allocator counts {books.tasks}"
    )
    is_settled = agent.session is not None and agent.registration is None
    assert books.active == is_settled, (
        f"agent {agent.agent_id} is {agent.state.value}, for the allocator active: {books.active}"
    )
    assert agent.state is not AgentState.UNREACHABLE or not counting or agent.agent_id in master.giving_up, (
        f"agent {agent.agent_id} is {agent.state.value}, {len(counting)} of its tasks are counted"
    )
    is_covered = agent.state is AgentState.ACTIVE and agent not in master.leaving
    is_judged = is_settled and agent.agent_id not in master.judging
    if is_judged and is_covered and not master.allocator.allows_overcommit:
        assert min(books.free) >= 0, f"agent {agent.agent_id} is active and has {books.free} free"


def _check_wanted(master: Master, framework: Framework) -> None:
    identity = framework.framework_id
    pending = master.allocator.pending(identity)
    assert pending.keys() == framework.demand.keys(), (
        f"framework {identity} wants {list(framework.demand)}, the allocator knows {list(pending)}"
    )
    for class_id, units in pending.items():
        offered = sum(offer.units for offer in framework.offers.values() if offer.class_id == class_id)
        wanted = framework.demand[class_id].units
        assert 0 <= units <= max(0, wanted - offered), (
            f"framework {identity}: {units} units of {class_id} are pending, of {wanted} with {offered} offered"
        )


def _check_bounds(master: Master) -> None:
    for what, size, bound in (
        ("finished tasks", len(master.finished), bounds.FINISHED_TASKS_KEPT),
        ("completed frameworks", len(master.completed_frameworks), bounds.COMPLETED_FRAMEWORKS_KEPT),
        ("ended offers", len(master.ended_offers), bounds.ENDED_OFFERS_KEPT),
        ("frameworks", len(master.frameworks), bounds.FRAMEWORKS_MAX),
        ("changes", len(master.changes), bounds.CHANGES_KEPT),
    ):
        assert size <= bound, f"{size} {what} are kept, expected at most {bound}"
