"""The least a process costs here: a Python loop of ``posix_spawn`` and wait, as many side by side as there would be.

A process of its own, since two loops in one would share a lock: ``python -m fairlead_bench.spawn_floor SECONDS``
prints how many it started and ended, the seconds that took, and how long each took.
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
    return sum(len(loop) / seconds for loop in _run_loops(LOOPS, seconds))


def measure_single_spawns_ms(seconds: float) -> list[float]:
    """How long each process took that one loop started after the other.

    Raises:
        BenchFailed: the loop died or did not answer.
    """
    (loop,) = _run_loops(1, seconds)
    return loop


def _run_loops(count: int, seconds: float) -> list[list[float]]:
    with ExitStack() as stack:
        loops = [Child(stack, "fairlead_bench.spawn_floor", str(seconds)) for _ in range(count)]
        return [json.loads(loop.answer(seconds + 20)) for loop in loops]


def main() -> None:
    """Start and wait for the given time."""
    took_ms: list[float] = []
    end = time.monotonic() + float(sys.argv[1])
    now = time.monotonic()
    while now < end:
        began = now
        os.waitpid(os.posix_spawn(TRUE, [TRUE], {}), 0)
        now = time.monotonic()
        took_ms.append(round((now - began) * 1000, 3))
    sys.stdout.write(json.dumps(took_ms) + "\n")


if __name__ == "__main__":
    main()
