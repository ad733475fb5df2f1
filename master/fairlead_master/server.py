"""The master as a process part: core, runner, registry and services put together, started and stopped."""

import asyncio
import socket
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection

from fairlead_master.agent_service import AgentService
from fairlead_master.allocation import placement
from fairlead_master.allocation.api import AllocationError, AllocationSettings
from fairlead_master.allocation.policies import names
from fairlead_master.calls import CallBounds
from fairlead_master.core.actions import StorePolicy
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_master.files_service import FilesService
from fairlead_master.framework_service import FrameworkService
from fairlead_master.operator_service import OperatorService
from fairlead_master.recording import Header, Recorder, RecordingError
from fairlead_master.registry import Registry, open_registry
from fairlead_master.registry_files import RegistryError
from fairlead_master.runner import Runner
from fairlead_proto.clock import SteadyClock
from fairlead_proto.limits import MESSAGE_BYTES_MAX
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.v1 import (
    agent_pb2,
    agent_pb2_grpc,
    files_pb2,
    files_pb2_grpc,
    framework_pb2,
    framework_pb2_grpc,
    operator_pb2,
    operator_pb2_grpc,
)
from fairlead_telemetry.broker import BrokerOptions

if TYPE_CHECKING:
    # They import libraries that are extras.
    from fairlead_master.metrics import MasterMetrics
    from fairlead_master.telemetry import MasterTelemetry

log = structlog.get_logger()

_SERVICES: Final = tuple(
    module.DESCRIPTOR.services_by_name[name].full_name
    for module, name in (
        (framework_pb2, "FrameworkService"),
        (agent_pb2, "AgentService"),
        (operator_pb2, "OperatorService"),
        (files_pb2, "FilesService"),
    )
)

HANDSHAKE_MS_MAX: Final = 5_000
"""From a connection to the end of its handshake: two round trips, for which a host that swaps may need seconds."""

IDLE_MS_MAX: Final = 5_000
"""How long a connection without a call stays. A session is a call and lasts; who connects again in a millisecond
notices nothing. A command waits ten seconds for its answer: within that time those who only sit there make room for it."""

ACCEPT_S_MAX: Final = 300
"""How long a call waits until the loop takes it. A master that passes thousands of tasks a second takes about two new calls a
second, so of 200 agents that come at once some wait minutes; grpc would cancel their streams after 30 s. Who does not
want to wait has a deadline."""

_CHANNEL: Final = (
    # Two masters must never share a port by accident, each getting half of the connections.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # A peer whose host died without a word is noticed within half a minute.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS_MAX),
    ("grpc.http2.settings_timeout", HANDSHAKE_MS_MAX),
    ("grpc.max_connection_idle_ms", IDLE_MS_MAX),
    ("grpc.server_max_unrequested_time_in_server", ACCEPT_S_MAX),
)


class ListenError(Exception):
    """The address cannot be listened on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What a master is started with."""

    listen: str = "127.0.0.1:5050"
    state_directory: Path | None = None
    """None keeps nothing: for tests and benchmarks."""
    kinds: ResourceKinds = field(default_factory=ResourceKinds)
    core: CoreSettings = field(default_factory=CoreSettings)
    given: frozenset[str] = frozenset()
    """What of ``core.allocation`` was asked for, by field, and so wins over what the registry remembers."""
    metrics: str = ""
    """HOST:PORT to serve metrics at; empty: nowhere."""
    mqtt: BrokerOptions | None = None
    """Where telemetry goes; None: nowhere."""
    record: Path | None = None
    """Where to write a flight recording."""
    connections_max: int | None = None
    """Connections at once; those beyond are closed as they come. None does not bound them: for tests and benchmarks."""


class MasterServer:
    """A running master. Made by ``start``."""

    def __init__(self, server: grpc.aio.Server, port: int, runner: Runner, registry: Registry | None) -> None:
        self._server = server
        self.port = port
        self.runner = runner
        self._registry = registry
        self._frameworks: FrameworkService | None = None
        self._agents: AgentService | None = None
        self._health: health_aio.HealthServicer | None = None
        self._heart: asyncio.Task[None] | None = None
        self._telemetry: MasterTelemetry | None = None
        self.metrics: MasterMetrics | None = None

    @classmethod
    async def start(cls, settings: ServerSettings) -> "MasterServer":
        """Open the registry, start listening and serving.

        Raises:
            RegistryError: the state directory cannot be used.
            ListenError: the address cannot be listened on.
            RecordingError: the recording cannot be written.
            InvalidMetricsAddress: the metrics' address cannot be listened on.
        """
        clock = SteadyClock()
        registry = (
            open_registry(settings.state_directory, settings.kinds)
            if settings.state_directory is not None
            else None
        )
        try:
            start = _start_of(settings, registry, clock.now_ms())
            machine = Machine(start.kinds, start.settings, start.remembered, start.now_ms)
            runner = Runner(machine, registry, clock)
            if settings.record is not None:
                runner.recorder = _make_recorder(settings.record, start)
            server = grpc.aio.server(interceptors=(CallBounds(),), options=_options(settings.connections_max))
            port = _listen(server, settings.listen)
        except BaseException:
            if registry is not None:
                registry.close()
            raise
        master = cls(server, port, runner, registry)
        try:
            master._add_services(settings.kinds)
            # First: a master whose metrics cannot be served has served nobody when it ends.
            master._start_telemetry(settings)
            await master._serve()
        except BaseException:
            await master.stop(0)
            raise
        return master

    def _add_services(self, kinds: ResourceKinds) -> None:
        self._frameworks = FrameworkService(self.runner, kinds)
        self._agents = AgentService(self.runner, kinds)
        self._health = health_aio.HealthServicer()
        framework_pb2_grpc.add_FrameworkServiceServicer_to_server(self._frameworks, self._server)
        agent_pb2_grpc.add_AgentServiceServicer_to_server(self._agents, self._server)
        operator_pb2_grpc.add_OperatorServiceServicer_to_server(OperatorService(self.runner), self._server)
        files = FilesService(self.runner, self._agents.ask_file, self._agents.follows)
        files_pb2_grpc.add_FilesServiceServicer_to_server(files, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        health_name = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
        reflection.enable_server_reflection((*_SERVICES, health_name, reflection.SERVICE_NAME), self._server)

    async def _serve(self) -> None:
        assert self._frameworks is not None, "services come before serving"
        assert self._health is not None, "services come before serving"
        await self._server.start()
        for name in ("", *_SERVICES):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        self._heart = asyncio.create_task(self._beat(self._frameworks), name="heartbeats")

    def _start_telemetry(self, settings: ServerSettings) -> None:
        if settings.mqtt is not None:
            from fairlead_master.telemetry import MasterTelemetry

            address = f"{settings.listen.rpartition(':')[0]}:{self.port}"
            self._telemetry = MasterTelemetry(self.runner, settings.mqtt, address)
            self._telemetry.start()
        if settings.metrics:
            from fairlead_master.metrics import MasterMetrics

            assert self._frameworks is not None, "services come before metrics"
            assert self._agents is not None, "services come before metrics"
            traffic = {"agent": self._agents.traffic, "framework": self._frameworks.traffic}
            unknowns = {"agent": self._agents.unknowns, "framework": self._frameworks.unknowns}
            counters = self._telemetry.link.counters if self._telemetry is not None else None
            self.metrics = MasterMetrics(settings.metrics, self.runner, traffic, unknowns, counters)

    async def _beat(self, frameworks: FrameworkService) -> None:
        runner = self.runner
        while True:
            await asyncio.sleep(runner.machine.master.settings.heartbeat_interval_ms / 1000)
            frameworks.beat(runner.clock.now_ms())

    async def stop(self, grace_s: float = 1.0) -> None:
        """Tell peers, finish what is being written, close the registry. Tasks run on."""
        if self._heart is not None:
            self._heart.cancel()
        if self._health is not None:
            await self._health.enter_graceful_shutdown()
        if self._frameworks is not None:
            self._frameworks.shut_down()
        if self._agents is not None:
            self._agents.shut_down()
        await self._server.stop(grace_s)
        if self.metrics is not None:
            await asyncio.to_thread(self.metrics.close)
        if self._telemetry is not None:
            await self._telemetry.stop()
        await self.runner.stop()
        if self.runner.recorder is not None:
            try:
                self.runner.recorder.close()
            except OSError as error:
                log.warning("recording.ended", error=str(error))
        if self._registry is not None:
            await asyncio.to_thread(self._registry.close)


def _options(connections_max: int | None) -> tuple[tuple[str, int], ...]:
    if connections_max is None:
        return _CHANNEL
    return (*_CHANNEL, ("grpc.max_allowed_incoming_connections", connections_max))


def _start_of(settings: ServerSettings, registry: Registry | None, now_ms: int) -> Header:
    """What the core begins with: what was asked for, and what an earlier master wrote down."""
    kinds, core = settings.kinds, settings.core
    if registry is None:
        remembered = Remembered(epoch=now_ms // 1000)
        return Header(kinds=kinds, settings=core, remembered=remembered, now_ms=now_ms)
    loaded = registry.load(now_ms // 1000)
    if loaded.policy is not None:
        core = replace(core, allocation=_with_stored(core, loaded.policy, settings.given))
        _check_known(loaded.policy, settings)
    log.info(
        "master.recovered",
        epoch=loaded.remembered.epoch,
        frameworks=len(loaded.remembered.frameworks),
        agents=len(loaded.remembered.agents),
    )
    return Header(kinds=kinds, settings=core, remembered=loaded.remembered, now_ms=now_ms)


def _check_known(stored: StorePolicy, settings: ServerSettings) -> None:
    """Refuse to go on by what another version, or a cluster with other resources, wrote down.

    Raises:
        RegistryError: this master knows no such policy or placement.
    """
    try:
        if "policy" not in settings.given:
            names.parse(stored.policy, settings.kinds.names)
        if "placement" not in settings.given:
            placement.parse(stored.placement)
    except AllocationError as error:
        option = str(error).partition(":")[0]
        raise RegistryError(
            f"{settings.state_directory}/registry.db: table policy, key 1: {error}; choose another by --{option}"
        ) from None


def _make_recorder(path: Path, start: Header) -> Recorder:
    try:
        return Recorder.make(path, start)
    except OSError as error:
        raise RecordingError(
            f"record: expected a file that can be written, got {path}: {error.strerror}"
        ) from None


def _with_stored(core: CoreSettings, stored: StorePolicy, given: frozenset[str]) -> AllocationSettings:
    asked = core.allocation
    head = (
        asked.when_head_does_not_fit if "when_head_does_not_fit" in given else stored.when_head_does_not_fit
    )
    return replace(
        asked,
        policy=asked.policy if "policy" in given else stored.policy,
        placement=asked.placement if "placement" in given else stored.placement,
        when_head_does_not_fit=head,
        demand=asked.demand if "demand" in given else stored.demand,
    )


def _listen(server: grpc.aio.Server, address: str) -> int:
    _check_free(address)
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise ListenError(f"listen: cannot listen on {address}: {error}") from None
    if port == 0:
        raise ListenError(f"listen: cannot listen on {address}: is the port in use?")
    return port


def _check_free(address: str) -> None:
    """Find out with a socket of our own: gRPC says why it cannot listen on stderr only, and in words for its authors."""
    host, _, port = address.rpartition(":")
    try:
        known = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        family, _, _, _, place = known[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
            probe.listen()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ListenError(f"listen: cannot listen on {address}: {why}") from None
