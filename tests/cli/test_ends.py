"""However a command that starts processes is ended, it leaves none of them behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.shell

SCENARIO = """
nodes = "2:cpus=4,mem=8GiB"
policies = ["drf"]
seeds = 4
[arrivals]
process = "poisson"
gap = "4s"
until = "100h"
[[classes]]
name = "query"
demand = { cpus = 1, mem = "1GiB" }
duration = { distribution = "exponential", mean = "20s" }
"""

TRACE = "submit_s,job_id,user_id,stage,n_tasks,cpus,mem_mb,gpus,duration_s\n0,a,ann,0,4,1,1024,0,900\n"

COMMANDS = {
    "up": ("up --agents 1 --port 0", 3),
    "demo": ("demo", 4),
    "replay": ("replay --trace trace.csv --agents 1", 5),
    "bench slots": ("bench slots --agents 1 --job-tasks 4 --task-seconds 900", 6),
    "bench cluster": ("bench cluster --part control-path", 4),
    "bench cluster, up": ("bench cluster --part footprint", 5),
    "simulate": ("simulate --scenario long.toml --processes 2", 4),
    "reproduce": ("reproduce drf-fig9 drf-fig10 drf-fig13 --processes 2", 4),
}
"""Each with how many processes there are when it is at work: those of a pool have a helper of the standard library beside."""


@pytest.mark.parametrize("name", list(COMMANDS))
def test_signal_to_the_command_alone_ends_all_it_started(tmp_path: Path, name: str) -> None:
    with _at_work(name, tmp_path) as command:
        command.send_signal(signal.SIGTERM)
        _, said = command.communicate(timeout=60)

    assert command.returncode == (0 if name == "up" else 130)
    assert "Traceback" not in said
    _assert_gone(tmp_path)
    assert not list(tmp_path.glob("fairlead-*"))


@pytest.mark.parametrize("name", ["up", "bench cluster", "simulate"])
def test_all_a_command_started_ends_when_it_is_killed(tmp_path: Path, name: str) -> None:
    with _at_work(name, tmp_path) as command:
        command.kill()

    _assert_gone(tmp_path)


@contextmanager
def _at_work(name: str, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    (folder / "long.toml").write_text(SCENARIO)
    (folder / "trace.csv").write_text(TRACE)
    words, processes = COMMANDS[name]
    environment = {key: value for key, value in os.environ.items() if key != "FAIRLEAD_MASTER"}
    with subprocess.Popen(
        [sys.executable, "-m", "fairlead_cli.main", *words.split()],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        # Known by this: executors and tasks have sessions of their own, and orphans have another parent.
        env={**environment, "TMPDIR": str(folder)},
    ) as command:
        try:
            while len(_family(folder)) < processes:
                assert command.poll() is None, command.communicate()[1]
                time.sleep(0.1)
            yield command
        finally:
            command.kill()


def _family(folder: Path) -> list[int]:
    """The processes whose temporary files are to be in a folder: a command of the test, and all it has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if b"TMPDIR=" + os.fsencode(folder) in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # gone meanwhile, or somebody else's
            continue
    return found


def _assert_gone(folder: Path) -> None:
    end = time.monotonic() + 60
    while left := _family(folder):
        assert time.monotonic() < end, f"left behind: {left}"
        time.sleep(0.1)
