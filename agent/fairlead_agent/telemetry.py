"""What an agent tells an MQTT broker: that it is there, and what its tasks use. Nothing waits for the broker."""

import asyncio
import random
import time
from typing import Any, Final

from structlog.typing import FilteringBoundLogger

from fairlead_agent.core.actions import SendHeartbeat
from fairlead_agent.core.state import AgentSettings, AgentState
from fairlead_proto.clock import wall_ms
from fairlead_proto.ids import TaskKey
from fairlead_proto.tasks import TaskUsage
from fairlead_telemetry.broker import BrokerOptions
from fairlead_telemetry.link import BrokerLink, Fields, Presence
from fairlead_telemetry.payloads import amounts_of
from fairlead_telemetry.topics import Topics

TASKS_PER_MESSAGE_MAX: Final = 500
"""Some 100 KiB."""


class AgentTelemetry:
    """One agent's connection to its broker. It begins with the agent's id, which its topics and its will name."""

    def __init__(self, options: BrokerOptions, settings: AgentSettings, log: FilteringBoundLogger) -> None:
        self._options = options
        self._settings = settings
        self._log = log
        self._topics = Topics(options.cluster)
        self._agent_id = ""
        self.link: BrokerLink | None = None
        """None before the agent has an id."""
        self._ends: set[asyncio.Task[None]] = set()
        self._measured: dict[TaskKey, tuple[int, float]] = {}
        """Of each task its CPU time at the last measurement and when that was, so that a rate can be given."""

    def identify(self, agent_id: str) -> None:
        """The agent has this id: connect under it, unless that is done."""
        if agent_id == self._agent_id:
            return
        if self.link is not None:
            # A master that forgot this agent has given it another id; the old one is not coming back.
            end = asyncio.get_running_loop().create_task(self.link.stop(self._status("left")))
            self._ends.add(end)
            end.add_done_callback(self._ends.discard)
        self._agent_id = agent_id
        presence = Presence(
            identity=f"fairlead-{self._options.cluster}-agent-{agent_id}",
            topic=self._topics.agent_status(agent_id),
            online=lambda: self._status("online"),
            offline=lambda: self._status("offline"),
        )
        self.link = BrokerLink(self._options, presence, random=random.random, log=self._log)
        self.link.start()

    async def stop(self) -> None:
        """Say that the agent left on purpose, for a bounded time."""
        if self.link is not None:
            await self.link.stop(self._status("left"))
        await asyncio.gather(*self._ends, return_exceptions=True)

    def _status(self, state: str) -> Fields:
        return {
            "state": state,
            "hostname": self._settings.hostname,
            "total": amounts_of(self._settings.kinds, self._settings.total),
            "attributes": dict(self._settings.attributes),
            "time_ms": wall_ms(),
        }

    def publish_usage(self, beat: SendHeartbeat, state: AgentState) -> None:
        """Publish what a heartbeat tells the master, and of all tasks, not only of those whose usage changed."""
        if self.link is None:
            return
        now_s = time.monotonic()
        measured, self._measured = self._measured, {}
        rows = []
        for task in state.live.values():
            if task.usage is not None:
                rows.append(_row(task.key, task.usage, now_s, measured.get(task.key)))
                self._measured[task.key] = (task.usage.cpu_time_ms, now_s)
        used = amounts_of(self._settings.kinds, beat.used)
        topic = self._topics.agent_usage(self._agent_id)
        for start in range(0, max(1, len(rows)), TASKS_PER_MESSAGE_MAX):
            batch = rows[start : start + TASKS_PER_MESSAGE_MAX]
            self.link.publish(topic, {"time_ms": wall_ms(), "used": used, "tasks": batch})


def _row(key: TaskKey, usage: TaskUsage, now_s: float, before: tuple[int, float] | None) -> dict[str, Any]:
    cpus = None
    if before is not None and now_s > before[1]:
        cpus = round(max(0, usage.cpu_time_ms - before[0]) / 1000 / (now_s - before[1]), 3)
    return {
        "framework_id": key[0],
        "task_id": key[1],
        "cpus": cpus,
        "cpu_time_ms": usage.cpu_time_ms,
        "mem_bytes": usage.mem_bytes,
        "mem_peak_bytes": usage.mem_peak_bytes,
        "mem_limit_bytes": usage.mem_limit_bytes or None,
        "sandbox_bytes": usage.sandbox_bytes,
    }
