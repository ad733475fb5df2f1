"""`fairlead watch`: what an outside monitor sees, from the MQTT broker and not from the master."""

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import structlog
from structlog.typing import EventDict

from fairlead_cli.errors import BrokerUnreachable, Invalid
from fairlead_cli.telemetry_options import broker_of, mqtt_options
from fairlead_telemetry.broker import KEEP_ALIVE_MS, BrokerOptions, InvalidBroker, check_installed
from fairlead_telemetry.topics import PREFIX, Topics, fault_in_filter, matches_any

if TYPE_CHECKING:
    from fairlead_telemetry.link import BrokerLink, Incoming

DEFAULT_BROKER: Final = "mqtt://127.0.0.1:1883"

FIRST_CONNECTION_S: Final = 5.0
"""After this long without a first connection the broker counts as unreachable; later breaks are waited out."""

SILENCE_S: Final = 6.0
"""Every agent publishes what it uses each 5 s: who hears nothing for longer watches nothing, or what rarely changes."""


@click.command()
@mqtt_options(f"Listen to this broker: mqtt://[USER@]HOST:PORT or mqtts://… [default: {DEFAULT_BROKER}]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: topic, retained, payload.")
@click.argument("topics", nargs=-1, metavar="[TOPIC]…")
def watch(
    *,
    mqtt: str | None,
    mqtt_password_file: Path | None,
    mqtt_ca: Path | None,
    cluster_name: str,
    as_json: bool,
    topics: Sequence[str],
) -> int:
    """Print what master and agents send to an MQTT broker.

    It ends with Ctrl-C. A TOPIC is `master/status`, `agents/AGENT/status`, `agents/AGENT/usage`, `tasks`, `shares` or `decisions`,
    with `+` for any one level and `#` for all that follow, or a whole one that begins with `fairlead/`; without one everything of
    the cluster is printed. The broker is --mqtt, FAIRLEAD_MQTT, or the one on this host.
    """
    options = broker_of(mqtt or DEFAULT_BROKER, mqtt_password_file, mqtt_ca, cluster_name, KEEP_ALIVE_MS)
    assert options is not None, "a broker was named"
    root = Topics(cluster_name).root
    filters = [
        name if name.startswith(PREFIX.partition("/")[0] + "/") else f"{root}/{name}" for name in topics
    ]
    for name in filters:
        if fault := fault_in_filter(name):
            raise Invalid(f"topic: expected {fault}, got {name!r}")
        if not matches_any(name):
            raise Invalid(
                "topic: expected master/status, agents/AGENT/status, agents/AGENT/usage, tasks, shares or decisions, "
                f"or a filter for some of them, got {name!r}"
            )
    try:
        check_installed()
    except InvalidBroker as error:
        raise Invalid(str(error)) from error
    return asyncio.run(_watch(options, tuple(filters) or (f"{root}/#",), as_json=as_json))


async def _watch(options: BrokerOptions, filters: tuple[str, ...], *, as_json: bool) -> int:
    import random

    from fairlead_telemetry.link import BrokerLink

    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    heard = asyncio.Event()

    def take(message: "Incoming") -> None:
        heard.set()
        try:
            print(_json_line(message) if as_json else _line(message, options.cluster), flush=True)
        except OSError as error:
            if not failed.done():
                failed.set_exception(error)

    structlog.configure(
        processors=[_say_away],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )
    link = BrokerLink(
        options,
        None,
        subscriptions=filters,
        on_message=take,
        random=random.random,
        log=structlog.get_logger(),
    )
    link.start()
    try:
        await _first_connection(link)
        silence = asyncio.get_running_loop().call_later(SILENCE_S, _say_silence, heard, filters)
        try:
            await failed
        finally:
            silence.cancel()
    finally:
        await link.stop()
    return 0


async def _first_connection(link: "BrokerLink") -> None:
    try:
        async with asyncio.timeout(FIRST_CONNECTION_S):
            await link.first_connected.wait()
    except TimeoutError:
        raise BrokerUnreachable(link.url, link.detail or "no answer") from None


def _say_silence(heard: asyncio.Event, filters: Sequence[str]) -> None:
    """A broker takes a subscription to what nobody publishes, or this user may not read, like any other."""
    if not heard.is_set():
        click.echo(
            f"fairlead: nothing yet under {' or '.join(filters)}; if that surprises you: is this the --cluster-name of "
            "the master, and may this user read it?",
            err=True,
        )


def _say_away(_logger: object, _method: str, event: EventDict) -> str:
    """What the link logs, as a person reads it."""
    if event["event"] == "broker.away":
        return f"fairlead: the broker {event['broker']} is away ({event['detail']}); trying again"
    return f"fairlead: connected to {event['broker']}"


def _line(message: "Incoming", cluster: str) -> str:
    now = time.time()
    clock = time.strftime("%H:%M:%S", time.localtime(now))
    topic = message.topic.removeprefix(f"{Topics(cluster).root}/")
    retained = " (retained)" if message.is_retained else ""
    return f"{clock}.{int(now * 1000) % 1000:03} {topic}{retained} {message.payload.decode(errors='replace')}"


def _json_line(message: "Incoming") -> str:
    import orjson

    try:
        payload = orjson.loads(message.payload)
    except ValueError:
        payload = message.payload.decode(errors="replace")
    return orjson.dumps(
        {"topic": message.topic, "retained": message.is_retained, "payload": payload}
    ).decode()
