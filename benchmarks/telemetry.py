"""What telemetry and metrics cost: `.venv/bin/python benchmarks/telemetry.py [agent|master|scrape|control-path] …`.

Needs a Mosquitto on the machine, which it starts itself on loopback, and the extras `mqtt` and `metrics`.

- `agent`: one agent that publishes the usage of 50 tasks once a second.
- `master`: 100 agents with 50 running tasks each, two changes a second each: what following and publishing them costs.
- `scrape`: CPU time of a scrape of a master with 500 agents and 20,000 tasks, and how long it holds the loop.
- `control-path`: the master's CPU time for a task with and without a broker, in alternating pairs (`--pairs`).

A pair of `control-path` is measured in one life of one master, whose telemetry is switched on and off: windows of two
seconds in the order with, without, without, with, until each setting had `--seconds`; the next pair begins without. Two masters
started after one another differ by a quarter on a shared machine, more than what is measured: in how their
memory came to lie, in who else was at work, in how the frameworks' arrays fell into step. Windows so near to each other share all
of that. The master counts changes of tasks and its CPU time itself, in its loop, so both belong to one instant.
"""

import argparse
import asyncio
import json
import math
import platform
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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
from fairlead_master.core import events
from fairlead_master.core.actions import StoreAgent, StoreFramework
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_master.metrics import MasterMetrics
from fairlead_master.runner import Runner
from fairlead_master.telemetry import MasterTelemetry
from fairlead_proto.clock import SteadyClock
from fairlead_proto.ids import AgentId, FrameworkId, Role, TaskId
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import RunningTask, TaskSpec, TaskUsage
from fairlead_telemetry.broker import BrokerOptions

KINDS = ResourceKinds()
UNIT: Vector = (1000, 2**30, 0, 0)
T_975 = {1: 12.7, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 14: 2.14, 19: 2.09}
"""Student's t for 95 % intervals, by degrees of freedom."""

WINDOW_S = 2.0
"""Long beside the part of a second in which telemetry gathers, short beside the minutes in which other work comes and goes."""

CHANGES_PER_TASK = 3
"""Launched, RUNNING, FINISHED. Ends alone would not measure a window's work: arrays start and end in waves."""

SETTLE_S = 0.3
"""After a switch: until telemetry gathers and sends as it will go on."""


@contextmanager
def mosquitto() -> Iterator[int]:
    """A broker on loopback; gives its port."""
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mosquitto.conf"
        path.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nuser root\n")
        process = subprocess.Popen([program, "-c", str(path)], stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            yield port
        finally:
            process.terminate()
            process.wait()


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
            events.AgentConnected(
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
    with mosquitto() as port:
        telemetry = AgentTelemetry(
            BrokerOptions(host="127.0.0.1", port=port), settings, structlog.get_logger()
        )
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

    with mosquitto() as port:
        idle = await cpu_share(options.seconds, change, 0.05)
        telemetry = MasterTelemetry(runner, BrokerOptions(host="127.0.0.1", port=port), "127.0.0.1:5050")
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
    metrics = MasterMetrics("127.0.0.1:0", runner, {}, None)
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
    ratios, with_us, without_us = [], [], []
    # As many tasks in flight as with 200 agents; those would still be registering when the first windows begin.
    load = ControlPathOptions(agents=40, cpus_per_agent=320, is_steady=options.steady)
    with ExitStack() as stack:
        port = stack.enter_context(mosquitto())
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        master, address = start_master(stack, directory, mqtt=f"mqtt://127.0.0.1:{port}")
        start_generators(stack, load, address)
        await asyncio.sleep(load.warm_s)
        for number in range(options.pairs):
            with_one, without_one = await pair(master, options.seconds, with_first=number % 2 == 0)
            ratios.append(math.log(with_one / without_one))
            with_us.append(with_one)
            without_us.append(without_one)
            print(f"pair {number + 1}: {with_one:.1f} us with, {without_one:.1f} without", file=sys.stderr)
    mean = statistics.fmean(ratios)
    half = T_975[len(ratios) - 1] * statistics.stdev(ratios) / math.sqrt(len(ratios))
    row(
        f"control path{', steady' if options.steady else ''}: master CPU a task, {options.pairs} pairs",
        f"{statistics.median(with_us):.1f} us with a broker, {statistics.median(without_us):.1f} without; "
        f"ratio {math.exp(mean):.3f} ({math.exp(mean - half):.3f} to {math.exp(mean + half):.3f})",
        "upper bound < 1.05",
    )


async def pair(master: Child, seconds: float, *, with_first: bool) -> tuple[float, float]:
    """Microseconds of the master's CPU a task with telemetry and without, each measured for ``seconds``."""
    changes, cpu_s = {"with": 0, "without": 0}, {"with": 0.0, "without": 0.0}
    for _ in range(max(1, round(seconds / WINDOW_S / 2))):
        for order in (
            ("with", "without", "without", "with") if with_first else ("without", "with", "with", "without")
        ):
            ask(master, order)
            await asyncio.sleep(SETTLE_S)
            before = ask(master, "look")
            await asyncio.sleep(WINDOW_S)
            after = ask(master, "look")
            changes[order] += sum(after[kind] - before[kind] for kind in ("launches", "moves"))
            cpu_s[order] += after["cpu_s"] - before["cpu_s"]
    with_us, without_us = (
        cpu_s[order] / changes[order] * CHANGES_PER_TASK * 1e6 for order in ("with", "without")
    )
    return with_us, without_us


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
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--scrapes", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--steady", action="store_true", help="the control path's worst case")
    options = parser.parse_args()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    load = Path("/proc/loadavg").read_text().split()[0]
    print(
        f"commit {commit.stdout.strip()}, {platform.machine()}, Python {platform.python_version()}, load {load}\n"
    )
    print("| what | measured | target |\n| --- | --- | --- |")
    for name in options.parts or PARTS:
        asyncio.run(PARTS[name](options))


if __name__ == "__main__":
    main()
