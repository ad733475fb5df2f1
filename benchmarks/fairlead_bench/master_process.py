"""A master to measure, as its own process: quiet, on a port of its own, with a profile if asked.

With a broker it takes orders from standard input: ``with`` and ``without`` begin and end telemetry, and each line, those
or any other, is answered by what the master has done so far. Both settings are so measured in the life of one process.
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Final

from fairlead_bench.children import end_with_parent
from fairlead_bench.sampling import Sampler
from fairlead_master.cli import MasterOptions, make_settings, run_master
from fairlead_master.core.settings import CoreSettings
from fairlead_master.garbage import leave_the_old
from fairlead_master.server import MasterServer
from fairlead_telemetry.broker import BrokerOptions, read_broker
from fairlead_telemetry.log_setup import configure_logging

PATIENCE_MS: Final = 120_000
"""With silent agents and with launches that nobody confirms, six and four times the default. On a busy machine the generators
stand still for half a minute, which is to cost speed and not the run; one that does not answer for 40 s ends it anyway."""


def main() -> int:
    """Run a master until a signal ends it, or the end of its orders."""
    parser = argparse.ArgumentParser(prog="python -m fairlead_bench.master_process")
    parser.add_argument("--ready-file", type=Path, required=True, help="gets HOST:PORT")
    parser.add_argument("--state", type=Path, help="directory of the registry")
    parser.add_argument("--profile", type=Path, help="gets a sampled profile at the end")
    parser.add_argument("--mqtt", type=read_broker, help="broker for telemetry, when ordered")
    options = parser.parse_args()
    master = MasterOptions(
        listen="127.0.0.1:0",
        state=options.state,
        ready_file=options.ready_file,
        log_level="warning",
        core=CoreSettings(agent_silence_ms=PATIENCE_MS, staging_timeout_ms=PATIENCE_MS),
    )
    if options.mqtt is not None:
        asyncio.run(_serve_and_obey(master, options.ready_file, options.mqtt))
        return 0
    end_with_parent()
    sampler = Sampler() if options.profile is not None else None
    if sampler is not None:
        sampler.start()
    code = run_master(master)
    if sampler is not None:
        sampler.stop()
        sampler.write(options.profile)
    return code


async def _serve_and_obey(options: MasterOptions, ready_file: Path, broker: BrokerOptions) -> None:
    # Not at the top: it imports the MQTT library, whose memory is not the master's where no broker is named.
    from fairlead_master.telemetry import MasterTelemetry

    configure_logging(options.log_level)
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    server = await MasterServer.start(make_settings(options))
    leave_the_old()
    address = f"127.0.0.1:{server.port}"
    ready_file.write_text(address + "\n")
    telemetry: MasterTelemetry | None = None
    async for line in orders:
        order = line.strip()
        if order == b"without" and telemetry is not None:
            await telemetry.stop()
            telemetry = None
        if order == b"with" and telemetry is None:
            telemetry = MasterTelemetry(server.runner, broker, address)
            telemetry.start()
            await telemetry.link.first_connected.wait()
        tallies = server.runner.machine.master.tallies
        done = {
            "changes": tallies.launches.total() + tallies.moves.total(),
            "time_s": time.monotonic(),
            "cpu_s": time.process_time(),
            "published": telemetry.link.counters.published if telemetry is not None else 0,
            "dropped": telemetry.link.counters.dropped if telemetry is not None else 0,
        }
        sys.stdout.write(json.dumps(done) + "\n")
        sys.stdout.flush()
    if telemetry is not None:
        await telemetry.stop()
    await server.stop(grace_s=0)


if __name__ == "__main__":
    sys.exit(main())
