"""The programs of README and docs/sdk.md run as they stand, and print what the page says."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fairlead_local.cluster import LocalCluster
from fairlead_sdk import OperatorClient

pytestmark = pytest.mark.shell

REPOSITORY: Final = Path(__file__).resolve().parents[2]
LIMIT_S: Final = 60

_PROGRAM: Final = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def programs(document: str) -> list[tuple[str, str]]:
    """(program, what it prints) of each block of Python, in order; nothing printed where the page shows nothing."""
    return _PROGRAM.findall((REPOSITORY / document).read_text())


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(agents=2, resources="cpus=2,mem=1GiB", isolation="none") as local:
        yield local


def started(program: str, cluster: LocalCluster, directory: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=directory,
        env={**os.environ, "FAIRLEAD_MASTER": cluster.address},
        stdout=subprocess.PIPE,
        text=True,
    )


def printed(process: "subprocess.Popen[str]") -> str:
    out, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, out
    return out


@pytest.mark.parametrize("number", range(len(programs("docs/sdk.md"))))
def test_a_program_on_the_sdk_page_prints_what_stands_below_it(
    number: int, cluster: LocalCluster, tmp_path: Path
) -> None:
    program, expected = programs("docs/sdk.md")[number]

    assert printed(started(program, cluster, tmp_path)) == expected


async def test_the_resumable_program_runs_nothing_twice_when_it_is_killed(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    [(program, expected)] = [
        each for each in programs("docs/sdk.md") if "framework_id=framework_id" in each[0]
    ]
    first = started(program, cluster, tmp_path)
    async with OperatorClient(cluster.address) as client:
        framework_id = await id_with_tasks(client, tmp_path / "framework-id")
        first.kill()
        assert first.communicate(timeout=LIMIT_S)[0] == "", "it ended before it was killed"

        assert printed(started(program, cluster, tmp_path)) == expected
        ids = [task.task_id async for task in client.tasks(framework_id=framework_id)]
        assert ids == ["part-0", "part-1"]


async def id_with_tasks(client: OperatorClient, file: Path) -> str:
    """The framework id in the file, once both its tasks run."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            framework_id = file.read_text() if file.exists() else ""
            if framework_id:
                tasks = [task async for task in client.tasks(framework_id=framework_id, states=["RUNNING"])]
                if len(tasks) == 2:
                    return framework_id
            await asyncio.sleep(0.02)


def test_the_program_in_the_readme_names_a_host_for_each_task(cluster: LocalCluster, tmp_path: Path) -> None:
    [(program, _)] = programs("README.md")

    lines = printed(started(program, cluster, tmp_path)).splitlines()

    host = os.uname().nodename
    assert [line.split()[1:] for line in lines] == [["FINISHED", str(n), "on", host] for n in range(5)]
