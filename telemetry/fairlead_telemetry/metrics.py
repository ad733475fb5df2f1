"""Metrics for Prometheus: a small HTTP server whose every answer is made from state at the scrape.

The server is the library's own, with a thread for each request; state belongs to the event loop. So a scrape asks the loop for
plain families and writes them as text in its thread. Who asks while they are collected, or within ``KEPT_S`` after it, gets the
same families: however many scrapers run wild, the loop collects for one of them, and rests so long between.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from fairlead_telemetry.broker import Counters

KEPT_S: Final = 0.5
ANSWER_TIMEOUT_S: Final = 10.0
"""For the loop to answer a scrape: as long as Prometheus waits by default."""

SECONDS_BUCKETS: Final = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.25,
    1.0,
    5.0,
)
"""From a tenth of a millisecond, a turn with one event, to what nobody should see; 20 ms is what the master promises."""


class InvalidMetricsAddress(ValueError):
    """The address of the metrics cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with all its labels' values."""

    kind: str
    """``gauge`` or ``counter``."""
    name: str
    """Without the ``_total`` of a counter."""
    help: str
    labels: tuple[str, ...]
    samples: tuple[tuple[tuple[str, ...], float], ...]


def gauge(name: str, text: str, value: float) -> Family:
    """A gauge without labels."""
    return Family("gauge", name, text, (), (((), value),))


def gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> Family:
    """A gauge with one label."""
    return Family("gauge", name, text, (label,), tuple(((key,), value) for key, value in values.items()))


def counter(name: str, text: str, value: float) -> Family:
    """A counter without labels."""
    return Family("counter", name, text, (), (((), value),))


def counters(name: str, text: str, label: str, values: Mapping[str, float]) -> Family:
    """A counter with one label."""
    return Family("counter", name, text, (label,), tuple(((key,), value) for key, value in values.items()))


def resources(name: str, text: str, amounts: Mapping[str, float]) -> Family:
    """A gauge by resource, with the unit as a label: cores, bytes, devices."""
    samples = tuple(
        ((resource, _UNITS.get(resource, "unit")), amount) for resource, amount in amounts.items()
    )
    return Family("gauge", name, text, ("resource", "unit"), samples)


_UNITS: Final = {"cpus": "core", "mem": "byte", "disk": "byte", "gpus": "device"}


def telemetry_families(link: Counters) -> Iterator[Family]:
    """What became of messages to the broker."""
    by_end = {"published": link.published, "dropped": link.dropped}
    yield counters(
        "fairlead_telemetry_messages", "Messages to the broker by what became of them.", "end", by_end
    )
    yield gauge(
        "fairlead_telemetry_connected", "Whether there is a connection to the broker.", link.is_connected
    )


def check_installed() -> None:
    """Say at the start what would else be found out by an import.

    Raises:
        InvalidMetricsAddress: the library is not installed.
    """
    if find_spec("prometheus_client") is None:
        raise InvalidMetricsAddress(
            "metrics: expected the extra `fairlead[metrics]` to be installed, found no prometheus_client"
        )


class MetricsServer:
    """Serves ``/metrics`` until ``close``. Made in the event loop that owns the state."""

    def __init__(self, address: str, collect: Callable[[], Awaitable[list[Family]]]) -> None:
        """Begin to listen.

        Args:
            address: HOST:PORT; port 0 chooses one.
            collect: gives the families; runs in the loop, once at a time.

        Raises:
            InvalidMetricsAddress: it cannot be listened on.
        """
        from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, start_http_server

        host, _, port = address.rpartition(":")
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._histogram = Histogram
        self.registry.register(_Collector(collect, asyncio.get_running_loop()))
        try:
            self._server, self._thread = start_http_server(int(port), host.strip("[]"), self.registry)
        except OSError as error:
            why = error.strerror or str(error)
            raise InvalidMetricsAddress(f"metrics: cannot listen on {address}: {why}") from None
        self.port: int = self._server.server_port

    def histogram(self, name: str, text: str) -> Callable[[float], None]:
        """Make a histogram of seconds; gives what takes an observation."""
        made = self._histogram(name, text, registry=self.registry, buckets=SECONDS_BUCKETS)
        observe: Callable[[float], None] = made.observe
        return observe

    def close(self) -> None:
        """Stop listening; blocks until the thread has ended, at most half a second."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Collector:
    """What the library asks at a scrape, in the thread of the scrape."""

    def __init__(
        self, collect: Callable[[], Awaitable[list[Family]]], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._collect = collect
        self._loop = loop
        self._collecting = asyncio.Lock()
        self._families: list[Family] = []
        self._collected_s = -KEPT_S

    def collect(self) -> Iterable[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        kinds: dict[str, Any] = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}
        asked = asyncio.run_coroutine_threadsafe(self._in_loop(), self._loop)
        for family in asked.result(ANSWER_TIMEOUT_S):
            made = kinds[family.kind](family.name, family.help, labels=family.labels)
            for labels, value in family.samples:
                made.add_metric(labels, value)
            yield made

    async def _in_loop(self) -> list[Family]:
        async with self._collecting:
            if time.monotonic() - self._collected_s >= KEPT_S:
                self._families = await self._collect()
                self._collected_s = time.monotonic()
            return self._families


class LoopDelay:
    """How late the event loop serves a timer: what a peer waits for beyond the work on its own message."""

    INTERVAL_S: Final = 0.25

    def __init__(self, observe: Callable[[float], None]) -> None:
        self._observe = observe
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(self.INTERVAL_S, self._look, self._loop.time() + self.INTERVAL_S)

    def _look(self, due_s: float) -> None:
        now_s = self._loop.time()
        self._observe(max(0.0, now_s - due_s))
        self._timer = self._loop.call_later(self.INTERVAL_S, self._look, now_s + self.INTERVAL_S)

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()
