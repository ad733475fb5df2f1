"""The link against a real broker that is killed, paused, full, and that refuses."""

import asyncio
import json
import re
import signal
import sys
import time

import pytest
import structlog

from fairlead_telemetry import link as link_module
from fairlead_telemetry.broker import BrokerOptions
from fairlead_telemetry.link import BrokerLink, Presence
from tests.telemetry.mosquitto import Mosquitto, monitoring, needs_mosquitto, sequences, until

pytestmark = [pytest.mark.shell, needs_mosquitto]

TOPIC = "fairlead/v1/default/tasks"
STATUS = "fairlead/v1/default/master/status"
PRESENCE = Presence(
    identity="fairlead-default-master",
    topic=STATUS,
    online=lambda: {"state": "online"},
    offline=lambda: {"state": "offline"},
)


def a_link(options: BrokerOptions) -> BrokerLink:
    return BrokerLink(options, PRESENCE, random=lambda: 0.5, log=structlog.get_logger())


PUBLISHER = """
import asyncio, sys, structlog
from fairlead_telemetry.link import BrokerLink
from tests.telemetry.test_link import PRESENCE
from fairlead_telemetry.broker import read_broker
async def main():
    link = BrokerLink(read_broker(sys.argv[1]), PRESENCE, random=lambda: 0.5, log=structlog.get_logger())
    link.start()
    await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_a_killed_publisher_is_announced_by_its_will(mosquitto: Mosquitto) -> None:
    mosquitto.start()
    async with monitoring(mosquitto.options()) as monitor:
        publisher = await asyncio.create_subprocess_exec(sys.executable, "-c", PUBLISHER, mosquitto.url)
        try:
            await monitor.status("master/status", "online")
        finally:
            publisher.kill()
            await publisher.wait()

        await monitor.status("master/status", "offline")
        said = [json.loads(message.payload)["state"] for message in monitor.heard if message.topic == STATUS]

    assert said == ["online", "offline"]


async def test_a_broker_that_looks_every_five_seconds_announces_within_one_and_a_half_times_the_keep_alive(
    mosquitto: Mosquitto,
) -> None:
    mosquitto.start()
    options = mosquitto.options()
    link = a_link(options)
    link.start()
    await link.first_connected.wait()
    await link.stop()

    (agreed,) = re.findall(rf" as {PRESENCE.identity} \(.*\bk(\d+)", mosquitto.log())

    assert int(agreed) * 1.5 + 5 <= options.keep_alive_s * 1.5


async def test_who_ends_on_purpose_says_so_itself(mosquitto: Mosquitto) -> None:
    mosquitto.start()
    async with monitoring(mosquitto.options()) as monitor:
        link = a_link(mosquitto.options())
        link.start()
        await monitor.status("master/status", "online")

        await link.stop({"state": "left"})

        await monitor.status("master/status", "left")
    async with monitoring(mosquitto.options()) as later:
        await later.until(bool)
        assert [json.loads(message.payload)["state"] for message in later.heard] == ["left"]


async def test_nothing_is_missing_after_a_broker_was_killed_and_started_again(mosquitto: Mosquitto) -> None:
    mosquitto.start()
    link = a_link(mosquitto.options())
    link.start()
    async with monitoring(mosquitto.options()) as monitor:
        for _ in range(50):
            link.publish(TOPIC, {}, qos=1)
        await monitor.until(lambda heard: len(sequences(heard, TOPIC)) == 50)

        mosquitto.kill()
        await until(lambda: not link.counters.is_connected)
        for _ in range(50):
            link.publish(TOPIC, {}, qos=1)
    mosquitto.start()
    # The broker has confirmed them: to whom it gave them is its business.
    await until(lambda: link.counters.published >= 102)
    async with monitoring(mosquitto.options()) as later:
        await later.status("master/status", "online")
        link.publish(TOPIC, {}, qos=1)
        await later.until(lambda heard: 101 in sequences(heard, TOPIC))
    assert link.counters.dropped == 0
    await link.stop()


async def test_a_paused_broker_makes_the_oldest_go_and_the_numbers_show_it(
    mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "QUEUE_MESSAGES_MAX", 20)
    mosquitto.start()
    link = a_link(mosquitto.options())
    link.start()
    async with monitoring(mosquitto.options()) as monitor:
        await monitor.status("master/status", "online")
        mosquitto.signal(signal.SIGSTOP)
        for _ in range(100):
            link.publish(TOPIC, {}, qos=1)
            await asyncio.sleep(0)  # The sender takes one, and waits for the broker.

        mosquitto.signal(signal.SIGCONT)
        heard = await monitor.until(lambda heard: 100 in sequences(heard, TOPIC))

        numbers = sequences(heard, TOPIC)
        assert numbers == sorted(set(numbers))
        assert link.counters.dropped == 100 - len(numbers) > 0
        assert numbers[-20:] == list(range(81, 101))
    await link.stop()


async def test_a_full_broker_is_tried_again_until_it_has_room(mosquitto: Mosquitto) -> None:
    mosquitto.start(listener=("max_connections 1",))
    link = a_link(mosquitto.options())
    async with monitoring(mosquitto.options()):
        link.start()
        link.publish(TOPIC, {}, qos=1)
        await until(lambda: link.detail != "")
        assert not link.counters.is_connected

    await until(lambda: link.counters.published >= 2)
    await link.stop()


async def test_refused_credentials_are_named_and_tried_again(mosquitto: Mosquitto) -> None:
    passwords = mosquitto.set_passwords({"fairlead": "old"})
    rules = ("allow_anonymous false", f"password_file {passwords}")
    mosquitto.start(*rules)
    link = a_link(mosquitto.options(username="fairlead", password="old"))
    link.start()
    await until(lambda: link.counters.published == 1)

    mosquitto.set_passwords({"fairlead": "new"})
    mosquitto.kill()
    mosquitto.start(*rules)
    await until(lambda: "uthori" in link.detail)
    assert not link.counters.is_connected
    link.publish(TOPIC, {}, qos=1)

    mosquitto.set_passwords({"fairlead": "old"})
    mosquitto.signal(signal.SIGHUP)
    await until(lambda: link.counters.is_connected and link.counters.published >= 3)
    await link.stop()
    assert (link.counters.connections, link.counters.dropped) == (2, 0)


async def test_a_connection_that_lasted_makes_the_next_pause_short_again(
    mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A broker that takes every connection and ends it at once is left alone for longer and longer; one that held a
    # connection for a while is tried again at once.
    monkeypatch.setattr(link_module, "STABLE_S", 0.5)
    monkeypatch.setattr(link_module, "PAUSE_FIRST_MS", 100)
    monkeypatch.setattr(link_module, "PAUSE_MAX_MS", 1_000_000)
    mosquitto.start()
    link = a_link(mosquitto.options())
    pauses: list[float] = []

    def note_pause() -> float:
        pauses.append(time.monotonic())
        return 0.0

    monkeypatch.setattr(link, "_random", note_pause)
    link.start()
    await until(lambda: link.counters.is_connected)
    await asyncio.sleep(0.6)
    mosquitto.kill()
    await until(lambda: len(pauses) == 4)
    mosquitto.start()
    await until(lambda: link.counters.is_connected)
    await asyncio.sleep(0.6)

    mosquitto.kill()

    await until(lambda: len(pauses) == 6)
    assert pauses[5] - pauses[4] < pauses[3] - pauses[2]
    await link.stop()
