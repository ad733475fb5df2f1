"""Listing, watching and reading logs over real gRPC."""

import socket
from collections.abc import AsyncIterator

import grpc
import pytest

from fairlead_sdk import MasterUnreachable, OperatorClient, Refused
from fairlead_sdk.address import resolve_master
from tests.sdk.builders import begin
from tests.sdk.grpc_double import GrpcDouble

pytestmark = pytest.mark.shell


@pytest.fixture
async def master() -> AsyncIterator[GrpcDouble]:
    async with GrpcDouble() as double:
        yield double


@pytest.fixture
async def client(master: GrpcDouble) -> AsyncIterator[OperatorClient]:
    async with OperatorClient(master.address) as operator:
        yield operator


async def test_listings_go_through_all_pages(client: OperatorClient) -> None:
    assert [task.task_id async for task in client.tasks(states=["RUNNING"])] == [f"t{n}" for n in range(6)]


async def test_many_ids_are_asked_about_in_several_requests(
    master: GrpcDouble, client: OperatorClient
) -> None:
    ids = [f"t{number}" for number in range(2_500)]

    outcomes = await client.kill_tasks(ids)
    found = [task.task_id async for task in client.tasks(task_ids=ids)]

    assert [outcome.task_id for outcome in outcomes] == ids
    assert found == ids
    assert master.operators.asked_about == [1_000, 1_000, 500] * 2


async def test_prices_of_resources_are_read_by_name(client: OperatorClient) -> None:
    assert await client.prices() == {"cpus": 2.0, "mem": 0.5}


async def test_a_refusal_has_a_code_and_the_masters_words(master: GrpcDouble, client: OperatorClient) -> None:
    master.operators.refusal = (grpc.StatusCode.NOT_FOUND, "no such thing")

    with pytest.raises(Refused, match="no such thing") as refusal:
        await client.cluster()

    assert refusal.value.code == "UNKNOWN"


async def test_no_master_is_a_typed_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        async with OperatorClient(address) as client:
            asked = (client.cluster(), anext(client.watch()), anext(client.follow("t")), client.read_log("t"))
            for answer in asked:
                with pytest.raises(MasterUnreachable) as error:
                    await answer
                assert error.value.address == address
                assert str(error.value).startswith(f"no master at {address}: unavailable: ")
                assert str(error.value).endswith("; is it running? `fairlead up` starts one on this host")


async def test_watching_goes_on_after_the_stream_ends_and_asks_for_a_new_listing(
    master: GrpcDouble, client: OperatorClient
) -> None:
    watch = client.watch()

    seen = [await anext(watch) for _ in range(3)]

    assert [(changes.version, changes.resync) for changes in seen] == [(10, False), (0, True), (20, False)]
    assert master.operators.watched_from == [0, 0]


async def test_a_log_is_read_whole_or_from_its_end(master: GrpcDouble, client: OperatorClient) -> None:
    master.files.grow(b"0123456789")

    assert await client.read_log("t") == b"0123456789"
    assert await client.read_log("t", tail_bytes=3) == b"789"
    with pytest.raises(Refused, match="no task x"):
        await client.read_log("x")


async def test_following_waits_for_more_survives_a_break_and_ends_with_the_task(
    master: GrpcDouble, client: OperatorClient
) -> None:
    pieces: list[bytes] = []

    async def collect() -> None:
        async for piece in client.follow("t"):
            pieces.append(piece)
            if b"".join(pieces) == b"hello":
                master.files.failures = [grpc.StatusCode.UNAVAILABLE]
                master.files.grow(b" world", complete=True)

    collecting = begin(collect())
    master.files.grow(b"hello")
    await collecting

    assert b"".join(pieces) == b"hello world"


def test_the_address_comes_from_the_argument_the_environment_or_this_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("FAIRLEAD_MASTER", raising=False)
    assert resolve_master() == "127.0.0.1:5050"
    monkeypatch.setenv("FAIRLEAD_MASTER", "[::1]:7")
    assert resolve_master() == "[::1]:7"
    assert resolve_master("host:1") == "host:1"
    monkeypatch.setenv("FAIRLEAD_MASTER", "nonsense")
    with pytest.raises(ValueError, match="FAIRLEAD_MASTER: expected HOST:PORT, got 'nonsense'"):
        resolve_master()
    with pytest.raises(ValueError, match="master: expected HOST:PORT, got 'h:99999'"):
        resolve_master("h:99999")
    with pytest.raises(ValueError, match=r"^master: expected HOST:PORT, got 7$"):
        OperatorClient(7)  # type: ignore[arg-type] # callers without a type checker
