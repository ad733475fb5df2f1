"""The demonstration on a real cluster: its first part, and what an interrupt leaves behind."""

import io
import signal
import subprocess
import sys

import psutil
import pytest
from rich.console import Console

from fairlead_lab.demos import paper_example
from fairlead_lab.demos.demo import play_example
from fairlead_lab.replay.cluster_watch import ClusterWatch
from fairlead_local.cluster import LocalCluster

pytestmark = pytest.mark.shell


async def test_papers_example_comes_to_rest_at_three_and_two_tasks() -> None:
    """Ghodsi et al., "Dominant Resource Fairness", section 4.1."""
    console = Console(file=io.StringIO(), record=True, width=200)

    assert await play_example(console)

    shown = console.export_text()
    assert "A <1 CPU, 4 GB>: 4 tasks, share 0.889 mem" in shown
    assert "A <1 CPU, 4 GB>: 3 tasks, share 0.667 mem   B <3 CPU, 1 GB>: 2 tasks, share 0.667 cpus" in shown
    assert "At rest after" in shown


async def test_cluster_that_does_not_share_so_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """First come, first served: A keeps all it can hold, so the example must not come out."""
    monkeypatch.setattr(paper_example, "TIME_LIMIT_S", 4.5)
    async with (
        LocalCluster(agents=1, resources=paper_example.RESOURCES, policy="fifo") as cluster,
        ClusterWatch(cluster.address) as watch,
    ):
        standing = await paper_example.run_example(cluster.address, watch, lambda _: None)

        assert standing is None
        assert (await watch.counters()).tasks_active == 0


def test_interrupted_demonstration_leaves_no_process() -> None:
    command = [sys.executable, "-u", "-m", "fairlead_cli.main", "demo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as demo:
        try:
            assert demo.stdout is not None
            for line in demo.stdout:
                if "4 tasks, share 0.889" in line:
                    break
            family = psutil.Process(demo.pid).children(recursive=True)

            demo.send_signal(signal.SIGINT)
            demo.stdout.read()

            assert demo.wait(30) == 130
            assert len(family) >= 2
            _, alive = psutil.wait_procs(family, timeout=5)
            assert alive == []
        finally:
            demo.kill()
