"""What tests of a real master share: the master, its raw peers, and an operator's stub."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest

from fairlead_master.server import MasterServer
from fairlead_proto.v1 import operator_pb2_grpc
from tests.builders.peers import a_master

Dial = Callable[[type[Any]], Any]


@pytest.fixture
async def master() -> AsyncIterator[MasterServer]:
    async with a_master() as server:
        yield server


@pytest.fixture
async def dial(master: MasterServer) -> AsyncIterator[Dial]:
    peers: list[Any] = []

    def make(kind: type[Any]) -> Any:
        peers.append(kind(master.port))
        return peers[-1]

    yield make
    for peer in peers:
        await peer.close()


@pytest.fixture
async def operator(master: MasterServer) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{master.port}") as channel:
        yield operator_pb2_grpc.OperatorServiceStub(channel)
