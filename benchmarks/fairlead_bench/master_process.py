"""A master to measure, as its own process: quiet, on a port of its own, with a profile if asked."""

import argparse
import sys
from pathlib import Path
from typing import Final

from fairlead_bench.children import end_with_parent
from fairlead_bench.sampling import Sampler
from fairlead_master.cli import MasterOptions, run_master
from fairlead_master.core.settings import CoreSettings
from fairlead_telemetry.broker import read_broker

PATIENCE_MS: Final = 120_000
"""With silent agents and with launches that nobody confirms, six and four times the default. On a busy machine the generators
stand still for half a minute, which is to cost speed and not the run; one that does not answer for 40 s ends it anyway."""


def main() -> int:
    """Run a master until a signal ends it."""
    parser = argparse.ArgumentParser(prog="python -m fairlead_bench.master_process")
    parser.add_argument("--ready-file", type=Path, required=True, help="gets HOST:PORT")
    parser.add_argument("--state", type=Path, help="directory of the registry")
    parser.add_argument("--profile", type=Path, help="gets a sampled profile at the end")
    parser.add_argument("--mqtt", type=read_broker, help="broker for telemetry")
    options = parser.parse_args()
    end_with_parent()
    sampler = Sampler() if options.profile is not None else None
    if sampler is not None:
        sampler.start()
    code = run_master(
        MasterOptions(
            listen="127.0.0.1:0",
            state=options.state,
            ready_file=options.ready_file,
            log_level="warning",
            core=CoreSettings(agent_silence_ms=PATIENCE_MS, staging_timeout_ms=PATIENCE_MS),
            mqtt=options.mqtt,
        )
    )
    if sampler is not None:
        sampler.stop()
        sampler.write(options.profile)
    return code


if __name__ == "__main__":
    sys.exit(main())
