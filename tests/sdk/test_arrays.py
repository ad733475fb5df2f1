"""Arrays: members are tasks like others, made when their turn comes, and told apart by their index."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_proto.ids import TaskId
from fairlead_proto.tasks import ArrayMember
from fairlead_sdk import Array, ArrayHandle, Framework, Launch, Progress, Reason, Task, TaskResult, TaskState
from fairlead_sdk import workload as workload_module
from fairlead_sdk.workload import Workload
from fairlead_sim.testing import Outcome, VirtualMaster
from tests.sdk.builders import a_master, a_task, begin
from tests.sdk.test_workload_histories import Cluster

STEPS = ["offer", "answer", "report", "kill one", "kill all", "time"]


def sweep(over: Any, **options: Any) -> Array:
    return Array(Task(["job", "{}"], mem="64MiB", name="sweep"), over, **options)


async def results_of(master: VirtualMaster, array: Array) -> list[TaskResult]:
    async with Framework("f", master=master) as framework:
        return await master.finish(everything(framework.submit_array(array)))


async def everything(handle: ArrayHandle) -> list[TaskResult]:
    return await handle


# --- the same as tasks -------------------------------------------------------------------------------------------


def history(
    seed: int, steps: list[str], *, count: int, is_array: bool
) -> tuple[dict[str, object], list[str]]:
    """What becomes of so many tasks under these steps, by id, and in which order they were launched."""
    workload = Workload(unreachable_timeout_ms=10**9)
    cluster = Cluster(workload, random.Random(seed))
    chance = random.Random(seed)
    task = a_task(retries=2, retry_failed=1)
    ids = [f"a:{index}" for index in range(count)]
    if is_array:
        cluster.carry_out(workload.submit_array("a", Array(task, count), unix_ms=0))
    else:
        for job_id in ids:
            workload.submit(job_id, task, unix_ms=0)
        cluster.carry_out([])
    for step in [*steps, *["offer", "answer kindly", "report kindly"] * (10 * count)]:
        match step.split():
            case ["offer"]:
                cluster.offer()
            case ["answer", *how]:
                cluster.answer(kindly=bool(how))
            case ["report", *how]:
                cluster.report(kindly=bool(how))
            case ["kill", "one"]:
                index = chance.randrange(count)
                cluster.carry_out(
                    workload.kill_array("a", index) if is_array else workload.kill([ids[index]])
                )
            case ["kill", "all"] if chance.random() < 0.1:
                cluster.carry_out(workload.kill_array("a") if is_array else workload.kill(ids))
            case _:
                cluster.pass_time()
    assert len(workload) == 0
    assert workload.take_demand() is None
    assert not any(demand.units for demand in workload._book.classes())
    ends = {
        job_id: (end.state, end.attempts, end.task_id, end.agent_id, end.reason)
        for job_id, end in cluster.results.items()
        if isinstance(end, TaskResult)
    }
    return dict(ends), cluster.launched_in_order


@settings(max_examples=100)
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(STEPS), max_size=60),
    st.integers(1, 12),
    st.integers(1, 20),
)
def test_an_array_and_the_same_tasks_submitted_singly_have_one_history(
    seed: int, steps: list[str], count: int, ahead: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workload_module, "MEMBERS_AHEAD", ahead)
        of_array, launched_of_array = history(seed, steps, count=count, is_array=True)
    singly, launched_singly = history(seed, steps, count=count, is_array=False)

    assert of_array == singly
    assert launched_of_array == launched_singly
    assert set(of_array) == {f"a:{index}" for index in range(count)}


# --- what members are --------------------------------------------------------------------------------------------


async def test_members_have_their_argument_their_index_and_the_count() -> None:
    master = a_master()

    results = await results_of(master, sweep(["x", "y z"]))

    assert [(result.task_id.partition(":")[2], result.name) for result in results] == [
        ("0", "sweep-0"),
        ("1", "sweep-1"),
    ]
    assert [task.spec.command for task in master.tasks] == [("job", "x"), ("job", "y z")]
    assert [dict(task.spec.environment) for task in master.tasks] == [
        {"FAIRLEAD_TASK_INDEX": str(index), "FAIRLEAD_TASK_COUNT": "2"} for index in range(2)
    ]
    member = results[1].member
    assert member is not None
    assert (member.index, member.argument) == (1, "y z")


@pytest.mark.parametrize("over", [range(9, 2, -3), [9, 6, 3]])
async def test_indices_are_those_given_and_results_come_in_their_order(over: Sequence[int]) -> None:
    master = a_master(cpus=1)

    results = await results_of(master, Array(a_task(task_id="a"), over))

    assert [result.task_id for result in results] == ["a:9", "a:6", "a:3"]


async def test_arguments_without_a_length_have_no_count() -> None:
    master = a_master()

    await results_of(master, sweep(iter(["x"])))

    assert dict(master.tasks[0].spec.environment) == {"FAIRLEAD_TASK_INDEX": "0"}


async def test_an_empty_array_is_over_at_once() -> None:
    assert await results_of(a_master(), sweep(0)) == []
    assert await results_of(a_master(), sweep(iter(()))) == []
    assert await results_of(a_master(), Array(Task(["true"]), [])) == []


@pytest.mark.parametrize(
    ("over", "options", "refusal"),
    [
        ("abc", {}, "over: expected a count, indices or texts, got 'abc'"),
        (-1, {}, "over: expected a count of 0 to 2147483647, got -1"),
        (range(3, -3, -1), {}, "over: expected indices of 0 to 2147483647, got -2"),
        ([4, 2**31], {}, "over: expected indices of 0 to 2147483647, got 2147483648"),
        ([4, 5, 4], {}, "over: expected each index once, got one of them twice"),
        ([1, "a"], {}, "over: expected indices, got 'a'"),
        ([1, "2"], {}, "over: expected indices, got '2'"),
        ([1, True], {}, "over: expected indices, got True"),
        ([1.5], {}, "over: expected indices or texts, got 1.5"),
        ([None], {}, "over: expected indices or texts, got None"),
        (True, {}, "over: expected a count, indices or texts, got True"),
        ({"a": 1}, {}, "over: expected a count, indices or texts, got {'a': 1}"),
        (3, {"at_once": 0}, "at_once: expected 1 or more, got 0"),
    ],
)
def test_an_array_that_cannot_be_is_refused_by_name(over: Any, options: dict[str, Any], refusal: str) -> None:
    with pytest.raises(ValueError, match=f"^{refusal}$"):
        sweep(over, **options)


@pytest.mark.parametrize(
    ("over", "index", "refusal"),
    [
        (3, 5, "index: expected one of the array's 3 indices, got 5"),
        (3, -1, "index: expected one of the array's 3 indices, got -1"),
        (3, "x", "index: expected one of the array's 3 indices, got 'x'"),
        (3, True, "index: expected one of the array's 3 indices, got True"),
        ([3, 0, 7], 1, "index: expected one of the array's 3 indices, got 1"),
        (["x", "y"], 2, "index: expected one of the array's 2 indices, got 2"),
        (iter(["x"]), -1, "index: expected 0 or more, got -1"),
    ],
)
async def test_killing_what_is_no_member_is_refused_by_name(over: Any, index: Any, refusal: str) -> None:
    master = a_master()
    async with Framework("f", master=master) as framework:
        handle = framework.submit_array(sweep(over))
        with pytest.raises(ValueError, match=f"^{refusal}$"):
            handle.kill(index)
        results = await master.finish(everything(handle))
        handle.kill(results[0].member.index if results[0].member else None)
    assert all(result.ok for result in results)


def test_arguments_need_a_place_in_the_command() -> None:
    with pytest.raises(
        ValueError, match=r"^over: expected a place for the arguments, \{\} or \{#\}, in the command"
    ):
        Array(Task(["true"]), ["x"])


# --- laziness ----------------------------------------------------------------------------------------------------


async def test_a_million_arguments_are_not_listed() -> None:
    master = a_master(cpus=2)
    taken = 0

    def arguments() -> Iterator[str]:
        nonlocal taken
        for taken in range(1, 1_000_001):
            yield str(taken)

    async with Framework("f", master=master) as framework:
        handle = framework.submit_array(sweep(arguments()))
        await master.advance(1_000)
        assert taken == workload_module.MEMBERS_AHEAD
        handle.kill()
        killed = await master.finish(everything(handle))

    assert taken == workload_module.MEMBERS_AHEAD
    assert len(killed) == workload_module.MEMBERS_AHEAD


async def test_at_most_so_many_members_are_launched_at_once() -> None:
    master = a_master(cpus=8)
    seen: list[Progress] = []

    async with Framework("f", master=master) as framework:
        handle = framework.submit_array(sweep(10, at_once=3), on_progress=seen.append)
        await master.finish(everything(handle))

    assert max(progress.running for progress in seen) == 3
    assert seen[-1] == Progress(waiting=0, running=0, finished=10, failed=0, retried=0)
    assert master.clock.now_ms() == 400


async def test_the_demand_counts_members_that_are_not_made_yet() -> None:
    workload = Workload(unreachable_timeout_ms=1000)

    workload.submit_array("a", sweep(100_000), unix_ms=0)

    assert [demand.units for demand in workload.take_demand() or ()] == [100_000]
    assert len(workload) == workload_module.MEMBERS_AHEAD


async def test_a_large_array_is_killed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_module, "KILLED_AT_ONCE", 100)
    workload = Workload(unreachable_timeout_ms=1000)
    workload.submit_array("a", sweep(10_000, at_once=1), unix_ms=0)

    parts = [len(workload.kill_array("a"))]
    while workload.next_deadline_ms() is not None:
        parts.append(len(workload.expire(0)))

    assert max(parts) <= 102
    assert sum(parts) == 10_000 + 1  # and that the array is over
    assert len(workload) == 0


async def test_results_come_as_they_end() -> None:
    master = a_master()
    for index, duration_ms in enumerate((300, 100, 200)):
        master.script(f"sweep-{index}", Outcome(duration_ms=duration_ms))

    async with Framework("f", master=master) as framework:

        async def indices() -> list[int]:
            handle = framework.submit_array(sweep(3))
            return [result.member.index async for result in handle if result.member is not None]

        assert await master.finish(indices()) == [1, 2, 0]


async def test_what_the_arguments_raise_comes_after_the_results_there_are() -> None:
    master = a_master()
    got: list[str] = []

    def arguments() -> Iterator[str]:
        yield "x"
        raise OSError("no more")

    async with Framework("f", master=master) as framework:

        async def take() -> None:
            async for result in framework.submit_array(sweep(arguments())):
                got.append(result.name)  # noqa: PERF401 - what came before the error counts

        with pytest.raises(OSError, match="no more"):
            await master.finish(take())
    assert got == ["sweep-0"]
    master.assert_at_rest()


UNUSABLE = [
    (7, "expected texts, got 7"),
    ("x\0", "argument 1: expected no NUL byte"),
    ("é" * 65_536, "argument 1: expected at most 131072 bytes, got 131075"),
]


@pytest.mark.parametrize(("argument", "refusal"), UNUSABLE)
async def test_a_later_argument_that_cannot_be_used_is_named(argument: Any, refusal: str) -> None:
    with pytest.raises(ValueError, match=f"^over: {refusal}"):
        await results_of(a_master(), sweep(iter(["x", argument])))


@pytest.mark.parametrize(("argument", "refusal"), UNUSABLE)
def test_an_argument_in_a_list_that_cannot_be_used_is_named_before_anything_is_sent(
    argument: Any, refusal: str
) -> None:
    with pytest.raises(ValueError, match=f"^over: {refusal}"):
        sweep(["x", argument])


def test_the_longest_argument_a_command_can_have_is_taken() -> None:
    room = 131_072 - len("job")

    assert sweep(["x" * room]).count == 1
    with pytest.raises(ValueError, match=r"got 131073$"):
        sweep(["x" * (room + 1)])


async def test_a_callback_that_raises_ends_the_array() -> None:
    master = a_master()
    master.script("sweep-0", Outcome(duration_ms=None))

    def broken(_: Launch) -> None:
        raise RuntimeError("my own fault")

    async with Framework("f", master=master) as framework:
        handle = framework.submit_array(sweep(1), on_launch=broken)
        with pytest.raises(RuntimeError, match="my own fault"):
            await master.finish(everything(handle))
        await master.advance(20)
        master.assert_at_rest()


# --- what holds for tasks ----------------------------------------------------------------------------------------


async def test_one_member_is_killed_be_it_running_waiting_or_not_made() -> None:
    master = a_master(cpus=1)
    master.script("sweep-0", Outcome(duration_ms=None))
    async with Framework("f", master=master) as framework:
        handle = framework.submit_array(sweep(10_000, at_once=2))
        await master.advance(1_000)
        for index in (0, 1, 9_000):
            handle.kill(index)
        await master.advance(1_000)
        results = {result.member.index: result async for result in _some(handle, 2) if result.member}

        assert {index: result.state for index, result in results.items()} == {
            0: TaskState.KILLED,
            1: TaskState.KILLED,
        }
        assert (results[0].attempts, results[1].attempts) == (1, 0)


async def _some(handle: ArrayHandle, count: int) -> AsyncIterator[TaskResult]:
    async for result in handle:
        yield result
        count -= 1
        if not count:
            return


async def test_a_lost_member_is_tried_again_and_its_output_is_read_by_its_result() -> None:
    master = a_master()
    master.script("sweep-1", Outcome(state=TaskState.LOST), Outcome(stdout="mine"))
    launched: list[str] = []
    given_up: list[TaskResult] = []

    async with Framework("f", master=master) as framework:
        handle = framework.submit_array(
            sweep(2), on_launch=lambda launch: launched.append(launch.task_id), on_retry=given_up.append
        )
        results = await master.finish(everything(handle))
        output = await framework.stdout(results[1])

    array_id = results[0].task_id.removesuffix(":0")
    assert (results[1].task_id, results[1].attempts) == (f"{array_id}:1.2", 2)
    assert launched == [f"{array_id}:0", f"{array_id}:1", f"{array_id}:1.2"]
    assert [result.task_id for result in given_up] == [f"{array_id}:1"]
    assert output == "mine"


async def test_members_that_fit_nowhere_are_refused_as_tasks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_module, "MEMBERS_AHEAD", 2)
    results = await results_of(a_master(), Array(a_task(cpus=64), 5))

    assert [result.reason for result in results] == [Reason.INFEASIBLE] * 5


async def test_a_resumed_array_takes_up_its_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_module, "MEMBERS_AHEAD", 2)
    master = a_master(cpus=3)
    master.script(lambda spec: spec.task_id in ("a:3", "a:4", "a:5"), Outcome(duration_ms=60_000))
    array = Array(a_task(task_id="a"), 8)
    earlier = Framework("f", master=master, on_exit="leave")
    await earlier.start()
    earlier.submit_array(array)
    await master.advance(1_000)
    await earlier.close()

    async with Framework("f", master=master, framework_id=earlier.framework_id) as framework:
        results = await master.finish(everything(framework.submit_array(array)))

    assert [(result.task_id, result.ok, result.attempts) for result in results] == [
        (f"a:{index}", True, 1) for index in range(8)
    ]
    master.assert_launched_once()
    assert len(master.tasks) == 8


async def test_an_array_survives_a_restart_of_the_master() -> None:
    master = a_master(cpus=2)

    async with Framework("f", master=master) as framework:
        handle = framework.submit_array(sweep(20))
        await master.advance(250)
        master.restart(down_ms=500)
        results = await master.finish(everything(handle))

    assert [result.ok for result in results] == [True] * 20
    master.assert_launched_once()


async def test_the_end_of_the_session_is_told() -> None:
    master = a_master(cpus=1)
    framework = Framework("f", master=master)
    await framework.start()
    handle = framework.submit_array(sweep(3))
    waiting = begin(everything(handle))
    await master.advance(10)
    await framework.close()

    with pytest.raises(Exception, match="was closed"):
        await waiting
    assert handle.done


async def test_an_id_of_a_member_may_not_be_used_twice() -> None:
    master = a_master(cpus=1)
    async with Framework("f", master=master) as framework:
        framework.submit(a_task(task_id="a:1"))
        handle = framework.submit_array(Array(a_task(task_id="a"), 3))
        with pytest.raises(ValueError, match="task_id: expected one that is not in use, got 'a:1'"):
            await master.finish(everything(handle))


def test_a_launch_is_never_counted_smaller_than_it_is() -> None:
    from fairlead_sdk.wire import write_launch

    task = Task(["job", "--a={}", "--b={}"], name="sweep", env={"A": "1"})
    for argument in (None, "x" * 1000, "é" * 1000):
        member = ArrayMember(array_id=TaskId("a"), index=2**31 - 1, count=2**31 - 1, argument=argument)
        launch = Launch(member.task_id, task, member)
        assert write_launch(launch).ByteSize() <= launch.size_bytes


async def test_awaiting_twice_gives_the_same_results() -> None:
    master = a_master()
    async with Framework("f", master=master) as framework:
        handle = framework.submit_array(sweep(3))
        first, second = await master.finish(asyncio.gather(everything(handle), everything(handle)))

    assert first == second
    assert len(first) == 3
