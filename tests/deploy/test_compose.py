"""docker-compose.yml is well formed, names only what exists, and describes one master, three agents, a framework.

Whether containers come up is for a host with a container engine; what can be wrong on paper is found here.
"""

import json
import operator
import os
import re
import runpy
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fairlead_proto.resources import ResourceKinds

REPOSITORY = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SCHEMA: dict[str, Any] = json.loads(Path(__file__).with_name("compose.schema.json").read_text())
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()


def agents() -> dict[str, dict[str, Any]]:
    """Return the services that run an agent, by name."""
    return {name: service for name, service in SERVICES.items() if service["command"][:1] == ["agent"]}


def ours() -> dict[str, dict[str, Any]]:
    """Return the services that run our image: all but the broker."""
    return {name: service for name, service in SERVICES.items() if service["image"] == "fairlead:local"}


def option(service: dict[str, Any], name: str) -> str:
    """Return the value that follows `name` in the service's command."""
    command: list[str] = service["command"]
    return command[command.index(name) + 1]


def test_compose_file_keeps_its_schema() -> None:
    jsonschema.validate(COMPOSE, SCHEMA)


def test_schema_refuses_a_misspelt_key() -> None:
    master = {**SERVICES["master"], "health_check": {}}
    with pytest.raises(jsonschema.ValidationError, match="health_check"):
        jsonschema.validate({**COMPOSE, "services": {"master": master}}, SCHEMA)


def test_one_master_three_agents_and_a_framework() -> None:
    masters = [name for name, service in SERVICES.items() if service["command"][:1] == ["master"]]

    assert masters == ["master"]
    assert list(agents()) == ["agent-1", "agent-2", "agent-3"]
    assert SERVICES.keys() - ours().keys() == {"broker"}
    assert "framework" in SERVICES


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_waits_for_exists_and_has_a_health_check(name: str) -> None:
    for other, wait in SERVICES[name].get("depends_on", {}).items():
        assert other in SERVICES, f"{name} waits for {other}, which is no service"
        assert wait["condition"] == "service_healthy", f"{name} does not wait until {other} is healthy"
        assert SERVICES[other]["healthcheck"]["test"], f"{name} waits for {other}, which has no health check"


def test_framework_waits_for_every_agent_and_agents_for_the_master() -> None:
    assert list(SERVICES["framework"]["depends_on"]) == list(agents())
    assert all(list(agent["depends_on"]) == ["master"] for agent in agents().values())


def volumes(service: dict[str, Any]) -> list[str]:
    return [mount for mount in service.get("volumes", []) if not mount.startswith("./")]


def test_every_volume_is_declared_and_written_by_one_service() -> None:
    written = [
        mount.split(":")[0]
        for service in SERVICES.values()
        for mount in volumes(service)
        if not mount.endswith(":ro")
    ]
    read = {mount.split(":")[0] for service in SERVICES.values() for mount in volumes(service)}
    assert sorted(written) == sorted(COMPOSE["volumes"])
    assert read == set(written)


def test_everyone_finds_the_password_of_the_user_it_is_at_the_broker() -> None:
    for name, service in {**agents(), "master": SERVICES["master"]}.items():
        environment = service["environment"]
        user = "master" if name == "master" else "agent"
        assert environment["FAIRLEAD_MQTT"] == f"mqtt://{user}@broker:1883", name
        assert environment["FAIRLEAD_MQTT_PASSWORD_FILE"] == f"/broker/{user}/password", name
        assert f"broker-{user}:/broker/{user}:ro" in service["volumes"], name


def test_the_brokers_access_list_names_the_users_that_have_passwords() -> None:
    acl = (REPOSITORY / "examples" / "mosquitto" / "acl").read_text()
    made = re.search(r"for user in (.*); do", SERVICES["broker"]["command"][2])

    assert made is not None
    assert re.findall(r"^user (\w+)$", acl, re.MULTILINE) == made[1].split()


def test_state_and_sandboxes_are_on_the_volume() -> None:
    mounted = {
        name: service["volumes"][0].split(":")[1]
        for name, service in SERVICES.items()
        if "volumes" in service
    }

    assert option(SERVICES["master"], "--state") == mounted["master"]
    for name, agent in agents().items():
        assert option(agent, "--work-dir") == mounted[name]


def test_master_without_tls_is_published_on_loopback_only() -> None:
    assert "--insecure" in SERVICES["master"]["command"]
    assert [port.split(":")[0] for port in SERVICES["master"]["ports"]] == ["127.0.0.1"]


def test_everyone_dials_the_port_the_master_listens_on() -> None:
    port = option(SERVICES["master"], "--listen").split(":")[1]

    assert SERVICES["master"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert {option(agent, "--master") for agent in agents().values()} == {f"master:{port}"}
    assert all(service["environment"]["FAIRLEAD_MASTER"] == f"master:{port}" for service in ours().values())


def test_agents_have_host_names_of_their_own_which_their_health_check_asks_for() -> None:
    assert {name: agent["hostname"] for name, agent in agents().items()} == {name: name for name in agents()}
    for agent in agents().values():
        assert "socket.gethostname()" in agent["healthcheck"]["test"][1]


def test_every_task_of_the_example_fits_an_agent() -> None:
    """A demand no agent can ever hold is refused, and the example with it."""
    script = SERVICES["framework"]["entrypoint"][1].removeprefix("/opt/fairlead/")
    example = runpy.run_path(str(REPOSITORY / script))
    kinds = ResourceKinds()
    offered = [kinds.parse(option(agent, "--resources")) for agent in agents().values()]

    for point in example["points"](12):
        demand = kinds.parse(str(point.task().demand))
        assert any(all(map(operator.le, demand, total)) for total in offered), point


def test_containers_hold_what_their_agent_offers() -> None:
    for name, agent in agents().items():
        offered = dict(part.split("=") for part in option(agent, "--resources").split(","))
        memory_mib = int(re.fullmatch(r"(\d+)GiB", offered["mem"])[1]) * 1024  # type: ignore[index]  # no match fails here
        assert agent["cpus"] >= float(offered["cpus"]), name
        assert int(agent["mem_limit"].removesuffix("m")) > memory_mib, name


@pytest.mark.parametrize(
    ("listing", "expected_exit"),
    [
        pytest.param([("this", "ACTIVE")], 0, id="this one is active"),
        pytest.param([("this", "UNREACHABLE"), ("another", "ACTIVE")], 1, id="another one is active"),
        pytest.param([], 1, id="none is registered"),
    ],
)
def test_agent_health_check_tells_active_from_not(
    listing: list[tuple[str, str]], expected_exit: int, tmp_path: Path
) -> None:
    names = {"this": socket.gethostname(), "another": "another-host"}
    agents_json = json.dumps([{"hostname": names[host], "state": state} for host, state in listing])
    command = tmp_path / "fairlead"
    command.write_text(f"#!/bin/sh\ntest \"$*\" = 'agents --json' && echo '{agents_json}'\n")
    command.chmod(0o755)

    kind, line = SERVICES["agent-1"]["healthcheck"]["test"]
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    outcome = subprocess.run(["/bin/sh", "-c", line], check=False, env={"PATH": path}, timeout=30)

    assert kind == "CMD-SHELL"
    assert outcome.returncode == expected_exit


def test_image_gets_every_source_root_and_its_build_inputs() -> None:
    packages = re.findall(
        r'^    "(\w+)/fairlead_\w+",$', (REPOSITORY / "pyproject.toml").read_text(), re.MULTILINE
    )
    allowed = re.findall(r"^!(.+)$", (REPOSITORY / ".dockerignore").read_text(), re.MULTILINE)

    assert len(packages) == 10
    assert {*packages, "pyproject.toml", "LICENSE"} <= set(allowed)
