"""What operators ask of a real master over real gRPC."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from fairlead_master.server import MasterServer, ServerSettings
from fairlead_proto.v1 import framework_pb2, operator_pb2, operator_pb2_grpc, types_pb2
from tests.builders.peers import PATIENCE_S, RawAgent, RawFramework, a_master, resources
from tests.master.conftest import Dial

pytestmark = pytest.mark.shell


async def test_a_watcher_sees_changes_and_a_lagging_one_is_told_to_list_again(
    dial: Dial, operator: Any
) -> None:
    watch = operator.Watch(operator_pb2.WatchRequest(kinds=["agent"]))
    begun = await asyncio.wait_for(watch.read(), PATIENCE_S)
    registered = await dial(RawAgent).register()
    changes = await asyncio.wait_for(watch.read(), PATIENCE_S)
    watch.cancel()
    lost = operator.Watch(operator_pb2.WatchRequest(from_version=10**9))
    resync = await asyncio.wait_for(lost.read(), PATIENCE_S)
    lost.cancel()

    assert not begun.resync
    assert [(change.kind, change.id, change.what) for change in changes.changes] == [
        ("agent", registered.agent_id, "ACTIVE")
    ]
    assert resync.resync


async def test_listings_are_paged_in_order_and_complete(dial: Dial, operator: Any) -> None:
    ids = [(await dial(RawAgent).register(hostname=f"h{number}")).agent_id for number in range(5)]

    seen, token = [], ""
    while True:
        page = await operator.ListAgents(operator_pb2.ListRequest(page_size=2, page_token=token))
        seen += [agent.agent_id for agent in page.agents]
        token = page.next_page_token
        if not token:
            break

    assert seen == sorted(ids)
    with pytest.raises(grpc.aio.AioRpcError, match="page_size: expected 0 to 5000, got -1"):
        await operator.ListAgents(operator_pb2.ListRequest(page_size=-1))


async def test_tasks_of_a_framework_nobody_knows_are_no_empty_listing(dial: Dial, operator: Any) -> None:
    welcome = await dial(RawFramework).hello()

    known = await operator.ListTasks(operator_pb2.ListTasksRequest(framework_id=welcome.framework_id))

    assert not known.tasks
    with pytest.raises(
        grpc.aio.AioRpcError, match="expected a framework this master knows, got 'nope'"
    ) as told:
        await operator.ListTasks(operator_pb2.ListTasksRequest(framework_id="nope"))
    assert told.value.code() is grpc.StatusCode.NOT_FOUND


async def test_demand_classes_are_listed_with_what_waits_and_what_is_offered(
    dial: Dial, operator: Any
) -> None:
    agent, framework = dial(RawAgent), dial(RawFramework)
    await agent.register(total=resources(4, 8), attributes={"rack": "a"})
    welcome = await framework.hello()
    rack = types_pb2.Constraint(attribute="rack", operator="OPERATOR_EQUALS", values=["a"])
    wanted = [
        framework_pb2.DemandClass(class_id="a", unit=resources(3, 1), units=2, constraints=[rack]),
        framework_pb2.DemandClass(class_id="b", unit=resources(2, 1), units=5),
    ]
    await framework.call(set_demand=framework_pb2.SetDemand(version=1, classes=wanted))
    await framework.offer()

    first = await operator.ListClasses(operator_pb2.ListRequest(page_size=1))
    second = await operator.ListClasses(operator_pb2.ListRequest(page_token=first.next_page_token))

    assert first.next_page_token == f"{welcome.framework_id}/a"
    assert not second.next_page_token
    assert list(first.classes) == [
        operator_pb2.ClassInfo(
            framework_id=welcome.framework_id,
            class_id="a",
            unit=resources(3, 1),
            pending=1,
            offered=1,
            constraints=[rack],
        )
    ]
    assert list(second.classes) == [
        operator_pb2.ClassInfo(
            framework_id=welcome.framework_id, class_id="b", unit=resources(2, 1), pending=5
        )
    ]


async def test_policy_and_weights_change_at_run_time(operator: Any, dial: Dial) -> None:
    await dial(RawFramework).hello(role="eng")
    info = await operator.SetPolicy(operator_pb2.SetPolicyRequest(policy="slots:4", placement="pack"))
    await operator.SetWeight(
        operator_pb2.SetWeightRequest(role="eng", weight=2.5, resource_weights={"cpus": 3})
    )
    roles = await operator.ListRoles(operator_pb2.ListRequest())

    assert (info.policy, info.placement, info.when_head_does_not_fit) == ("slots:4", "pack", "skip")
    assert [(role.role, role.weight, dict(role.resource_weights)) for role in roles.roles] == [
        ("eng", 2.5, {"cpus": 3.0})
    ]
    with pytest.raises(grpc.aio.AioRpcError, match="drf"):
        await operator.SetPolicy(operator_pb2.SetPolicyRequest(policy="lottery"))
    with pytest.raises(grpc.aio.AioRpcError, match="weight: expected"):
        await operator.SetWeight(operator_pb2.SetWeightRequest(role="eng", weight=0))


async def test_log_says_what_an_operator_has_changed(operator: Any) -> None:
    with capture_logs() as logs:
        await operator.SetPolicy(operator_pb2.SetPolicyRequest(policy="fifo"))
        await operator.SetWeight(operator_pb2.SetWeightRequest(role="eng", weight=2))

    told = {entry["event"]: entry for entry in logs}
    assert told["policy.changed"]["policy"] == "fifo"
    assert (told["weight.changed"]["role"], told["weight.changed"]["weight"]) == ("eng", 2)


async def test_what_is_asked_for_at_the_start_wins_and_the_rest_is_remembered(tmp_path: Path) -> None:
    async with a_master(tmp_path) as first, grpc.aio.insecure_channel(f"127.0.0.1:{first.port}") as channel:
        stub = operator_pb2_grpc.OperatorServiceStub(channel)
        await stub.SetPolicy(operator_pb2.SetPolicyRequest(policy="slots:4", placement="pack"))

    settings = ServerSettings(listen="127.0.0.1:0", state_directory=tmp_path, given=frozenset({"policy"}))
    second = await MasterServer.start(settings)
    allocation = second.runner.machine.master.settings.allocation
    await second.stop(grace_s=0.1)

    assert (allocation.policy, allocation.placement) == ("drf", "pack")
