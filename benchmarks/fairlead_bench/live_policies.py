"""Each policy on a live cluster, beside the exact solver's answer for the same demands.

A local cluster of real agents, four frameworks of different demand vectors, one of twice the weight, one that wants three
tasks for good and no more; the others' tasks are real processes that sleep for random times, so that the cluster is always
full and always changing. The policy is changed on the running cluster. What is measured is the mean number of tasks each
framework ran over some seconds, after the tasks of the policy before have ended and shares have settled.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from fairlead_bench.rows import markdown
from fairlead_local.cluster import LocalCluster
from fairlead_master.solvers import registry
from fairlead_master.solvers.problem import Nodes, Problem, User
from fairlead_sdk import Framework, OperatorClient, Task

SAMPLE_EVERY_S: Final = 0.2

SETTLE_S: Final = 15.0
"""Three times the longest task, and long enough for what is owed to large tasks by way of reservations."""

_RESERVATION_AFTER: Final = "2s"
"""As long as a task, as the master's default is for tasks of seconds to minutes."""

_AGENTS: Final = 3
_AGENT: Final = (12, 24)
"""CPUs and GiB of each, as declared: more than the machine has, since the tasks only sleep."""

_TASK_S: Final = (1.0, 3.0)
"""Between these a task sleeps: long beside the milliseconds a decision takes, short beside the measurement."""

_ARGUMENTS: Final = ("--reservation-after", _RESERVATION_AFTER)

_FOR_GOOD_S: Final = 86_400.0

_WAITING: Final = 200
"""Tasks a hungry framework keeps submitted: more than the cluster holds."""


@dataclass(frozen=True, slots=True)
class Competitor:
    """A framework, alone in a role of its name."""

    name: str
    cpus: float
    mem_gib: float
    weight: float = 1.0
    max_tasks: int | None = None
    """It starts these and they do not end; None: as many as it can get, one after the other."""


COMPETITORS: Final = (
    Competitor("memory", 1, 4),
    Competitor("cpus", 3, 1),
    Competitor("heavy", 1, 1, weight=2.0),
    Competitor("modest", 2, 2, max_tasks=3),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRow:
    """One competitor under one policy."""

    policy: str
    name: str
    live: float
    """Tasks held, in the mean."""
    fluid: float
    """What the exact solver gives in divisible tasks."""
    discrete: int | None
    """What it gives in whole tasks on the same agents; None where there is no such answer."""

    @property
    def difference(self) -> float:
        """``live - fluid``, in tasks."""
        return self.live - self.fluid


def the_problem() -> Problem:
    """What the solver is asked."""
    users = tuple(
        User(
            c.name,
            (c.cpus, c.mem_gib),
            (c.weight, c.weight),
            float("inf") if c.max_tasks is None else c.max_tasks,
        )
        for c in COMPETITORS
    )
    capacity = (float(_AGENTS * _AGENT[0]), float(_AGENTS * _AGENT[1]))
    return Problem(("cpus", "mem"), capacity, users, nodes=(Nodes(_AGENTS, _AGENT),))


def measure(
    policies: Sequence[str],
    *,
    seconds: float,
    seed: int,
    head: str = "skip",
    tell: Callable[[str], None] = lambda _: None,
) -> list[LiveRow]:
    """Run each policy in turn for ``seconds`` after the tasks of the one before are over.

    Args:
        policies: as an operator writes them.
        seconds: measured for each.
        seed: of the lengths of tasks.
        head: what happens when the first in order does not fit: ``skip`` or ``freeze``.
        tell: is told of each policy when its turn begins.

    Raises:
        SolverError: a policy is not known.
    """
    problem = the_problem()
    exact = {policy: registry.solve(problem, policy).tasks for policy in policies}
    whole = {policy: registry.solve(problem, policy, discrete=True).tasks for policy in policies}
    resources = f"cpus={_AGENT[0]},mem={_AGENT[1]}GiB"
    with LocalCluster(
        agents=_AGENTS,
        resources=resources,
        isolation="none",
        master_arguments=(*_ARGUMENTS, "--when-head-does-not-fit", head),
    ) as cluster:
        live = asyncio.run(_play(cluster.address, policies, seconds, seed, tell))
    return [
        LiveRow(
            policy=policy,
            name=competitor.name,
            live=live[policy][place],
            fluid=exact[policy][place],
            discrete=round(whole[policy][place]),
        )
        for policy in policies
        for place, competitor in enumerate(COMPETITORS)
    ]


_HEADS: Final = (
    "policy", "framework", "task", "weight", "live", "exact, divisible", "exact, whole", "live - divisible",
)  # fmt: skip


def print_rows(rows: Sequence[LiveRow], console: Console | None = None) -> None:
    """Print them as a Markdown table, one line a policy and competitor."""
    console = console or Console()
    lines = []
    for row in rows:
        competitor = next(c for c in COMPETITORS if c.name == row.name)
        task = f"{competitor.cpus:g} CPU, {competitor.mem_gib:g} GiB"
        most = "" if competitor.max_tasks is None else f", at most {competitor.max_tasks}"
        whole = "" if row.discrete is None else f"{row.discrete}"
        shares = [f"{row.live:.2f}", f"{row.fluid:.2f}", whole, f"{row.difference:+.2f}"]
        lines.append([row.policy, row.name, task + most, f"{competitor.weight:g}", *shares])
    console.file.write("\n" + markdown(_HEADS, ["---"] * 3 + ["--:"] * 5, lines))


async def _play(
    address: str, policies: Sequence[str], seconds: float, seed: int, tell: Callable[[str], None]
) -> dict[str, list[float]]:
    means: dict[str, list[float]] = {}
    async with OperatorClient(address) as operator, _competing(address, seed):
        for policy in policies:
            tell(policy)
            await operator.set_policy(policy)
            await asyncio.sleep(SETTLE_S)
            means[policy] = await _mean_tasks(operator, seconds)
    return means


async def _mean_tasks(operator: OperatorClient, seconds: float) -> list[float]:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    samples = 0
    sums = [0] * len(COMPETITORS)
    while loop.time() < end:
        running = {role.role: role.running async for role in operator.roles()}
        for place, competitor in enumerate(COMPETITORS):
            sums[place] += running.get(competitor.name, 0)
        samples += 1
        await asyncio.sleep(SAMPLE_EVERY_S)
    return [total / samples for total in sums]


@asynccontextmanager
async def _competing(address: str, seed: int) -> AsyncIterator[None]:
    """All competitors at work until the end of the context."""
    async with AsyncExitStack() as stack:
        workers: list[asyncio.Task[None]] = []
        for place, competitor in enumerate(COMPETITORS):
            framework = await stack.enter_async_context(
                Framework(competitor.name, master=address, role=competitor.name, weight=competitor.weight)
            )
            for number in range(competitor.max_tasks or _WAITING):
                rng = random.Random(f"{seed} {place} {number}")
                workers.append(asyncio.create_task(_work(framework, competitor, rng)))
        try:
            yield
        finally:
            for worker in workers:
                worker.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*workers)


async def _work(framework: Framework, competitor: Competitor, rng: random.Random) -> None:
    """One task after the other."""
    while True:
        sleep_s = rng.uniform(*_TASK_S) if competitor.max_tasks is None else _FOR_GOOD_S
        result = await framework.submit(
            Task(["sleep", f"{sleep_s:.3f}"], cpus=competitor.cpus, mem=f"{competitor.mem_gib:g}GiB")
        )
        if result.refusal is not None:
            raise result.refusal
