"""A whole replay through the SDK, against its master in memory: what a live one does but processes and fairness."""

import asyncio
from collections.abc import Mapping

import pytest

from fairlead_lab.metrics.records import JobRecord
from fairlead_lab.replay.replay_driver import ReplayDriver
from fairlead_lab.replay.replay_run import first_cause
from fairlead_lab.replay.sleep_tasks import SleepRunner, sleep_task
from fairlead_lab.workloads.plan import ReplayPlan, plan_replay
from fairlead_lab.workloads.scaling import ScalingRule
from fairlead_proto.task_state import TaskState
from fairlead_sdk.errors import Infeasible
from fairlead_sim.testing import Outcome, VirtualMaster
from fairlead_sim.workload import Bundle, group_jobs
from tests.laboratory.workloads.workload_builders import GIB, a_bundle

NODE = (4000, 8 * GIB, 0, 1000)


def a_plan(*bundles: Bundle) -> ReplayPlan:
    rule = ScalingRule(reference=NODE, agents=(NODE,), speedup=1, duration_floor_ms=0)
    return plan_replay(group_jobs(bundles), rule)


def a_master(plan: ReplayPlan) -> VirtualMaster:
    """One agent of ``NODE``; each task takes as long as it was told to sleep."""
    master = VirtualMaster()
    master.add_agent("a0", cpus=4, mem="8GiB", gpus=1)
    for job in plan.jobs:
        for stage in job.stages:
            for task in stage:
                master.script(task.task_id, Outcome(duration_ms=task.duration_ms))
    return master


async def replayed(
    master: VirtualMaster, plan: ReplayPlan, clock_ahead_ms: Mapping[str, int] | None = None
) -> tuple[JobRecord, ...]:
    async with SleepRunner(master, plan.roles, clock_ahead_ms=clock_ahead_ms) as runner:
        driver = ReplayDriver(plan, runner, master.clock)
        await master.finish(driver.run())
        return driver.job_records()


async def test_replay_runs_every_task_as_its_user_and_records_what_happened() -> None:
    plan = a_plan(
        a_bundle("a", user="ann", tasks=4, duration_ms=1000),
        a_bundle("b", user="bob", submit_ms=500, duration_ms=200),
        a_bundle("b", user="bob", stage=1, submit_ms=500, unit=(500, GIB, 0, 250), duration_ms=300),
    )
    master = a_master(plan)

    ann, bob = await replayed(master, plan)

    assert {framework.role for framework in master.frameworks.values()} <= {"ann", "bob"}
    assert [(task.submitted_ms, task.started_ms, task.finished_ms) for task in ann.tasks] == [
        (0, 0, 1000)
    ] * 4
    # ann's four tasks hold all four cores, so bob's first stage waits for half a second and his second for the first.
    assert [(task.submitted_ms, task.started_ms, task.finished_ms) for task in bob.tasks] == [
        (500, 1000, 1200),
        (1200, 1200, 1500),
    ]
    assert [task.agent_id for job in (ann, bob) for task in job.tasks] == ["a0"] * 6
    assert all(job.is_finished for job in (ann, bob))


async def test_lost_task_is_run_again_and_counted() -> None:
    plan = a_plan(a_bundle("a", duration_ms=700))
    master = VirtualMaster()
    master.add_agent("a0", cpus=4, mem="8GiB")
    master.script("j0-a-0-0", Outcome(state=TaskState.LOST))

    (job,) = await replayed(master, plan)

    (task,) = job.tasks
    assert (task.state, task.attempts) == ("FINISHED", 2)


async def test_task_that_is_lost_for_good_is_a_record_and_no_error() -> None:
    plan = a_plan(a_bundle("a"))
    master = VirtualMaster()
    master.add_agent("a0", cpus=4, mem="8GiB")
    master.script(lambda spec: True, Outcome(state=TaskState.LOST))

    (job,) = await replayed(master, plan)

    (task,) = job.tasks
    assert (task.state, task.attempts, task.reason) == ("LOST", 4, "EXECUTOR_FAILED")
    assert not job.is_finished


async def test_times_of_an_agent_whose_clock_is_ahead_are_set_right() -> None:
    plan = a_plan(a_bundle("a", submit_ms=0), a_bundle("b", submit_ms=5000))

    _, job = await replayed(a_master(plan), plan, clock_ahead_ms={"a0": 400})

    # 400 ms too much are taken off; what would lie before the submission is set to it.
    assert (job.tasks[0].started_ms, job.tasks[0].finished_ms) == (5000, 5600)


async def test_interrupted_replay_leaves_no_task_running() -> None:
    plan = a_plan(a_bundle("a", tasks=3, duration_ms=1_000_000))
    master = a_master(plan)
    async with SleepRunner(master, plan.roles) as runner:
        run = asyncio.ensure_future(ReplayDriver(plan, runner, master.clock).run())
        await master.advance(100)
        assert len(master.running()) == 3

        run.cancel()
        await master.advance(100)

        assert run.cancelled()
        assert master.running() == []


async def test_demand_no_agent_can_hold_ends_the_replay_with_the_masters_words() -> None:
    plan = a_plan(a_bundle("a", unit=(4000, GIB, 0, 0)))
    master = VirtualMaster()
    master.add_agent("small", cpus=1, mem="8GiB")
    async with SleepRunner(master, plan.roles) as runner:
        with pytest.raises(ExceptionGroup) as caught:
            await master.finish(ReplayDriver(plan, runner, master.clock).run())

    assert isinstance(first_cause(caught.value), Infeasible)


def test_process_of_a_task_is_a_sleep_of_its_length_and_demand() -> None:
    (stage,) = a_plan(a_bundle("a", unit=(250, GIB, 0, 500), duration_ms=1234)).jobs[0].stages

    task = sleep_task(stage[0])

    assert task.command == ("/bin/sleep", "1.234")
    assert str(task.demand) == "cpus=0.25,mem=1GiB,gpus=0.5"
