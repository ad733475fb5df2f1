"""`fairlead bench`: each command has the benchmarks measure, and prints the figures beside their targets and floors."""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from fairlead_cli.addresses import json_option
from fairlead_cli.errors import Failed, Invalid, expected_errors
from fairlead_cli.parameters import PLACEMENT_HELP
from fairlead_local.end_signals import ended_as_by_ctrl_c

if TYPE_CHECKING:
    from fairlead_bench.live_slots import SlotsOptions
    from fairlead_bench.rows import Row

Command = TypeVar("Command", bound=Callable[..., Any])

_SCALES: Final = ("full", "quick")
"""By whether it is to be quick."""


@click.group()
def bench() -> None:
    """Measure the allocator and the cluster.

    Each figure stands beside its target and beside what this machine could do at best, measured in the same run.
    """


def _bench_options(command: Command) -> Command:
    quick = click.option("--quick", is_flag=True, help="Smaller shapes, for a first look.")
    seed = click.option("--seed", type=int, default=1, show_default=True, help="Of everything random.")
    return quick(seed(json_option(command)))


def _measure(measure: "Callable[[], Sequence[Row]]", *, seed: int, as_json: bool) -> None:
    """Have figures measured, and print them under a header that says when and where it began."""
    from fairlead_bench.children import BenchFailed
    from fairlead_bench.rows import make_header, print_table, to_json

    header = make_header(seed=seed)
    try:
        with ended_as_by_ctrl_c(), expected_errors():
            rows = measure()
    except BenchFailed as error:
        raise Failed(str(error)) from error
    if as_json:
        print(to_json(header, rows))
    else:
        print_table(header, rows)


def _tell_turn(policy: str) -> None:
    if sys.stderr.isatty():
        print(f"watching {policy} …", file=sys.stderr)


@bench.command("allocation")
@_bench_options
def bench_allocation(*, as_json: bool, quick: bool, seed: int) -> None:
    """Measure decisions and cycles of the allocator by itself."""
    from fairlead_bench import allocation

    _measure(lambda: allocation.measure(seed, _SCALES[quick]), seed=seed, as_json=as_json)


@bench.command("multipliers")
@_bench_options
def bench_multipliers(*, as_json: bool, quick: bool, seed: int) -> None:
    """Measure the prices of proportional fairness: events, decisions, exactness, and exact answers from nothing."""
    from fairlead_bench import cold_solves, multipliers

    scale = _SCALES[quick]
    _measure(
        lambda: [*multipliers.measure(seed, scale), *cold_solves.measure(seed, scale)],
        seed=seed,
        as_json=as_json,
    )


@bench.command("simulator")
@click.option(
    "--trace",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Simulate this trace on 400 nodes of 16 cores and 32 GiB too.",
)
@_bench_options
def bench_simulator(*, as_json: bool, quick: bool, seed: int, trace: Path | None) -> None:
    """Measure both levels of simulation: tasks started or ended in a second of one core's time."""
    from fairlead_bench import levels

    _measure(lambda: levels.measure(seed, _SCALES[quick], trace), seed=seed, as_json=as_json)


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
    from fairlead_bench import live_policies
    from fairlead_bench.rows import make_header, print_header
    from fairlead_master.allocation.policies.names import EXAMPLES
    from fairlead_master.solvers.problem import SolverError

    header = make_header(seed=seed)
    try:
        with ended_as_by_ctrl_c(), expected_errors():
            # Without a name all there are, with an argument that suits the cluster.
            chosen = policies or EXAMPLES
            rows = live_policies.measure(chosen, seconds=seconds, seed=seed, head=head, tell=_tell_turn)
    except SolverError as error:
        raise Invalid(str(error)) from error
    if as_json:
        print(json.dumps({"header": header.as_dict(), "rows": [asdict(row) for row in rows]}, indent=2))
        return
    print_header(header)
    live_policies.print_rows(rows)


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
    from fairlead_master.allocation import placement as placements

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
    with expected_errors():
        placements.parse(placement)
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
    with ended_as_by_ctrl_c(), expected_errors():
        _slots(options, as_json=as_json)


def _slots(options: "SlotsOptions", *, as_json: bool) -> None:
    from fairlead_bench import live_slots
    from fairlead_bench.rows import make_header, print_header

    header = make_header(seed=options.seeds[0])
    rows = live_slots.measure(options, tell=_tell_turn)
    simulated = live_slots.simulate(options) if options.works else {}
    if as_json:
        beside = [
            {"policy": policy, "job_class": kind, "slowdown": slowdown, "runs": [asdict(run) for run in runs]}
            for (policy, kind, slowdown), runs in simulated.items()
        ]
        found = {"header": header.as_dict(), "rows": [asdict(row) for row in rows], "simulated": beside}
        print(json.dumps(found, indent=2))
        return
    print_header(header)
    live_slots.print_rows(rows, simulated=simulated)


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
@click.option(
    "--hq",
    metavar="PROGRAM",
    default=lambda: shutil.which("hq") or "",
    show_default="hq, if it is on PATH",
    help="Measure HyperQueue beside.",
)
@click.option(
    "--ray-python", metavar="PROGRAM", default="", help="Measure Ray beside, by a Python that can import it."
)
def bench_cluster(*, as_json: bool, parts: Sequence[str], quick: bool, seed: int, **given: Any) -> None:
    """Measure master, agents, SDK and commands as they run.

    The control path of one master under load, beside a bare gRPC server; tasks as real processes, through the SDK and from the
    shell, many and one at a time, with the memory that takes, beside bare loops of spawn and wait and beside xargs, HyperQueue and
    Ray where they are; start and idle CPU; and what a million tasks leave behind. Takes about fifteen minutes.
    """
    from fairlead_bench.cluster import PARTS, ClusterOptions, run_cluster

    options = ClusterOptions(parts=tuple(parts) or PARTS, is_quick=quick, **given)
    _measure(lambda: run_cluster(options), seed=seed, as_json=as_json)
