"""A real Mosquitto on loopback, and a monitor that notes what it hears."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from fairlead_telemetry.broker import BrokerOptions
from fairlead_telemetry.link import BrokerLink, Incoming

PROGRAM = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

needs_mosquitto = pytest.mark.skipif(PROGRAM is None, reason="mosquitto is not installed")

WAIT_S = 30.0
"""For anything that must come. An honest machine needs a fraction of a second."""


class Mosquitto:
    """One broker, started again on the same port as often as a test likes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"mqtt://127.0.0.1:{self.port}"

    def start(self, *lines: str, listener: tuple[str, ...] = ()) -> None:
        """Start it and return when it listens; ``lines`` go into its configuration."""
        words = [f"listener {self.port} 127.0.0.1", *listener, "persistence false", "user root"]
        words += (
            lines if any("allow_anonymous" in line for line in lines) else ["allow_anonymous true", *lines]
        )
        (self._folder / "mosquitto.conf").write_text("\n".join(words) + "\n")
        assert PROGRAM is not None, "the tests that need it are skipped without it"
        with (self._folder / "mosquitto.log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "-c", str(self._folder / "mosquitto.conf")], stdout=log, stderr=log
            )
        self._starts += 1
        until = time.monotonic() + WAIT_S
        while True:
            # Not by connecting: that would count among the connections it allows.
            said = self.log()
            if said.count(" running") == self._starts:
                return
            assert self._process.poll() is None, said
            assert time.monotonic() < until, "mosquitto does not listen"
            time.sleep(0.01)

    def set_passwords(self, passwords: Mapping[str, str]) -> Path:
        """Make these the only users; a broker that runs reads it when it is told to by SIGHUP."""
        path = self._folder / "passwords"
        path.write_text("")
        for user, password in passwords.items():
            subprocess.run(["mosquitto_passwd", "-b", str(path), user, password], check=True)
        return path

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Pause or continue it."""
        assert self._process is not None, "it was started"
        self._process.send_signal(number)

    def log(self) -> str:
        """What it has said since its first start."""
        return (self._folder / "mosquitto.log").read_text()

    def options(self, **changes: Any) -> BrokerOptions:
        """How to reach it."""
        return BrokerOptions(**{"host": "127.0.0.1", "port": self.port, **changes})


class Monitor:
    """A listener that keeps what it hears."""

    def __init__(self, options: BrokerOptions, *filters: str) -> None:
        self.heard: list[Incoming] = []
        self._news = asyncio.Event()
        self.link = BrokerLink(
            options,
            None,
            subscriptions=filters or ("fairlead/#",),
            on_message=self._take,
            random=lambda: 0.5,
            log=structlog.get_logger(),
        )

    def _take(self, message: Incoming) -> None:
        self.heard.append(message)
        self._news.set()

    async def until(self, is_enough: Callable[[list[Incoming]], bool]) -> list[Incoming]:
        """Wait until what was heard is enough."""
        async with asyncio.timeout(WAIT_S):
            while not is_enough(self.heard):
                self._news.clear()
                await self._news.wait()
        return self.heard

    async def status(self, topic_end: str, state: str) -> dict[str, Any]:
        """Wait for a status."""

        def found(heard: list[Incoming]) -> bool:
            return bool(_states(heard, topic_end, state))

        return _states(await self.until(found), topic_end, state)[-1]


def _states(heard: list[Incoming], topic_end: str, state: str) -> list[dict[str, Any]]:
    payloads = [json.loads(message.payload) for message in heard if message.topic.endswith(topic_end)]
    return [payload for payload in payloads if payload["state"] == state]


def sequences(heard: list[Incoming], topic: str) -> list[int]:
    """The sequence numbers of a topic, as they came."""
    return [json.loads(message.payload)["sequence"] for message in heard if message.topic == topic]


@contextlib.asynccontextmanager
async def monitoring(options: BrokerOptions, *filters: str) -> AsyncIterator[Monitor]:
    """A monitor that is subscribed."""
    monitor = Monitor(options, *filters)
    monitor.link.start()
    try:
        async with asyncio.timeout(WAIT_S):
            await monitor.link.subscribed.wait()
        yield monitor
    finally:
        await monitor.link.stop()


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for what has no event, such as a counter."""
    async with asyncio.timeout(WAIT_S):
        while not is_so():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)
