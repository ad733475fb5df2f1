"""The session with the master: who the agent is, which master it obeys, and what it tells a new one.

Epochs only grow. A master that comes back with an older one has been replaced, and what it says is not acted on; the
highest epoch seen is written to disk before anything that the master of that epoch wanted is done.
"""

from fairlead_agent.core import limits
from fairlead_agent.core.actions import CloseSession, ConfirmSession, LeaveCluster, SendRegistration
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.events import Registered, RegistrationRefused, SessionClosed, SessionOpened
from fairlead_agent.core.statuses import schedule_resend
from fairlead_agent.core.step import Step
from fairlead_proto.codes import RefusalCode
from fairlead_proto.tasks import RunningTask


def open_session(step: Step, _event: SessionOpened) -> None:
    """Register on a new stream, with everything a master that knows nothing needs."""
    state, settings = step.state, step.settings
    state.is_session_open = True
    owed = [status for outbox in state.outboxes.values() for status in outbox]
    state.held = owed[limits.REGISTER_STATUSES_MAX :]
    step.do(
        SendRegistration(
            agent_id=state.agent_id,
            incarnation=state.incarnation,
            boot_id=state.boot_id,
            hostname=settings.hostname,
            total=settings.total,
            attributes=settings.attributes,
            isolation=state.isolation,
            last_epoch=state.epoch,
            tasks=tuple(
                RunningTask(
                    framework_id=task.framework_id,
                    role=task.role,
                    spec=task.spec,
                    state=task.state,
                    sequence=task.sequence,
                    ran_ms=max(0, step.now_ms - task.started_ms) if task.started_ms else 0,
                )
                for task in state.live.values()
            ),
            unacknowledged=tuple(owed[: limits.REGISTER_STATUSES_MAX]),
        )
    )


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


def register(step: Step, event: Registered) -> None:
    """The master has accepted the registration: send what came up since, and begin to beat."""
    state = step.state
    if not state.is_session_open:
        return
    if event.agent_id != state.agent_id:
        state.agent_id = event.agent_id
        step.write_identity()
    state.is_registered = True
    step.do(ConfirmSession(agent_id=state.agent_id))
    step.statuses.extend(state.held)
    state.held = []
    state.resend_delays_ms.clear()
    for key in state.outboxes:
        schedule_resend(state, key, step.now_ms)
    state.heartbeat_interval_ms = max(event.heartbeat_interval_ms, limits.HEARTBEAT_INTERVAL_MIN_MS)
    state.deadlines.set(Due.HEARTBEAT, step.now_ms + state.heartbeat_interval_ms)


def refuse(step: Step, event: RegistrationRefused) -> None:
    """The master does not want this session: try again later, or never."""
    is_final = event.code in {RefusalCode.INVALID, RefusalCode.SUPERSEDED}
    if is_final and event.epoch >= step.state.epoch:
        step.do_last(
            LeaveCluster(is_refused=True, message=f"the master refused ({event.code.value}): {event.detail}")
        )
    else:
        step.do(CloseSession(reason=f"{event.code.value}: {event.detail}"))
