"""A master as a process: options in, exit code out."""

# Before structlog, which it keeps from importing rich.
from fairlead_telemetry.log_setup import configure_logging  # isort: split

import asyncio
import ipaddress
import signal
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import structlog

from fairlead_master.allocation.api import AllocationError
from fairlead_master.core.settings import CoreSettings
from fairlead_master.garbage import keep_bounded, leave_the_old
from fairlead_master.open_files import OpenFilesError, connections_max, raise_limit
from fairlead_master.recording import RecordingError
from fairlead_master.registry_files import RegistryError
from fairlead_master.server import ListenError, MasterServer, ServerSettings
from fairlead_proto.resources import ResourceError, ResourceKinds
from fairlead_telemetry import metrics
from fairlead_telemetry.broker import BrokerOptions, check_installed

log = structlog.get_logger()

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterOptions:
    """What ``fairlead master`` takes; None leaves a default, or what the registry remembers."""

    listen: str = "127.0.0.1:5050"
    insecure: bool = False
    """Allows to listen beyond loopback without TLS and authentication."""
    state: Path | None = None
    """Directory of the registry; None keeps nothing over a restart."""
    policy: str | None = None
    placement: str | None = None
    when_head_does_not_fit: str | None = None
    demand: str | None = None
    reservation_after_ms: int | None = None
    """How long a unit may be passed over before an agent is reserved for it."""
    offer_lease_ms: int | None = None
    agent_timeout_ms: int | None = None
    recovery_wait_ms: int | None = None
    failover_timeout_max_ms: int | None = None
    """The longest a framework may wish its tasks to outlive its session."""
    custom_resources: tuple[str, ...] = ()
    metrics: str = ""
    """HOST:PORT to serve metrics at; empty: nowhere."""
    mqtt: BrokerOptions | None = None
    """Where telemetry goes; None: nowhere."""
    log_level: str = "info"
    ready_file: Path | None = None
    """Gets ``HOST:PORT`` once the master serves."""
    record: Path | None = None
    """Gets a flight recording: every event with its time."""
    core: CoreSettings = field(default_factory=CoreSettings)


def run_master(options: MasterOptions) -> int:
    """Run a master until a signal ends it.

    Returns:
        0 after SIGINT or SIGTERM; 1 after a failure at run time; 2 if the options or what they name cannot be used,
        with one line on standard error that says why.
    """
    try:
        configure_logging(options.log_level)
        settings = replace(make_settings(options), connections_max=connections_max(raise_limit()))
    except (AllocationError, ResourceError, OpenFilesError, ValueError) as error:
        return _refuse(str(error))
    try:
        return asyncio.run(_run(settings, options.ready_file))
    except (
        RegistryError,
        ListenError,
        RecordingError,
        AllocationError,
        metrics.InvalidMetricsAddress,
    ) as error:
        return _refuse(str(error))


def _refuse(detail: str) -> int:
    sys.stderr.write(f"fairlead master: {detail}\n")
    return EXIT_USAGE


def make_settings(options: MasterOptions) -> ServerSettings:
    """The options, checked, with defaults in place.

    Raises:
        ValueError: an option cannot be used; the text names it, what was expected and what came.
    """
    _check_listen(options)
    if options.mqtt is not None:
        check_installed()
    if options.metrics:
        metrics.check_installed()
    allocation = options.core.allocation
    chosen = replace(
        allocation,
        policy=options.policy or allocation.policy,
        placement=options.placement or allocation.placement,
        when_head_does_not_fit=options.when_head_does_not_fit or allocation.when_head_does_not_fit,
        demand=options.demand or allocation.demand,
        reservation_after_ms=(
            allocation.reservation_after_ms
            if options.reservation_after_ms is None
            else options.reservation_after_ms
        ),
    )
    given = {
        name: value
        for name in ("offer_lease_ms", "agent_timeout_ms", "recovery_wait_ms", "failover_timeout_max_ms")
        if (value := getattr(options, name)) is not None
    }
    return ServerSettings(
        listen=options.listen,
        state_directory=options.state,
        kinds=ResourceKinds(options.custom_resources),
        core=replace(options.core, allocation=chosen, **given),
        mqtt=options.mqtt,
        metrics=options.metrics,
        record=options.record,
        given=frozenset(
            name
            for name in ("policy", "placement", "when_head_does_not_fit", "demand")
            if getattr(options, name)
        ),
    )


def _check_listen(options: MasterOptions) -> None:
    host, colon, port = options.listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"listen: expected HOST:PORT, got {options.listen!r}")
    if options.insecure or _is_loopback(host.strip("[]")):
        return
    raise ValueError(
        f"listen: {host} is not a loopback address, and this master has no TLS and no authentication: whoever reaches "
        "it can run commands on every agent. Listen on 127.0.0.1, or say --insecure on a network you trust"
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _run(settings: ServerSettings, ready_file: Path | None) -> int:
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def stop(number: signal.Signals) -> None:
        if not stopped.done():
            log.info("master.stopping", signal=number.name)
            stopped.set_result(EXIT_OK)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    master = await MasterServer.start(settings)
    leave_the_old()
    collecting = asyncio.create_task(keep_bounded(), name="garbage")
    address = f"{settings.listen.rpartition(':')[0]}:{master.port}"
    if ready_file is not None:
        ready_file.write_text(address + "\n")
    log.info("master.serving", address=address, epoch=master.runner.machine.master.epoch)
    failed = master.runner.failed
    ends: list[asyncio.Future[Any]] = [stopped, failed]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    collecting.cancel()
    await master.stop()
    if failed.done():
        error = failed.exception()
        log.error("master.failed", error=repr(error), exc_info=error)
        return EXIT_FAILED
    return stopped.result()
