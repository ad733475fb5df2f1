"""Runs one agent as a process: logging, signals, exit codes, and one line for whatever goes wrong."""

import asyncio
import gc
import os
import signal
import sys
from typing import Final

# Before the first import of grpc. Nothing here forks; grpc's fork handlers only add a lock to wait on for ever.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# The core library says on stderr, in a format of its own, what the session logs as "master.away".
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# Before structlog, which it keeps from importing rich.
from fairlead_telemetry.log_setup import configure_logging  # isort: split

import structlog

from fairlead_agent.agent import Agent, Outcome
from fairlead_agent.checkpoint import CheckpointCorrupt
from fairlead_agent.config import AgentOptions
from fairlead_agent.executor.client import ExecutorFailed
from fairlead_agent.work_dir import WorkDirUnusable
from fairlead_telemetry.metrics import InvalidMetricsAddress

_GC_THRESHOLD: Final = 50_000
"""Objects made before the collector looks at the young ones. Tasks and messages die by reference count; at the default
of 700 the collector walks the history a hundred times a second and finds nothing."""

EXIT_OK: Final = 0
EXIT_UNUSABLE: Final = 2
"""The work directory, the journal, an address, an option or the executor cannot be used."""
EXIT_REFUSED: Final = 4
"""A master refused this agent for good."""


def run_agent(options: AgentOptions) -> int:
    """Run an agent until SIGTERM or SIGINT, or until a master refuses it; give the process's exit code.

    Its tasks run on afterwards unless ``options.stop_tasks_on_exit``. Errors are one line on stderr.
    """
    configure_logging(options.log_level)
    gc.set_threshold(_GC_THRESHOLD)
    log = structlog.get_logger().bind(role="agent", pid=os.getpid())
    try:
        outcome = asyncio.run(_run(options, log))
    except (WorkDirUnusable, CheckpointCorrupt, ExecutorFailed, InvalidMetricsAddress, OSError) as error:
        sys.stderr.write(f"fairlead agent: {error}\n")
        return EXIT_UNUSABLE
    if outcome.is_refused:
        sys.stderr.write(f"fairlead agent: {outcome.message}\n")
        return EXIT_REFUSED
    return EXIT_OK


async def _run(options: AgentOptions, log: structlog.typing.FilteringBoundLogger) -> Outcome:
    agent = Agent(options, log)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.leave, f"signal {number.name}")
    return await agent.run()
