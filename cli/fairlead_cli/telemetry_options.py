"""The options of telemetry, the same for master, agents and `fairlead up`."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from fairlead_cli.addresses import ADDRESS
from fairlead_cli.errors import Invalid
from fairlead_cli.parameters import DURATION
from fairlead_telemetry.broker import (
    DEFAULT_CLUSTER,
    KEEP_ALIVE_MS,
    BrokerOptions,
    InvalidBroker,
    read_broker,
)

Command = TypeVar("Command", bound=Callable[..., object])

_FILE = click.Path(dir_okay=False, path_type=Path)

_NAMES: Final = ("mqtt", "mqtt_password_file", "mqtt_ca", "cluster_name", "mqtt_keep_alive_ms")
"""The arguments of ``broker_of``, as the options are called."""


SEND_HELP: Final = "Send telemetry to this broker: mqtt://[USER@]HOST:PORT or mqtts://… [default: to none]"


def mqtt_options(mqtt_help: str) -> Callable[[Command], Command]:
    """Add what names a broker and a cluster: ``mqtt``, ``mqtt_password_file``, ``mqtt_ca``, ``cluster_name``."""

    def add(command: Command) -> Command:
        for option in (
            click.option(
                "--cluster-name",
                default=DEFAULT_CLUSTER,
                show_default=True,
                help="Of this cluster in the broker's topics.",
            ),
            click.option(
                "--mqtt-ca",
                type=_FILE,
                help="PEM file of the authority of an mqtts broker [default: the system's]",
            ),
            click.option(
                "--mqtt-password-file",
                type=_FILE,
                envvar="FAIRLEAD_MQTT_PASSWORD_FILE",
                help="Its first line is the password of USER.",
            ),
            click.option("--mqtt", metavar="URL", envvar="FAIRLEAD_MQTT", help=mqtt_help),
        ):
            command = option(command)
        return command

    return add


def publisher_options(command: Command) -> Command:
    """Add what names the broker to publish to: that of ``mqtt_options``, and ``mqtt_keep_alive_ms``."""
    keep_alive = click.option(
        "--mqtt-keep-alive",
        "mqtt_keep_alive_ms",
        type=DURATION,
        default=f"{KEEP_ALIVE_MS // 1000}s",
        show_default=True,
        help="The broker announces a vanished host after one and a half times this.",
    )
    return mqtt_options(SEND_HELP)(keep_alive(command))


def broker_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same, as one argument ``broker``: its checked options, or None if none is named."""

    @wraps(command)
    def with_broker(**given: Any) -> Any:
        return command(broker=broker_of(**_taken(given)), **given)

    return publisher_options(with_broker)


def broker_words_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same, as one argument ``telemetry``: words of a command line, for the processes of a local cluster."""

    @wraps(command)
    def with_words(**given: Any) -> Any:
        taken = _taken(given)
        broker_of(**taken)  # Refused here, and not by each process in its log.
        return command(telemetry=_words(**taken), **given)

    return publisher_options(with_words)


def _taken(given: dict[str, Any]) -> dict[str, Any]:
    return {name: given.pop(name) for name in _NAMES}


def metrics_option(command: Command) -> Command:
    """Add where to serve metrics, as ``metrics``: an address, or None."""
    return click.option(
        "--metrics",
        type=ADDRESS,
        help="Serve metrics for Prometheus at HOST:PORT/metrics, to whoever asks [default: nowhere]",
    )(command)


def broker_of(
    mqtt: str | None,
    mqtt_password_file: Path | None,
    mqtt_ca: Path | None,
    cluster_name: str,
    mqtt_keep_alive_ms: int,
) -> BrokerOptions | None:
    """The broker that the options name; None if they name none.

    Raises:
        Invalid: an option cannot be used.
    """
    if mqtt is None:
        return None
    try:
        return read_broker(
            mqtt,
            password_file=mqtt_password_file,
            ca=mqtt_ca,
            cluster=cluster_name,
            keep_alive_ms=mqtt_keep_alive_ms,
        )
    except InvalidBroker as error:
        raise Invalid(str(error)) from error


def _words(
    *, mqtt: str | None, cluster_name: str, mqtt_keep_alive_ms: int, **files: Path | None
) -> list[str]:
    if mqtt is None:
        return []
    words = ["--mqtt", mqtt, "--cluster-name", cluster_name, "--mqtt-keep-alive", f"{mqtt_keep_alive_ms}ms"]
    for name, path in files.items():
        if path is not None:
            words += [f"--{name.replace('_', '-')}", str(path.absolute())]
    return words
