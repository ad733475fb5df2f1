"""`fairlead demo` and `fairlead replay`: real tasks on a cluster, of an example or of a trace."""

import os
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from fairlead_cli.addresses import ADDRESS, json_option
from fairlead_cli.agent import ISOLATIONS
from fairlead_cli.errors import expected_errors
from fairlead_cli.parameters import DURATION, RESOURCES, trace_options
from fairlead_local.end_signals import ended_as_by_ctrl_c


@click.command()
def demo() -> int:
    """Show fair sharing at work on a local cluster.

    The example of the paper on dominant resource fairness, live; then one small workload under DRF and under slots.
    Ends by itself in under two minutes and leaves nothing behind.
    """
    from fairlead_lab.demos.demo import run_demo

    with ended_as_by_ctrl_c(), expected_errors():
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
@trace_options
@json_option
@click.pass_context
def replay(
    ctx: click.Context,
    /,
    *,
    as_json: bool,
    default_duration_ms: int | None,
    jobs_max: int | None,
    limit_ms: int | None,
    master: str | None,
    skip_without_duration: bool,
    user_column: str,
    **given: Any,
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
        options=TraceOptions(
            user_column=user_column,
            default_duration_ms=default_duration_ms,
            skip_without_duration=skip_without_duration,
        ),
        selection=Selection(jobs_max=jobs_max),
        master=address,
        limit_s=None if limit_ms is None else limit_ms / 1000,
        **given,
    )
    with ended_as_by_ctrl_c(), expected_errors(address):
        return run_replay(settings, as_json=as_json)
