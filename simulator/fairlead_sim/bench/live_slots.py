"""Section 7.2 of the paper on dominant resource fairness, live: fair sharing against slots, with real agents and processes.

48 agents of 8 CPUs and 6 GiB; four users whose jobs are 80 tasks of <1 CPU, 0.5 GiB> and four whose jobs are 80 tasks of
<2 CPUs, 2 GiB>. A user whose job is done hands in the next. What is counted is the jobs done in a time and how long each
took. The paper runs each policy for ten minutes on 48 hosts and does not say how long tasks are; here all hosts are one
machine, tasks sleep, and time is compressed.

A sleep does not suffer where a host is promised more than it has, so what slots cost by swapping is not seen here: that is
what the simulation models (``pool.hosts.Slowdown``). Seen here is what they cost by leaving places empty.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from fairlead_cli.local_cluster import LocalCluster
from fairlead_sdk import Framework, OperatorClient, Task

NODES: Final = 48
NODE: Final = "cpus=8,mem=6GiB"
JOB_TASKS: Final = 80
USERS_OF_A_CLASS: Final = 4

POLICIES: Final = ("drf", "slots:3", "slots:4", "slots:5", "slots:6", "max-min:cpus")
"""Those of the paper's figures 9 to 12."""

SPREAD: Final = 0.5
"""Tasks last between 1 - this and 1 + this of the mean, evenly."""


@dataclass(frozen=True, slots=True)
class JobClass:
    """What the tasks of a job need."""

    name: str
    cpus: float
    mem: str


CLASSES: Final = (JobClass("small", 1, "512MiB"), JobClass("large", 2, "2GiB"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """The jobs of one class under one policy."""

    policy: str
    job_class: str
    jobs: int
    """Done within the time."""
    mean_response_s: float | None
    """From a job's submission to the end of its last task, of those; None if there are none. In compressed seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsOptions:
    """How the experiment is run."""

    policies: Sequence[str] = POLICIES
    agents: int = NODES
    seconds: float = 60.0
    """For each policy."""
    task_s: float = 3.0
    """Mean length of a task."""
    job_tasks: int = JOB_TASKS
    seed: int = 1


def lengths(seed: int, user: str, job: int, tasks: int, mean_s: float) -> Iterator[float]:
    """How long each task of a job lasts, the same under every policy, in seconds."""
    dice = random.Random(f"{seed} {user} {job}")  # noqa: S311 - lengths of tasks, no secrets
    for _ in range(tasks):
        yield mean_s * dice.uniform(1 - SPREAD, 1 + SPREAD)


def measure(options: SlotsOptions, tell: Callable[[str], None] = lambda _: None) -> list[ClassRow]:
    """Run the experiment under each policy in turn, on one local cluster; ``tell`` is told of each before it begins."""
    with LocalCluster(agents=options.agents, resources=NODE, isolation="none") as cluster:
        return asyncio.run(_run_all(cluster.address, options, tell))


async def _run_all(address: str, options: SlotsOptions, tell: Callable[[str], None]) -> list[ClassRow]:
    rows: list[ClassRow] = []
    async with OperatorClient(address) as operator:
        for policy in options.policies:
            tell(policy)
            await operator.set_policy(policy)
            rows += await _run_policy(address, policy, options)
    return rows


async def _run_policy(address: str, policy: str, options: SlotsOptions) -> list[ClassRow]:
    users = [(f"{kind.name}-{number}", kind) for kind in CLASSES for number in range(USERS_OF_A_CLASS)]
    responses: dict[str, list[float]] = {kind.name: [] for kind in CLASSES}
    at_work = [
        asyncio.create_task(_user(address, name, kind, options, responses[kind.name])) for name, kind in users
    ]
    done, pending = await asyncio.wait(at_work, timeout=options.seconds, return_when=asyncio.FIRST_EXCEPTION)
    for user in pending:
        user.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for user in done:
        user.result()
    return [
        ClassRow(
            policy=policy,
            job_class=name,
            jobs=len(taken),
            mean_response_s=sum(taken) / len(taken) if taken else None,
        )
        for name, taken in responses.items()
    ]


async def _user(
    address: str, name: str, kind: JobClass, options: SlotsOptions, responses: list[float]
) -> None:
    """One job after the other."""
    loop = asyncio.get_running_loop()
    async with Framework(name, master=address, role=name) as framework:
        job = 0
        while True:
            began = loop.time()
            results = await framework.run(
                Task(["sleep", f"{length_s:.3f}"], cpus=kind.cpus, mem=kind.mem)
                for length_s in lengths(options.seed, name, job, options.job_tasks, options.task_s)
            )
            if results[0].refusal is not None:
                raise results[0].refusal
            responses.append(loop.time() - began)
            job += 1


def print_rows(rows: Sequence[ClassRow], console: Console | None = None) -> None:
    """Print them as a Markdown table, one line a policy and class."""
    console = console or Console()
    lines = ["| policy | class | jobs | mean response, s |", "| --- | --- | --: | --: |"]
    for row in rows:
        response = "" if row.mean_response_s is None else f"{row.mean_response_s:.2f}"
        lines.append(f"| {row.policy} | {row.job_class} | {row.jobs} | {response} |")
    console.file.write("\n" + "\n".join(lines) + "\n")
