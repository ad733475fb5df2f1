"""Connections, streams and calls that are only there: a real master makes room for those that want something."""

import asyncio
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from fairlead_master import calls, server, sessions
from fairlead_master.open_files import FILES_KEPT, OpenFilesError, connections_max
from fairlead_master.server import MasterServer, ServerSettings
from fairlead_proto.v1 import agent_pb2, framework_pb2, operator_pb2, operator_pb2_grpc, types_pb2
from tests.builders.peers import PATIENCE_S, RawAgent, RawFramework, a_master

pytestmark = pytest.mark.shell
CONNECTIONS = 20


@pytest.fixture
async def crowded(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MasterServer]:
    """A master that takes so many connections and no more, all of which are taken by sockets that say nothing."""
    hurry(monkeypatch, "grpc.server_handshake_timeout_ms")
    settings = ServerSettings(listen="127.0.0.1:0", connections_max=CONNECTIONS)
    master = await MasterServer.start(settings)
    sockets = [socket.create_connection(("127.0.0.1", master.port)) for _ in range(CONNECTIONS)]
    try:
        yield master
    finally:
        for each in sockets:
            each.close()
        await master.stop(grace_s=0.1)


def hurry(monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    """Let one of the server's times be a tenth of a second."""
    monkeypatch.setattr(server, "_CHANNEL", tuple({**dict(server._CHANNEL), option: 100}.items()))


async def list_agents(port: int) -> Any:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        operator: Any = operator_pb2_grpc.OperatorServiceStub(channel)
        return await operator.ListAgents(operator_pb2.ListRequest(), timeout=PATIENCE_S)


async def test_a_call_waits_for_a_busy_master_as_long_as_we_say_and_not_as_long_as_grpc_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    option = "grpc.server_max_unrequested_time_in_server"
    waits_s = dict(server._CHANNEL)[option]
    monkeypatch.setattr(server, "_CHANNEL", tuple({**dict(server._CHANNEL), option: 1}.items()))
    master = await MasterServer.start(ServerSettings(listen="127.0.0.1:0"))

    def call() -> set[grpc.StatusCode]:
        with grpc.insecure_channel(f"127.0.0.1:{master.port}") as channel:
            operator: Any = operator_pb2_grpc.OperatorServiceStub(channel)
            asked = [
                operator.ListAgents.future(operator_pb2.ListRequest(), timeout=PATIENCE_S) for _ in range(8)
            ]
            return {each.code() for each in asked}

    calling = asyncio.get_running_loop().run_in_executor(None, call)
    time.sleep(1.5)  # noqa: ASYNC251 - a loop that takes nothing for longer than the option says
    codes = await calling
    await master.stop(grace_s=0.1)

    assert grpc.StatusCode.CANCELLED in codes
    assert waits_s == server.ACCEPT_S_MAX


async def test_connections_that_say_nothing_make_room_for_those_that_do(crowded: MasterServer) -> None:
    answer = None
    async with asyncio.timeout(PATIENCE_S):
        while answer is None:
            with suppress(grpc.aio.AioRpcError):
                answer = await list_agents(crowded.port)

    assert list(answer.agents) == []


async def test_a_connection_beyond_the_bound_is_closed_at_once() -> None:
    settings = ServerSettings(listen="127.0.0.1:0", connections_max=1)
    master = await MasterServer.start(settings)
    try:
        with (
            socket.create_connection(("127.0.0.1", master.port)),
            pytest.raises(grpc.aio.AioRpcError) as refusal,
        ):
            await list_agents(master.port)
    finally:
        await master.stop(grace_s=0.1)

    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_connection_without_a_call_is_closed_and_a_session_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hurry(monkeypatch, "grpc.max_connection_idle_ms")
    async with a_master() as master:
        framework, agent = RawFramework(master.port), RawAgent(master.port)
        alone = (("grpc.use_local_subchannel_pool", 1),)  # or it would share the connection of the others
        idle = grpc.aio.insecure_channel(f"127.0.0.1:{master.port}", options=alone)
        try:
            await framework.hello()
            await agent.register()
            await idle.channel_ready()

            await asyncio.wait_for(idle.wait_for_state_change(grpc.ChannelConnectivity.READY), PATIENCE_S)

            assert (await framework.want(1)).code == framework_pb2.CALL_CODE_OK
            assert (await framework.offer()).units == 1
        finally:
            for peer in (framework, agent, idle):
                await peer.close()


async def test_a_stream_that_does_not_say_whose_it_is_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "FIRST_MESSAGE_SECONDS_MAX", 0.05)
    async with a_master() as master:
        framework, agent = RawFramework(master.port), RawAgent(master.port)
        try:
            await framework.stream.write(framework_pb2.FrameworkCalls())
            await agent.stream.write(agent_pb2.AgentMessages())

            error = await framework.expect("error")
            refused = await agent.expect("refused")

            assert error.code == framework_pb2.ERROR_CODE_TOO_SLOW
            assert error.detail == "first call: expected hello within 0.05 s, got nothing"
            assert refused.code == agent_pb2.REFUSAL_CODE_TOO_SLOW
            assert refused.detail == "first message: expected register within 0.05 s, got nothing"
        finally:
            for peer in (framework, agent):
                await peer.close()


async def test_what_is_no_message_is_refused_and_a_long_message_is_taken() -> None:
    async with a_master() as master:
        framework = RawFramework(master.port)
        waiting = [f"{number:0100d}" for number in range(32)]
        unit = types_pb2.Resources(cpus_milli=1)
        classes = [
            framework_pb2.DemandClass(class_id=f"c{number}", unit=unit, units=1, waiting_task_ids=waiting)
            for number in range(400)
        ]
        try:
            broken: Any = framework.channel.stream_stream("/fairlead.v1.FrameworkService/Connect")()
            await broken.write(b"\xff" * 100_000)
            refused = framework_pb2.FrameworkEvents.FromString(await broken.read()).events[0]

            assert refused.error.code == framework_pb2.ERROR_CODE_INVALID
            assert (
                refused.error.detail == "message: expected a fairlead.v1.FrameworkCalls, got something else"
            )

            await framework.hello()
            await framework.call(set_demand=framework_pb2.SetDemand(version=1, classes=classes))

            assert (await framework.expect("result")).code == framework_pb2.CALL_CODE_OK
        finally:
            await framework.close()


async def test_a_session_that_said_hello_in_time_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "FIRST_MESSAGE_SECONDS_MAX", 0.2)
    async with a_master(heartbeat_interval_ms=100) as master:
        framework = RawFramework(master.port)
        try:
            await framework.hello()
            for _ in range(4):
                await framework.expect("heartbeat")

            assert (await framework.want(0)).code == framework_pb2.CALL_CODE_OK
        finally:
            await framework.close()


async def test_a_host_has_so_many_calls_under_way_and_sessions_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "CALLS_PER_PEER_MAX", 2)
    async with a_master() as master, grpc.aio.insecure_channel(f"127.0.0.1:{master.port}") as channel:
        operator: Any = operator_pb2_grpc.OperatorServiceStub(channel)
        watches = [operator.Watch(operator_pb2.WatchRequest()) for _ in range(2)]
        for watch in watches:
            await asyncio.wait_for(watch.read(), PATIENCE_S)
        framework = RawFramework(master.port)
        try:
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await operator.ListAgents(operator_pb2.ListRequest())
            welcome = await framework.hello()
            watches[0].cancel()
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    try:
                        await operator.ListAgents(operator_pb2.ListRequest())
                        break
                    except grpc.aio.AioRpcError:
                        await asyncio.sleep(0.01)
        finally:
            await framework.close()

    assert refusal.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refusal.value.details() == (
        "calls: expected at most 2 at once from one host, got another from 127.0.0.1: end some, or try again later"
    )
    assert welcome.framework_id


async def test_a_request_that_is_too_long_or_no_message_is_refused_and_says_why() -> None:
    async with a_master() as master, grpc.aio.insecure_channel(f"127.0.0.1:{master.port}") as channel:
        kill: Any = channel.unary_unary("/fairlead.v1.OperatorService/KillTasks")
        reflect: Any = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        framework, ids = b"\x12\2f9", (calls.REQUEST_BYTES_MAX - 4) // 2
        longest = framework + b"\n\0" * ids

        answer = operator_pb2.KillTasksResponse.FromString(await kill(longest))
        refusals = []
        for refused in (
            kill(longest + b"\n\0"),
            kill(b"\xff"),
            reflect(iter([longest + b"\n\0"])).read(),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await refused
            refusals.append((refusal.value.code(), refusal.value.details()))

    too_long = "request: expected at most 262144 bytes, got 262146: ask about fewer at once"
    assert len(answer.items) == ids
    assert refusals == [
        (grpc.StatusCode.RESOURCE_EXHAUSTED, too_long),
        (
            grpc.StatusCode.INVALID_ARGUMENT,
            "request: expected a message of this call, got something else",
        ),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, too_long),
    ]


def test_so_many_open_files_are_kept_for_what_is_no_connection() -> None:
    assert connections_max(4096) == 4096 - FILES_KEPT
    with pytest.raises(OpenFilesError, match="expected a hard limit of at least 192, got 100"):
        connections_max(100)


def test_a_master_opens_as_many_files_as_it_may(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 512))

    ready = tmp_path / "ready"
    run = f"from fairlead_master.cli import *; run_master(MasterOptions(listen='127.0.0.1:0', ready_file=Path({str(ready)!r})))"
    os.mkfifo(ready)
    with subprocess.Popen([sys.executable, "-c", run], preexec_fn=limit, stderr=subprocess.DEVNULL) as master:  # noqa: PLW1509 - no thread is about
        ready.read_text()
        limits = Path(f"/proc/{master.pid}/limits").read_text()
        master.terminate()

    (line,) = (line for line in limits.splitlines() if line.startswith("Max open files"))
    assert line.split()[3:5] == ["512", "512"]
