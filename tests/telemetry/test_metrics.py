"""What Prometheus is shown by a master and an agent, and what alerts and the dashboard make of it."""

import asyncio
import json
import re
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from prometheus_client import parser

from fairlead_local.cluster import LocalCluster
from fairlead_master.metrics import ROLES_MAX, MasterMetrics
from fairlead_master.runner import Runner
from fairlead_proto.clock import SteadyClock
from fairlead_sdk import Framework, Task
from fairlead_telemetry.metrics import Family, InvalidMetricsAddress, MetricsServer, gauge
from tests.builders.master import Cluster

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAME = re.compile(r"\b(?:fairlead|process)_[a-z_]+\b")

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text: str = answer.read().decode()
        return text


def samples(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture(scope="module")
def scraped() -> Iterator[tuple[str, str, list[str]]]:
    """What master and agent show after ten tasks; and the ids that must not be in it."""
    ports = free_port(), free_port()
    with LocalCluster(
        agents=1,
        resources="cpus=4,mem=4GiB",
        master_arguments=["--metrics", f"127.0.0.1:{ports[0]}"],
        agent_arguments=["--metrics", f"127.0.0.1:{ports[1]}"],
    ) as cluster:

        async def work() -> tuple[str, str, list[str]]:
            async with Framework("scraped", master=cluster.address) as framework:
                results = await framework.run([Task(["true"], cpus=0.1, mem="16MiB") for _ in range(10)])
                texts = [await asyncio.to_thread(scrape, port) for port in ports]
                return texts[0], texts[1], [result.task_id for result in results]

        yield asyncio.run(work())


@pytest.mark.shell
def test_a_scrape_tells_what_happened(scraped: tuple[str, str, list[str]]) -> None:
    master, agent = samples(scraped[0]), samples(scraped[1])

    assert master["fairlead_launches_total", (("answer", "LAUNCHED"),)] == 10
    assert master["fairlead_task_moves_total", (("state", "FINISHED"),)] == 10
    assert master["fairlead_allocation_decisions_total", ()] >= 10
    assert master["fairlead_resource_capacity", (("resource", "cpus"), ("unit", "core"))] == 4
    assert master["fairlead_agents", (("state", "ACTIVE"),)] == 1
    assert master["fairlead_turn_seconds_count", ()] > 0
    assert master["fairlead_stream_bytes_total", (("direction", "sent"), ("peer", "agent"))] > 0
    assert agent["fairlead_agent_statuses_total", (("reason", "NONE"), ("state", "FINISHED"))] == 10
    assert agent["fairlead_agent_registered", ()] == 1


@pytest.mark.shell
def test_no_label_is_a_task(scraped: tuple[str, str, list[str]]) -> None:
    assert not [task_id for task_id in scraped[2] if task_id in scraped[0] + scraped[1]]


@pytest.mark.shell
def test_alerts_and_dashboard_name_only_what_is_shown(scraped: tuple[str, str, list[str]]) -> None:
    shown = {name for name, _ in (samples(scraped[0]) | samples(scraped[1]))}
    shown |= {"fairlead_telemetry_messages_total", "fairlead_telemetry_connected"}
    rules = yaml.safe_load((EXAMPLES / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
    panels = json.loads((EXAMPLES / "grafana" / "fairlead.json").read_text())["panels"]

    texts = [rule["expr"] for rule in rules]
    texts += [target["expr"] for panel in panels for target in panel["targets"]]

    assert {name for text in texts for name in NAME.findall(text)} - shown == set()
    assert all({"summary", "action"} <= rule["annotations"].keys() for rule in rules)
    assert len({panel["id"] for panel in panels}) == len(panels)


async def test_roles_beyond_the_bound_have_no_series() -> None:
    cluster = Cluster()
    runner = Runner(cluster.machine, None, SteadyClock())
    for number in range(ROLES_MAX + 20):
        cluster.framework(role=f"role-{number}")

    metrics = MasterMetrics("127.0.0.1:0", runner, {}, {}, None)
    try:
        found = samples(await asyncio.to_thread(scrape, metrics.port))
    finally:
        await asyncio.to_thread(metrics.close)

    assert found["fairlead_roles", ()] == ROLES_MAX + 20
    assert sum(name == "fairlead_role_dominant_share" for name, _ in found) == ROLES_MAX


async def test_who_asks_while_a_scrape_is_made_gets_the_same() -> None:
    made = 0

    async def collect() -> list[Family]:
        nonlocal made
        made += 1
        await asyncio.sleep(0.2)
        return [gauge("made", "How often.", made)]

    server = MetricsServer("127.0.0.1:0", collect)
    try:
        texts = await asyncio.gather(*[asyncio.to_thread(scrape, server.port) for _ in range(3)])
    finally:
        await asyncio.to_thread(server.close)

    assert [samples(text)["made", ()] for text in texts] == [1, 1, 1]


async def test_an_address_in_use_is_named() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(
            InvalidMetricsAddress, match=f"cannot listen on {address}: Address already in use"
        ):
            MasterMetrics(address, Runner(Cluster().machine, None, SteadyClock()), {}, {}, None)
