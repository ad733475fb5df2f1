"""Answers to "where are my tasks?", with an end marker.

A task nobody knows is LOST, unless an agent that may still run it has not come back since the master's start. While
such an agent is waited for, nothing is said about the task; once it is given up, the task is UNREACHABLE, since the
agent may return with it. Either way the end marker names the agents that are missing.
"""

from fairlead_master.core import settings as bounds
from fairlead_master.core.actions import FinishReconciliation
from fairlead_master.core.events import ReconcileAsked
from fairlead_master.core.state import Framework, Master, status_of
from fairlead_master.core.tasks import forward
from fairlead_proto.ids import AgentId, TaskId
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskStatus


def reconcile_asked(master: Master, event: ReconcileAsked, now_ms: int) -> None:
    """Send the state of each task asked for, of all live tasks if none is named, then the end marker."""
    framework = master.framework_by_session.get(event.session)
    if framework is None:
        return
    unheard = tuple(agent.agent_id for agent in master.agents_away.values() if not agent.has_registered)
    # A part that is not the last one names its tasks.
    statuses = [
        status
        for task_id in event.task_ids or tuple(framework.tasks)
        if (status := _status(master, framework, task_id, unheard, now_ms)) is not None
    ]
    if statuses:
        forward(master, framework, statuses)
    if event.is_last:
        done = FinishReconciliation(
            session=event.session, request_id=event.request_id, recovering_agent_ids=unheard
        )
        master.out.append(done)


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
