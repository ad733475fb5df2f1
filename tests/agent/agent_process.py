"""An agent as a process of its own: ``python -m tests.agent.agent_process MASTER WORK_DIR [stop|run [METRICS]]``."""

import sys
from pathlib import Path

from fairlead_agent.cli import run_agent
from fairlead_agent.config import AgentOptions

if __name__ == "__main__":
    sys.exit(
        run_agent(
            AgentOptions(
                master=sys.argv[1],
                work_dir=Path(sys.argv[2]),
                resources="cpus=4,mem=4GiB",
                isolation="none",
                stop_tasks_on_exit="stop" in sys.argv[3:],
                metrics=sys.argv[4] if len(sys.argv) > 4 else "",
            )
        )
    )
