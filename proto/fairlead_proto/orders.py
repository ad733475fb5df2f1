"""What a master orders an agent, as both hold it: the master's core as actions, the agent's core inside an event.

``agent_messages`` writes them where they leave and reads them where they arrive.
"""

from fairlead_proto.codes import RefusalCode
from fairlead_proto.ids import AgentId, FrameworkId, TaskId, TaskKey
from fairlead_proto.peers import NONE, Capabilities
from fairlead_proto.task_state import Reason
from fairlead_proto.tasks import TaskSpec
from fairlead_proto.value import value

# ``session`` is the master's number of the session an order is for. It is not in a message: an agent has one session.


@value
class ConfirmAgent:
    """Tell an agent that it is registered."""

    session: int = 0
    agent_id: AgentId
    heartbeat_interval_ms: int
    version: str = ""
    """Of the master, as its agent reads it; empty from one that says none."""
    files_token: str = ""
    """Begins a stream of files, which the master's shell gives; empty from a master that has none."""
    capabilities: Capabilities = NONE
    """Of the master, as its agent reads them."""


@value
class LaunchTasks:
    """Start tasks of one framework on an agent, environments included."""

    session: int = 0
    framework_id: FrameworkId
    tasks: tuple[TaskSpec, ...]


@value
class UnreadableLaunch:
    """A task to start whose description the agent cannot use; no master makes one, reading does."""

    framework_id: FrameworkId
    task_id: TaskId
    detail: str

    @property
    def key(self) -> TaskKey:
        """The task's name in the whole cluster."""
        return self.framework_id, self.task_id


@value
class KillTask:
    """End a task on its agent."""

    session: int = 0
    framework_id: FrameworkId
    task_id: TaskId
    grace_period_ms: int
    """0: the task's own."""
    reason: Reason

    @property
    def key(self) -> TaskKey:
        """The task's name in the whole cluster."""
        return self.framework_id, self.task_id


@value
class AcknowledgeStatuses:
    """Tell an agent which statuses need not be sent again: of each task, those up to the number."""

    session: int = 0
    items: tuple[tuple[TaskKey, int], ...]


@value
class PingAgent:
    """Ask an agent for a sign of life."""

    session: int = 0


@value
class EndAgentSession:
    """Refuse a registration, or end the session; nothing follows."""

    session: int = 0
    code: RefusalCode
    detail: str


ToAgent = ConfirmAgent | LaunchTasks | KillTask | AcknowledgeStatuses | PingAgent | EndAgentSession
"""What a master sends."""

Order = ToAgent | UnreadableLaunch
"""What an agent is given."""
