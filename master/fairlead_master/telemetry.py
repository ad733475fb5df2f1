"""What the master tells an MQTT broker, and what it takes from it: the word that an agent is gone.

Reads the core between steps, as a listing does. Changes come from the log that ``Watch`` reads too, so the core does
nothing for telemetry. Messages hold batches: a message for each task would cost more than the task.
"""

import asyncio
import json
import random
from collections.abc import Reversible, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import orjson
import structlog

from fairlead_master import views
from fairlead_master.allocation.api import Decision
from fairlead_master.allocation.parts import Parts
from fairlead_master.core import events
from fairlead_master.core.state import Master
from fairlead_master.runner import Runner
from fairlead_proto.ids import AgentId, TaskKey
from fairlead_proto.task_state import TaskState
from fairlead_telemetry import payloads
from fairlead_telemetry.broker import BrokerOptions
from fairlead_telemetry.link import BrokerLink, Fields, Incoming, Presence
from fairlead_telemetry.topics import Topics, agent_of

log = structlog.get_logger()

Entry = TypeVar("Entry")

GATHER_S: Final = 1.0
"""Changes of this long share a message. One message costs half a millisecond beside other work on a slow machine, as much as two
hundred rows: gathered for 0.1 s, messages were two thirds of what telemetry cost a master with a hundred tasks a second. Shares
come once a second as well, and that an agent is gone says the broker, at once."""

ROWS_PER_MESSAGE_MAX: Final = 500
"""Changes or decisions in one message: some 70 KiB, and a millisecond of the loop."""

ROWS_PER_SECOND_MAX: Final = 3_000
"""Of a topic, in the long run. A row costs the master some 3 us with its part of a message, so that telemetry stays below 2 % of a
core. It is enough for a thousand tasks a second, of three changes each: ten thousand cores with tasks of ten seconds.
A saturated master makes ten thousand changes a second, which no monitor reads."""

BEHIND_MAX: Final = 20_000
"""Changes that wait to be published, so that an array of some thousand tasks passes whole; beyond it the oldest are dropped."""

SHARES_INTERVAL_S: Final = 1.0
"""At least, between the shares of all roles; ``views.ROLES_PER_SECOND_MAX`` says how long with many."""

WILL_BYTES_MAX: Final = 65_536
"""A status of an agent is smaller. Whatever else comes under its topic is not read."""


_STATES: Final = {state.value: state for state in TaskState}
"""By name. A look-up takes a tenth of the time of ``Enum.value``, which is a property written in Python."""


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
        """Send what waits and that the master ends, for a bounded time."""
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
        pause_s = GATHER_S
        while True:
            await self._changed.wait()
            await asyncio.sleep(pause_s)
            self._changed.clear()
            rows = max(self._publish_changes(), self._publish_decisions())
            # Behind a full message more may wait, which is sent as fast as the bound allows.
            pause_s = rows / ROWS_PER_SECOND_MAX if rows == ROWS_PER_MESSAGE_MAX else GATHER_S

    def _publish_changes(self) -> int:
        """Publish the oldest unpublished changes in one message; returns its number of rows."""
        master = self._master
        changes, left = self._next(
            self._topics.tasks,
            master.changes,
            behind=master.version - self._version,
            kept=min(len(master.changes), BEHIND_MAX),
        )
        self._version = master.version - left
        rows = _changes(master, [(key, what) for kind, key, what in changes if kind == "task"])
        if rows:
            self._publish(self._topics.tasks, "changes", rows, qos=1)
        return len(rows)

    def _publish_decisions(self) -> int:
        """Publish the oldest unpublished decisions in one message; returns its number of rows."""
        newest, log = self._newest_decision(), self._master.allocator.decisions
        decisions, left = self._next(
            self._topics.decisions, log, behind=newest - self._decision, kept=len(log)
        )
        self._decision = newest - left
        if decisions:
            self._publish(
                self._topics.decisions, "decisions", [_decision(decision) for decision in decisions], qos=0
            )
        return len(decisions)

    def _next(self, topic: str, log: Reversible[Entry], *, behind: int, kept: int) -> tuple[list[Entry], int]:
        """Take the oldest entries that fit into a message, and count those left for the next round.

        Args:
            topic: where the messages of dropped entries will be missing.
            log: the oldest entry first.
            behind: entries at its new end that are not published.
            kept: entries that may be; older ones are dropped.
        """
        if behind > kept:
            self.link.skip(topic, messages=-(-(behind - kept) // ROWS_PER_MESSAGE_MAX))
            behind = kept
        # Counted from the new end: to skip the tens of thousands before would cost more than to read these.
        entries = list(islice(reversed(log), max(0, behind - ROWS_PER_MESSAGE_MAX), behind))
        entries.reverse()
        left = behind - len(entries)
        if left:
            # There is a next round also if nothing changes until then.
            self._changed.set()
        return entries, left

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
                rows = await self._runner.in_parts(_share_rows(self._master))
                policy = self._master.settings.allocation.policy
                if (policy, rows) != published:
                    published = (policy, rows)
                    roles = orjson.Fragment(b"[" + b",".join(rows) + b"]")
                    fields = {"time_ms": self._runner.clock.now_ms(), "policy": policy, "roles": roles}
                    self.link.retain(self._topics.shares, fields)
                pause_s = max(pause_s, len(rows) / views.ROLES_PER_SECOND_MAX)
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


def _share_rows(master: Master) -> Parts[list[bytes]]:
    """Each role's share as JSON: written in parts too."""
    rows = []
    for info in (yield from views.roles(master)):
        rows.append(orjson.dumps(payloads.share(info)))
        yield
    return rows


def _changes(master: Master, changes: list[tuple[str | TaskKey, str]]) -> list[dict[str, Any]]:
    """Rows of changes, given as task and new state: one loop without calls, since every change of every task passes it."""
    frameworks, finished = master.frameworks, master.finished
    rows = []
    for key, state in changes:
        assert isinstance(key, tuple), "a task is noted by its key"
        framework_id, task_id = key
        framework = frameworks.get(framework_id)
        task = framework.tasks.get(task_id) if framework is not None else None
        if task is None:
            task = finished.get(key)
        # Of a task that has moved on since, the reason is the later state's.
        now = task if task is not None and task.state is _STATES[state] else None
        rows.append(
            {
                "framework_id": framework_id,
                "task_id": task_id,
                "state": state,
                "agent_id": task.agent_id if task is not None else None,
                "reason": now.reason.value if now is not None else None,
                "exit_code": now.exit_code if now is not None else None,
            }
        )
    return rows


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
