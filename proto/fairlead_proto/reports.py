"""What an agent says of itself when it registers, as both hold it: the agent's core in an action, the master's as an event."""

from collections.abc import Mapping

from fairlead_proto.ids import AgentId
from fairlead_proto.resources import Vector
from fairlead_proto.tasks import RunningTask, TaskStatus
from fairlead_proto.value import value


@value
class AgentConnected:
    """An agent's session began with its registration."""

    session: int = 0
    """The master's number of it, which is not in the message: an agent has one session."""
    agent_id: AgentId | None
    """None: a new agent."""
    incarnation: int
    hostname: str
    total: Vector
    attributes: Mapping[str, str]
    tasks: tuple[RunningTask, ...] = ()
    unacknowledged: tuple[TaskStatus, ...] = ()
    """By task, each in sequence."""
    last_epoch: int = 0
    agent_time_ms: int = 0
    """By the host's clock, not the agent's steady one: the master reports by it how far the host is off."""
    isolation: str = ""
    version: str = ""
    """Of the agent, as its master reads it."""
    answers_ping: bool = False
    """As its master reads it: every agent of this version does."""
