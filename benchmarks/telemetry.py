"""What telemetry and metrics cost: `PYTHONPATH=. .venv/bin/python benchmarks/telemetry.py [agent|master|scrape|control-path] …`.

Needs a Mosquitto on the machine, which it starts itself on loopback, and the extras `mqtt` and `metrics`.

- `agent`: one agent that publishes the usage of 50 tasks once a second.
- `master`: 100 agents with 50 running tasks each, two changes a second each: what following and publishing them costs.
- `scrape`: CPU time of a scrape of a master with 500 agents and 20,000 tasks, and how long it holds the loop.
- `control-path`: the master's CPU time for a task with over without a broker, in alternating pairs (`--pairs`).

`control-path` offers a fixed load below what the master can bear (`--tasks-per-second`, in arrays of 20 tasks), because the CPU time of a
task depends most of all on how its messages fall into turns: a turn for each message of each task costs several times what one turn for all costs. A
saturated master, or one that waits for a CPU, gathers more into a turn, now so and now otherwise, with or without a broker. Hence
the master has a CPU of its own, and broker and generator share another. `--tasks-per-second 0` saturates the master nevertheless, with both
CPUs for everybody.

Both settings are measured in one life of one master, whose telemetry is switched on and off: windows of three seconds in the order with, without,
without, with, and then without, with, with, without, until each setting had `--seconds`: that is a pair. What other work on the machine does to
both, and how the master's history grows, then cancels out. The time in which a connection begins is not measured. The
master counts changes of tasks and its CPU time itself, in its loop, so both belong to one instant.
"""

import argparse
import asyncio
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import generate_latest

from fairlead_agent.core.actions import SendHeartbeat
from fairlead_agent.core.state import AgentSettings, AgentState, LiveTask
from fairlead_agent.telemetry import AgentTelemetry
from fairlead_bench.children import Child
from fairlead_bench.control_path import (
    ANSWER_TIMEOUT_S,
    ControlPathOptions,
    start_generators,
    start_master,
)
from fairlead_bench.rows import make_header, print_header
from fairlead_lab.metrics.statistics import estimate
from fairlead_master.core.actions import StoreAgent, StoreFramework
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_master.metrics import MasterMetrics
from fairlead_master.runner import Runner
from fairlead_master.telemetry import MasterTelemetry
from fairlead_proto.clock import SteadyClock
from fairlead_proto.ids import AgentId, FrameworkId, Role, TaskId
from fairlead_proto.reports import AgentConnected
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import RunningTask, TaskSpec, TaskUsage
from tests.telemetry.mosquitto import Mosquitto

KINDS = ResourceKinds()
UNIT: Vector = (1000, 2**30, 0, 0)

WINDOW_S = 3.0
"""Long beside the half second in which telemetry gathers, short beside the minutes in which other work comes and goes."""

ORDERS = (("with", "without", "without", "with"), ("without", "with", "with", "without"))

CHANGES_PER_TASK = 3
"""Launched, RUNNING, FINISHED. Ends alone would not measure a window's work: arrays start and end in waves."""

ARRAY_TASKS = 20
"""What a framework wants at a time, of an offered load."""

WARM_S = 20.0
"""Until the peers are registered and the master's histories have begun to fill."""

SETTLE_S = 1.0
"""After a switch: until the connection stands, retained messages are sent, and telemetry gathers as it will go on."""


@contextmanager
def mosquitto() -> Iterator[Mosquitto]:
    """A broker on loopback."""
    with tempfile.TemporaryDirectory() as folder:
        broker = Mosquitto(Path(folder))
        broker.start()
        try:
            yield broker
        finally:
            broker.kill()


def a_spec(task_id: str) -> TaskSpec:
    """A task of one core."""
    return TaskSpec(task_id=TaskId(task_id), resources=UNIT, command=("true",))


def a_machine(agents: int, tasks_each: int) -> Machine:
    """A master whose agents all run tasks of one framework for each of ten roles."""
    frameworks = [
        StoreFramework(
            framework_id=FrameworkId(f"f{n}"),
            name=f"framework-{n}",
            role=Role(f"role-{n}"),
            principal="",
            failover_timeout_ms=3_600_000,
        )
        for n in range(10)
    ]
    total = (UNIT[0] * tasks_each * 2, UNIT[1] * tasks_each * 2, 0, 0)
    known = [
        StoreAgent(agent_id=AgentId(f"a{n}"), hostname=f"host-{n}", total=total, attributes=())
        for n in range(agents)
    ]
    machine = Machine(
        KINDS, CoreSettings(), Remembered(epoch=1, frameworks=tuple(frameworks), agents=tuple(known)), 0
    )
    for n, agent in enumerate(known):
        running = [
            RunningTask(
                framework_id=frameworks[i % 10].framework_id,
                spec=a_spec(f"t{n}-{i}"),
                state=TaskState.RUNNING,
                sequence=2,
            )
            for i in range(tasks_each)
        ]
        machine.step(
            AgentConnected(
                session=n + 1,
                agent_id=agent.agent_id,
                incarnation=1,
                hostname=agent.hostname,
                total=total,
                attributes={},
                tasks=tuple(running),
            ),
            1,
        )
    return machine


async def cpu_share(seconds: float, work: Callable[[], None], interval_s: float) -> float:
    """CPU time of this process over wall time while ``work`` is done every ``interval_s``."""
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    while time.monotonic() - began_s < seconds:
        work()
        await asyncio.sleep(interval_s)
    return (time.process_time() - began_cpu_s) / (time.monotonic() - began_s)


async def agent(options: argparse.Namespace) -> None:
    """One agent with 50 tasks, once a second."""
    settings = AgentSettings(hostname="host", total=(64_000, 2**37, 0, 0), kinds=KINDS)
    state = AgentState()
    for n in range(50):
        key = FrameworkId("f1"), TaskId(f"t{n}")
        task = LiveTask(key=key, spec=a_spec(key[1]), launched_ms=0)
        state.live[key] = task
    with mosquitto() as broker:
        telemetry = AgentTelemetry(broker.options(), settings, structlog.get_logger())
        telemetry.identify("a1")
        await asyncio.sleep(1)
        rounds = iter(range(10**9))

        def beat() -> None:
            n = next(rounds)
            for task in state.live.values():
                task.usage = TaskUsage(cpu_time_ms=n * 900, mem_bytes=2**28 + n, mem_peak_bytes=2**29)
            telemetry.publish_usage(SendHeartbeat(used=(45_000, 50 * 2**28, 0, 0), tasks=()), state)

        idle = await cpu_share(options.seconds, lambda: None, 1.0)
        busy = await cpu_share(options.seconds, beat, 1.0)
        await telemetry.stop()
    row("agent: usage of 50 tasks, once a second", f"{(busy - idle):.2%} of a core", "< 5 %")


async def master(options: argparse.Namespace) -> None:
    """100 agents, 5,000 running tasks, 200 changes a second."""
    machine = a_machine(100, 50)
    runner = Runner(machine, None, SteadyClock())
    keys = [task.key for known in machine.master.agents.values() for task in known.tasks.values()]
    draw = random.Random(1)

    def change() -> None:
        for _ in range(10):
            machine.master.note("task", draw.choice(keys), "RUNNING")
        for wake in tuple(runner._watchers.values()):  # noqa: SLF001 - as the runner does after a turn
            wake()

    with mosquitto() as broker:
        idle = await cpu_share(options.seconds, change, 0.05)
        telemetry = MasterTelemetry(runner, broker.options(), "127.0.0.1:5050")
        telemetry.start()
        await asyncio.sleep(1)
        busy = await cpu_share(options.seconds, change, 0.05)
        counters = telemetry.link.counters
        await telemetry.stop()
    row(
        "master: 100 agents, 5,000 tasks, 200 changes a second",
        f"{(busy - idle):.2%} of a core, {counters.published / options.seconds:.0f} messages/s, {counters.dropped} dropped",
        "< 10 %",
    )


async def scrape(options: argparse.Namespace) -> None:
    """500 agents, 20,000 tasks."""
    runner = Runner(a_machine(500, 40), None, SteadyClock())
    metrics = MasterMetrics("127.0.0.1:0", runner, {}, {}, None)
    times_ms, in_loop_ms = [], []
    for _ in range(options.scrapes):
        await asyncio.sleep(0.6)
        began_s, began_loop_s = time.process_time(), time.thread_time()
        await asyncio.to_thread(generate_latest, metrics._server.registry)  # noqa: SLF001 - what its HTTP server asks
        times_ms.append((time.process_time() - began_s) * 1000)
        in_loop_ms.append((time.thread_time() - began_loop_s) * 1000)
    await asyncio.to_thread(metrics.close)
    row(
        f"scrape: 500 agents, 20,000 tasks, {options.scrapes} scrapes",
        f"median {statistics.median(times_ms):.1f} ms of CPU, most {max(times_ms):.1f}; "
        f"in the loop {statistics.median(in_loop_ms):.1f} ms",
        "< 50 ms",
    )


async def control_path(options: argparse.Namespace) -> None:
    """The master's CPU for a task with over without a broker, pair by pair."""
    rate = options.tasks_per_second
    # As many tasks in flight as with 200 agents; those would still be registering when the first windows begin.
    load = ControlPathOptions(
        agents=40,
        cpus_per_agent=320,
        frameworks=20 if rate else 50,
        generators=1 if rate else 2,
        demand=ARRAY_TASKS if rate else 200,
        tasks_per_s=rate,
    )
    pairs = []
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        # To saturate the master takes two generators and all there is for them.
        with on_cpu(0) if rate else nullcontext():
            broker = Mosquitto(directory)
            master, address = start_master(stack, directory, mqtt=broker.url)
        with on_cpu(1) if rate else nullcontext():
            broker.start()
            stack.callback(broker.kill)
            start_generators(stack, load, address)
            await asyncio.sleep(WARM_S)
            for number in range(options.pairs):
                pairs.append(await pair(master, options.seconds))
                print(f"pair {number + 1}: {pairs[-1]}", file=sys.stderr)
    ratio = estimate([math.log(one.ratio) for one in pairs])
    low, middle, high = (math.exp(ratio.mean + (ratio.half_width or math.inf) * side) for side in (-1, 0, 1))
    taken, dropped = sum(one.messages for one in pairs), sum(one.dropped for one in pairs)
    row(
        f"control path, {statistics.mean(one.tasks_per_s for one in pairs):.0f} tasks/s: master CPU a task, {len(pairs)} pairs",
        f"{statistics.median(one.with_us for one in pairs):.0f} us with a broker, "
        f"{statistics.median(one.without_us for one in pairs):.0f} without; "
        f"ratio {middle:.3f} ({low:.3f} to {high:.3f}); {taken} messages published, {dropped} dropped",
        "upper bound < 1.05",
    )


@dataclass(frozen=True, kw_only=True)
class Pair:
    """What was measured with and without a broker, each for the same time."""

    with_us: float
    """The master's CPU time a task, in microseconds."""
    without_us: float
    tasks_per_s: float
    messages: int
    """What the broker took."""
    dropped: int

    @property
    def ratio(self) -> float:
        """With over without."""
        return self.with_us / self.without_us

    def __str__(self) -> str:
        """One line."""
        return (
            f"{self.with_us:.1f} us with, {self.without_us:.1f} without, ratio {self.ratio:.3f}, "
            f"{self.tasks_per_s:.0f} tasks/s, {self.messages} messages, {self.dropped} dropped"
        )


async def pair(master: Child, seconds: float) -> Pair:
    """Measure the master with telemetry and without, each for ``seconds``."""
    sums: dict[str, Counter[str]] = {"with": Counter(), "without": Counter()}
    for number in range(max(1, round(seconds / WINDOW_S / 2))):
        for order in ORDERS[number % 2]:
            ask(master, order)
            await asyncio.sleep(SETTLE_S)
            before = ask(master, "look")
            await asyncio.sleep(WINDOW_S)
            after = ask(master, "look")
            sums[order].update({kind: after[kind] - before[kind] for kind in after})
    tasks = {order: sums[order]["changes"] / CHANGES_PER_TASK for order in sums}
    return Pair(
        with_us=sums["with"]["cpu_s"] / tasks["with"] * 1e6,
        without_us=sums["without"]["cpu_s"] / tasks["without"] * 1e6,
        tasks_per_s=sum(tasks.values()) / sum(sums[order]["time_s"] for order in sums),
        messages=sums["with"]["published"],
        dropped=sums["with"]["dropped"],
    )


@contextmanager
def on_cpu(number: int) -> Iterator[None]:
    """Within this, what is started runs on one CPU only; does nothing on a machine that has no such CPU."""
    allowed = os.sched_getaffinity(0)
    if number < len(allowed):
        os.sched_setaffinity(0, {sorted(allowed)[number]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def ask(master: Child, order: str) -> dict[str, Any]:
    """Give the master an order; what it has done so far."""
    master.say(order)
    done: dict[str, Any] = json.loads(master.answer(ANSWER_TIMEOUT_S))
    return done


def row(*words: str) -> None:
    """A row of the table."""
    print("| " + " | ".join(words) + " |", flush=True)


PARTS = {"agent": agent, "master": master, "scrape": scrape, "control-path": control_path}


def main() -> None:
    """Measure the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--seconds", type=float, default=12.0, help="of each measurement")
    parser.add_argument("--scrapes", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument(
        "--tasks-per-second", type=float, default=300.0, help="of the control path; 0 saturates it"
    )
    options = parser.parse_args()
    print_header(make_header(seed=1))
    print("\n| what | measured | target |\n| --- | --- | --- |")
    for name in options.parts or PARTS:
        asyncio.run(PARTS[name](options))


if __name__ == "__main__":
    main()
