"""How a task is over: the final state that follows from how its process ended and what was asked of it."""

from dataclasses import dataclass

from fairlead_agent.core.actions import ForgetProcess
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.events import ProcessExited, ProcessStartFailed
from fairlead_agent.core.sandboxes import keep_sandbox
from fairlead_agent.core.state import LiveTask
from fairlead_agent.core.statuses import move
from fairlead_agent.core.step import Step
from fairlead_proto.resources import format_bytes
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskUsage


@dataclass(frozen=True, slots=True)
class _End:
    state: TaskState
    reason: Reason
    message: str = ""


_WELL = _End(TaskState.FINISHED, Reason.NONE)
"""How nearly all end."""


def end_exited(step: Step, task: LiveTask, event: ProcessExited) -> None:
    """The process of a live task is gone."""
    end = _end_of(task, event)
    _end(
        step,
        task,
        end,
        exit_code=event.exit_code,
        signal=event.signal,
        usage=event.usage,
    )
    step.do(ForgetProcess(key=event.key))


def end_start_failed(step: Step, task: LiveTask, event: ProcessStartFailed) -> None:
    """No process was made for a live task."""
    if task.kill is not None and task.kill.reason is not Reason.MAX_RUNTIME:
        end = _End(TaskState.KILLED, task.kill.reason, event.message)
    else:
        end = _End(TaskState.FAILED, event.reason, event.message)
    _end(step, task, end)
    step.do(ForgetProcess(key=task.key))


def end_unseen(step: Step, task: LiveTask, *, state: TaskState, reason: Reason, message: str) -> None:
    """A live task is over and nobody can say how it ended."""
    _end(step, task, _End(state, reason, message))


def end_unstarted(step: Step, task: LiveTask, *, reason: Reason) -> None:
    """A live task is ended before its process was ordered."""
    assert not task.is_ordered, f"task {task.key}: its process was ordered"
    del step.state.unordered[task.key]
    _end(step, task, _End(TaskState.KILLED, reason, "ended before it was started"))


def _end(
    step: Step,
    task: LiveTask,
    end: _End,
    *,
    exit_code: int | None = None,
    signal: int | None = None,
    usage: TaskUsage | None = None,
) -> None:
    state, key = step.state, task.key
    # Of these three, only what was begun can be set.
    if task.kill is not None:
        state.deadlines.cancel(Due.ESCALATE, key)
    if task.spec.max_runtime_ms:
        state.deadlines.cancel(Due.RUNTIME, key)
    if task.latest is None:
        state.deadlines.cancel(Due.SLOW_START, key)
    state.cpu_time_ms.pop(key, None)
    del state.live[key]
    move(
        step,
        task,
        end.state,
        reason=end.reason,
        message=end.message,
        exit_code=exit_code,
        signal=signal,
        usage=usage,
    )
    if task.is_ordered:
        keep_sandbox(step, key, ended_ms=step.now_ms, usage=usage)


def _end_of(task: LiveTask, event: ProcessExited) -> _End:
    if event.is_out_of_memory:
        return _End(TaskState.FAILED, Reason.OUT_OF_MEMORY, _memory_message(event))
    if event.exit_code is None and event.signal is None:
        # It says nothing against the task: how it would have ended cannot be known.
        return _End(TaskState.LOST, Reason.EXECUTOR_FAILED, event.message)
    if task.kill is not None and not _ended_before(event, task.kill.requested_ms):
        if task.kill.reason is Reason.MAX_RUNTIME:
            message = f"ran longer than its {task.spec.max_runtime_ms} ms"
            return _End(TaskState.FAILED, Reason.MAX_RUNTIME, message)
        return _End(TaskState.KILLED, task.kill.reason, event.message)
    if event.signal is not None:
        return _End(TaskState.FAILED, Reason.SIGNALED, event.message or f"ended by signal {event.signal}")
    if event.exit_code == 0:
        return _End(TaskState.FINISHED, Reason.NONE, event.message) if event.message else _WELL
    return _End(TaskState.FAILED, Reason.EXITED, event.message or f"exit code {event.exit_code}")


def _ended_before(event: ProcessExited, requested_ms: int) -> bool:
    # A report of an end that had already happened can cross the order to kill: then nobody's order ended the task.
    # An exit code within the grace period says nothing of the kind, since programs exit by one from a SIGTERM handler.
    return 0 < event.ended_ms < requested_ms


def _memory_message(event: ProcessExited) -> str:
    usage = event.usage
    if usage is None or not usage.mem_limit_bytes:
        return event.message or "out of memory"
    limit, peak = format_bytes(usage.mem_limit_bytes), format_bytes(usage.mem_peak_bytes)
    return f"out of memory: limit {limit}, peak {peak}"
