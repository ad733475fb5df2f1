"""Section 7.2 of the paper on dominant resource fairness, live: fair sharing against slots, with real agents and processes.

Agents of 8 CPUs and 6 GiB; four users whose jobs are tasks of <1 CPU, 0.5 GiB> and four whose jobs are tasks of <2 CPUs, 2 GiB>. A
user whose job is done hands in the next. What is counted is the jobs done in a time and how long each took. The paper runs
each policy for ten minutes on 48 hosts with jobs of 80 tasks, and does not say how long tasks are.

Two ways to do that on one machine:

- *working*: hosts are an eightieth or so of real ones, with groups of their own whose CPU and memory limits hold
  (``host_groups``). A task spins for a fixed amount of CPU time and keeps its memory in use. A crowded host slows its tasks down,
  and where memory ends the kernel kills one, which is then run again from its beginning: what slots cost by promising what is not there.
- *sleeping*: 48 hosts that are as large as they say, and tasks that sleep, with time compressed. A sleep does not suffer where a host is
  promised more than it has, so seen here is only what slots cost by leaving places empty.
"""

import asyncio
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import psutil
from rich.console import Console

from fairlead_bench.host_groups import HostGroups
from fairlead_bench.rows import markdown
from fairlead_lab.metrics.statistics import estimate
from fairlead_lab.papers.drf import closed_loop
from fairlead_local.cluster import LocalCluster
from fairlead_master.allocation.placement import seeded
from fairlead_master.allocation.policies.names import slots_per_agent
from fairlead_sdk import Framework, OperatorClient, Reason, Task

USERS_OF_A_CLASS: Final = 4

POLICIES: Final = ("drf", "slots:3", "slots:4", "slots:5", "slots:6", "max-min:cpus")
"""Those of the paper's figures 9 to 12."""

SPREAD: Final = 0.5
"""Tasks last between 1 - this and 1 + this of the mean, evenly."""

SIMULATED_SEEDS: Final = 8

SIMULATED_SLOWDOWNS: Final = (0.0, 10.0)
"""What crowded memory costs in the simulations beside: nothing, and half the speed at a tenth too much."""

_INTERPRETER_BYTES: Final = 4 << 20
"""Of a task that works, what is in use before it takes any memory itself (3 MB, measured), and a little to spare."""

_WORK: Final = """\
import sys, time
work_s, size = float(sys.argv[1]), int(sys.argv[2])
held = bytearray(size)
held[::4096] = b"x" * len(range(0, size, 4096))
while time.process_time() < work_s:
    pass
"""
"""Takes memory, writes to each page of it, and spins until so much CPU time is used up, the start of the interpreter included."""


@dataclass(frozen=True, slots=True)
class JobClass:
    """What the tasks of a job need, in the paper's CPUs and GiB."""

    name: str
    cpus: int
    gib: float


CLASSES: Final = (JobClass("small", 1, 0.5), JobClass("large", 2, 2.0))


@dataclass(frozen=True, slots=True)
class Scale:
    """How the paper's cluster is made smaller."""

    agents: int
    job_tasks: int
    cpu_milli: int
    """Thousandths of a CPU that one CPU of the paper is."""
    gib_bytes: int
    """What a GiB of the paper is."""
    task_s: float
    """Mean length of a task that has all it declares."""
    seconds: float
    """For each policy."""

    @property
    def host(self) -> tuple[int, int]:
        """Thousandths of a CPU, and bytes, of one host of the paper: 8 CPUs and 6 GiB."""
        return 8 * self.cpu_milli, 6 * self.gib_bytes


SLEEPING: Final = Scale(48, 80, 1000, 2**30, 3.0, 60.0)
"""The paper's cluster with everything ten times as fast as with tasks of 30 s for ten minutes."""

WORKING: Final = Scale(12, 20, 12, 32 << 20, 10.0, 200.0)
"""A quarter of it, as large as two cores carry: 1.2 CPUs and 2.3 GiB in all, and three times as fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """The jobs of one class under one policy."""

    policy: str
    job_class: str
    jobs: int
    """Done within the time."""
    mean_response_s: float | None
    """From a job's submission to the end of its last task, of those; None if there are none. In compressed seconds."""
    killed: int = 0
    """Tasks that the kernel killed for memory, and that were run again."""
    seed: int = 1
    idle: float = 1.0
    """Part of the machine's CPU time that nobody used meanwhile. Near 0 the machine was too small, and the figures say so and no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsOptions:
    """How the experiment is run."""

    policies: Sequence[str] = POLICIES
    placement: str = "align"
    """As an operator writes it; rules that draw do it by the seed of the run."""
    scale: Scale = SLEEPING
    works: bool = False
    """Whether tasks work within limits that hold; else they sleep."""
    seeds: Sequence[int] = (1,)


def lengths(seed: int, user: str, job: int, tasks: int, mean_s: float) -> Iterator[float]:
    """How long each task of a job lasts, the same under every policy, in seconds."""
    dice = random.Random(f"{seed} {user} {job}")
    for _ in range(tasks):
        yield mean_s * dice.uniform(1 - SPREAD, 1 + SPREAD)


def a_task(kind: JobClass, scale: Scale, length_s: float, *, works: bool) -> Task:
    """A task that takes so long where it has what it declares."""
    milli, size = kind.cpus * scale.cpu_milli, round(kind.gib * scale.gib_bytes)
    command = ["sleep", f"{length_s:.3f}"]
    if works:
        work_s, held = length_s * milli / 1000, max(0, size - _INTERPRETER_BYTES)
        command = [sys.executable, "-I", "-S", "-c", _WORK, f"{work_s:.4f}", str(held)]
    return Task(command, cpus=milli / 1000, mem=size)


def measure(options: SlotsOptions, tell: Callable[[str], None] = lambda _: None) -> list[ClassRow]:
    """Run the experiment under each policy in turn, on one local cluster; ``tell`` is told of each before it begins.

    Raises:
        NoGroups: tasks are to work, and no limits of hosts would hold here.
    """
    cpus_milli, mem_bytes = options.scale.host
    with ExitStack() as stack:
        isolation, parents = "none", []
        if options.works:
            groups = HostGroups(options.scale.agents, cpus_milli=cpus_milli, mem_bytes=mem_bytes)
            stack.enter_context(groups)
            isolation, parents = groups.isolation, groups.parents
        cluster = LocalCluster(
            agents=options.scale.agents,
            resources=f"cpus={cpus_milli / 1000:g},mem={mem_bytes}",
            isolation=isolation,
            cgroup_parents=parents,
        )
        return asyncio.run(_run_all(stack.enter_context(cluster).address, options, tell))


async def _run_all(address: str, options: SlotsOptions, tell: Callable[[str], None]) -> list[ClassRow]:
    rows: list[ClassRow] = []
    async with OperatorClient(address) as operator:
        for seed in options.seeds:
            for policy in options.policies:
                tell(policy if len(options.seeds) == 1 else f"{policy}, seed {seed}")
                placement = seeded(options.placement, slots_per_agent(policy), seed)
                await operator.set_policy(policy, placement=placement)
                rows += await _run_policy(address, policy, seed, options)
    return rows


class _User:
    """Who hands in one job after the other."""

    def __init__(self, name: str, kind: JobClass, seed: int, options: SlotsOptions) -> None:
        self.kind = kind
        self.responses: list[float] = []
        self.killed = 0
        self._name = name
        self._seed = seed
        self._options = options

    async def work(self, address: str) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        scale = self._options.scale
        async with Framework(self._name, master=address, role=self._name) as framework:
            job = 0
            while True:
                began = loop.time()
                needed = lengths(self._seed, self._name, job, scale.job_tasks, scale.task_s)
                tasks = [a_task(self.kind, scale, each, works=self._options.works) for each in needed]
                await asyncio.gather(*[self._run(framework, task) for task in tasks])
                self.responses.append(loop.time() - began)
                job += 1

    async def _run(self, framework: Framework, task: Task) -> None:
        """Until it has run to its end: what is killed for memory is run again from its beginning."""
        while True:
            (result,) = await framework.run([task])
            if result.ok:
                return
            if result.reason is not Reason.OUT_OF_MEMORY:
                raise RuntimeError(f"a task of {self._name} ended as {result.state}: {result.message}")
            self.killed += 1


async def _run_policy(address: str, policy: str, seed: int, options: SlotsOptions) -> list[ClassRow]:
    users = [
        _User(f"{kind.name}-{number}", kind, seed, options)
        for kind in CLASSES
        for number in range(USERS_OF_A_CLASS)
    ]
    before = psutil.cpu_times()
    at_work = [asyncio.create_task(user.work(address)) for user in users]
    try:
        done, _ = await asyncio.wait(
            at_work, timeout=options.scale.seconds, return_when=asyncio.FIRST_EXCEPTION
        )
        idle = _idle_part(before, psutil.cpu_times())
        finished = [(user, list(user.responses), user.killed) for user in users]
    finally:  # Before the loop ends, and with it the sessions that a cancelled user kills its tasks by.
        for each in at_work:
            each.cancel()
        await asyncio.gather(*at_work, return_exceptions=True)
    for each in done:
        each.result()
    rows = []
    for kind in CLASSES:
        taken = [response for user, responses, _ in finished if user.kind is kind for response in responses]
        rows.append(
            ClassRow(
                policy=policy,
                job_class=kind.name,
                jobs=len(taken),
                mean_response_s=sum(taken) / len(taken) if taken else None,
                killed=sum(killed for user, _, killed in finished if user.kind is kind),
                seed=seed,
                idle=idle,
            )
        )
    return rows


def _idle_part(before: Any, after: Any) -> float:
    spent = [now - then for then, now in zip(before, after, strict=True)]
    return float((after.idle - before.idle) / (sum(spent) or 1.0))


Simulated = dict[tuple[str, str, float], list[closed_loop.Finished]]
"""By policy, class and slowdown, of each seed."""


def simulate(options: SlotsOptions) -> Simulated:
    """The same experiment on virtual time, where nothing but the allocator is real and no task is killed."""
    scale = options.scale
    found: Simulated = {}
    for policy in options.policies:
        for slowdown in SIMULATED_SLOWDOWNS:
            setup = closed_loop.Setup(
                nodes=scale.agents,
                job_tasks=scale.job_tasks,
                task_s=scale.task_s,
                seconds=scale.seconds,
                memory_slowdown=slowdown,
                placement=options.placement,
            )
            for seed in range(SIMULATED_SEEDS):
                for kind, finished in closed_loop.run(policy, seed, setup).items():
                    found.setdefault((policy, kind, slowdown), []).append(finished)
    return found


def print_rows(
    rows: Sequence[ClassRow], console: Console | None = None, *, simulated: Simulated | None = None
) -> None:
    """Print them as a Markdown table, one line a policy and class: means over the seeds with 95 % intervals."""
    console = console or Console()
    simulated = simulated or {}
    slowdowns = sorted({slowdown for _, _, slowdown in simulated})
    heads = ["policy", "class", "jobs", "mean response, s"]
    if simulated:
        heads += ["killed", "machine idle", *[f"jobs simulated, S = {slowdown:g}" for slowdown in slowdowns]]
        heads += [f"response simulated, S = {slowdown:g}, s" for slowdown in slowdowns]
    lines = []
    for policy, kind in dict.fromkeys((row.policy, row.job_class) for row in rows):
        own = [row for row in rows if (row.policy, row.job_class) == (policy, kind)]
        cells = [
            policy,
            kind,
            _mean([row.jobs for row in own], 1),
            _mean([row.mean_response_s for row in own], 2),
        ]
        if simulated:
            runs = [simulated[policy, kind, slowdown] for slowdown in slowdowns]
            cells += [_mean([row.killed for row in own], 1), f"{min(row.idle for row in own):.0%}"]
            cells += [_mean([each.jobs for each in run], 1) for run in runs]
            cells += [_mean([each.mean_response_s for each in run], 2) for run in runs]
        lines.append(cells)
    alignments = ["---", "---", *["--:"] * (len(heads) - 2)]
    console.file.write("\n" + markdown(heads, alignments, lines))


def _mean(values: Sequence[float | None], digits: int) -> str:
    """Of those there are; one value that is a whole number stands as it is."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    if len(known) == 1:
        return str(known[0]) if isinstance(known[0], int) else f"{known[0]:.{digits}f}"
    found = estimate(known)
    return f"{found.mean:.{digits}f} ± {found.half_width or 0.0:.{digits}f}"
