"""The control path alone: how many tasks a second one master passes from demand to FINISHED, and what each costs it.

One master process; agents whose tasks finish at once and frameworks that have work without end, played by a few generator
processes over real gRPC on loopback (``load_generator``). In the same run the floor: a bare gRPC server that carries
as many messages of the same sizes (``stream_floor``). Everything shares this machine, so tasks a second is what master
and generators reach together; the master's CPU a task is the figure that does not depend on them.
"""

import json
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fairlead_bench.children import Child
from fairlead_bench.process_stats import cpu_seconds, pss_bytes
from fairlead_bench.rows import Row, percentile
from fairlead_bench.stream_floor import FloorKind, FloorLoad
from fairlead_bench.traffic import Load, Snapshot, Traffic, total
from fairlead_proto.peers import COLUMNS

ANSWER_TIMEOUT_S: Final = 40.0
"""Of a generator: it answers at once, but a drain may take all of its own time."""
_FLOOR_SECONDS: Final = 4.0
"""The floor plays as many tasks as the master passed in this time."""
_FLOOR_TIMEOUT_S: Final = 120.0
_HISTORY_FULL_TASKS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPathOptions:
    """How the control path is measured."""

    agents: int = 200
    frameworks: int = 50
    generators: int = 2
    cpus_per_agent: int = 64
    """Tasks of one CPU: this bounds what is in flight. Hosts of 64 cores are common where 200 of them are."""
    demand: int = 200
    """Tasks each framework asks for at a time."""
    is_steady: bool = False
    """False: frameworks run arrays of ``demand`` tasks, one after the other, so that offers hold several tasks. True:
    every framework is hungry at every moment, the worst case: units go round one by one, and hardly an offer holds two."""
    tasks_per_s: float = 0.0
    """If not zero, an offered load: the frameworks together want so many tasks a second, ``demand`` at a time."""
    roles: int = 10
    capabilities: tuple[str, ...] = (COLUMNS,)
    """Of agents and frameworks. With ``ARRAYS`` the tasks of an accept are one array, else single tasks; none: peers of the
    first version of the protocol."""
    warm_s: float = 3.0
    measure_s: float = 15.0
    tasks_min: int = 0
    """Go on until so many tasks have finished: for the memory of a long run."""
    measure_max_s: float = 900.0
    """Whatever ``tasks_min`` says, measure no longer."""
    profile: Path | None = None
    """Gets a sampled profile of the master."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPathResult:
    """What was seen between two snapshots, and at the end."""

    tasks: int
    wall_s: float
    master_cpu_s: float
    generators_cpu_s: float
    offers: int
    agents: Traffic
    frameworks: Traffic
    latencies_ms: tuple[float, ...]
    in_flight: int
    lost: int
    """Tasks launched without an end, ended in another state than FINISHED, or left unacknowledged after the drain."""
    pss_bytes: tuple[tuple[int, int], ...]
    """(tasks finished, the master's memory) over the run."""


def measure(options: ControlPathOptions) -> ControlPathResult:
    """Run master and generators once.

    Raises:
        BenchFailed: one of them died or did not answer in time; the text says which.
    """
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-bench-")))
        master, address = start_master(stack, directory, options.profile)
        generators = start_generators(stack, options, address)
        time.sleep(options.warm_s)
        before, before_cpu_s, began = _ask(generators), cpu_seconds(master.pid), time.monotonic()
        memory = [(before.finished, pss_bytes(master.pid))]
        after = before
        while _goes_on(options, time.monotonic() - began, after.finished):
            time.sleep(max(0.5, options.measure_s / 10))
            after = _ask(generators)
            memory.append((after.finished, pss_bytes(master.pid)))
        wall_s, master_cpu_s = time.monotonic() - began, cpu_seconds(master.pid) - before_cpu_s
        end = _ask(generators, "drain")
        return ControlPathResult(
            tasks=after.finished - before.finished,
            wall_s=wall_s,
            master_cpu_s=master_cpu_s,
            generators_cpu_s=after.cpu_s - before.cpu_s,
            offers=after.offers - before.offers,
            agents=after.agents.minus(before.agents),
            frameworks=after.frameworks.minus(before.frameworks),
            latencies_ms=tuple(sorted(after.latencies_ms)),
            in_flight=after.in_flight,
            lost=end.in_flight + end.unfinished + end.unacknowledged + end.launched - end.finished,
            pss_bytes=tuple(memory),
        )


def _goes_on(options: ControlPathOptions, measured_s: float, finished: int) -> bool:
    if measured_s < options.measure_s:
        return True
    return finished < options.tasks_min and measured_s < options.measure_max_s


def start_master(
    stack: ExitStack, directory: Path, profile: Path | None = None, mqtt: str = ""
) -> tuple[Child, str]:
    """A master process with a registry in ``directory``, ended with the stack; and its address.

    With ``mqtt`` it takes orders to send telemetry there and to stop (``master_process``).
    """
    ready = directory / "master.ready"
    words = ["--ready-file", str(ready), "--state", str(directory / "state")]
    if profile is not None:
        words += ["--profile", str(profile)]
    if mqtt:
        words += ["--mqtt", mqtt]
    master = Child(stack, "fairlead_bench.master_process", *words)
    return master, master.wait_for_line(ready)


def start_generators(stack: ExitStack, options: ControlPathOptions, address: str) -> list[Child]:
    """The processes that play agents and frameworks; their load begins at once and ends with the stack."""
    generators = []
    for load in _split(options, address):
        generators.append(Child(stack, "fairlead_bench.load_generator"))
        generators[-1].say(load.to_json())
    return generators


def _ask(generators: list[Child], order: str = "snapshot") -> Snapshot:
    for generator in generators:
        generator.say(order)
    return total([Snapshot.from_json(generator.answer(ANSWER_TIMEOUT_S)) for generator in generators])


def _shares(whole: int, parts: int) -> list[int]:
    return [whole // parts + (index < whole % parts) for index in range(parts)]


def _split(options: ControlPathOptions, address: str) -> list[Load]:
    rate = options.tasks_per_s
    return [
        Load(
            address=address,
            agents=agents,
            frameworks=frameworks,
            first=1000 * index,
            cpus_per_agent=options.cpus_per_agent,
            demand=options.demand,
            is_steady=options.is_steady,
            roles=options.roles,
            capabilities=options.capabilities,
            demand_interval_s=options.frameworks * options.demand / rate if rate else 0.0,
        )
        for index, (agents, frameworks) in enumerate(
            zip(
                _shares(options.agents, options.generators),
                _shares(options.frameworks, options.generators),
                strict=True,
            )
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What bare streams needed for the same messages."""

    tasks_per_s: float
    server_cpu_us_per_task: float


def measure_floor(options: ControlPathOptions, result: ControlPathResult) -> Floor:
    """Play the messages of a run over streams that do nothing.

    Raises:
        BenchFailed: a process died or was not done in time.
    """
    tasks = max(1, int(result.tasks / result.wall_s * _FLOOR_SECONDS))
    agents = _floor_kind(result.agents, options.agents, tasks / result.tasks)
    frameworks = _floor_kind(result.frameworks, options.frameworks, tasks / result.tasks)
    played = (agents.streams * agents.sends) / (result.agents.sent / result.tasks)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-bench-")))
        ready = directory / "floor.ready"
        load = FloorLoad(agents=agents, frameworks=frameworks)
        module = "fairlead_bench.stream_floor"
        server = Child(stack, module, "serve", load.to_json(), str(ready))
        address = server.wait_for_line(ready)
        before_s = cpu_seconds(server.pid)
        players = [
            Child(stack, module, "play", part.to_json(), address)
            for part in _split_floor(load, options.generators)
        ]
        wall_s = max(json.loads(player.answer(_FLOOR_TIMEOUT_S))["wall_s"] for player in players)
        cpu_s = cpu_seconds(server.pid) - before_s
    return Floor(tasks_per_s=played / wall_s, server_cpu_us_per_task=cpu_s / played * 1e6)


def _floor_kind(traffic: Traffic, streams: int, part: float) -> FloorKind:
    sent, received = max(1, traffic.sent), max(1, traffic.received)
    return FloorKind(
        streams=streams,
        sends=max(1, round(sent * part / streams)),
        sent_bytes=traffic.sent_bytes // sent,
        answers=received / sent,
        answer_bytes=traffic.received_bytes // received,
    )


def _split_floor(load: FloorLoad, parts: int) -> list[FloorLoad]:
    kinds = load.kinds().values()
    counts = zip(*(_shares(kind.streams, parts) for kind in kinds), strict=True)
    return [
        FloorLoad(
            agents=replace(load.agents, streams=agents),
            frameworks=replace(load.frameworks, streams=frameworks),
        )
        for agents, frameworks in counts
    ]


def memory_rows(result: ControlPathResult) -> list[Row]:
    """What finished tasks leave behind in the master."""
    finished, _ = result.pss_bytes[-1]
    # By then every bounded history is full: ten thousand tasks, fifty thousand changes.
    filled = min(finished // 2, _HISTORY_FULL_TASKS)
    early = next(size for tasks, size in result.pss_bytes if tasks >= filled)
    late = result.pss_bytes[-1][1]
    return [
        Row("memory: tasks finished by one master", finished, "tasks"),
        Row("memory: master at the end, PSS", late / 2**20, "MiB"),
        Row(f"memory: growth since task {filled:,}, PSS", (late - early) / 2**20, "MiB", "< 10"),
    ]


def rows(options: ControlPathOptions, result: ControlPathResult, floor: Floor) -> list[Row]:
    """The figures of a run."""
    name = f"control path, {'steady' if options.is_steady else 'arrays'}"
    tasks = max(1, result.tasks)
    batches = result.agents.received + result.frameworks.received
    return [
        Row(f"{name}: tasks", result.tasks / result.wall_s, "tasks/s", ">= 5000", floor=floor.tasks_per_s),
        Row(
            f"{name}: master CPU",
            result.master_cpu_s / tasks * 1e6,
            "us/task",
            "< 100",
            floor=floor.server_cpu_us_per_task,
        ),
        Row(f"{name}: generators' CPU", result.generators_cpu_s / tasks * 1e6, "us/task"),
        Row(f"{name}: offer to finished, p50", percentile(result.latencies_ms, 0.5), "ms"),
        Row(f"{name}: offer to finished, p99", percentile(result.latencies_ms, 0.99), "ms"),
        Row(f"{name}: tasks per offer", tasks / max(1, result.offers), "tasks"),
        Row(f"{name}: batches the master wrote", batches / tasks, "per task"),
        Row(f"{name}: tasks lost", result.lost, "tasks", "< 1"),
    ]
