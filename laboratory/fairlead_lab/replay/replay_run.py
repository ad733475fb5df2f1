"""One replay of a plan on a live cluster under one policy: from the policy's setting to the record of the run."""

import asyncio
from contextlib import suppress
from typing import Final

from rich.console import Console

from fairlead_lab.metrics.records import ClusterSample, RunRecord
from fairlead_lab.replay.cluster_watch import AgentView, ClusterWatch
from fairlead_lab.replay.replay_driver import ReplayDriver
from fairlead_lab.replay.replay_progress import ShowProgress, shown_progress
from fairlead_lab.replay.sleep_tasks import SleepRunner
from fairlead_lab.workloads.plan import ReplayPlan
from fairlead_sdk.clock import LoopClock
from fairlead_sdk.errors import MasterUnreachable

SAMPLE_INTERVAL_S: Final = 0.5
"""A look costs the master about 2.5 ms with 28 roles; twice a second tells the shape of a run of minutes."""

PROGRESS_INTERVAL_S: Final = 0.2


async def run_policy(
    watch: ClusterWatch,
    plan: ReplayPlan,
    policy: str,
    *,
    agents: list[AgentView],
    console: Console,
    limit_s: float | None = None,
) -> RunRecord:
    """Set the policy, play the plan to its end, and give the record.

    Args:
        watch: the master, nothing running on it.
        plan: what to play.
        policy: by name, parameters included.
        agents: the cluster's agents.
        console: where progress is shown.
        limit_s: end the run after this long; its record says so. None is without limit.

    Raises:
        FairleadError: the master refuses the policy or a demand, or is gone for good.
    """
    await watch.set_policy(policy)
    before = await watch.counters()
    ahead = {agent.agent_id: agent.clock_ahead_ms for agent in agents}
    samples: list[ClusterSample] = []
    async with SleepRunner(watch.address, plan.roles, clock_ahead_ms=ahead) as runner:
        driver = ReplayDriver(plan, runner, LoopClock())
        with shown_progress(console, policy) as show:
            is_complete = await _play(driver, watch, samples, show, limit_s)
            show(driver.progress(), final=True)
        after = await watch.counters()
    await watch.wait_until_quiet()
    return RunRecord(
        policy=policy,
        agents={agent.agent_id: agent.total for agent in agents},
        jobs=driver.job_records(),
        samples=tuple(samples),
        decisions=after.decisions - before.decisions,
        master_cpu_ms=after.cpu_time_ms - before.cpu_time_ms,
        is_complete=is_complete,
    )


async def _play(
    driver: ReplayDriver,
    watch: ClusterWatch,
    samples: list[ClusterSample],
    show: ShowProgress,
    limit_s: float | None,
) -> bool:
    """Run the driver with its onlookers; gives whether it came to its end within the limit."""
    onlookers = [
        asyncio.create_task(_keep_sampling(driver, watch, samples)),
        asyncio.create_task(_keep_showing(driver, show)),
    ]
    try:
        async with asyncio.timeout(limit_s):
            await driver.run()
    except TimeoutError:
        return False
    except ExceptionGroup as failures:
        # One lost master fails hundreds of jobs; the first cause says it all.
        raise first_cause(failures) from failures
    else:
        return True
    finally:
        for onlooker in onlookers:
            onlooker.cancel()
        await asyncio.gather(*onlookers, return_exceptions=True)


async def _keep_sampling(driver: ReplayDriver, watch: ClusterWatch, samples: list[ClusterSample]) -> None:
    while True:
        # A master that restarts meanwhile costs samples, not the run: frameworks reconnect by themselves.
        with suppress(MasterUnreachable):
            samples.append(await watch.sample(driver.now_ms()))
        await asyncio.sleep(SAMPLE_INTERVAL_S)


async def _keep_showing(driver: ReplayDriver, show: ShowProgress) -> None:
    while True:
        show(driver.progress())
        await asyncio.sleep(PROGRESS_INTERVAL_S)


def first_cause(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first plain exception in a group of groups."""
    first = failures.exceptions[0]
    return first_cause(first) if isinstance(first, BaseExceptionGroup) else first
