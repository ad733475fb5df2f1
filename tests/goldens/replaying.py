"""A replay of the sample on a cluster in memory, which ends the same way each time."""

from dataclasses import replace

from fairlead_lab.metrics.records import ClusterSample, RoleSample, RunRecord
from fairlead_lab.replay.replay_driver import ReplayDriver
from fairlead_lab.replay.sleep_tasks import SleepRunner
from fairlead_lab.workloads.loading import load_jobs
from fairlead_lab.workloads.plan import plan_replay
from fairlead_lab.workloads.sample import SAMPLE
from fairlead_lab.workloads.scaling import ScalingRule
from fairlead_master.allocation.api import AllocationSettings
from fairlead_sim.testing import AT_ONCE, Outcome, VirtualMaster

GIB = 2**30
NODE = (4000, 8 * GIB, 0, 0)
AGENTS = ("a0", "a1")


async def a_run(policy: str) -> RunRecord:
    """The record of a run under a policy."""
    jobs = load_jobs(SAMPLE)
    rule = ScalingRule(reference=(16_000, 64 * GIB, 0, 0), agents=(NODE,) * 2, speedup=60)
    plan = plan_replay(jobs, rule)
    master = VirtualMaster(settings=replace(AT_ONCE, allocation=AllocationSettings(policy=policy)))
    for agent in AGENTS:
        master.add_agent(agent, cpus=4, mem="8GiB")
    for job in plan.jobs:
        for stage in job.stages:
            for task in stage:
                master.script(task.task_id, Outcome(duration_ms=task.duration_ms))
    async with SleepRunner(master, plan.roles) as runner:
        driver = ReplayDriver(plan, runner, master.clock)
        await master.finish(driver.run())
        records = driver.job_records()
    role = RoleSample(
        dominant_share=0.25, dominant_resource="cpus", allocated=(2000, GIB, 0, 0), pending=3, running=2
    )
    samples = [
        ClusterSample(
            at_ms=at_ms,
            total=(8000, 16 * GIB, 0, 0),
            allocated=(2000, GIB, 0, 0),
            used=(500, GIB, 0, 0),
            roles={next(iter(plan.roles.values())): role},
        )
        for at_ms in (0, 1_000)
    ]
    return RunRecord(
        policy=policy,
        agents=dict.fromkeys(AGENTS, NODE),
        jobs=records,
        samples=tuple(samples),
        decisions=1_234,
        master_cpu_ms=56,
    )
