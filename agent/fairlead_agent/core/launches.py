"""Launches: each task is started at most once, however often the master asks.

A key that is known, alive or over, is answered by its current status. What is unknown is written down before its
process is ordered, so an agent that dies in between knows of the task and reports it lost instead of starting it again.
"""

from dataclasses import replace

from fairlead_agent.core import limits
from fairlead_agent.core.actions import StartProcess
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.events import LaunchOrder, LaunchRequested, LaunchUnreadable
from fairlead_agent.core.records import TaskLaunched
from fairlead_agent.core.state import LiveTask
from fairlead_agent.core.statuses import repeat, report_first, report_unmoved
from fairlead_agent.core.step import Step
from fairlead_proto.ids import TaskKey
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskSpec


def launch(step: Step, event: LaunchRequested) -> None:
    """Start each task that was never heard of; report each that was."""
    for order in event.orders:
        key = (order.framework_id, order.spec.task_id)
        if repeat_known(step, key):
            continue
        if step.state.leave is not None:
            message = f"the agent is leaving: {step.state.leave.reason}"
            report_first(step, key, TaskState.DROPPED, Reason.AGENT_REMOVED, message)
            continue
        _take(step, key, order)


def refuse_unreadable(step: Step, event: LaunchUnreadable) -> None:
    """Report a task whose description cannot be used, unless the key is known already."""
    key = (event.framework_id, event.task_id)
    if not repeat_known(step, key):
        report_first(step, key, TaskState.ERROR, Reason.INVALID_TASK, event.detail)


def repeat_known(step: Step, key: TaskKey) -> bool:
    """Report the current state of ``key`` again; False if the key is unknown."""
    final = step.state.over.get(key)
    if final is not None:
        repeat(step, key, final)
        return True
    task = step.state.live.get(key)
    if task is None:
        return False
    if task.latest is None:
        confirm_slow_start(step, task)
    else:
        repeat(step, key, task.latest)
    return True


def _take(step: Step, key: TaskKey, order: LaunchOrder) -> None:
    state, now_ms, spec = step.state, step.now_ms, order.spec
    kept = replace(spec, environment={}) if spec.environment else spec
    task = LiveTask(key=key, role=order.role, spec=kept, launched_ms=now_ms)
    state.live[key] = task
    step.write(TaskLaunched(framework_id=order.framework_id, role=order.role, spec=kept, launched_ms=now_ms))
    state.deadlines.set(Due.SLOW_START, now_ms + limits.SLOW_START_MS, key)
    if state.is_executor_connected:
        order_process(step, task, spec)
    else:
        state.unordered[key] = spec


def order_process(step: Step, task: LiveTask, spec: TaskSpec) -> None:
    """Have the process of a taken task started; ``spec`` has its environment."""
    assert not task.is_ordered, f"task {task.key}: a second start"
    task.is_ordered = True
    step.do(StartProcess(framework_id=task.framework_id, spec=spec))


def confirm_slow_start(step: Step, task: LiveTask) -> None:
    """Confirm a launch whose process does not run yet."""
    report_unmoved(step, task)
    step.state.deadlines.cancel(Due.SLOW_START, task.key)
