"""Heartbeats: that the agent lives, and what its tasks use. Measured for each beat and at no other time."""

from fairlead_agent.core import limits
from fairlead_agent.core.actions import MeasureDisk, MeasureUsage, SendHeartbeat
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.events import Pinged, UsageMeasured
from fairlead_agent.core.state import AgentState
from fairlead_agent.core.step import Step
from fairlead_proto.resources import CPUS, DISK, MEM, Vector


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


def answer_ping(step: Step, _event: Pinged) -> None:
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
