"""Which reports about tasks are new, which are repeats, and which were acknowledged.

An agent repeats a report until it is acknowledged, so repeats are the ordinary course: each is acknowledged again and
passed on never. Reports the master makes itself carry sequence 0 and are always passed on.

Each agent counts by itself, and an id may come from two: one that was given up with an end it had not told, and the one that ran
the task again. So a number means something beside its agent only.
"""

from typing import Final

from fairlead_proto.task_state import Reason, is_terminal
from fairlead_proto.tasks import TaskStatus

ENDED_TASKS_MAX: Final = 100_000
"""Ended tasks remembered, so that a repeat of a last report is known as one. An agent repeats within seconds; a session
that ends more tasks than this in that time, and breaks, may see a last report twice."""


class Sequences:
    """The highest sequence number seen and acknowledged, for each task."""

    def __init__(self, ended_tasks_max: int = ENDED_TASKS_MAX) -> None:
        self._seen: dict[str, tuple[str, int]] = {}
        """Task id to the agent that reported last, and its highest number."""
        self._acknowledged: dict[str, tuple[str, int]] = {}
        self._ended: dict[str, None] = {}
        self._ended_tasks_max = ended_tasks_max

    def is_new(self, status: TaskStatus) -> bool:
        """Whether the report was not seen before; it counts as seen from now on."""
        if status.sequence:
            if _covers(self._seen.get(status.task_id), status):
                return False
            self._seen[status.task_id] = (status.agent_id, status.sequence)
        # Of what nobody ever knew nothing ended: it may be launched after all.
        is_nothing = status.reason is Reason.UNKNOWN_TASK and status.task_id not in self._seen
        if is_terminal(status.state) and not is_nothing:
            self._end(status.task_id)
        return True

    def is_over(self, task_id: str) -> bool:
        """Whether the task's last report was seen."""
        return task_id in self._ended

    def acknowledge(self, status: TaskStatus) -> bool:
        """Note that everything up to this report is known; False if that was so before."""
        if not status.sequence or _covers(self._acknowledged.get(status.task_id), status):
            return False
        self._acknowledged[status.task_id] = (status.agent_id, status.sequence)
        return True

    def is_acknowledged(self, status: TaskStatus) -> bool:
        """Whether the report was acknowledged before, so that its repeat means the acknowledgement was lost."""
        return status.sequence > 0 and _covers(self._acknowledged.get(status.task_id), status)

    def _end(self, task_id: str) -> None:
        self._ended[task_id] = None
        if len(self._ended) > self._ended_tasks_max:
            # The one that ended first is the least likely to be repeated.
            oldest = next(iter(self._ended))
            del self._ended[oldest]
            self._seen.pop(oldest, None)
            self._acknowledged.pop(oldest, None)


def _covers(known: tuple[str, int] | None, status: TaskStatus) -> bool:
    """Whether what is known of a task, an agent and its number, is this report or one after it."""
    return known is not None and known[0] == status.agent_id and status.sequence <= known[1]
