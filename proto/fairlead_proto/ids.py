"""Ids of everything the master, the agents and the frameworks name to one another.

They are strings on the wire and distinct types in the code, so that two of them cannot be swapped silently.
"""

from typing import NewType

FrameworkId = NewType("FrameworkId", str)
AgentId = NewType("AgentId", str)
OfferId = NewType("OfferId", str)
TaskId = NewType("TaskId", str)
"""Chosen by the framework and unique within it; ``(FrameworkId, TaskId)`` is unique in the cluster."""
ClassId = NewType("ClassId", str)
"""Chosen by the framework for one demand class; unique within one SetDemand."""
Role = NewType("Role", str)

TaskKey = tuple[FrameworkId, TaskId]
"""What names a task in the whole cluster."""

DEFAULT_ROLE = Role("default")
