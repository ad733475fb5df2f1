"""The least a process costs here: a Python loop of ``posix_spawn`` and wait, as many side by side as there would be.

A process of its own, since two loops in one would share a lock: ``python -m fairlead_bench.spawn_floor SECONDS``
prints how many it started and ended, and the seconds that took.
"""

import json
import os
import sys
import time
from contextlib import ExitStack
from typing import Final

from fairlead_bench.children import Child

TRUE: Final = "/bin/true"
LOOPS: Final = 2


def measure_spawn_floor(seconds: float) -> float:
    """Processes a second that two loops reach together.

    Raises:
        BenchFailed: a loop died or did not answer.
    """
    with ExitStack() as stack:
        loops = [Child(stack, "fairlead_bench.spawn_floor", str(seconds)) for _ in range(LOOPS)]
        answers = [json.loads(loop.answer(seconds + 20)) for loop in loops]
    rates: list[float] = [answer["processes"] / answer["seconds"] for answer in answers]
    return sum(rates)


def main() -> None:
    """Start and wait for the given time."""
    seconds = float(sys.argv[1])
    began = time.monotonic()
    count = 0
    while time.monotonic() - began < seconds:
        os.waitpid(os.posix_spawn(TRUE, [TRUE], {}), 0)
        count += 1
    sys.stdout.write(json.dumps({"processes": count, "seconds": time.monotonic() - began}) + "\n")


if __name__ == "__main__":
    main()
