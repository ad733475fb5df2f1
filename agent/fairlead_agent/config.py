"""How an agent is to run, checked before anything is touched."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairlead_agent.core import limits
from fairlead_agent.core.state import AgentSettings
from fairlead_agent.probe import Host
from fairlead_proto import fields
from fairlead_proto.resources import STANDARD_NAMES, ResourceError, ResourceKinds, Vector
from fairlead_telemetry import metrics
from fairlead_telemetry.broker import BrokerOptions, InvalidBroker, check_installed

ISOLATION_CHOICES: Final = ("auto", "cgroup-v2", "cgroup-v1", "none")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")

_ADDRESS: Final = re.compile(r"(?:[^\s:/]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})")


class InvalidOption(ValueError):
    """An option that cannot be used; the message names it, what was expected and what came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """Everything a person or a test may choose."""

    master: str
    """HOST:PORT."""
    work_dir: Path
    resources: str = ""
    """Such as ``cpus=4,mem=8GiB,gpus=1``; names that are not given are probed. A custom name declares the resource."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    hostname: str = ""
    """Empty: the host's own."""
    isolation: str = "auto"
    cgroup_parent: str = ""
    """Group to make the tasks' groups in; empty: the agent's own."""
    sandbox_retention_ms: int = limits.SANDBOX_RETENTION_MS
    sandbox_count_max: int = limits.SANDBOX_COUNT_MAX
    sandbox_bytes_max: int = limits.SANDBOX_BYTES_MAX
    stop_tasks_on_exit: bool = False
    """On SIGTERM or SIGINT end the tasks and their executor too; else they run on for the next agent."""
    metrics: str = ""
    """HOST:PORT to serve metrics at; empty: nowhere."""
    mqtt: BrokerOptions | None = None
    """Where telemetry goes; None: nowhere."""
    log_level: str = "info"
    on_registered: Callable[[str], None] | None = None
    """Called with the agent's id each time a master has accepted it."""
    ready_file: Path | None = None
    """Written with the agent's id when a master has first accepted it."""

    def __post_init__(self) -> None:
        _check(self)


def _check(options: AgentOptions) -> None:
    address = _ADDRESS.fullmatch(options.master)
    if address is None or not 0 < int(address[1]) < 65536:
        raise InvalidOption(f"master: expected HOST:PORT, got {options.master!r}")
    if options.isolation not in ISOLATION_CHOICES:
        raise InvalidOption(
            f"isolation: expected one of {', '.join(ISOLATION_CHOICES)}, got {options.isolation!r}"
        )
    if options.log_level not in LOG_LEVELS:
        raise InvalidOption(f"log level: expected one of {', '.join(LOG_LEVELS)}, got {options.log_level!r}")
    for name in ("sandbox_retention_ms", "sandbox_count_max", "sandbox_bytes_max"):
        if getattr(options, name) < 0:
            raise InvalidOption(f"{name}: expected 0 or more, got {getattr(options, name)}")
    try:
        if options.mqtt is not None:
            check_installed()
        if options.metrics:
            metrics.check_installed()
        fields.read_attributes("attribute", options.attributes)
        fields.read_name("hostname", options.hostname)
        kinds_of(options).parse(options.resources)
    except (fields.InvalidFieldError, InvalidBroker, metrics.InvalidMetricsAddress, ResourceError) as error:
        raise InvalidOption(str(error)) from error


def kinds_of(options: AgentOptions) -> ResourceKinds:
    """The resources this agent speaks of: the standard ones and those its operator named, sorted.

    Raises:
        ResourceError: a name that no resource can have.
    """
    return ResourceKinds(tuple(sorted(_names(options.resources) - set(STANDARD_NAMES))))


def _names(resources: str) -> set[str]:
    return {part.partition("=")[0].strip() for part in resources.split(",") if part.strip()}


def settings_of(options: AgentOptions, host: Host, kinds: ResourceKinds) -> AgentSettings:
    """What the core is to know: the host as found, with what the operator set in its place."""
    return AgentSettings(
        hostname=options.hostname or host.hostname,
        total=_total(options, host, kinds),
        kinds=kinds,
        attributes=dict(options.attributes),
        sandbox_retention_ms=options.sandbox_retention_ms,
        sandbox_count_max=options.sandbox_count_max,
        sandbox_bytes_max=options.sandbox_bytes_max,
    )


def _total(options: AgentOptions, host: Host, kinds: ResourceKinds) -> Vector:
    chosen = kinds.parse(options.resources)
    names = _names(options.resources)
    return tuple(
        amount if name in names else found
        for name, amount, found in zip(kinds.names, chosen, host.total, strict=True)
    )
