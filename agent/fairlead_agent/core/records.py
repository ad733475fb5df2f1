"""What the agent writes down, in the order in which it happened.

The journal of these records is the agent's memory: replaying it gives back every task, every status not yet
acknowledged and the history that keeps a task from being started twice. Environments are not in it, because they hold
secrets and a task is started once.
"""

from dataclasses import dataclass

from fairlead_proto.ids import AgentId, FrameworkId, TaskKey
from fairlead_proto.tasks import TaskSpec, TaskStatus
from fairlead_proto.value import value


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityTaken:
    """Who this agent is, on which boot of its host, and the newest master it has seen. The last one counts."""

    agent_id: AgentId
    """Empty until a master has given one."""
    boot_id: str
    incarnation: int
    epoch: int


@value
class TaskLaunched:
    """The agent has taken this task and is about to start it."""

    framework_id: FrameworkId
    spec: TaskSpec
    """Its environment is empty."""
    launched_ms: int
    started_ms: int = 0
    """When it began to run, if that was known by when this was written: in a snapshot, whose statuses need not say it."""


@value
class StatusMade:
    """The task moved to this state; the status is owed to the master until acknowledged."""

    status: TaskStatus


@value
class StatusesAccepted:
    """The master has every status of the task up to this sequence number."""

    key: TaskKey
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRemembered:
    """A task that is over and fully acknowledged; written by compaction in place of its whole story."""

    status: TaskStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedWithoutFiles:
    """A task that is over had no files; written by compaction, behind what stands for the task."""

    key: TaskKey


Record = IdentityTaken | TaskLaunched | StatusMade | StatusesAccepted | TaskRemembered | EndedWithoutFiles
