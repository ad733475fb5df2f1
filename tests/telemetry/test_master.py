"""What the master publishes of changes and decisions, and how much of it in a second; nothing is connected."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from fairlead_master import telemetry as module
from fairlead_master.allocation.api import Grant
from fairlead_master.runner import Runner
from fairlead_master.telemetry import MasterTelemetry
from fairlead_proto.clock import SteadyClock
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role, TaskId
from fairlead_proto.task_state import Reason, TaskState
from fairlead_telemetry.broker import BrokerOptions
from tests.builders.master import UNIT, Cluster, a_status

ROOT = "fairlead/v1/default"


class Published(MasterTelemetry):
    """Telemetry of a cluster, whose messages are kept in place of being sent."""

    def __init__(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        options = BrokerOptions(host="127.0.0.1", port=1)
        super().__init__(Runner(cluster.machine, None, SteadyClock()), options, "127.0.0.1:5050")
        self.messages: list[tuple[str, dict[str, Any]]] = []
        monkeypatch.setattr(
            self.link, "publish", lambda topic, fields, qos: self.messages.append((topic, fields))
        )

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [row for _, fields in self.messages for row in fields.get(name, ())]


async def test_a_change_has_its_reason_and_exit_code_while_it_is_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    agent, (session, framework_id) = cluster.new_agent(), cluster.new_framework()
    cluster.demand(session)
    published = Published(cluster, monkeypatch)
    cluster.launch(session, "t1")
    cluster.report(
        agent, a_status(framework_id, "t1", TaskState.FAILED, sequence=1, reason=Reason.EXITED, exit_code=3)
    )

    published._publish_changes()

    first, last = published.rows("changes")
    names = {"framework_id": framework_id, "task_id": "t1", "agent_id": first["agent_id"]}
    assert first == {**names, "state": "STAGING", "reason": None, "exit_code": None}
    assert last == {**names, "state": "FAILED", "reason": "EXITED", "exit_code": 3}
    assert first["agent_id"]


async def test_a_change_of_a_task_that_is_forgotten_has_all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    published = Published(cluster, monkeypatch)
    cluster.machine.master.note("task", (FrameworkId("f1"), TaskId("t1")), "FINISHED")

    published._publish_changes()

    assert published.rows("changes") == [
        {
            "framework_id": "f1",
            "task_id": "t1",
            "state": "FINISHED",
            "agent_id": None,
            "reason": None,
            "exit_code": None,
        }
    ]


def note(cluster: Cluster, first: int, count: int) -> None:
    for number in range(first, first + count):
        cluster.machine.master.note("task", (FrameworkId("f1"), TaskId(f"t{number}")), "RUNNING")


async def test_what_exceeds_a_message_comes_with_the_next_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    published = Published(cluster, monkeypatch)
    count = module.ROWS_PER_MESSAGE_MAX + 20
    note(cluster, 0, count)

    assert published._publish_changes() == module.ROWS_PER_MESSAGE_MAX
    note(cluster, count, 5)
    assert published._publish_changes() == 25
    assert published._publish_changes() == 0

    assert [row["task_id"] for row in published.rows("changes")] == [f"t{n}" for n in range(count + 5)]
    assert published.link.counters.dropped == 0


async def test_what_stays_behind_the_bound_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    published = Published(cluster, monkeypatch)
    monkeypatch.setattr(module, "BEHIND_MAX", 1_000)
    note(cluster, 0, 1_000 + 2 * module.ROWS_PER_MESSAGE_MAX)

    published._publish_changes()

    assert published.rows("changes")[0]["task_id"] == f"t{2 * module.ROWS_PER_MESSAGE_MAX}"
    assert published.link.counters.dropped == 2


async def test_decisions_come_in_the_order_of_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    published = Published(cluster, monkeypatch)
    grant = Grant(FrameworkId("f1"), Role("r"), AgentId("a1"), ClassId("c"), UNIT, 1, 0.0, 0.5)
    log = cluster.machine.master.allocator.decisions
    log.add([grant] * 700, 1, "drf")

    assert published._publish_decisions() == module.ROWS_PER_MESSAGE_MAX
    log.add([grant] * 300, 2, "drf")
    while published._publish_decisions():
        pass

    assert [row["number"] for row in published.rows("decisions")] == list(range(1, 1_001))
    assert published.link.counters.dropped == 0


async def test_no_more_rows_a_second_than_the_bound_and_all_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    published = Published(cluster, monkeypatch)
    pauses: list[float] = []
    turn = asyncio.sleep

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await turn(0)

    note(cluster, 0, 4 * module.ROWS_PER_MESSAGE_MAX)
    monkeypatch.setattr(asyncio, "sleep", pause)
    published._changed.set()
    following = asyncio.create_task(published._follow())
    for _ in range(100):
        await turn(0)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)

    assert len(published.rows("changes")) == 4 * module.ROWS_PER_MESSAGE_MAX
    full = module.ROWS_PER_MESSAGE_MAX / module.ROWS_PER_SECOND_MAX
    assert pauses == [module.GATHER_S, full, full, full]


async def test_a_part_that_fails_is_told_and_one_that_is_cancelled_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def break_down() -> None:
        raise RuntimeError("a bug")

    broken = asyncio.create_task(break_down(), name="telemetry-shares")
    ended = asyncio.create_task(asyncio.sleep(60), name="telemetry-changes")
    ended.cancel()
    await asyncio.gather(broken, ended, return_exceptions=True)

    with capture_logs() as logs:
        module._tell_failure(broken)
        module._tell_failure(ended)

    assert [(entry["event"], entry["part"], entry["error"]) for entry in logs] == [
        ("telemetry.failed", "telemetry-shares", "RuntimeError('a bug')")
    ]
