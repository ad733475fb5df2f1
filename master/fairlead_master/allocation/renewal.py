"""Computes anew, in parts, what is known of everybody: after other settings, or once many agents have left.

Frameworks are ranked, in the order in which they were before; agents are numbered without gaps and shown to a new search; and
every class of every framework gets its shape there and looks at all agents again. Cycles carry it on, as far as each may, and
serve nobody before the end. Facts come in between as at any time: whoever had its turn is kept up to date by them, and whoever
had not will be taken with what is so by then. The end is the same as if all had been done there at once, but for two things:
shapes that facts asked for in between have earlier numbers, and a policy that remembers has seen nothing of what passed in between.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from fairlead_master.allocation.agents import Agent
from fairlead_master.allocation.api import Counters
from fairlead_master.allocation.demands import DemandBoard
from fairlead_master.allocation.hierarchy import Hierarchy
from fairlead_master.allocation.search import AgentSearch
from fairlead_proto.ids import AgentId

NUMBER_EFFORT: Final = 25
"""What it takes to number an agent anew, in looks at one column of an agent."""


class Renewal:
    """The agents by index, and what is left to be computed anew."""

    def __init__(
        self, hierarchy: Hierarchy, demands: DemandBoard, agents: Mapping[AgentId, Agent], search: AgentSearch
    ) -> None:
        self.by_index: list[Agent] = []
        """Agents that left included, until the next renewal."""
        self._hierarchy = hierarchy
        self._demands = demands
        self._agents = agents
        self._search = search
        self._left: Iterator[int] | None = None
        """Does a step and gives what it took, until nothing is left."""
        self._is_numbering = False

    @property
    def is_under_way(self) -> bool:
        """Whether something is left."""
        return self._left is not None

    def begin(self, search: AgentSearch) -> None:
        """Find agents by this search from now on, and rank whoever is not ranked. One that is under way goes on as part of it."""
        self._search = search
        self._demands.begin_anew(search)
        self.by_index = []
        for agent in self._agents.values():
            agent.index = -1
        self._is_numbering = True
        self._left = chain(self._hierarchy.rank_anew(), self._number_all(), self._demands.search_anew())

    def go_on(self, counters: Counters, examined_max: float) -> bool:
        """Carry on until so many agents were examined, or as much was done; whether nothing is left."""
        if self._left is not None:
            for effort in self._left:
                counters.agents_examined += effort
                if counters.agents_examined >= examined_max:
                    return False
            self._left = None
            self._search.note_change()
        return True

    def add(self, agent: Agent) -> None:
        """A new agent: it comes after all others."""
        if not self._is_numbering:
            self._number(agent)

    def _number_all(self) -> Iterator[int]:
        while waiting := [agent for agent in self._agents.values() if agent.index < 0]:
            for agent in waiting:
                if self._agents.get(agent.agent_id) is agent:
                    agent.floor = (0,) * len(agent.total)
                    agent.tasks_ceiling = 0
                    agent.excuse()
                    self._number(agent)
                    yield NUMBER_EFFORT
        self._is_numbering = False

    def _number(self, agent: Agent) -> None:
        agent.index = len(self.by_index)
        self.by_index.append(agent)
        self._search.add(agent)
