"""Sandboxes of tasks that are over: kept for a while, oldest removed first, never one of a running task.

They go when they are older than the retention, when there are too many or their files are too large together, and
sooner when the disk is nearly full.
"""

from typing import Final

from fairlead_agent.core import limits
from fairlead_agent.core.actions import RemoveSandboxes
from fairlead_agent.core.deadlines import DeadlineName, Due
from fairlead_agent.core.events import DiskMeasured, SandboxesFound
from fairlead_agent.core.state import AgentState, Sandbox, Step
from fairlead_proto.ids import TaskKey
from fairlead_proto.tasks import TaskUsage

_EXPIRY: Final[DeadlineName] = (Due.SANDBOX, None)


def keep_sandbox(step: Step, key: TaskKey, *, ended_ms: int, usage: TaskUsage | None) -> None:
    """Take over the sandbox of a task that is over."""
    state, settings = step.state, step.settings
    add_sandbox(state, key, ended_ms=ended_ms, usage=usage)
    if len(state.sandboxes) > settings.sandbox_count_max or state.sandbox_bytes > settings.sandbox_bytes_max:
        _remove(step, _pop_excess(step))
    _schedule(step)


def _pop_excess(step: Step) -> list[TaskKey]:
    """Take away the oldest until both bounds are met with some room, so that the next ends need no removal each."""
    state, settings = step.state, step.settings
    count_wanted = settings.sandbox_count_max - settings.sandbox_count_max // limits.SANDBOX_ROOM_DIVISOR
    bytes_wanted = settings.sandbox_bytes_max - settings.sandbox_bytes_max // limits.SANDBOX_ROOM_DIVISOR
    removed: list[TaskKey] = []
    # The latest one stays however large it is: somebody may want to know why.
    while (
        len(state.sandboxes) > max(count_wanted, 1)
        or (state.sandbox_bytes > bytes_wanted and len(state.sandboxes) > 1)
    ) and len(removed) < limits.SANDBOX_REMOVALS_MAX:
        removed.append(_pop_oldest(state))
    return removed


def add_sandbox(state: AgentState, key: TaskKey, *, ended_ms: int, usage: TaskUsage | None) -> None:
    """Count a sandbox of a task that is over."""
    size_bytes = (usage.sandbox_bytes if usage else 0) or limits.SANDBOX_BYTES_ASSUMED
    state.sandboxes[key] = Sandbox(ended_ms=ended_ms, size_bytes=size_bytes)
    state.sandbox_bytes += size_bytes


def _pop_oldest(state: AgentState) -> TaskKey:
    key, sandbox = state.sandboxes.popitem(last=False)
    state.sandbox_bytes -= sandbox.size_bytes
    return key


def _remove(step: Step, keys: list[TaskKey]) -> None:
    if keys:
        step.do(RemoveSandboxes(keys=tuple(keys)))


def _schedule(step: Step) -> None:
    """Set the deadline of the oldest sandbox, unless an earlier one is set already: that one sets the next."""
    state = step.state
    if _EXPIRY not in state.deadlines and state.sandboxes:
        oldest = next(iter(state.sandboxes.values()))
        state.deadlines.set(Due.SANDBOX, oldest.ended_ms + step.settings.sandbox_retention_ms)


def remove_expired(step: Step) -> None:
    """Remove the sandboxes that have been kept for their time."""
    state = step.state
    expired: list[TaskKey] = []
    while state.sandboxes and len(expired) < limits.SANDBOX_REMOVALS_MAX:
        oldest = next(iter(state.sandboxes.values()))
        if oldest.ended_ms + step.settings.sandbox_retention_ms > step.now_ms:
            break
        expired.append(_pop_oldest(state))
    _remove(step, expired)
    _schedule(step)


def find_sandboxes(step: Step, event: SandboxesFound) -> None:
    """Match what is on disk with what is known: forget those that are gone, remove those that belong to nobody."""
    state = step.state
    found = dict.fromkeys(event.keys)
    for key in [key for key in state.sandboxes if key not in found]:
        state.sandbox_bytes -= state.sandboxes.pop(key).size_bytes
    orphans = sorted(key for key in found if key not in state.live and key not in state.sandboxes)
    for start in range(0, len(orphans), limits.SANDBOX_REMOVALS_MAX):
        _remove(step, orphans[start : start + limits.SANDBOX_REMOVALS_MAX])
    _schedule(step)


def measure_disk(step: Step, event: DiskMeasured) -> None:
    """Remove the oldest sandboxes when the disk is nearly full, about as many as it takes, at least one."""
    state = step.state
    wanted_bytes = event.total_bytes * limits.DISK_FREE_PERCENT_MIN // 100
    missing_bytes = wanted_bytes - event.free_bytes
    removed: list[TaskKey] = []
    while missing_bytes > 0 and state.sandboxes and len(removed) < limits.SANDBOX_REMOVALS_MAX:
        missing_bytes -= next(iter(state.sandboxes.values())).size_bytes
        removed.append(_pop_oldest(state))
    _remove(step, removed)
