"""Each command line, script and path that the container files name exists and takes the flags it is given."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = {
    name: service for name, service in COMPOSE["services"].items() if service["image"] == "fairlead:local"
}
"""Those that run our image: all but the broker."""
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()


def command_lines() -> dict[str, list[str]]:
    """Return the arguments of each `fairlead` command the compose file runs, by what runs it."""
    lines = {name: service["command"] for name, service in SERVICES.items() if "entrypoint" not in service}
    for name, service in SERVICES.items():
        kind, *words = service["healthcheck"]["test"]
        shell_words = words[0].split("|")[0].split() if kind == "CMD-SHELL" else words
        assert shell_words[0] == "fairlead", f"{name}: the health check runs {shell_words[0]}"
        lines[f"health of {name}"] = shell_words[1:]
    return lines


@pytest.mark.parametrize(("user", "words"), command_lines().items())
def test_command_exists_and_takes_the_flags_it_is_given(user: str, words: list[str]) -> None:
    command = [sys.executable, "-m", "fairlead_cli.main", words[0], "--help"]
    outcome = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert outcome.returncode == 0, outcome.stderr

    known = set(re.findall(r"--[a-z][a-z-]*", outcome.stdout))
    given = {word for word in words if word.startswith("--")}

    assert given <= known, f"{user}: `fairlead {words[0]}` has no {', '.join(sorted(given - known))}"


def test_framework_runs_an_example_of_the_repository() -> None:
    _, script = SERVICES["framework"]["entrypoint"]
    assert (REPOSITORY / script.removeprefix("/opt/fairlead/")).is_file()


def test_image_copies_and_builds_from_paths_that_exist() -> None:
    ignored = (REPOSITORY / ".dockerignore").read_text()
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    sources = [source for line in copied for source in line.split() if source != "."]

    assert sources
    for source in sources:
        assert (REPOSITORY / source).exists(), f"Dockerfile copies {source}, which does not exist"
        assert f"!{source}\n" in ignored, f"Dockerfile copies {source}, which .dockerignore keeps out"
    for service in SERVICES.values():
        assert (REPOSITORY / service["build"]["context"] / "Dockerfile").exists()
