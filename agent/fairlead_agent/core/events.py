"""What happens to an agent: facts from the master, from the executor, from the disk, and the passing of time."""

from dataclasses import dataclass

from fairlead_proto.ids import TaskKey
from fairlead_proto.orders import Order
from fairlead_proto.task_state import Reason
from fairlead_proto.tasks import TaskUsage
from fairlead_proto.value import short_value, value


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted:
    """The process has begun; always the first event. A boot id other than the recorded one ends every recorded task."""

    boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A deadline has passed; see ``AgentMachine.next_deadline_ms``."""


# From the master.


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened:
    """A stream to a master is open and nothing was said on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClosed:
    """The stream is gone; nothing of it will be reported after this."""


@short_value
class Ordered:
    """The master of this epoch gave an order."""

    epoch: int
    order: Order


# From the executor.


@value
class ProcessStarted:
    """The task's process runs."""

    key: TaskKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStartFailed:
    """No process was made."""

    key: TaskKey
    reason: Reason
    message: str


@value
class ProcessExited:
    """Every process of the task is gone."""

    key: TaskKey
    exit_code: int | None
    signal: int | None
    """None with exit_code None: nobody saw the end."""
    is_out_of_memory: bool = False
    message: str = ""
    usage: TaskUsage | None = None
    ended_ms: int = 0
    """On the executor's clock; 0 if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorConnected:
    """An executor is there; this is everything it knows."""

    isolation: str
    running: tuple[TaskKey, ...] = ()
    ended: tuple[ProcessExited | ProcessStartFailed, ...] = ()
    """Ends it has not been told to forget, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorLost:
    """The executor died or was given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageMeasured:
    """What each running task uses now."""

    measurements: tuple[tuple[TaskKey, TaskUsage], ...]


# From the host.


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxesFound:
    """Every sandbox on disk at the start, in no order."""

    keys: tuple[TaskKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskMeasured:
    """Space of the file system that holds the sandboxes."""

    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveRequested:
    """Whoever runs the agent wants it to end."""

    is_stopping_tasks: bool
    """Else they run on and the next agent of this work directory adopts them."""
    reason: str


ExecutorEvent = (
    ExecutorConnected | ExecutorLost | ProcessStarted | ProcessStartFailed | ProcessExited | UsageMeasured
)
HostEvent = AgentStarted | SandboxesFound | DiskMeasured | LeaveRequested
Event = Tick | SessionOpened | SessionClosed | Ordered | ExecutorEvent | HostEvent
