"""`fairlead up`: a cluster on this host for as long as the command runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fairlead_cli.addresses import DEFAULT_PORT
from fairlead_cli.agent import ISOLATIONS
from fairlead_cli.parameters import DEMAND, DEMAND_HELP, PAIR, PLACEMENT_HELP, RESOURCES, child_option
from fairlead_cli.telemetry_options import broker_words_option


@click.command()
@click.option("--agents", type=click.IntRange(1, 200), default=3, show_default=True, help="How many agents.")
@click.option(
    "--resources",
    type=RESOURCES,
    help="Of each agent, such as cpus=4,mem=8GiB [default: its part of this host, at least 2 cores and 1GiB]",
)
@click.option("--attribute", "attributes", type=PAIR, multiple=True, help="Of each agent; repeatable.")
@click.option("--policy", help="Who is served next: drf, slots:K, fifo, …")
@click.option("--placement", help=PLACEMENT_HELP)
@click.option("--demand", type=DEMAND, help=DEMAND_HELP)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Of the master; 0 chooses a free one.",
)
@click.option(
    "--state",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep state, sandboxes and logs in this directory [default: a temporary one, removed at the end]",
)
@broker_words_option
@click.option("--isolation", type=ISOLATIONS, help="What holds tasks to their limits [default: auto]")
@child_option
def up(
    *,
    resources: str | None,
    attributes: Sequence[tuple[str, str]],
    policy: str | None,
    placement: str | None,
    telemetry: Sequence[str],
    **given: Any,
) -> int:
    """Start a local cluster; Ctrl-C stops it.

    One master and some agents as processes on this host, without root. A process that dies is started again, as an
    init system would. At the end all tasks are killed, with the grace periods they have, of a minute at most; a second
    Ctrl-C kills everything at once.
    """
    from fairlead_cli.supervision import run_until_signal
    from fairlead_local.cluster import LocalCluster

    _check(resources or "", policy, placement)
    cluster = LocalCluster(
        resources=resources,
        attributes=dict(attributes),
        policy=policy,
        master_arguments=[*telemetry, *([] if placement is None else ["--placement", placement])],
        agent_arguments=telemetry,
        **given,
    )
    return run_until_signal(cluster)


def _check(resources: str, policy: str | None, placement: str | None) -> None:
    """Refuse here what a child would refuse in its log, once it has started.

    Raises:
        Invalid: no such policy or placement, or a resource this cluster does not know.
    """
    from fairlead_cli.errors import Invalid
    from fairlead_master.allocation import placement as placements
    from fairlead_master.allocation.api import AllocationError
    from fairlead_master.allocation.policies.names import parse
    from fairlead_proto.resources import ResourceError, ResourceKinds

    try:
        ResourceKinds().parse(resources)
        if policy is not None:
            parse(policy, ResourceKinds().names)
        if placement is not None:
            placements.parse(placement)
    except (AllocationError, ResourceError) as error:
        raise Invalid(str(error)) from error
