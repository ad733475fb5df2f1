"""Agents: registration, loss, return, and what follows for their tasks.

What becomes of the tasks that an agent brings is settled in ``registrations``. Tasks of an agent that is given up or
forgotten are judged in parts too; one that is not judged yet is as it was.
"""

from collections import deque
from itertools import islice

from fairlead_master.allocation.policies.names import slots_per_agent
from fairlead_master.core import measurements, offers, registrations, tasks
from fairlead_master.core import settings as bounds
from fairlead_master.core.actions import ForgetAgent, StoreAgent
from fairlead_master.core.events import AgentBeat, AgentDisconnected, AgentDoubted, StatusesReported
from fairlead_master.core.state import Agent, AgentState, Master
from fairlead_proto.codes import RefusalCode
from fairlead_proto.framework_events import AnnounceAgentGone
from fairlead_proto.ids import AgentId
from fairlead_proto.orders import ConfirmAgent, EndAgentSession, PingAgent
from fairlead_proto.reports import AgentConnected
from fairlead_proto.task_state import Reason, TaskState, can_move

_ADDED_ATTRIBUTES = ("hostname", "agent_id")


def agent_connected(master: Master, event: AgentConnected, now_ms: int) -> None:
    """Admit an agent, or welcome one back, and settle what became of its tasks."""
    refusal = _refusal(master, event)
    if refusal is not None:
        master.out.append(EndAgentSession(session=event.session, code=refusal[0], detail=refusal[1]))
        return
    known = master.agents.get(event.agent_id) if event.agent_id is not None else None
    ended = _supersede(master, known) if known is not None else 0
    agent = _known_or_new(master, event)
    registrations.begin(master, agent, event, was_known=known is not None)
    _open_session(master, agent, event, now_ms)
    _settle_some(master, agent, bounds.TASKS_PER_STEP_MAX - ended, now_ms)


def settle_in_parts(master: Master, most: int, now_ms: int) -> int:
    """Settle so much of what agents brought when they registered; gives how much that was."""
    done = 0
    for agent in list(master.registering.values()):
        if done >= most:
            break
        done += _settle_some(master, agent, most - done, now_ms)
    return done


def _settle_some(master: Master, agent: Agent, most: int, now_ms: int) -> int:
    if agent in master.leaving:
        return 0  # What it offered before it left is still held.
    done = registrations.settle_some(master, agent, most, now_ms)
    if agent.registration is not None and not agent.registration.left:
        _end_registration(master, agent)
        done += 1
    return done


def _end_registration(master: Master, agent: Agent) -> None:
    """Everything it brought is settled: what is free of it can be offered."""
    agent.registration = None
    agent.has_registered = True
    del master.registering[agent.agent_id]
    master.recovering.pop(agent.agent_id, None)
    _judge_capacity(master, agent)
    if not master.recovering and master.recovery_until_ms is not None:
        end_recovery(master)
    master.note("agent", agent.agent_id, agent.state.value)


def statuses_reported(master: Master, event: StatusesReported, now_ms: int) -> None:
    """Take reports of an agent, in order: behind what it brought, as long as that is not settled."""
    agent = master.agent_by_session.get(event.session)
    if agent is None:
        return
    master.hear(agent, now_ms)
    if agent.registration is None:
        tasks.take_reports(master, agent, event.statuses, now_ms)
    else:
        agent.registration.left.extend(event.statuses)
        _settle_some(master, agent, bounds.TASKS_PER_STEP_MAX, now_ms)


def adds(master: Master, event: AgentConnected) -> bool:
    """Whether the event, stepped now, would admit an agent that is not written down."""
    return _refusal(master, event) is None and event.agent_id not in master.agents


def _is_news(agent: Agent | None, event: AgentConnected) -> bool:
    """Whether what is written down about the agent, if anything, says something else."""
    if agent is None or agent.state is AgentState.UNREACHABLE:
        return True
    attributes = {**event.attributes, "hostname": event.hostname, "agent_id": agent.agent_id}
    return (agent.total, agent.attributes) != (event.total, attributes)


def _refusal(master: Master, event: AgentConnected) -> tuple[RefusalCode, str] | None:
    if event.last_epoch > master.epoch:
        return (
            RefusalCode.OLD_EPOCH,
            f"this master has epoch {master.epoch}, you have seen {event.last_epoch}",
        )
    if not any(event.total):
        return RefusalCode.INVALID, "total: expected at least one resource above zero, got none"
    agent = master.agents.get(event.agent_id) if event.agent_id is not None else None
    if agent is not None and agent.session is not None and event.incarnation < agent.incarnation:
        detail = f"a newer process (incarnation {agent.incarnation}) of agent {agent.agent_id} is connected"
        return RefusalCode.SUPERSEDED, detail
    return None


def _supersede(master: Master, agent: Agent) -> int:
    """Close the session that the agent has, if any; gives how many offers ended with it."""
    session = agent.session
    if session is None:
        return 0
    ended = close_session(master, agent)
    detail = "a newer session took over"
    master.out.append(EndAgentSession(session=session, code=RefusalCode.SUPERSEDED, detail=detail))
    return ended


def _known_or_new(master: Master, event: AgentConnected) -> Agent:
    agent_id = event.agent_id
    if agent_id is None:
        master.agents_made += 1
        agent_id = AgentId(f"a{master.life}-{master.agents_made}")
    agent = master.agents.get(agent_id)
    attributes = {**event.attributes, "hostname": event.hostname, "agent_id": agent_id}
    is_news = _is_news(agent, event)
    if agent is None:
        agent = Agent(
            agent_id=agent_id,
            hostname=event.hostname,
            total=event.total,
            attributes=attributes,
            state=AgentState.DISCONNECTED,
        )
        master.agents[agent_id] = agent
        master.allocator.add_agent(agent_id, event.total, attributes)
    if is_news:
        master.out.append(
            StoreAgent(
                agent_id=agent_id,
                hostname=event.hostname,
                total=event.total,
                attributes=tuple(
                    sorted(item for item in event.attributes.items() if item[0] not in _ADDED_ATTRIBUTES)
                ),
            )
        )
    return agent


def _open_session(master: Master, agent: Agent, event: AgentConnected, now_ms: int) -> None:
    agent.session = event.session
    agent.incarnation = event.incarnation
    agent.hostname = event.hostname
    agent.attributes = {**event.attributes, "hostname": event.hostname, "agent_id": agent.agent_id}
    agent.total = event.total
    agent.isolation = event.isolation
    agent.version = event.version
    agent.answers_ping = event.answers_ping
    agent.clock_skew_ms = event.agent_time_ms - now_ms if event.agent_time_ms else 0
    agent.registered_ms = now_ms
    agent.deadline_ms = None
    agent.state = AgentState.ACTIVE
    agent.mourners = {}
    master.agents_away.pop(agent.agent_id, None)
    master.giving_up.pop(agent.agent_id, None)
    master.agent_by_session[event.session] = agent
    master.hear(agent, now_ms)
    master.allocator.update_agent(agent.agent_id, agent.total, agent.attributes)
    master.out.append(
        ConfirmAgent(
            session=event.session,
            agent_id=agent.agent_id,
            heartbeat_interval_ms=master.settings.heartbeat_interval_ms,
        )
    )


def _judge_capacity(master: Master, agent: Agent) -> None:
    """Say so where an agent's tasks hold more than it has.

    It stays part of the capacity that shares are counted on, and nothing more is offered of what it lacks: a free
    part below zero holds no unit. Under slots a task takes a slot whatever it needs, so totals need not cover anything.
    Before everything it brought is settled, nobody knows.
    """
    if agent.registration is not None:
        return
    has_slots = slots_per_agent(master.settings.allocation.policy) is not None
    covered = has_slots or min(tasks.free_of(agent)) >= 0
    agent.state = AgentState.ACTIVE if covered else AgentState.OVERCOMMITTED
    master.allocator.set_agent_active(agent.agent_id, True)


def judge_in_parts(master: Master, most: int, _now_ms: int) -> int:
    """Judge so many of the agents that hold what the policy before allowed: slots give more than there is, vectors do not."""
    done = 0
    while master.judging and done < most:
        done += 1
        agent = master.agents.get(master.judging.popleft())
        if agent is None or agent.session is None:
            continue
        if not master.allocator.allows_overcommit and min(master.allocator.free(agent.agent_id)) < 0:
            # An offer takes twice as long as other things, see ``OFFERS_ENDED_PER_STEP_MAX``.
            done += 2 * offers.leave(master, agent, offers.POLICY_CHANGED, max(0, (most - done) // 2))
        _judge_capacity(master, agent)
    return done


def agent_beat(master: Master, event: AgentBeat, now_ms: int) -> None:
    """Take measurements; that the agent is alive, every message says."""
    agent = master.agent_by_session.get(event.session)
    if agent is None:
        return
    master.hear(agent, now_ms)
    agent.used = event.used
    measurements.beat(master, agent, event, now_ms)
    if agent.state is AgentState.OVERCOMMITTED:
        _judge_capacity(master, agent)


def agent_doubted(master: Master, event: AgentDoubted, now_ms: int) -> None:
    """Ask the agent at once. Any message of it is an answer; without one its session ends."""
    agent = master.agents.get(event.agent_id)
    if agent is None or agent.session is None or not agent.answers_ping:
        return
    if agent.agent_id not in master.agents_doubted:
        master.agents_doubted[agent.agent_id] = now_ms + master.settings.agent_doubt_ms
        master.out.append(PingAgent(session=agent.session))


def agent_disconnected(master: Master, event: AgentDisconnected, now_ms: int) -> None:
    """Start the timeout after which its tasks are unreachable."""
    agent = master.agent_by_session.get(event.session)
    if agent is not None:
        close_session(master, agent)
        _leave(master, agent, now_ms)


def _leave(master: Master, agent: Agent, now_ms: int) -> None:
    """It has a timeout to come back in. One that had not brought everything is waited for as before."""
    is_awaited = agent.agent_id in master.recovering
    state = AgentState.RECOVERING if is_awaited else AgentState.DISCONNECTED
    _go_away(master, agent, state, now_ms + master.settings.agent_timeout_ms)


def close_session(master: Master, agent: Agent) -> int:
    """Nothing reaches the agent any more: its offers are over, its resources are not offered. Gives how many offers ended."""
    assert agent.session is not None, f"agent {agent.agent_id} has no session to close"
    del master.agent_by_session[agent.session]
    master.agents_heard.pop(agent.agent_id, None)
    master.agents_doubted.pop(agent.agent_id, None)
    agent.session = None
    agent.registration = None
    master.registering.pop(agent.agent_id, None)
    master.measuring.pop(agent.agent_id, None)
    ended = offers.leave(master, agent, offers.AGENT_LEFT, bounds.OFFERS_ENDED_PER_STEP_MAX)
    master.allocator.set_agent_active(agent.agent_id, False)
    return ended


def _go_away(master: Master, agent: Agent, state: AgentState, deadline_ms: int) -> None:
    agent.state = state
    agent.deadline_ms = deadline_ms
    master.agents_away[agent.agent_id] = agent
    master.note("agent", agent.agent_id, state.value)


def end_overdue(master: Master, most: int, now_ms: int) -> int:
    """Close silent sessions, give up disconnected agents, forget unreachable ones, end the recovery.

    So many together, agents and tasks of those that are forgotten; gives how many.
    """
    done = 0
    while master.agents_heard and done < most:
        agent_id, heard_ms = next(iter(master.agents_heard.items()))
        if heard_ms + master.settings.agent_silence_ms > now_ms:
            break
        done += 1 + _end_silent(master, agent_id, f"nothing heard for {now_ms - heard_ms} ms", now_ms)
    while master.agents_doubted and done < most:
        agent_id, deadline_ms = next(iter(master.agents_doubted.items()))
        if deadline_ms > now_ms:
            break
        detail = f"reported gone, and no answer within {master.settings.agent_doubt_ms} ms"
        done += 1 + _end_silent(master, agent_id, detail, now_ms)
    done += _judge_away(master, most - done, now_ms)
    if master.recovery_until_ms is not None and master.recovery_until_ms <= now_ms:
        end_recovery(master)
    return done


def _end_silent(master: Master, agent_id: AgentId, detail: str, now_ms: int) -> int:
    agent = master.agents[agent_id]
    session = agent.session
    assert session is not None, f"agent {agent_id} is waited for without a session"
    ended = close_session(master, agent)
    master.out.append(EndAgentSession(session=session, code=RefusalCode.TOO_SLOW, detail=detail))
    _leave(master, agent, now_ms)
    return ended


def _judge_away(master: Master, most: int, now_ms: int) -> int:
    """Give up agents that are away for too long, and forget those that are given up for too long."""
    left = most
    due = [
        agent
        for agent in master.agents_away.values()
        if agent.deadline_ms is not None and agent.deadline_ms <= now_ms
    ]
    for agent in due:
        if left <= 0:
            break
        if agent.state is AgentState.UNREACHABLE:
            left -= 1 + _forget_some(master, agent, left, now_ms)
        else:
            _give_up(master, agent, now_ms)
            left -= 1
    return most - left


def give_up_in_parts(master: Master, most: int, now_ms: int) -> int:
    """Judge so many tasks of agents that are given up; gives how many were looked at."""
    done = 0
    while master.giving_up and done < most:
        agent = master.agents[next(iter(master.giving_up))]
        done += _give_up_some(master, agent, most - done, now_ms)
    return done


def _give_up_some(master: Master, agent: Agent, most: int, now_ms: int) -> int:
    """What it ran may be replaced, and may yet come back."""
    left = master.giving_up[agent.agent_id]
    done = min(most, len(left))
    for _ in range(done):
        task = left.popleft()
        if can_move(task.state, TaskState.UNREACHABLE):
            message = f"agent {agent.agent_id} has been away for {master.settings.agent_timeout_ms} ms"
            tasks.conclude(master, task, TaskState.UNREACHABLE, Reason.AGENT_DISCONNECTED, message, now_ms)
    if not left:
        del master.giving_up[agent.agent_id]
    return done


def _give_up(master: Master, agent: Agent, now_ms: int) -> None:
    """The agent has been away too long. Its tasks are judged in parts, from the end of this tick on."""
    master.giving_up[agent.agent_id] = deque(agent.tasks.values())
    _go_away(master, agent, AgentState.UNREACHABLE, now_ms + master.settings.agent_forget_ms)
    master.recovering.pop(agent.agent_id, None)
    master.out.append(
        StoreAgent(
            agent_id=agent.agent_id,
            hostname=agent.hostname,
            total=agent.total,
            attributes=_own_attributes(agent),
            is_away=True,
        )
    )


def _own_attributes(agent: Agent) -> tuple[tuple[str, str], ...]:
    """What the agent itself named; the master adds the two others to every agent."""
    return tuple(sorted(item for item in agent.attributes.items() if item[0] not in _ADDED_ATTRIBUTES))


def _forget_some(master: Master, agent: Agent, most: int, now_ms: int) -> int:
    """The agent will not return: its tasks are gone, so many now, and with the last of them its id is free of meaning."""
    some = list(islice(agent.tasks.values(), most))
    for task in some:
        agent.mourners[task.framework_id] = None
        message = f"agent {agent.agent_id} was given up after {master.settings.agent_forget_ms} ms"
        tasks.conclude(master, task, TaskState.GONE, Reason.AGENT_REMOVED, message, now_ms)
    if not agent.tasks and not agent.offers:
        _forget(master, agent)
    return len(some)


def _forget(master: Master, agent: Agent) -> None:
    told: dict[int, None] = {}
    for framework_id in agent.mourners:
        framework = master.frameworks.get(framework_id)
        if framework is not None and framework.session is not None:
            told[framework.session] = None
    for session in told:
        master.out.append(AnnounceAgentGone(session=session, agent_id=agent.agent_id, reason="away too long"))
    master.allocator.remove_agent(agent.agent_id)
    del master.agents[agent.agent_id]
    del master.agents_away[agent.agent_id]
    master.giving_up.pop(agent.agent_id, None)
    master.out.append(ForgetAgent(agent_id=agent.agent_id))
    master.note("agent", agent.agent_id, "removed")


def end_recovery(master: Master) -> None:
    """Start to offer: everyone is back, or has been waited for long enough."""
    master.recovery_until_ms = None
    master.note("agent", "*", "recovered")
