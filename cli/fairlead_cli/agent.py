"""`fairlead agent`: flags to `AgentOptions`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fairlead_cli.addresses import master_option
from fairlead_cli.errors import Invalid
from fairlead_cli.parameters import DURATION, LOG_LEVEL, PAIR, RESOURCES, child_option
from fairlead_cli.state_directory import state_directory
from fairlead_cli.telemetry_options import broker_option, metrics_option
from fairlead_telemetry.broker import BrokerOptions

ISOLATIONS = click.Choice(["auto", "cgroup-v2", "cgroup-v1", "none"])


@click.command()
@master_option
@click.option(
    "--resources",
    type=RESOURCES,
    default="",
    help="What it offers, such as cpus=4,mem=8GiB,gpus=1 [default: what the host has]",
)
@click.option(
    "--attribute", "attributes", type=PAIR, multiple=True, help="For constraints, such as rack=a; repeatable."
)
@click.option(
    "--work-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Sandboxes and the checkpoint; one agent a directory [default: /var/lib/fairlead/agent as root, "
    "else ~/.local/state/fairlead/agent]",
)
@click.option("--hostname", default="", help="As shown in listings [default: the host's]")
@click.option(
    "--isolation", type=ISOLATIONS, default="auto", show_default=True, help="What holds tasks to limits."
)
@click.option(
    "--cgroup-parent", default="", help="Group to make the tasks' groups in [default: the agent's own]"
)
@click.option(
    "--sandbox-retention",
    "sandbox_retention_ms",
    type=DURATION,
    help="How long sandboxes of finished tasks are kept, such as 1d.",
)
@click.option(
    "--stop-tasks-on-exit",
    is_flag=True,
    help="End the tasks with the agent [default: they run on for the next one]",
)
@metrics_option
@broker_option
@click.option("--log-level", type=LOG_LEVEL, default="info", show_default=True)
@child_option
def agent(
    *,
    attributes: Sequence[tuple[str, str]],
    metrics: str | None,
    broker: BrokerOptions | None,
    sandbox_retention_ms: int | None,
    work_dir: Path | None,
    **given: Any,
) -> int:
    """Run an agent on this host.

    It registers with the master and runs tasks as processes; SIGTERM ends it. Restarted with the same --work-dir
    it is the same agent and finds its tasks still running.
    """
    from fairlead_agent.cli import run_agent
    from fairlead_agent.config import AgentOptions, InvalidOption
    from fairlead_agent.core.limits import SANDBOX_RETENTION_MS

    try:
        options = AgentOptions(
            attributes=dict(attributes),
            work_dir=work_dir or _default_work_dir(),
            sandbox_retention_ms=SANDBOX_RETENTION_MS
            if sandbox_retention_ms is None
            else sandbox_retention_ms,
            mqtt=broker,
            metrics=metrics or "",
            **given,
        )
    except InvalidOption as error:
        raise Invalid(str(error)) from error
    return run_agent(options)


def _default_work_dir() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/fairlead/agent")
    return state_directory() / "agent"
