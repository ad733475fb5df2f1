"""Answers to "where are my tasks?", with an end marker.

A task nobody knows is LOST, unless an agent that may still run it has not come back since the master's start. While
such an agent is waited for, nothing is said about the task; once it is given up, the task is UNREACHABLE, since the
agent may return with it. Either way the end marker names the agents that are missing.
"""

from collections import deque

from fairlead_master.core import settings as bounds
from fairlead_master.core.state import Framework, Master, Reconciliation, status_of
from fairlead_master.core.tasks import forward
from fairlead_proto.framework_calls import ReconcileAsked
from fairlead_proto.framework_events import FinishReconciliation
from fairlead_proto.ids import AgentId, TaskId
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskStatus


def reconcile_asked(master: Master, event: ReconcileAsked, now_ms: int) -> None:
    """Send the state of each task asked for, of all live tasks if none is named, then the end marker."""
    framework = master.framework_by_session.get(event.session)
    if framework is None:
        return
    unheard = _unheard(master)
    if not event.task_ids:
        # A part that is not the last one names its tasks.
        _begin(master, framework, event.request_id, unheard, now_ms)
        return
    statuses = [
        status
        for task_id in event.task_ids
        if (status := _status(master, framework, task_id, unheard, now_ms)) is not None
    ]
    if statuses:
        forward(master, framework, statuses)
    if event.is_last:
        _finish(master, event.session, event.request_id, unheard)


def _unheard(master: Master) -> tuple[AgentId, ...]:
    """Agents that may have tasks nobody knows of here."""
    missing = (*master.agents_away.values(), *master.registering.values())
    return tuple(agent.agent_id for agent in missing if not agent.has_registered)


def _finish(master: Master, session: int, request_id: int, unheard: tuple[AgentId, ...]) -> None:
    master.out.append(
        FinishReconciliation(session=session, request_id=request_id, recovering_agent_ids=unheard)
    )


def _begin(
    master: Master, framework: Framework, request_id: int, unheard: tuple[AgentId, ...], now_ms: int
) -> None:
    """Tell the states of all tasks that are live, so many now and the rest with the next ticks."""
    under_way = master.reconciling.get(framework.framework_id)
    if under_way is not None:
        under_way.next_requests.append(request_id)
        return
    master.reconciling[framework.framework_id] = Reconciliation(
        task_ids=deque(framework.tasks), unheard=unheard, requests=deque([request_id])
    )
    _tell_some(master, framework, bounds.TASKS_PER_STEP_MAX, now_ms)


def tell_in_parts(master: Master, most: int, now_ms: int) -> int:
    """Carry on with reconciliations, each in its turn, and tell of so many tasks; gives of how many it was."""
    done = 0
    while master.reconciling and done < most:
        framework_id = next(iter(master.reconciling))
        done += _tell_some(master, master.frameworks[framework_id], most - done, now_ms)
        if framework_id in master.reconciling:
            master.reconciling[framework_id] = master.reconciling.pop(framework_id)
    return done


def _tell_some(master: Master, framework: Framework, most: int, now_ms: int) -> int:
    under_way = master.reconciling[framework.framework_id]
    session = framework.session
    assert session is not None, f"framework {framework.framework_id} is away and is told of its tasks"
    done = min(most, len(under_way.task_ids))
    # The end of one that was live at the beginning was told when it came.
    named = [framework.tasks.get(under_way.task_ids.popleft()) for _ in range(done)]
    statuses = [status_of(task, now_ms) for task in named if task is not None]
    if statuses:
        forward(master, framework, statuses)
    if under_way.task_ids:
        return done
    answered = min(len(under_way.requests), most - done + 1)
    for _ in range(answered):
        _finish(master, session, under_way.requests.popleft(), under_way.unheard)
    done += answered
    if under_way.requests:
        return done
    if under_way.next_requests:
        under_way.task_ids.extend(framework.tasks)
        under_way.unheard = _unheard(master)
        under_way.requests, under_way.next_requests = under_way.next_requests, deque()
    else:
        del master.reconciling[framework.framework_id]
    return done


def _status(
    master: Master, framework: Framework, task_id: TaskId, unheard: tuple[AgentId, ...], now_ms: int
) -> TaskStatus | None:
    task = master.find_task((framework.framework_id, task_id))
    if task is not None:
        return status_of(task, now_ms)
    if master.recovering:
        return None
    return TaskStatus(
        framework_id=framework.framework_id,
        task_id=task_id,
        agent_id=AgentId(""),
        sequence=0,
        state=TaskState.UNREACHABLE if unheard else TaskState.LOST,
        reason=Reason.AGENT_DISCONNECTED if unheard else Reason.UNKNOWN_TASK,
        message=_message(unheard),
        timestamp_ms=now_ms,
    )


def _message(unheard: tuple[AgentId, ...]) -> str:
    if not unheard:
        return bounds.UNKNOWN_STATUS_MESSAGE
    return f"no agent here knows this task; {len(unheard)} that may are away, {unheard[0]} among them"
