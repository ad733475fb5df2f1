import asyncio
from collections.abc import Sequence

import pytest

from fairlead_lab.replay.replay_driver import ReplayDriver, TaskOutcome
from fairlead_lab.workloads.plan import PlannedTask, ReplayPlan, plan_replay
from fairlead_lab.workloads.scaling import ScalingRule
from fairlead_sdk.clock import sleep
from fairlead_sim.testing import VirtualClock
from fairlead_sim.workload import Bundle, group_jobs
from tests.laboratory.workloads.workload_builders import GIB, a_bundle

NODE = (4000, 8 * GIB, 0, 0)


async def to_the_end(clock: VirtualClock, run: "asyncio.Task[None]") -> None:
    """Far beyond the longest run here, however it ends."""
    await clock.advance(60_000)
    assert run.done()


class SleepingRunner:
    """A cluster without limits on which everything starts at once; some tasks come to another end."""

    def __init__(self, clock: VirtualClock, ends: dict[str, str] | None = None) -> None:
        self.clock = clock
        self.ends = ends or {}
        self.start_ms = clock.now_ms()
        self.calls: list[tuple[int, str, list[str]]] = []
        self.cancelled: list[str] = []

    async def run(self, user: str, tasks: Sequence[PlannedTask]) -> list[TaskOutcome]:
        started_unix_ms = self.clock.unix_ms()
        self.calls.append((self.clock.now_ms() - self.start_ms, user, [task.task_id for task in tasks]))
        try:
            await sleep(self.clock, max(task.duration_ms for task in tasks))
        except asyncio.CancelledError:
            self.cancelled += [task.task_id for task in tasks]
            raise
        return [
            TaskOutcome(
                state=self.ends.get(task.task_id, "FINISHED"),
                started_unix_ms=started_unix_ms,
                finished_unix_ms=started_unix_ms + task.duration_ms,
                agent_id="a0",
                attempts=1,
            )
            for task in tasks
        ]


def a_plan(*bundles: Bundle) -> ReplayPlan:
    return plan_replay(
        group_jobs(bundles), ScalingRule(reference=NODE, agents=(NODE,), speedup=1, duration_floor_ms=0)
    )


async def test_jobs_are_handed_in_when_they_are_due() -> None:
    clock = VirtualClock()
    runner = SleepingRunner(clock)
    plan = a_plan(a_bundle("a"), a_bundle("b", user="bob", submit_ms=250), a_bundle("c", submit_ms=250))
    driver = ReplayDriver(plan, runner, clock)

    await to_the_end(clock, asyncio.create_task(driver.run()))

    assert [(at_ms, user) for at_ms, user, _ in runner.calls] == [(0, "ann"), (250, "bob"), (250, "ann")]
    assert [job.submitted_ms for job in driver.job_records()] == [0, 250, 250]
    assert all(job.is_finished for job in driver.job_records())


async def test_stage_begins_when_every_task_of_the_earlier_one_is_over() -> None:
    clock = VirtualClock()
    runner = SleepingRunner(clock)
    plan = a_plan(
        a_bundle("a", tasks=2, duration_ms=100), a_bundle("a", duration_ms=300), a_bundle("a", stage=1)
    )
    driver = ReplayDriver(plan, runner, clock)

    await to_the_end(clock, asyncio.create_task(driver.run()))

    (job,) = driver.job_records()
    assert [at_ms for at_ms, _, _ in runner.calls] == [0, 300]
    assert [task.submitted_ms for task in job.tasks] == [0, 0, 0, 300]
    assert job.finished_ms - job.submitted_ms == plan.jobs[0].ideal_ms == 1300


async def test_later_stages_are_withheld_after_a_task_that_did_not_finish() -> None:
    clock = VirtualClock()
    runner = SleepingRunner(clock, ends={"j0-a-0-1": "FAILED"})
    driver = ReplayDriver(a_plan(a_bundle("a", tasks=2), a_bundle("a", stage=1, tasks=3)), runner, clock)

    await to_the_end(clock, asyncio.create_task(driver.run()))

    (job,) = driver.job_records()
    assert [task.state for task in job.tasks] == ["FINISHED", "FAILED"]
    assert job.withheld == 3
    assert not job.is_finished


async def test_cut_short_run_cancels_its_tasks_and_still_has_records() -> None:
    clock = VirtualClock()
    runner = SleepingRunner(clock)
    plan = a_plan(
        a_bundle("a", duration_ms=100), a_bundle("b", duration_ms=9000), a_bundle("c", submit_ms=8000)
    )
    driver = ReplayDriver(plan, runner, clock)
    run = asyncio.create_task(driver.run())

    clock.call_later(500, run.cancel)
    await to_the_end(clock, run)

    assert run.cancelled()
    assert runner.cancelled == ["j1-b-0-0"]
    done, cut, never = driver.job_records()
    assert done.is_finished
    assert [task.state for task in cut.tasks] == ["PENDING"]
    assert (never.tasks, never.withheld) == ((), 1)


async def test_failure_of_the_runner_ends_the_run() -> None:
    class Broken(SleepingRunner):
        async def run(self, user: str, tasks: Sequence[PlannedTask]) -> list[TaskOutcome]:
            if user == "bob":
                raise ConnectionError("the master is gone")
            return await super().run(user, tasks)

    clock = VirtualClock()
    runner = Broken(clock)
    driver = ReplayDriver(a_plan(a_bundle("a"), a_bundle("b", user="bob", submit_ms=10)), runner, clock)
    run = asyncio.create_task(driver.run())

    await to_the_end(clock, run)

    with pytest.raises(ExceptionGroup) as caught:
        run.result()
    assert caught.group_contains(ConnectionError, match="the master is gone")
    assert runner.cancelled == ["j0-a-0-0"]


async def test_progress_estimates_the_rest_from_the_rate_so_far() -> None:
    clock = VirtualClock()
    driver = ReplayDriver(
        a_plan(a_bundle("a", duration_ms=1000), a_bundle("b", submit_ms=1000, duration_ms=3000)),
        SleepingRunner(clock),
        clock,
    )
    seen = [driver.progress()]
    clock.call_later(1500, lambda: seen.append(driver.progress()))

    await to_the_end(clock, asyncio.create_task(driver.run()))

    seen.append(driver.progress())
    assert [(step.jobs_submitted, step.jobs_over, step.tasks_over) for step in seen] == [
        (0, 0, 0),
        (2, 1, 1),
        (2, 2, 2),
    ]
    assert [step.work_fraction for step in seen] == [0, 0.25, 1]
    assert [step.remaining_ms for step in seen] == [None, 4500, 0]


async def test_times_of_another_clock_never_put_an_end_before_its_beginning() -> None:
    class Skewed(SleepingRunner):
        async def run(self, user: str, tasks: Sequence[PlannedTask]) -> list[TaskOutcome]:
            await super().run(user, tasks)
            return [
                TaskOutcome(state="FINISHED", started_unix_ms=5, finished_unix_ms=2, attempts=1)
                for _ in tasks
            ]

    clock = VirtualClock()
    driver = ReplayDriver(a_plan(a_bundle("a")), Skewed(clock), clock)

    await to_the_end(clock, asyncio.create_task(driver.run()))

    (task,) = driver.job_records()[0].tasks
    assert (task.submitted_ms, task.started_ms, task.finished_ms) == (0, 0, 0)
