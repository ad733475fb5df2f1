"""The states of a task and every legal move between them.

Two rules keep this file honest: all task transitions live in ``TRANSITIONS``, and nothing here knows whether the
master or an agent is asking. A move that is not in the table is a bug of the caller, except where a caller first asks
``can_move`` because the report comes from outside and may be late or repeated.
"""

from enum import Enum, unique
from typing import Final


@unique
class TaskState(Enum):
    """Where a task is in its life. The value is the name used in schema, listings and logs."""

    STAGING = "STAGING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    KILLING = "KILLING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    KILLED = "KILLED"
    ERROR = "ERROR"
    DROPPED = "DROPPED"
    LOST = "LOST"
    UNREACHABLE = "UNREACHABLE"
    GONE = "GONE"

    # Members are compared by identity, so they may be hashed by it: Enum hashes the name, in Python, and a task's life
    # asks some twenty times. Nothing here or elsewhere iterates a set, so the hash decides no order.
    __hash__ = object.__hash__


_S = TaskState

TERMINAL: Final = frozenset({_S.FINISHED, _S.FAILED, _S.KILLED, _S.ERROR, _S.DROPPED, _S.LOST, _S.GONE})
"""States that are never left. UNREACHABLE is not one: the agent may return with the task still running."""

RETRIABLE: Final = frozenset({_S.DROPPED, _S.LOST, _S.GONE})
"""Terminal states that say nothing against the task itself: running it again is the framework's natural answer."""

_ENDS: Final = frozenset(
    {_S.FINISHED, _S.FAILED, _S.KILLED, _S.ERROR, _S.DROPPED, _S.LOST, _S.UNREACHABLE, _S.GONE}
)

TRANSITIONS: Final[dict[TaskState, frozenset[TaskState]]] = {
    # Reports may be lost or merged, so every later state can be the first one heard of.
    _S.STAGING: frozenset({_S.STARTING, _S.RUNNING, _S.KILLING}) | _ENDS,
    _S.STARTING: frozenset({_S.RUNNING, _S.KILLING}) | _ENDS,
    _S.RUNNING: frozenset({_S.KILLING}) | _ENDS,
    # A process may end by itself inside its grace period: it then FINISHED or FAILED, whoever asked it to stop.
    _S.KILLING: _ENDS,
    # Whatever the agent says when it is back is the truth again.
    _S.UNREACHABLE: frozenset({_S.STARTING, _S.RUNNING, _S.KILLING}) | (_ENDS - {_S.UNREACHABLE}),
    **{
        state: frozenset()
        for state in (_S.FINISHED, _S.FAILED, _S.KILLED, _S.ERROR, _S.DROPPED, _S.LOST, _S.GONE)
    },
}


def is_terminal(state: TaskState) -> bool:
    """Whether a task in ``state`` is over for good and holds no resources."""
    return state in TERMINAL


def can_move(before: TaskState, after: TaskState) -> bool:
    """Whether the table allows ``before -> after``. A repeat of the same state is not a move."""
    return after in TRANSITIONS[before]


@unique
class Reason(Enum):
    """Why a task is in its state: a closed list. The message beside it carries the numbers."""

    NONE = "NONE"
    EXITED = "EXITED"
    SIGNALED = "SIGNALED"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    COMMAND_NOT_FOUND = "COMMAND_NOT_FOUND"
    COMMAND_NOT_EXECUTABLE = "COMMAND_NOT_EXECUTABLE"
    SANDBOX_FAILED = "SANDBOX_FAILED"
    KILLED_BY_FRAMEWORK = "KILLED_BY_FRAMEWORK"
    KILLED_BY_OPERATOR = "KILLED_BY_OPERATOR"
    FRAMEWORK_REMOVED = "FRAMEWORK_REMOVED"
    STAGING_TIMEOUT = "STAGING_TIMEOUT"
    AGENT_DISCONNECTED = "AGENT_DISCONNECTED"
    AGENT_RESTARTED = "AGENT_RESTARTED"
    AGENT_REMOVED = "AGENT_REMOVED"
    INVALID_TASK = "INVALID_TASK"
    UNKNOWN_TASK = "UNKNOWN_TASK"
    RECONCILIATION = "RECONCILIATION"
    EXECUTOR_FAILED = "EXECUTOR_FAILED"
    MAX_RUNTIME = "MAX_RUNTIME"
    AGENT_RETURNED = "AGENT_RETURNED"
    INFEASIBLE = "INFEASIBLE"

    __hash__ = object.__hash__  # as in TaskState
