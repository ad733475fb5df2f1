"""What the master tells an MQTT broker, and what it takes from it: the word that an agent is gone.

Reads the core between steps, as a listing does. Changes come from the log that ``Watch`` reads too, so the core does
nothing for telemetry. Messages hold batches: a message for each task would cost more than the task.
"""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import structlog

from fairlead_master import views
from fairlead_master.allocation.api import Decision
from fairlead_master.core import events
from fairlead_master.runner import Runner
from fairlead_proto.ids import AgentId, TaskKey
from fairlead_telemetry import payloads
from fairlead_telemetry.broker import BrokerOptions
from fairlead_telemetry.link import BrokerLink, Fields, Incoming, Presence
from fairlead_telemetry.topics import Topics, agent_of

log = structlog.get_logger()

GATHER_S: Final = 0.1
"""Changes of this long share a message. It is what a monitor lags behind at most while the broker keeps up."""

ROWS_PER_MESSAGE_MAX: Final = 500
"""Changes or decisions in one message: some 70 KiB, and a millisecond of the loop."""

SHARES_INTERVAL_S: Final = 1.0
SHARES_COST_SHARE_MAX: Final = 0.02
"""Of the loop's time. With thousands of roles the picture takes many milliseconds, and comes less often."""

WILL_BYTES_MAX: Final = 65_536
"""A status of an agent is smaller. Whatever else comes under its topic is not read."""


class MasterTelemetry:
    """One master's connection to its broker."""

    def __init__(self, runner: Runner, options: BrokerOptions, address: str) -> None:
        self._runner = runner
        self._master = runner.machine.master
        self._address = address
        self._topics = Topics(options.cluster)
        presence = Presence(
            identity=f"fairlead-{options.cluster}-master",
            topic=self._topics.master_status,
            online=lambda: self._status("online"),
            offline=lambda: self._status("offline"),
        )
        self.link = BrokerLink(
            options,
            presence,
            subscriptions=(self._topics.agent_status("+"),),
            on_message=self._take,
            random=random.random,
            log=log,
        )
        self._changed = asyncio.Event()
        self._version = self._master.version
        self._decision = self._newest_decision()
        self._watcher: int | None = None
        self._parts: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Connect, and publish from now on."""
        self.link.start()
        self._watcher = self._runner.add_watcher(self._changed.set)
        self._parts = [
            asyncio.create_task(self._follow(), name="telemetry-changes"),
            asyncio.create_task(self._follow_shares(), name="telemetry-shares"),
        ]
        for part in self._parts:
            part.add_done_callback(_tell_failure)

    async def stop(self) -> None:
        """Publish what is left and that the master ends, for a bounded time."""
        if self._watcher is not None:
            self._runner.remove_watcher(self._watcher)
        for part in self._parts:
            part.cancel()
        await asyncio.gather(*self._parts, return_exceptions=True)
        await self.link.stop(self._status("offline"))

    def _status(self, state: str) -> Fields:
        return {
            "state": state,
            "address": self._address,
            "epoch": self._master.epoch,
            "time_ms": self._runner.clock.now_ms(),
        }

    # --- out -----------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(GATHER_S)
            self._changed.clear()
            await self._publish_changes()
            await self._publish_decisions()

    async def _publish_changes(self) -> None:
        master = self._master
        count = master.version - self._version
        self._version = master.version
        if count > len(master.changes):
            self.link.skip(self._topics.tasks)
        # Counted from the new end: to skip the tens of thousands before would cost more than to read these.
        recent = list(islice(reversed(master.changes), count))
        recent.reverse()
        changes = [(key, what) for kind, key, what in recent if kind == "task" and isinstance(key, tuple)]
        for start in range(0, len(changes), ROWS_PER_MESSAGE_MAX):
            rows = [self._change(key, state) for key, state in changes[start : start + ROWS_PER_MESSAGE_MAX]]
            self._publish(self._topics.tasks, "changes", rows, qos=1)
            await asyncio.sleep(0)

    def _change(self, key: TaskKey, state: str) -> dict[str, Any]:
        task = self._master.find_task(key)
        if task is None:
            return {
                "framework_id": key[0],
                "task_id": key[1],
                "state": state,
                "agent_id": None,
                "reason": None,
            }
        # Of a task that has moved on since, the reason is the later state's.
        is_now = task.state.value == state
        return {
            "framework_id": key[0],
            "task_id": key[1],
            "state": state,
            "agent_id": task.agent_id,
            "reason": task.reason.value if is_now else None,
            "exit_code": task.exit_code if is_now else None,
        }

    async def _publish_decisions(self) -> None:
        newest = self._newest_decision()
        decisions = self._master.allocator.decisions
        count = newest - self._decision
        self._decision = newest
        if count > len(decisions):
            self.link.skip(self._topics.decisions)
        recent = list(islice(reversed(decisions), count))
        recent.reverse()
        for start in range(0, len(recent), ROWS_PER_MESSAGE_MAX):
            rows = [_decision(decision) for decision in recent[start : start + ROWS_PER_MESSAGE_MAX]]
            self._publish(self._topics.decisions, "decisions", rows, qos=0)
            await asyncio.sleep(0)

    def _newest_decision(self) -> int:
        newest = next(reversed(self._master.allocator.decisions), None)
        return newest.number if newest is not None else 0

    def _publish(self, topic: str, name: str, rows: Sequence[dict[str, Any]], qos: int) -> None:
        self.link.publish(topic, {"time_ms": self._runner.clock.now_ms(), name: rows}, qos=qos)

    async def _follow_shares(self) -> None:
        version, published = -1, None
        while True:
            pause_s = SHARES_INTERVAL_S
            if version != self._master.version:
                version = self._master.version
                started_s = time.thread_time()
                roles = [payloads.share(info) for info in views.roles(self._master)]
                policy = self._master.settings.allocation.policy
                if (policy, roles) != published:
                    published = (policy, roles)
                    fields = {"time_ms": self._runner.clock.now_ms(), "policy": policy, "roles": roles}
                    self.link.retain(self._topics.shares, fields)
                pause_s = max(pause_s, (time.thread_time() - started_s) / SHARES_COST_SHARE_MAX)
            await asyncio.sleep(pause_s)

    # --- in ------------------------------------------------------------------------------------------------------

    def _take(self, message: Incoming) -> None:
        """The broker says that an agent is gone: if we still count on it, ask it at once."""
        if len(message.payload) > WILL_BYTES_MAX:
            return
        try:
            status = json.loads(message.payload)
        except ValueError:
            return
        if not isinstance(status, dict) or status.get("state") != "offline":
            return
        agent = self._master.agents.get(AgentId(agent_of(message.topic)))
        if agent is not None and agent.is_connected and agent.agent_id not in self._master.agents_doubted:
            log.info("agent.doubted", agent_id=agent.agent_id, broker=self.link.url)
            self._runner.post(events.AgentDoubted(agent_id=agent.agent_id))


def _tell_failure(part: asyncio.Task[None]) -> None:
    """A bug here costs messages, and somebody must hear of it; the master goes on."""
    if not part.cancelled() and (error := part.exception()) is not None:
        log.error("telemetry.failed", part=part.get_name(), error=repr(error), exc_info=error)


def _decision(decision: Decision) -> dict[str, Any]:
    grant = decision.grant
    return {
        "number": decision.number,
        "time_ms": decision.time_ms,
        "role": grant.role,
        "framework_id": grant.framework_id,
        "agent_id": grant.agent_id,
        "units": grant.units,
        "key_before": grant.key_before,
        "key_after": grant.key_after,
    }
