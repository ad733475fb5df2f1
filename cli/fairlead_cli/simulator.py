"""`fairlead demo`, `replay` and `bench`: thin commands over the simulator package, which does the work."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from fairlead_cli.addresses import ADDRESS, json_option
from fairlead_cli.agent import ISOLATIONS
from fairlead_cli.parameters import DURATION, PLACEMENT_HELP, RESOURCES
from fairlead_local.end_signals import ended_as_by_ctrl_c

Command = TypeVar("Command", bound=Callable[..., Any])


@contextmanager
def _expected_errors(master: str | None) -> Iterator[None]:
    """Turn what the simulator and the SDK raise into errors of one line."""
    from fairlead_cli.errors import Failed, Invalid, Refused, Unreachable
    from fairlead_lab.workloads.csv_rows import TraceError
    from fairlead_local.cluster import ClusterFailed, InvalidCluster
    from fairlead_sdk import errors as sdk_errors
    from fairlead_sim.workload import WorkloadError

    try:
        yield
    except (TraceError, WorkloadError, InvalidCluster) as error:
        raise Invalid(str(error)) from error
    except ClusterFailed as error:
        raise Failed(str(error)) from error
    except sdk_errors.MasterUnreachable as error:
        raise Unreachable(master or "the local cluster", error.cause) from error
    except sdk_errors.Refused as error:
        raise Refused(str(error)) from error
    except sdk_errors.FairleadError as error:
        raise Failed(str(error)) from error


@click.command()
def demo() -> int:
    """Show fair sharing at work on a local cluster.

    The example of the paper on dominant resource fairness, live; then one small workload under DRF and under slots.
    Ends by itself in under two minutes and leaves nothing behind.
    """
    from fairlead_lab.demos.demo import run_demo

    with ended_as_by_ctrl_c(), _expected_errors(None):
        return run_demo()


@click.command()
@click.option(
    "--trace",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="CSV, may be gzipped.",
)
@click.option(
    "--nodes",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The trace's nodes; its largest becomes an agent [default: the largest demands do]",
)
@click.option(
    "--speedup", type=float, default=1.0, show_default=True, help="How many times as fast time runs."
)
@click.option("--limit", "jobs_max", type=click.IntRange(1), metavar="N", help="Only the first N jobs.")
@click.option(
    "--policy",
    "--compare",
    "policies",
    multiple=True,
    help="drf, slots:K, fifo, …, or slots:average and slots:largest, which choose K from the work; repeated: one run "
    "each, compared [default: one run under the policy in force]",
)
@click.option(
    "--agents", type=click.IntRange(1, 200), default=8, show_default=True, help="Of the local cluster."
)
@click.option(
    "--resources",
    type=RESOURCES,
    default="cpus=4,mem=8GiB",
    show_default=True,
    help="Of each agent of the local cluster; declared, not needed, since the tasks sleep.",
)
@click.option("--isolation", type=ISOLATIONS, help="Of the local cluster's agents.")
@click.option(
    "--master",
    type=ADDRESS,
    help="Replay on this live cluster [default: FAIRLEAD_MASTER, unless --agents is given; else a local cluster]",
)
@click.option("--time-limit", "limit_ms", type=DURATION, help="End each run after this long.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for the record of every task."
)
@click.option(
    "--user-column", default="user_id", show_default=True, help="Column of the trace that names the owner."
)
@click.option("--default-duration", "default_duration_ms", type=DURATION, help="For rows without a run time.")
@click.option(
    "--skip-without-duration",
    is_flag=True,
    help="Leave out rows without a run time [default: they are an error]",
)
@json_option
@click.pass_context
def replay(
    ctx: click.Context,
    *,
    agents: int,
    as_json: bool,
    default_duration_ms: int | None,
    isolation: str | None,
    jobs_max: int | None,
    limit_ms: int | None,
    master: str | None,
    nodes: Path | None,
    out: Path | None,
    policies: Sequence[str],
    resources: str,
    skip_without_duration: bool,
    speedup: float,
    trace: Path,
    user_column: str,
) -> int:
    """Run a trace as real tasks.

    One framework for each user of the trace; each task sleeps for its run time, compressed by --speedup, with its
    demand scaled to the cluster. Prints how fair it was. Without --master a local cluster is started for it.
    """
    from fairlead_lab.replay.replay import ReplaySettings, run_replay
    from fairlead_lab.workloads.traces import TraceOptions
    from fairlead_sim.workload import Selection

    address = master or ctx.find_root().params["master"]
    if address is None and ctx.get_parameter_source("agents") is not ParameterSource.COMMANDLINE:
        address = os.environ.get("FAIRLEAD_MASTER")
    settings = ReplaySettings(
        trace=trace,
        nodes=nodes,
        options=TraceOptions(
            user_column=user_column,
            default_duration_ms=default_duration_ms,
            skip_without_duration=skip_without_duration,
        ),
        selection=Selection(jobs_max=jobs_max),
        speedup=speedup,
        policies=tuple(policies),
        master=address,
        agents=agents,
        resources=resources,
        isolation=isolation,
        limit_s=None if limit_ms is None else limit_ms / 1000,
        out=out,
    )
    with ended_as_by_ctrl_c(), _expected_errors(address):
        return run_replay(settings, as_json=as_json)


@click.group()
def bench() -> None:
    """Measure the allocator and the cluster.

    Each figure stands beside its target and beside what this machine could do at best, measured in the same run.
    """


def _bench_options(command: Command) -> Command:
    quick = click.option("--quick", is_flag=True, help="Smaller shapes, for a first look.")
    seed = click.option("--seed", type=int, default=1, show_default=True, help="Of everything random.")
    return quick(seed(json_option(command)))


@bench.command("allocation")
@_bench_options
def bench_allocation(*, as_json: bool, quick: bool, seed: int) -> None:
    """Measure decisions and cycles of the allocator by itself."""
    from fairlead_cli import benchmarks

    benchmarks.allocation(seed=seed, is_quick=quick, as_json=as_json)


@bench.command("multipliers")
@_bench_options
def bench_multipliers(*, as_json: bool, quick: bool, seed: int) -> None:
    """Measure the prices of proportional fairness: events, decisions, exactness, and exact answers from nothing."""
    from fairlead_cli import benchmarks

    benchmarks.multipliers(seed=seed, is_quick=quick, as_json=as_json)


@bench.command("simulator")
@click.option(
    "--trace",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Simulate this trace on 400 nodes of 16 cores and 32 GiB too.",
)
@_bench_options
def bench_simulator(*, as_json: bool, quick: bool, seed: int, trace: Path | None) -> None:
    """Measure both levels of simulation: tasks started or ended in a second of one core's time."""
    from fairlead_cli import benchmarks

    benchmarks.simulator(seed=seed, is_quick=quick, as_json=as_json, trace=trace)


@bench.command("policies")
@click.option("--policy", "policies", multiple=True, help="Only this; repeatable [default: all]")
@click.option(
    "--seconds", type=click.FloatRange(1), default=20.0, show_default=True, help="Measured for each policy."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the lengths of tasks.")
@click.option(
    "--when-head-does-not-fit",
    "head",
    type=click.Choice(("skip", "freeze")),
    default="skip",
    show_default=True,
    help="As for a master.",
)
@json_option
def bench_policies(*, as_json: bool, head: str, policies: Sequence[str], seconds: float, seed: int) -> None:
    """Watch each policy on a live cluster, beside the exact solver's answer.

    Four frameworks of different demands compete for three agents with real processes that sleep; the policy is
    changed on the running cluster.
    """
    from fairlead_cli import benchmarks

    with ended_as_by_ctrl_c(), _expected_errors(None):
        benchmarks.policies(policies, seconds=seconds, seed=seed, head=head, as_json=as_json)


@bench.command("slots")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="Only this; repeatable [default: drf, slots:3 to slots:6, max-min:cpus]",
)
@click.option(
    "--tasks",
    type=click.Choice(["auto", "work", "sleep"]),
    default="auto",
    show_default=True,
    help="What tasks do: work, on hosts whose CPU and memory limits hold (needs cgroups), or sleep; auto works if it can.",
)
@click.option("--placement", default="align", help=f"{PLACEMENT_HELP} Without a seed, those of the runs.")
@click.option(
    "--agents", type=click.IntRange(1, 200), help="How many hosts [default: 12 that work, 48 that sleep]"
)
@click.option(
    "--seconds", type=click.FloatRange(1), help="For each policy and seed [default: 200; 60 asleep]"
)
@click.option(
    "--task-seconds",
    "task_s",
    type=click.FloatRange(0.05),
    help="Mean length of a task that has all it declares [default: 10; 3 asleep]",
)
@click.option("--job-tasks", type=click.IntRange(1, 10_000), help="[default: 20; 80 asleep]")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the lengths of tasks.")
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=1,
    metavar="N",
    help="So many runs of each policy, with seeds that count up; means get confidence intervals.",
)
@json_option
def bench_slots(
    *,
    agents: int | None,
    as_json: bool,
    job_tasks: int | None,
    placement: str,
    policies: Sequence[str],
    seconds: float | None,
    seed: int,
    seeds: int,
    task_s: float | None,
    tasks: str,
) -> None:
    """Run section 7.2 of the DRF paper live: fair sharing against slots.

    Hosts of 8 CPUs and 6 GiB, four users with jobs of small tasks and four with jobs of large ones; real processes. Counts
    the jobs done and how long they took, under each policy. Tasks that work are held to a small part of a CPU and of the memory,
    and so are hosts; what the kernel kills for memory is run again. Beside stands a simulation of the same.
    """
    from fairlead_bench import host_groups, live_slots
    from fairlead_cli import benchmarks
    from fairlead_cli.errors import Failed, Invalid
    from fairlead_master.allocation import placement as placements
    from fairlead_master.allocation.api import AllocationError

    why_not = "" if tasks == "sleep" else host_groups.why_not()
    if tasks == "work" and why_not:
        raise Failed(
            f"--tasks work: expected to limit hosts with cgroups, which is not possible here: {why_not}"
        )
    if why_not:
        click.echo(
            f"fairlead bench slots: limits of hosts do not hold here ({why_not}): tasks sleep, a crowded host costs nothing, and what "
            "is measured is only what slots cost by leaving places empty",
            err=True,
        )
    works = tasks != "sleep" and not why_not
    scale = live_slots.WORKING if works else live_slots.SLEEPING
    try:
        placements.parse(placement)
    except AllocationError as error:
        raise Invalid(str(error)) from error
    options = live_slots.SlotsOptions(
        policies=tuple(policies) or live_slots.POLICIES,
        placement=placement,
        scale=replace(
            scale,
            agents=agents or scale.agents,
            job_tasks=job_tasks or scale.job_tasks,
            task_s=task_s or scale.task_s,
            seconds=seconds or scale.seconds,
        ),
        works=works,
        seeds=range(seed, seed + seeds),
    )
    with ended_as_by_ctrl_c(), _expected_errors(None):
        benchmarks.slots(options, as_json=as_json)


@bench.command("cluster")
@_bench_options
@click.option(
    "--part",
    "parts",
    type=click.Choice(("control-path", "processes", "footprint", "memory")),
    multiple=True,
    help="Measure only this; repeatable.",
)
@click.option(
    "--profile",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Gets a sampled profile of the master under load.",
)
def bench_cluster(
    *, as_json: bool, parts: Sequence[str], profile: Path | None, quick: bool, seed: int
) -> None:
    """Measure master, agents and SDK as they run.

    The control path of one master under load, beside a bare gRPC server; tasks as real processes, beside bare loops
    of spawn and wait; start, memory and idle CPU; and what a million tasks leave behind. Takes about ten minutes.
    """
    from fairlead_cli import benchmarks

    with ended_as_by_ctrl_c(), _expected_errors(None):
        benchmarks.cluster(seed=seed, is_quick=quick, as_json=as_json, parts=parts, profile=profile)
