"""The life of a task: launched, ended by order or by itself, and over; and what the executor says of its process.

Each task is started at most once, however often the master asks: a key that is known, alive or over, is answered by its
current status. What is unknown is written down before its process is ordered, so an agent that dies in between knows of
the task and reports it lost instead of starting it again.

Ending a task by order is SIGTERM to its process group, and when the grace period is over SIGKILL to every process. Its final
state follows from how its process ended and what was asked of it.

The executor may have outlived the agent, or died under it. Its word is final: a task it runs is adopted, an end it has
kept is reported, and a task that it does not know is over.
"""

from dataclasses import dataclass, replace
from typing import Final

from fairlead_agent.core import limits
from fairlead_agent.core.actions import (
    ForgetProcess,
    KillProcess,
    StartExecutor,
    StartProcess,
    TerminateProcess,
)
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.events import (
    ExecutorConnected,
    ExecutorLost,
    ProcessExited,
    ProcessStarted,
    ProcessStartFailed,
)
from fairlead_agent.core.records import TaskLaunched
from fairlead_agent.core.sandboxes import keep_sandbox
from fairlead_agent.core.state import Kill, LiveTask, Step
from fairlead_agent.core.statuses import move, repeat, report_first, report_unmoved
from fairlead_proto.ids import TaskKey
from fairlead_proto.orders import KillTask, LaunchTasks, UnreadableLaunch
from fairlead_proto.resources import format_bytes, format_milli
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskSpec, TaskUsage


def launch(step: Step, order: LaunchTasks) -> None:
    """Start each task that was never heard of; report each that was."""
    for spec in order.tasks:
        key = (order.framework_id, spec.task_id)
        if repeat_known(step, key):
            continue
        if step.state.leave is not None:
            message = f"the agent is leaving: {step.state.leave.reason}"
            report_first(step, key, TaskState.DROPPED, Reason.AGENT_REMOVED, message)
            continue
        _take(step, key, spec)


def refuse_unreadable(step: Step, order: UnreadableLaunch) -> None:
    """Report a task whose description cannot be used, unless the key is known already."""
    if not repeat_known(step, order.key):
        report_first(step, order.key, TaskState.ERROR, Reason.INVALID_TASK, order.detail)


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


def _take(step: Step, key: TaskKey, spec: TaskSpec) -> None:
    state, now_ms = step.state, step.now_ms
    kept = replace(spec, environment={}) if spec.environment else spec
    task = LiveTask(key=key, spec=kept, launched_ms=now_ms)
    state.live[key] = task
    step.write(TaskLaunched(framework_id=task.framework_id, spec=kept, launched_ms=now_ms))
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


_GIVEN_UP: Final = (Reason.UNKNOWN_TASK, Reason.AGENT_REMOVED)
"""With which a master ends what an agent brings back to it: it gave the task up while the agent was away, or has it elsewhere.
Nobody wished its end, and a framework that has not heard from that master must not take it for one that somebody did."""

_GIVEN_UP_AS: Final = {
    Reason.STAGING_TIMEOUT: TaskState.DROPPED,
    Reason.AGENT_DISCONNECTED: TaskState.LOST,
}


def kill(step: Step, order: KillTask) -> None:
    """Begin to end a task that lives; answer for one that does not."""
    task = step.state.live.get(order.key)
    if task is not None:
        reason = Reason.AGENT_DISCONNECTED if order.reason in _GIVEN_UP else order.reason
        begin_kill(step, task, reason=reason, grace_period_ms=order.grace_period_ms)
    elif not repeat_known(step, order.key):
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
    message = _runtime_message(task.spec)
    begin_kill(step, task, reason=Reason.MAX_RUNTIME, grace_period_ms=0, message=message)


def _runtime_message(spec: TaskSpec) -> str:
    return f"ran longer than its {format_milli(spec.max_runtime_ms)} s"


def connect_executor(step: Step, event: ExecutorConnected) -> None:
    """Bring the tasks in line with what the executor knows, then order the processes that waited for one."""
    state = step.state
    is_first = not state.had_executor
    state.is_executor_connected = state.had_executor = True
    state.isolation = event.isolation
    for end in event.ended:
        end_process(step, end)
    running = dict.fromkeys(event.running)
    for task in list(state.live.values()):
        if task.key in running:
            _adopt(step, task)
        elif task.is_ordered:
            _end_unknown(step, task, is_first=is_first)
        else:
            order_process(step, task, state.unordered.pop(task.key))
    for key in running:
        if key not in state.live:
            step.do(KillProcess(key=key))


def _adopt(step: Step, task: LiveTask) -> None:
    if task.state is not TaskState.KILLING:
        start_process(step, ProcessStarted(key=task.key))
    elif task.kill is None:
        resume_kill(step, task)
    else:
        # The order to end it may have gone down with the connection.
        step.do(KillProcess(key=task.key) if task.kill.is_forced else TerminateProcess(key=task.key))


def _end_unknown(step: Step, task: LiveTask, *, is_first: bool) -> None:
    if is_first:
        message = "the agent was restarted, and its executor knows nothing of the task"
        end_unseen(step, task, state=TaskState.LOST, reason=Reason.AGENT_RESTARTED, message=message)
    else:
        message = "the executor that ran the task died"
        end_unseen(step, task, state=TaskState.LOST, reason=Reason.EXECUTOR_FAILED, message=message)


def lose_executor(step: Step, _event: ExecutorLost) -> None:
    """The executor is gone. Its tasks wait for what the next one has found out about them."""
    step.state.is_executor_connected = False
    step.state.executors_lost += 1
    step.state.deadlines.cancel(Due.USAGE)
    step.do(StartExecutor())


def start_process(step: Step, event: ProcessStarted) -> None:
    """The process of a task runs; also said again of a running one."""
    task = step.state.live.get(event.key)
    if task is None:
        # Its end was reported already, so nobody counts its resources any more.
        step.do(KillProcess(key=event.key))
        return
    step.state.deadlines.cancel(Due.SLOW_START, event.key)
    if task.state is TaskState.STARTING:
        move(step, task, TaskState.RUNNING)
    if task.spec.max_runtime_ms and task.state is TaskState.RUNNING:
        step.state.deadlines.set(Due.RUNTIME, task.started_ms + task.spec.max_runtime_ms, task.key)


def end_process(step: Step, event: ProcessExited | ProcessStartFailed) -> None:
    """The process of a task is gone, or was never made; also said again until the executor is told to forget."""
    task = step.state.live.get(event.key)
    if task is None or not task.is_ordered:
        step.do(ForgetProcess(key=event.key))
    elif isinstance(event, ProcessExited):
        end_exited(step, task, event)
    else:
        end_start_failed(step, task, event)


def end_all_lost(step: Step) -> None:
    """The host, or the container the agent is in, was restarted: no process of any task is left."""
    message = "the agent's host or container was restarted"
    for task in list(step.state.live.values()):
        end_unseen(step, task, state=TaskState.LOST, reason=Reason.AGENT_RESTARTED, message=message)


@dataclass(frozen=True, slots=True)
class _End:
    state: TaskState
    reason: Reason
    message: str = ""


_SHELL_CODES: Final = {Reason.COMMAND_NOT_FOUND: 127, Reason.COMMAND_NOT_EXECUTABLE: 126}
"""What a shell exits with for a command that it cannot run: scripts look for these."""

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
        _end(step, task, _killed(task.kill.reason, event.message))
    else:
        end = _End(TaskState.FAILED, event.reason, event.message)
        _end(step, task, end, exit_code=_SHELL_CODES.get(event.reason))
    step.do(ForgetProcess(key=task.key))


def end_unseen(step: Step, task: LiveTask, *, state: TaskState, reason: Reason, message: str) -> None:
    """A live task is over and nobody can say how it ended."""
    _end(step, task, _End(state, reason, message))


def end_unstarted(step: Step, task: LiveTask, *, reason: Reason) -> None:
    """A live task is ended before its process was ordered."""
    assert not task.is_ordered, f"task {task.key}: its process was ordered"
    del step.state.unordered[task.key]
    _end(step, task, _killed(reason, "ended before it was started"))


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
    if task.spec.no_files:
        state.fileless[key] = None
    elif task.is_ordered:
        keep_sandbox(step, key, ended_ms=step.now_ms, usage=usage)


def _end_of(task: LiveTask, event: ProcessExited) -> _End:
    if event.is_out_of_memory:
        return _End(TaskState.FAILED, Reason.OUT_OF_MEMORY, _memory_message(event))
    if event.exit_code is None and event.signal is None:
        # It says nothing against the task: how it would have ended cannot be known.
        return _End(TaskState.LOST, Reason.EXECUTOR_FAILED, event.message)
    if task.kill is not None and not _ended_before(event, task.kill.requested_ms):
        if task.kill.reason is Reason.MAX_RUNTIME:
            return _End(TaskState.FAILED, Reason.MAX_RUNTIME, _runtime_message(task.spec))
        return _killed(task.kill.reason, event.message)
    if event.signal is not None:
        return _End(TaskState.FAILED, Reason.SIGNALED, event.message or f"ended by signal {event.signal}")
    if event.exit_code == 0:
        return _End(TaskState.FINISHED, Reason.NONE, event.message) if event.message else _WELL
    return _End(TaskState.FAILED, Reason.EXITED, event.message or f"exit code {event.exit_code}")


def _killed(reason: Reason, message: str) -> _End:
    # A master that gives a task up says at once that it is dropped or lost. If that master dies, ours is the only word of it.
    return _End(_GIVEN_UP_AS.get(reason, TaskState.KILLED), reason, message)


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
