"""How an agent ends on purpose: its tasks run on for its successor, or are ended first."""

from fairlead_agent.core import limits
from fairlead_agent.core.actions import LeaveCluster, SendGoodbye, StopExecutor
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.kills import begin_kill
from fairlead_agent.core.state import Leave
from fairlead_agent.core.step import Step
from fairlead_proto.task_state import Reason


def begin_leave(step: Step, *, is_stopping_tasks: bool, is_refused: bool, reason: str) -> None:
    """Leave at once with the tasks running on, or begin to stop them. Asked a second time, do not wait for them."""
    state = step.state
    if state.leave is not None:
        finish_leave(step)
        return
    state.leave = Leave(is_refused=is_refused, is_stopping_tasks=is_stopping_tasks, reason=reason)
    if not is_stopping_tasks:
        finish_leave(step)
        return
    grace_ms = max(
        (task.spec.kill_grace_period_ms or limits.KILL_GRACE_PERIOD_MS for task in state.live.values()),
        default=0,
    )
    state.deadlines.set(Due.LEAVE, step.now_ms + grace_ms + limits.LEAVE_PATIENCE_MS)
    for task in list(state.live.values()):
        begin_kill(step, task, reason=Reason.AGENT_REMOVED, grace_period_ms=0)


def finish_leave(step: Step) -> None:
    """Say goodbye and end; with the executor, if the tasks were to be stopped. Later events change nothing here."""
    leave = step.state.leave
    assert leave is not None, "leaving was not begun"
    if leave.is_over:
        return
    leave.is_over = True
    step.state.deadlines.cancel(Due.LEAVE)
    if step.state.is_session_open:
        step.do_last(SendGoodbye(reason=leave.reason))
    if leave.is_stopping_tasks:
        step.do_last(StopExecutor())
    step.do_last(LeaveCluster(is_refused=leave.is_refused, message=leave.reason))
