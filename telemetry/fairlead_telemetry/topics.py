"""The topics of a cluster: `fairlead/v1/CLUSTER/…`, a contract that other people's monitors rely on (docs/telemetry.md)."""

from dataclasses import dataclass
from typing import Final

PREFIX: Final = "fairlead/v1"


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one cluster."""

    cluster: str

    @property
    def root(self) -> str:
        """What all of them begin with."""
        return f"{PREFIX}/{self.cluster}"

    @property
    def master_status(self) -> str:
        """Retained, with a last will."""
        return f"{self.root}/master/status"

    def agent_status(self, agent_id: str) -> str:
        """Retained, with a last will; ``+`` for the agent makes it a filter."""
        return f"{self.root}/agents/{agent_id}/status"

    def agent_usage(self, agent_id: str) -> str:
        """What the agent's tasks use."""
        return f"{self.root}/agents/{agent_id}/usage"

    @property
    def tasks(self) -> str:
        """Changes of tasks."""
        return f"{self.root}/tasks"

    @property
    def shares(self) -> str:
        """Who holds what share. Retained."""
        return f"{self.root}/shares"

    @property
    def decisions(self) -> str:
        """Grants of the allocator."""
        return f"{self.root}/decisions"


def fault_in_filter(text: str) -> str:
    """What is wrong with a topic filter, empty if nothing is."""
    levels = text.split("/")
    if not text or "\0" in text:
        return "a topic"
    if "#" in "".join(levels[:-1]) or ("#" in levels[-1] and levels[-1] != "#"):
        return "# as the last level only, and alone in it"
    if any("+" in level and level != "+" for level in levels):
        return "+ as a whole level"
    return ""


def matches_any(text: str) -> bool:
    """Whether a topic filter, which has no fault, lets any topic of any cluster through."""
    anything = Topics("+")
    kinds = (
        anything.master_status,
        anything.agent_status("+"),
        anything.agent_usage("+"),
        anything.tasks,
        anything.shares,
        anything.decisions,
    )
    return any(_overlap(text.split("/"), kind.split("/")) for kind in kinds)


def _overlap(wanted: list[str], kind: list[str]) -> bool:
    for level, name in zip(wanted, kind, strict=False):
        if level == "#":
            return True
        if level != name and "+" not in (level, name):
            return False
    # "#" stands for no level too.
    return len(wanted) == len(kind) or wanted[len(kind) :] == ["#"]


def agent_of(topic: str) -> str:
    """The agent that a topic of an agent names."""
    return topic.split("/")[4]
