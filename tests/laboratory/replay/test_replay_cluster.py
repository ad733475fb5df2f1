"""A replay on a real cluster: master, agents and a process for each task."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from fairlead_lab.replay.cluster_watch import ClusterWatch
from fairlead_lab.replay.replay import ReplaySettings, as_document, replay
from fairlead_lab.workloads.sample import SAMPLE, SAMPLE_NODES
from fairlead_local.cluster import LocalCluster
from fairlead_sdk.errors import Refused
from fairlead_sim.workload import Selection

pytestmark = pytest.mark.shell

SETTINGS = ReplaySettings(
    trace=SAMPLE,
    nodes=SAMPLE_NODES,
    selection=Selection(jobs_max=8),
    speedup=600,
    agents=2,
    resources="cpus=4,mem=16GiB",
    limit_s=30,
)


def sleeps_of_this_process() -> list[int]:
    return [child.pid for child in psutil.Process().children(recursive=True) if child.name() == "sleep"]


async def test_sample_runs_to_its_end_under_two_policies_on_a_cluster_of_its_own(tmp_path: Path) -> None:
    settings = replace(SETTINGS, policies=("drf", "slots:average"), out=tmp_path)
    console = Console(file=io.StringIO(), record=True, width=200)

    outcome = await replay(settings, console)

    drf, slots = outcome.results
    assert outcome.is_whole
    assert drf.policy == "drf"
    assert re.fullmatch(r"slots:\d+", slots.policy)
    for report in (drf, slots):
        assert report.jobs_finished == 8
        assert report.tasks_finished == outcome.plan.tasks
        assert report.decisions >= report.tasks
        assert {user.user for user in report.users} == set(outcome.plan.roles)
        assert all(user.mean_share > 0 for user in report.users)
    # DRF never promises what an agent does not have.
    assert drf.crowded_fraction == 0
    assert (tmp_path / "tasks-drf.csv").read_text().count("FINISHED") == drf.tasks
    shares = tmp_path / f"shares-{slots.policy.replace(':', '-')}.csv"
    assert shares.read_text().startswith("at_ms,role,")
    assert "drf: " in console.export_text()
    assert json.loads(json.dumps(as_document(settings, outcome)))["runs"][0]["policy"] == "drf"
    assert sleeps_of_this_process() == []


async def test_replay_on_a_live_cluster_leaves_its_policy_as_it_was() -> None:
    async with LocalCluster(agents=2, resources="cpus=4,mem=16GiB", policy="fifo") as cluster:
        settings = replace(SETTINGS, master=cluster.address, policies=("drf",))
        quiet = Console(file=io.StringIO())

        outcome = await replay(settings, quiet)
        with pytest.raises(Refused):
            await replay(replace(settings, policies=("no-such-policy",)), quiet)

        async with ClusterWatch(cluster.address) as watch:
            assert outcome.is_whole
            assert await watch.policy() == "fifo"
            assert (await watch.counters()).tasks_active == 0


async def test_run_over_its_limit_is_cut_short_and_leaves_nothing_running() -> None:
    settings = replace(SETTINGS, speedup=1, policies=("drf",), limit_s=1)
    console = Console(file=io.StringIO())
    async with LocalCluster(agents=1, resources="cpus=4,mem=16GiB") as cluster:
        outcome = await replay(replace(settings, master=cluster.address), console)

        async with ClusterWatch(cluster.address) as watch:
            assert (await watch.counters()).tasks_active == 0

    (report,) = outcome.reports
    assert not report.result.is_complete
    assert not outcome.is_whole
    assert report.tasks_unended == report.result.tasks
