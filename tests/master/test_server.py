"""A real master over real gRPC on loopback: what the core's tests cannot see."""

import asyncio
import resource
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from fairlead_master import sessions
from fairlead_master.recording import RecordingError, play
from fairlead_master.server import ListenError, MasterServer, ServerSettings
from fairlead_proto.framework_events import SendOffers
from fairlead_proto.v1 import (
    agent_pb2,
    files_pb2,
    files_pb2_grpc,
    framework_pb2,
    operator_pb2,
    operator_pb2_grpc,
    types_pb2,
)
from tests.builders.peers import PATIENCE_S, RawAgent, RawFramework, a_master, resources, until
from tests.master.conftest import Dial

pytestmark = pytest.mark.shell


async def test_a_task_goes_from_demand_to_its_acknowledged_end(dial: Dial, operator: Any) -> None:
    agent, framework = dial(RawAgent), dial(RawFramework)
    registered = await agent.register()
    welcome = await framework.hello(role="eng/ml")
    result = await framework.want(2)
    offer = await framework.offer()
    accepted = await framework.accept(offer, "t1", "t2")
    launch = await agent.expect("launch")
    await agent.report(welcome.framework_id, "t1", 1, "RUNNING")
    running = await framework.expect("statuses")
    await agent.report(welcome.framework_id, "t1", 2, "FINISHED")
    finished = await framework.expect("statuses")
    item = framework_pb2.Acknowledge.Item(task_id="t1", sequence=2, agent_id=registered.agent_id)
    await framework.call(acknowledge=framework_pb2.Acknowledge(items=[item]))
    acknowledged = await agent.expect("acknowledge")
    tasks = await operator.ListTasks(operator_pb2.ListTasksRequest())

    assert result.code == framework_pb2.CALL_CODE_OK
    assert (offer.units, offer.agent_id, offer.hostname) == (2, registered.agent_id, "h1")
    assert [item.launched for item in accepted.items] == [True, True]
    assert [task.task.task_id for task in launch.tasks] == ["t1", "t2"]
    assert running.statuses[0].state == types_pb2.TASK_STATE_RUNNING
    assert finished.statuses[0].state == types_pb2.TASK_STATE_FINISHED
    assert [(item.task_id, item.sequence) for item in acknowledged.items] == [("t1", 2)]
    assert {task.task_id: task.state for task in tasks.tasks} == {"t1": "FINISHED", "t2": "STAGING"}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"set_demand": framework_pb2.SetDemand(version=1)}, "expected hello"),
        ({"hello": framework_pb2.Hello(role="Not A Role")}, "hello.role"),
        ({"hello": framework_pb2.Hello(weight=float("nan"))}, "hello.weight"),
    ],
)
async def test_a_session_that_does_not_begin_with_a_good_hello_is_ended(
    dial: Dial, call: Any, expected: str
) -> None:
    framework = dial(RawFramework)

    await framework.call(**call)
    error = await framework.expect("error")

    assert error.code == framework_pb2.ERROR_CODE_INVALID
    assert expected in error.detail


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (types_pb2.Resources(), "classes[0].unit: expected at least one resource above zero"),
        (types_pb2.Resources(cpus_milli=-1), "classes[0].unit.cpus: expected 0 to"),
        (types_pb2.Resources(mem_bytes=2**53 + 1), "classes[0].unit.mem: expected 0 to"),
        (types_pb2.Resources(cpus_milli=1, custom_milli={"unobtainium": 1}), "a resource this cluster knows"),
    ],
    ids=["zero", "negative", "beyond 2^53", "unknown"],
)
async def test_a_demand_that_cannot_be_is_answered_and_the_session_goes_on(
    dial: Dial, unit: Any, expected: str
) -> None:
    framework = dial(RawFramework)
    await framework.hello()

    refused = await framework.want(unit=unit)
    accepted = await framework.want(unit=resources())

    assert (refused.code, accepted.code) == (framework_pb2.CALL_CODE_INVALID, framework_pb2.CALL_CODE_OK)
    assert expected in refused.detail


async def test_a_demand_no_agent_can_hold_is_refused_with_what_is_missing(dial: Dial) -> None:
    agent, framework = dial(RawAgent), dial(RawFramework)
    registered = await agent.register(total=resources(4, 8))
    await framework.hello()

    refused = await framework.want(unit=resources(6, 1))

    assert refused.code == framework_pb2.CALL_CODE_INFEASIBLE
    assert refused.infeasible[0].best_agent_id == registered.agent_id
    assert refused.infeasible[0].missing == types_pb2.Resources(cpus_milli=2000)


async def test_demand_waits_while_no_agent_is_registered(dial: Dial) -> None:
    framework = dial(RawFramework)
    await framework.hello()
    result = await framework.want(unit=resources(6, 1))

    await dial(RawAgent).register(total=resources(8, 8))
    offer = await framework.offer()

    assert result.code == framework_pb2.CALL_CODE_OK
    assert offer.units == 1


async def test_an_invalid_task_does_not_stop_its_neighbours(dial: Dial) -> None:
    agent, framework = dial(RawAgent), dial(RawFramework)
    await agent.register()
    await framework.hello()
    await framework.want(2)
    offer = await framework.offer()
    good = types_pb2.TaskSpec(task_id="good", resources=offer.unit, command=["true"])
    bad = types_pb2.TaskSpec(task_id="bad/..", resources=offer.unit, command=["true"])

    await framework.call(accept=framework_pb2.Accept(offer_id=offer.offer_id, tasks=[bad, good]))
    result = await framework.expect("accept_result")

    assert [(item.task_id, item.launched) for item in result.items] == [("bad/..", False), ("good", True)]
    assert result.items[0].rejection == framework_pb2.REJECTION_INVALID
    assert "task_id" in result.items[0].detail


async def test_a_framework_that_does_not_read_is_cut_off(
    dial: Dial, master: MasterServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "QUEUE_BYTES_MAX", 4 * 1024 * 1024)
    slow = dial(RawFramework)
    welcome = await slow.hello()
    state = master.runner.machine.master

    async def ask_without_reading() -> None:
        # Each unknown task of a reconciliation is answered by about 100 bytes, far more than any flow-control window.
        task_ids = [f"t{number}" for number in range(5_000)]
        while True:
            await slow.call(reconcile=framework_pb2.Reconcile(task_ids=task_ids))

    asking = asyncio.ensure_future(ask_without_reading())
    await until(lambda: state.frameworks[welcome.framework_id].session is None)
    quick = await dial(RawFramework).hello()
    asking.cancel()

    assert quick.framework_id != welcome.framework_id


async def test_an_oversized_message_ends_only_its_session(dial: Dial) -> None:
    framework, other = dial(RawFramework), dial(RawFramework)
    await framework.hello()
    await other.hello()

    await framework.call(reconcile=framework_pb2.Reconcile(task_ids=["x" * (17 * 1024 * 1024)]))
    with pytest.raises((grpc.aio.AioRpcError, EOFError)):
        await framework.expect("result")

    assert (await other.want()).code == framework_pb2.CALL_CODE_OK


async def test_truncated_bytes_end_only_their_session(dial: Dial, master: MasterServer) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{master.port}") as channel:
        call: Any = channel.stream_stream("/fairlead.v1.FrameworkService/Connect")()
        await call.write(b"\x0a\xff\xff\xff")
        answer = framework_pb2.FrameworkEvents.FromString(await asyncio.wait_for(call.read(), PATIENCE_S))
        end = await asyncio.wait_for(call.read(), PATIENCE_S)

    assert answer.events[0].error.code == framework_pb2.ERROR_CODE_INVALID
    assert end is grpc.aio.EOF
    assert (await dial(RawFramework).hello()).framework_id


async def test_an_agent_whose_message_is_wrong_is_told_which_field(dial: Dial) -> None:
    agent = dial(RawAgent)

    await agent.send(register=agent_pb2.Register(hostname="h", total=types_pb2.Resources(cpus_milli=-5)))
    refused = await agent.expect("refused")

    assert refused.code == agent_pb2.REFUSAL_CODE_INVALID
    assert "register.total.cpus" in refused.detail


async def test_a_file_is_read_through_the_agent_that_has_it(dial: Dial, master: MasterServer) -> None:
    agent, framework = dial(RawAgent), dial(RawFramework)
    await agent.register()
    await framework.hello()
    await framework.want()
    await framework.accept(await framework.offer(), "t1")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{master.port}") as channel:
        files = files_pb2_grpc.FilesServiceStub(channel)

        reading = asyncio.ensure_future(
            files.Read(files_pb2.ReadRequest(task_id="t1", path="stdout", offset=3))
        )
        question = await agent.expect("file_request")
        chunk = agent_pb2.FileChunk(
            request_id=question.request_id, code="FILE_CODE_OK", offset=3, data=b"lo", size=5
        )
        await agent.send(file_chunk=chunk)
        answer = await reading

        with pytest.raises(grpc.aio.AioRpcError, match="expected a task that was launched"):
            await files.Read(files_pb2.ReadRequest(task_id="nobody", path="stdout"))
        await agent.close()
        await until(lambda: not master.runner.machine.master.agent_by_session)
        with pytest.raises(grpc.aio.AioRpcError, match="is not connected"):
            await files.Read(files_pb2.ReadRequest(task_id="t1", path="stdout"))

    assert (question.path, question.offset) == ("stdout", 3)
    assert (answer.data, answer.size) == (b"lo", 5)


async def test_the_health_service_says_serving(master: MasterServer) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{master.port}") as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())

    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_a_port_in_use_is_refused_with_its_address(master: MasterServer) -> None:
    with pytest.raises(
        ListenError, match=rf"^listen: cannot listen on 127.0.0.1:{master.port}: Address already in use$"
    ):
        await MasterServer.start(ServerSettings(listen=f"127.0.0.1:{master.port}"))


async def test_a_restarted_master_knows_its_frameworks_and_adopts_running_tasks(tmp_path: Path) -> None:
    async with a_master(tmp_path) as first:
        agent, framework = RawAgent(first.port), RawFramework(first.port)
        registered = await agent.register()
        welcome = await framework.hello()
        await framework.want()
        await framework.accept(await framework.offer(), "t1")
        await agent.close()
        await framework.close()

    async with a_master(tmp_path) as second:
        agent, framework = RawAgent(second.port), RawFramework(second.port)
        task = types_pb2.TaskSpec(task_id="t1", resources=resources(), command=["true"])
        running = agent_pb2.RunningTask(
            framework_id=welcome.framework_id, task=task, state="TASK_STATE_RUNNING", sequence=1
        )
        again = await agent.register(agent_id=registered.agent_id, incarnation=2, tasks=[running])
        resumed = await framework.hello(framework_id=welcome.framework_id, last_epoch=welcome.epoch)
        await framework.call(reconcile=framework_pb2.Reconcile())
        statuses = await framework.expect("statuses")
        done = await framework.expect("reconcile_done")
        await agent.close()
        await framework.close()

    assert (again.agent_id, resumed.framework_id) == (registered.agent_id, welcome.framework_id)
    assert resumed.epoch > welcome.epoch
    assert [(status.task_id, status.state) for status in statuses.statuses] == [
        ("t1", types_pb2.TASK_STATE_RUNNING)
    ]
    assert list(done.recovering_agent_ids) == []


async def test_on_a_full_disk_known_work_goes_on_and_new_frameworks_wait(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with a_master(tmp_path) as server, grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = operator_pb2_grpc.OperatorServiceStub(channel)
        agent, framework, other = RawAgent(server.port), RawFramework(server.port), RawFramework(server.port)
        registered = await agent.register()
        await framework.hello()
        # The log of the tests may be a file, too.
        with capture_logs():
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
            try:
                await other.call(hello=framework_pb2.Hello(name="new", role="test"))
                refused = await other.expect("error")
                await framework.want()
                accepted = await framework.accept(await framework.offer(), "t1")
                await agent.expect("launch")
                with pytest.raises(grpc.aio.AioRpcError) as weight:
                    await stub.SetWeight(operator_pb2.SetWeightRequest(role="eng", weight=2))
                await agent.close()
                agent = RawAgent(server.port)
                back = await agent.register(agent_id=registered.agent_id, incarnation=2)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await until(lambda: not server.runner.lacks_room)
        late = RawFramework(server.port)
        welcome = await late.hello()
        await agent.close()
        for peer in (framework, other, late):
            await peer.close()

    assert refused.code == framework_pb2.ERROR_CODE_LIMIT
    assert "registry.db: cannot be written" in refused.detail
    assert [item.launched for item in accepted.items] == [True]
    assert weight.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert back.agent_id == registered.agent_id
    assert welcome.framework_id


async def test_a_master_records_its_flight(tmp_path: Path) -> None:
    path = tmp_path / "flight"
    path.touch(0o644)
    server = await MasterServer.start(ServerSettings(listen="127.0.0.1:0", record=path))
    agent, framework = RawAgent(server.port), RawFramework(server.port)
    await agent.register()
    await framework.hello()
    await framework.want()
    offer = await framework.offer()
    await agent.close()
    await framework.close()
    await server.stop(grace_s=0.1)

    orders = [order for _, _, some in play(path) for order in some]

    assert [
        terms.offer_id for order in orders if isinstance(order, SendOffers) for terms in order.offers
    ] == [offer.offer_id]
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_recording_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="expected a file that can be written"):
        await MasterServer.start(ServerSettings(listen="127.0.0.1:0", record=tmp_path / "none" / "flight"))


async def test_log_says_when_an_agent_is_given_up_and_when_it_is_gone(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with a_master(state=tmp_path, agent_timeout_ms=10, agent_forget_ms=10) as server:
            agent = RawAgent(server.port)
            registered = await agent.register(hostname="h1")
            await agent.close()
            await until(lambda: "agent.gone" in {entry["event"] for entry in logs})

    told = [entry for entry in logs if entry.get("agent_id") == registered.agent_id]
    assert [(entry["event"], entry["log_level"]) for entry in told] == [
        ("agent.registered", "info"),
        ("agent.disconnected", "info"),
        ("agent.unreachable", "warning"),
        ("agent.gone", "warning"),
    ]
