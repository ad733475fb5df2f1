"""What frameworks declined, and until when: deadlines in one heap, the filters themselves with their demands.

A filter is only ever about one class of one framework, so it hides an agent from nobody else.
"""

from heapq import heapify, heappop, heappush
from typing import Final

from fairlead_master.allocation.accounts import Demand, Framework
from fairlead_proto.ids import AgentId, ClassId, FrameworkId

FILTERS_MAX: Final = 1_000
"""Filters of one framework on single agents. One more replaces its oldest, so at worst it is offered once more what it
declined; who declines more agents than that should say so with a constraint."""

_SLACK: Final = 64

_Entry = tuple[int, int, FrameworkId, ClassId, AgentId | None]


class FilterClock:
    """Which filters end when."""

    def __init__(self, frameworks: dict[FrameworkId, Framework]) -> None:
        self._frameworks = frameworks
        self._heap: list[_Entry] = []
        self._number = 0
        self._compact_at = _SLACK

    def set(self, framework: Framework, demand: Demand, agent_id: AgentId | None, until_ms: int) -> None:
        """Note that the filter ends at ``until_ms``; one set before for the same thing is void from now on."""
        self._number += 1  # So that no comparison reaches agent ids, which may be absent.
        heappush(self._heap, (until_ms, self._number, framework.framework_id, demand.class_id, agent_id))
        if len(self._heap) > self._compact_at:
            self._heap = [entry for entry in self._heap if self._demand(entry) is not None]
            heapify(self._heap)
            self._compact_at = 2 * len(self._heap) + _SLACK

    def ended(self, now_ms: int) -> list[tuple[Framework, Demand, AgentId | None]]:
        """The filters that end at or before ``now_ms``, earliest first; each is given once."""
        ended = []
        while self._heap and self._heap[0][0] <= now_ms:
            entry = heappop(self._heap)
            demand = self._demand(entry)
            if demand is not None:
                ended.append((self._frameworks[entry[2]], demand, entry[4]))
        return ended

    def next_ms(self) -> int | None:
        """When the next filter ends; None if there is none."""
        while self._heap and self._demand(self._heap[0]) is None:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _demand(self, entry: _Entry) -> Demand | None:
        until_ms, _, framework_id, class_id, agent_id = entry
        framework = self._frameworks.get(framework_id)
        demand = framework.demands.get(class_id) if framework is not None else None
        if demand is None:
            return None
        until = demand.declined_everywhere_until_ms if agent_id is None else demand.declined.get(agent_id)
        return demand if until == until_ms else None
