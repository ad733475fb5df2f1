"""Replays a cluster trace as real tasks on a live cluster, under one policy or several, and reports how fair it was.

Everything is set in ``ReplaySettings``; ``replay`` plays and gives the reports, ``run_replay`` is the command behind
``fairlead replay``. What is modelled: demands and times are scaled (``scaling``), each task sleeps for its run time, and
gangs are independent tasks. What is real: arrivals, offers, launches, processes and statuses of the cluster.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from fairlead_lab.metrics.records import RunRecord, write_run
from fairlead_lab.metrics.report import ReplayReport, build_report
from fairlead_lab.metrics.report_table import print_reports
from fairlead_lab.metrics.result import PolicyResult
from fairlead_lab.replay.cluster_watch import AgentView, ClusterWatch
from fairlead_lab.replay.replay_run import run_policy
from fairlead_lab.workloads.loading import load
from fairlead_lab.workloads.nodes import read_nodes
from fairlead_lab.workloads.plan import ReplayPlan, plan_replay, slots_for_largest, slots_on_average
from fairlead_lab.workloads.scaling import DURATION_FLOOR_MS, ScalingRule, largest_amounts, reference_node
from fairlead_lab.workloads.traces import TraceOptions
from fairlead_local.cluster import LocalCluster
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_sdk.clock import LoopClock
from fairlead_sdk.errors import MasterUnreachable, Refused
from fairlead_sim.workload import Job, Selection

SLOTS_ON_AVERAGE: Final = "slots:average"
"""Stands for ``slots:K`` with K from ``slots_on_average`` of the plan."""
SLOTS_FOR_LARGEST: Final = "slots:largest"
"""Stands for ``slots:K`` with K from ``slots_for_largest`` of the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What to replay, on what, and how."""

    trace: Path
    nodes: Path | None = None
    """The trace's nodes, whose largest becomes an agent; None takes the largest demands instead."""
    options: TraceOptions = field(default_factory=TraceOptions)
    selection: Selection = field(default_factory=Selection)
    speedup: float = 1.0
    duration_floor_ms: int = DURATION_FLOOR_MS
    policies: tuple[str, ...] = ()
    """One run each, in this order; empty is one run under the policy in force. ``slots:average`` and
    ``slots:largest`` choose K from the work."""
    master: str | None = None
    """HOST:PORT of a live cluster; None starts a local one for the time of the replay."""
    agents: int = 8
    """Of the local cluster."""
    resources: str = "cpus=4,mem=8GiB"
    """Of each agent of the local cluster; declared, not needed, since sleeps use nothing."""
    isolation: str | None = None
    """Of the local cluster's agents; None is their default."""
    limit_s: float | None = None
    """Ends each run after this long; its report then says that it was cut short."""
    out: Path | None = None
    """A folder for the records of every task and sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOutcome:
    """What a replay gives: the plan it played and a report of each run."""

    plan: ReplayPlan
    agents: list[Vector]
    reference: Vector
    rows_without_duration: int
    reports: list[ReplayReport]

    @property
    def results(self) -> list[PolicyResult]:
        """What a run came to, by the measures that simulations have too."""
        return [report.result for report in self.reports]

    @property
    def is_whole(self) -> bool:
        """Whether every run came to its end with every job finished."""
        return all(result.is_complete and result.jobs_finished == result.jobs for result in self.results)


def run_replay(settings: ReplaySettings, *, as_json: bool = False) -> int:
    """Replay and print; gives the exit code: 0, or 1 if a run was cut short or a job did not finish.

    Progress goes to standard error, the report to standard output. An interrupt kills what runs and is raised on.

    Raises:
        TraceError, WorkloadError: the trace or the settings cannot be used.
        FairleadError: the cluster refuses, or is gone.
    """
    outcome = asyncio.run(replay(settings, Console(stderr=True)))
    if as_json:
        json.dump(as_document(settings, outcome), sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        print_reports(Console(width=_width(len(outcome.reports))), outcome.reports)
    return 0 if outcome.is_whole else 1


def _width(reports: int) -> int | None:
    """A file or pipe has no width of its own: room for a column a report."""
    return None if sys.stdout.isatty() else 60 + 40 * reports


async def replay(settings: ReplaySettings, console: Console) -> ReplayOutcome:
    """Replay the trace under each policy and give the reports; see ``run_replay`` for errors.

    The policy a live cluster had before is set again at the end.
    """
    loaded = load(settings.trace, format="normalised", selection=settings.selection, options=settings.options)
    jobs = loaded.jobs
    nodes = [node.total for node in read_nodes(settings.nodes)] if settings.nodes else []
    reference = reference_node((bundle for job in jobs for bundle in job.bundles), nodes)
    async with _cluster(settings) as address, ClusterWatch(address) as watch:
        agents = await watch.agents(here_unix_ms=LoopClock().unix_ms())
        if not agents:
            raise Refused("NO_AGENTS", f"the master at {address} has no active agent to replay on")
        rule = ScalingRule(
            reference=reference,
            agents=tuple(agent.total for agent in agents),
            speedup=settings.speedup,
            duration_floor_ms=settings.duration_floor_ms,
        )
        plan = plan_replay(jobs, rule, source=str(settings.trace))
        describe_plan(console, plan, rule, jobs)
        runs = await _run_all(watch, plan, agents, settings, console)
    return ReplayOutcome(
        plan=plan,
        agents=[agent.total for agent in agents],
        reference=reference,
        rows_without_duration=loaded.rows_without_duration,
        reports=[build_report(run) for run in runs],
    )


async def _run_all(
    watch: ClusterWatch,
    plan: ReplayPlan,
    agents: list[AgentView],
    settings: ReplaySettings,
    console: Console,
) -> list[RunRecord]:
    before = await watch.policy()
    runs = []
    try:
        for name in settings.policies or (before,):
            policy = resolve_policy(name, plan, largest_amounts(agent.total for agent in agents))
            run = await run_policy(
                watch, plan, policy, agents=agents, console=console, limit_s=settings.limit_s
            )
            runs.append(run)
            if settings.out is not None:
                await asyncio.to_thread(write_run, settings.out, run)
    finally:
        if settings.master is not None:
            # What went wrong before says more than a master that is not there to be set right.
            with suppress(MasterUnreachable):
                await watch.set_policy(before)
    return runs


def resolve_policy(name: str, plan: ReplayPlan, agent: Vector) -> str:
    """The policy a name stands for: K of ``slots:average`` and ``slots:largest`` comes from the plan."""
    if name == SLOTS_ON_AVERAGE:
        return f"slots:{slots_on_average(plan.work, agent)}"
    if name == SLOTS_FOR_LARGEST:
        return f"slots:{slots_for_largest(plan.work, agent)}"
    return name


@asynccontextmanager
async def _cluster(settings: ReplaySettings) -> AsyncIterator[str]:
    if settings.master is not None:
        yield settings.master
        return
    cluster = LocalCluster(agents=settings.agents, resources=settings.resources, isolation=settings.isolation)
    async with cluster:
        yield cluster.address


def describe_plan(console: Console, plan: ReplayPlan, rule: ScalingRule, jobs: list[Job]) -> None:
    """Say what will be replayed, and what the scaling does to it."""
    kinds, counts = ResourceKinds(), plan.counts
    left_out = ""
    if counts.left_out:
        fit = "task fits" if counts.left_out == 1 else "tasks fit"
        left_out = f", {counts.left_out} {fit} nowhere (jobs {', '.join(counts.left_out_jobs)})"
    added = counts.floor_added_ms / max(1, counts.duration_ms)
    console.print(
        f"{len(plan.jobs)} of {len(jobs)} jobs, {_counted(plan.tasks, 'task')} of {_counted(len(plan.roles), 'user')}"
        f" on {_counted(len(rule.agents), 'agent')}{left_out}\n"
        f"a node of {kinds.format(rule.reference)} becomes an agent of {kinds.format(rule.target)}: "
        f"{_counted(counts.shrunken, 'demand')} shrunken to a whole agent, {counts.raised} raised to the least amount\n"
        f"time runs {rule.speedup:g} times as fast: arrivals in {plan.last_arrival_ms / 1000:.0f} s, "
        f"{_counted(counts.floored, 'run time')} raised to {rule.duration_floor_ms} ms ({added:.2%} more work); "
        f"tasks of bundles that run independently: {counts.gang_tasks}",
        highlight=False,
        soft_wrap=True,
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def as_document(settings: ReplaySettings, outcome: ReplayOutcome) -> dict[str, Any]:
    """All of a replay as plain data for JSON: settings, scaling and reports."""
    given = asdict(replace(settings, trace=Path(settings.trace.name)))
    return {
        "settings": {name: str(value) if isinstance(value, Path) else value for name, value in given.items()},
        "users": len(outcome.plan.roles),
        "jobs": len(outcome.plan.jobs),
        "tasks": outcome.plan.tasks,
        "last_arrival_ms": outcome.plan.last_arrival_ms,
        "agents": [ResourceKinds().as_units(agent) for agent in outcome.agents],
        "reference_node": ResourceKinds().as_units(outcome.reference),
        "rows_without_duration": outcome.rows_without_duration,
        "scaling": asdict(outcome.plan.counts),
        "runs": [report.as_json() for report in outcome.reports],
    }
