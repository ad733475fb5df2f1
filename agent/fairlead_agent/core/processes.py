"""What the executor says about processes, and what follows for their tasks.

The executor may have outlived the agent, or died under it. Its word is final: a task it runs is adopted, an end it has
kept is reported, and a task that it does not know is over.
"""

from fairlead_agent.core.actions import ForgetProcess, KillProcess, StartExecutor, TerminateProcess
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.ends import end_exited, end_start_failed, end_unseen
from fairlead_agent.core.events import (
    ExecutorConnected,
    ExecutorLost,
    ProcessExited,
    ProcessStarted,
    ProcessStartFailed,
)
from fairlead_agent.core.kills import resume_kill
from fairlead_agent.core.launches import order_process
from fairlead_agent.core.state import LiveTask
from fairlead_agent.core.statuses import move
from fairlead_agent.core.step import Step
from fairlead_proto.task_state import Reason, TaskState


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
