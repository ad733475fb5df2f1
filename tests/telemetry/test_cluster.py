"""A real cluster beside a real broker: what an outside monitor sees, and what the master makes of the broker's word."""

import asyncio
import contextlib
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from fairlead_local.cluster import LocalCluster
from fairlead_proto.task_state import TaskState
from fairlead_sdk import Framework, OperatorClient, Task
from fairlead_telemetry.link import Incoming
from tests.telemetry.mosquitto import Mosquitto, monitoring, needs_mosquitto, sequences, until

pytestmark = [pytest.mark.shell, needs_mosquitto]

ROOT = "fairlead/v1/lab"


@pytest.fixture
def cluster(mosquitto: Mosquitto) -> Iterator[LocalCluster]:
    mosquitto.start()
    words = ["--mqtt", mosquitto.url, "--cluster-name", "lab"]
    with LocalCluster(
        agents=1, resources="cpus=4,mem=4GiB", master_arguments=words, agent_arguments=words
    ) as cluster:
        yield cluster


REPOSITORY = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((REPOSITORY / "docs" / "telemetry.schema.json").read_text())

KINDS = {
    "master/status": "master_status",
    "tasks": "tasks",
    "shares": "shares",
    "decisions": "decisions",
    "status": "agent_status",
    "usage": "agent_usage",
}


def kind_of(topic: str) -> str:
    end = topic.removeprefix(f"{ROOT}/")
    return KINDS[end if end in KINDS else end.rpartition("/")[2]]


def changes(heard: list[Incoming]) -> list[tuple[str, str]]:
    payloads = [json.loads(message.payload) for message in heard if message.topic == f"{ROOT}/tasks"]
    return [(change["task_id"], change["state"]) for payload in payloads for change in payload["changes"]]


def units(heard: list[Incoming]) -> int:
    payloads = [json.loads(message.payload) for message in heard if message.topic == f"{ROOT}/decisions"]
    return sum(decision["units"] for payload in payloads for decision in payload["decisions"])


async def test_a_monitor_sees_every_change_of_every_task_once_and_in_order(
    mosquitto: Mosquitto, cluster: LocalCluster
) -> None:
    async with monitoring(mosquitto.options()) as monitor:
        async with Framework("watched", master=cluster.address) as framework:
            results = await framework.run([Task(["true"], cpus=0.1, mem="16MiB") for _ in range(20)])

        ids = {result.task_id for result in results}
        heard = await monitor.until(
            lambda heard: sum(state == "FINISHED" for _, state in changes(heard)) == len(ids)
        )

        for task_id in ids:
            assert [state for name, state in changes(heard) if name == task_id] in (
                ["STAGING", "RUNNING", "FINISHED"],
                ["STAGING", "STARTING", "RUNNING", "FINISHED"],
                ["STAGING", "FINISHED"],
            )
        numbers = sequences(heard, f"{ROOT}/tasks")
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        await monitor.until(lambda heard: units(heard) >= len(ids))
        await monitor.until(
            lambda heard: {kind_of(message.topic) for message in heard} == set(KINDS.values())
        )
        for message in monitor.heard:
            schema = {"$ref": f"#/$defs/{kind_of(message.topic)}", "$defs": SCHEMA["$defs"]}
            jsonschema.validate(json.loads(message.payload), schema)


async def test_a_killed_agent_is_announced_and_its_return_too(
    mosquitto: Mosquitto, cluster: LocalCluster
) -> None:
    async with monitoring(mosquitto.options()) as monitor:
        before = await monitor.status("/status", "online")
        assert before.keys() >= {"state", "time_ms"}

        cluster.agents[0].kill()

        gone = await monitor.status("/status", "offline")
        assert gone["total"]["cpus"] == 4.0
        assert gone["hostname"]


async def test_a_will_for_an_agent_whose_session_lives_changes_nothing(
    mosquitto: Mosquitto, cluster: LocalCluster
) -> None:
    log = cluster.directory / "logs" / "master.log"
    async with OperatorClient(cluster.address) as operator, monitoring(mosquitto.options()) as monitor:
        (before,) = [agent async for agent in operator.agents()]

        async with asyncio.timeout(30):
            # An agent that is doubted is not doubted again before it has answered: so the second time it had.
            while log.read_text().count("agent.doubted") < 2:
                monitor.link.publish(f"{ROOT}/agents/{before.agent_id}/status", {"state": "offline"}, qos=1)
                await asyncio.sleep(0.05)

        (after,) = [agent async for agent in operator.agents()]
    assert (after.state, after.registered_ms) == (before.state, before.registered_ms)
    assert "agent.disconnected" not in log.read_text()


async def test_the_shipped_access_list_lets_a_cluster_speak_and_a_monitor_only_listen(
    mosquitto: Mosquitto, tmp_path: Path
) -> None:
    passwords = mosquitto.set_passwords({user: user for user in ("master", "agent", "monitor")})
    access_list = REPOSITORY / "examples" / "mosquitto" / "acl"
    mosquitto.start("allow_anonymous false", f"password_file {passwords}", f"acl_file {access_list}")

    def options(user: str) -> list[str]:
        (tmp_path / user).write_text(user)
        url = mosquitto.url.replace("//", f"//{user}@")
        return ["--mqtt", url, "--mqtt-password-file", str(tmp_path / user), "--cluster-name", "lab"]

    with LocalCluster(
        agents=1,
        resources="cpus=4,mem=4GiB",
        master_arguments=options("master"),
        agent_arguments=options("agent"),
    ) as cluster:
        log = cluster.directory / "logs" / "master.log"
        async with (
            monitoring(mosquitto.options(username="monitor", password="monitor")) as monitor,
            monitoring(mosquitto.options(username="agent", password="agent")) as agent,
            Framework("watched", master=cluster.address) as framework,
        ):
            (result,) = await framework.run([Task(["true"], cpus=0.1, mem="16MiB")])
            await monitor.until(lambda heard: {kind_of(each.topic) for each in heard} == set(KINDS.values()))

            status = f"{ROOT}/agents/{result.agent_id}/status"
            monitor.link.publish(status, {"state": "offline", "by": "a monitor"}, qos=1)
            agent.link.publish(f"{ROOT}/tasks", {"by": "an agent"}, qos=1)
            await until(lambda: monitor.link.counters.published == 1)
            agent.link.publish(status, {"state": "offline", "by": "an agent"}, qos=1)
            heard = await monitor.until(lambda heard: b"an agent" in heard[-1].payload)
            await until(lambda: "agent.doubted" in log.read_text())

    assert [each.topic for each in heard if b'"by"' in each.payload] == [status]
    assert agent.heard == []


@pytest.mark.parametrize("fault", ["killed", "paused", "refuses everybody", "full"])
async def test_no_fault_of_the_broker_costs_a_task_and_then_the_monitor_hears_all_again(
    mosquitto: Mosquitto, cluster: LocalCluster, fault: str
) -> None:
    has_begun = asyncio.Event()
    with contextlib.ExitStack() as stack:
        async with Framework("watched", master=cluster.address) as framework:
            tasks = [Task(["sleep", "0.2"], cpus=0.5, mem="16MiB") for _ in range(16)]
            running = asyncio.create_task(framework.run(tasks, on_progress=lambda _: has_begun.set()))
            await has_begun.wait()
            break_broker(mosquitto, fault, stack)
            results = await running
            assert [(result.state, result.attempts) for result in results] == [(TaskState.FINISHED, 1)] * 16

            mosquitto.kill()
            mosquitto.start()
            async with monitoring(mosquitto.options()) as monitor:
                await monitor.status("master/status", "online")
                results = await framework.run([Task(["true"], cpus=0.1, mem="16MiB") for _ in range(3)])
                ends = {(result.task_id, "FINISHED") for result in results}
                heard = await monitor.until(lambda heard: ends <= set(changes(heard)))

                numbers = sequences(heard, f"{ROOT}/tasks")
                assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def break_broker(mosquitto: Mosquitto, fault: str, stack: contextlib.ExitStack) -> None:
    if fault == "paused":
        mosquitto.signal(signal.SIGSTOP)
        return
    mosquitto.kill()
    if fault == "refuses everybody":
        mosquitto.start("allow_anonymous false")
    if fault == "full":
        mosquitto.start(listener=("max_connections 1",))
        stack.enter_context(socket.create_connection(("127.0.0.1", mosquitto.port)))
