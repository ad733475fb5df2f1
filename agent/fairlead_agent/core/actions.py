"""What the agent decides to do. Carried out in order; a ``Checkpoint`` always comes before what it vouches for."""

from dataclasses import dataclass

from fairlead_agent.core.records import Record
from fairlead_proto.ids import AgentId, FrameworkId, TaskKey
from fairlead_proto.peers import NONE, Capabilities
from fairlead_proto.reports import AgentConnected
from fairlead_proto.resources import Vector
from fairlead_proto.tasks import TaskSpec, TaskStatus, TaskUsage
from fairlead_proto.value import value


@value
class Checkpoint:
    """Append the records to the journal before any later action."""

    records: tuple[Record, ...]
    is_durable: bool = False
    """Must survive a crash of the host, not only of the process: it has the agent's id and epoch, or statuses."""


# To the executor.


@value
class StartProcess:
    """Run the task. Given at most once for a key, ever."""

    framework_id: FrameworkId
    spec: TaskSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateProcess:
    """Ask the task to end: SIGTERM to its process group."""

    key: TaskKey


@dataclass(frozen=True, slots=True, kw_only=True)
class KillProcess:
    """End every process of the task: SIGKILL."""

    key: TaskKey


@value
class ForgetProcess:
    """The end of the task is in the journal; the executor need not keep it."""

    key: TaskKey


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureUsage:
    """Measure every running task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartExecutor:
    """Find or start an executor in place of the lost one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopExecutor:
    """End the executor and whatever it still runs."""


# To the master.


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRegistration:
    """Say who this agent is, what it has, what it runs and what is unacknowledged."""

    report: AgentConnected


@value
class SendStatuses:
    """Report these statuses, in order."""

    statuses: tuple[TaskStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SendHeartbeat:
    """Say that the agent lives, and what its tasks use."""

    used: Vector
    tasks: tuple[tuple[TaskKey, TaskUsage], ...]
    """Those whose figures changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendGoodbye:
    """Say that the agent leaves on purpose."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmSession:
    """The master has accepted the registration: whoever waits for that may know."""

    agent_id: AgentId
    version: str
    """Of the master, for people; empty from one that says none."""
    files_token: str
    capabilities: Capabilities = NONE
    """Of the master."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseSession:
    """End the stream; try again later, with backoff."""

    reason: str


# To the host.


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureDisk:
    """Measure the file system that holds the sandboxes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSandboxes:
    """Delete the sandboxes of these tasks, all of them over."""

    keys: tuple[TaskKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveCluster:
    """End the agent's process."""

    is_refused: bool
    """Because a master refused it for good; else because somebody asked."""
    message: str


Action = (
    Checkpoint
    | StartProcess
    | TerminateProcess
    | KillProcess
    | ForgetProcess
    | MeasureUsage
    | StartExecutor
    | StopExecutor
    | SendRegistration
    | SendStatuses
    | SendHeartbeat
    | SendGoodbye
    | ConfirmSession
    | CloseSession
    | MeasureDisk
    | RemoveSandboxes
    | LeaveCluster
)
