"""Between the journal's records and the state: replaying them gives the state, and the state gives the shortest list.

Both directions agree: replaying ``snapshot(state)`` gives the state that replaying the whole journal gives.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import assert_never

from fairlead_agent.core.records import (
    EndedWithoutFiles,
    IdentityTaken,
    Record,
    StatusesAccepted,
    StatusMade,
    TaskLaunched,
    TaskRemembered,
)
from fairlead_agent.core.sandboxes import add_sandbox
from fairlead_agent.core.state import AgentSettings, AgentState, LiveTask, identity_of
from fairlead_agent.core.statuses import remember
from fairlead_proto.task_state import TaskState, is_terminal
from fairlead_proto.tasks import TaskStatus


def restore(records: Iterable[Record], settings: AgentSettings) -> AgentState:
    """Give the state that the agent had when it wrote the last of ``records``, all connections gone.

    Every restored live task counts as ordered: whether its process was ordered before the end is not known, and it is
    never started a second time.
    """
    state = AgentState()
    for record in records:
        match record:
            case IdentityTaken():
                state.agent_id, state.boot_id = record.agent_id, record.boot_id
                state.incarnation, state.epoch = record.incarnation, record.epoch
            case TaskLaunched():
                task = LiveTask(
                    key=(record.framework_id, record.spec.task_id),
                    spec=record.spec,
                    launched_ms=record.launched_ms,
                    started_ms=record.started_ms,
                    is_ordered=True,
                )
                state.live[task.key] = task
            case StatusMade():
                _restore_status(state, record.status)
            case StatusesAccepted():
                _restore_acceptance(state, record, settings.history_count_max)
            case TaskRemembered():
                _restore_end(state, record.status)
                remember(state, record.status.key, settings.history_count_max)
            case EndedWithoutFiles():
                state.fileless[record.key] = None
            case _:
                assert_never(record)
    _sort_sandboxes(state)
    return state


def _sort_sandboxes(state: AgentState) -> None:
    # A snapshot lists tasks by acknowledgement. Ends of one millisecond go by key.
    oldest_first = sorted(state.sandboxes.items(), key=lambda item: (item[1].ended_ms, item[0]))
    state.sandboxes = OrderedDict(oldest_first)


def _restore_status(state: AgentState, status: TaskStatus) -> None:
    state.outboxes.setdefault(status.key, []).append(status)
    if is_terminal(status.state):
        _restore_end(state, status)
        return
    task = state.live.get(status.key)
    if task is None:
        # A snapshot tells of a task that is over only what is owed.
        return
    task.state = status.state
    task.latest = status
    if status.state is TaskState.RUNNING:
        task.started_ms = status.timestamp_ms


def _restore_end(state: AgentState, status: TaskStatus) -> None:
    task = state.live.pop(status.key, None)
    state.over[status.key] = status
    if task is not None and task.spec.no_files:
        state.fileless[status.key] = None
    # Whether there is a sandbox is found out by looking (SandboxesFound).
    add_sandbox(state, status.key, ended_ms=status.timestamp_ms, usage=status.usage)


def _restore_acceptance(state: AgentState, record: StatusesAccepted, history_count_max: int) -> None:
    outbox = state.outboxes.get(record.key)
    if outbox is not None:
        outbox[:] = [status for status in outbox if status.sequence > record.sequence]
        if outbox:
            return
        del state.outboxes[record.key]
    if record.key in state.over:
        remember(state, record.key, history_count_max)


def snapshot(state: AgentState) -> list[Record]:
    """Give the shortest list of records from which ``restore`` makes this state again."""
    records: list[Record] = [identity_of(state)]
    records += [TaskRemembered(status=state.over[key]) for key in state.history]
    for key in state.over:
        if key not in state.history:
            records += [StatusMade(status=status) for status in state.outboxes[key]]
    records += [EndedWithoutFiles(key=key) for key in state.fileless]
    for task in state.live.values():
        records.append(
            TaskLaunched(
                framework_id=task.framework_id,
                spec=task.spec,
                launched_ms=task.launched_ms,
                started_ms=task.started_ms,
            )
        )
        records += _live_statuses(state, task)
    return records


def _live_statuses(state: AgentState, task: LiveTask) -> list[Record]:
    """The statuses of a live task that still matter: those owed, or the latest as one that is not."""
    if task.latest is None:
        return []
    outbox = state.outboxes.get(task.key)
    if outbox is not None:
        return [StatusMade(status=status) for status in outbox]
    return [StatusMade(status=task.latest), StatusesAccepted(key=task.key, sequence=task.sequence)]
