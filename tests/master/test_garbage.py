"""What comes and goes leaves nothing to Python's collector, which looks over everything only once memory has doubled."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from fairlead_master.core import events
from fairlead_master.core.actions import Action
from fairlead_master.garbage import GROWTH_BYTES_MIN, Garbage
from fairlead_proto.task_state import TaskState
from fairlead_proto.v1 import operator_pb2, operator_pb2_grpc
from tests.builders.master import Cluster, a_class, a_status, resources
from tests.builders.peers import RawAgent, RawFramework, a_master, until

POLICIES = (
    "drf",
    "asset",
    "max-min",
    "max-min:cpus",
    "slots:4",
    "fifo",
    "bbf",
    "bbf:60,95%",
    "baa",
    "baa:tasks",
    "utilization",
)
"""Those with prices (pf and its kin) are made anew to tell exact keys, and each time leave a circle of the old ones."""


class Unchecked(Cluster):
    """Checks make garbage of their own."""

    def step(self, event: events.Event) -> list[Action]:
        return self.machine.step(event, self.now_ms)


@contextmanager
def left_to_the_collector() -> Iterator[list[Any]]:
    """What is made within and left in circles, at the end of the block."""
    gc.collect()
    gc.disable()
    found: list[Any] = []
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def come_and_go(cluster: Cluster) -> None:
    """An agent and three frameworks, two of one role, with tasks that end well, badly and with their framework."""
    agent = cluster.new_agent(cpus=8)
    sessions = [cluster.new_framework(role=role, failover_timeout_ms=5_000) for role in ("a", "a", "b/c")]
    for number, (session, framework_id) in enumerate(sessions):
        cluster.launch(session, "t1", "t2", unit=resources(cpus=1, gib=1))
        agent_id = next(reversed(cluster.master.agents))
        for name, state in (("t1", TaskState.FINISHED), ("t2", TaskState.FAILED))[: 2 - number]:
            cluster.report(agent, a_status(framework_id, name, state, agent_id=agent_id))
        cluster.reconcile(session)
    for session, _ in sessions:
        cluster.demand(session, a_class(units=3), a_class("large", unit=resources(cpus=7, gib=1), units=2))
    for offer in cluster.offers()[:1]:
        for session, _ in sessions:
            cluster.decline(session, offer.offer_id)
    cluster.wait(6_000)  # Leases end.
    cluster.framework_leaves(sessions[0][0])
    for session, _ in sessions[1:]:
        cluster.teardown(session)
    cluster.agent_leaves(agent)
    cluster.wait(60_000)


@pytest.mark.parametrize("policy", POLICIES)
def test_who_comes_and_goes_beside_others_leaves_no_garbage(policy: str) -> None:
    cluster = Unchecked(policy=policy, agent_timeout_ms=10_000, agent_forget_ms=10_000)
    for role in ("a", "a", "b", "b", "b/c", "b/c", "b/d"):
        cluster.new_framework(role=role)
    come_and_go(cluster)

    with left_to_the_collector() as garbage:
        for _ in range(3):
            come_and_go(cluster)

    assert not cluster.master.agents
    assert len(cluster.master.frameworks) == 7
    assert garbage == []


async def test_sessions_and_calls_leave_no_garbage_of_ours() -> None:
    async with a_master() as master, grpc.aio.insecure_channel(f"127.0.0.1:{master.port}") as channel:
        operator: Any = operator_pb2_grpc.OperatorServiceStub(channel)
        sessions = master.runner.machine.master

        async def session() -> None:
            agent, framework = RawAgent(master.port), RawFramework(master.port)
            await agent.register()
            await framework.hello()
            await framework.want()
            await framework.accept(await framework.offer(), "t")
            watch = operator.Watch(operator_pb2.WatchRequest(rows=True))
            await watch.read()
            watch.cancel()
            await operator.ListRoles(operator_pb2.ListRequest())
            await framework.close()
            await agent.close()
            await until(lambda: not sessions.agent_by_session and len(sessions.framework_by_session) < 2)

        standing = RawFramework(master.port)
        await standing.hello()
        await session()
        with left_to_the_collector() as garbage:
            for _ in range(3):
                await session()
        await standing.close()

    # Of grpc's own there is some, for each call.
    assert [each for each in garbage if type(each).__module__.startswith("fairlead_master")] == []


def test_everything_is_looked_over_once_memory_has_doubled() -> None:
    memory = 10 * GROWTH_BYTES_MIN
    looks = 0

    def collect() -> int:
        nonlocal looks, memory
        looks += 1
        memory = 8 * GROWTH_BYTES_MIN
        return 5

    garbage = Garbage(lambda: memory, collect)
    for now, looks_then in ((19, 0), (20, 0), (21, 1), (16, 1), (17, 2)):
        memory = now * GROWTH_BYTES_MIN
        garbage.look()

        assert looks == looks_then


def test_a_small_master_is_not_looked_over_all_the_time() -> None:
    memory, looks = 1, 0

    def collect() -> int:
        nonlocal looks
        looks += 1
        return 0

    garbage = Garbage(lambda: memory, collect)
    for memory in range(1, 10 * GROWTH_BYTES_MIN, GROWTH_BYTES_MIN // 8):  # noqa: B007 - read by the lambda
        garbage.look()

    assert looks == 4
