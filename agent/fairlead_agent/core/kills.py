"""Ending tasks: SIGTERM to the process group, and when the grace period is over SIGKILL to every process."""

from fairlead_agent.core import limits
from fairlead_agent.core.actions import KillProcess, TerminateProcess
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.ends import end_unstarted
from fairlead_agent.core.events import KillOrder, KillRequested
from fairlead_agent.core.launches import repeat_known
from fairlead_agent.core.state import Kill, LiveTask
from fairlead_agent.core.statuses import move, report_first
from fairlead_agent.core.step import Step
from fairlead_proto.ids import TaskKey
from fairlead_proto.task_state import Reason, TaskState


def kill(step: Step, event: KillRequested) -> None:
    """Begin to end each task that lives; answer for each that does not."""
    for order in event.orders:
        task = step.state.live.get(order.key)
        if task is not None:
            begin_kill(step, task, reason=order.reason, grace_period_ms=order.grace_period_ms)
        elif not repeat_known(step, order.key):
            _report_lost_launch(step, order)


def _report_lost_launch(step: Step, order: KillOrder) -> None:
    # The stream is ordered: a kill for a task that was never launched here means that the launch went down with an
    # earlier stream. Reporting it dropped also keeps the task from being started by a copy that is still to come.
    message = "the agent was asked to end a task that had never reached it"
    report_first(step, order.key, TaskState.DROPPED, Reason.UNKNOWN_TASK, message)


def begin_kill(
    step: Step, task: LiveTask, *, reason: Reason, grace_period_ms: int, message: str = ""
) -> None:
    """Ask a live task to end. A repeat can shorten the grace period, never prolong it, and keeps the first reason."""
    key = task.key
    if not task.is_ordered:
        end_unstarted(step, task, reason=reason)
        return
    grace_ms = grace_period_ms or task.spec.kill_grace_period_ms or limits.KILL_GRACE_PERIOD_MS
    if task.kill is None:
        task.kill = Kill(reason=reason, requested_ms=step.now_ms)
        step.state.deadlines.cancel(Due.RUNTIME, key)
        step.state.deadlines.cancel(Due.SLOW_START, key)
        move(step, task, TaskState.KILLING, reason=reason, message=message)
        step.do(TerminateProcess(key=key))
        step.state.deadlines.set(Due.ESCALATE, step.now_ms + grace_ms, key)
    elif task.kill.is_forced:
        step.do(KillProcess(key=key))
    elif _escalates_earlier(step, task, step.now_ms + grace_ms):
        step.state.deadlines.set(Due.ESCALATE, step.now_ms + grace_ms, key)


def _escalates_earlier(step: Step, task: LiveTask, at_ms: int) -> bool:
    planned_ms = step.state.deadlines.at((Due.ESCALATE, task.key))
    return planned_ms is None or at_ms < planned_ms


def escalate(step: Step, key: TaskKey) -> None:
    """The grace period is over: end every process of the task."""
    task = step.state.live[key]
    assert task.kill is not None, f"task {key}: escalation of a kill nobody asked for"
    task.kill.is_forced = True
    step.do(KillProcess(key=key))


def resume_kill(step: Step, task: LiveTask) -> None:
    """Go on ending a task after the agent's restart: the earlier signal may never have been sent."""
    assert task.latest is not None, f"task {task.key}: being ended without ever having said so"
    task.kill = Kill(reason=task.latest.reason, requested_ms=task.latest.timestamp_ms)
    step.do(TerminateProcess(key=task.key))
    grace_ms = task.spec.kill_grace_period_ms or limits.KILL_GRACE_PERIOD_MS
    step.state.deadlines.set(Due.ESCALATE, step.now_ms + grace_ms, task.key)


def end_runtime(step: Step, key: TaskKey) -> None:
    """The task has run for as long as it may."""
    task = step.state.live[key]
    message = f"ran longer than its {task.spec.max_runtime_ms} ms"
    begin_kill(step, task, reason=Reason.MAX_RUNTIME, grace_period_ms=0, message=message)
