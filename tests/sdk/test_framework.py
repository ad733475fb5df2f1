"""The simple path against a cluster in memory: results, retries, losses, cancellation."""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest

from fairlead_proto.codes import Rejection
from fairlead_proto.tasks import TaskUsage
from fairlead_proto.v1 import files_pb2
from fairlead_sdk import (
    Connected,
    Disconnected,
    Framework,
    Infeasible,
    MasterUnreachable,
    Progress,
    Reason,
    TaskResult,
    TaskState,
)
from fairlead_sim.testing import Outcome, VirtualMaster
from fairlead_sim.testing.memory_link import MemoryLink
from tests.sdk.builders import a_master, a_task, begin


async def test_results_come_in_the_order_of_the_tasks() -> None:
    master = a_master(cpus=2)
    master.script("slow", Outcome(duration_ms=5_000, exit_code=3))

    async with Framework("f", master=master) as framework:
        results = await master.finish(framework.run([a_task("slow"), a_task("quick"), a_task("third")]))

    assert [result.task.name for result in results] == ["slow", "quick", "third"]
    assert [result.exit_code for result in results] == [3, 0, 0]
    assert [result.ok for result in results] == [False, True, True]
    assert [result.attempts for result in results] == [1, 1, 1]
    assert results[0].finished_ms - results[0].started_ms == 5_000
    master.assert_at_rest()


async def test_tasks_of_one_kind_are_one_class_and_one_accept() -> None:
    master = a_master(cpus=100)

    async with Framework("f", master=master) as framework:
        results = await master.finish(framework.run([a_task() for _ in range(100)]))

    assert all(result.ok for result in results)
    assert master.clock.now_ms() == 100
    master.assert_launched_once()


@pytest.mark.parametrize("state", [TaskState.LOST, TaskState.DROPPED, TaskState.GONE])
async def test_a_lost_task_is_tried_again_under_a_new_id(state: TaskState) -> None:
    master = a_master()
    master.script("unlucky", Outcome(state=state), Outcome())

    async with Framework("f", master=master) as framework:
        [result] = await master.finish(framework.run([a_task("unlucky", task_id="t")]))

    assert result.ok
    assert (result.task_id, result.attempts) == ("t.2", 2)
    master.assert_launched_once()


@pytest.mark.parametrize("state", [TaskState.LOST, TaskState.DROPPED])
async def test_a_task_lost_again_and_again_is_given_up(state: TaskState) -> None:
    master = a_master()
    master.script("unlucky", Outcome(state=state))

    async with Framework("f", master=master) as framework:
        [result] = await master.finish(framework.run([a_task("unlucky", retries=2)]))

    assert (result.state, result.attempts, result.exit_code) == (state, 3, None)


async def test_output_that_is_known_to_be_empty_is_not_asked_for() -> None:
    master = a_master()
    # What nobody may see: that it was asked for.
    master.script(
        "x", Outcome(stdout="asked", stderr="asked", usage=TaskUsage(stdout_bytes=0, stderr_bytes=5))
    )

    async with Framework("f", master=master) as framework:
        [result] = await master.finish(framework.run([a_task("x")]))

        assert await framework.stdout(result) == ""
        assert await framework.stderr(result) == "asked"


async def test_a_read_of_a_result_says_where_the_task_ran() -> None:
    """A master that was started after its end knows nothing of it."""
    asked: list[str] = []

    class Recorded(VirtualMaster):
        async def read_file(self, request: files_pb2.ReadRequest) -> files_pb2.ReadResponse:
            asked.append(request.agent_id)
            return await super().read_file(request)

    master = Recorded()
    master.add_agent("a", cpus=4, mem="8GiB")
    master.script("x", Outcome(stdout="said"))

    async with Framework("f", master=master) as framework:
        [result] = await master.finish(framework.run([a_task("x")]))
        assert await framework.stdout(result) == "said"
        assert [piece async for piece in framework.logs(result)] == [b"said"]

    assert asked == [result.agent_id] * 2
    assert result.agent_id


async def test_a_task_that_fails_is_not_tried_again_unless_asked() -> None:
    master = a_master()
    master.script("bad", Outcome(exit_code=1))
    again: list[TaskResult] = []

    async with Framework("f", master=master) as framework:
        tasks = [a_task("bad"), a_task("bad", retry_failed=1)]
        results = await master.finish(framework.run(tasks, on_retry=again.append))

    assert [result.attempts for result in results] == [1, 2]
    assert [result.state for result in results] == [TaskState.FAILED] * 2
    second = results[1].task_id
    assert [(end.task_id, end.exit_code, end.attempts) for end in again] == [
        (second.removesuffix(".2"), 1, 1)
    ]


@pytest.mark.parametrize("rejection", [Rejection.EXPIRED, Rejection.AGENT_GONE])
async def test_a_rejected_launch_is_no_attempt(rejection: Rejection) -> None:
    master = a_master()
    for _ in range(20):
        master.reject_next_accept(rejection)

    async with Framework("f", master=master) as framework:
        [result] = await master.finish(framework.run([a_task(task_id="t", retries=0)]))

    assert result.ok
    assert (result.task_id, result.attempts) == ("t", 1)


async def test_a_task_that_never_fits_its_offer_ends_in_error() -> None:
    master = a_master()
    for _ in range(20):
        master.reject_next_accept(Rejection.NO_FIT)

    async with Framework("f", master=master) as framework:
        [result] = await master.finish(framework.run([a_task()]))

    assert result.state is TaskState.ERROR
    assert result.message == "as the test asked"


async def test_a_task_that_fits_nowhere_is_a_result_and_the_others_run_on() -> None:
    master = a_master(cpus=4)
    master.script("long", Outcome(duration_ms=60_000))

    async with Framework("f", master=master) as framework:
        long, large, lone = await master.finish(
            framework.run([a_task("long"), a_task("large", cpus=8), a_task(cpus=2, constraints=["rack=z"])])
        )

    assert long.ok
    assert (large.state, large.reason, large.attempts) == (TaskState.ERROR, Reason.INFEASIBLE, 0)
    assert isinstance(large.refusal, Infeasible)
    assert (large.refusal.best_agent, large.refusal.missing) == ("a", {"cpus": 4000})
    assert large.message == large.refusal.detail
    assert (lone.state, lone.reason) == (TaskState.ERROR, Reason.INFEASIBLE)
    assert (long.refusal, master.clock.now_ms()) == (None, 60_000)
    master.assert_at_rest()


async def test_a_task_that_fits_nowhere_is_told_of_at_once() -> None:
    master = a_master(cpus=4)
    async with Framework("f", master=master) as framework:
        handle = framework.submit(a_task(cpus=8))
        result = await master.finish(handle)

    assert (result.reason, handle.state, master.clock.now_ms()) == (Reason.INFEASIBLE, "ERROR", 0)


async def test_demand_waits_while_no_agent_is_registered() -> None:
    master = VirtualMaster()
    async with Framework("f", master=master) as framework:
        run = begin(framework.run([a_task(cpus=3)]))
        await master.advance(60_000)
        assert not run.done()

        master.add_agent("a", cpus=4, mem="1GiB")
        [result] = await master.finish(run)

    assert result.ok


async def test_a_cancelled_run_kills_its_tasks_and_waits_for_them() -> None:
    master = a_master(cpus=2)
    master.script("long", Outcome(duration_ms=None, ignores_sigterm=True))
    async with Framework("f", master=master, on_exit="leave") as framework:
        run = begin(framework.run([a_task("long") for _ in range(5)]))
        await master.advance(1_000)
        assert len(master.running()) == 2

        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await master.finish(run)

        assert [task.state for task in master.tasks] == [TaskState.KILLED] * 2
        assert master.clock.now_ms() == 6_000
        await master.advance(20)
        master.assert_at_rest()


async def test_progress_counts_every_task_once() -> None:
    master = a_master(cpus=2)
    master.script("bad", Outcome(exit_code=1))
    master.script("unlucky", Outcome(state=TaskState.LOST), Outcome())
    seen: list[Progress] = []

    async with Framework("f", master=master) as framework:
        tasks = [a_task("bad"), a_task("unlucky"), a_task(), a_task()]
        await master.finish(framework.run(tasks, on_progress=seen.append))

    assert {progress.total for progress in seen} == {4}
    assert all(min(p.waiting, p.running, p.finished, p.failed) >= 0 for p in seen)
    assert seen[-1] == Progress(waiting=0, running=0, finished=3, failed=1, retried=1)


async def test_progress_tells_what_was_killed_from_what_failed_by_itself() -> None:
    master = a_master(cpus=2)
    master.script("bad", Outcome(exit_code=1))
    master.script("long", Outcome(duration_ms=None))
    seen: list[Progress] = []

    async with Framework("f", master=master) as framework:
        tasks = [a_task("bad"), *(replace(a_task("long"), task_id=f"long-{n}") for n in range(3))]
        run = begin(framework.run(tasks, on_progress=seen.append))
        await master.advance(1_000)
        framework.request_kill([f"long-{n}" for n in range(3)])
        await master.finish(run)

    assert seen[-1] == Progress(waiting=0, running=0, finished=0, failed=4, retried=0, killed=3)


async def test_a_progress_callback_that_raises_ends_the_run() -> None:
    master = a_master()

    def broken(_: Progress) -> None:
        raise RuntimeError("my own fault")

    async with Framework("f", master=master) as framework:
        with pytest.raises(RuntimeError, match="my own fault"):
            await master.finish(framework.run([a_task()], on_progress=broken))
    master.assert_at_rest()


async def test_results_can_be_taken_as_they_come() -> None:
    master = a_master()
    for name, duration_ms in (("x", 300), ("y", 100), ("z", 200)):
        master.script(name, Outcome(duration_ms=duration_ms))

    async with Framework("f", master=master) as framework:

        async def names() -> list[str]:
            tasks = [a_task(name) for name in "xyz"]
            return [result.task.name async for result in framework.as_completed(tasks)]

        assert await master.finish(names()) == ["y", "z", "x"]


async def test_a_handle_can_be_awaited_and_killed() -> None:
    master = a_master()
    master.script("long", Outcome(duration_ms=None))
    async with Framework("f", master=master) as framework:
        handle = framework.submit(a_task("long"))
        assert handle.state == "PENDING"
        await master.advance(1_000)
        assert handle.state == "RUNNING"

        handle.kill()
        handle.kill()
        result = await master.finish(handle)

    assert result.state is TaskState.KILLED
    assert handle.state == "KILLED"


async def test_a_task_killed_while_it_waits_never_starts() -> None:
    master = VirtualMaster()
    async with Framework("f", master=master) as framework:
        handle = framework.submit(a_task())
        handle.kill()
        result = await handle

    assert (result.state, result.attempts) == (TaskState.KILLED, 0)
    assert not master.tasks


async def test_tasks_of_a_lost_agent_run_again_elsewhere() -> None:
    master = a_master()
    master.script(lambda _: True, Outcome(duration_ms=1_000))
    async with Framework("f", master=master) as framework:
        run = begin(framework.run([a_task() for _ in range(4)]))
        await master.advance(500)
        master.lose_agent("a")
        await master.advance(1_000)
        master.add_agent("b", cpus=4, mem="1GiB")
        results = await master.finish(run)

    assert [(result.agent_id, result.attempts, result.ok) for result in results] == [("b", 2, True)] * 4


async def test_an_unreachable_task_is_waited_for_and_not_run_twice() -> None:
    master = a_master()
    master.script(lambda _: True, Outcome(duration_ms=40_000))
    async with Framework("f", master=master, unreachable_timeout="60s") as framework:
        run = begin(framework.run([a_task()]))
        await master.advance(1_000)
        master.cut_agent("a")
        await master.advance(50_000)
        master.return_agent("a")
        [result] = await master.finish(run)

    assert result.ok
    assert result.attempts == 1
    assert len(master.tasks) == 1


async def test_a_task_unreachable_too_long_is_replaced_and_killed_when_it_returns() -> None:
    master = a_master()
    master.script(lambda _: True, Outcome(duration_ms=None), Outcome(duration_ms=1_000))
    async with Framework("f", master=master, unreachable_timeout="20s") as framework:
        run = begin(framework.run([a_task(task_id="t")]))
        await master.advance(1_000)
        master.cut_agent("a")
        master.add_agent("b", cpus=4, mem="1GiB")
        [result] = await master.finish(run)
        assert (result.task_id, result.agent_id, result.attempts) == ("t.2", "b", 2)

        master.return_agent("a")
        await master.advance(1_000)
        assert master.task("t").state is TaskState.KILLED
    master.assert_at_rest()


@pytest.mark.parametrize("launched", [True, False])
async def test_an_accept_unanswered_when_the_stream_breaks_is_settled_by_reconciliation(
    launched: bool,
) -> None:
    master = a_master()
    master.lose_next_accept(launched=launched)

    async with Framework("f", master=master) as framework:
        results = await master.finish(framework.run([a_task() for _ in range(3)]))

    assert [(result.ok, result.attempts) for result in results] == [(True, 1)] * 3
    assert len(master.tasks) == 3
    master.assert_at_rest()


@pytest.mark.parametrize("launched", [True, False])
async def test_a_launch_in_doubt_on_an_agent_still_away_stays_in_doubt(launched: bool) -> None:
    master = a_master()
    master.script(lambda _: True, Outcome(duration_ms=200_000))
    master.lose_next_accept(launched=launched)
    async with Framework("f", master=master) as framework:
        run = begin(framework.run([a_task(task_id="t")]))
        await master.advance(0)
        master.restart(down_ms=100, agents_away_ms=100_000)
        master.add_agent("b", cpus=4, mem="1GiB")
        await master.advance(90_000)
        assert [task.agent.agent_id for task in master.tasks] == ["a"] * launched

        [result] = await master.finish(run)

    assert result.ok
    assert len(master.tasks) == 1


async def test_a_restarted_master_neither_loses_nor_repeats_work() -> None:
    master = a_master(cpus=3)
    master.script(lambda _: True, Outcome(duration_ms=700))
    async with Framework("f", master=master) as framework:
        run = begin(framework.run([a_task() for _ in range(20)]))
        for _ in range(4):
            await master.advance(900)
            master.restart(down_ms=300, agents_away_ms=500)
        results = await master.finish(run)

    assert all(result.ok for result in results)
    assert len(master.tasks) == 20
    master.assert_at_rest()


async def test_every_report_is_acknowledged() -> None:
    master = a_master()
    async with Framework("f", master=master) as framework:
        await master.finish(framework.run([a_task() for _ in range(10)]))
        await master.advance(20)

        master.assert_at_rest()


async def test_a_master_that_was_there_is_given_up_without_advice_to_start_another() -> None:
    """One that somebody starts now would know nothing of this framework's tasks."""
    master = a_master()
    master.script(lambda _: True, Outcome(duration_ms=600_000))
    framework = Framework("f", master=master, reconnect_timeout="5s")
    await framework.start()
    run = begin(framework.run([a_task()]))
    await master.advance(1_000)

    master.restart(down_ms=60_000)
    await master.advance(10_000)

    with pytest.raises(MasterUnreachable) as error:
        await run
    await framework.close()
    assert error.value.cause == "the master is down"
    assert str(error.value) == f"no master at {error.value.address}: the master is down"


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("name", 7),
        ("role", 5),
        ("principal", b"x"),
        ("framework_id", None),
        ("weight", "2"),
        ("master", 7),
        ("master", ("host", 5050)),
        ("on_session", 3),
    ],
)
def test_an_argument_of_a_wrong_type_is_named_before_anything_is_sent(argument: str, value: Any) -> None:
    """Callers without a type checker; ``framework_id=None`` waited for ever."""
    with pytest.raises(
        ValueError, match=rf"^{argument}: expected (a |HOST).*, got {re.escape(repr(value))}$"
    ):
        Framework(**{"name": "f", argument: value})


async def test_a_task_in_place_of_a_list_is_told_from_one() -> None:
    master = a_master()
    task: Any = a_task()

    async with Framework("f", master=master) as framework:
        with pytest.raises(ValueError, match="tasks: expected a list of them, got Task"):
            await framework.run(task)


async def test_a_framework_that_leaves_is_not_told_that_its_session_broke(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is when the master ends the stream of one that said goodbye sooner than the session is over."""
    finish, heard = MemoryLink.finish, list[Connected | Disconnected]()

    async def slowly(link: MemoryLink) -> None:
        await finish(link)
        for _ in range(10):
            await asyncio.sleep(0)

    monkeypatch.setattr(MemoryLink, "finish", slowly)
    async with Framework("f", master=a_master(), on_session=heard.append):
        pass

    assert [type(event) for event in heard] == [Connected]
