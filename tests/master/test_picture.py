"""A reader of rows has what the listings have, whatever happened and however seldom it reads."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead_master import picture as picture_module
from fairlead_master import views
from fairlead_master.allocation.parts import at_once
from fairlead_master.core import events
from fairlead_master.core import settings as bounds
from fairlead_master.picture import SWEEP_MS, Picture
from fairlead_proto.ids import FrameworkId
from fairlead_proto.task_state import TaskState
from fairlead_proto.v1 import operator_pb2, operator_pb2_grpc
from tests.builders.master import Cluster, a_class, a_status
from tests.builders.peers import PATIENCE_S, RawAgent, RawFramework, a_master


class Reader:
    """Keeps the picture that messages tell, as the schema says."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.picture = Picture(cluster.master)
        self.rows: dict[tuple[str, str], Any] = {}
        self.roles = operator_pb2.ListRolesResponse()
        self.messages: list[operator_pb2.Changes] = []

    def read(self) -> None:
        """Take one message."""
        message = at_once(self.picture.take(self.cluster.now_ms))
        if message is None:
            return
        self.messages.append(message)
        if message.resync:
            self.rows = {}
        self.rows.update({("agent", row.agent_id): row for row in message.agents})
        self.rows.update({("framework", row.framework_id): row for row in message.frameworks})
        self.rows.update({("task", f"{row.framework_id}/{row.task_id}"): row for row in message.tasks})
        for change in message.changes:
            assert change.what == "removed"
            del self.rows[change.kind, change.id]
        if message.HasField("roles"):
            self.roles = message.roles

    def catch_up(self) -> None:
        """Read until the picture is whole, figures of the last second included."""
        self.cluster.now_ms += SWEEP_MS
        self.read()
        while not self.picture.is_whole:
            self.read()


def listed(cluster: Cluster) -> dict[tuple[str, str], Any]:
    """What the listings say of agents, frameworks and tasks."""
    master = cluster.master
    tasks = [task for framework in master.frameworks.values() for task in framework.tasks.values()]
    frameworks = [*master.frameworks.values(), *master.completed_frameworks.values()]
    return {
        **{("agent", agent.agent_id): views.agent_info(master, agent) for agent in master.agents.values()},
        **{("framework", found.framework_id): views.framework_info(master, found) for found in frameworks},
        **{
            ("task", f"{task.framework_id}/{task.task_id}"): views.task_info(master, task)
            for task in [*tasks, *master.finished.values()]
        },
    }


def a_busy_cluster() -> tuple[Cluster, int, int]:
    cluster = Cluster()
    agent = cluster.new_agent(cpus=8)
    framework, _ = cluster.new_framework()
    return cluster, agent, framework


def some_work(cluster: Cluster, agent: int, framework: int, number: int) -> None:
    """Launch a task, and run it or end it."""
    cluster.launch(framework, f"t{number}")
    state = TaskState.FINISHED if number % 3 else TaskState.RUNNING
    cluster.report(agent, a_status("f1-1", f"t{number}", state))


MOVES = ["work", "end", "offer", "decline", "catch up", "read", "beat", "agent", "framework", "wait"]


@settings(deadline=None)
@given(moves=st.lists(st.sampled_from(MOVES), max_size=25))
@example(moves=["offer", "catch up", "decline"])
@example(moves=["work", "work", "work", "catch up", "end"])
def test_a_picture_that_is_whole_is_what_the_listings_say(moves: list[str]) -> None:
    cluster, agent, framework = a_busy_cluster()
    reader = Reader(cluster)
    reader.catch_up()
    number = 0
    for move in moves:
        match move:
            case "work" if number < 20 and not cluster.master.offers:
                number += 1
                some_work(cluster, agent, framework, number)
            case "end":
                tasks = list(cluster.master.frameworks[FrameworkId("f1-1")].tasks)
                cluster.report(agent, *(a_status("f1-1", task, TaskState.FINISHED, 2) for task in tasks))
            case "offer" if number < 20:
                cluster.demand(framework, a_class(units=1))
                cluster.offers()
            case "decline":
                for offer_id in list(cluster.master.offers):
                    cluster.decline(framework, offer_id)
            case "catch up":
                reader.catch_up()
            case "read":
                reader.read()
            case "beat":
                cluster.step(events.AgentBeat(session=agent, used=(number, number, 0, 0), tasks=()))
            case "agent":
                cluster.new_agent()
            case "framework":
                cluster.new_framework()
            case _:
                cluster.now_ms += 700

    reader.catch_up()

    assert reader.rows == listed(cluster)
    assert list(reader.roles.roles) == at_once(views.roles(cluster.master))
    assert reader.messages[-1].rows_due == 0
    assert [message.resync for message in reader.messages].count(True) == 1


def test_only_what_changed_is_sent_again_once_however_often_it_changed() -> None:
    cluster, agent, framework = a_busy_cluster()
    reader = Reader(cluster)
    reader.catch_up()
    before = len(reader.messages)
    for number in range(3):
        cluster.launch(framework, f"t{number}")
    cluster.report(agent, *(a_status("f1-1", f"t{number}") for number in range(3)))
    cluster.report(agent, a_status("f1-1", "t1", TaskState.FINISHED, sequence=2))

    reader.read()

    (message,) = reader.messages[before:]
    assert {row.task_id: row.state for row in message.tasks} == {
        "t0": "RUNNING",
        "t1": "FINISHED",
        "t2": "RUNNING",
    }
    assert not message.agents, "their figures come with the next sweep"


def test_a_message_has_few_rows_and_says_how_many_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_module, "TASKS_MAX", 2)
    monkeypatch.setattr(picture_module, "PEERS_MAX", 3)
    cluster, agent, framework = a_busy_cluster()
    for number in range(1, 6):
        some_work(cluster, agent, framework, 3 * number)
    for _ in range(4):
        cluster.new_agent()
    reader = Reader(cluster)

    reader.catch_up()

    rows = [(len(message.agents), len(message.tasks), message.rows_due) for message in reader.messages]
    assert rows == [(0, 0, 11), (3, 2, 5), (2, 2, 1), (0, 1, 0)]


def test_a_reader_behind_all_kept_changes_begins_its_picture_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, agent, framework = a_busy_cluster()
    reader = Reader(cluster)
    reader.catch_up()
    some_work(cluster, agent, framework, 3)
    for number in range(bounds.CHANGES_KEPT):
        cluster.master.note("role", f"r{number}", "changed")

    reader.catch_up()

    assert [message.resync for message in reader.messages].count(True) == 2
    assert reader.rows == listed(cluster)


def test_what_is_gone_is_removed_from_the_picture() -> None:
    cluster, agent, _ = a_busy_cluster()
    reader = Reader(cluster)
    reader.catch_up()
    cluster.step(events.AgentDisconnected(session=agent, reason="test"))
    for _ in range(2):
        cluster.now_ms += cluster.master.settings.agent_forget_ms
        cluster.step(events.Ticked())
    assert not cluster.master.agents

    reader.catch_up()

    assert [change.kind for change in reader.messages[-1].changes] == ["agent"]
    assert ("agent", "a1-1") not in reader.rows


@pytest.mark.shell
async def test_rows_come_by_one_stream_that_begins_with_all_of_them() -> None:
    async with a_master() as master, grpc.aio.insecure_channel(f"127.0.0.1:{master.port}") as channel:
        agent, framework = RawAgent(master.port), RawFramework(master.port)
        registered, welcome = await agent.register(), await framework.hello()
        await framework.want()
        await framework.accept(await framework.offer(), "t1")
        operator: Any = operator_pb2_grpc.OperatorServiceStub(channel)
        watch = operator.Watch(operator_pb2.WatchRequest(rows=True))

        async def until(holds: Callable[[operator_pb2.Changes], bool]) -> operator_pb2.Changes:
            async with asyncio.timeout(PATIENCE_S):
                while not holds(message := await watch.read()):
                    assert not message.resync
            found: operator_pb2.Changes = message
            return found

        begun, first = await watch.read(), await watch.read()
        await agent.report(welcome.framework_id, "t1", 1, "RUNNING")
        running = await until(lambda message: bool(message.tasks))
        swept = await until(lambda message: bool(message.agents))
        watch.cancel()
        await agent.close()
        await framework.close()

    assert (begun.resync, begun.rows_due) == (True, 3)
    assert (first.resync, first.rows_due) == (False, 0)
    assert [row.agent_id for row in first.agents] == [registered.agent_id]
    assert [row.framework_id for row in first.frameworks] == [welcome.framework_id]
    assert [(row.task_id, row.state) for row in first.tasks] == [("t1", "STAGING")]
    assert first.roles.policy == "drf"
    assert [(row.task_id, row.state) for row in running.tasks] == [("t1", "RUNNING")]
    assert swept.agents[0].tasks == 1
