"""Sweep two parameters, where some points need far more than others, and print a table of results.

Small points ask for a quarter core, large ones for two cores and more memory: each kind is one demand class, and the
master packs both. A point that fails, or fits on no host, is a row of the table; one whose host is lost is run again.

    python examples/parameter_sweep.py --master 127.0.0.1:5050 --points 6
"""

import argparse
import asyncio
import sys
from dataclasses import dataclass

from fairlead_sdk import Framework, Progress, Task, TaskResult, Transport

# Stands for a program of one's own: prints one number.
PROGRAM = "import sys; rate, size = map(float, sys.argv[1:]); print(round(rate * size / (1 + rate), 4))"


@dataclass(frozen=True)
class Point:
    """One pair of parameters."""

    rate: float
    size: int

    def task(self) -> Task:
        """The task that computes it, with what that takes."""
        is_large = self.size >= 1000
        return Task(
            [sys.executable, "-c", PROGRAM, str(self.rate), str(self.size)],
            name=f"rate={self.rate} size={self.size}",
            cpus=2 if is_large else 0.25,
            mem="256MiB" if is_large else "64MiB",
            max_runtime="5m",
        )


def points(count: int) -> list[Point]:
    """So many points of the grid, small and large in turn."""
    return [Point(rate=round(0.1 * (1 + n // 2), 1), size=(10, 1000)[n % 2]) for n in range(count)]


def show_progress(progress: Progress) -> None:
    """One line on standard error, overwritten."""
    print(f"\r{progress.done}/{progress.total} done, {progress.running} running ", end="", file=sys.stderr)


def row(point: Point, result: TaskResult, output: str) -> str:
    """One line of the table."""
    seconds = (result.finished_ms - result.started_ms) / 1000
    value = output.strip() if result.ok else f"{result.state.value} ({result.reason.value})"
    demand = f"{result.task.demand}"
    return f"{point.rate:>6} {point.size:>6}  {demand:<24} {result.agent_id:<12} {seconds:>7.2f}  {value}"


async def main(master: str | Transport | None = None, count: int = 12) -> int:
    """Run the sweep and print its table; 1 if a point failed."""
    grid = points(count)
    async with Framework("sweep", master=master, role="research") as framework:
        results = await framework.run([point.task() for point in grid], on_progress=show_progress)
        print(file=sys.stderr)
        print(f"{'rate':>6} {'size':>6}  {'demand':<24} {'agent':<12} {'seconds':>7}  value")
        for point, result in zip(grid, results, strict=True):
            output = await framework.stdout(result) if result.attempts else ""
            print(row(point, result, output))
    return 0 if all(result.ok for result in results) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--master", help="HOST:PORT; by default FAIRLEAD_MASTER, then 127.0.0.1:5050")
    parser.add_argument("--points", type=int, default=12, help="how many points (default: 12)")
    arguments = parser.parse_args()
    raise SystemExit(asyncio.run(main(arguments.master, arguments.points)))
