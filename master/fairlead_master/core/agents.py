"""Agents: registration, loss, return, and what follows for their tasks.

Agents keep the truth about their tasks; the master compares what it believes with what a registration says:
known and running goes on, unknown but of a known framework is adopted, given up or nobody's is killed, expected but
absent is LOST (or DROPPED, if the agent never spoke of it).
"""

from fairlead_master.allocation.policies.names import slots_per_agent
from fairlead_master.core import measurements, offers, tasks
from fairlead_master.core.actions import (
    AnnounceAgentGone,
    ConfirmAgent,
    EndAgentSession,
    ForgetAgent,
    KillTask,
    PingAgent,
    RefusalCode,
    StoreAgent,
)
from fairlead_master.core.events import AgentBeat, AgentConnected, AgentDisconnected, AgentDoubted
from fairlead_master.core.state import Agent, AgentState, FrameworkState, Master, Task
from fairlead_proto.ids import AgentId
from fairlead_proto.task_state import Reason, TaskState, can_move, is_terminal
from fairlead_proto.tasks import RunningTask, TaskStatus

_ADDED_ATTRIBUTES = ("hostname", "agent_id")


def agent_connected(master: Master, event: AgentConnected, now_ms: int) -> None:
    """Admit an agent, or welcome one back, and settle what became of its tasks."""
    refusal = _refusal(master, event)
    if refusal is not None:
        master.out.append(EndAgentSession(session=event.session, code=refusal[0], detail=refusal[1]))
        return
    was_known = event.agent_id in master.agents
    agent = _known_or_new(master, event)
    _open_session(master, agent, event, now_ms)
    if was_known:
        _adopt_all(master, agent, event, now_ms)
    else:
        _end_all(master, agent, event)
    _settle_tasks(master, agent, event, now_ms)
    _judge_capacity(master, agent)
    if not master.recovering and master.recovery_until_ms is not None:
        end_recovery(master)
    master.note("agent", agent.agent_id, agent.state.value)


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
    elif agent.session is not None:
        old_session = agent.session
        close_session(master, agent)
        master.out.append(
            EndAgentSession(
                session=old_session, code=RefusalCode.SUPERSEDED, detail="a newer session took over"
            )
        )
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
    agent.boot_id = event.boot_id
    agent.hostname = event.hostname
    agent.attributes = {**event.attributes, "hostname": event.hostname, "agent_id": agent.agent_id}
    agent.total = event.total
    agent.isolation = event.isolation
    agent.version = event.version
    agent.answers_ping = event.answers_ping
    agent.clock_skew_ms = event.agent_time_ms - now_ms if event.agent_time_ms else 0
    agent.registered_ms = now_ms
    agent.deadline_ms = None
    agent.has_registered = True
    master.agents_away.pop(agent.agent_id, None)
    master.recovering.pop(agent.agent_id, None)
    master.agent_by_session[event.session] = agent
    master.hear(agent, now_ms)
    master.allocator.update_agent(agent.agent_id, agent.total, agent.attributes)
    if not agent.is_charged:
        agent.is_charged = True
        for task in agent.tasks.values():
            master.allocator.charge(task.framework_id, agent.agent_id, task.resources)
    master.out.append(ConfirmAgent(session=event.session, agent_id=agent.agent_id))


def _adopt_all(master: Master, agent: Agent, event: AgentConnected, now_ms: int) -> None:
    for running in event.tasks:
        _settle_reported(master, agent, running, now_ms)


def _end_all(master: Master, agent: Agent, event: AgentConnected) -> None:
    """End what an agent nobody knows brings along.

    An agent is written down before it is told its id, so this one was forgotten: its tasks are GONE, which is final, and
    others may run in their place. Or it comes from another cluster.
    """
    for running in event.tasks:
        _end_unwanted(master, agent, running, Reason.AGENT_REMOVED)


def _settle_tasks(master: Master, agent: Agent, event: AgentConnected, now_ms: int) -> None:
    reported = {task.key for task in event.tasks}
    # Adoption came first, or a report on a task launched before this master started would be nobody's. Now the ends
    # the agent could not deliver: they explain why a task is not among the running ones.
    tasks.take_reports(master, agent, event.unacknowledged, now_ms)
    for task in list(agent.tasks.values()):
        if task.key not in reported:
            _settle_absent(master, agent, task, now_ms)


def _settle_reported(master: Master, agent: Agent, running: RunningTask, now_ms: int) -> None:
    task = master.find_task(running.key)
    if running.framework_id not in master.frameworks:
        _end_unwanted(master, agent, running, Reason.FRAMEWORK_REMOVED)
        return
    is_over = is_terminal(running.state) or (task is not None and is_terminal(task.state))
    if is_over or (task is not None and task.agent_id != agent.agent_id):
        _end_unwanted(master, agent, running, Reason.UNKNOWN_TASK)
        return
    if task is None:
        task = _adopt(master, agent, running, now_ms)
        if agent.state is AgentState.UNREACHABLE:
            _tell_returned(master, task, running.state, now_ms)
    elif task.state is TaskState.UNREACHABLE and can_move(task.state, running.state):
        _resume(master, task, running, now_ms)
    if not task.started_ms:
        task.started_ms = _started_ms(running, now_ms)
    # Any other move comes with its own status, which is unacknowledged as long as this master has not seen it.
    if task.kill_reason is not None:
        tasks.send_kill(master, task, now_ms)


def _end_unwanted(master: Master, agent: Agent, running: RunningTask, reason: Reason) -> None:
    assert agent.session is not None, "tasks are settled within a session"
    master.out.append(
        KillTask(
            session=agent.session,
            framework_id=running.framework_id,
            task_id=running.spec.task_id,
            grace_period_ms=0,
            reason=reason,
        )
    )


def _adopt(master: Master, agent: Agent, running: RunningTask, now_ms: int) -> Task:
    """A task launched before this master started."""
    framework = master.frameworks[running.framework_id]
    started_ms = _started_ms(running, now_ms)
    task = Task(
        framework_id=running.framework_id,
        task_id=running.spec.task_id,
        role=framework.role,
        agent_id=agent.agent_id,
        name=running.spec.name,
        command=tasks.shortened(running.spec.command),
        resources=running.spec.resources,
        state=running.state,
        submitted_ms=started_ms or now_ms,
        started_ms=started_ms,
        sequence=running.sequence,
        state_sequence=running.sequence,
    )
    if framework.state is FrameworkState.COMPLETED:
        task.kill_reason = Reason.FRAMEWORK_REMOVED
    framework.tasks[task.task_id] = task
    agent.tasks[task.key] = task
    master.allocator.charge(task.framework_id, agent.agent_id, task.resources)
    master.note("task", task.key, task.state.value)
    return task


def _started_ms(running: RunningTask, now_ms: int) -> int:
    """When a task that an agent has began to run, by our clock; 0 if it did not, or nobody knows.

    Of one that runs and whose agent does not say since when, we know that it runs now.
    """
    has_started = running.ran_ms > 0 or running.state is TaskState.RUNNING
    return max(1, now_ms - running.ran_ms) if has_started else 0


def _resume(master: Master, task: Task, running: RunningTask, now_ms: int) -> None:
    """A task that was thought unreachable is where the agent says."""
    status = _returned(task, running.state, now_ms)
    tasks.apply(master, task, status, now_ms)
    task.state_sequence = running.sequence
    tasks.forward(master, master.frameworks[task.framework_id], [status])


def _tell_returned(master: Master, task: Task, state: TaskState, now_ms: int) -> None:
    """A reconciliation may have called the task unreachable."""
    tasks.forward(master, master.frameworks[task.framework_id], [_returned(task, state, now_ms)])


def _returned(task: Task, state: TaskState, now_ms: int) -> TaskStatus:
    return TaskStatus(
        framework_id=task.framework_id,
        task_id=task.task_id,
        agent_id=task.agent_id,
        sequence=0,
        state=state,
        reason=Reason.AGENT_RETURNED,
        message=f"agent {task.agent_id} is back with the task",
        timestamp_ms=now_ms,
    )


def _settle_absent(master: Master, agent: Agent, task: Task, now_ms: int) -> None:
    if task.state is TaskState.STAGING:
        message = f"the launch did not reach agent {agent.agent_id} before its session broke"
        tasks.conclude(master, task, TaskState.DROPPED, Reason.AGENT_DISCONNECTED, message, now_ms)
    else:
        message = f"agent {agent.agent_id} is back without the task"
        tasks.conclude(master, task, TaskState.LOST, Reason.AGENT_RESTARTED, message, now_ms)


def _judge_capacity(master: Master, agent: Agent) -> None:
    """Say so where an agent's tasks hold more than it has.

    It stays part of the capacity that shares are counted on, and nothing more is offered of what it lacks: a free
    part below zero holds no unit. Under slots a task takes a slot whatever it needs, so totals need not cover anything.
    """
    has_slots = slots_per_agent(master.settings.allocation.policy) is not None
    covered = has_slots or min(tasks.free_of(agent)) >= 0
    agent.state = AgentState.ACTIVE if covered else AgentState.OVERCOMMITTED
    master.allocator.set_agent_active(agent.agent_id, True)


def judge_all(master: Master) -> None:
    """The policy changed, and with it what agents may hold: slots give more than there is, vectors do not."""
    for agent in master.agents.values():
        if agent.session is None:
            continue
        if not master.allocator.allows_overcommit and min(master.allocator.free(agent.agent_id)) < 0:
            offers.rescind(master, list(agent.offers.values()), offers.POLICY_CHANGED)
        _judge_capacity(master, agent)


def agent_beat(master: Master, event: AgentBeat, now_ms: int) -> None:
    """Take measurements; that the agent is alive, every message says."""
    agent = master.agent_by_session.get(event.session)
    if agent is None:
        return
    master.hear(agent, now_ms)
    agent.used = event.used
    measurements.beat(master, agent, event.tasks, now_ms)
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
        _go_away(master, agent, AgentState.DISCONNECTED, now_ms + master.settings.agent_timeout_ms)


def close_session(master: Master, agent: Agent) -> None:
    """Nothing reaches the agent any more: its offers end, its resources are not offered."""
    assert agent.session is not None, f"agent {agent.agent_id} has no session to close"
    del master.agent_by_session[agent.session]
    master.agents_heard.pop(agent.agent_id, None)
    master.agents_doubted.pop(agent.agent_id, None)
    agent.session = None
    offers.rescind(master, list(agent.offers.values()), offers.AGENT_LEFT)
    master.allocator.set_agent_active(agent.agent_id, False)


def _go_away(master: Master, agent: Agent, state: AgentState, deadline_ms: int) -> None:
    agent.state = state
    agent.deadline_ms = deadline_ms
    master.agents_away[agent.agent_id] = agent
    master.note("agent", agent.agent_id, state.value)


def end_overdue(master: Master, now_ms: int) -> None:
    """Close silent sessions, give up disconnected agents, forget unreachable ones, end the recovery."""
    while master.agents_heard:
        agent_id, heard_ms = next(iter(master.agents_heard.items()))
        if heard_ms + master.settings.agent_silence_ms > now_ms:
            break
        _end_silent(master, agent_id, f"nothing heard for {now_ms - heard_ms} ms", now_ms)
    while master.agents_doubted:
        agent_id, deadline_ms = next(iter(master.agents_doubted.items()))
        if deadline_ms > now_ms:
            break
        detail = f"reported gone, and no answer within {master.settings.agent_doubt_ms} ms"
        _end_silent(master, agent_id, detail, now_ms)
    for agent in list(master.agents_away.values()):
        if agent.deadline_ms is not None and agent.deadline_ms <= now_ms:
            if agent.state is AgentState.UNREACHABLE:
                forget(master, agent, now_ms)
            else:
                _give_up(master, agent, now_ms)
    if master.recovery_until_ms is not None and master.recovery_until_ms <= now_ms:
        end_recovery(master)


def _end_silent(master: Master, agent_id: AgentId, detail: str, now_ms: int) -> None:
    agent = master.agents[agent_id]
    session = agent.session
    assert session is not None, f"agent {agent_id} is waited for without a session"
    close_session(master, agent)
    master.out.append(EndAgentSession(session=session, code=RefusalCode.TOO_SLOW, detail=detail))
    _go_away(master, agent, AgentState.DISCONNECTED, now_ms + master.settings.agent_timeout_ms)


def _give_up(master: Master, agent: Agent, now_ms: int) -> None:
    """The agent has been away too long: what it ran may be replaced, and may yet come back."""
    for task in list(agent.tasks.values()):
        if can_move(task.state, TaskState.UNREACHABLE):
            message = f"agent {agent.agent_id} has been away for {master.settings.agent_timeout_ms} ms"
            tasks.conclude(master, task, TaskState.UNREACHABLE, Reason.AGENT_DISCONNECTED, message, now_ms)
    _uncharge(master, agent)
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


def _uncharge(master: Master, agent: Agent) -> None:
    """Resources nobody can reach count for nobody."""
    if agent.is_charged:
        agent.is_charged = False
        for task in agent.tasks.values():
            master.allocator.release(task.framework_id, agent.agent_id, task.resources)


def forget(master: Master, agent: Agent, now_ms: int) -> None:
    """The agent will not return: its tasks are gone, its id is free of meaning."""
    told: dict[int, None] = {}
    for task in list(agent.tasks.values()):
        framework = master.frameworks.get(task.framework_id)
        if framework is not None and framework.session is not None:
            told[framework.session] = None
        message = f"agent {agent.agent_id} was given up after {master.settings.agent_forget_ms} ms"
        tasks.conclude(master, task, TaskState.GONE, Reason.AGENT_REMOVED, message, now_ms)
    for session in told:
        master.out.append(AnnounceAgentGone(session=session, agent_id=agent.agent_id, reason="away too long"))
    master.allocator.remove_agent(agent.agent_id)
    del master.agents[agent.agent_id]
    del master.agents_away[agent.agent_id]
    master.out.append(ForgetAgent(agent_id=agent.agent_id))
    master.note("agent", agent.agent_id, "removed")


def end_recovery(master: Master) -> None:
    """Start to offer: everyone is back, or has been waited for long enough."""
    master.recovery_until_ms = None
    master.note("agent", "*", "recovered")
