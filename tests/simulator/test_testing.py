"""The kit keeps what it promises to those who test with it."""

import asyncio
import importlib
from functools import partial

import pytest

from fairlead_sdk import Framework, FrameworkExpired, Refused, Task, TaskState
from fairlead_sim.testing import Outcome, VirtualClock, VirtualMaster
from tests.sdk.builders import a_master, a_task, begin


async def test_timers_go_off_in_order_and_not_before_their_time() -> None:
    clock = VirtualClock()
    seen: list[tuple[str, int]] = []

    def note(name: str) -> None:
        seen.append((name, clock.now_ms()))

    for name, delay_ms in (("b", 20), ("a", 10), ("c", 20), ("never", 10)):
        timer = clock.call_later(delay_ms, partial(note, name))
        if name == "never":
            timer.cancel()

    await clock.advance(15)
    assert seen == [("a", 10)]
    await clock.advance(100)
    assert seen == [("a", 10), ("b", 20), ("c", 20)]
    assert clock.now_ms() == 115


async def test_what_never_ends_is_said_and_not_waited_for() -> None:
    master = a_master()
    master.script(lambda _: True, Outcome(duration_ms=None))
    async with Framework("f", master=master) as framework:
        with pytest.raises(AssertionError, match="not done after 60000 ms; running"):
            await master.finish(framework.run([a_task()]), limit_ms=60_000)


async def test_two_roles_share_one_master_as_its_policy_says() -> None:
    master = a_master(cpus=4)
    async with (
        Framework("f", role="f", master=master) as first,
        Framework("g", role="g", master=master) as second,
    ):
        runs = [first.run([a_task() for _ in range(6)]), second.run([a_task() for _ in range(2)])]
        await master.finish(asyncio.gather(*runs))

    at_once = [task.framework_id for task in master.tasks if task.launched_ms == 0]
    assert sorted(at_once) == ["f1-1", "f1-1", "f1-2", "f1-2"]


async def test_the_same_history_repeats_exactly() -> None:
    async def history() -> list[tuple[str, str, int]]:
        master = a_master(cpus=2)
        master.script("lost", Outcome(state=TaskState.LOST), Outcome())
        async with Framework("f", master=master) as framework:
            run = begin(framework.run([a_task("lost") for _ in range(6)]))
            await master.advance(50)
            master.restart(down_ms=700, agents_away_ms=300)
            await master.finish(run)
        return [(task.task_id, task.agent.agent_id, task.launched_ms) for task in master.tasks]

    assert await history() == await history()


async def test_constraints_and_custom_resources_are_kept_to() -> None:
    master = VirtualMaster(custom_resources=["licenses"])
    master.add_agent("a", cpus=4, mem="1GiB", attributes={"rack": "a"})
    master.add_agent("b", cpus=4, mem="1GiB", attributes={"rack": "b"}, custom={"licenses": 1})
    master.add_agent("c", cpus=4, mem="1GiB", attributes={"rack": "c"}, custom={"licenses": 1})

    async with Framework("f", master=master) as framework:
        tasks = [a_task(custom={"licenses": 1}, constraints=["rack!=b"]), a_task(constraints=["rack=b|c"])]
        results = await master.finish(framework.run(tasks))
        with pytest.raises(ValueError, match=r"resource of this cluster \(licenses\), got 'dongles'"):
            framework.submit(a_task(custom={"dongles": 1}))

    assert [result.agent_id for result in results] == ["c", "b"]


async def test_output_is_what_the_script_says_and_following_ends_with_the_task() -> None:
    master = a_master()
    master.script("talks", Outcome(duration_ms=25_000, stdout="hello\n", stderr="oops"))
    async with Framework("f", master=master) as framework:
        task = a_task("talks")
        with pytest.raises(Refused, match="never launched"):
            await framework.stdout(task)
        handle = framework.submit(task)
        await master.advance(0)

        async def follow() -> bytes:
            return b"".join([piece async for piece in framework.logs(handle)])

        assert await master.finish(follow()) == b"hello\n"
        assert master.clock.now_ms() == 25_000
        assert await framework.stderr(task) == "oops"


async def test_a_framework_id_the_master_does_not_know_has_expired() -> None:
    with pytest.raises(FrameworkExpired, match="framework-9"):
        await Framework("f", master=VirtualMaster(), framework_id="framework-9").start()


async def test_two_thousand_tasks_are_one_run() -> None:
    master = VirtualMaster()
    for number in range(20):
        master.add_agent(f"a{number}", cpus=1_000, mem="1TiB")
    tasks = [Task(["x", str(number)], cpus=1, mem="1MiB") for number in range(2_000)]

    async with Framework("f", master=master) as framework:
        results = await master.finish(framework.run(tasks))

    assert sum(result.ok for result in results) == 2_000
    assert results[77].task is tasks[77]


def test_the_old_import_says_where_the_kit_is() -> None:
    with pytest.raises(ImportError, match=r"is now fairlead_sim\.testing"):
        importlib.import_module("fairlead_sdk.testing")
