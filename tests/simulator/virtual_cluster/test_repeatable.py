"""One seed, one output, byte for byte, whatever order hashes have in a process."""

import os
import subprocess
import sys
from hashlib import sha256
from random import Random

import pytest

from fairlead_bench.levels import shared_demands
from fairlead_master.allocation.api import AllocationSettings
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.pool.simulation import Pool
from fairlead_sim.virtual_cluster.trace_cluster import TraceCluster
from tests.simulator.diary import Diary

POLICIES = ("drf", "pf", "bbf", "slots:8")
LEVELS = {"pool": Pool, "cluster": TraceCluster}


def told(level: str) -> str:
    """A digest of everything that a simulation tells of a full cluster, a line for each policy."""
    nodes = [Node(name=f"n{number}", total=(16_000, 64 * 2**30, 0, 0)) for number in range(10)]
    lines = []
    for policy in POLICIES:
        diary = Diary()
        simulation = LEVELS[level](
            Engine(Random(7), now_ms=0), nodes, diary, settings=AllocationSettings(policy=policy)
        )
        simulation.feed(shared_demands(7, 10))
        simulation.run()
        assert not simulation.unfinished
        lines.append(f"{policy} {sha256(repr(diary.lines).encode()).hexdigest()}\n")
    return "".join(lines)


@pytest.mark.parametrize("level", LEVELS)
def test_a_run_is_the_same_under_any_hash_seed(level: str) -> None:
    def run(hash_seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", __name__, level],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        ).stdout

    first = run("1")

    assert [line.split()[0] for line in first.splitlines()] == list(POLICIES)
    assert run("2") == first


if __name__ == "__main__":
    sys.stdout.write(told(sys.argv[1]))
