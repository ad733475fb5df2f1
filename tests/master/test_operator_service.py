"""Long answers, to operators as to watchers, scrapes and the broker: others have turns between their parts, and what changes
meanwhile is told as it is by then."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
import pytest

from fairlead_master.allocation.parts import at_once
from fairlead_master.core import events
from fairlead_master.core.actions import Action
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_master.metrics import MasterMetrics
from fairlead_master.operator_service import OperatorService
from fairlead_master.picture import SWEEP_MS, Picture
from fairlead_master.runner import PART_S_MAX, Runner
from fairlead_master.telemetry import MasterTelemetry
from fairlead_proto.clock import SteadyClock
from fairlead_proto.task_state import TaskState
from fairlead_proto.v1 import operator_pb2 as pb
from fairlead_telemetry import payloads
from fairlead_telemetry.broker import BrokerOptions
from tests.builders.master import Cluster, a_class, a_status, resources

TINY = resources(cpus=0.001)
PART_ROWS = 10
"""Steps of a part in these tests."""


class Unchecked(Cluster):
    """Its books are others' affair."""

    def step(self, event: events.Event) -> list[Action]:
        return self.machine.step(event, self.now_ms)


class Watched(Runner):
    """A runner by whose clock each step of a reading takes a tenth of a part, with a note of how many there were between turns."""

    def __init__(self, cluster: Cluster) -> None:
        clock = SteadyClock()
        super().__init__(
            Machine(cluster.machine.master.kinds, CoreSettings(), Remembered(epoch=1), 0), None, clock
        )
        self.machine = cluster.machine
        self.steps = 0
        self.at_most = 0
        self._now_s = 0.0

    async def in_parts(self, parts: Any, now_s: Any = None) -> Any:
        return await super().in_parts(self._counted(parts), now_s or self._tick)

    def _tick(self) -> float:
        self._now_s += PART_S_MAX / PART_ROWS
        return self._now_s

    def _counted(self, parts: Any) -> Any:
        while True:
            try:
                next(parts)
            except StopIteration as end:
                return end.value
            self.steps += 1
            self.at_most = max(self.at_most, self.steps)
            yield


async def asked(runner: Watched, call: Any) -> tuple[Any, int]:
    """The answer, and how many turns others had until it came."""
    answer = asyncio.ensure_future(call)
    turns = 0
    while not answer.done():
        runner.steps = 0
        await asyncio.sleep(0)
        turns += 1
    return await answer, turns


def busy() -> Cluster:
    """A hundred agents, tasks, roles, offers and classes."""
    cluster = Unchecked(agent_timeout_ms=10_000, agent_forget_ms=10_000)
    for _ in range(100):
        cluster.new_agent(cpus=4)
    session, _ = cluster.new_framework()
    cluster.launch(session, *[f"t{number}" for number in range(100)], unit=TINY)
    for number in range(100):
        session, _ = cluster.new_framework(role=f"r{number}")
        cluster.demand(
            session, a_class(unit=TINY, units=3), a_class("large", unit=resources(cpus=4), units=3)
        )
    cluster.wait(1_000)
    return cluster


Answer = Callable[[Runner], Coroutine[Any, Any, Any]]


def call(name: str, request: Any) -> Answer:
    return lambda runner: getattr(OperatorService(runner), name)(request, None)


async def watched_roles(runner: Runner) -> Any:
    """What a watcher of rows is sent of roles once it has everything, and something changes."""
    master, now_ms = runner.machine.master, runner.clock.now_ms()
    picture = Picture(master)
    at_once(picture.take(now_ms))
    while not picture.is_whole:
        at_once(picture.take(now_ms))
        now_ms += SWEEP_MS
    master.note("role", "r1", "changed")
    message = await runner.in_parts(picture.take(now_ms + SWEEP_MS))
    assert message is not None
    return message.roles


async def begun_picture(runner: Runner) -> Any:
    return await runner.in_parts(Picture(runner.machine.master).take(runner.clock.now_ms()))


async def scrape(runner: Runner) -> Any:
    metrics = MasterMetrics("127.0.0.1:0", runner, {}, {}, None)
    try:
        return await metrics._collect()
    finally:
        metrics.close()


async def shares_for_the_broker(runner: Runner) -> Any:
    telemetry = MasterTelemetry(runner, BrokerOptions(host="127.0.0.1", port=1), "127.0.0.1:5050")
    retained = asyncio.get_running_loop().create_future()
    telemetry.link.retain = lambda _, fields: retained.set_result(fields)  # type: ignore[method-assign, assignment]
    following = asyncio.create_task(telemetry._follow_shares())
    try:
        return await retained
    finally:
        following.cancel()


ANSWERS: dict[str, Answer] = {
    "GetCluster": call("GetCluster", pb.GetClusterRequest()),
    "ListTasks": call("ListTasks", pb.ListTasksRequest()),
    "ListAgents": call("ListAgents", pb.ListRequest()),
    "ListFrameworks": call("ListFrameworks", pb.ListRequest()),
    "ListRoles": call("ListRoles", pb.ListRequest()),
    "ListOffers": call("ListOffers", pb.ListRequest()),
    "ListClasses": call("ListClasses", pb.ListRequest()),
    "Explain": call("Explain", pb.ExplainRequest(id="f1-101/large")),
    "a watcher's picture": begun_picture,
    "the roles of a watcher": watched_roles,
    "a scrape": scrape,
    "the broker's shares": shares_for_the_broker,
}


SUMMED = {"ListRoles", "the roles of a watcher", "the broker's shares"}
"""For which rows of frameworks, accounts and roles are gone over, one after the other."""


@pytest.mark.parametrize("name", ANSWERS)
async def test_others_have_turns_while_a_long_answer_is_made(name: str) -> None:
    runner = Watched(busy())

    answer, turns = await asked(runner, ANSWERS[name](runner))

    assert answer
    assert turns >= (4 if name in SUMMED else 1) * 100 // PART_ROWS
    assert runner.at_most <= PART_ROWS


async def test_the_broker_is_told_of_roles_in_the_bytes_of_rows_written_at_once() -> None:
    cluster = busy()
    runner = Watched(cluster)

    fields = await shares_for_the_broker(runner)

    infos = (await OperatorService(runner).ListRoles(pb.ListRequest(), None)).roles
    by_role = {info.role: payloads.share(info) for info in infos}
    rows = [by_role[role] for role in [row["role"] for row in orjson.loads(orjson.dumps(fields))["roles"]]]
    assert len(rows) == len(infos) == 101
    assert orjson.dumps(fields) == orjson.dumps({**fields, "roles": rows})


async def test_two_long_answers_share_the_turns_that_one_would_have() -> None:
    runner = Watched(busy())
    service = OperatorService(runner)

    both = asyncio.gather(*[service.ListAgents(pb.ListRequest(), None) for _ in range(2)])
    answers, _ = await asked(runner, both)

    assert [len(answer.agents) for answer in answers] == [100, 100]
    assert runner.at_most <= PART_ROWS


@pytest.mark.parametrize("turns", [1, 16])  # While rows are chosen, and while they are made.
async def test_what_changes_while_a_listing_is_made_is_told_as_it_is_by_then(turns: int) -> None:
    cluster = busy()
    runner = Watched(cluster)
    (framework_id,) = [each for each, framework in cluster.master.frameworks.items() if framework.tasks]
    ended = list(cluster.master.frameworks[framework_id].tasks.values())[-1]
    before = cluster.master.version

    listing = asyncio.ensure_future(
        OperatorService(runner).ListTasks(pb.ListTasksRequest(states=["STAGING"]), None)
    )
    for _ in range(turns):
        await asyncio.sleep(0)
    agent = cluster.master.agents[ended.agent_id]
    assert agent.session is not None
    cluster.report(
        agent.session,
        a_status(framework_id, ended.task_id, TaskState.FINISHED, agent_id=ended.agent_id),
    )
    answer = await listing

    assert len(answer.tasks) == 99
    assert ended.task_id not in {row.task_id for row in answer.tasks}
    assert answer.version == before, "a watcher from there is told of the end"


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("after", [1, 12, 40])
async def test_an_answer_is_made_though_everything_it_tells_of_leaves_meanwhile(
    name: str, after: int
) -> None:
    cluster = busy()
    runner = Watched(cluster)
    answer = asyncio.ensure_future(ANSWERS[name](runner))

    for _ in range(after):
        await asyncio.sleep(0)
    for framework_id in list(cluster.master.frameworks):
        cluster.step(events.OperatorTeardownAsked(request=1, framework_id=framework_id))
    for agent in list(cluster.master.agents.values()):
        assert agent.session is not None
        cluster.agent_leaves(agent.session)
    cluster.wait(30_000)
    assert not cluster.master.agents
    await answer


@pytest.mark.parametrize(("framework_id", "most"), [("f1-1", 500), ("", 1)])
async def test_tasks_are_killed_so_many_a_step_and_each_has_its_outcome(framework_id: str, most: int) -> None:
    cluster = busy()
    runner = Watched(cluster)
    steps: list[int] = []
    step = cluster.machine.step

    def counted(event: events.Event, now_ms: int) -> list[Action]:
        if isinstance(event, events.OperatorKillAsked):
            steps.append(len(event.task_ids))
        return step(event, now_ms)

    runner._turn.step = counted
    asked_for = [f"t{number}" for number in range(1_000)]
    request = pb.KillTasksRequest(task_ids=asked_for, framework_id=framework_id)

    answer = await OperatorService(runner).KillTasks(request, None)

    assert [item.task_id for item in answer.items] == asked_for
    assert [item.outcome for item in answer.items] == ["killing"] * 100 + ["unknown"] * 900
    assert steps == [most] * (1_000 // most)
