"""The worked example of dominant resource fairness, live: nine CPUs and 18 GB between two frameworks.

Ghodsi et al., "Dominant Resource Fairness", section 4.1: tasks of A need <1 CPU, 4 GB>, tasks of B <3 CPU, 1 GB>. DRF
gives A three tasks (two thirds of the memory) and B two (two thirds of the CPU). Here one real agent declares those
amounts (its host need not have them: sleeps use nothing) and both frameworks have far more work than fits. A begins
alone, so that one sees its share fall and B's rise when B arrives; then nothing ends any more, and the cluster must stand
still at exactly 3 and 2.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from fairlead_lab.metrics.records import RoleSample
from fairlead_lab.replay.cluster_watch import ClusterWatch
from fairlead_lab.replay.sleep_tasks import SLEEP
from fairlead_proto.resources import CPUS, MEM
from fairlead_sdk import Framework, Task

RESOURCES: Final = "cpus=9,mem=18GB,disk=10GB"
"""Of the one agent."""

LOOK_INTERVAL_S: Final = 0.1
"""Between looks at the shares: several for each step a person should see."""

LOOKS_STILL: Final = 10
"""Looks in a row that must show the same: a second in which a wrong allocator would have moved."""

TIME_LIMIT_S: Final = 30.0
"""It takes about five seconds; six times that is a cluster at fault and not a slow host."""

FIRST_SLEEPS_S: Final = (1.5, 2.0, 2.5, 3.0)
"""A's first tasks: as many as fit while it is alone, ending one after the other."""
LONG_SLEEP_S: Final = 600
"""All other tasks: they outlive the example, and are killed at its end."""
BACKLOG: Final = 20

EXPECTED_TASKS: Final = {"a": 3, "b": 2}
EXPECTED_SHARE: Final = Fraction(2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One look at the two roles: tasks, amounts in cores and bytes, dominant shares."""

    at_s: float
    roles: Mapping[str, RoleSample]

    @property
    def tasks(self) -> dict[str, int]:
        """Tasks that run, by role."""
        return {name: self.roles[name].running if name in self.roles else 0 for name in EXPECTED_TASKS}

    @property
    def is_expected(self) -> bool:
        """Whether it is what the paper says: 3 and 2 tasks, both dominant shares exactly two thirds."""
        return self.tasks == EXPECTED_TASKS and all(
            abs(self.roles[name].dominant_share - EXPECTED_SHARE) < 1e-9 for name in EXPECTED_TASKS
        )


async def run_example(master: str, watch: ClusterWatch, show: Callable[[Standing], None]) -> Standing | None:
    """Play the example on a master with one agent of ``RESOURCES`` and the policy ``drf``.

    Args:
        master: HOST:PORT.
        watch: the same master.
        show: called with every look.

    Returns:
        The standing that held still at 3 and 2; None if none did within ``TIME_LIMIT_S``. Nothing is left running.
    """
    loop = asyncio.get_running_loop()
    start_s = loop.time()

    async def look() -> Standing:
        await asyncio.sleep(LOOK_INTERVAL_S)
        standing = Standing(at_s=loop.time() - start_s, roles=await watch.roles())
        show(standing)
        return standing

    a = Framework("framework A", master=master, role="a")
    b = Framework("framework B", master=master, role="b")
    try:
        async with asyncio.timeout(TIME_LIMIT_S), a:
            first = [a.submit(_a_task(sleep_s)) for sleep_s in FIRST_SLEEPS_S]
            for _ in range(BACKLOG):
                a.submit(_a_task(LONG_SLEEP_S))
            while (await look()).tasks["a"] < len(FIRST_SLEEPS_S):
                pass
            async with b:
                for _ in range(BACKLOG):
                    b.submit(_b_task())
                still = 0
                while True:
                    standing = await look()
                    settled = standing.is_expected and all(handle.done for handle in first)
                    still = still + 1 if settled else 0
                    if still == LOOKS_STILL:
                        return standing
    except TimeoutError:
        return None
    finally:
        await watch.wait_until_quiet()


def _a_task(sleep_s: float) -> Task:
    return Task([SLEEP, f"{sleep_s:g}"], cpus=1, mem="4GB", grace_period=1.0)


def _b_task() -> Task:
    return Task([SLEEP, str(LONG_SLEEP_S)], cpus=3, mem="1GB", grace_period=1.0)


def describe(standing: Standing) -> list[tuple[str, str, str, str, str]]:
    """A line for each role: name, tasks, CPUs, memory, dominant share."""
    lines = []
    for name, need in (("a", "<1 CPU, 4 GB>"), ("b", "<3 CPU, 1 GB>")):
        role = standing.roles.get(name)
        if role is None:
            lines.append((f"{name.upper()} {need}", "0", "0", "0 GB", "not here yet"))
            continue
        lines.append((
            f"{name.upper()} {need}",
            str(role.running),
            f"{role.allocated[CPUS] / 1000:g}",
            f"{role.allocated[MEM] / 1e9:g} GB",
            f"{role.dominant_share:.3f} {role.dominant_resource}",
        ))  # fmt: skip
    return lines
