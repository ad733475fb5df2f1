"""Statuses: made when a task moves, kept until acknowledged, sent again with growing pauses.

Sequence numbers of a task start at 1 and have no gaps, so the master needs one number to know what it has, and the
acknowledgement of a number covers all before it. The pause doubles from ``RESEND_FIRST_MS`` to ``RESEND_MAX_MS`` for
each task by itself, and starts anew with every session.
"""

from fairlead_agent.core import limits
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.records import StatusesAccepted, StatusMade
from fairlead_agent.core.state import AgentState, LiveTask, Step
from fairlead_proto.ids import TaskKey
from fairlead_proto.orders import AcknowledgeStatuses
from fairlead_proto.task_state import TERMINAL, TRANSITIONS, Reason, TaskState
from fairlead_proto.tasks import TaskStatus, TaskUsage


def move(
    step: Step,
    task: LiveTask,
    state: TaskState,
    *,
    reason: Reason = Reason.NONE,
    message: str = "",
    exit_code: int | None = None,
    signal: int | None = None,
    usage: TaskUsage | None = None,
) -> None:
    """Move a live task and report it.

    Raises:
        AssertionError: the table does not allow the move.
    """
    key, latest = task.key, task.latest
    assert state in TRANSITIONS[task.state], f"task {key}: {task.state} -> {state}"
    task.state = state
    if state is TaskState.RUNNING:
        task.started_ms = step.now_ms
    status = TaskStatus(
        framework_id=key[0],
        task_id=key[1],
        agent_id=step.state.agent_id,
        sequence=1 if latest is None else latest.sequence + 1,
        state=state,
        reason=reason,
        message=message,
        timestamp_ms=step.now_ms,
        exit_code=exit_code,
        signal=signal,
        usage=usage,
    )
    task.latest = status
    _report(step, key, status)


def report_unmoved(step: Step, task: LiveTask) -> None:
    """Report the state of a live task that has no status yet."""
    assert task.latest is None, f"task {task.key}: has a status already"
    task.latest = report_first(step, task.key, task.state)


def report_first(
    step: Step, key: TaskKey, state: TaskState, reason: Reason = Reason.NONE, message: str = ""
) -> TaskStatus:
    """Report the first status of a task, one that lives or one that this agent will never start."""
    framework_id, task_id = key
    status = TaskStatus(
        framework_id=framework_id,
        task_id=task_id,
        agent_id=step.state.agent_id,
        sequence=1,
        state=state,
        reason=reason,
        message=message,
        timestamp_ms=step.now_ms,
    )
    _report(step, key, status)
    return status


def _report(step: Step, key: TaskKey, status: TaskStatus) -> None:
    """Write ``status`` of the task ``key`` down, keep it until acknowledged, and send it."""
    state = step.state
    if status.state in TERMINAL:
        state.over[key] = status
    state.tallies[status.state, status.reason] += 1
    step.records.append(StatusMade(status=status))
    step.is_status_new = True
    outbox = state.outboxes.get(key)
    if outbox is not None:
        outbox.append(status)
        _send(step, key, (status,))
        return
    state.outboxes[key] = [status]
    if state.is_registered:
        # As ``_send``, without a look whether a resend is planned: none is of what was not there.
        step.statuses.append(status)
        schedule_resend(state, key, step.now_ms)
    elif state.is_session_open:
        state.held.append(status)


def repeat(step: Step, key: TaskKey, status: TaskStatus) -> None:
    """Send a status of ``key`` again although the master may have acknowledged it: it asks as if it had not."""
    outbox = step.state.outboxes.get(key)
    if outbox is None:
        # Not written down: should the agent restart before the answer, the master will ask again.
        outbox = step.state.outboxes[key] = [status]
    _send(step, key, tuple(outbox))


def repeat_due(step: Step, key: TaskKey) -> None:
    """Send again what is unacknowledged of one task, and wait twice as long the next time."""
    delays_ms = step.state.resend_delays_ms
    delays_ms[key] = min(2 * delays_ms.get(key, limits.RESEND_FIRST_MS), limits.RESEND_MAX_MS)
    _send(step, key, tuple(step.state.outboxes[key]))


def _send(step: Step, key: TaskKey, statuses: tuple[TaskStatus, ...]) -> None:
    state = step.state
    if state.is_registered:
        step.statuses.extend(statuses)
        # One deadline for all statuses of a task: a new one does not put off the resend of an older one.
        if (Due.RESEND, key) not in state.deadlines:
            schedule_resend(state, key, step.now_ms)
    elif state.is_session_open:
        state.held.extend(statuses)


def schedule_resend(state: AgentState, key: TaskKey, now_ms: int) -> None:
    """Set when the statuses of ``key`` are sent again unless acknowledged before."""
    delays_ms = state.resend_delays_ms
    at_ms = now_ms + (delays_ms.get(key, limits.RESEND_FIRST_MS) if delays_ms else limits.RESEND_FIRST_MS)
    at_ms += -at_ms % limits.RESEND_GRID_MS
    state.deadlines.set(Due.RESEND, at_ms, key)


def acknowledge(step: Step, order: AcknowledgeStatuses) -> None:
    """Drop the statuses the master has. Late, repeated and unknown acknowledgements change nothing."""
    state = step.state
    outboxes, records, over, delays_ms = state.outboxes, step.records, state.over, state.resend_delays_ms
    for key, sequence in order.items:
        outbox = outboxes.get(key)
        if outbox is None or outbox[0].sequence > sequence:
            continue
        latest = outbox[-1].sequence
        if sequence < latest:
            outbox[:] = [status for status in outbox if status.sequence > sequence]
            records.append(StatusesAccepted(key=key, sequence=sequence))
            continue
        # A number beyond what was made covers what was made, and nothing that comes after.
        records.append(StatusesAccepted(key=key, sequence=latest))
        del outboxes[key]
        if delays_ms:
            delays_ms.pop(key, None)
        state.deadlines.cancel(Due.RESEND, key)
        if key in over:
            remember(state, key, step.settings.history_count_max)


def remember(state: AgentState, key: TaskKey, history_count_max: int) -> None:
    """Put a task that is over and acknowledged into the bounded history; the oldest is forgotten for it."""
    state.history[key] = None
    if len(state.history) > history_count_max:
        forgotten, _ = state.history.popitem(last=False)
        del state.over[forgotten]
        state.fileless.pop(forgotten, None)
