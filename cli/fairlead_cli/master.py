"""`fairlead master`: flags to `MasterOptions`."""

from pathlib import Path
from typing import Any

import click

from fairlead_cli.addresses import ADDRESS, DEFAULT_MASTER
from fairlead_cli.parameters import DEMAND, DEMAND_HELP, DURATION, LOG_LEVEL, PLACEMENT_HELP, child_option
from fairlead_cli.telemetry_options import broker_option, metrics_option
from fairlead_telemetry.broker import BrokerOptions


@click.command()
@click.option(
    "--listen", type=ADDRESS, default=DEFAULT_MASTER, show_default=True, help="HOST:PORT to serve at."
)
@click.option(
    "--insecure", is_flag=True, help="Allow --listen beyond this host, without TLS and authentication."
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for what must survive a restart [default: nothing survives]",
)
@click.option(
    "--policy", help="Who is served next: drf, slots:K, fifo, … [default: what --state remembers, or drf]"
)
@click.option("--placement", help=PLACEMENT_HELP)
@click.option(
    "--when-head-does-not-fit",
    type=click.Choice(["skip", "freeze"]),
    help="Serve the next one that fits, or nobody until the head does.",
)
@click.option("--demand", type=DEMAND, help=DEMAND_HELP)
@click.option(
    "--reservation-after",
    "reservation_after_ms",
    type=DURATION,
    help="How long work too large for what is free may be passed over before an agent is kept for it, such as 10s.",
)
@click.option("--offer-lease", "offer_lease_ms", type=DURATION, help="How long an offer stands, such as 5s.")
@click.option(
    "--agent-timeout",
    "agent_timeout_ms",
    type=DURATION,
    help="From a lost session to UNREACHABLE, such as 75s.",
)
@click.option(
    "--recovery-wait",
    "recovery_wait_ms",
    type=DURATION,
    help="After a restart, how long to wait for known agents.",
)
@click.option(
    "--failover-timeout-max",
    "failover_timeout_max_ms",
    type=DURATION,
    help="The longest a framework's tasks may outlive its session, whatever it wishes [default: 7d]",
)
@click.option(
    "--custom-resource",
    "custom_resources",
    metavar="NAME",
    multiple=True,
    help="A resource of your own; repeatable.",
)
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write every event to this file, for `fairlead replay-recording`.",
)
@metrics_option
@broker_option
@click.option("--log-level", type=LOG_LEVEL, default="info", show_default=True)
@child_option
def master(*, metrics: str | None, broker: BrokerOptions | None, **given: Any) -> int:
    """Run a master.

    It aggregates the resources of its agents and shares them out to frameworks; SIGTERM ends it. With
    --state tasks run on while it is down: agents and frameworks come back to the next one at this address by
    themselves. Without it the next one knows no framework and ends their tasks.
    """
    from fairlead_master.cli import MasterOptions, run_master

    return run_master(MasterOptions(mqtt=broker, metrics=metrics or "", **given))
