"""The session with the master: who the agent is, which master it obeys, its heartbeats, and how it leaves.

Epochs only grow. A master that comes back with an older one has been replaced, and what it says is not acted on; the
highest epoch seen is written to disk before anything that the master of that epoch wanted is done.

Heartbeats say that the agent lives and what its tasks use, measured for each beat and at no other time. An agent that
leaves lets its tasks run on for its successor, or ends them first.
"""

from fairlead_agent.core import limits
from fairlead_agent.core.actions import (
    CloseSession,
    ConfirmSession,
    LeaveCluster,
    MeasureDisk,
    MeasureUsage,
    SendGoodbye,
    SendHeartbeat,
    SendRegistration,
    StopExecutor,
)
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.events import (
    SessionClosed,
    SessionOpened,
    UsageMeasured,
)
from fairlead_agent.core.state import AgentState, Leave, Step
from fairlead_agent.core.statuses import schedule_resend
from fairlead_agent.core.tasks import begin_kill
from fairlead_proto.codes import RefusalCode
from fairlead_proto.orders import ConfirmAgent, EndAgentSession, PingAgent
from fairlead_proto.reports import AgentConnected
from fairlead_proto.resources import CPUS, DISK, MEM, Vector
from fairlead_proto.task_state import Reason
from fairlead_proto.tasks import RunningTask


def open_session(step: Step, _event: SessionOpened) -> None:
    """Register on a new stream, with everything a master that knows nothing needs."""
    state, settings = step.state, step.settings
    state.is_session_open = True
    state.session_count += 1
    owed = [status for outbox in state.outboxes.values() for status in outbox]
    state.held = owed[limits.REGISTER_STATUSES_MAX :]
    registration = AgentConnected(
        agent_id=state.agent_id or None,
        incarnation=state.incarnation,
        hostname=settings.hostname,
        total=settings.total,
        attributes=settings.attributes,
        isolation=state.isolation,
        last_epoch=state.epoch,
        tasks=tuple(
            RunningTask(
                framework_id=task.framework_id,
                spec=task.spec,
                state=task.state,
                sequence=task.sequence,
                ran_ms=max(0, step.now_ms - task.started_ms) if task.started_ms else 0,
            )
            for task in state.live.values()
        ),
        unacknowledged=tuple(owed[: limits.REGISTER_STATUSES_MAX]),
    )
    step.do(SendRegistration(report=registration))


def close_session(step: Step, _event: SessionClosed) -> None:
    """The stream is gone: what is unacknowledged waits for the next registration."""
    state = step.state
    state.is_session_open = state.is_registered = False
    state.held = []
    for key in state.outboxes:
        state.deadlines.cancel(Due.RESEND, key)
    state.deadlines.cancel(Due.HEARTBEAT)
    state.deadlines.cancel(Due.USAGE)


def obeys(step: Step, epoch: int) -> bool:
    """Whether a master of this epoch is obeyed; a newer one than ever seen is written down first."""
    state = step.state
    if epoch < state.epoch:
        step.do_last(CloseSession(reason=f"expected a master of epoch {state.epoch} or later, got {epoch}"))
        return False
    if epoch > state.epoch:
        state.epoch = epoch
        step.write_identity()
    return True


def register(step: Step, order: ConfirmAgent) -> None:
    """The master has accepted the registration: send what came up since, and begin to beat."""
    state = step.state
    if not state.is_session_open:
        return
    if order.agent_id != state.agent_id:
        state.agent_id = order.agent_id
        step.write_identity()
    state.is_registered = True
    step.do(
        ConfirmSession(
            agent_id=state.agent_id,
            version=order.version,
            files_token=order.files_token,
            capabilities=order.capabilities,
        )
    )
    step.statuses.extend(state.held)
    state.held = []
    state.resend_delays_ms.clear()
    for key in state.outboxes:
        schedule_resend(state, key, step.now_ms)
    state.heartbeat_interval_ms = max(order.heartbeat_interval_ms, limits.HEARTBEAT_INTERVAL_MIN_MS)
    state.deadlines.set(Due.HEARTBEAT, step.now_ms + state.heartbeat_interval_ms)


def refuse(step: Step, order: EndAgentSession, epoch: int) -> None:
    """The master does not want this session: try again later, or never."""
    is_final = order.code in {RefusalCode.INVALID, RefusalCode.SUPERSEDED}
    if is_final and epoch >= step.state.epoch:
        step.do_last(
            LeaveCluster(is_refused=True, message=f"the master refused ({order.code.value}): {order.detail}")
        )
    else:
        step.do(CloseSession(reason=f"{order.code.value}: {order.detail}"))


def beat(step: Step) -> None:
    """Begin a heartbeat: at once if there is nothing to measure, else when the figures are there."""
    state = step.state
    state.deadlines.set(Due.HEARTBEAT, step.now_ms + state.heartbeat_interval_ms)
    step.do(MeasureDisk())
    if state.live and state.is_executor_connected:
        step.do(MeasureUsage())
        # Before the next beat, or one beat after the other would put the wait off for ever.
        wait_ms = min(limits.USAGE_WAIT_MS, state.heartbeat_interval_ms // 2)
        state.deadlines.set(Due.USAGE, step.now_ms + wait_ms)
    else:
        send_heartbeat(step)


def answer_ping(step: Step, _order: PingAgent) -> None:
    """Give a sign of life with the latest figures, and without waiting for newer ones."""
    if step.state.is_registered:
        send_heartbeat(step)


def take_usage(step: Step, event: UsageMeasured) -> None:
    """Note what the tasks use, and send the heartbeat that waits for it."""
    state = step.state
    spent_ms = 0
    for key, usage in event.measurements:
        task = state.live.get(key)
        if task is None:
            continue
        spent_ms += max(0, usage.cpu_time_ms - state.cpu_time_ms.get(key, 0))
        state.cpu_time_ms[key] = usage.cpu_time_ms
        task.is_usage_new = task.is_usage_new or task.usage != usage
        task.usage = usage
    elapsed_ms = step.now_ms - state.usage_ms
    # The first measurement has nothing before it: what adopted tasks spent in an earlier life is not spent now.
    state.used_cpus_milli = spent_ms * 1000 // elapsed_ms if state.usage_ms and elapsed_ms > 0 else 0
    state.usage_ms = step.now_ms
    if (Due.USAGE, None) in state.deadlines:
        state.deadlines.cancel(Due.USAGE)
        send_heartbeat(step)


def send_heartbeat(step: Step) -> None:
    """Send the latest figures there are."""
    state = step.state
    changed = [task for task in state.live.values() if task.is_usage_new]
    step.do(
        SendHeartbeat(
            used=_used(state, step.settings.kinds.zero),
            tasks=tuple((task.key, task.usage) for task in changed if task.usage is not None),
        )
    )
    for task in changed:
        task.is_usage_new = False


def _used(state: AgentState, zero: Vector) -> Vector:
    if not state.live:
        return zero
    usages = [task.usage for task in state.live.values() if task.usage is not None]
    used = list(zero)
    used[CPUS] = state.used_cpus_milli
    used[MEM] = sum(usage.mem_bytes for usage in usages)
    used[DISK] = sum(usage.sandbox_bytes for usage in usages)
    return tuple(used)


def begin_leave(step: Step, *, is_stopping_tasks: bool, reason: str) -> None:
    """Leave at once with the tasks running on, or begin to stop them. Asked a second time, do not wait for them."""
    state = step.state
    if state.leave is not None:
        finish_leave(step)
        return
    state.leave = Leave(is_stopping_tasks=is_stopping_tasks, reason=reason)
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
    step.do_last(LeaveCluster(is_refused=False, message=leave.reason))
