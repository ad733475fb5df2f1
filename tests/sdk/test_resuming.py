"""A framework with its old id takes up what its earlier session left; nothing runs twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fairlead_sdk import Framework, Task, TaskState
from fairlead_sim.testing import Outcome, VirtualMaster
from tests.sdk.builders import a_master, a_task, begin


async def left_behind(master: VirtualMaster, *tasks: Task, after_ms: int = 1_000) -> str:
    """The id of a framework that launched these tasks and went away without a word."""
    framework = Framework("f", master=master, on_exit="leave")
    await framework.start()
    for task in tasks:
        framework.submit(task)
    await master.advance(after_ms)
    await framework.close()
    return framework.framework_id


@asynccontextmanager
async def resumed(master: VirtualMaster, framework_id: str) -> AsyncIterator[Framework]:
    async with Framework("f", master=master, framework_id=framework_id) as framework:
        yield framework


def long(task_id: str, **options: object) -> Task:
    return a_task("long", task_id=task_id, **options)


async def test_what_runs_is_waited_for_and_not_run_again() -> None:
    master = a_master()
    master.script("long", Outcome(duration_ms=60_000, stdout="mine"))
    framework_id = await left_behind(master, long("x"), long("y"))

    again = [long("x"), long("y"), a_task(task_id="new")]
    async with resumed(master, framework_id) as framework:
        results = await master.finish(framework.run(again))
        outputs = [await framework.stdout(task) for task in again[:2]]

    assert [(result.task_id, result.state, result.attempts) for result in results] == [
        ("x", TaskState.FINISHED, 1),
        ("y", TaskState.FINISHED, 1),
        ("new", TaskState.FINISHED, 1),
    ]
    assert outputs == ["mine", "mine"]
    assert [task.task_id for task in master.tasks] == ["x", "y", "new"]
    assert master.clock.now_ms() == 60_000


async def test_what_waits_for_room_is_launched_once() -> None:
    master = a_master(cpus=1)
    master.script("long", Outcome(duration_ms=10_000))
    framework_id = await left_behind(master, long("x"), long("y"))

    async with resumed(master, framework_id) as framework:
        results = await master.finish(framework.run([long("y"), long("x")]))

    assert [result.task_id for result in results] == ["y", "x"]
    assert [task.task_id for task in master.tasks] == ["x", "y"]
    master.assert_launched_once()


@pytest.mark.parametrize("ends", ["while it is away", "before it goes"])
async def test_what_ended_gives_its_result(ends: str) -> None:
    master = a_master()
    master.script("long", Outcome(duration_ms=2_000, exit_code=3))
    framework_id = await left_behind(
        master, long("x"), after_ms=1_000 if ends == "while it is away" else 3_000
    )
    await master.advance(2_000)

    async with resumed(master, framework_id) as framework:
        [result] = await master.finish(framework.run([long("x")]))

    assert (result.state, result.exit_code, result.attempts) == (TaskState.FAILED, 3, 1)
    assert len(master.tasks) == 1


async def test_a_report_that_comes_before_its_task_is_kept_for_it() -> None:
    master = a_master()
    master.script("long", Outcome(duration_ms=2_000))
    framework_id = await left_behind(master, long("x"))

    async with resumed(master, framework_id) as framework:
        await master.advance(5_000)
        [result] = await master.finish(framework.run([long("x")]))

    assert result.ok
    assert len(master.tasks) == 1


async def test_a_further_attempt_is_found_under_its_own_id_and_tried_again_when_it_is_lost() -> None:
    master = a_master()
    lost = Outcome(state=TaskState.LOST, duration_ms=500)
    master.script("long", lost, Outcome(state=TaskState.LOST, duration_ms=60_000), Outcome())
    framework_id = await left_behind(master, long("x"))
    assert master.running() == ["x.2"]

    async with resumed(master, framework_id) as framework:
        [result] = await master.finish(framework.run([long("x")]))

    assert (result.task_id, result.ok, result.attempts) == ("x.3", True, 3)
    assert [task.task_id for task in master.tasks] == ["x", "x.2", "x.3"]


async def test_attempts_of_the_earlier_session_count() -> None:
    master = a_master()
    master.script("long", Outcome(duration_ms=500, exit_code=1), Outcome(duration_ms=60_000, exit_code=1))
    framework_id = await left_behind(master, long("x", retry_failed=1))

    async with resumed(master, framework_id) as framework:
        [result] = await master.finish(framework.run([long("x", retry_failed=1)]))

    assert (result.task_id, result.state) == ("x.2", TaskState.FAILED)
    assert len(master.tasks) == 2


async def test_a_task_without_an_id_is_refused_as_nobody_could_know_it() -> None:
    master = a_master()
    framework_id = await left_behind(master, a_task("long"))

    async with resumed(master, framework_id) as framework:
        with pytest.raises(ValueError, match="task_id: expected one, got none for long: framework f1-1"):
            await framework.run([a_task("long")])
    assert len(master.tasks) == 1


async def test_agents_that_are_not_back_yet_are_waited_for() -> None:
    master = a_master()
    master.script("long", Outcome(duration_ms=60_000))
    framework_id = await left_behind(master, long("x"))
    master.restart(agents_away_ms=20_000)
    await master.advance(0)

    async with resumed(master, framework_id) as framework:
        [result] = await master.finish(framework.run([long("x")]))

    assert result.ok
    assert len(master.tasks) == 1


async def test_a_cancelled_run_ends_what_it_took_up() -> None:
    master = a_master()
    master.script("long", Outcome(duration_ms=None))
    framework_id = await left_behind(master, long("x"))

    async with resumed(master, framework_id) as framework:
        run = begin(framework.run([long("x")]))
        await master.advance(1_000)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await master.finish(run)

    assert [task.state for task in master.tasks] == [TaskState.KILLED]


async def test_a_task_killed_while_it_is_sought_never_runs_on() -> None:
    master = a_master()
    master.script("long", Outcome(duration_ms=None))
    framework_id = await left_behind(master, long("x"))

    async with resumed(master, framework_id) as framework:
        handles = [framework.submit(long("x")), framework.submit(long("nowhere"))]
        framework.request_kill([handle.task_id for handle in handles])
        results = [await master.finish(handle) for handle in handles]

    assert [result.state for result in results] == [TaskState.KILLED, TaskState.KILLED]
    assert [task.task_id for task in master.tasks] == ["x"]
