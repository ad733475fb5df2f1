"""The client over real gRPC: what it sends, and what it makes of a master that breaks off, takes over or misbehaves."""

import asyncio
import socket
from collections.abc import AsyncIterator

import grpc.aio
import pytest

from fairlead_proto.v1 import framework_pb2, types_pb2
from fairlead_sdk import Framework, FrameworkExpired, MasterUnreachable, Refused, Superseded, TaskResult
from fairlead_sdk.errors import LinkBroken
from fairlead_sdk.grpc_transport import GrpcLink
from tests.builders.messages import from_a_newer_peer
from tests.sdk.builders import a_task, begin
from tests.sdk.grpc_double import Event, Events, GrpcDouble, Session, error, welcome

pytestmark = pytest.mark.shell


@pytest.fixture
async def master() -> AsyncIterator[GrpcDouble]:
    async with GrpcDouble() as double:
        yield double


def a_framework(master: GrpcDouble, **options: object) -> Framework:
    return Framework("f", master=master.address, on_exit="leave", **options)  # type: ignore[arg-type]


async def connected(master: GrpcDouble, framework: Framework) -> Session:
    start = begin(framework.start())
    session = await master.session()
    hello = await session.next_call("hello")
    assert hello.hello.name == "f"
    await session.send(welcome())
    await start
    return session


async def launch(session: Session, *, offer_id: str = "o1") -> str:
    """Take the demand, offer room for it, launch what is accepted; returns the task's id."""
    demand = await session.next_call("set_demand")
    [wanted] = demand.set_demand.classes
    answer = framework_pb2.CallResult(
        request_id=demand.request_id, code=framework_pb2.CALL_CODE_OK, demand_version=1
    )
    offer = framework_pb2.Offer(
        offer_id=offer_id,
        agent_id="a",
        hostname="h",
        class_id=wanted.class_id,
        units=wanted.units,
        unit=wanted.unit,
        lease_ms=1000,
    )
    offers = framework_pb2.Offers(offers=[offer])
    await session.send(Events(epoch=1, events=[Event(result=answer), Event(offers=offers)]))
    accept = await session.next_call("accept")
    [task] = accept.accept.tasks
    item = framework_pb2.AcceptResult.Item(task_id=task.task_id, launched=True)
    result = framework_pb2.AcceptResult(request_id=accept.request_id, offer_id=offer_id, items=[item])
    await session.send(Events(epoch=1, events=[Event(accept_result=result)]))
    return task.task_id


def finished(task_id: str, *, epoch: int = 1) -> Events:
    status = types_pb2.TaskStatus(
        framework_id="f1",
        task_id=task_id,
        agent_id="a",
        sequence=2,
        state=types_pb2.TASK_STATE_FINISHED,
        reason=types_pb2.REASON_EXITED,
        exit_code=0,
    )
    return Events(epoch=epoch, events=[Event(statuses=framework_pb2.TaskStatuses(statuses=[status]))])


async def submitted(framework: Framework) -> "asyncio.Task[TaskResult]":
    handle = framework.submit(a_task())

    async def result() -> TaskResult:
        return await handle

    return begin(result())


async def test_a_task_goes_from_demand_to_acknowledged_result(master: GrpcDouble) -> None:
    framework = a_framework(master)
    session = await connected(master, framework)
    result = await submitted(framework)

    task_id = await launch(session)
    await session.send(finished(task_id))

    assert (await result).ok
    acknowledge = await session.next_call("acknowledge")
    [item] = acknowledge.acknowledge.items
    assert (item.task_id, item.sequence, item.agent_id) == (task_id, 2, "a")
    session.end()
    await framework.close()


async def test_a_broken_stream_is_replaced_and_its_tasks_reconciled(master: GrpcDouble) -> None:
    framework = a_framework(master)
    session = await connected(master, framework)
    result = await submitted(framework)
    task_id = await launch(session)
    session.end()

    again = await master.session()
    hello = (await again.next_call("hello")).hello
    assert (hello.framework_id, hello.last_epoch) == ("f1", 1)
    reconcile = await again.next_call("reconcile")
    assert list(reconcile.reconcile.task_ids) == [task_id]
    await again.send(welcome(epoch=2))
    await again.send(finished(task_id, epoch=2))

    assert (await result).ok
    again.end()
    await framework.close()


async def test_a_master_that_comes_back_at_its_address_is_found(master: GrpcDouble) -> None:
    framework = a_framework(master)
    await connected(master, framework)
    await master.stop()
    await master.start()

    session = await master.session()
    assert (await session.next_call("hello")).hello.framework_id == "f1"
    session.end()
    await framework.close()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (framework_pb2.ERROR_CODE_SUPERSEDED, Superseded),
        (framework_pb2.ERROR_CODE_UNKNOWN_FRAMEWORK, FrameworkExpired),
        (framework_pb2.ERROR_CODE_UNAUTHORIZED, Refused),
    ],
)
async def test_a_final_error_reaches_whoever_waits(
    master: GrpcDouble, code: int, kind: type[Exception]
) -> None:
    framework = a_framework(master)
    session = await connected(master, framework)
    result = await submitted(framework)
    await session.send(error(code, "because"))

    with pytest.raises(kind, match="because"):
        await result
    with pytest.raises(kind):
        framework.submit(a_task())
    session.end()
    await framework.close()


@pytest.mark.parametrize(
    "trouble",
    [
        error(framework_pb2.ERROR_CODE_TOO_SLOW, "read faster"),
        error(framework_pb2.ERROR_CODE_SHUTTING_DOWN, "bye"),
        error(framework_pb2.ERROR_CODE_OLD_EPOCH, "I am old", epoch=1),
        error(99, "from the future"),
        Events(epoch=1, events=[Event()]),
        Events(epoch=1, events=[Event(offers=framework_pb2.Offers(offers=[framework_pb2.Offer()]))]),
        Events(
            epoch=1, events=[Event(statuses=framework_pb2.TaskStatuses(statuses=[types_pb2.TaskStatus()]))]
        ),
        Events(epoch=0, events=[Event(heartbeat=framework_pb2.Heartbeat())]),
        welcome(),
        welcome(framework_id="someone-else"),
    ],
    ids=[
        "too slow",
        "shutting down",
        "old epoch",
        "unknown code",
        "empty event",
        "empty offer",
        "empty status",
        "older epoch",
        "second welcome",
        "foreign welcome",
    ],
)
async def test_trouble_that_may_pass_costs_a_stream_and_not_the_session(
    master: GrpcDouble, trouble: Events
) -> None:
    framework = a_framework(master)
    session = await connected(master, framework)
    await session.send(trouble)

    again = await master.session()
    assert (await again.next_call("hello")).hello.framework_id == "f1"
    await again.send(welcome(epoch=2))
    result = await submitted(framework)
    demand = await again.next_call("set_demand")
    assert demand.set_demand.classes[0].units == 1
    session.end()
    again.end()
    await framework.close()
    with pytest.raises(Exception, match="was closed"):
        await result


async def test_a_silent_master_is_given_up(master: GrpcDouble) -> None:
    framework = a_framework(master)
    start = begin(framework.start())
    session = await master.session()
    await session.next_call("hello")
    await session.send(welcome(heartbeat_ms=20))
    await start

    again = await master.session()
    assert (await again.next_call("hello")).hello.framework_id == "f1"
    session.end()
    again.end()
    await framework.close()


async def test_no_master_is_said_within_the_time_allowed() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        framework = Framework("f", master=f"127.0.0.1:{unused.getsockname()[1]}", connect_timeout="300ms")
        with pytest.raises(MasterUnreachable, match=r"no master at 127\.0\.0\.1.*`fairlead up` starts"):
            await framework.start()


async def test_a_server_that_is_no_master_is_refused_at_once() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        with pytest.raises(Refused, match="invalid"):
            await Framework("f", master=f"127.0.0.1:{port}").start()
    finally:
        await server.stop(None)


class BrokenCall:
    """A call that raises what grpc may raise, or gives what it gives for bytes that are no message."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def read(self) -> None:
        if self._error is not None:
            raise self._error

    async def write(self, _message: object) -> None:
        await self.read()

    done_writing = code = read

    def cancel(self) -> None:
        """There is nothing to cancel."""


@pytest.mark.parametrize(
    "error",
    [
        asyncio.InvalidStateError("RPC already finished."),
        grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), ""),
        grpc.aio.InternalError("failed to execute a batch"),
        grpc.aio.UsageError("channel is closed"),
        None,
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_stream_raises_is_a_broken_link(error: Exception | None) -> None:
    """Anything else would count as a bug of ours, which ends the session for good."""
    link = GrpcLink(grpc.aio.insecure_channel("127.0.0.1:1"))
    link._call = BrokenCall(error)

    with pytest.raises(LinkBroken):
        await link.receive()
    if error is not None:
        with pytest.raises(LinkBroken):
            await link.send(framework_pb2.FrameworkCalls())
    await link.finish()

    await link.close()


async def test_event_of_a_newer_master_ends_no_session(
    master: GrpcDouble, caplog: pytest.LogCaptureFixture
) -> None:
    framework = a_framework(master)
    session = await connected(master, framework)
    result = await submitted(framework)
    for _ in range(3):
        await session.send(Events(epoch=1, events=[from_a_newer_peer(Event())]))

    task_id = await launch(session)

    await session.send(finished(task_id))

    assert (await result).ok
    assert [record.message for record in caplog.records].count("session.unknown_skipped") == 1
    session.end()
    await framework.close()
