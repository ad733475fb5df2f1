"""The stream to the master: bounded, batched, dialled again with growing pauses."""

import asyncio
import socket
from collections.abc import Sequence

import grpc
import grpc.aio
import pytest
import structlog

from fairlead_agent import file_stream
from fairlead_agent import session as session_module
from fairlead_agent.core.events import Event, Ordered, SessionClosed, SessionOpened
from fairlead_agent.file_stream import OnFileRequest
from fairlead_agent.session import MasterSession
from fairlead_proto.v1 import agent_pb2, agent_pb2_grpc
from tests.agent.builders import KINDS
from tests.agent.fake_master import FakeMaster

pytestmark = pytest.mark.shell

REGISTER = agent_pb2.AgentMessage(register=agent_pb2.Register(hostname="h"))


def a_goodbye(reason: str) -> agent_pb2.AgentMessage:
    return agent_pb2.AgentMessage(goodbye=agent_pb2.Goodbye(reason=reason))


class Caller:
    """One end of a session, registering as soon as it is open."""

    def __init__(self, address: str, on_file_request: OnFileRequest = lambda _request: None) -> None:
        self.events: list[Event] = []
        self.changed = asyncio.Event()
        self.session = MasterSession(
            address,
            kinds=KINDS,
            feed=self.feed,
            on_file_request=on_file_request,
            on_follow=lambda _: None,
            on_files_end=lambda: None,
            on_end=lambda: None,
            random=lambda: 0.0,
            log=structlog.get_logger(),
        )
        self.run = asyncio.create_task(self.session.run())

    async def feed(self, events: Sequence[Event]) -> None:
        self.events += events
        if isinstance(events[0], SessionOpened):
            self.session.send([REGISTER])
        self.changed.set()

    async def until_count(self, kind: type[Event], count: int) -> None:
        while sum(isinstance(event, kind) for event in self.events) < count:
            self.changed.clear()
            await self.changed.wait()

    async def end(self) -> None:
        await self.session.finish()
        self.run.cancel()
        await asyncio.gather(self.run, return_exceptions=True)


async def test_last_messages_are_heard_before_the_end() -> None:
    async with FakeMaster() as master:
        caller = Caller(master.address)
        await master.until(lambda: master.registrations)

        caller.session.send([a_goodbye(str(number)) for number in range(1_000)])
        await caller.end()

    assert master.goodbyes == [str(number) for number in range(1_000)]


async def test_message_of_a_newer_master_ends_no_session() -> None:
    async with FakeMaster() as master:
        caller = Caller(master.address)
        await master.until(lambda: master.registrations)

        master.say_newer()
        master.say(ping=agent_pb2.Ping())
        await caller.until_count(Ordered, 1)
        await caller.end()

    assert caller.session.unknowns.counts == {"message": 1}
    assert sum(isinstance(event, SessionOpened) for event in caller.events) == 1


async def test_answers_about_files_delay_nothing_that_the_session_says() -> None:
    """By one stream for both, what is said would wait until the master has read every chunk before it."""
    chunks = [agent_pb2.FileChunk(request_id=number, data=bytes(2**20)) for number in range(32)]
    async with FakeMaster(files_token="t") as master:
        caller = Caller(master.address)
        await master.until(lambda: master.registrations)
        caller.session.confirm("t")
        await master.until(lambda: master.tokens)

        for chunk in chunks:
            caller.session.send_chunk(chunk)
        caller.session.send([a_goodbye("said")])
        await master.until(lambda: master.goodbyes)
        streamed_before = len(master.streamed)
        master.is_reading_files.set()
        await master.until(lambda: len(master.streamed) == len(chunks))
        await caller.end()

    assert (master.tokens, master.goodbyes, streamed_before) == (["t"], ["said"], 0)
    assert [chunk.request_id for chunk in master.streamed] == list(range(32))
    assert not master.chunks


async def test_stream_of_files_that_ended_is_dialled_again_and_the_session_carries_them_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = asyncio.Event()
    monkeypatch.setattr(session_module, "FILES_PAUSE_S", 0.05)
    async with FakeMaster(files_token="t") as master:
        master.is_reading_files.set()
        caller = Caller(master.address, lambda _request: asked.set())
        await master.until(lambda: master.registrations)
        caller.session.send_chunk(agent_pb2.FileChunk(request_id=1))
        await master.until(lambda: master.chunks)
        caller.session.confirm("t")
        await master.until(lambda: len(master.tokens) == 1)

        master.request_file(None)
        await master.until(lambda: len(master.tokens) == 2)
        master.request_file(agent_pb2.FileRequest(request_id=2))
        await asked.wait()
        caller.session.send_chunk(agent_pb2.FileChunk(request_id=2))
        await master.until(lambda: master.streamed)
        await caller.end()

    assert list(master.chunks) == [1]
    assert [chunk.request_id for chunk in master.streamed] == [2]
    assert caller.session.ended_count == 1, "one session all the time"


async def test_stream_of_files_whose_chunks_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "FILES_PAUSE_S", 0.05)
    monkeypatch.setattr(file_stream, "CHUNKS_MAX", 4)
    async with FakeMaster(files_token="t") as master:
        caller = Caller(master.address)
        await master.until(lambda: master.registrations)
        caller.session.confirm("t")
        await master.until(lambda: master.tokens)

        for number in range(32):
            caller.session.send_chunk(agent_pb2.FileChunk(request_id=number, data=bytes(2**20)))
        await master.until(lambda: len(master.tokens) == 2)
        await caller.end()

    assert caller.session.ended_count == 1


async def test_nothing_is_sent_without_a_session() -> None:
    async with FakeMaster() as master:
        caller = Caller(master.address)
        caller.session.send([a_goodbye("too early")])
        await master.until(lambda: master.registrations)
        await caller.end()

    assert master.goodbyes == []


async def test_what_was_decided_in_an_earlier_session_is_not_said_in_the_next_one() -> None:
    async with FakeMaster() as master:
        caller = Caller(master.address)
        await master.until(lambda: master.registrations)
        caller.session.close("to begin another")
        await caller.until_count(SessionOpened, 2)

        caller.session.send([a_goodbye("late")], session=1)
        caller.session.send([a_goodbye("now")], session=2)
        await caller.end()

    assert master.goodbyes == ["now"]


async def test_master_that_does_not_read_loses_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "QUEUE_LENGTH_MAX", 5)
    async with FakeMaster() as master:
        caller = Caller(master.address)
        await master.until(lambda: master.registrations)

        caller.session.send([a_goodbye("unread")] * 6)
        await caller.until_count(SessionOpened, 2)
        await caller.end()

    changes = [type(event) for event in caller.events if isinstance(event, SessionOpened | SessionClosed)]
    assert changes[:3] == [SessionOpened, SessionClosed, SessionOpened]


async def test_large_queue_is_cut_into_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "BATCH_BYTES_MAX", 100)
    async with FakeMaster() as master:
        caller = Caller(master.address)
        await master.until(lambda: master.registrations)
        caller.session.send([a_goodbye("x" * 60) for _ in range(10)])
        await caller.end()

    assert len(master.goodbyes) == 10
    assert master.batch_lengths[-5:] == [2, 2, 2, 2, 2]


async def test_pauses_double_up_to_a_bound_and_begin_anew_once_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def note(delay: float) -> None:
        pauses.append(delay)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    async with FakeMaster() as master:
        caller = Caller(master.address)
        for number in range(1, 10):
            await caller.until_count(SessionOpened, number)
            caller.session.close("again")
        await caller.until_count(SessionOpened, 10)
        caller.session.confirm()
        caller.session.close("again")
        await caller.until_count(SessionOpened, 11)
        await caller.end()

    # The jitter is the smallest: half of the pause.
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 0.05]


async def test_address_nobody_listens_on_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = asyncio.Event()
    sleep = asyncio.sleep

    async def pause(delay: float) -> None:
        failed.set()
        await sleep(delay)

    monkeypatch.setattr("fairlead_agent.session.asyncio.sleep", pause)
    master = FakeMaster()
    await master.listen()
    address = master.address
    await master.stop()
    caller = Caller(address)
    await failed.wait()
    assert caller.events == []
    await master.listen(address)

    await master.until(lambda: master.registrations)

    await caller.end()
    await master.stop()


async def test_connection_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "CONNECT_TIMEOUT_S", 0.01)
    # The kernel takes connections for it, and nobody ever says a word on them.
    silent = socket.create_server(("127.0.0.1", 0))
    port = silent.getsockname()[1]
    pauses = asyncio.Event()
    sleep = asyncio.sleep

    async def note(_delay: float) -> None:
        pauses.set()
        await sleep(0.01)

    monkeypatch.setattr(asyncio, "sleep", note)
    caller = Caller(f"127.0.0.1:{port}")

    await pauses.wait()

    assert caller.events == []
    await caller.end()
    silent.close()


class BrokenCall:
    """A call one side of which raises what a stream may raise, before the other side has noticed anything."""

    def __init__(self, *, read: BaseException | None = None, write: BaseException | None = None) -> None:
        self._read, self._write = read, write

    async def read(self) -> None:
        await self._raise(self._read)

    async def write(self, _message: object) -> None:
        await self._raise(self._write)

    async def _raise(self, error: BaseException | None) -> None:
        if error is None:
            await asyncio.Event().wait()
        else:
            raise error

    def cancel(self) -> None:
        """There is nothing to cancel."""


AN_RPC_ERROR = grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "")


@pytest.mark.parametrize("side", ["read", "write"])
@pytest.mark.parametrize(
    "error",
    [
        asyncio.InvalidStateError("RPC already finished."),
        AN_RPC_ERROR,
        grpc.aio.InternalError("failed to execute a batch"),
        grpc.aio.UsageError("channel is closed"),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_every_way_a_stream_can_end_is_followed_by_another_session(
    monkeypatch: pytest.MonkeyPatch, side: str, error: BaseException
) -> None:
    stub = agent_pb2_grpc.AgentServiceStub
    broken = [BrokenCall(**{side: error})]

    class Stub:
        def __init__(self, channel: grpc.aio.Channel) -> None:
            self.Session: object = broken.pop if broken else stub(channel).Session  # type: ignore[no-untyped-call]  # generated

    monkeypatch.setattr(agent_pb2_grpc, "AgentServiceStub", Stub)
    async with FakeMaster() as master:
        caller = Caller(master.address)

        await asyncio.wait(
            (caller.run, asyncio.create_task(master.until(lambda: master.registrations))),
            return_when=asyncio.FIRST_COMPLETED,
        )

        assert master.registrations
        await caller.end()
    changes = [type(event) for event in caller.events if isinstance(event, SessionOpened | SessionClosed)]
    assert changes[:3] == [SessionOpened, SessionClosed, SessionOpened]
