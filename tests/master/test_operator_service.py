"""Long answers to operators: others have turns between their parts, and what changes meanwhile is told as it is by then."""

import asyncio
from typing import Any

import pytest

from fairlead_master.core import events
from fairlead_master.core.actions import Action
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_master.operator_service import OperatorService
from fairlead_master.runner import PART_S_MAX, Runner
from fairlead_proto.clock import SteadyClock
from fairlead_proto.task_state import TaskState
from fairlead_proto.v1 import operator_pb2 as pb
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


CALLS = {
    "GetCluster": pb.GetClusterRequest(),
    "ListTasks": pb.ListTasksRequest(),
    "ListAgents": pb.ListRequest(),
    "ListFrameworks": pb.ListRequest(),
    "ListRoles": pb.ListRequest(),
    "ListOffers": pb.ListRequest(),
    "ListClasses": pb.ListRequest(),
    "Explain": pb.ExplainRequest(id="f1-101/large"),
}


@pytest.mark.parametrize("name", CALLS)
async def test_others_have_turns_while_a_long_answer_is_made(name: str) -> None:
    runner = Watched(busy())
    service = OperatorService(runner)

    answer, turns = await asked(runner, getattr(service, name)(CALLS[name], None))

    assert answer.ListFields()
    assert turns >= 100 // PART_ROWS
    assert runner.at_most <= PART_ROWS


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


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("after", [1, 12, 40])
async def test_an_answer_is_made_though_everything_it_tells_of_leaves_meanwhile(
    name: str, after: int
) -> None:
    cluster = busy()
    runner = Watched(cluster)
    answer = asyncio.ensure_future(getattr(OperatorService(runner), name)(CALLS[name], None))

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
